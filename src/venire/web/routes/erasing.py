"""Deleting for good, and who did what."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response

from venire.service.admin_messages import AuditView, Deleted, Erased
from venire.web.answers import json_answer, says
from venire.web.guard import Gate, caller
from venire.web.parameters import SLUG, Item, Stream

__all__ = ["EraseRoutes"]

After = Annotated[int, Query(description="Go on after this line.", ge=0, le=2**53)]
Limit = Annotated[int, Query(description="At most so many.", ge=1, le=10_000)]
About = Annotated[str | None, Query(description="Only what is about this stream.", pattern=SLUG)]


class EraseRoutes:
    """What an operator uses to delete, and to see what was done."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service = gate.service

    def add(self, app: FastAPI) -> None:
        """Add the routes."""
        app.add_api_route(
            "/v1/streams/{stream}",
            self.delete,
            methods=["DELETE"],
            tags=["streams"],
            response_model=Deleted,
            responses=says(404, 409, 422, text="It is gone, with all that belonged to it."),
        )
        app.add_api_route(
            "/v1/streams/{stream}/payloads/{item:path}",
            self.erase,
            methods=["DELETE"],
            tags=["items"],
            response_model=Erased,
            responses=says(
                404, 409, 422, text="The payload is gone; the item and its labels stay."
            ),
        )
        app.add_api_route(
            "/v1/audit",
            self.audit,
            methods=["GET"],
            tags=["operations"],
            response_model=list[AuditView],
            responses=says(422, text="Who did what, the earliest first; the last `n` goes on."),
        )

    async def delete(self, request: Request, stream: Stream) -> Response:
        """Delete a stream that is closed, for good."""
        return json_answer(await self._service.delete_stream(stream, caller(request).actor))

    async def erase(self, request: Request, stream: Stream, item: Item) -> Response:
        """Delete what an item holds, for good; one that is open is withdrawn."""
        return json_answer(await self._service.erase_payload(stream, item, caller(request).actor))

    async def audit(self, after: After = 0, limit: Limit = 1000, stream: About = None) -> Response:
        """Who did what, when and with which key."""
        return json_answer(await self._service.audit(after, limit, stream))
