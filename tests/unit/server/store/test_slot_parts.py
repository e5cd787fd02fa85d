"""The parts of a closed slot are the whole; a log that ends between them lacks only the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.server.store.test_log import EXITS, NAMES, SLOTS, VERDICTS
from venire import FixedOverlap, Item, Label, Labeler, Scheduler
from venire.errors import ReplayError
from venire.events import Arrived, Closed, ClosedPart, Event, Observed
from venire.model import Revision
from venire.server.store import decode, encode
from venire.server.store.log import SlotParts, in_parts

REVISIONS = st.builds(Revision, NAMES, SLOTS, VERDICTS, VERDICTS, st.integers(0, 99))
CLOSED = st.builds(
    Closed,
    SLOTS,
    st.lists(EXITS, max_size=9).map(tuple),
    st.lists(REVISIONS, max_size=5).map(tuple),
)


@given(CLOSED, st.integers(1, 6), st.integers(0, 9))
def test_the_parts_are_the_whole_also_after_they_were_stored(
    event: Closed, most: int, first: int
) -> None:
    parts = in_parts(event, most)
    assert [isinstance(part, ClosedPart) for part in parts] == [True] * (len(parts) - 1) + [False]
    assert all(len(part.exits) + len(part.revisions) <= most for part in parts)
    rows = encode("posts", first, 1e9, [Arrived(0, ()), *parts, Arrived(9, ())])
    assert [row.n for row in rows] == list(range(first, first + len(parts) + 2))
    assert {row.kind for row in rows[1:-1]} <= {"closing", "closed"}
    again = SlotParts()
    found = [one for row in rows for one in again.whole(decode([row]))]
    assert found == [Arrived(0, ()), event, Arrived(9, ())]


def test_nothing_comes_between_the_parts_of_a_slot() -> None:
    for other in (Arrived(7, ()), Closed(8, ()), ClosedPart(8, ())):
        parts = SlotParts()
        assert list(parts.whole([ClosedPart(7, ())])) == []
        with pytest.raises(ReplayError, match="slot 7 is closed in part only"):
            list(parts.whole([other]))


def scheduler() -> Scheduler:
    return Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.7)], ["spam", "ok"], FixedOverlap(2))


def log_of(items: int, labelled: int) -> list[Event]:
    """A log in which items arrive, get both labels, and leave in one slot."""
    one = scheduler()
    one.arrive([Item(f"i{n}", 1.0 + n) for n in range(items)])
    one.observe([Label(f"i{n}", who, "ok") for n in range(labelled) for who in ("ann", "bob")])
    one.close()
    return list(one.log)


@given(st.integers(1, 9), st.data())
def test_a_log_that_ends_between_the_parts_gives_the_same_exits(
    items: int, data: st.DataObject
) -> None:
    labelled = data.draw(st.integers(1, items))
    *before, closed = log_of(items, labelled)
    assert isinstance(closed, Closed)
    assert len(closed.exits) == labelled
    parts = in_parts(closed, data.draw(st.integers(1, 3)))
    there = parts[: data.draw(st.integers(0, len(parts) - 1))]
    for obey in (False, True):
        again, engine = SlotParts(), scheduler()
        engine.follow(again.whole([*before, *there])).drain()
        rest = again.finish(engine, obey)
        if not there:
            assert rest is None
            continue
        assert rest is not None
        exits = [exit for part in there for exit in part.exits]
        assert (engine.slot, rest.slot) == (closed.slot + 1, closed.slot)
        assert again.finish(engine, obey) is None
        assert rest.exits == (() if obey else closed.exits[len(exits) :])
        whole = scheduler().follow([*before, Closed(closed.slot, (*exits, *rest.exits))], obey)
        assert engine.fingerprint() == whole.fingerprint()


def test_a_part_with_other_exits_does_not_replay() -> None:
    *before, closed = log_of(4, 4)
    assert isinstance(closed, Closed)
    assert sum(isinstance(event, Observed) for event in before) == 8
    parts, engine = SlotParts(), scheduler()
    engine.follow(parts.whole([*before, ClosedPart(0, closed.exits[1:2])])).drain()
    with pytest.raises(ReplayError, match="gave other exits"):
        parts.finish(engine, obey=False)
