import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.estimators import reference
from tests.unit.estimators.worlds import PAPER_PANEL, Ints, label_matrices, plain, simulate
from venire.errors import InputError
from venire.estimators import BaseEstimator, OneCoin
from venire.estimators.dawid_skene import FullModel
from venire.labels import LabelTable

Drawn = tuple[Ints, int]
Prior = tuple[float, float] | None

priors = st.sampled_from([None, (7, 3), (1, 1), (0.5, 2)])
below_chance = pytest.mark.filterwarnings("ignore:EM ended with a mean competence")


@below_chance
@given(label_matrices(), priors, st.integers(0, 6))
def test_equals_the_plain_reference(drawn: Drawn, prior: Prior, iterations: int) -> None:
    matrix, K = drawn
    table = LabelTable.from_matrix(matrix, K)
    start = np.random.default_rng(iterations).uniform(0.3, 0.95, (matrix.shape[1],))
    for given_start in (None, start):
        begin = reference.spectral(plain(matrix), K) if given_start is None else given_start
        fast = algorithm_3(
            max_iter=iterations, tol=0, start=begin, prior=prior, sign_rule="literal"
        )
        fast.fit(table)
        p, q, ll = reference.online_learn(plain(matrix), K, iterations, prior or (0, 0), begin)
        np.testing.assert_allclose(fast.competences_, p, atol=1e-9)
        np.testing.assert_allclose(fast.posteriors_, q, atol=1e-9)
        assert fast.log_likelihood_ == pytest.approx(ll, abs=1e-8)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_equals_the_plain_reference_from_start_to_end(classes: int) -> None:
    table, _ = simulate([0.9, 0.8, 0.7, 0.6, 0.7], 60, seed=classes, classes=classes, share=0.7)
    said = np.full((60, 5), -1)
    said[table.item, table.labeler] = table.said
    fast = algorithm_3().fit(table)
    p, q, _ = reference.online_learn(plain(said), classes, fast.n_iter_)
    np.testing.assert_allclose(fast.competences_, p, atol=1e-9)
    np.testing.assert_allclose(fast.posteriors_, q, atol=1e-9)


@below_chance
@given(label_matrices(), priors)
def test_likelihood_never_falls_and_all_is_finite(drawn: Drawn, prior: Prior) -> None:
    matrix, K = drawn
    learned = algorithm_3(prior=prior, max_iter=200).fit(LabelTable.from_matrix(matrix, K))
    climb = [step.log_likelihood for step in learned.history_]
    if prior is None:
        climb.append(learned.log_likelihood_)
    assert (np.diff(climb) >= -1e-9).all()
    assert ((learned.competences_ > 0) & (learned.competences_ < 1)).all()
    assert np.isfinite(learned.log_likelihood_)
    np.testing.assert_allclose(learned.posteriors_.sum(axis=1), 1)


@below_chance
@given(label_matrices(), st.randoms(use_true_random=False))
def test_order_of_rows_is_irrelevant(drawn: Drawn, random: Random) -> None:
    matrix, K = drawn
    item, labeler = np.nonzero(matrix >= 0)
    order = list(range(item.size))
    random.shuffle(order)
    names = tuple(range(matrix.shape[0])), tuple(range(matrix.shape[1])), tuple(range(K))
    said = matrix[item, labeler]
    one = algorithm_3().fit(LabelTable.from_codes(item, labeler, said, *names))
    two = algorithm_3().fit(LabelTable.from_codes(item[order], labeler[order], said[order], *names))
    assert one.skills_ == two.skills_
    assert one.probas_ == two.probas_


@below_chance
@given(label_matrices(), st.randoms(use_true_random=False))
def test_relabelling_the_classes_permutes_the_posteriors(drawn: Drawn, random: Random) -> None:
    matrix, K = drawn
    new = list(range(K))
    random.shuffle(new)
    renamed = np.where(matrix >= 0, np.array(new)[matrix], -1)
    few = algorithm_3(max_iter=6)
    p, q = few.fit(LabelTable.from_matrix(matrix, K)).competences_, few.posteriors_
    few.fit(LabelTable.from_matrix(renamed, K))
    np.testing.assert_allclose(few.competences_, p, atol=1e-9)
    np.testing.assert_allclose(few.posteriors_[:, new], q, atol=1e-9)


