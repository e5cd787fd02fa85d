"""The suite of regimes: the worlds are what they say."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venire import Greedy, Labeler, World, simulate
from venire.labels import LabelTable
from venire.simulation.loop import ask, stream_of
from venire_research.regimes import REGIMES, SUITE, Regime, regimes_named
from venire_research.regimes.replayed import right_shares, slots_of

MADE = [regime for regime in REGIMES if regime.uses is None]
REAL = [regime for regime in REGIMES if regime.uses is not None]

#: Seed 0: items, their weight, their arrivals and their classes summed, competences summed.
GOLDEN = {
    "paper": (1507, 9877, 219055, 744, 24.6750),
    "overload": (6181, 40001, 460540, 3054, 24.6750),
    "bursts": (1500, 9830, 217500, 738, 24.6750),
    "weak-panel": (1500, 91010, 217500, 738, 18.0000),
    "one-expert": (643, 17920, 95426, 307, 16.6100),
    "adversarial": (1507, 9877, 219055, 744, 17.5000),
    "drift": (1507, 9877, 219055, 744, 21.7500),
    "clones": (1507, 9877, 219055, 744, 21.7500),
    "capacities": (3134, 20321, 467501, 1520, 9.3000),
    "four-classes": (1507, 9877, 219055, 2257, 18.7500),
    "counterexample": (600, 59400, 0, 287, 164.9750),
    "bluebird": (1507, 9877, 219055, 670, 24.7870),
    "rte": (3134, 20321, 467501, 1547, 134.5501),
    "dog": (1507, 9877, 219055, 2502, 76.0811),
    "llmjudge": (1507, 9877, 219055, 403, 23.9713),
    "medrelex": (3231, 20962, 1447834, -2009, 351.8465),
}


def golden(regime: Regime, data: Path | None = None) -> tuple[float, ...]:
    world = regime.world(0, data=data)
    items = world.items(regime.slots)
    sums = items.weight.sum(), items.arrival.sum(), items.truth.astype(int).sum()
    return (len(items), *map(float, sums), round(float(world.competences.sum()), 4))


def said_of(world: World, slots: int, most: int = 10_000) -> Any:
    """Items (at most so many) x labelers: what each says, asked in the slot of the arrival."""
    items = world.items(slots)
    stream = stream_of(world, items, slots)
    return np.array(
        [
            [ask(stream, row, m, int(items.arrival[row])) for m in range(len(world.panel))]
            for row in range(min(most, len(items)))
        ]
    )


def test_there_are_sixteen_regimes_by_name() -> None:
    assert list(GOLDEN) == [regime.name for regime in REGIMES]
    assert all(regime.quick_slots < regime.slots for regime in REGIMES)


@pytest.mark.parametrize("regime", MADE, ids=lambda regime: regime.name)
def test_who_changes_a_world_names_another_suite(regime: Regime) -> None:
    assert (SUITE, golden(regime)) == ("regimes-1", GOLDEN[regime.name])


@pytest.mark.parametrize("regime", REAL, ids=lambda regime: regime.name)
def test_the_replayed_worlds_too(regime: Regime, data: Path) -> None:
    assert (SUITE, golden(regime, data)) == ("regimes-1", GOLDEN[regime.name])


@pytest.mark.parametrize("regime", MADE, ids=lambda regime: regime.name)
def test_a_world_is_a_function_of_its_seed(regime: Regime) -> None:
    slots = 12

    def luck(seed: int) -> list[Any]:
        world = regime.world(seed, slots)
        items = world.items(slots)
        labels = said_of(world, slots, most=50)
        return [
            items.arrival.tolist(),
            items.weight.tolist(),
            items.truth.tolist(),
            labels.tolist(),
        ]

    assert luck(3) == luck(3)
    assert luck(3) != luck(4)


def test_clones_repeat_one_another_and_are_as_good_as_they_say() -> None:
    world = regimes_named(["clones"])[0].world(0)
    truth = world.items(300).truth
    wrong = said_of(world, 300) != truth[:, None]
    assert np.abs(1 - wrong.mean(axis=0) - world.competences).max() < 0.05
    together = np.corrcoef(wrong.T)
    family = np.arange(30) // 5
    same = (family[:, None] == family) & ~np.eye(30, dtype=bool)
    assert together[same].min() > 0.7
    assert np.abs(together[family[:, None] != family]).max() < 0.15


def test_clones_of_a_shorter_horizon_are_the_first_of_a_longer() -> None:
    world = regimes_named(["clones"])[0].world(1, 40)
    some, more = world.items(20), world.items(60)
    assert some.weight.tolist() == more.weight[: len(some)].tolist()
    assert more.arrival.max() < 40


def test_drift_really_drifts() -> None:
    world = regimes_named(["drift"])[0].world(0)
    items = world.items(300)
    right = said_of(world, 300) == items.truth[:, None]
    shares = [right[(items.arrival >= a) & (items.arrival < a + 100)] for a in (0, 100, 200)]
    first, second, third = (share.mean(axis=0) for share in shares)
    assert first[:5].mean() > 0.8 > 0.65 > first[-5:].mean()
    assert second[-5:].mean() > 0.8 > 0.65 > second[:5].mean()
    assert abs(third[::2].mean() - 0.55) < 0.03


def test_the_counterexample_is_the_errata_s() -> None:
    regime = regimes_named(["counterexample"])[0]
    assert simulate(regime.world(0), Greedy(), slots=regime.slots).utility == pytest.approx(
        295.5, abs=0.1
    )


@pytest.mark.parametrize("regime", REAL, ids=lambda regime: regime.name)
def test_only_labels_that_were_recorded_are_replayed(regime: Regime, data: Path) -> None:
    world = regime.world(1, 30, data)
    run = simulate(world, slots=30)
    assert len(run.touches)
    assert (run.touches["said"] >= 0).all()
    other = simulate(regime.world(1, 30, data), slots=30)
    assert run.utility == other.utility


def test_medical_items_come_in_the_order_in_which_they_were_begun(data: Path) -> None:
    with (data / "medrelex_cause" / "labels.csv").open(newline="") as file:
        begun: dict[str, str] = {}
        for row in csv.DictReader(file):
            begun[row["task"]] = min(begun.get(row["task"], row["started"]), row["started"])
    regime = regimes_named(["medrelex"])[0]
    items = regime.world(0, data=data).items(regime.slots)
    assert items.ids is not None
    times = [begun[str(name)] for name in items.ids]
    ten_minutes = np.array(times, dtype="datetime64[s]").astype(np.int64)
    ten_minutes = (ten_minutes - ten_minutes.min()) // 600
    gaps, slots = np.diff(ten_minutes), np.diff(items.arrival)
    assert sorted(times) == times
    assert (slots == np.minimum(gaps, 6)).all()


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_gaps_of_more_than_an_hour_are_cut_to_one(seconds: list[int]) -> None:
    start = np.datetime64("2014-06-27T00:00:00")
    times = start + np.array(seconds, dtype="timedelta64[s]")
    slot, wanted, last = 0, {}, min(seconds)
    for second in sorted(seconds):
        passed = (second - min(seconds)) // 600 - (last - min(seconds)) // 600
        slot, last = slot + min(passed, 6), second
        wanted[second] = slot
    assert slots_of(times).tolist() == [wanted[second] for second in seconds]


@given(st.data())
def test_a_labeler_s_share_is_drawn_towards_the_panel_s(draw: st.DataObject) -> None:
    shape = st.lists(st.lists(st.integers(-1, 1), min_size=3, max_size=3), min_size=1, max_size=8)
    said = draw.draw(shape.filter(lambda rows: max(map(max, rows)) >= 0))
    truth = draw.draw(st.lists(st.integers(0, 1), min_size=len(said), max_size=len(said)))
    mine: list[list[bool]] = [
        [row[m] == right for row, right in zip(said, truth, strict=True) if row[m] >= 0]
        for m in range(3)
    ]
    every = fmean(hit for hits in mine for hit in hits)
    wanted = [min(0.99, (sum(hits) + 4 * every) / (len(hits) + 4)) for hits in mine]
    got = right_shares(LabelTable.from_matrix(said), dict(enumerate(truth)))
    assert got.tolist() == pytest.approx(wanted)


def test_a_labeler_below_chance_is_one_in_three() -> None:
    panel: tuple[Labeler, ...] = regimes_named(["adversarial"])[0].world(0).panel
    assert sum((labeler.competence or 0) < 0.5 for labeler in panel) == 10
