"""Items do not wait for ever for labelers who come once each; those who return are waited for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import Bounds, FixedOverlap, Item, Label, Labeler, Policy, Realised, Scheduler
from venire.engine.queue import CAME, ONE_IN, SILENCE, TIMES, Visits
from venire.events import Assigned, Closed, Event, Joined, Observed
from venire.model import Assignment, ExitReason


def crowd(s: Scheduler, slots: int, names: int | None = None) -> int:
    """Two items and five visitors a slot, who give one label each; or of `names` in turn."""
    rng, came = np.random.default_rng(0), 0
    for t in range(slots):
        s.arrive([Item(f"i{t}-{n}", weight=20) for n in range(2)])
        for _ in range(5):
            name = f"worker-{came if names is None else came % names}"
            came += 1
            if name not in {who.id for who in s.panel}:
                s.join(Labeler(name, 0.75))
            for a in s.assign([name]):
                s.observe(Label(a.item, name, int(rng.random() < 0.75)))
        s.close()
    return came


def new(policy: Policy, bounds: Bounds | None = None) -> Scheduler:
    return Scheduler([Labeler("first", 0.75)], [0, 1], policy, bounds=bounds)


@pytest.mark.parametrize("bounds", [None, Bounds(min_confidence=0.99)])
def test_items_leave_when_nobody_is_expected_any_more(bounds: Bounds | None) -> None:
    s = new(FixedOverlap(5), bounds)
    crowd(s, 12)
    waiting = len(s.outstanding)
    assert waiting
    s.arrive(Item("new", weight=20))
    for _ in range(SILENCE - 1):
        assert s.close() == ()
    exits = s.close()
    assert len(exits) == waiting
    reason = ExitReason.EXHAUSTED if bounds is None else ExitReason.UNDECIDED
    assert {exit.reason for exit in exits} == {reason}
    again = new(FixedOverlap(5), bounds).replay(s.log)
    assert again.fingerprint() == s.fingerprint()
    assert s.outstanding == ("new",)  # it came a slot later
    assert [exit.item for exit in s.close()] == ["new"]


def test_a_new_visitor_labels_what_is_open_and_items_wait_as_long_again() -> None:
    s = new(FixedOverlap(5))
    crowd(s, 12)
    s.advance(s.slot + SILENCE - 10)
    assert s.outstanding
    s.join(Labeler("late", 0.75))
    assert s.assign(["late"])
    s.advance(s.slot + SILENCE)
    assert s.outstanding  # for one label in flight, and now ten times the longest silence
    restored = Scheduler.restore(s.snapshot())
    assert restored.state.visits.state() == s.state.visits.state()
    assert restored.state.visits.labelled.tolist() == s.state.visits.labelled.tolist()


def test_labelers_who_return_are_waited_for() -> None:
    s = new(Realised(), Bounds(min_confidence=0.999))
    crowd(s, 12, names=25)
    open_items = s.outstanding
    assert open_items
    s.advance(s.slot + 2000)
    assert s.outstanding == open_items


def plain(log: list[Event], slot: int) -> int | None:
    """The rule, from the whole log."""
    seen = [e.slot for e in log if isinstance(e, Observed | Assigned | Joined)]
    silences = [b - a for a, b in zip([0, *seen], seen, strict=False)]
    slots: dict[str, list[int]] = {}
    for e in log:
        if isinstance(e, Observed):
            slots.setdefault(e.label.labeler, []).append(e.slot)
    again = sum(a < b for each in slots.values() for a, b in pairwise(each))
    called = [e for e in log if isinstance(e, Assigned) and e.asked is None]
    again += sum(len(e.assignments) for e in called)
    most = max(SILENCE, TIMES * max(silences, default=0))
    quiet = slot - max(seen, default=0) >= most
    return most if quiet and len(slots) >= CAME and again * ONE_IN <= len(slots) else None


steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.integers(0, 12)), max_size=120)


@given(steps, st.integers(0, 500))
@settings(deadline=None)
def test_it_is_the_plain_rule(steps: list[tuple[int, int, int]], later: int) -> None:
    visits, number, log, slot = Visits(), {f"w{m}": m for m in range(61)}, list[Event](), 0
    for kind, m, wait in steps:
        slot += wait if kind > 7 else 0
        event: Event
        if kind == 9:
            event = Assigned(slot, (Assignment(slot, "a", f"w{m}", 0.0),), (f"w{m}",))
        elif kind == 8:
            event = Joined(slot, Labeler(f"w{m}"))
        elif kind == 7 and m == 60:
            event = Assigned(slot, (Assignment(slot, "a", f"w{m}", 0.0),))
        elif kind == 6:
            event = Closed(slot, ())
        else:
            event = Observed(slot, Label(f"i{len(log)}", f"w{m}", 0), False)
        log.append(event)
        visits.note([event], number)
    assert visits.patience(slot + later) == plain(log, slot + later)
