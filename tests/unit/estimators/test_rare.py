"""A rare class near the vote: against the plain reference, and what it must and must not change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.estimators import rare_reference as reference
from tests.unit.estimators.worlds import Ints, label_matrices, plain
from venire.estimators import Anchored, anchor
from venire.estimators.anchor import agreed_shares, clearly_rarer, purity, unmixed
from venire.estimators.dependence import weighted_posteriors
from venire.estimators.gold import gold_votes
from venire.estimators.votes import vote_shares
from venire.labels import LabelTable
from venire.tools.arrays import Floats


def world(share: float, seed: int, items: int = 900, labels: int = 4) -> tuple[LabelTable, Ints]:
    """Twelve labelers of 0.75 to 0.95 on each of two classes; class 1 has this share."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(items) < share).astype(int)
    skills = rng.uniform(0.75, 0.95, (12, 2))
    said = np.where(
        rng.random((items, 12)) < skills[:, truth].T, truth[:, None], 1 - truth[:, None]
    )
    draw = rng.random(said.shape)
    said[draw > np.sort(draw, axis=1)[:, labels - 1 : labels]] = -1
    return LabelTable.from_matrix(said), truth


def without(table: LabelTable, monkeypatch: pytest.MonkeyPatch) -> Anchored:
    """What is found near the vote alone."""
    with monkeypatch.context() as patch:
        patch.setattr(anchor, "clearly_rarer", lambda *_: False)
        return Anchored().fit(table)


@given(label_matrices())
def test_agreed_shares_equal_the_plain_reference(drawn: tuple[Ints, int]) -> None:
    matrix, classes = drawn
    found = agreed_shares(LabelTable.from_matrix(matrix, classes))
    np.testing.assert_allclose(found, reference.agreed_shares(plain(matrix), classes), atol=1e-12)


@given(label_matrices(), st.integers(0, 99))
def test_unmixed_rows_equal_the_plain_reference(drawn: tuple[Ints, int], seed: int) -> None:
    matrix, K = drawn
    rng, labelers = np.random.default_rng(seed), matrix.shape[1]
    rows = rng.dirichlet(np.ones(K), (labelers, K))
    counts = 10 * rng.random((labelers, K, K))
    table = LabelTable.from_matrix(matrix, K)
    q = vote_shares(table)
    expected = reference.unmixed(rows.tolist(), counts.tolist(), q.tolist())
    np.testing.assert_allclose(unmixed(rows, counts, purity(table, q)), expected, atol=1e-12)


@given(label_matrices(), st.integers(0, 99))
def test_the_likelihood_equals_the_plain_reference(drawn: tuple[Ints, int], seed: int) -> None:
    matrix, K = drawn
    rng = np.random.default_rng(seed)
    table = LabelTable.from_matrix(matrix, K)
    rows, shares = rng.dirichlet(np.ones(K), (matrix.shape[1], K)), rng.dirichlet(np.ones(K))
    known = np.where((matrix >= 0).any(axis=1), rng.integers(-1, K, len(matrix)), -1).tolist()
    for gold in ([-1] * len(known), known):
        told = gold_votes(table, {s: k for s, k in enumerate(gold) if k >= 0})
        found = Anchored()._expected(table, rows, shares, told)[0]
        expected = reference.log_likelihood(plain(matrix), rows.tolist(), shares.tolist(), gold)
        assert found == pytest.approx(expected)


@given(label_matrices(), st.integers(0, 99))
def test_renaming_classes_renames_the_shares(drawn: tuple[Ints, int], seed: int) -> None:
    matrix, K = drawn
    new = np.random.default_rng(seed).permutation(K)
    tables = [
        LabelTable.from_matrix(x, K) for x in (matrix, np.where(matrix >= 0, new[matrix], -1))
    ]
    one, two = (agreed_shares(t) for t in tables)
    np.testing.assert_allclose(two[new], one, atol=1e-12)


@pytest.mark.parametrize("share", [1 / 6, 1 / 11, 1 / 51])
def test_agreed_shares_tend_to_the_true_ones(share: float) -> None:
    rng = np.random.default_rng(1)
    for classes in (2, 4):
        p = np.array([1 - share, *[share / (classes - 1)] * (classes - 1)])
        truth = rng.choice(classes, (40_000, 1), p=p)
        wrong = (truth + rng.integers(1, classes, (40_000, 3))) % classes
        said = np.where(rng.random((40_000, 3)) < 0.8, truth, wrong)
        found = agreed_shares(LabelTable.from_matrix(said, classes))
        np.testing.assert_allclose(found, p, atol=0.006)


@pytest.mark.parametrize("seed", range(4))
def test_a_balanced_stream_is_learned_as_before(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, _ = world(0.5, seed)
    ours, before = Anchored().fit(table), without(table, monkeypatch)
    assert (ours.confusions_ == before.confusions_).all()
    assert (ours.priors_ == before.priors_).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_rare_class_is_learned_to_be_rare(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    table, truth = world(1 / 11, seed)
    ours, before = Anchored().fit(table), without(table, monkeypatch)
    assert before.priors_[1] > 1.7 * truth.mean()
    assert abs(ours.priors_[1] - truth.mean()) < 0.05
    learned = [(x.confusions_, x.priors_) for x in (ours, before)]
    fits = [Anchored()._expected(table, *x, None)[0] for x in learned]
    assert fits[0] > fits[1]
    assert _right(ours, table, truth) > _right(before, table, truth)
    assert (ours.posteriors_ == before.posteriors_).all()


def test_costs_do_no_harm_where_a_class_is_rare() -> None:
    lost = np.array([_costs(*world(1 / 11, seed)) for seed in range(10)]).mean(axis=0)
    assert lost[1] < 1.2 * lost[0]  # near the vote alone: 2.9 times


def test_renaming_classes_renames_what_is_learned_of_a_rare_one() -> None:
    table, _ = world(1 / 11, seed=5)
    names = table.items, table.labelers, table.classes
    renamed = LabelTable.from_codes(table.item, table.labeler, 1 - table.said, *names)
    one, two = Anchored().fit(table), Anchored().fit(renamed)
    np.testing.assert_allclose(two.priors_[::-1], one.priors_, atol=1e-9)
    np.testing.assert_allclose(two.confusions_[:, ::-1, ::-1], one.confusions_, atol=1e-9)


def test_clearly_rarer_is_by_three_standard_errors() -> None:
    than = np.array([0.5, 0.5])
    assert not clearly_rarer(np.array([0.64, 0.36]), than, 100)
    assert clearly_rarer(np.array([0.66, 0.34]), than, 100)
    assert not clearly_rarer(than, than, 0)


def _beliefs(fitted: Anchored, table: LabelTable) -> Floats:
    return weighted_posteriors(table, fitted.confusions_, fitted.priors_, [])


def _right(fitted: Anchored, table: LabelTable, truth: Ints) -> float:
    return float((_beliefs(fitted, table).argmax(axis=1) == truth).mean())


def _costs(table: LabelTable, truth: Ints) -> list[float]:
    """The cost of the most probable class and of the least expected cost; a miss 10, an alarm 1."""
    q = _beliefs(Anchored().fit(table), table)
    verdicts = q.argmax(axis=1), (10 * q[:, 1] > q[:, 0]).astype(int)
    return [
        float((10 * ((truth == 1) & (v == 0)) + ((truth == 0) & (v == 1))).mean()) for v in verdicts
    ]
