"""Accepting labels: exactly once, never changed, never lost.

A label for an open item goes to the engine. One for an item that has left is late: the engine
learns from it if it still remembers the item, and the store keeps it in any case. A repeated label
changes nothing; a different one is refused.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from venire.errors import InputError, StateError, TooMuch
from venire.model import Label, LeaseStatus, NoteKind
from venire.server.messages import Answer, Outcome
from venire.server.store import ERASED, LabelRow, LeaseEnd, NoteRow, RepeatRow
from venire.server.store.contents import compact
from venire.server.store.record import maker
from venire.server.stream.grants import seat

if TYPE_CHECKING:
    from venire.server.stream.change_batch import Batch
    from venire.server.stream.leases import HeldLease
    from venire.server.stream.live_stream import LiveStream, Moment

#: The source of the labels of a stream's student.
STUDENT: Final = "student"

#: Labelers to seat in one chunk: about thirty milliseconds.
MAX_NEWCOMERS: Final = 100


class Row(NamedTuple):
    """A label: how sure its labeler is of it, and why it says so, are None where not said."""

    item: str
    labeler: str
    said: str
    confidence: float | None = None
    rationale: str | None = None

    def label(self) -> Label:
        """The label as the engine takes it, which keeps no reasons: its log is never erased."""
        return Label(self.item, self.labeler, self.said, self.confidence)


ACCEPTED, EXISTS, LATE = Outcome("accepted"), Outcome("exists"), Outcome("late")
_TWICE = Outcome("refused", "changed", "the same request has a different label before this one")

_label_row = maker(LabelRow)

#: Pairs (item, labeler) that have or had a lease.
LeasedPairs: TypeAlias = Set[tuple[str, str]]


@dataclass
class Known:
    """What the store knows about items that are not in memory: which exist, and their labels.

    `asked` are the items that were looked up, `archived` those of them that are archived, and
    `erased` those whose payloads were.
    """

    items: set[str] = field(default_factory=set)
    said: Mapping[tuple[str, str], str] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    archived: set[str] = field(default_factory=set)
    erased: set[str] = field(default_factory=set)


def kept_row(live: LiveStream, row: Row, known: Known) -> Row:
    """The label without its reason, where the payload of the item was erased."""
    gone = live.exited.get(row.item)
    erased = row.item in known.erased if gone is None else gone.digest == ERASED
    return row._replace(rationale=None) if erased and row.item not in live.open else row


def unknown_rows(live: LiveStream, rows: Sequence[Row], known: Known) -> list[Row]:
    """The rows whose items must be looked up in the store first."""
    return [
        row
        for row in rows
        if row[0] not in live.open and row[0] not in live.exited and row[0] not in known.asked
    ]


def newcomer_cuts(live: LiveStream, rows: Sequence[Row]) -> list[int]:
    """Where to cut rows so that no chunk seats too many new labelers."""
    names, cuts = set[str](), []
    for place, (_, labeler, *_) in enumerate(rows):
        if labeler not in names and labeler not in live.labelers:
            names.add(labeler)
            if len(names) % MAX_NEWCOMERS == 0:
                cuts.append(place)
    return cuts


def classify(live: LiveStream, row: Row, known: Known, source: str = "bulk") -> Outcome:
    """Decide the outcome of a label, without changing anything."""
    item, labeler, said, *_ = row
    if labeler in live.voices and source != STUDENT:
        return refused("not_allowed", f"{labeler!r} is the student of this stream")
    if said not in live.classes:
        return refused(
            "unknown_class", f"got {said!r}, expected one of {list(live.settings.classes)}"
        )
    if labeler in live.trusted and not _held_before(live, item, labeler):
        return refused("not_allowed", f"labeler {labeler!r} is trusted: send gold, not labels")
    if labeler not in live.labelers and not live.settings.open_panel:
        return refused(
            "unknown_labeler", f"labeler {labeler!r} is not on the panel, which is closed"
        )
    entry = live.open.get(item)
    if entry is not None:
        before = entry.labels.get(labeler)
        if before is None and not entry.may(labeler):
            return refused(
                "not_allowed", f"labeler {labeler!r} is not allowed to label item {item!r}"
            )
        fresh = ACCEPTED
    else:
        gone = live.exited.get(item)
        if gone is None and item in known.archived:
            return refused("archived", f"item {item!r} is archived: it takes no more labels")
        if gone is None and item not in known.items:
            return refused("unknown_item", f"there is no item {item!r}")
        before = live.late.get((item, labeler), known.said.get((item, labeler)))
        if gone is not None:
            before = gone.labels.get(labeler, before)
        fresh = LATE
    if before is None:
        return fresh
    if before == said:
        return EXISTS
    return refused(
        "changed",
        f"labeler {labeler!r} already labelled item {item!r} {before!r}, got {said!r}: a label "
        "cannot be changed",
    )


def _held_before(live: LiveStream, item: str, labeler: str) -> bool:
    """Whether somebody who is trusted now was given the item before."""
    return item in live.open and labeler in live.open[item].holders


def accept_labels(
    live: LiveStream,
    rows: Sequence[Row],
    known: Known,
    batch: Batch,
    moment: Moment,
    given: LeasedPairs | None = None,
    source: str = "bulk",
) -> list[Outcome]:
    """Accept labels sent without a lease; the outcome of each.

    With `given`, only labels of pairs that have or had a lease are accepted. `source` is kept with
    the labels: `STUDENT` for those of the stream's student.
    """
    outcomes: list[Outcome] = []
    fresh: dict[tuple[str, str], int] = {}
    rows = [row if row.rationale is None else kept_row(live, row, known) for row in rows]
    for place, row in enumerate(rows):
        outcome = classify(live, row, known, source)
        if outcome in (ACCEPTED, LATE) and _is_retired(live, row):
            outcome = refused("retired", f"labeler {row[1]!r} is retired: its labels are not taken")
        if given is not None and not _was_given(live, row, outcome, given):
            outcome = refused("not_given", f"item {row[0]!r} was not assigned to {row[1]!r}")
        if outcome is ACCEPTED or outcome is LATE:
            first = fresh.setdefault((row[0], row[1]), place)
            if first != place:
                outcome = EXISTS if rows[first][2] == row[2] else _TWICE
        outcomes.append(outcome)
    _seat(live, fresh, outcomes, batch, moment)
    places = list(fresh.values())
    for place, message in _accept_new(live, rows, places, batch, moment, source).items():
        outcomes[place] = refused("not_allowed", message)
    live.check_budget(batch, moment)
    return outcomes


def _is_retired(live: LiveStream, row: Row) -> bool:
    """Whether the labeler is retired, and does not hold the item from before."""
    return row[1] in live.settings.retired and live.leases.of_pair(row[0], row[1]) is None


def _was_given(live: LiveStream, row: Row, outcome: Outcome, given: LeasedPairs) -> bool:
    """Whether the labeler may know about the item: it has or had a lease, or labelled it."""
    pair = row[0], row[1]
    there = outcome is EXISTS or outcome.code == "changed"
    return there or pair in given or live.leases.of_pair(*pair) is not None


def _seat(
    live: LiveStream,
    fresh: dict[tuple[str, str], int],
    outcomes: list[Outcome],
    batch: Batch,
    moment: Moment,
) -> None:
    """Seat the labelers of new labels; refuse the labels of those for whom there is no room."""
    for pair, place in list(fresh.items()):
        try:
            if pair[1] not in live.labelers:
                seat(live, pair[1], batch, moment)
        except TooMuch as error:
            outcomes[place] = refused("panel_full", str(error))
            del fresh[pair]


def _accept_new(
    live: LiveStream,
    rows: Sequence[Row],
    places: list[int],
    batch: Batch,
    moment: Moment,
    source: str,
) -> dict[int, str]:
    """Accept new rows; return those that the engine refuses, and why."""
    open_ones = [k for k in places if rows[k][0] in live.open]
    late_ones = [k for k in places if rows[k][0] not in live.open]
    refused = _observe(live, rows, open_ones)
    live.collect(batch, moment)
    wall, taken = moment.wall, Counter[str]()
    for k in open_ones:
        if k not in refused:
            item, labeler, said, *_ = rows[k]
            lead = _end_lease_of(live, item, labeler, said, batch, moment) if live.leases else None
            batch.labels.append(_row(live, rows[k], lead, False, source, batch.key, wall))
            live.open[item].labels[labeler] = said
            live.heard(item, labeler, said)
            taken[labeler] += 1
    for labeler, count in taken.items():
        live.labelers[labeler].labels += count
    _observe(live, rows, late_ones)  # except for items that the engine has forgotten
    for k in late_ones:
        _record_late(live, rows[k], None, source, batch, moment)
    live.collect(batch, moment)
    live.statistics.count_labels(0, len(open_ones) - len(refused), moment.now)
    return refused


def _row(
    live: LiveStream,
    row: Row,
    lead: float | None,
    late: bool,
    source: str,
    key: str | None,
    at: float,
) -> LabelRow:
    item, labeler, said, sure, why = row
    return _label_row(
        stream=live.name,
        item=item,
        labeler=labeler,
        said=said,
        at=at,
        slot=live.engine.slot,
        late=late,
        lead_seconds=lead,
        source=source,
        key=key,
        confidence=sure,
        rationale=why,
    )


def _observe(live: LiveStream, rows: Sequence[Row], places: list[int]) -> dict[int, str]:
    """Pass labels to the engine; it accepts all of a call or none, so bisect on a refusal."""
    if not places:
        return {}
    try:
        live.engine.observe([rows[k].label() for k in places])
    except (StateError, InputError) as error:
        if len(places) == 1:
            return {places[0]: str(error)}
        half = len(places) // 2
        return _observe(live, rows, places[:half]) | _observe(live, rows, places[half:])
    return {}


def _end_lease_of(
    live: LiveStream, item: str, labeler: str, said: str, batch: Batch, moment: Moment
) -> float | None:
    """End the lease of a label that was sent without it, if any; the lead time."""
    lease = live.leases.of_pair(item, labeler)
    if lease is None:
        return None
    end_lease(live, lease, said, batch, moment, late=item not in live.open)
    return lease.lead(moment.now)


def take_late(
    live: LiveStream, row: Row, lead: float | None, source: str, batch: Batch, moment: Moment
) -> None:
    """Accept a label for an item that has left."""
    with contextlib.suppress(InputError):  # the engine has forgotten the item
        live.engine.observe(row.label())
    _record_late(live, row, lead, source, batch, moment)
    live.collect(batch, moment)


def _record_late(
    live: LiveStream, row: Row, lead: float | None, source: str, batch: Batch, moment: Moment
) -> None:
    """Record a label for an item that has left, after the engine has seen it."""
    item, labeler, said, *_ = row
    _end_lease_of(live, item, labeler, said, batch, moment)
    gone = live.exited.get(item)
    if gone is not None:
        gone.labels[labeler] = said
    live.late.put((item, labeler), said)
    batch.labels.append(_row(live, row, lead, True, source, batch.key, moment.wall))
    record = live.labelers.record(labeler)
    record.labels += 1
    record.late += 1
    live.statistics.count_labels(1, 1, moment.now)


def answer(
    live: LiveStream,
    lease: HeldLease,
    row: Row,
    batch: Batch,
    moment: Moment,
    expired: bool = False,
    seconds: float | None = None,
) -> Answer:
    """Accept the label for a lease; the lease may have ended, the item may have left.

    The label must have been classified as acceptable. `seconds` is how long the labeler says it
    took; no more than since the lease began.
    """
    item, labeler, said, *_ = row
    entry, late = live.open.get(item), item not in live.open
    lead = lease.lead(moment.now, seconds)
    if entry is not None:
        live.engine.observe(row.label())
        live.heard(item, labeler, said)
        entry.labels[labeler] = said
        entry.holders -= {labeler}
        batch.labels.append(_row(live, row, lead, False, "lease", batch.key, moment.wall))
        live.labelers.touch(labeler, moment.now).labels += 1
        live.statistics.count_labels(0, 1, moment.now)
    made = end_lease(live, lease, said, batch, moment, late, expired)
    _end_lease_of(live, item, labeler, said, batch, moment)  # it may hold the item a second time
    if entry is None:
        take_late(live, row, lead, "lease", batch, moment)
    if lead is not None:
        live.lead_times.add(labeler, lead)
    live.collect(batch, moment)
    live.check_budget(batch, moment)
    return made


def answer_again(
    live: LiveStream,
    lease: HeldLease,
    row: Row,
    batch: Batch,
    moment: Moment,
    expired: bool = False,
    seconds: float | None = None,
) -> Answer:
    """Accept the answer of a labeler who was asked again: it is no label (see `Repeats`)."""
    item, labeler, said, confidence, _ = row
    before = lease.again or ""
    lead = lease.lead(moment.now, seconds)
    live.engine.repeat(item, labeler, before, said)
    batch.repeats.append(
        RepeatRow(
            stream=live.name,
            item=item,
            labeler=labeler,
            before=before,
            said=said,
            at=moment.wall,
            slot=live.engine.slot,
            lead_seconds=lead,
            key=batch.key,
            confidence=confidence,
        )
    )
    live.repeats.said.put((item, labeler), said)
    live.repeats.answers += 1
    record = live.labelers.touch(labeler, moment.now)
    record.repeats += 1
    record.same += said == before
    made = end_lease(live, lease, said, batch, moment, expired=expired)
    if lead is not None:
        live.lead_times.add(labeler, lead)
    live.collect(batch, moment)
    live.check_budget(batch, moment)
    return made


def answer_existing(
    live: LiveStream, lease: HeldLease, said: str, expired: bool, batch: Batch, moment: Moment
) -> Answer:
    """The answer to a lease whose label was already sent without it."""
    late = lease.again is None and lease.item not in live.open
    return end_lease(live, lease, said, batch, moment, late, expired)


def end_lease(
    live: LiveStream,
    lease: HeldLease,
    said: str,
    batch: Batch,
    moment: Moment,
    late: bool = False,
    expired: bool = False,
) -> Answer:
    """End a lease that has its label; the answer, which is kept."""
    made = Answer(live.name, lease.item, lease.labeler, said, late, expired, moment.wall)
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
    return made


def refused(code: str, message: str) -> Outcome:
    return Outcome("refused", code, message)


def take_note(
    live: LiveStream,
    item: str,
    labeler: str,
    kind: NoteKind,
    text: str,
    batch: Batch,
    moment: Moment,
) -> None:
    """Number a note, count it, and have it written."""
    live.note_n += 1
    live.notes[kind] += 1
    row = NoteRow(
        stream=live.name,
        n=live.note_n,
        item=item,
        labeler=labeler,
        kind=kind,
        text=text,
        at=moment.wall,
        key=batch.key,
    )
    batch.notes.append(row)
