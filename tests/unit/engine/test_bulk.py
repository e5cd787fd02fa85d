"""Many labels in one call leave the same state as one call for each, and as a replay."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from venire import Bounds, Item, Label, Labeler, Scheduler
from venire.errors import InputError, StateError
from venire.scheduling.by_name import policy_named

NAMES = ("ann", "bob", "cat", "dan", "eve")
ITEMS = ("a", "b", "c", "d")
POLICIES = ("greedy", "fixed-overlap:2", "random:2", "round-robin:2", "realised", "lookahead")
BOUNDS = (
    Bounds(),
    Bounds(max_labels=2),
    Bounds(min_confidence=0.9),
    Bounds(min_labels=2, deadline=1),
)


def begin(policy: str, bounds: Bounds) -> Scheduler:
    panel = [Labeler(name, 0.6 + 0.07 * n) for n, name in enumerate(NAMES)]
    s = Scheduler(panel, ["spam", "ok"], policy_named(policy), bounds=bounds)
    s.arrive([Item(name, weight=20.0 + n) for n, name in enumerate(ITEMS)])
    s.arrive(Item("barred", weight=9.0, excluded=frozenset({"ann"})))
    s.arrive(Item("choosy", weight=9.0, eligible=frozenset({"ann", "bob"})))
    return s


def tell(item: str, labeler: str) -> Label:
    """What this labeler always says of this item."""
    return Label(item, labeler, "spam" if (len(item) * 7 + ord(labeler[0])) % 3 else "ok")


pairs = st.tuples(st.sampled_from(ITEMS), st.sampled_from(NAMES))
steps = st.lists(
    st.one_of(st.lists(pairs, min_size=1, max_size=12), st.sampled_from(NAMES), st.none()),
    max_size=6,
)


def drive(s: Scheduler, history: list[Any], together: bool) -> Scheduler:
    for step in history:
        if step is None:
            s.close()
        elif isinstance(step, str):
            s.assign(asked=[step])
        else:
            labels = [tell(*pair) for pair in step]
            for batch in [labels] if together else [[label] for label in labels]:
                s.observe(batch)
    return s


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(history=steps)
def test_a_batch_is_its_labels_one_by_one(policy: str, bounds: Bounds, history: list[Any]) -> None:
    many = drive(begin(policy, bounds), history, together=True)
    one = drive(begin(policy, bounds), history, together=False)
    assert many.log == one.log
    assert many.fingerprint() == one.fingerprint()
    panel = [Labeler(name, 0.6 + 0.07 * n) for n, name in enumerate(NAMES)]
    again = Scheduler(panel, ["spam", "ok"], policy_named(policy), bounds=bounds).replay(many.log)
    assert again.fingerprint() == many.fingerprint()


WRONG = [
    (Label("a", "nobody", "ok"), InputError, "not on the panel"),
    (Label("a", "ann", "maybe"), InputError, "expected one of"),
    (Label("a", "ann", ["ok"]), InputError, "expected one of"),  # type: ignore[arg-type]
    (Label("z", "ann", "ok"), InputError, "never arrived"),
    (Label("barred", "ann", "ok"), StateError, "may not label item 'barred'"),
    (Label("choosy", "cat", "ok"), StateError, "may not label item 'choosy'"),
    (Label("b", "bob", "ok"), StateError, "'spam' of item 'b' before and 'ok' now"),
    (Label("a", "eve", "ok"), StateError, "'spam' of item 'a' before and 'ok' now"),
]


@pytest.mark.parametrize("bounds", BOUNDS[:2], ids=str)
@pytest.mark.parametrize(("wrong", "error", "message"), WRONG)
def test_one_wrong_label_refuses_the_batch(
    wrong: Label, error: type[Exception], message: str, bounds: Bounds
) -> None:
    s = begin("greedy", bounds)
    s.observe([Label("b", "bob", "spam"), Label("b", "ann", "spam")])
    before, events = s.fingerprint(), len(s.log)
    with pytest.raises(error, match=message):
        s.observe([Label("a", "eve", "spam"), Label("b", "eve", "ok"), wrong])
    assert (s.fingerprint(), len(s.log)) == (before, events)


def test_a_retired_item_still_takes_labels_of_its_own_group() -> None:
    s = begin("greedy", Bounds(max_labels=1))
    s.observe(Label("choosy", "ann", "ok"))
    with pytest.raises(StateError, match="may not label"):
        s.observe([Label("choosy", "bob", "ok"), Label("choosy", "cat", "ok")])
    s.observe(Label("choosy", "bob", "ok"))
    assert len([e for e in s.log if type(e).__name__ == "Observed"]) == 2


def test_a_label_is_not_taken_twice_within_a_batch() -> None:
    s = begin("greedy", Bounds())
    s.observe([Label("a", "ann", "ok"), Label("b", "ann", "ok"), Label("a", "ann", "ok")])
    assert len(s.drain()) == 2 + 3
