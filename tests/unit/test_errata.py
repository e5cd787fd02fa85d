"""Each erratum of docs/errata.md: the literal reading fails, ours holds.

(Erratum 7, the lower bound, is in test_accuracy.py.)
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from tests import reference
from tests.reference import PlainItem, PlainWorld
from venire import Greedy, Item, Labeler, LearnThenServe, OneCoin, World, simulate
from venire.accuracy import evidence
from venire.utility import f, gain, reach, residual, u


def labeler_of(wanted: float) -> float:
    """The competence whose evidence is `wanted`."""
    return float(brentq(lambda p: float(evidence(p)) - wanted, 0.5, 0.999))


def test_1_flipping_at_or_above_chance_inverts_a_good_panel() -> None:
    world = World.synthetic(seed=0)
    ours = simulate(world, Greedy(), learning=LearnThenServe(45), slots=3000)
    literal = LearnThenServe(45, estimator=OneCoin(prior=None, sign_rule="literal"))
    theirs = simulate(world, Greedy(), learning=literal, slots=3000)
    assert ours.ratio is not None
    assert theirs.ratio is not None
    assert ours.ratio > 0.95
    assert theirs.ratio < 0.5


def test_2_the_gain_with_a_plus_sign_is_never_positive() -> None:
    held, label = 0.4, 0.7
    printed = 8 * math.exp(-held) * (1 - math.exp(label))
    assert printed < 0
    ours = gain(residual(8, held), reach(label), 0)
    assert ours == pytest.approx(f(8, 0, [(held, 0), (label, 0)]) - f(8, 0, [(held, 0)]))


def test_3_break_starves_the_lesser_labelers() -> None:
    """The best labeler may label nothing; with `Break` nobody labels anything."""

    def world() -> PlainWorld:
        items = [PlainItem(0, 10.0, frozenset({1})), PlainItem(0, 10.0, frozenset({1}))]
        return PlainWorld([0.9, 0.8], [1, 1], items, 2)

    assert reference.greedy(world(), breaks=True).assignments == []
    items = [Item(name, 10.0, frozenset({"b"})) for name in ("x", "y")]
    panel = [Labeler("a", 0.9), Labeler("b", 0.8)]
    run = simulate(World.trace(items, [0, 0], panel), Greedy(), slots=2)
    assert [(a.slot, a.item, a.labeler) for a in run.assignments()] == [
        (0, "x", "b"),
        (1, "y", "b"),
    ]


def test_4_f_and_u_are_not_submodular() -> None:
    """Once an item has paid for slot 5, a further label in slot 5 is free of delay."""
    small, large, more = [(0.5, 0)], [(0.5, 0), (2.0, 5)], (0.3, 5)
    for value in (f, u):
        gained_by_small = value(20, 0, [*small, more]) - value(20, 0, small)
        gained_by_large = value(20, 0, [*large, more]) - value(20, 0, large)
        assert gained_by_large > gained_by_small


def test_4_algorithm_1_earns_a_twenty_fifth_of_a_plain_schedule() -> None:
    """300 labelers of evidence 0.01, 600 items of weight 99, all at slot 0."""
    p = labeler_of(0.01)
    panel = [Labeler(f"m{m}", p) for m in range(300)]
    items = [Item(f"i{i}", 99.0) for i in range(600)]
    run = simulate(World.trace(items, [0] * 600, panel), Greedy(), slots=200)
    assert run.utility == pytest.approx(295.5, abs=0.1)
    plain = plain_schedule(300, 600, 0.01, 99.0)
    assert plain > 7412
    assert run.utility / plain < 0.04


def plain_schedule(labelers: int, items: int, label: float, weight: float) -> float:
    """Each slot is given whole to a few fresh items, as many as earn the most."""
    total, slot = 0.0, 0
    while items > 0:
        best, served = 0.0, 0
        for few in range(1, min(items, labelers) + 1):
            each, extra = divmod(labelers, few)
            value = (few - extra) * f(weight, 0, [(label * each, slot)])
            value += extra * f(weight, 0, [(label * (each + 1), slot)])
            if value > best:
                best, served = value, few
        if served == 0:
            break
        total, items, slot = total + best, items - served, slot + 1
    return total


def test_5_waiting_in_vain_is_free_on_paper() -> None:
    """One labeler, two items: the second is worth waiting for, but its turn never pays."""
    items = [Item("first", 30.0), Item("second", 3.0)]
    others = [Item(f"late{t}", 30.0) for t in range(1, 6)]
    world = World.trace([*items, *others], [0, 0, 1, 2, 3, 4, 5], [Labeler("a", 0.95)])
    run = simulate(world, Greedy(), slots=6)
    second = list(run.rows["labels"]).index(0)
    assert run.ledger.utility[second] == 0
    assert run.ledger.realised[second] < 0
    assert run.realised_utility < run.utility
    assert np.isfinite(run.ledger.realised).all()


def test_6_the_public_dog_set_is_not_the_papers(data: Path) -> None:
    """The paper: 90 workers and 798 images."""
    with open(data / "dog" / "labels.csv", newline="") as labels:
        rows = list(csv.DictReader(labels))
    assert len({r["worker"] for r in rows}) == 109
    assert len({r["task"] for r in rows}) == 807
