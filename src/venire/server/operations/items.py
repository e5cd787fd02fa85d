"""Items: how they are added (what producers send becomes rows, see `Intake`), found and shown.

Cursors tell nothing: they are places in a listing, encrypted under a secret of the store. A place
may be that of an item, or its confidence, which not everybody may see. The tag is the HMAC-SHA256
of the place, and with it begins what the place is added to (bit by bit): the same place has the
same cursor, and one that was changed is refused.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from venire.errors import Conflict, InputError, StateError, TooMuch
from venire.model import MOST_WEIGHT, ExitReason, ItemStatus, StreamStatus
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.messages import (
    Added,
    Explanation,
    ItemIn,
    ItemsPage,
    ItemSummary,
    ItemView,
    view,
)
from venire.server.operations import Operations
from venire.server.reports.event_json import (
    gold_view,
    label_view,
    note_view,
    repeat_view,
    revision_view,
    route_view,
)
from venire.server.reports.explain import explain, find
from venire.server.reports.trends import (
    TRUSTED,
    guarantee_of,
    last_change,
    marked_exit,
    rests_on,
)
from venire.server.runtime.ticker import CHUNK, chunks, committed, run_chunk
from venire.server.settings import LONGEST_ID
from venire.server.store import ERASED, ItemRow, ItemSearch, Place, Storage
from venire.server.store.contents import compact, digest_of, is_large
from venire.server.store.search import EXCERPT
from venire.server.stream.change_batch import Batch

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream, Moment

_TAG: Final = 16


def sealed(secret: bytes, place: tuple[Any, ...] | None) -> str:
    """A place as text for a URL.

    >>> opened(b"secret", sealed(b"secret", (1e9, "post 1")))
    [1000000000.0, 'post 1']
    """
    told = json.dumps(place, ensure_ascii=False).encode()
    tag = hmac.digest(secret, b"cursor" + told, hashlib.sha256)[:_TAG]
    return base64.urlsafe_b64encode(tag + _mixed(secret, tag, told)).decode().rstrip("=")


def opened(secret: bytes, cursor: str) -> Any:
    """The place that a cursor names."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        told = _mixed(secret, raw[:_TAG], raw[_TAG:])
        tag = hmac.digest(secret, b"cursor" + told, hashlib.sha256)[:_TAG]
        if hmac.compare_digest(tag, raw[:_TAG]):
            return json.loads(told)
    except (ValueError, binascii.Error):
        pass
    raise InputError(f"got the cursor {cursor[:40]!r}, expected the `next` of an earlier answer")


def _mixed(secret: bytes, tag: bytes, text: bytes) -> bytes:
    """The text added to a stream of bytes that only the secret and the tag yield."""
    key = hmac.digest(secret, b"stream" + tag, hashlib.sha256)
    stream = hashlib.shake_256(key).digest(len(text))
    return bytes(a ^ b for a, b in zip(text, stream, strict=True))


#: How many characters to show.
LENGTH: Final = 240

#: The fields of an object that are most likely to say what it is.
_TELLING: Final = ("text", "title", "prompt", "question", "name")


def excerpt_of(payload: str, length: int = LENGTH) -> str:
    """The text of a payload, which is JSON and may be cut off.

    >>> excerpt_of('{"text":"Buy now","lang":"en"}'), excerpt_of('"hello"'), excerpt_of('[1, 2')
    ('Buy now', 'hello', '[1, 2')
    """
    try:
        found = _text(json.loads(payload))
    except ValueError:  # it is cut off
        found = payload
    found = re.sub(r"\s+", " ", found).strip()
    return found if len(found) <= length else f"{found[: length - 1]}…"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        telling = [value[name] for name in _TELLING if isinstance(value.get(name), str)]
        if telling:
            return str(telling[0])
    return "" if value is None else json.dumps(value, ensure_ascii=False)


#: Seconds to look for items in one request; rows to look at before the clock is read again.
SEARCH_SECONDS: Final = 0.1
SCAN: Final = 5000

#: The place before all items: later than any arrival.
START: Final = (1e15, "")


