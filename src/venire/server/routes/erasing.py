"""Permanent deletion, and the audit trail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import FastAPI, Query, Request, Response
from starlette.responses import StreamingResponse

from venire.server.admin_messages import AuditView, Deleted, Erased
from venire.server.edge.answers import json_answer, says
from venire.server.edge.guard import Gate, caller
from venire.server.edge.parameters import SLUG, Item, Limit, Stream
from venire.tools.untrusted import harmless

__all__ = ["EraseRoutes"]

#: Entries to read at once.
PAGE: Final = 1000

After = Annotated[int, Query(description="Entries after this number.", ge=0, le=2**53)]
About = Annotated[str | None, Query(description="Only entries about this stream.", pattern=SLUG)]


class EraseRoutes:
    """Deletion and the audit trail, for operators."""

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
            responses=says(
                404, 409, 422, text="The stream is deleted, with all that belonged to it."
            ),
        )
        app.add_api_route(
            "/v1/streams/{stream}/payloads/{item:path}",
            self.erase,
            methods=["DELETE"],
            tags=["items"],
            response_model=Erased,
            responses=says(
                404, 409, 410, 422, text="The payload is erased; the item and its labels stay."
            ),
        )
        app.add_api_route(
            "/v1/audit",
            self.audit,
            methods=["GET"],
            tags=["operations"],
            response_model=list[AuditView],
            responses=says(422, text="Audit entries, oldest first; `n` is the cursor."),
        )

        app.add_api_route(
            "/v1/audit/export",
            self.export,
            methods=["GET"],
            tags=["operations"],
            response_class=Response,
            responses=says(422, text="All entries as CSV, oldest first.", kind="text/csv"),
        )

    async def export(self, stream: About = None) -> Response:
        """The audit trail as CSV with a header, all of it or of one stream."""
        first = await self._service.audit(0, PAGE, stream)
        headers = {"content-disposition": 'attachment; filename="audit.csv"'}
        pages = self._pages(first, stream)
        return StreamingResponse(pages, media_type="text/csv; charset=utf-8", headers=headers)

    async def _pages(self, rows: list[AuditView], stream: str | None) -> AsyncIterator[str]:
        yield _csv([("n", "at", "actor", "key", "action", "stream", "subject", "details")])
        while rows:
            yield _csv([_line(row) for row in rows])
            rows = await self._service.audit(rows[-1].n, PAGE, stream)

    async def delete(self, request: Request, stream: Stream) -> Response:
        """Delete a closed stream permanently."""
        return json_answer(await self._service.delete_stream(stream, caller(request).actor))

    async def erase(self, request: Request, stream: Stream, item: Item) -> Response:
        """Erase the payload of an item permanently; an open item is withdrawn."""
        return json_answer(await self._service.erase_payload(stream, item, caller(request).actor))

    async def audit(self, after: After = 0, limit: Limit = 1000, stream: About = None) -> Response:
        """Who did what, when and with which key."""
        return json_answer(await self._service.audit(after, limit, stream))


def _line(row: AuditView) -> tuple[object, ...]:
    at = datetime.fromtimestamp(row.at, UTC).isoformat()
    details = json.dumps(row.details, ensure_ascii=False)
    return row.n, at, row.actor, row.key, row.action, row.stream, row.subject, details


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    r"""Rows as CSV; a text that a spreadsheet would take for a formula begins with a quote.

    >>> _csv([(1, "a, b", None, "=1+1")])
    '1,"a, b",,\'=1+1\r\n'
    """
    text = io.StringIO()
    csv.writer(text).writerows([harmless(value) for value in row] for row in rows)
    return text.getvalue()
