import pickle
import warnings
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.marks import nightly
from tests.unit.estimators import reference
from tests.unit.estimators.panels import full_world
from tests.unit.estimators.worlds import Ints, label_matrices, plain, real, simulate
from venire.errors import InputError
from venire.estimators import BaseEstimator, DawidSkene, OneCoin
from venire.labels import LabelTable

Drawn = tuple[Ints, int]
Prior = str | float | None

priors = st.sampled_from(["panel", None, 1.0, 5.0])
names_warning = pytest.mark.filterwarnings(
    "ignore:EM ended with only", "ignore:two classes were nearly"
)
pytestmark = names_warning


@given(label_matrices(max_labelers=20), st.integers(0, 5))
def test_equals_the_plain_reference(drawn: Drawn, iterations: int) -> None:
    matrix, K = drawn
    fast = DawidSkene(max_iter=iterations, tol=0, prior=None)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        fast.fit(LabelTable.from_matrix(matrix, K))
    assume(not any("renamed" in str(w.message) for w in warned))
    confusions, class_prior, q, ll = reference.dawid_skene(plain(matrix), K, iterations)
    np.testing.assert_allclose(fast.confusions_, confusions, atol=1e-8)
    np.testing.assert_allclose(fast.priors_, class_prior, atol=1e-8)
    labelled = (matrix >= 0).any(axis=1)
    np.testing.assert_allclose(fast.posteriors_[labelled], np.array(q)[labelled], atol=1e-7)
    assert fast.log_likelihood_ == pytest.approx(ll, abs=1e-7)


@given(label_matrices(), priors)
def test_what_it_climbs_never_falls_and_all_is_finite(drawn: Drawn, prior: Prior) -> None:
    matrix, K = drawn
    learned = DawidSkene(prior=prior).fit(LabelTable.from_matrix(matrix, K))
    assert (np.diff([step.log_likelihood for step in learned.history_]) >= -1e-8).all()
    assert np.isfinite(learned.log_likelihood_)
    np.testing.assert_allclose(learned.posteriors_.sum(axis=1), 1)
    np.testing.assert_allclose(learned.confusions_.sum(axis=2), 1, atol=1e-8)
    assert ((learned.competences_ > 0) & (learned.competences_ <= 1)).all()


@given(label_matrices(), st.randoms(use_true_random=False))
def test_order_of_rows_is_irrelevant(drawn: Drawn, random: Random) -> None:
    matrix, K = drawn
    item, labeler = np.nonzero(matrix >= 0)
    order = list(range(item.size))
    random.shuffle(order)
    names = range(matrix.shape[0]), range(matrix.shape[1]), range(K)
    said = matrix[item, labeler]
    one = DawidSkene().fit(LabelTable.from_codes(item, labeler, said, *names))
    two = DawidSkene().fit(LabelTable.from_codes(item[order], labeler[order], said[order], *names))
    assert (one.confusions_ == two.confusions_).all()
    assert (one.posteriors_ == two.posteriors_).all()


@settings(max_examples=50)
@given(label_matrices(), st.sampled_from([None, 2.0]), st.randoms(use_true_random=False))
def test_relabelling_the_classes_permutes_the_result(
    drawn: Drawn, prior: Prior, random: Random
) -> None:
    matrix, K = drawn
    new = list(range(K))
    random.shuffle(new)
    renamed = np.where(matrix >= 0, np.array(new)[matrix], -1)
    few = DawidSkene(max_iter=5, prior=prior)
    P, q = few.fit(LabelTable.from_matrix(matrix, K)).confusions_, few.posteriors_
    few.fit(LabelTable.from_matrix(renamed, K))
    np.testing.assert_allclose(few.confusions_[:, new][:, :, new], P, atol=1e-7)
    np.testing.assert_allclose(few.posteriors_[:, new], q, atol=1e-7)


def test_relabelling_with_the_prior_of_the_panel() -> None:
    table, _ = full_world(0, 3, 12, 200, 5)
    new = np.array([2, 0, 1])
    names = table.items, table.labelers, table.classes
    other = LabelTable.from_codes(table.item, table.labeler, new[table.said], *names)
    one, two = DawidSkene().fit(table), DawidSkene().fit(other)
    np.testing.assert_allclose(two.posteriors_[:, new], one.posteriors_, atol=1e-6)
    np.testing.assert_allclose(two.competences_, one.competences_, atol=1e-6)


@given(label_matrices(min_labelers=2))
def test_a_labeler_with_one_label_never_gets_skill_1(drawn: Drawn) -> None:
    matrix, K = drawn
    matrix[1:, 0] = -1
    learned = DawidSkene().fit(LabelTable.from_matrix(matrix, K))
    assert learned.competences_[0] < 0.9999


@pytest.mark.parametrize("classes", [2, nightly(3)])
def test_any_number_of_threads_gives_the_same_to_the_bit(classes: int) -> None:
    table, _ = full_world(1, classes, 20, 40_000, 5)
    one, two, four = (DawidSkene(max_iter=4, threads=n).fit(table) for n in (1, 2, 4))
    for other in (two, four):
        assert (one.posteriors_ == other.posteriors_).all()
        assert (one.confusions_ == other.confusions_).all()
        assert one.history_ == other.history_


