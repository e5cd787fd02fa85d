"""The default method: what it takes, what it says, and that it is safe."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.zoo import FOUR, errors
from benchmarks.zoo_worlds import zoo
from tests.unit.competence.worlds import Ints, label_matrices, simulate
from venire.aggregation import Auto
from venire.aggregation.draws import label_draws
from venire.aggregation.heldout import held_out_predictions, keep_labels, stacking_weights
from venire.competence import OneCoin
from venire.errors import InputError, StateError
from venire.labels import LabelTable
from venire.testing import check_competence


def test_the_battery() -> None:
    check_competence(Auto())


@pytest.mark.filterwarnings("ignore")  # noise may look like a mirror image
@settings(max_examples=10)
@given(drawn=label_matrices(), seed=st.integers(0, 99))
def test_the_order_of_rows_is_irrelevant(drawn: tuple[Ints, int], seed: int) -> None:
    matrix, classes = drawn
    rows = [(f"i{s}", f"m{m}", int(x)) for (s, m), x in np.ndenumerate(matrix) if x >= 0]
    mixed = [rows[j] for j in np.random.default_rng(seed).permutation(len(rows))]
    one, two = (Auto().fit(LabelTable.from_rows(r, range(classes))) for r in (rows, mixed))
    assert two.weights_ == pytest.approx(one.weights_, abs=1e-6)
    for item, proba in one.probas_.items():
        for k, p in proba.items():
            assert two.probas_[item][k] == pytest.approx(p, abs=1e-6)


def test_renaming_classes_renames_the_result() -> None:
    table, _ = simulate([0.8, 0.7, 0.7, 0.6, 0.6], items=200, seed=3, classes=3, share=0.7)
    new = np.array([2, 0, 1])
    renamed = LabelTable.from_codes(
        table.item, table.labeler, new[table.said], table.items, table.labelers, table.classes
    )
    q, r = (Auto().fit(t).posteriors_ for t in (table, renamed))
    np.testing.assert_allclose(r[:, new], q, atol=1e-6)


def test_what_it_says() -> None:
    table, _ = simulate([0.9, 0.8, 0.7, 0.6], items=300, seed=0)
    auto = Auto().fit(table)
    assert auto.chosen_ == max(auto.weights_, key=auto.weights_.__getitem__)
    assert sum(auto.weights_.values()) == pytest.approx(1)
    assert auto.chosen_ in auto.why_
    assert re.search(r"predict 1[12]\d\d held-out labels", auto.why_)
    assert auto.log_likelihood_ is None
    assert auto.converged_
    assert max(auto.scores_.values()) < 0


def test_dependent_labels_leave_dawid_skene_out() -> None:
    worlds = [w for w in zoo(10, seed=5) if w.kind == "judges"]
    told = [Auto(discount_clones=False).fit(w.table) for w in worlds]
    out = [auto for auto in told if "dawid-skene" not in auto.weights_]
    assert 0 < len(out) < len(told)
    assert all("Dawid-Skene is left out" in auto.why_ for auto in out)
    assert all(auto.dependence_ > 0.1 for auto in out)


def test_one_label_an_item_is_enough() -> None:
    auto = Auto().fit([("a", "x", "no"), ("b", "y", "yes"), ("c", "x", "no")])
    assert auto.labels_ == {"a": "no", "b": "yes", "c": "no"}
    assert "no item has two labels" in auto.why_


def test_before_fit() -> None:
    with pytest.raises(StateError, match="call fit"):
        _ = Auto().why_


def test_bad_parameter() -> None:
    with pytest.raises(InputError, match="most_dependent"):
        Auto(most_dependent=-1).fit([("a", "x", 0), ("a", "y", 1)])
    with pytest.raises(InputError, match="seed=-1, expected a whole number"):
        Auto(seed=-1).fit([("a", "x", 0), ("a", "y", 1)])


def test_draws_are_uniform_and_by_name() -> None:
    table = LabelTable.from_matrix(np.zeros((2000, 5), dtype=int))
    draws = label_draws(table, seed=1)
    assert np.abs(np.sort(draws) - np.linspace(0, 1, draws.size)).max() < 0.02
    assert (draws != label_draws(table, seed=2)).all()
    assert np.abs(np.corrcoef(draws.reshape(2000, 5).T) - np.eye(5)).max() < 0.1


def test_a_held_out_label_is_not_seen() -> None:
    """Random labels cannot be predicted better than by chance."""
    rng = np.random.default_rng(0)
    table = LabelTable.from_matrix(rng.integers(2, size=(300, 10)))
    model = OneCoin(start="votes", prior=(2, 1), max_iter=20)
    p = held_out_predictions(table, {"one-coin": model})
    assert np.log(p).mean() < np.log(0.5) + 0.005
    assert len(p) == 3000


def test_large_tables_hold_out_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venire.aggregation.heldout.WHOLE", 1000)
    table, _ = simulate([0.8] * 5, items=400, seed=0)
    p = held_out_predictions(table, {"one-coin": OneCoin(start="majority", max_iter=5)})
    assert 100 < len(p) < 300


def test_kept_labels() -> None:
    table = LabelTable.from_matrix([[0, 1, 1], [1, 0, 0]])
    kept = keep_labels(table, np.array([False, True, False, False, False, False]))
    assert (kept.start.tolist(), kept.labeler.tolist()) == ([0, 1, 1], [1])


def test_stacking_finds_the_weights_of_a_mixture() -> None:
    rng = np.random.default_rng(0)
    which = rng.random(20_000) < 0.3
    p = np.where(which[:, None], [0.8, 0.2], [0.1, 0.6])
    weights = stacking_weights(p)

    def score(w: float) -> float:
        return float(np.log(p @ [w, 1 - w]).mean())

    assert score(weights[0]) >= max(score(w) for w in np.linspace(0, 1, 101)) - 1e-4
    assert stacking_weights(np.empty((0, 3))).tolist() == pytest.approx([1 / 3] * 3)


def test_it_is_safe_in_every_kind_of_world() -> None:
    """Two worlds of each kind: better than any one method, and near the best of them."""
    worlds = list(zoo(2, seed=2))
    of = {name: [errors(w, make)[0] for w in worlds] for name, make in FOUR.items()}
    auto = np.mean([errors(w, Auto)[0] for w in worlds])
    assert auto < min(np.mean(e) for e in of.values())
    assert auto < np.min(list(of.values()), axis=0).mean() + 1.5


@pytest.mark.slow
def test_on_the_whole_zoo_it_beats_every_method() -> None:
    worlds = list(zoo(10, seed=3))
    means = {name: np.mean([errors(w, make)[0] for w in worlds]) for name, make in FOUR.items()}
    figures = np.mean([errors(w, Auto) for w in worlds], axis=0)
    assert figures[0] < min(means.values()) - 0.3


def test_a_tail_of_newcomers_does_not_turn_the_panel_upside_down() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    rows = [
        (i, f"g{m}", int(truth[i] if rng.random() < 0.85 else 1 - truth[i]))
        for i in range(300)
        for m in range(5)
    ]
    for w in range(30):
        rows += [(int(i), f"n{w}", int(1 - truth[i])) for i in rng.choice(300, 3, replace=False)]
    verdicts = Auto().fit(rows).labels_
    assert np.mean([verdicts[i] != truth[i] for i in range(300)]) < 0.05