class ItemOperations(Operations):
    """Adds, withdraws, lists and searches items."""

    async def add_items(
        self, stream: str, items: Sequence[ItemIn], actor: Actor | str = PROGRAM
    ) -> list[Added]:
        """Add items; idempotent for the same id and content, `Conflict` for other content."""
        runtime, key = self.runtime, Actor.of(actor).key
        await runtime.writable(stream)
        self._check_batch(len(items), "items")
        much = len(items) > CHUNK or any(is_large(item.payload) for item in items)
        sent = await runtime.threads.scan(much, contents, items)
        known = await runtime.read(known_contents, runtime.storage, stream, list(sent))
        intake = Intake(items, sent, known)
        added: list[Added] = []
        commits: list[asyncio.Future[None]] = []
        async with runtime.intake.setdefault(stream, asyncio.Lock()):
            try:
                count, moment = 0, runtime.moment()
                async for live, part in chunks(runtime, stream, len(items)):
                    count += len(intake.sort_out(live, part, moment)[0])
            except Conflict:
                await runtime.flush()  # the reason for the conflict must be on disk
                raise
            if count:
                check_room(await runtime.live_stream(stream), count, self.settings.max_open_items)
            async for live, part in chunks(runtime, stream, len(items)):
                batch = Batch(key)
                step = partial(_enter, live, intake, part, batch, runtime.moment(), actor)
                added += await run_chunk(runtime, live, batch, part, step, commits)
                runtime.students.look(live)
        await committed(commits)
        return added

    async def withdraw(self, stream: str, item: str, actor: Actor | str = PROGRAM) -> ItemView:
        """Withdraw an item without a verdict; idempotent."""
        live = await self.runtime.writable(stream)
        if item in live.open:
            batch, moment = Batch(Actor.of(actor).key), self.runtime.moment()
            live.withdraw(item, batch, moment)
            batch.audit = [audit_row(actor, moment.wall, "item.withdraw", stream, item)]
            await self.runtime.commit(live, batch)
        view = await item_view(self.runtime, stream, item)
        if view.status == ItemStatus.LEFT:
            raise StateError(f"item {item!r} has already left, as {view.verdict!r}")
        return view

    async def find_items(
        self, stream: str, search: ItemSearch, cursor: str | None = None, limit: int = 50
    ) -> ItemsPage:
        """A page of the items that match, the latest arrival first, from behind a cursor."""
        runtime = self.runtime
        live = await runtime.live_stream(stream)
        secret = live.checks.secret
        place: Place | None = None if cursor is None else tuple(opened(secret, cursor))
        await runtime.flush()
        named = await runtime.read(_named, runtime.storage, stream, search)
        if named is not None and search.blind and named.id in live.checks.waiting:
            named = None
        rows = [named] if named is not None and cursor is None else []
        until = runtime.clock.monotonic() + SEARCH_SECONDS
        end = False
        while not end and len(rows) < limit:
            more, place = await runtime.read(
                runtime.storage.find_items, stream, search, place, limit - len(rows), SCAN
            )
            rows += [row for row in more if named is None or row.id != named.id]
            end = place is None
            if runtime.clock.monotonic() >= until:
                break
        found = await runtime.read(_summaries, runtime.storage, stream, rows)
        live = await runtime.live_stream(stream)
        counted = {id: len(live.open[id].labels) for id in found if id in live.open}
        listed = tuple(_summary(row, *found[row.id], counted.get(row.id, 0)) for row in rows)
        return ItemsPage(listed, None if end else sealed(secret, place or START))

    async def item(self, stream: str, item: str) -> ItemView:
        """An item with its labels, its posterior and its verdict."""
        return await item_view(self.runtime, stream, item)

    async def payloads(self, stream: str, items: Sequence[str]) -> dict[str, Any]:
        """The payloads of some items, by id; those of unknown items are left out."""
        await self.runtime.live_stream(stream)
        read = self.runtime.storage.payloads

        def parsed() -> dict[str, Any]:
            return {item: json.loads(payload) for item, payload in read(stream, items).items()}

        return await self.runtime.read_committed(parsed)

    async def explain(self, stream: str, item: str, believes: bool = False) -> Explanation:
        """Why the item was assigned to whom, and why it left; recomputed from the log."""
        return await explain(self.runtime, stream, item, believes)


def check_room(live: LiveStream, count: int, most: int) -> None:
    """Refuse new items if the stream is closed, or would have more than `most` open ones."""
    if live.status in (StreamStatus.CLOSED, StreamStatus.ARCHIVED):
        raise StateError(f"stream {live.name!r} is {live.status}: it accepts no new items")
    if len(live.open) + count > most:
        raise TooMuch(
            f"{len(live.open):,} items are open and {count:,} were sent, expected at most "
            f"{most:,} open items",
            retry_after=10,
        )


def _enter(
    live: LiveStream, intake: Intake, part: slice, batch: Batch, moment: Moment, actor: Actor | str
) -> list[Added]:
    """Add a chunk of a request's items; the outcome for each."""
    fresh, added = intake.sort_out(live, part, moment, batch.key)
    live.arrive(fresh, batch, moment)
    if fresh:
        entry = audit_row(actor, moment.wall, "items.add", live.name, created=len(fresh))
        batch.audit.append(entry)
    return added