@pytest.mark.parametrize(
    ("name", "percent"),
    [("bluebird", 11.2), ("rte", 7.4), ("temp", 5.9), ("dog", 16.0), ("product", 6.3)],
)
def test_error_on_real_sets(name: str, percent: float) -> None:
    table, truth = real(name)
    labels = DawidSkene().fit_predict(table)
    wrong = [labels[task] != truth[task] for task in table.items if task in truth]
    assert 100 * sum(wrong) / len(wrong) <= percent


def test_sparse_labelers_of_many_classes_cost_nothing() -> None:
    """K = 10 and five labels an item: plain Dawid-Skene falls below one-coin, this one does not."""
    rng = np.random.default_rng(0)
    table, truth = simulate(rng.uniform(0.4, 0.8, 60), 3_000, 0, classes=10, share=5 / 60)
    found = [
        np.mean(e.fit(table).posteriors_.argmax(axis=1) == truth)
        for e in (DawidSkene(), OneCoin(), DawidSkene(prior=None))
    ]
    assert found[0] > found[1] - 0.005
    assert found[0] > found[2] + 0.01


def test_gold_and_history() -> None:
    table, _ = full_world(2, 2, 8, 60, 3)
    gold = {0: 1, 1: 0, "elsewhere": 1}
    learned = DawidSkene().fit(table, gold=gold, history={3: [[50, 0], [0, 50]], "who": np.eye(2)})
    assert learned.posteriors_[:2].tolist() == [[0, 1], [1, 0]]
    assert learned.labels_[0] == 1
    assert learned.competences_[3] > 0.95
    assert learned.competences_[3] > DawidSkene().fit(table).competences_[3]
    assert (np.diff([s.log_likelihood for s in learned.history_]) >= -1e-8).all()


def test_gold_turns_a_panel_that_is_upside_down() -> None:
    table, truth = simulate(np.full(9, 0.2), 300, seed=0)
    gold = {s: int(k) for s, k in enumerate(truth[:30])}
    with pytest.warns(UserWarning, match="gold labels name the classes"):
        learned = DawidSkene(start=np.tile([[0.3, 0.7], [0.7, 0.3]], (9, 1, 1))).fit(table, gold)
    assert np.mean([learned.labels_[s] == k for s, k in enumerate(truth)]) > 0.9


def test_swapped_names_are_put_right_with_a_warning() -> None:
    table, truth = simulate(np.full(9, 0.8), 300, seed=0, classes=3)
    swapped = np.full((9, 3, 3), 0.15)
    swapped[:, [0, 1, 2], [1, 2, 0]] = 0.7
    with pytest.warns(UserWarning, match="renamed the classes"):
        learned = DawidSkene(start=swapped, prior=None).fit(table)
    assert np.mean([learned.labels_[s] == k for s, k in enumerate(truth)]) > 0.9


def test_near_swapped_names_get_a_warning() -> None:
    said = [[0, 1], [1, 0]] * 20
    with pytest.warns(UserWarning, match="nearly called by each other's names"):
        DawidSkene(max_iter=0, prior=None).fit(LabelTable.from_matrix([*said, [0, 0], [1, 1]]))


def test_a_warm_start_arrives_at_once() -> None:
    table, _ = full_world(0, 3, 12, 300, 6)
    cold = DawidSkene(prior=3.0, tol=1e-9, max_iter=1000).fit(table)
    again = DawidSkene(prior=cold.pseudo_labels_, start=cold.posteriors_).fit(table)
    assert again.n_iter_ < 4 < cold.n_iter_
    np.testing.assert_allclose(again.confusions_, cold.confusions_, atol=1e-5)


def test_keeps_the_contract() -> None:
    table, _ = full_world(0, 3, 6, 50, 4)
    estimator = DawidSkene(max_iter=3, tol=0)
    assert isinstance(estimator, BaseEstimator)
    assert estimator.fit(table) is estimator
    assert estimator.n_iter_ == len(estimator.history_) == 3
    assert not estimator.converged_
    assert estimator.priors_.sum() == pytest.approx(1)
    copy = pickle.loads(pickle.dumps(estimator))
    assert copy.skills_ == estimator.skills_
    assert estimator.fit_predict_proba(table)[0].keys() == {0, 1, 2}


def test_an_item_and_a_labeler_without_labels() -> None:
    table = LabelTable.from_matrix([[0, 0, 0, -1], [1, 1, 0, -1], [-1, -1, -1, -1]])
    learned = DawidSkene().fit(table)
    assert learned.labels_[2] is None
    assert learned.posteriors_[2] == pytest.approx(learned.priors_)
    assert 0.5 < learned.competences_[3] < 1


@pytest.mark.parametrize(
    "bad",
    [
        {"start": "random"},
        {"start": [[0.5, 0.5]]},
        {"prior": "strong"},
        {"prior": -1.0},
        {"prior": [[1.0, 2.0, 3.0]]},
        {"class_prior": "flat"},
        {"class_prior": [0.5, 0.6]},
        {"threads": 0},
    ],
    ids=str,
)
def test_refuses(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected|known"):
        DawidSkene(**bad).fit(LabelTable.from_matrix([[0, 1], [1, 1], [0, 0]]))


def test_refuses_what_is_given_beforehand() -> None:
    table = LabelTable.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(InputError, match="gold label"):
        DawidSkene().fit(table, gold={0: "cat"})
    with pytest.raises(InputError, match="2 x 2"):
        DawidSkene().fit(table, history={0: [1, 2]})
