"""Items with a confidence of their own to reach, and errors that do not cost the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marks import examples
from venire import FixedOverlap, Item, Label, Labeler, LookAhead, Realised, Scheduler
from venire.costs import Costs, cost_matrix
from venire.errors import InputError
from venire.events import Changed
from venire.model import Bounds, ExitReason
from venire.server.store import decode, encode

CLASSES = ["ok", "toxic"]
PANEL = [Labeler(f"m{k}", p) for k, p in enumerate((0.9, 0.8, 0.8, 0.7, 0.7, 0.6))]
POLICIES = [Realised(), LookAhead(), FixedOverlap(1)]


def run(s: Scheduler, items: list[Item], seed: int, slots: int = 40) -> dict[str, Any]:
    """Everybody labels what it is given, by its competence; the exits by item."""
    rng = np.random.default_rng(seed)
    left: dict[str, Any] = {}
    truth = {item.id: int(rng.integers(2)) for item in items}
    known = {who.id: who.competence or 0.5 for who in s.panel}
    s.arrive(items)
    for _ in range(slots):
        for a in s.assign():
            said = truth[a.item] if rng.random() < known[a.labeler] else 1 - truth[a.item]
            s.observe(Label(a.item, a.labeler, CLASSES[said]))
        left |= {e.item: e for e in s.close()}
    return left


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
@pytest.mark.parametrize("common", [None, 0.8])
def test_an_item_leaves_at_its_own_confidence(policy: Any, common: float | None) -> None:
    targets = [None, 0.7, 0.9, 0.97]
    items = [Item(f"i{k}", 0.01, min_confidence=targets[k % 4]) for k in range(40)]
    s = Scheduler(PANEL, CLASSES, policy, bounds=Bounds(min_confidence=common))
    left = run(s, items, seed=1)
    assert len(left) == 40
    for item in items:
        wanted = item.min_confidence or common
        exit = left[item.id]
        if wanted is None:
            continue
        if exit.reason == ExitReason.UNDECIDED:
            assert exit.labels == len(PANEL)
            assert exit.verdict.confidence < wanted
        else:
            assert exit.verdict.confidence >= wanted
    labels = [np.mean([left[f"i{k}"].labels for k in range(j, 40, 4)]) for j in range(4)]
    assert labels[1] < labels[2] <= labels[3]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: p.name)
def test_the_same_target_for_all_is_the_target_of_the_stream(policy: Any) -> None:
    def exits(bounds: Bounds, own: float | None) -> list[tuple[Any, ...]]:
        items = [Item(f"i{k}", 0.5 + k, min_confidence=own) for k in range(20)]
        left = run(Scheduler(PANEL, CLASSES, policy, bounds=bounds), items, seed=2)
        return [(e.item, e.slot, e.labels, e.verdict, e.reason) for e in left.values()]

    assert exits(Bounds(min_confidence=0.93), None) == exits(Bounds(), 0.93)
    assert exits(Bounds(min_confidence=0.5), 0.93) == exits(Bounds(), 0.93)
    assert exits(Bounds(0, 3, 0.93), None) == exits(Bounds(0, 3), 0.93)


def test_targets_are_in_log_and_snapshot() -> None:
    def made() -> Scheduler:
        return Scheduler(PANEL, CLASSES, Realised())

    s = made()
    run(s, [Item(f"i{k}", 1.0, min_confidence=0.95 if k % 2 else None) for k in range(10)], 3, 2)
    again = decode(encode("posts", 0, 1.0, s.log))
    assert again == s.log
    assert made().replay(again).fingerprint() == s.fingerprint()
    other = Scheduler.restore(s.snapshot())
    assert other.fingerprint() == s.fingerprint()
    for one in (s, other):
        for a in one.assign():
            one.observe(Label(a.item, a.labeler, "ok"))
    assert s.close() == other.close()


def test_a_bad_target_is_refused() -> None:
    with pytest.raises(InputError, match="min_confidence 95"):
        Item("a", min_confidence=95)


# costs


def plain_verdict(labels: dict[str, int], costs: Any, classes: int) -> tuple[int, float]:
    """The class of least expected cost, by hand; a tie goes to the later one."""
    logs = np.zeros(classes)
    for name, said in labels.items():
        p = {who.id: who.competence for who in PANEL}[name] or 0.5
        logs += np.log([p if k == said else (1 - p) / (classes - 1) for k in range(classes)])
    q = np.exp(logs - logs.max())
    q /= q.sum()
    expected = q @ costs
    best = max(k for k in range(classes) if expected[k] <= expected.min() + 1e-12)
    return best, float(q[best])


@examples(night=60, day=20)
@given(st.integers(0, 100_000), st.integers(2, 4))
def test_verdicts_are_those_of_least_expected_cost(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c{k}" for k in range(classes)]
    pairs: Costs = {(a, b): float(rng.uniform(0.1, 20)) for a in names for b in names if a != b}
    matrix = cost_matrix(pairs, names)
    s = Scheduler(PANEL, names, FixedOverlap(6), costs=pairs, revisions=5)
    s.arrive(Item("a"))
    labels: dict[str, int] = {}
    for who in PANEL[: 1 + int(rng.integers(6))]:
        labels[who.id] = int(rng.integers(classes))
        s.observe(Label("a", who.id, names[labels[who.id]]))
    found, (best, sure) = s.verdict("a"), plain_verdict(labels, matrix, classes)
    assert found.label == names[best]
    assert found.confidence == pytest.approx(sure)
    assert Scheduler.restore(s.snapshot()).verdict("a") == found


@pytest.mark.parametrize("policy", [Realised(), LookAhead()], ids=str)
def test_equal_costs_change_nothing_to_the_bit(policy: Any) -> None:
    items = [Item(f"i{k}", 1.0 + k) for k in range(60)]
    plain, equal = (
        Scheduler(PANEL, CLASSES, policy),
        Scheduler(PANEL, CLASSES, policy, costs={("ok", "toxic"): 1, ("toxic", "ok"): 1.0}),
    )
    run(plain, items, 4), run(equal, items, 4)
    assert plain.log == equal.log


def test_costs_send_labels_where_errors_are_dear() -> None:
    """Labelers come one by one and say ok; where errors are dear, the item waits for more."""
    labels = {}
    dear: Costs = {("toxic", "ok"): 30, ("ok", "toxic"): 30}
    for name, costs in (("plain", None), ("dear", dear)):
        s = Scheduler(PANEL, CLASSES, Realised(), costs=costs)
        s.arrive([Item("a", 6.0)])
        for who in reversed(PANEL):
            for a in s.assign([who.id]):
                s.observe(Label(a.item, a.labeler, "ok"))
            for exit in s.close():
                labels[name] = exit.labels
    assert labels["dear"] > labels["plain"]


def test_costs_can_be_changed_and_are_replayed() -> None:
    def made() -> Scheduler:
        return Scheduler(PANEL, CLASSES, FixedOverlap(1), revisions=10)

    s = made()
    s.arrive([Item("a"), Item("b")])
    s.observe(Label("a", "m3", "ok"))
    assert s.verdict("a").label == "ok"
    s.change(costs={("toxic", "ok"): 10})
    assert s.costs == {("toxic", "ok"): 10}
    verdict = s.verdict("a")
    assert (verdict.label, round(verdict.confidence, 2)) == ("toxic", 0.3)
    s.close()
    again = decode(encode("posts", 0, 1.0, s.log))
    assert again == s.log
    assert isinstance(again[2], Changed)
    assert made().replay(again).fingerprint() == s.fingerprint()
    assert Scheduler.restore(s.snapshot()).costs == s.costs
    s.change(costs={})
    assert s.costs == {}
    with pytest.raises(InputError, match="expected a true class and a verdict"):
        s.change(costs={("toxic", "eggs"): 2})
