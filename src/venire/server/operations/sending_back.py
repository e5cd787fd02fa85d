"""Sending an item that has left back for more labels: it comes again, as another item."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from venire.errors import InputError, NotFound, StateError
from venire.model import ItemStatus, Verdict
from venire.server.actors import Actor, audit_row
from venire.server.console_messages import SentBackView
from venire.server.operations.streams import StreamOperations
from venire.server.runtime.runtime import Runtime
from venire.server.settings import LONGEST_ID
from venire.server.store import ERASED, FollowRow, Insert, ItemRow, Storage
from venire.server.store.contents import compact, digest_of
from venire.server.stream.change_batch import Batch
from venire.server.stream.follow_ups import verdict_now
from venire.server.stream.live_stream import LiveStream

#: The most confidence that is asked for if nobody says how much.
SUREST: Final = 0.99


class SendBackOperations:
    """Sends items back."""

    def __init__(self, runtime: Runtime, streams: StreamOperations) -> None:
        self.runtime, self._streams = runtime, streams
        self._one = asyncio.Lock()  # of two that are the same, the second finds the first

    async def send_back(
        self,
        stream: str,
        item: str,
        actor: Actor | str,
        min_confidence: float | None = None,
        note: str | None = None,
    ) -> SentBackView:
        """Send an item back: others label it again, until they are surer than it left with.

        If it waits for that already, nothing changes.
        """
        if min_confidence is not None and not 0 < min_confidence <= 1:
            raise InputError(f"got min_confidence {min_confidence!r}, expected a probability")
        runtime, storage = self.runtime, self.runtime.storage
        async with self._one:
            await runtime.writable(stream)
            row = await runtime.read_committed(storage.item, stream, item)
            if row is None:
                raise NotFound("item", item)
            verdict, labels = await runtime.read(verdict_now, storage, row)
            gold, said, name = await runtime.read(_look_up, storage, stream, item)
            live = await runtime.writable(stream)
            sent = live.follow_ups.waiting.get(item)
            if sent is not None:
                return SentBackView(stream, item, sent.follow_up)
            _check(live, row, gold)
            self._streams.check_room(live, 1)
            again = _again(live, row, name, said, _wanted(live, verdict, min_confidence))
            batch, moment = Batch(Actor.of(actor).key), runtime.moment()
            again = again._replace(arrived_at=moment.wall, key=batch.key)
            live.follow_ups.send(again.id, item, verdict, labels)
            live.arrive([again], batch, moment)
            who = Actor.of(actor)
            link = FollowRow(
                stream=stream,
                item=again.id,
                original=item,
                at=moment.wall,
                actor=str(who),
                key=who.key,
            )
            batch.last.append(Insert([link]))
            told = {
                "verdict": verdict.label,
                "follow_up": again.id,
                **({"note": note} if note else {}),
            }
            batch.audit.append(
                audit_row(actor, moment.wall, "item.send_back", stream, item, **told)
            )
            await runtime.commit(live, batch)
        return SentBackView(stream, item, again.id, again.min_confidence)


def _look_up(storage: Storage, stream: str, item: str) -> tuple[str | None, set[str], str]:
    """The gold of an item, who has labelled it, and a new name for it."""
    n, known = 2, storage.known_ids(stream, [f"{item}~{n}" for n in range(2, 1000)])
    while f"{item}~{n}" in known:
        n += 1
    said = {label.labeler for label in storage.labels_of(stream, item)}
    return storage.gold_of(stream, [item]).get(item), said, f"{item}~{n}"


def _check(live: LiveStream, row: ItemRow, gold: str | None) -> None:
    """Refuse what cannot be sent back."""
    why = None
    if row.id in live.open or row.status == ItemStatus.OPEN:
        why = "has not left: it gets more labels as it is"
    elif row.status == ItemStatus.WITHDRAWN:
        why = "was withdrawn: send it anew"
    elif row.digest == ERASED:
        why = "was erased: there is nothing to label"
    elif gold is not None:
        why = f"has gold, {gold!r}, which is final"
    elif row.id in live.checks.waiting:
        why = "was drawn to be audited: judge it"
    elif row.id in live.follow_ups.original:
        why = "was sent back before: judge it, or send its original back again"
    if why is not None:
        raise StateError(f"item {row.id!r} {why}")


def _wanted(live: LiveStream, verdict: Verdict, asked: float | None) -> float:
    """The confidence that the new verdict must reach: half of the doubt, if nobody says."""
    half = min(SUREST, 1 - (1 - verdict.confidence) / 2)
    return max(half, live.settings.min_confidence or 0.0) if asked is None else float(asked)


def _again(live: LiveStream, row: ItemRow, name: str, said: set[str], sure: float) -> ItemRow:
    """The item as it comes again, for others than those who labelled it, if there are any."""
    if len(name) > LONGEST_ID:
        raise StateError(f"item {row.id!r} cannot be sent back: its id is too long for another")
    only = None if row.eligible is None else json.loads(row.eligible)
    barred = set(json.loads(row.excluded))
    able = live.labelers.seated - barred if only is None else set(only) - barred
    if able - said:
        barred |= said
    names = sorted(barred)
    digest = digest_of(json.loads(row.payload), None, only, names, sure)
    return ItemRow(
        stream=row.stream,
        id=name,
        digest=digest,
        payload=row.payload,
        weight=row.weight,
        eligible=row.eligible,
        excluded=compact(names),
        arrived_slot=live.engine.slot,
        arrived_at=0.0,
        min_confidence=sure,
    )
