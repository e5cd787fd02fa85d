"""An estimator learns the same from partitions of whole items as from one table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.cluster.tables import GOLD, METHODS, assert_same, crowd, divided, known, named
from tests.unit.estimators.worlds import Ints, label_matrices
from venire.errors import InputError
from venire.estimators import (
    BradleyTerry,
    DawidSkene,
    RobustMean,
    Streaming,
    clones,
    find_clones,
    find_constant,
)
from venire.estimators.dependence import residual_dependence
from venire.estimators.intervals import implied_intervals
from venire.estimators.metrics import alpha_of
from venire.labels import LabelTable


def fit(method: Any, table: Any, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # noise may look like a mirror image
        return method.fit(table, **given)


@pytest.mark.parametrize("name", METHODS)
@given(label_matrices(max_items=30), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_partitions_of_noise_equal_one_table(
    name: str, drawn: tuple[Ints, int], parts: int
) -> None:
    table = named(LabelTable.from_matrix(*drawn))
    # noise may be near a saddle, where rounding decides when it stops: few iterations
    method = METHODS[name]()
    if "max_iter" in method.get_params():
        method.set_params(max_iter=5)
    expected = fit(method, table)
    assert_same(
        fit(METHODS[name]().set_params(**method.get_params()), divided(table, parts)), expected
    )


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("classes", [2, 4])
def test_partitions_of_a_crowd_equal_one_table(name: str, classes: int) -> None:
    table, _ = crowd(seed=classes, classes=classes)
    assert_same(fit(METHODS[name](), divided(table, 7)), fit(METHODS[name](), table))


@pytest.mark.parametrize("name", GOLD)
@pytest.mark.parametrize(("seed", "wrong"), [(1, False), (2, True)])
def test_gold_counts_alike(name: str, seed: int, wrong: bool) -> None:
    table, gold = crowd(seed)
    if wrong:  # so that it overrules the vote
        gold = {item: 1 - k for item, k in gold.items()}
    gold["elsewhere"] = 1
    assert_same(
        fit(METHODS[name](), divided(table, 5), gold=gold), fit(METHODS[name](), table, gold=gold)
    )


def test_gold_of_an_unknown_class_is_refused() -> None:
    table, _ = crowd(3)
    with pytest.raises(InputError, match="has the gold label 7"):
        DawidSkene().fit(divided(table, 3), gold={"item-1": 7})


def test_history_counts_alike() -> None:
    table, gold = crowd(4)
    history = {0: [[50, 3], [4, 60]], 8: [[0, 40], [1, 30]], "who": [[1, 0], [0, 1]]}
    one, other = (
        DawidSkene().fit(t, gold=gold, history=history) for t in (table, divided(table, 4))
    )
    assert_same(other, one)


def test_given_competences() -> None:
    table, _ = crowd(5)
    assert_same(known(table).fit(divided(table, 4)), known(table).fit(table))


def test_a_sample_is_the_same_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tables are sampled by the names of items, or by their number: not by partition."""
    table, gold = crowd(6)
    monkeypatch.setattr(clones, "MOST_PAIRS", 6000)
    for more in ({}, {"gold": gold}):
        assert_same(
            fit(METHODS["auto"](), divided(table, 6), **more),
            fit(METHODS["auto"](), table, **more),
        )
    assert find_clones(divided(table, 6)) == find_clones(table)


def test_screening_and_measures() -> None:
    table, _ = crowd(7)
    parts = divided(table, 6)
    assert find_constant(parts) == find_constant(table)
    assert find_clones(parts).groups == find_clones(table).groups
    assert alpha_of(parts) == pytest.approx(alpha_of(table), abs=1e-12)
    whole, spread = (METHODS["auto"]().fit(t) for t in (table, parts))
    np.testing.assert_allclose(implied_intervals(spread), implied_intervals(whole), atol=1e-9)
    np.testing.assert_allclose(spread.skill_intervals_, implied_intervals(whole), atol=1e-9)
    mine, theirs = (
        residual_dependence(t, q.posterior_rows()) for t, q in ((parts, spread), (table, whole))
    )
    assert mine == pytest.approx(theirs, abs=1e-9)


def test_the_number_of_workers_does_not_matter_but_that_of_partitions_rounds() -> None:
    table, _ = crowd(8)
    one, two = (DawidSkene().fit(divided(table, 9)) for _ in range(2))
    assert one.confusions_.tobytes() == two.confusions_.tobytes()


def test_views_gather_what_they_need() -> None:
    table, _ = crowd(9, items=50)
    fitted, whole = METHODS["dawid-skene"]().fit(divided(table, 3)), DawidSkene().fit(table)
    assert "posteriors_" not in fitted.__dict__
    assert fitted.labels_ == whole.labels_
    assert fitted.skills_.keys() == whole.skills_.keys()
    frame = fitted.to_frame("pandas")
    np.testing.assert_allclose(frame["confidence"], whole.posteriors_.max(axis=1), atol=1e-9)
    assert list(frame["task"]) == list(whole.table_.items)
    assert "posteriors_" in fitted.__dict__
    fitted.fit(table)
    assert "_spread" not in fitted.__dict__


@pytest.mark.parametrize("method", [RobustMean(), BradleyTerry(), Streaming()])
def test_what_cannot_be_divided_says_so(method: Any) -> None:
    table, _ = crowd(10, items=20)
    with pytest.raises(InputError, match=r"expected them in one piece.*docs/cluster\.md"):
        method.partial_fit(divided(table, 2)) if isinstance(method, Streaming) else method.fit(
            divided(table, 2)
        )


def test_posteriors_are_no_start_for_partitions() -> None:
    table, _ = crowd(11, items=20)
    with pytest.raises(InputError, match="start from confusions"):
        DawidSkene(start=np.full((20, 2), 0.5)).fit(divided(table, 2))
    rows = DawidSkene().fit(table).confusions_
    one, other = (DawidSkene(start=rows).fit(t) for t in (table, divided(table, 2)))
    assert_same(other, one)


def test_classes_without_order_are_refused() -> None:
    rows = [(i, w, k) for i in range(6) for w, k in (("ann", "low"), ("bob", "high"))]
    table = LabelTable.from_rows(rows)
    with pytest.raises(InputError, match="expected them in order"):
        METHODS["ordinal"]().fit(divided(table, 2))
    ordered = LabelTable.from_rows(rows, classes=["low", "high"])
    assert METHODS["ordinal"]().set_params(order=("low", "high")).fit(divided(ordered, 2)).labels_