def test_the_error_falls_with_the_learning_phase() -> None:
    """The paper's synthetic panel, Figure synth: infinity norm against T_L."""
    lengths = (5, 15, 25, 45, 85, 165, 325, 645, 1250)
    worst = {}
    for prior in (None, (7, 3)):
        norms = [
            np.mean([_norm(algorithm_3(prior=prior), T_L, seed) for seed in range(10)])
            for T_L in lengths
        ]
        assert (np.diff(norms) < 0).all()
        assert norms[-1] < 0.04
        worst[prior] = norms
    assert worst[7, 3][0] < 0.6 * worst[None][0]


def algorithm_3(**settings: Any) -> OneCoin:
    """Algorithm 3 without a prior: what is left of our own is in docs/errata.md, 9."""
    return OneCoin(**{"prior": None} | settings)


def _norm(estimator: OneCoin, T_L: int, seed: int) -> float:
    table, _ = simulate(PAPER_PANEL, T_L, seed)
    return float(np.abs(estimator.fit(table).competences_ - PAPER_PANEL).max())


def test_erratum_1_the_literal_sign_rule_inverts_every_verdict() -> None:
    table, truth = simulate(PAPER_PANEL, 300, seed=0)
    fixed, literal = algorithm_3(), algorithm_3(sign_rule="literal")
    right = [
        np.mean([e.fit_predict(table)[s] == k for s, k in enumerate(truth)])
        for e in (fixed, literal)
    ]
    assert right == [1.0, 0.0]
    assert literal.competences_.mean() < 0.25
    assert fixed.competences_ == pytest.approx(1 - literal.competences_, abs=1e-6)


@pytest.mark.parametrize("prior", [None, (7, 3)])
def test_the_mirror_image_is_left_with_a_warning(prior: Prior) -> None:
    table, truth = simulate(PAPER_PANEL, 200, seed=0)
    upside_down = algorithm_3(start=np.full(30, 0.1), prior=prior)
    with pytest.warns(UserWarning, match="took its mirror image"):
        labels = upside_down.fit_predict(table)
    assert [labels[s] for s in range(200)] == truth.tolist()
    assert upside_down.competences_ == pytest.approx(
        algorithm_3(prior=prior).fit(table).competences_, abs=1e-5
    )
    assert (np.diff([s.log_likelihood for s in upside_down.history_]) >= -1e-9).all()


def test_more_classes_have_no_mirror_image() -> None:
    with pytest.warns(UserWarning, match="check the labels"):
        algorithm_3(start=[0.05]).fit(LabelTable.from_matrix([[0], [1]], classes=3))


def test_one_labeler_stays_where_it_started() -> None:
    alone = algorithm_3().fit(LabelTable.from_matrix([[0], [1], [1]], classes=4))
    assert alone.competences_ == pytest.approx([5 / 8])
    assert list(alone.labels_.values()) == [0, 1, 1]


def test_two_labelers_get_one_competence() -> None:
    said = [[0, 0]] * 8 + [[0, 1], [1, 0]]
    two = algorithm_3().fit(LabelTable.from_matrix(said))
    assert two.competences_[0] == pytest.approx(two.competences_[1])
    assert 0.85 < two.competences_[0] < 0.95


def test_a_single_item() -> None:
    one = algorithm_3().fit(LabelTable.from_matrix([[0, 0, 0, 1]]))
    assert one.competences_ == pytest.approx([1, 1, 1, 0], abs=1e-4)
    assert one.labels_ == {0: 0}
    split = algorithm_3().fit(LabelTable.from_matrix([[0, 1]]))
    assert split.competences_.tolist() == [0.5, 0.5]


