"""The report on a panel, on panels of which everything is known."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire import Auto, InputError, LabelTable, panel_report
from venire.panels import Yardstick, second_labels
from venire.panels.report import Replayed
from venire.panels.yardstick import verdicts_of

Ints = NDArray[np.int64]


def world(skills: list[float], items: int, seed: int) -> tuple[Ints, Ints]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=items)
    right = rng.random((items, len(skills))) < skills
    return truth, np.where(right, truth[:, None], 1 - truth[:, None])


def as_dict(truth: Ints) -> dict[int, int]:
    return dict(enumerate(truth.tolist()))


def test_changes_are_those_of_a_fit_without_the_labeler() -> None:
    truth, said = world([0.9, 0.8, 0.7, 0.6], 300, seed=0)
    table = LabelTable.from_matrix(said)
    report = panel_report(table, truth=as_dict(truth))
    whole = Auto().fit(table)
    right = (verdicts_of(whole)[np.arange(300), truth]).mean()
    assert report.accuracy.value == pytest.approx(right)
    for m, member in enumerate(report.members):
        matrix = said.copy()
        matrix[:, m] = -1
        rest = verdicts_of(Auto().fit(LabelTable.from_matrix(matrix)))
        assert member.without.value == pytest.approx(rest[np.arange(300), truth].mean() - right)
        assert member.skill == pytest.approx((said[:, m] == truth).mean())  # all truth is known
        assert (member.known, member.right) == (300, (said[:, m] == truth).sum())
        assert member.low == member.high == member.skill
    assert sum(member.share for member in report.members) == pytest.approx(1)


def family(seed: int, items: int = 500, shared: float = 0.9) -> tuple[Ints, Ints]:
    """Two judges of .74 who share most of their errors, and three others: .92, .87, .60."""
    rng = np.random.default_rng(seed)
    truth, both = rng.integers(2, size=items), rng.random(items) < 0.74
    two = [np.where(rng.random(items) < shared, both, rng.random(items) < 0.74) for _ in range(2)]
    right = np.stack([*two, *(rng.random(items) < p for p in (0.92, 0.87, 0.60))], axis=1)
    return truth, np.where(right, truth[:, None], 1 - truth[:, None])


@pytest.mark.parametrize("seed", range(3))
def test_the_advice_is_by_the_truth(seed: int) -> None:
    """A family may outvote the best judge; by the truth the best ones stay, and it is better."""
    truth, said = family(seed)
    report = panel_report(LabelTable.from_matrix(said), truth=as_dict(truth))
    assert set(report.can_go) <= {0, 1, 4}  # of the family, or the worst
    kept = [m for m in range(5) if m not in report.can_go]
    fitted = Auto().fit(LabelTable.from_matrix(said[:, kept]))
    right = verdicts_of(fitted)[np.arange(len(truth)), truth].mean()
    assert report.accuracy.value + report.expected.value == pytest.approx(right)
    assert right >= report.want >= report.accuracy.value - 0.005
    assert report.change.value > -0.03
    assert report.measured


def test_a_wanted_accuracy_that_some_of_them_have_is_reached() -> None:
    truth, said = family(0)
    table, known = LabelTable.from_matrix(said), as_dict(truth)
    report = panel_report(table, truth=known, want=0.9)
    assert report.reached
    assert report.accuracy.value + report.expected.value >= 0.9
    assert not panel_report(table, truth=known, want=0.999).reached


def test_what_it_changes_is_measured_on_items_that_had_no_part_in_the_choice() -> None:
    """Each half of the items, by the panel that the truth of the other half chooses."""
    truth, said = family(1, items=120)
    table, known = LabelTable.from_matrix(said), as_dict(truth)
    order = np.random.default_rng(0).permutation(120)
    gains = []
    for half, others in ((order[::2], order[1::2]), (order[1::2], order[::2])):
        gone = panel_report(table, truth={int(s): known[int(s)] for s in others}).can_go
        kept = verdicts_of(
            Auto(seed=0).fit(
                LabelTable.from_matrix(said[:, [m for m in range(5) if m not in gone]])
            )
        )
        whole = verdicts_of(Auto(seed=0).fit(table))
        gains += [(kept - whole)[s, truth[s]] for s in half]
    report = panel_report(table, truth=known)
    assert report.change.value == pytest.approx(np.mean(gains))
    assert panel_report(table).change == panel_report(table).expected


def test_copies_are_named_and_the_dear_one_goes() -> None:
    _, said = world([0.8, 0.8, 0.75, 0.75, 0.7, 0.8], 400, seed=2)
    said[:, 5] = said[:, 0]
    prices = dict.fromkeys(range(5), 1.0) | {5: 20.0}
    report = panel_report(LabelTable.from_matrix(said), prices)
    assert report.members[0].copies == (5,)
    assert 5 in report.members[0].family
    assert 5 in report.can_go
    assert report.members[5].without.value == pytest.approx(0.0, abs=1e-9)


def test_the_greedy_choice_against_a_search_of_all_panels() -> None:
    """On real replays, not only on made accuracies."""
    excess = []
    for seed in range(4):
        _, said = world([0.9, 0.85, 0.8, 0.75, 0.65], 200, seed=seed)
        table = LabelTable.from_matrix(said)
        prices = dict(enumerate(np.random.default_rng(seed).uniform(1, 10, size=5).tolist()))
        report = panel_report(table, prices, lose=0.03)
        replayed, whole = Replayed(table), Auto().fit(table)
        rule, best = Yardstick.of_posteriors(whole.posteriors_), verdicts_of(whole)
        good = [
            sum(200 * prices[m] for m in some)
            for size in range(1, 6)
            for some in itertools.combinations(range(5), size)
            if rule.change(best, replayed.verdicts(some)).value >= -0.03 - 1e-12
        ]
        excess.append(report.cheapest / min(good))
    assert min(excess) >= 1 - 1e-9
    assert np.mean(excess) < 1.1


def test_what_is_wanted_and_not_reached_is_said() -> None:
    _, said = world([0.7, 0.65, 0.6], 200, seed=3)
    report = panel_report(LabelTable.from_matrix(said), want=0.999)
    assert not report.reached
    assert report.can_go == ()
    easy = panel_report(LabelTable.from_matrix(said), want=0.55)
    assert easy.reached
    assert len(easy.can_go) == 2


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_second_labels_against_a_plain_sum(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(classes), size=6)
    rows = rng.dirichlet(np.ones(classes), size=(2, classes))
    for got, row in zip(second_labels(q, rows), rows, strict=True):
        gains = [
            sum(max(p[k] * row[k, said] for k in range(classes)) for said in range(classes))
            - max(p)
            for p in q
        ]
        assert got.value == pytest.approx(np.mean(gains), abs=1e-12)
        assert got.value >= 0


def test_a_second_label_brings_what_it_says_where_errors_are_independent() -> None:
    """Three labelers, the best of whom labels again: the gain against the truth."""
    skills = [0.85, 0.75, 0.7]
    got, true = [], []
    for seed in range(6):
        truth, said = world([*skills, skills[0]], 1500, seed=seed)
        once = Auto().fit(LabelTable.from_matrix(said[:, :3]))
        report = panel_report(LabelTable.from_matrix(said[:, :3]))
        got.append(report.members[0].second.value)
        weight = np.log(np.array(skills) / (1 - np.array(skills)))
        weight = np.append(weight, weight[0])
        twice = ((2 * said - 1) @ weight > 0).astype(int)
        first = once.posteriors_.argmax(axis=1)
        true.append((twice == truth).mean() - (first == truth).mean())
    assert np.mean(got) == pytest.approx(np.mean(true), abs=0.015)


def test_the_record_is_plain() -> None:
    _, said = world([0.9, 0.8, 0.7], 60, seed=0)
    record = panel_report(LabelTable.from_matrix(said)).record()
    assert json.loads(json.dumps(record))["members"][0]["without"]["value"] <= 0


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"prices": {0: 1.0, 1: 1.0}}, "labeler 2 has labels and no price"),
        ({"prices": {0: 1.0, 1: 1.0, 2: -1.0}}, "got the price -1.0"),
        ({"want": 95}, "got a wanted accuracy of 95"),
        ({"lose": 1.5}, "got lose=1.5"),
    ],
)
def test_bad_input_is_refused(how: dict[str, object], says: str) -> None:
    _, said = world([0.9, 0.8, 0.7], 30, seed=0)
    with pytest.raises(InputError, match=says):
        panel_report(LabelTable.from_matrix(said), **how)  # type: ignore[arg-type]