def _named(storage: Storage, stream: str, search: ItemSearch) -> ItemRow | None:
    """The item whose id is the text, if it matches: it comes first, however old it is."""
    row = None if search.text is None else storage.item(stream, search.text)
    if row is None or not search.leads_to(row):
        return None
    labelled = any(x.labeler == search.labeler for x in storage.labels_of(stream, row.id))
    return row._replace(payload=row.payload[:EXCERPT]) if search.matches(row, labelled) else None


def _summaries(
    storage: Storage, stream: str, rows: list[ItemRow]
) -> dict[str, tuple[str | None, str | None]]:
    """What the verdicts were revised to, and the gold, by item."""
    gold = storage.gold_of(stream, [row.id for row in rows])
    revised = storage.revised(stream, [row.id for row in rows])
    return {row.id: (revised.get(row.id), gold.get(row.id)) for row in rows}


def _summary(row: ItemRow, revised: str | None, gold: str | None, so_far: int) -> ItemSummary:
    return ItemSummary(
        id=row.id,
        status=ItemStatus(row.status),
        excerpt=excerpt_of(row.payload),
        arrived_at=row.arrived_at,
        left_at=row.left_at,
        verdict=row.verdict,
        confidence=None if row.verdict is None else row.confidence,
        labels=so_far if row.labels is None else row.labels,
        reason=None if row.reason is None else ExitReason(row.reason),
        revised=revised,
        gold=gold,
    )


class Content(NamedTuple):
    """The content of an item as JSON, and its digest."""

    payload: str
    eligible: str | None
    excluded: str
    digest: str


def contents(items: Sequence[ItemIn]) -> dict[str, Content]:
    """The content of each item by id; an error if one is invalid, or an id has two contents.

    >>> sent = contents([ItemIn("post-1", {"b": 1, "a": 2}), ItemIn("post-1", {"a": 2, "b": 1})])
    >>> sent["post-1"].payload
    '{"b":1,"a":2}'
    """
    found: dict[str, Content] = {}
    for place, item in enumerate(items):
        _check(place, item)
        content = _content(item)
        if found.setdefault(item.id, content).digest != content.digest:
            raise Conflict(f"the request has item {item.id!r} twice, with different contents")
    return found


def _check(place: int, item: ItemIn) -> None:
    if not isinstance(item.id, str) or not 0 < len(item.id) <= LONGEST_ID:
        raise InputError(
            f"item {place} has the id {item.id!r}, expected text of 1 to {LONGEST_ID} characters"
        )
    if any(ord(letter) < 32 or 0xD800 <= ord(letter) < 0xE000 for letter in item.id):
        raise InputError(f"item {place} has the id {item.id!r}, expected printable text")
    weight = item.weight
    if weight is not None and not (math.isfinite(weight) and 0 < weight <= MOST_WEIGHT):
        raise InputError(
            f"item {item.id!r} has weight {weight!r}, expected a number above 0 and up to "
            f"{MOST_WEIGHT:g}"
        )
    sure = item.min_confidence
    if sure is not None and not 0 < sure <= 1:
        raise InputError(
            f"item {item.id!r} has min_confidence {sure!r}, expected a probability above 0"
        )
    for name in ("eligible", "excluded"):
        names = getattr(item, name)
        if names is not None and (
            isinstance(names, str) or not all(isinstance(who, str) for who in names)
        ):
            raise InputError(f"item {item.id!r} has {name}={names!r}, expected a list of names")


def _content(item: ItemIn) -> Content:
    only = None if item.eligible is None else sorted(set(item.eligible))
    barred = sorted(set(item.excluded))
    try:
        payload = compact(item.payload)
        digest = digest_of(item.payload, item.weight, only, barred, item.min_confidence)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"item {item.id!r} has a payload that is not JSON: {error}") from None
    eligible = None if only is None else compact(only)
    return Content(payload, eligible, compact(barred), digest)


def known_contents(storage: Storage, stream: str, ids: Sequence[str]) -> dict[str, str]:
    """Those of the ids that are taken, by items that are archived too, and their digests."""
    known = storage.known_ids(stream, ids)  # first: an item may be archived meanwhile
    rest = [id for id in ids if id not in known]
    return {**known, **{id: row.digest for id, row in storage.archived(stream, rest).items()}}