def test_an_item_and_a_labeler_without_labels() -> None:
    table = LabelTable.from_matrix([[0, 0, 0, -1], [1, 1, 0, -1], [-1, -1, -1, -1]])
    learned = algorithm_3(prior=(8, 2)).fit(table)
    assert learned.labels_[2] is None
    assert learned.posteriors_[2].tolist() == [0.5, 0.5]
    assert learned.competences_[3] == pytest.approx(0.8)


def test_five_items_always_work() -> None:
    """The paper's shortest learning phase; no warning, however the dice fall."""
    for seed in range(200):
        table, truth = simulate(PAPER_PANEL, 5, seed)
        for prior in (None, (7, 3)):
            learned = algorithm_3(start="best", prior=prior).fit(table)
            assert [learned.labels_[s] for s in range(5)] == truth.tolist()
        assert 0.4 < learned.competences_.min() < learned.competences_.max() < 0.81


@below_chance
def test_five_items_seldom_lead_algorithm_3_astray() -> None:
    astray = 0
    for seed in range(200):
        table, truth = simulate(PAPER_PANEL, 5, seed)
        spectral, best = algorithm_3().fit(table), algorithm_3(start="best").fit(table)
        assert best.log_likelihood_ >= spectral.log_likelihood_ - 1e-9
        astray += [spectral.labels_[s] for s in range(5)] != truth.tolist()
    assert astray < 0.05 * 200


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_partial_labels(classes: int) -> None:
    panel = np.linspace(0.55, 0.95, 20)
    table, truth = simulate(panel, 3_000, seed=3, classes=classes, share=0.3)
    learned = algorithm_3().fit(table)
    assert learned.converged_
    assert np.abs(learned.competences_ - panel).max() < 0.06
    assert np.mean([learned.labels_[s] == k for s, k in enumerate(truth)]) > 0.9


def test_a_warm_start_arrives_at_once() -> None:
    table, _ = simulate([0.6, 0.7, 0.65, 0.8, 0.7], 400, seed=0)
    cold = algorithm_3(tol=1e-9).fit(table)
    warm = algorithm_3(start=cold.competences_).fit(table)
    assert warm.n_iter_ == 1 < cold.n_iter_
    assert warm.skills_ == pytest.approx(cold.skills_, abs=1e-6)


def test_keeps_the_contract() -> None:
    table, _ = simulate([0.6, 0.7, 0.65], 50, seed=0)
    estimator = algorithm_3(max_iter=3)
    assert isinstance(estimator, BaseEstimator)
    assert estimator.fit(table) is estimator
    assert estimator.n_iter_ == len(estimator.history_) == 3
    assert not estimator.converged_
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.skills_ == estimator.skills_
    assert list(estimator.probas_[0]) == [0, 1]


def test_a_second_fit_forgets_the_first() -> None:
    estimator = algorithm_3()
    estimator.fit_predict(LabelTable.from_matrix([[0, 1]]))
    assert estimator.fit_predict(LabelTable.from_matrix([[0, 0], [1, 1]])) == {0: 0, 1: 1}


@pytest.mark.parametrize(
    "bad",
    [{"start": "random"}, {"start": [0.5]}, {"start": [0.5, np.nan]}, {"prior": (-1, 2)}],
)
def test_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected|known"):
        algorithm_3(**bad).fit(LabelTable.from_matrix([[0, 1], [1, 1]]))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_ten_thousand_labels_by_one_item_do_not_overflow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(3, size=(2, 3_000))
    learned = algorithm_3(start=np.full(3_000, 1.0), max_iter=3, sign_rule="literal")
    assert np.isfinite(learned.fit(LabelTable.from_matrix(said, 3)).log_likelihood_)


