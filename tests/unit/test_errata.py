"""Each erratum of docs/errata.md: the literal reading fails, ours holds.

(Erratum 7, the lower bound, is in test_accuracy.py.)
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from tests import reference
from tests.marks import examples, nightly
from tests.reference import PlainItem, PlainWorld
from tests.strategies import Instance, instances
from tests.unit.estimators.reference import online_learn
from venire import Algorithm2, Greedy, Item, Labeler, OneCoin, World, simulate
from venire.estimators.one_coin import spectral_start
from venire.labels import LabelTable
from venire.model import Assignment
from venire.paper import lemmas
from venire.paper.accuracy import evidence
from venire.paper.utility import f, gain, reach, residual, u
from venire.scheduling.kernel.desk import REASONS
from venire_research.common.statistics import growth
from venire_research.figures import synthetic_regret

Ints = NDArray[np.int64]

#: The paper's synthetic panel.
PAPER = 0.9 - 0.005 * np.arange(1, 31)


def labeler_of(wanted: float) -> float:
    """The competence whose evidence is `wanted`."""
    return float(brentq(lambda p: float(evidence(p)) - wanted, 0.5, 0.999))


def test_1_flipping_at_or_above_chance_inverts_a_good_panel() -> None:
    world = World.synthetic(seed=0)
    ours = simulate(world, Greedy(), learning=Algorithm2(45), slots=3000)
    literal = Algorithm2(45, estimator=OneCoin(prior=None, sign_rule="literal"))
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


@examples(night=200, day=30)
@given(instances())
def test_8_the_exit_rule_as_printed_keeps_items_a_slot_longer_for_nothing(
    instance: Instance,
) -> None:
    """The same labels; whoever could still have had one leaves one slot later."""
    ours, printed = (reference.greedy(instance.plain(), ahead=n) for n in (1, 0))
    assert printed.assignments == ours.assignments
    run = simulate(instance.world(), Greedy(), slots=instance.slots)
    last = instance.slots - 1
    for row, mine, theirs in zip(run.rows, ours.items, printed.items, strict=True):
        assert mine.exit is not None
        assert row["exit"] == mine.exit
        wanted = any(ours.evidence[m] > 0 for m in mine.unused())
        assert theirs.exit == min(mine.exit + wanted, last)


def test_8_a_slot_for_nothing_costs_a_sixth_of_the_realised_utility() -> None:
    run = simulate(World.synthetic(seed=0), Greedy(), slots=1000)
    left = [REASONS[reason] for reason in run.rows["reason"]]
    later = np.array(left) == "no_gain"
    later &= run.rows["exit"] < 999
    assert run.realised_utility == pytest.approx(29_820.9, abs=0.1)
    assert later.sum() == 4_958
    assert later.sum() / run.realised_utility == pytest.approx(1 / 6, abs=0.001)


def test_9_the_start_as_printed_may_lie_outside_0_and_1() -> None:
    """Ten items; the first labeler differs once from the second and once from the third."""
    said = np.tile(np.arange(10)[:, None] % 2, 3)
    said[0, 1] ^= 1
    said[1, 2] ^= 1
    table = LabelTable.from_matrix(said)
    assert spectral_start(table, reach=100.0)[0] == pytest.approx(0.5 + math.sqrt(0.04 / 0.15))
    assert spectral_start(table, reach=100.0)[0] > 1.016
    assert spectral_start(table, reach=1.0)[0] == 1
    assert spectral_start(table)[0] == pytest.approx(0.9)


def few_items(competences: ArrayLike, items: int, seed: int) -> tuple[Ints, Ints]:
    """What each labeler said of each item, and the truth."""
    p, rng = np.asarray(competences), np.random.default_rng(seed)
    truth = rng.integers(2, size=(items, 1))
    return np.where(rng.random((items, p.size)) < p, truth, 1 - truth), truth[:, 0]


def nearest_to_the_letter(table: LabelTable, reach: float) -> OneCoin:
    """Algorithm 3 with line 3 put right: no prior, and the mirror image stands."""
    start = spectral_start(table, reach=reach)
    return OneCoin(prior=None, start=start, sign_rule="literal").fit(table)


def share_right(learned: OneCoin, truth: Ints) -> float:
    return float(np.mean([learned.labels_[s] == k for s, k in enumerate(truth)]))


def test_9_a_start_at_0_or_1_is_one_that_em_cannot_leave() -> None:
    """The paper's panel on five items: more verdicts are right from a start within reach."""
    pairs, stuck = [], []
    for seed in range(100):
        said, truth = few_items(PAPER, 5, seed)
        table = LabelTable.from_matrix(said)
        whole, ours = nearest_to_the_letter(table, reach=1.0), OneCoin(prior=None).fit(table)
        start = spectral_start(table, reach=1.0).clip(1e-10, 1 - 1e-10)
        stuck.append(np.mean((start < 1e-9) | (start > 1 - 1e-9)))
        plain, _, _ = online_learn(said.tolist(), 2, len(whole.history_), start=start)
        assert whole.competences_ == pytest.approx(plain, abs=1e-6)
        pairs.append((share_right(ours, truth), share_right(whole, truth)))
    mean_ours, mean_literal = np.mean(pairs, axis=0)
    assert mean_ours > 0.97
    assert mean_literal < 0.95
    assert 0.2 < np.mean(stuck) < 0.35


