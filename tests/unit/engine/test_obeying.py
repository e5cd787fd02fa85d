"""A log of another version of the engine: what it decided is what happened."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import (
    Bounds,
    FixedOverlap,
    Greedy,
    Item,
    Label,
    Labeler,
    Policy,
    Realised,
    ReplayError,
    Scheduler,
)
from venire.engine import engine_version
from venire.events import Closed, Event

PANEL = [Labeler(f"m{n}", 0.6 + 0.07 * n) for n in range(4)]
POLICIES = (Greedy(), Realised(), FixedOverlap(2))


def scheduler(policy: Policy, bounds: Bounds | None = None) -> Scheduler:
    return Scheduler(PANEL, ("spam", "ok"), policy, bounds=bounds)


def lived(policy: Policy, acts: list[tuple[str, int]], bounds: Bounds | None = None) -> Scheduler:
    """A scheduler to which something happened."""
    s = scheduler(policy, bounds)
    for place, (act, k) in enumerate(acts):
        if act == "arrive":
            s.arrive([Item(f"i{place}-{n}", 6.0 + 5 * n) for n in range(k)])
        elif act == "ask":
            s.assign([PANEL[k].id])
        elif act == "label" and s.in_flight:
            item, labeler = s.in_flight[k % len(s.in_flight)]
            s.observe(Label(item, labeler, ("spam", "ok")[k % 2]))
        elif act == "release" and s.in_flight:
            s.release(*s.in_flight[0])
        elif act == "withdraw" and s.outstanding:
            s.withdraw(s.outstanding[-1])
        elif act == "close":
            s.advance(s.slot + k)
    return s


def left(log: list[Event]) -> list[str]:
    return [exit.item for event in log if isinstance(event, Closed) for exit in event.exits]


ACTS = st.lists(
    st.tuples(
        st.sampled_from(("arrive", "ask", "ask", "label", "label", "release", "withdraw", "close")),
        st.integers(0, 3),
    ),
    max_size=30,
)


@settings(max_examples=40)
@given(
    writer=st.sampled_from(POLICIES),
    reader=st.sampled_from(POLICIES),
    bounded=st.booleans(),
    both=st.booleans(),
    acts=ACTS,
)
def test_whatever_another_engine_decided_is_what_happened(
    writer: Policy, reader: Policy, bounded: bool, both: bool, acts: list[tuple[str, int]]
) -> None:
    bounds = Bounds(min_confidence=0.8, max_labels=3) if bounded else None
    one = lived(writer, acts, bounds)
    other = scheduler(reader, bounds if both else None).follow(one.log, obey=True)
    assert other.log == one.log
    assert other.outstanding == one.outstanding
    assert sorted(other.in_flight) == sorted(one.in_flight)
    assert other.slot == (one.log[-1].slot + isinstance(one.log[-1], Closed) if one.log else 0)
    again = Scheduler.restore(other.snapshot())  # it goes on, and from a snapshot the same way
    for s in (other, again):
        s.advance(s.slot + 3)
        s.assign()
    assert again.fingerprint() == other.fingerprint()


def test_without_being_told_to_obey_another_decision_is_an_error() -> None:
    acts = [("arrive", 3), ("ask", 0), ("label", 0), ("close", 1), ("ask", 1)]
    one = lived(Greedy(), acts)
    with pytest.raises(ReplayError):
        scheduler(FixedOverlap(3)).follow(one.log)
    assert left(scheduler(FixedOverlap(3)).follow(one.log, obey=True).log) == left(one.log)


def test_the_version_of_the_engine_does_not_change_by_itself() -> None:
    assert engine_version() == engine_version.__wrapped__()