class Intake(NamedTuple):
    """A request's items, their contents by id, and the digests of those in the store."""

    items: Sequence[ItemIn]
    sent: Mapping[str, Content]
    known: Mapping[str, str]

    def sort_out(
        self, live: LiveStream, part: slice, moment: Moment, key: str | None = None
    ) -> tuple[list[ItemRow], list[Added]]:
        """The rows of a chunk's new items, and the outcome for each; `Conflict` on other content.

        An item whose payload was erased matches any content. `key` is the id of the sender's key.
        """
        fresh: dict[str, ItemRow] = {}
        added: list[Added] = []
        for item in self.items[part]:
            content = self.sent[item.id]
            before = _digest(live, item.id) or self.known.get(item.id)
            if before not in (None, ERASED, content.digest):
                raise Conflict(
                    f"item {item.id!r} exists with different content: nothing in the request was "
                    "accepted"
                )
            new = before is None and item.id not in fresh
            added.append(Added(item.id, "created" if new else "exists"))
            if new:
                fresh[item.id] = _row(live, item, content, moment, key)
        return list(fresh.values()), added


def _digest(live: LiveStream, id: str) -> str | None:
    if id in live.open:
        return live.open[id].digest
    return live.exited[id].digest if id in live.exited else None


def _row(
    live: LiveStream, item: ItemIn, content: Content, moment: Moment, key: str | None
) -> ItemRow:
    weight = live.settings.default_weight if item.weight is None else float(item.weight)
    return ItemRow(
        stream=live.name,
        id=item.id,
        digest=content.digest,
        payload=content.payload,
        weight=weight,
        eligible=content.eligible,
        excluded=content.excluded,
        arrived_slot=live.engine.slot,
        arrived_at=moment.wall,
        key=key,
        min_confidence=None if item.min_confidence is None else float(item.min_confidence),
    )


async def item_view(runtime: Runtime, stream: str, item: str) -> ItemView:
    """An item by the store and, while it is open, the engine."""
    live = await runtime.live_stream(stream)
    await runtime.flush()
    row = await runtime.read(runtime.storage.item, stream, item)
    gold = await runtime.read(runtime.storage.gold_among, stream, [item])
    if row is None:
        _, row, labels, revisions, notes = await find(runtime, stream, item)
    else:
        labels = await runtime.read(runtime.storage.labels_of, stream, item)
        revisions = await runtime.read(runtime.storage.revisions_of, stream, item)
        notes = await runtime.read(runtime.storage.notes, stream, 0, None, item)
    repeats = await runtime.read(runtime.storage.repeats, stream, item)
    routed = await runtime.read(runtime.storage.routed, stream, item)
    came = await runtime.read(runtime.storage.routed_to, stream, item)
    payload = await runtime.read(json.loads, row.payload)
    live = await runtime.live_stream(stream)
    posterior: dict[str, float] | None = None
    held: tuple[str, ...] = ()
    verdict, confidence = row.verdict, row.confidence or 0.0
    if revisions:
        verdict, confidence = revisions[-1].verdict, revisions[-1].confidence
    if gold and gold[0].label == verdict:
        confidence = 1.0  # also where gold confirmed it
    if row.status == ItemStatus.OPEN and item in live.open:
        posterior, held = live.posterior(item), tuple(sorted(live.open[item].holders))
        so_far = live.engine.verdict(item)
        verdict = None if so_far.label is None else str(so_far.label)
        confidence = so_far.confidence
    return view(
        ItemView,
        row,
        status=ItemStatus(row.status),
        payload=payload,
        eligible=None if row.eligible is None else tuple(json.loads(row.eligible)),
        excluded=tuple(json.loads(row.excluded)),
        labels=tuple(map(label_view, labels)),
        verdict=verdict,
        confidence=confidence,
        posterior=posterior,
        held_by=held,
        exit=None
        if row.status == ItemStatus.OPEN
        else marked_exit(row, await guarantee_of(runtime, live)),
        revisions=tuple(map(revision_view, revisions)),
        gold=gold[0].label if gold else None,
        notes=tuple(map(note_view, notes)),
        follows=live.follow_ups.original.get(item),
        follow_up=live.follow_ups.latest.get(item),
        gold_said=gold_view(gold[0]) if gold else None,
        routed=tuple(map(route_view, routed)),
        repeats=tuple(map(repeat_view, repeats)),
        routed_from=tuple(map(route_view, came)),
        rests_on=TRUSTED if gold else await _basis(runtime, live, row),
    )


async def _basis(runtime: Runtime, live: LiveStream, row: ItemRow) -> str:
    """What the confidence of an item rests on."""
    if live.basis[0] != live.version:
        rows = await runtime.read(runtime.storage.settings, live.name)
        live.basis = live.version, last_change(rows)
    shifted = any(rule == "mix_shift" for rule, _ in live.alarms)
    return rests_on(live.checks, row.left_at, live.basis[1], shifted)