def test_9_em_may_end_in_the_mirror_image() -> None:
    """Five labelers of 0.7 and ten items, a start of mean 1/2 or more."""
    found = []
    for seed in range(300):
        said, truth = few_items([0.7] * 5, 10, seed)
        table = LabelTable.from_matrix(said)
        left = nearest_to_the_letter(table, reach=0.8)
        assert spectral_start(table).mean() >= 0.5 - 1e-12
        if left.competences_.mean() < 0.5 - 1e-6:
            with pytest.warns(UserWarning, match="took its mirror image"):
                ours = OneCoin(prior=None).fit(table)
            assert ours.competences_ == pytest.approx(1 - left.competences_, abs=1e-9)
            found.append((share_right(ours, truth), share_right(left, truth)))
    assert 0.05 < len(found) / 300 < 0.1
    ours_right, left_right = np.mean(found, axis=0)
    assert ours_right > 0.6
    assert left_right < 0.4


TWO = (0.85, 0.7)


def allowed(weights: list[float], competences: tuple[float, ...]) -> float:
    """The error that Lemma 11 allows: any longer delay gives the same Delta here."""
    gap = lemmas.delta_gap(weights, competences, max_delay=math.ceil(max(weights)))
    return lemmas.required_evidence_error(gap, max(weights), len(competences))


def test_10_an_allowed_error_turns_a_gain() -> None:
    """The better labeler, a slot after the other: weights 2.60 and 12."""
    best, other = (float(e) for e in evidence(TWO))
    weight = (1 + 1e-9) / (math.exp(-other) * reach(best))
    off = allowed([weight, 12.0], TWO)
    assert weight == pytest.approx(2.6032, abs=1e-4)
    assert off == pytest.approx(5.2e-4, abs=1e-5)
    assert gain(residual(weight, other), reach(best), 1) == pytest.approx(1e-9, rel=1e-3)
    believed = gain(residual(weight, other + off), reach(best - off), 1)
    assert believed == pytest.approx(-1.1e-3, abs=1e-4)


def schedule(panel: list[float], weights: list[float], arrival: list[int]) -> list[Assignment]:
    items = [Item(f"i{k}", w) for k, w in enumerate(weights)]
    labelers = [Labeler(f"m{m}", p) for m, p in enumerate(panel)]
    run = simulate(World.trace(items, arrival, labelers), Greedy(), slots=max(arrival) + 2)
    return list(run.assignments())


