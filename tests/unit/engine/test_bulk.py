"""Many labels in one call leave the same state as one call for each, and as a replay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from venire import Bounds, Item, Label, Labeler, Scheduler
from venire.engine.registry import Heard
from venire.engine.views import texts
from venire.errors import InputError, ReplayError, StateError
from venire.events import Observed
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


def test_a_log_with_a_wrong_label_is_refused_as_if_it_were_replayed_one_by_one() -> None:
    """A run of labels is replayed in one call; the ones before the wrong one are taken."""
    good = begin("greedy", Bounds())
    good.observe([Label("a", "ann", "ok"), Label("b", "ann", "ok"), Label("c", "ann", "ok")])
    start, a, b, c = begin("greedy", Bounds()).snapshot(), *cast("list[Observed]", good.log[-3:])
    for place, wrong in (
        (2, replace(c, late=True)),
        (1, replace(b, label=a.label)),
        (1, replace(b, label=Label("b", "nobody", "ok"))),
    ):
        log = [a, b, c]
        log[place] = wrong
        messages = []
        for pieces in ([log], [[event] for event in log]):
            s = Scheduler.restore(start)
            with pytest.raises((ReplayError, InputError)) as refused:
                [s.follow(piece) for piece in pieces]
            messages.append(str(refused.value))
        assert messages[0] == messages[1] or "but replaying it gave" in messages[0]
        assert str(wrong) in messages[0] or "nobody" in messages[0]


@given(st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 10**6), st.integers(0, 99))))
def test_labels_in_arrays_are_those_of_a_list(labels: list[tuple[int, int, int]]) -> None:
    heard = Heard(labels[:3])
    first = heard.copy()
    heard.extend(labels[3:])
    assert (list(heard), list(first), len(heard)) == (labels, labels[:3], len(labels))
    assert list(zip(*(column.tolist() for column in heard.columns()), strict=True)) == labels
    assert "".join(texts((heard, 7, "x"))) == repr((labels, 7, "x"))
    assert heard.labelers.tolist() == [m for _, m, _ in labels]


@given(remember=st.integers(0, 3), restored=st.sets(st.integers(0, 7)))
def test_the_items_that_left_first_are_forgotten(remember: int, restored: set[int]) -> None:
    s = Scheduler([Labeler("ann", 0.9)], ["spam", "ok"], remember=remember)
    for n in range(8):
        s.arrive(Item(f"i{n}"))
        s.withdraw(f"i{n}")
        if n in restored:
            s = Scheduler.restore(s.snapshot())
        last = [f"i{k}" for k in range(max(0, n + 1 - remember), n + 1)]
        assert list(s.state.registry.left) == last
