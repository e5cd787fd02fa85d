"""Taking gold: what somebody who is trusted says of items, whether drawn to be audited or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from venire.errors import Conflict
from venire.model import ItemStatus, Verdict
from venire.service.actors import Actor
from venire.service.messages import Answer, GoldIn, Outcome
from venire.service.stream.change_batch import Batch
from venire.service.stream.follow_ups import verdict_now
from venire.service.stream.leases import HeldLease
from venire.service.stream.live_stream import LiveStream, Moment
from venire.service.work.labels import end_lease
from venire.storage import GoldRow, Storage

__all__ = ["KnownGold", "answer_audit", "known_gold", "take_gold", "unknown_gold"]

ACCEPTED, EXISTS = Outcome("accepted"), Outcome("exists")


class KnownGold(NamedTuple):
    """What the store knows of items: their gold, and how those left that have left."""

    gold: dict[str, str]
    left: dict[str, tuple[Verdict, int]]
    withdrawn: set[str]
    asked: set[str]
    archived: set[str]

    @classmethod
    def nothing(cls) -> KnownGold:
        """Before the store was asked."""
        return cls({}, {}, set(), set(), set())


def unknown_gold(live: LiveStream, items: Iterable[str], known: KnownGold) -> list[str]:
    """The items about which the store must be asked: first of all, and again once they left."""
    gone = known.left.keys() | known.withdrawn | known.archived
    return [
        item
        for item in items
        if item not in known.asked or (item in live.exited and item not in gone)
    ]


def known_gold(storage: Storage, stream: str, items: Sequence[str]) -> KnownGold:
    """Look items up in the store."""
    known = KnownGold(storage.gold_of(stream, items), {}, set(), set(items), set())
    for item in items:
        row = storage.item(stream, item)
        if row is None and storage.archived(stream, [item]):
            known.archived.add(item)
        if row is not None and row.status == ItemStatus.WITHDRAWN:
            known.withdrawn.add(item)
        elif row is not None and row.status == ItemStatus.LEFT:
            known.left[item] = verdict_now(storage, row)
    return known


def take_gold(
    live: LiveStream,
    rows: Sequence[GoldIn],
    known: KnownGold,
    source: str,
    actor: Actor | str,
    batch: Batch,
    moment: Moment,
) -> list[Outcome]:
    """Take gold; the outcome of each. Nothing that was said before is changed."""
    outcomes = []
    for row in rows:
        outcome = _classify(live, row, known)
        if outcome is ACCEPTED:
            before = known.left.get(row.item, (None, 0))
            if not live.engine.gold(row.item, row.label, *before, warn=False):
                outcome = _not_learned(row.item)
            live.collect(batch, moment)
            who = Actor.of(actor)
            batch.gold.append(
                GoldRow(live.name, row.item, row.label, moment.wall, source, str(who), who.key)
            )
            live.checks.answer(row.item, row.label)
            if row.item in live.open:
                live.checks.open_gold.add(row.item)
            known.gold[row.item] = row.label
            again = live.follow_ups.latest.get(row.item)
            if again in live.open:  # nobody needs to label it any more
                live.withdraw(again, batch, moment)
        outcomes.append(outcome)
    return outcomes


def _not_learned(item: str) -> Outcome:
    message = (
        f"item {item!r} left so long ago that its labels are no longer learned from: its verdict "
        "is the gold, but this teaches nothing about its labelers"
    )
    return Outcome("accepted", "not_learned", message)


def _classify(live: LiveStream, row: GoldIn, known: KnownGold) -> Outcome:
    if row.label not in live.classes:
        classes = list(live.settings.classes)
        return Outcome("refused", "unknown_class", f"got {row.label!r}, expected one of {classes}")
    if row.item in known.withdrawn:
        return Outcome(
            "refused", "withdrawn", f"item {row.item!r} was withdrawn: it has no verdict"
        )
    if row.item in known.archived:
        message = f"item {row.item!r} is archived: its verdict stays as it is"
        return Outcome("refused", "archived", message)
    if row.item not in live.open and row.item not in known.left:
        return Outcome("refused", "unknown_item", f"there is no item {row.item!r}")
    before = known.gold.get(row.item, row.label)
    if before != row.label:
        return Outcome(
            "refused",
            "changed",
            f"the gold of item {row.item!r} is {before!r}, got {row.label!r}: gold cannot be "
            "changed",
        )
    return EXISTS if row.item in known.gold else ACCEPTED


def answer_audit(
    live: LiveStream,
    lease: HeldLease,
    said: str,
    expired: bool,
    known: Mapping[str, str],
    batch: Batch,
    moment: Moment,
) -> Answer:
    """End the lease of an audit with its answer, which `take_gold` has taken."""
    if known.get(lease.item, said) != said:
        raise Conflict(f"item {lease.item!r} was audited as {known[lease.item]!r} meanwhile")
    made = Answer(live.name, lease.item, lease.labeler, said, False, expired, moment.wall)
    end_lease(live, lease, made, batch, moment)
    lead = lease.lead(moment.now)
    if lead is not None:
        live.lead_times.add(lease.labeler, lead)
    live.labelers.touch(lease.labeler, moment.now).labels += 1
    return made