def test_10_what_an_allowed_error_costs_grows_with_the_horizon() -> None:
    """A heavy and a light item every other slot: the light one is worth a slot, by 1e-9."""
    e = [float(x) for x in evidence(TWO)]
    pair = [12.0, (1 + 1e-9) / reach(e[0])]
    off = 0.99 * allowed(pair, TWO)
    believed = [labeler_of(e[0] - off), TWO[1]]
    assert abs(float(evidence(believed[0])) - e[0]) < allowed(pair, TWO)
    lost = []
    for rounds in (1, 10, 100):
        arrival = [2 * (k // 2) for k in range(2 * rounds)]
        weights = pair * rounds
        earned = []
        for panel in (list(TWO), believed):
            labels: dict[str, list[tuple[float, int]]] = {}
            for a in schedule(panel, weights, arrival):
                labels.setdefault(a.item, []).append((e[int(a.labeler[1:])], a.slot))
            earned.append(
                sum(f(weights[int(i[1:])], arrival[int(i[1:])], got) for i, got in labels.items())
            )
        lost.append(earned[0] - earned[1])
    each = pair[1] * math.exp(-e[0]) * reach(e[1])
    assert each == pytest.approx(0.18665, abs=1e-5)
    assert lost == pytest.approx([each, 10 * each, 100 * each], rel=1e-6)
    assert lost[2] / earned[0] > 0.027


def test_10_an_allowed_error_turns_the_order_of_the_labelers() -> None:
    """Property 1 of the proof: Delta says nothing of how near two labelers are."""
    panel, weights = (0.85, 0.85 - 1e-6), [4.0, 3.0]
    believed = (0.85 - 1e-6, 0.85)
    off = np.abs(np.subtract(evidence(panel), evidence(believed))).max()
    assert off < allowed(weights, panel) / 100
    true, swapped = (
        [(a.item, a.labeler) for a in schedule(list(p), weights, [0, 0])][:2]
        for p in (panel, believed)
    )
    assert true == [("i0", "m0"), ("i1", "m1")]
    assert swapped == [("i0", "m1"), ("i1", "m0")]


@examples(night=200, day=30)
@given(st.data())
def test_10_with_the_whole_gap_the_lemma_holds(data: st.DataObject) -> None:
    """An error that `decision_gap` allows, in any direction: the same labels, the same exits."""
    p = data.draw(st.lists(st.floats(0.55, 0.95), min_size=1, max_size=4))
    pool = data.draw(st.lists(st.floats(0.5, 12.0), min_size=1, max_size=3))
    items = data.draw(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(pool)), max_size=8))
    slots = 18
    gap = lemmas.decision_gap(pool, p, slots)
    off = lemmas.required_evidence_error(gap, max(pool), len(p))
    assume(off > 1e-7 and len({round(x, 9) for x in p}) == len(p))  # the order is by a grid
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=len(p), max_size=len(p)))
    believed = [
        labeler_of(float(x) + 0.99 * s * off) for x, s in zip(evidence(p), signs, strict=True)
    ]
    true, other = (
        reference.greedy(
            PlainWorld(
                panel,
                [1] * len(p),
                [PlainItem(t, w, frozenset(range(len(p)))) for t, w in sorted(items)],
                slots,
            )
        )
        for panel in (p, believed)
    )
    assert [a[:3] for a in true.assignments] == [a[:3] for a in other.assignments]
    assert [i.exit for i in true.items] == [i.exit for i in other.items]


