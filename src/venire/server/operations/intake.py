"""Items as producers send them: validated, and compared with those that exist.

An item is identified by its id and a digest of its content, so sending it again is idempotent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from venire.errors import Conflict, InputError
from venire.model import MOST_WEIGHT
from venire.server.messages import Added, ItemIn
from venire.server.settings import LONGEST_ID
from venire.server.store import ERASED, ItemRow, Storage
from venire.server.store.contents import compact, digest_of
from venire.server.stream.live_stream import LiveStream, Moment


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