@below_chance
@given(label_matrices(max_labelers=20), st.sampled_from(["rank-one", "votes", "best"]))
def test_learned_class_prior_never_falls(drawn: Drawn, start: str) -> None:
    matrix, K = drawn
    learned = algorithm_3(class_prior="learned", start=start, max_iter=100, sign_rule="literal")
    learned.fit(LabelTable.from_matrix(matrix, K))
    assert (np.diff([step.log_likelihood for step in learned.history_]) >= -1e-8).all()
    assert learned.priors_.sum() == pytest.approx(1)
    np.testing.assert_allclose(learned.posteriors_.sum(axis=1), 1)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_given_class_prior_and_full_matrices_agree(classes: int) -> None:
    """One-coin is the full model with the implied confusion matrices; short and long items."""
    table, _ = simulate(np.linspace(0.5, 0.9, 40), 200, seed=5, classes=classes, share=0.4)
    given = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    coin = algorithm_3(class_prior=given, max_iter=0, start=np.linspace(0.5, 0.9, 40)).fit(table)
    with FullModel(table) as model:
        posteriors = np.empty((200, classes))
        confusions = np.ascontiguousarray(coin.confusions_.transpose(0, 2, 1))
        total, _ = model.expect(confusions, given, posteriors)
    np.testing.assert_allclose(coin.posteriors_, posteriors, atol=1e-12)
    assert coin.log_likelihood_ == pytest.approx(total)


@pytest.mark.parametrize("classes", [2, 3])
def test_any_number_of_threads_gives_the_same_to_the_bit(classes: int) -> None:
    table, _ = simulate(np.linspace(0.5, 0.9, 10), 30_000, seed=5, classes=classes, share=0.5)
    one, two, four = (algorithm_3(max_iter=4, threads=n).fit(table) for n in (1, 2, 4))
    for other in (two, four):
        assert (one.posteriors_ == other.posteriors_).all()
        assert one.history_ == other.history_


@pytest.mark.parametrize("start", ["rank-one", "votes", "majority"])
@pytest.mark.parametrize("classes", [2, 4])
def test_all_starts_arrive(start: str, classes: int) -> None:
    table, _ = simulate(np.linspace(0.5, 0.95, 15), 800, seed=3, classes=classes, share=0.4)
    there = algorithm_3(start=start).fit(table)
    assert there.competences_ == pytest.approx(algorithm_3().fit(table).competences_, abs=1e-3)


def test_gold_labels() -> None:
    table, truth = simulate(np.full(7, 0.2), 200, seed=0)
    gold = {s: int(k) for s, k in enumerate(truth[:40])}
    with pytest.warns(UserWarning, match="below chance: check"):
        learned = algorithm_3(start=np.full(7, 0.3)).fit(table, gold=gold)
    assert learned.posteriors_[:40].argmax(axis=1).tolist() == truth[:40].tolist()
    assert np.mean([learned.labels_[s] == k for s, k in enumerate(truth)]) > 0.9
    free = algorithm_3(prior=(1, 1)).fit(simulate(np.full(7, 0.8), 200, seed=0)[0], gold={})
    assert free.competences_.mean() > 0.7


def test_near_chance_gets_a_warning() -> None:
    table, _ = simulate(np.full(5, 0.51), 2_000, seed=1)
    with pytest.warns(UserWarning, match="near chance"):
        algorithm_3(max_iter=0, start=np.full(5, 0.51)).fit(table)


@given(label_matrices(min_labelers=2))
@below_chance
def test_a_labeler_with_one_label_never_gets_skill_1(drawn: Drawn) -> None:
    matrix, K = drawn
    matrix[1:, 0] = -1
    learned = algorithm_3(prior=(7, 3)).fit(LabelTable.from_matrix(matrix, K))
    assert learned.competences_[0] < 0.8
    assert algorithm_3().fit(LabelTable.from_matrix(matrix, K)).competences_[0] < 1


def test_a_tail_of_newcomers_does_not_turn_the_panel_upside_down() -> None:
    """1,500 labels of five who are right on 85 %, and 90 wrong ones of thirty newcomers."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    rows = [
        (i, f"g{m}", int(truth[i] if rng.random() < 0.85 else 1 - truth[i]))
        for i in range(300)
        for m in range(5)
    ]
    for w in range(30):
        rows += [(int(i), f"n{w}", int(1 - truth[i])) for i in rng.choice(300, 3, replace=False)]
    for estimator in (OneCoin(), OneCoin(prior=None)):
        verdicts = estimator.fit(LabelTable.from_rows(rows)).labels_
        assert np.mean([verdicts[i] != truth[i] for i in range(300)]) < 0.05
