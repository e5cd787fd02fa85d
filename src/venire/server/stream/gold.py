"""Taking gold: what somebody who is trusted says of items, whether drawn to be audited or not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from venire.errors import Conflict
from venire.model import ItemStatus, Verdict
from venire.server.actors import Actor, audit_row
from venire.server.messages import Answer, GoldIn, Outcome
from venire.server.store import GoldRow, Storage
from venire.server.store.contents import compact
from venire.server.stream.change_batch import Batch
from venire.server.stream.checks import verdict_now
from venire.server.stream.labels import end_lease
from venire.server.stream.leases import HeldLease
from venire.server.stream.live_stream import LiveStream, Moment

ACCEPTED, EXISTS, CORRECTED = Outcome("accepted"), Outcome("exists"), Outcome("corrected")


class KnownGold(NamedTuple):
    """What the store knows of items: their gold, and how those left that have left."""

    gold: dict[str, GoldRow]
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
    gold = {row.item: row for row in storage.gold_among(stream, items)}
    known = KnownGold(gold, {}, set(), set(items), set())
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
    correct: bool = False,
    note: str | None = None,
    labeler: str | None = None,
) -> list[Outcome]:
    """Take gold; the outcome of each. What was said before is changed only to `correct` it.

    `labeler` is the trusted labeler who says it, if it is one.
    """
    outcomes, who = [], Actor.of(actor)
    for row in rows:
        outcome = _classify(live, row, known, correct)
        if outcome in (ACCEPTED, CORRECTED):
            said = GoldRow(
                stream=live.name,
                item=row.item,
                label=row.label,
                at=moment.wall,
                source=source,
                actor=str(who),
                key=who.key,
            )
            wrong = known.gold.get(row.item)
            if wrong is not None:
                said = said._replace(earlier=_earlier(wrong))
            before, labels = known.left.get(row.item, (None, 0))
            corrects = None if wrong is None else wrong.label
            if not live.engine.gold(
                row.item, row.label, before, labels, corrects=corrects, warn=False
            ):
                outcome = _not_learned(outcome, row.item)
            if row.item in live.open and labeler is not None:
                live.heard(row.item, labeler, row.label)
            live.collect(batch, moment)
            if wrong is None:
                _add(live, said, batch, moment)
            else:
                batch.corrections.append(said)
                told = {
                    "before": wrong.label,
                    "label": said.label,
                    **({"note": note} if note else {}),
                }
                entry = audit_row(who, moment.wall, "gold.correct", live.name, said.item, **told)
                batch.audit.append(entry)
                live.checks.correct(row.item, row.label)
            known.gold[row.item] = said
            if row.item in known.left:
                known.left[row.item] = Verdict(row.label, 1.0), labels
        outcomes.append(outcome)
    return outcomes


def _add(live: LiveStream, said: GoldRow, batch: Batch, moment: Moment) -> None:
    """Gold of an item that had none."""
    batch.gold.append(said)
    live.checks.answer(said.item, said.label)
    if said.item in live.open:
        live.checks.open_gold.add(said.item)
    again = live.follow_ups.latest.get(said.item)
    if again in live.open:  # nobody needs to label it any more
        live.withdraw(again, batch, moment)


def _earlier(wrong: GoldRow) -> str:
    """What was said before, and by whom, with what that had corrected."""
    return compact(
        [
            *json.loads(wrong.earlier or "[]"),
            [wrong.label, wrong.at, wrong.source, wrong.actor, wrong.key],
        ]
    )


def _not_learned(outcome: Outcome, item: str) -> Outcome:
    message = (
        f"item {item!r} left so long ago that its labels are no longer learned from: its verdict "
        "is the gold, but this teaches nothing about its labelers"
    )
    return Outcome(outcome.status, "not_learned", message)


def _classify(live: LiveStream, row: GoldIn, known: KnownGold, correct: bool) -> Outcome:
    if row.label not in live.classes:
        classes = list(live.settings.classes)
        message = f"got {row.label!r}, expected one of: {', '.join(classes)}"
        return Outcome("refused", "unknown_class", message)
    if row.item in known.withdrawn:
        return Outcome(
            "refused", "withdrawn", f"item {row.item!r} was withdrawn: it has no verdict"
        )
    if row.item in known.archived:
        message = f"item {row.item!r} is archived: its verdict stays as it is"
        return Outcome("refused", "archived", message)
    if row.item not in live.open and row.item not in known.left:
        return Outcome("refused", "unknown_item", f"there is no item {row.item!r}")
    if row.item not in known.gold:
        return ACCEPTED
    before = known.gold[row.item].label
    if before == row.label or correct:
        return EXISTS if before == row.label else CORRECTED
    return Outcome(
        "refused",
        "changed",
        f"the gold of item {row.item!r} is {before!r}, got {row.label!r}: to correct it, send it "
        'again with correct=true, or with the box "correct what was said otherwise before" ticked',
    )


def answer_audit(
    live: LiveStream,
    lease: HeldLease,
    said: str,
    expired: bool,
    known: Mapping[str, GoldRow],
    batch: Batch,
    moment: Moment,
) -> Answer:
    """End the lease of an audit with its answer, which `take_gold` has taken."""
    if lease.item in known and known[lease.item].label != said:
        was = known[lease.item].label
        raise Conflict(f"item {lease.item!r} was audited as {was!r} meanwhile")
    made = Answer(live.name, lease.item, lease.labeler, said, False, expired, moment.wall)
    end_lease(live, lease, made, batch, moment)
    lead = lease.lead(moment.now)
    if lead is not None:
        live.lead_times.add(lease.labeler, lead)
    live.labelers.touch(lease.labeler, moment.now).labels += 1
    return made
