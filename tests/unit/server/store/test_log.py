"""Events come back from JSON as they were, to the bit."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire.errors import InputError, StoreError
from venire.events import (
    Arrived,
    Assigned,
    Changed,
    Closed,
    Event,
    Joined,
    Left,
    Observed,
    Released,
    Withdrawn,
)
from venire.model import Assignment, Bounds, Exit, ExitReason, Item, Label, Labeler, Verdict
from venire.server.store import EventRow, decode, encode

SLOTS = st.integers(0, 2**50)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SOME = st.frozensets(NAMES, max_size=3)
FLOATS = st.floats()
SHARES = st.floats(0, 1)
CLASSES = st.one_of(NAMES, st.integers(), st.booleans(), st.floats(allow_nan=False, width=32))
FINITE = CLASSES.filter(lambda said: not (isinstance(said, float) and math.isinf(said)))

ITEMS = st.builds(
    Item, NAMES, st.floats(0, 1e15, exclude_min=True), st.one_of(st.none(), SOME), SOME
)
LABELERS = st.builds(
    Labeler,
    NAMES,
    st.one_of(st.none(), st.floats(0, 1, exclude_min=True, exclude_max=True)),
    st.integers(1, 9),
)
GIVEN = st.lists(st.builds(Assignment, SLOTS, NAMES, NAMES, FLOATS), max_size=3).map(tuple)
VERDICTS = st.builds(Verdict, st.one_of(st.none(), FINITE), SHARES)
EXITS = st.builds(
    Exit, NAMES, SLOTS, SLOTS, st.integers(0, 99), VERDICTS, st.sampled_from(ExitReason)
)
BOUNDS = st.builds(
    Bounds,
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(3, 9)),
    st.one_of(st.none(), st.floats(0, 1, exclude_min=True)),
    st.one_of(st.none(), st.integers(0, 99)),
)
MAYBE = st.one_of(st.none(), NAMES)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.builds(Arrived, SLOTS, st.lists(ITEMS, max_size=3).map(tuple)),
    st.builds(
        Assigned,
        SLOTS,
        GIVEN,
        st.one_of(st.none(), st.lists(NAMES).map(tuple)),
        st.integers(0, 9),
    ),
    st.builds(Observed, st.integers(0, 2), st.builds(Label, NAMES, NAMES, FINITE), st.booleans()),
    st.builds(Released, SLOTS, NAMES, NAMES, st.booleans()),
    st.builds(Joined, SLOTS, LABELERS),
    st.builds(Left, SLOTS, NAMES),
    st.builds(Closed, SLOTS, st.lists(EXITS, max_size=3).map(tuple)),
    st.builds(Withdrawn, SLOTS, NAMES),
    st.builds(Changed, SLOTS, MAYBE, MAYBE, st.one_of(st.none(), BOUNDS), st.none() | SHARES),
)


def shown(value: Any) -> Any:
    """All of a value, to the bit: nan is not equal to itself, and -0.0 is equal to 0.0."""
    if is_dataclass(value):
        return type(value), [shown(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, list | tuple):
        return type(value), [shown(part) for part in value]
    return value if isinstance(value, frozenset) else repr(value)


@given(st.lists(EVENTS, max_size=12), st.integers(0, 99))
def test_events_come_back_as_they_were(events: list[Event], first: int) -> None:
    rows = encode("s", first, 0.5, events)
    again = decode(rows)
    assert shown(again) == shown(events)
    n = first
    for row in rows:
        assert (row.n, row.stream, row.at) == (n, "s", 0.5)
        assert row.size == len(decode([row]))
        json.loads(row.body, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
        n += row.size
    assert n == first + len(events)


def test_a_thousand_labels_are_one_row() -> None:
    events = [Observed(3, Label(f"i{k}", "ann", "ok"), k % 7 == 0) for k in range(1000)]
    rows = encode("s", 0, 0.0, events)
    assert len(rows) == 1
    assert decode(rows) == events


@pytest.mark.parametrize("said", [("a",), float("nan"), float("inf"), b"x"])
def test_a_label_that_json_cannot_hold_is_refused(said: object) -> None:
    with pytest.raises(ValueError, match=r"label|JSON"):
        encode("s", 0, 0.0, [Observed(0, Label("i", "m", said), False)])


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected one of venire\.events"):
        encode("s", 0, 0.0, [Assignment(0, "i", "m", 0.0)])  # type: ignore[list-item]
    with pytest.raises(StoreError, match="unknown kind 'folded': a newer version"):
        decode([EventRow(stream="s", n=0, size=1, slot=0, at=0.0, kind="folded", body="[]")])
