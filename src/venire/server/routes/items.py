"""Items: adding, uploading, finding, withdrawing and explaining them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from venire.errors import Conflict, FileError, InputError
from venire.files.items import Sent, read_sent, send_all
from venire.model import ExitReason, ItemStatus
from venire.server.actors import Actor
from venire.server.edge.blind import Blind, blind_for
from venire.server.edge.bodies import (
    CSV,
    NDJSON,
    ItemBody,
    faults_of,
    item_of,
    media_type,
    read_list,
)
from venire.server.edge.errors import MOST_FAULTS, RequestError
from venire.server.edge.guard import Caller, by_hand, caller
from venire.server.edge.handlers import (
    Item,
    Part,
    Since,
    Stream,
    Until,
    long_answer,
    payload_answer,
    serves,
)
from venire.server.messages import Erased, Explanation, ItemIn, ItemsPage, ItemView
from venire.server.settings import Name
from venire.server.store import ItemSearch
from venire.tools.addresses import Piped
from venire.tools.csv_rows import dialect_of

Beliefs = Annotated[bool, Query(description="Whether to recompute how the belief moved.")]

#: The endings of the types that are read.
ENDINGS: Final = {CSV: "csv", NDJSON: "jsonl"}

LINE = "The line of the file in which the first row of this piece stands."
COLUMN = "The column of the ids; by default `id`, or the one that looks like it."
HASHED = "Make the ids of the content: the same content is the same item."
_FILE: Final = {
    CSV: {"schema": {"type": "string"}, "example": "id,text\npost-1,Buy now!\n"},
    NDJSON: {"schema": {"type": "string"}},
}
EXAMPLE: Final = [{"id": "post-1", "payload": "Buy now!"}]

_ITEM: Final = TypeAdapter(ItemBody)


def _given(value: Any) -> Any:
    """None for an empty text: a form sends every field."""
    return None if value == "" else value


_EMPTY = BeforeValidator(_given)
_TEXT = "Only items with this text in the id or the payload; the case of letters a-z is ignored."
_CURSOR = "The `next` of an earlier answer, for the same search."
Share = Annotated[Annotated[float, Field(ge=0, le=1)] | None, _EMPTY]
Words = Annotated[Annotated[str, Field(max_length=200)] | None, _EMPTY]
Chosen = Annotated[Name | None, _EMPTY]


async def search_of(
    status: Annotated[
        Annotated[ItemStatus | None, _EMPTY], Query(description="Only items of this status.")
    ] = None,
    verdict: Annotated[Chosen, Query(description="Only items that left with this verdict.")] = None,
    reason: Annotated[
        Annotated[ExitReason | None, _EMPTY], Query(description="Only items that left for this.")
    ] = None,
    min_confidence: Annotated[
        Share, Query(description="The least confidence of the verdict.")
    ] = None,
    max_confidence: Annotated[
        Share, Query(description="The most confidence of the verdict.")
    ] = None,
    labeler: Annotated[Chosen, Query(description="Only items that this labeler labelled.")] = None,
    text: Annotated[Words, Query(description=_TEXT)] = None,
    since: Since = None,
    until: Until = None,
) -> ItemSearch:
    """The search that query parameters describe."""
    return ItemSearch(
        status, verdict, reason, min_confidence, max_confidence, labeler, text, since, until
    )


#: A search, for routes and pages alike.
Searched = Annotated[ItemSearch, Depends(search_of)]


class ItemRoutes(Part):
    """For producers and readers; `explain` before the item, whose id may hold a slash."""

    @serves("add_items", "items", 409, text="The outcome for each item.",
            body=ItemBody, lists=True, example=EXAMPLE)  # fmt: skip
    @by_hand
    async def add_items(self, request: Request) -> Response:
        """Add items; idempotent for the same id and content, a conflict for other content."""
        most, stream = self._gate.settings.max_batch, request.path_params["stream"]
        items = await read_list(request, ItemBody, most, lambda _, row: item_of(row))
        added = await self._service.add_items(stream, items, caller(request).actor)
        created = sum(item.status == "created" for item in added)
        counts = {"created": created, "exists": len(added) - created}
        return await long_answer(counts, "items", added)

    @serves("explain", "items", 410, text="The current state.", reply=Explanation)
    async def explain(
        self, request: Request, who: Caller, stream: Stream, item: Item, beliefs: Beliefs = False
    ) -> Any:
        """Why an item was assigned to whom, and why it left; recomputed from the log."""
        if not request.scope["raw_path"].endswith(b"/explain"):  # the slash is part of the id
            return await self.show(who, stream, f"{item}/explain")
        (await blind_for(self._service, who, stream)).check(item)
        work = self._service.explain(stream, item, beliefs)
        return await self._gate.long_poll(request, work)

    @serves("item", "items", 410, text="The current state.", reply=ItemView)
    async def show(self, who: Caller, stream: Stream, item: Item) -> Response:
        """An item with its labels, posterior, verdict and revisions."""
        view = await self._service.item(stream, item)
        shown = (await blind_for(self._service, who, stream)).item(view)
        return await payload_answer(shown, [shown.payload, [[]] * len(shown.labels)])

    @serves("withdraw", "items", 409, 410, text="Done.", reply=ItemView)
    async def withdraw(self, who: Caller, stream: Stream, item: Item) -> Response:
        """Withdraw an item without a verdict."""
        view = await self._service.withdraw(stream, item, who.actor)
        return await payload_answer(view, [view.payload])

    @serves("erase_payload", "items", 409, 410,
            text="The payload is erased; the item and its labels stay.")  # fmt: skip
    async def erase(self, who: Caller, stream: Stream, item: Item) -> Erased:
        """Erase the payload of an item permanently; an open item is withdrawn."""
        return await self._service.erase_payload(stream, item, who.actor)

    @serves("find_items", "items", text="Items, the latest arrival first.")
    async def find_items(
        self,
        blind: Blind,
        stream: Stream,
        search: Searched,
        cursor: Annotated[str | None, Query(description=_CURSOR, max_length=2000)] = None,
        limit: Annotated[int, Query(description="Maximum number of items.", ge=1, le=1000)] = 50,
    ) -> ItemsPage:
        """List and search items; a search for something rare takes several requests."""
        return blind.page(
            await self._service.find_items(stream, blind.search(search), cursor, limit)
        )

    @serves("upload", "items", 409,
            text="How many are new, and which rows not.",
            openapi_extra={"requestBody": {"required": True, "content": _FILE}})  # fmt: skip
    async def upload(
        self,
        request: Request,
        sender: Caller,
        stream: Stream,
        line: Annotated[int | None, Query(description=LINE, ge=1, le=2**53)] = None,
        id: Annotated[str | None, Query(description=COLUMN, max_length=200)] = None,
        hash_ids: Annotated[bool, Query(description=HASHED)] = False,
    ) -> Any:
        """Add the rows of a CSV or JSON Lines file as items, but for those that are refused.

        A browser sends a file in pieces, each with the header of the file; a piece again changes
        nothing.
        """
        kind = ENDINGS[media_type(request, tuple(ENDINGS))]
        file = Piped("upload", "the file", f"upload.{kind}", "", await request.body())
        await self._service.stream(stream)
        who, loop = sender.actor, asyncio.get_running_loop()

        def post(items: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
            """From the thread of the file, by the event loop."""
            sent = [_checked(item) for item in items]
            adding = self._add(stream, sent, who)
            return asyncio.run_coroutine_threadsafe(adding, loop).result()

        def read() -> dict[str, Any]:
            rows = self._rows(file, kind, line, id, hash_ids)
            return send_all(rows, post)

        return await asyncio.to_thread(read)

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
