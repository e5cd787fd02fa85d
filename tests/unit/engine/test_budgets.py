"""A budget of a scheduler: never exceeded, spent at a pace, kept by logs and snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import Budget, Greedy, InputError, Item, Label, Labeler, Scheduler
from venire.model import Assignment
from venire.server.store import decode, encode

CLASSES = ["spam", "ok"]
PANEL = [
    Labeler("ann", 0.9, 2, price=1.0),
    Labeler("bob", 0.8, 2, price=0.5),
    Labeler("eve", 0.7, 3, price=0.1),
]


def busy(s: Scheduler, slots: int, seed: int = 0, items: int = 4) -> list[tuple[float, float]]:
    """Work through slots, with labels that come later or never; what each slot had spent."""
    rng, spent, paid = np.random.default_rng(seed), [], [0.0, 0.0]
    price, held = {who.id: who.price for who in s.panel}, list[Assignment]()
    for _ in range(slots):
        s.arrive(Item(f"{seed}.{s.slot}.{k}", float(rng.uniform(2, 12))) for k in range(items))
        held += s.assign() if rng.random() < 0.7 else s.assign(asked=["ann", "eve", "eve"])
        for a in list(held):
            if a.item not in s.outstanding:
                held.remove(a)
            elif rng.random() < 0.7:
                held.remove(a)
                s.observe(Label(a.item, a.labeler, CLASSES[rng.integers(2)]))
                paid = [paid[0] + price[a.labeler], paid[1] + 1]
            elif rng.random() < 0.2:
                held.remove(a)
                s.release(a.item, a.labeler)
        spent.append((paid[0], paid[1]))
        s.close()
    return spent


@settings(max_examples=25, deadline=None)
@given(
    limits=st.sampled_from([{"money": 7.3}, {"labels": 11}, {"money": 4.0, "labels": 30}]),
    seed=st.integers(0, 99),
)
def test_a_budget_is_never_exceeded(limits: dict[str, Any], seed: int) -> None:
    budget = Budget(**limits, slots=20)
    spent = busy(Scheduler(PANEL, CLASSES, Greedy(), budget=budget), 30, seed)
    assert spent[-1][0] <= (budget.money or np.inf) + 1e-9
    assert spent[-1][1] <= (budget.labels or np.inf)


def test_every_day_has_its_budget_and_no_more() -> None:
    s = Scheduler(PANEL, CLASSES, Greedy(), budget=Budget(labels=15, per_day=True, slots=10))
    spent = np.array([labels for _, labels in busy(s, 40)])
    days = np.diff([0, *spent[9::10]])
    assert (days <= 15).all()
    assert days.min() > 8


def test_it_lasts_the_day_where_a_cut_off_would_not() -> None:
    free = busy(Scheduler(PANEL, CLASSES, Greedy()), 100)
    budget = Budget(money=0.5 * free[-1][0], slots=100)
    assert free[49][0] > 0.9 * (budget.money or 0)
    paced = Scheduler(PANEL, CLASSES, Greedy(), budget=budget)
    spent = busy(paced, 100)
    assert 0.35 < spent[49][0] / (budget.money or 0) < 0.75
    assert spent[-1][0] > 0.85 * (budget.money or 0)
    assert paced.multipliers[0] > 0


def test_logs_and_snapshots_keep_it() -> None:
    budget = Budget(money=9.0, per_day=True, slots=12)

    def fresh() -> Scheduler:
        return Scheduler(PANEL, CLASSES, Greedy(), budget=budget)

    s = fresh()
    busy(s, 20)
    s.change(budget=replace(budget, money=20.0))
    busy(s, 5, seed=1)
    again = Scheduler.restore(s.snapshot())
    assert again.budget == s.budget == replace(budget, money=20.0)
    assert again.multipliers == s.multipliers
    assert again.fingerprint() == s.fingerprint()
    assert fresh().replay(s.log).fingerprint() == s.fingerprint()
    assert fresh().replay(decode(encode("posts", 0, 0.0, s.log))).fingerprint() == s.fingerprint()
    assert fresh().follow(s.log, obey=True).budget_left == pytest.approx(s.budget_left)
    before = len(s.log)
    busy(s, 15, seed=2)
    assert again.follow(s.log[before:]).fingerprint() == s.fingerprint()
    s.change(budget="none")
    assert s.budget_left == (None, None)
    assert Scheduler.restore(s.snapshot()).budget is None


def test_a_budget_for_no_time_is_refused() -> None:
    with pytest.raises(InputError, match="expected how many slots it is for"):
        Scheduler(PANEL, CLASSES, budget=Budget(money=5, per_day=True))
    with pytest.raises(InputError, match="slots=0"):
        Budget(money=5, slots=0)
