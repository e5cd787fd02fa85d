"""Items by upload: the rows of a file, or of a piece of it, of which those that are wrong are said.

A browser sends a file in pieces, each with the header of the file; a piece again changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import FastAPI, Query, Request, Response
from pydantic import TypeAdapter, ValidationError

from venire.errors import Conflict, FileError, InputError
from venire.files.sending import Sent, read_sent, send_all
from venire.server.actors import Actor
from venire.server.edge.answers import json_answer, says
from venire.server.edge.bodies import CSV, NDJSON, ItemBody, faults_of, item_of, media_type
from venire.server.edge.errors import MOST_FAULTS, RequestError
from venire.server.edge.guard import Gate, caller
from venire.server.edge.parameters import Stream
from venire.server.messages import ItemIn
from venire.tools.addresses import Piped
from venire.tools.csv_rows import dialect_of

__all__ = ["UploadRoutes"]

#: The endings of the types that are read.
ENDINGS: Final = {CSV: "csv", NDJSON: "jsonl"}

LINE = "The line of the file in which the first row of this piece stands."
COLUMN = "The column of the ids; by default `id`, or the one that looks like it."
HASHED = "Make the ids of the content: the same content is the same item."
EXAMPLE = "id,text\npost-1,Buy now!\n"

_ITEM: Final = TypeAdapter(ItemBody)


class UploadRoutes:
    """For producers who have a file."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the route."""
        text = {"schema": {"type": "string"}}
        content = {CSV: {**text, "example": EXAMPLE}, NDJSON: text}
        app.add_api_route(
            "/v1/streams/{stream}/upload",
            self.upload,
            methods=["POST"],
            tags=["items"],
            responses=says(404, 409, 413, 415, 422, text="How many are new, and which rows not."),
            openapi_extra={"requestBody": {"required": True, "content": content}},
        )

    async def upload(
        self,
        request: Request,
        stream: Stream,
        line: Annotated[int | None, Query(description=LINE, ge=1, le=2**53)] = None,
        id: Annotated[str | None, Query(description=COLUMN, max_length=200)] = None,
        hash_ids: Annotated[bool, Query(description=HASHED)] = False,
    ) -> Response:
        """Add the rows of a CSV or JSON Lines file as items, but for those that are refused."""
        kind = ENDINGS[media_type(request, tuple(ENDINGS))]
        file = Piped("upload", "the file", f"upload.{kind}", "", await request.body())
        await self._service.stream(stream)
        who, loop = caller(request).actor, asyncio.get_running_loop()

        def post(items: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
            """From the thread of the file, by the event loop."""
            sent = [_checked(item) for item in items]
            adding = self._add(stream, sent, who)
            return asyncio.run_coroutine_threadsafe(adding, loop).result()

        def read() -> dict[str, Any]:
            rows = self._rows(file, kind, line, id, hash_ids)
            return send_all(rows, post)

        return json_answer(await asyncio.to_thread(read))

    def _rows(
        self, file: Piped, kind: str, line: int | None, id: str | None, hash_ids: bool
    ) -> Iterator[Sent]:
        """The rows, as many as are allowed, with their lines in the whole file."""
        if id is not None and hash_ids:
            raise InputError("got a column of ids and ids of the content, expected one of them")
        first = 1 if kind == "jsonl" else 2 + dialect_of(file).skipped
        shift = (line or first) - first
        try:
            rows = list(read_sent(file, id or None, hash_ids))
        except FileError as fault:
            if fault.line is None or fault.line < first:
                raise
            raise FileError(file, fault.line + shift, fault.why) from None
        most = self._gate.settings.max_batch
        if len(rows) > most:
            raise RequestError(
                413,
                "batch_too_large",
                f"got {len(rows):,} rows in one request, expected at most {most:,}",
                hint="send the file in pieces; nothing in this one was accepted",
            )
        return (row._replace(line=row.line + shift) for row in rows)

    async def _add(self, stream: str, items: Sequence[ItemIn], who: Actor) -> dict[str, int]:
        """Add items; a conflict is about one of them."""
        try:
            added = await self._service.add_items(stream, items, who)
        except Conflict as fault:
            raise InputError(str(fault).partition(": nothing in the request")[0]) from None
        created = sum(item.status == "created" for item in added)
        return {"created": created, "exists": len(added) - created}


def _checked(item: dict[str, Any]) -> ItemIn:
    """The item of a row, if it is one.

    >>> _checked({"id": "a", "payload": "x", "weight": -1.0})
    Traceback (most recent call last):
    venire.errors.InputError: weight: Input should be greater than 0
    """
    try:
        return item_of(_ITEM.validate_python(item, strict=True))
    except ValidationError as error:
        faults = faults_of(error, ())[:MOST_FAULTS]
        said = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults]
        raise InputError("; ".join(said)) from None
