"""Taking labels: once, never changed, and never lost.

A label for an open item goes to the engine. One for an item that has left is late: the engine
learns from it if it still knows the item, and the store keeps it in any case. A label that is
there already changes nothing; one that says otherwise is refused.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from venire.errors import InputError, StateError, TooMuch
from venire.model import Label, LeaseStatus
from venire.service.messages import Answer, Outcome
from venire.service.stream.change_batch import Batch
from venire.service.stream.leases import Held
from venire.service.stream.live_stream import Live, Moment
from venire.service.work.grants import seat
from venire.storage import LabelRow, LeaseEnd
from venire.storage.contents import compact

__all__ = [
    "Known",
    "Row",
    "answer",
    "answered",
    "classify",
    "hear",
    "newcomers",
    "take_late",
    "unsure",
]

#: So many labelers may take their places in one go: some thirty milliseconds.
NEWCOMERS: Final = 100

#: item, labeler, said
Row: TypeAlias = tuple[str, str, str]

ACCEPTED, EXISTS, LATE = Outcome("accepted"), Outcome("exists"), Outcome("late")
_TWICE = Outcome("refused", "changed", "the same request says otherwise before")

#: (item, labeler) that have or had a lease
Given: TypeAlias = Set[tuple[str, str]]


@dataclass
class Known:
    """What the store says of items that memory does not know: which there are, who said what.

    `asked` are the items that it was asked about.
    """

    items: set[str] = field(default_factory=set)
    said: Mapping[tuple[str, str], str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)


def unsure(live: Live, rows: Sequence[Row], known: Known) -> list[Row]:
    """The rows about which the store has to be asked first."""
    return [
        row
        for row in rows
        if row[0] not in live.open and row[0] not in live.gone and row[0] not in known.asked
    ]


def newcomers(live: Live, rows: Sequence[Row]) -> list[int]:
    """Where to cut rows so that no piece brings too many labelers who are not there yet."""
    names, cuts = set[str](), []
    for place, (_, labeler, _) in enumerate(rows):
        if labeler not in names and labeler not in live.people:
            names.add(labeler)
            if len(names) % NEWCOMERS == 0:
                cuts.append(place)
    return cuts


def classify(live: Live, row: Row, known: Known) -> Outcome:
    """What is to become of a label; nothing is changed."""
    item, labeler, said = row
    if said not in live.classes:
        return _refused(
            "unknown_class", f"got {said!r}, expected one of {list(live.settings.classes)}"
        )
    if labeler not in live.people and not live.settings.open_panel:
        return _refused(
            "unknown_labeler", f"labeler {labeler!r} is not on the panel, which is closed"
        )
    entry = live.open.get(item)
    if entry is not None:
        before = entry.labels.get(labeler)
        if before is None and not entry.may(labeler):
            return _refused("not_allowed", f"labeler {labeler!r} may not label item {item!r}")
        fresh = ACCEPTED
    else:
        gone = live.gone.get(item)
        if gone is None and item not in known.items:
            return _refused("unknown_item", f"there is no item {item!r}")
        before = live.late.get((item, labeler), known.said.get((item, labeler)))
        if gone is not None:
            before = gone.labels.get(labeler, before)
        fresh = LATE
    if before is None:
        return fresh
    if before == said:
        return EXISTS
    return _refused(
        "changed",
        f"labeler {labeler!r} said {before!r} of item {item!r} before and {said!r} now: "
        "a label cannot be changed",
    )


def hear(
    live: Live,
    rows: Sequence[Row],
    known: Known,
    batch: Batch,
    moment: Moment,
    given: Given | None = None,
) -> list[Outcome]:
    """Take labels that nobody asked for; what became of each.

    With `given`, a label is taken only where its labeler holds the item or is among these pairs.
    """
    outcomes: list[Outcome] = []
    fresh: dict[tuple[str, str], int] = {}
    for place, row in enumerate(rows):
        outcome = classify(live, row, known)
        if given is not None and not _was_given(live, row, outcome, given):
            outcome = _refused("not_given", f"item {row[0]!r} was not given to {row[1]!r}")
        if outcome is ACCEPTED or outcome is LATE:
            first = fresh.setdefault((row[0], row[1]), place)
            if first != place:
                outcome = EXISTS if rows[first][2] == row[2] else _TWICE
        outcomes.append(outcome)
    _seat(live, rows, fresh, outcomes, batch, moment)
    places = list(fresh.values())
    for place, message in _take(live, rows, places, batch, moment).items():
        outcomes[place] = _refused("not_allowed", message)
    live.mind_budget(batch, moment)
    return outcomes


def _was_given(live: Live, row: Row, outcome: Outcome, given: Given) -> bool:
    """Whether a labeler may know of the item: it has or had it, or its label is there."""
    pair = row[0], row[1]
    there = outcome is EXISTS or outcome.code == "changed"
    return there or pair in given or live.leases.of_pair(*pair) is not None


def _seat(
    live: Live,
    rows: Sequence[Row],
    fresh: dict[tuple[str, str], int],
    outcomes: list[Outcome],
    batch: Batch,
    moment: Moment,
) -> None:
    """Let those take their places who say something new; where there is no room, refuse that."""
    for pair, place in list(fresh.items()):
        try:
            if pair[1] not in live.people:
                seat(live, pair[1], batch, moment)
        except TooMuch as error:
            outcomes[place] = _refused("panel_full", str(error))
            del fresh[pair]


def _take(
    live: Live, rows: Sequence[Row], places: list[int], batch: Batch, moment: Moment
) -> dict[int, str]:
    """Take rows that are new; those that the engine refuses, and why."""
    open_ones = [k for k in places if rows[k][0] in live.open]
    late_ones = [k for k in places if rows[k][0] not in live.open]
    refused = _observe(live, rows, open_ones)
    live.gather(batch, moment)
    slot, name, wall, taken = live.engine.slot, live.name, moment.wall, Counter[str]()
    for k in open_ones:
        if k not in refused:
            item, labeler, said = rows[k]
            lead = _settle(live, item, labeler, said, batch, moment) if live.leases else None
            batch.labels.append(
                LabelRow(name, item, labeler, said, wall, slot, False, lead, "bulk", batch.key)
            )
            live.open[item].labels[labeler] = said
            taken[labeler] += 1
    for labeler, count in taken.items():
        live.people[labeler].labels += count
    _observe(live, rows, late_ones)  # but for items so long gone that the engine forgot them
    for k in late_ones:
        _file_late(live, rows[k], None, "bulk", batch, moment)
    live.gather(batch, moment)
    live.figures.heard(0, len(open_ones) - len(refused), moment.now)
    return refused


def _observe(live: Live, rows: Sequence[Row], places: list[int]) -> dict[int, str]:
    """Tell the engine; it takes all of a call or none, so a refused half is halved again."""
    if not places:
        return {}
    try:
        live.engine.observe([Label(*rows[k]) for k in places])
    except (StateError, InputError) as error:
        if len(places) == 1:
            return {places[0]: str(error)}
        half = len(places) // 2
        return _observe(live, rows, places[:half]) | _observe(live, rows, places[half:])
    return {}


def _settle(
    live: Live, item: str, labeler: str, said: str, batch: Batch, moment: Moment
) -> float | None:
    """A label has come by another way than its lease, if there is one; how long it took."""
    lease = live.leases.of_pair(item, labeler)
    if lease is None:
        return None
    late = item not in live.open
    _done(live, lease, _answer(live, lease, said, late, False, moment), batch, moment)
    return lease.lead(moment.now)


def take_late(
    live: Live, row: Row, lead: float | None, source: str, batch: Batch, moment: Moment
) -> None:
    """Take a label for an item that has left."""
    with contextlib.suppress(InputError):  # so long ago that the engine has forgotten the item
        live.engine.observe(Label(*row))
    _file_late(live, row, lead, source, batch, moment)
    live.gather(batch, moment)


def _file_late(
    live: Live, row: Row, lead: float | None, source: str, batch: Batch, moment: Moment
) -> None:
    """Note a label for an item that has left, of which the engine knows."""
    item, labeler, said = row
    _settle(live, item, labeler, said, batch, moment)
    gone = live.gone.get(item)
    if gone is not None:
        gone.labels[labeler] = said
    live.late.put((item, labeler), said)
    how = (moment.wall, live.engine.slot, True, lead, source, batch.key)
    batch.labels.append(LabelRow(live.name, item, labeler, said, *how))
    person = live.people.known(labeler)
    person.labels += 1
    person.late += 1
    live.figures.heard(1, 1, moment.now)


def answer(
    live: Live, lease: Held, said: str, batch: Batch, moment: Moment, expired: bool = False
) -> Answer:
    """Take the label that a lease was given for; the lease may be over, the item may have left.

    The label must have been classified as one to be taken.
    """
    item, labeler = lease.item, lease.labeler
    entry, late = live.open.get(item), item not in live.open
    lead = lease.lead(moment.now)
    made = _answer(live, lease, said, late, expired, moment)
    if entry is not None:
        live.engine.observe(Label(item, labeler, said))
        entry.labels[labeler] = said
        entry.holders -= {labeler}
        how = (moment.wall, live.engine.slot, False, lead, "lease", batch.key)
        batch.labels.append(LabelRow(live.name, item, labeler, said, *how))
        live.people.heard_of(labeler, moment.now).labels += 1
        live.figures.heard(0, 1, moment.now)
    _done(live, lease, made, batch, moment)
    _settle(live, item, labeler, said, batch, moment)  # it may hold the item a second time
    if entry is None:
        take_late(live, (item, labeler, said), lead, "lease", batch, moment)
    if lead is not None:
        live.lead.add(labeler, lead)
    live.gather(batch, moment)
    live.mind_budget(batch, moment)
    return made


def answered(
    live: Live, lease: Held, said: str, expired: bool, batch: Batch, moment: Moment
) -> Answer:
    """The answer to a lease whose label is there already, by another way."""
    made = _answer(live, lease, said, lease.item not in live.open, expired, moment)
    _done(live, lease, made, batch, moment)
    return made


def _answer(
    live: Live, lease: Held, said: str, late: bool, expired: bool, moment: Moment
) -> Answer:
    return Answer(live.name, lease.item, lease.labeler, said, late, expired, moment.wall)


def _done(live: Live, lease: Held, made: Answer, batch: Batch, moment: Moment) -> None:
    """The lease has its label."""
    if live.leases.get(lease.token_hash) is lease:
        live.leases.pop(lease)
    entry = live.open.get(lease.item)
    if entry is not None:
        entry.holders -= {lease.labeler}
    live.answers.put(lease.token_hash, made)
    kept = {name: getattr(made, name) for name in Answer.__slots__}
    batch.ends.append(
        LeaseEnd(lease.token_hash, LeaseStatus.DONE, moment.wall, compact(kept), batch.key)
    )


def _refused(code: str, message: str) -> Outcome:
    return Outcome("refused", code, message)
