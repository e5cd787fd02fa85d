"""The look-ahead: its plan is the optimum of the linear program, it keeps its budget, it earns."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from tests.marks import examples
from tests.unit.scheduling import market_reference as plain
from tests.unit.scheduling.market_reference import STEP, Bid
from venire import Bursty, InputError, LookAhead, Poisson, Waterfill, World, simulate
from venire.scheduling.kernel.desk import Desk, allocate
from venire.scheduling.policies.lookahead import (
    AHEAD,
    fill,
    forecast,
    note_arrivals,
    plan_price,
    sorted_bids,
)
from venire.scheduling.policies.waterfill import open_stall

QUEUES = st.lists(st.tuples(st.floats(1.0, 100.0), st.integers(0, 5)), min_size=1, max_size=15)


def queue(bids: list[Bid]) -> Desk:
    desk = allocate(len(bids), 0, 1)
    for row, b in enumerate(bids):
        desk.bounds[0] = max(desk.bounds[0], b.value)
        open_stall(desk, row, b.value, b.cap, 100 - int(b.charge))
    return desk


def program(bids: list[Bid], now: float, later: float, horizon: int) -> float:
    """The plan as a linear program, the concave accuracy by its tangents.

    For a bid and the slot t in which it leaves: the share of it (x), what it gains (v), and the
    evidence bought in each slot up to t. At most so much evidence is sold in a slot.
    """
    columns: list[float] = []  # objective
    rows: list[dict[int, float]] = []
    limits: list[float] = []
    sold: list[dict[int, float]] = [{} for _ in range(horizon)]
    for b in bids:
        whole: dict[int, float] = {}
        for t in range(horizon):
            x, v, e = len(columns), len(columns) + 1, len(columns) + 2
            columns += [b.charge + t, -1.0] + [0.0] * (t + 1)
            whole[x] = 1.0
            bought = {e + s: 1.0 for s in range(t + 1)}
            for s in range(t + 1):
                sold[s][e + s] = 1.0
            rows.append({**bought, x: -b.cap})
            for c in np.linspace(0.0, min(b.cap, 6.0), 50):
                # v <= x a (1 - e^-c) + a e^-c (bought - x c)
                slope = b.value * math.exp(-c)
                level = b.value * -math.expm1(-c) - slope * c
                rows.append({v: 1.0, x: -level, **dict.fromkeys(bought, -slope)})
            limits += [0.0] * 51
        rows.append(whole)
        limits.append(1.0)
    rows += sold
    limits += [now] + [later] * (horizon - 1)
    at = [(i, j, value) for i, row in enumerate(rows) for j, value in row.items()]
    i, j, values = (np.array(x) for x in zip(*at, strict=True))
    matrix = csr_matrix((values, (i.astype(int), j.astype(int))), (len(rows), len(columns)))
    return -float(linprog(columns, matrix, limits).fun)


@examples(night=100, day=30)
@given(items=QUEUES, cap=st.floats(0.5, 20.0), now=st.floats(0.1, 5.0), later=st.floats(0.1, 5.0))
def test_the_price_of_a_plan_is_that_of_the_plain_reference(
    items: list[tuple[float, int]], cap: float, now: float, later: float
) -> None:
    bids = [Bid(a, float(d), cap, i) for i, (a, d) in enumerate(items)]
    desk = queue(bids)
    n = sorted_bids(desk, 100)
    assume(n > 0)
    k = plan_price(desk, n, now, later, 0, 0)
    logs = plain.plan(bids, now, later)
    if k < plain.FREE + 2**20:
        assert logs[0] < -30.0
        return
    assert (k + 1) * STEP == pytest.approx(logs[0], abs=3 * STEP)
    too_low, first, _, following = fill(desk, n, now, later, 0, k + 1)
    assert not too_low
    if len(logs) > 1:
        assert first < n
        assert math.exp(following) == pytest.approx(math.exp(logs[1]), abs=1e-3)


@pytest.mark.parametrize("seed", range(6))
def test_the_plan_is_the_optimum_of_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, now, later = 6, float(rng.uniform(0.5, 2)), float(rng.uniform(0.5, 2))
    values, charges = rng.uniform(4, 30, n), rng.integers(0, 4, n)
    bids = [
        Bid(float(a), float(d), 20.0, i)
        for i, (a, d) in enumerate(zip(values, charges, strict=True))
    ]
    desk = queue(bids)
    count = sorted_bids(desk, 100)
    k = plan_price(desk, count, now, later, 0, 0)
    prices = plain.path(bids, now, later, k * STEP)[1]
    best = program(bids, now, later, len(prices) + 2)
    bound = plain.dual_bound(bids, now, later, prices)
    assert bound == pytest.approx(best, rel=3e-3)


@pytest.mark.parametrize(
    ("arrivals", "panel"),
    [(Bursty(50, 10), (0.55, 0.65)), (Bursty(50, 10), (0.55, 0.8))],
)
def test_a_burst_is_served_better_than_by_water_filling(
    arrivals: Bursty, panel: tuple[float, float]
) -> None:
    world = World.synthetic(0, np.linspace(*panel, 30).tolist(), arrivals)
    ahead, fill = (simulate(world, p, slots=100).utility for p in (LookAhead(), Waterfill()))
    assert ahead >= 1.15 * fill


@pytest.mark.parametrize("seed", range(2))
def test_a_steady_stream_is_served_no_worse(seed: int) -> None:
    world = World.synthetic(seed)
    ahead, fill = (simulate(world, p, slots=1_000).utility for p in (LookAhead(), Waterfill()))
    assert ahead >= 0.999 * fill


def test_past_its_budget_it_groups_and_then_falls_back_and_says_so() -> None:
    world = World.synthetic(
        0, np.linspace(0.55, 0.8, 60).tolist(), Bursty(1000, 20), weights=tuple(range(5, 60))
    )
    runs = {b: simulate(world, LookAhead(b), slots=40) for b in (10**6, 21_000, 0)}
    exact, grouped, none = runs[10**6], runs[21_000], runs[0]
    assert exact.counters == {"planned": 40, "grouped": 0, "fell_back": 0}
    assert grouped.counters["grouped"] > 10
    assert grouped.counters["fell_back"] == 0
    assert none.counters == {"planned": 0, "grouped": 0, "fell_back": 40}
    filled = simulate(world, Waterfill(), slots=40)
    assert list(none.assignments()) == list(filled.assignments())
    assert grouped.utility == pytest.approx(exact.utility, rel=0.02)
    assert exact.utility > filled.utility


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(InputError, match="at least 0"):
        LookAhead(-1)


def forecasted(counts: list[int]) -> list[float]:
    """What is forecasted in the last of the slots that brought these counts."""
    desk = allocate(sum(counts), 0, 1)
    desk.rows["weight"] = 5.0
    desk.rows["arrival"] = np.repeat(np.arange(len(counts)), counts)
    for slot in range(len(counts)):
        desk.meta[0] = sum(counts[: slot + 1])
        if slot < len(counts) - 1:
            note_arrivals(desk, slot)
    forecast(desk, len(counts) - 1)
    return [float(x) for x in desk.ahead[1:AHEAD]]


def test_bursts_at_equal_distances_are_forecasted() -> None:
    ahead = forecasted(([50] + [0] * 9) * 8 + [50, 0, 0])
    assert max(ahead[:7]) < 1.0
    assert ahead[7] > 40.0
    assert max(ahead[8:17]) < 1.0


def test_a_steady_stream_is_forecasted_to_go_on() -> None:
    counts = Poisson(5).draw(np.random.default_rng(0), 400).tolist()
    assert np.mean(forecasted(counts)) == pytest.approx(5.0, abs=1.5)


def test_nothing_is_forecasted_of_a_stream_that_just_began() -> None:
    assert forecasted([600]) == [0.0] * (AHEAD - 1)