def test_11_lemma_13_wants_more_labelers_the_longer_the_stream() -> None:
    """With delta = 1/T^2 a panel of any size is too small from some T on."""
    strict = 1 - PAPER.max()
    per_log = 2 * math.log(1 / PAPER.min()) / lemmas.d_bar(PAPER)
    for T in (1e2, 1e4, 1e8, 1e16, 1e32):
        assert lemmas.labelers_needed(1, PAPER, 1 / T**2) >= per_log * math.log(T)
    assert lemmas.labelers_needed(1, PAPER, 1 / 1e23**2) <= 30
    assert lemmas.labelers_needed(1, PAPER, 1 / 1e24**2) > 30
    assert lemmas.labelers_needed(1, PAPER, 1 / 690**2, alpha=strict) <= 30
    assert lemmas.labelers_needed(1, PAPER, 1 / 710**2, alpha=strict) > 30


def test_11_with_a_panel_that_grows_the_learning_phase_is_a_power_of_the_horizon() -> None:
    """The most favourable gap there is, Delta = w_max = 1, and only T_L >= 1 in Lemma 13."""
    b = 2 * math.log(2) * math.log(1 / PAPER.min()) / lemmas.d_bar(PAPER)
    factor = lemmas.lipschitz(1 - PAPER.max())
    for T in (1e2, 1e4, 1e6, 1e9, 1e12, 1e15):
        M = lemmas.labelers_needed(1, PAPER, 1 / T**2)
        off = lemmas.required_evidence_error(1.0, 1.0, M)
        slots = lemmas.slots_for_bound(M, off / factor, 1 / T**2)
        assert T**b <= 2.0**M
        assert slots >= (12 * factor * T**b) ** 2 * 2 * math.log(T)
        assert slots > T
    assert b == pytest.approx(0.385, abs=0.001)
    assert lemmas.slots_for_bound(8, lemmas.required_evidence_error(1, 1, 8) / factor, 1e-12) > 1e10


def test_11_delta_itself_halves_with_every_labeler() -> None:
    """2^(M-1) sets of others give as many gains between 0 and w_max: some two are near."""
    for M in range(2, 12):
        gap = lemmas.delta_gap([10.0], PAPER[:M], max_delay=0)
        assert 0 < gap <= 10 / (2 ** (M - 1) - 1)
    off = lemmas.required_evidence_error(10 / (2**29 - 1), 10, 30)
    slots = lemmas.slots_for_bound(30, off / lemmas.lipschitz(1 - PAPER.max()), 1 / 10_000**2)
    assert slots > 1e40


def test_12_a_growth_over_a_range_does_not_tell_the_limit() -> None:
    """Two curves, one of them O(log T), are the same up to T = 100,000."""
    horizons = np.array(synthetic_regret.FIGURE.full.horizons, dtype=np.float64)
    assert horizons[-1] == 100_000
    power = horizons**0.6
    bounded = np.minimum(power, 200 * np.log(horizons))
    assert growth(horizons, bounded[None]) == growth(horizons, power[None])
    far = 1e7
    assert min(far**0.6, 200 * math.log(far)) < far**0.6 / 4
    said = growth(horizons, bounded[None]).in_words("the regret")
    assert said.startswith("From T = 100 to 100,000")
    assert said.endswith("Beyond these horizons nothing was measured.")


def test_13_what_the_optimum_earns_is_known_within_a_percent() -> None:
    run = simulate(World.synthetic(seed=0), Greedy(), slots=100)
    found = run.certificate()
    assert run.utility <= found.lower <= found.bound <= 1.01 * found.lower
    assert 0.98 < run.utility / found.bound <= run.utility / found.lower <= 1


@pytest.mark.parametrize(("labelers", "most"), [(100, 0.062), nightly(200, 0.06)])
def test_13_eq_7_is_at_most_0_06_on_the_stream_of_erratum_4(labelers: int, most: float) -> None:
    """The certificate of the larger stream takes eight times as long."""
    p = labeler_of(0.015)
    panel = [Labeler(f"m{m}", p) for m in range(labelers)]
    items = [Item(f"i{i}", 66.0) for i in range(2 * labelers)]
    worst = simulate(World.trace(items, [0] * len(items), panel), Greedy(), slots=150)
    assert worst.utility / worst.certificate().lower < most
