"""Every estimator is one of scikit-learn's as far as its parameters go; results are dataframes."""

from __future__ import annotations

import builtins
import sys
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import venire
from venire import InputError, LabelTable, MissingExtra, UnknownName
from venire.estimators import frames

ESTIMATORS: list[Any] = [
    venire.Auto(seed=3, families={"a": 1}),
    venire.MajorityVote(seed=4),
    venire.WeightedMajority(shrink=2.0),
    venire.OneCoin(prior=(7, 3), seed=1),
    venire.DawidSkene(tol=1e-3),
    venire.Known({"ann": 0.9, "bob": 0.8}),
    venire.Ordinal(order=("no", "yes")),
    venire.RobustMean(freedom=4.0),
    venire.BradleyTerry(spread=1.0),
    venire.Streaming(classes=("no", "yes"), half_life=100.0),
]
ROWS = [("a", "ann", "no"), ("a", "bob", "no"), ("b", "ann", "no"), ("b", "bob", "yes")]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_clone_of_scikit_learn(estimator: Any) -> None:
    copy = clone(estimator)
    assert copy is not estimator
    assert type(copy) is type(estimator)
    assert copy.get_params() == estimator.get_params()
    assert copy.get_params() != clone(estimator).set_params(**other(estimator)).get_params()


def other(estimator: Any) -> dict[str, Any]:
    """One parameter with another value."""
    name = next(n for n in ("tol", "seed", "max_items") if n in estimator.get_params())
    return {name: estimator.get_params()[name] + 1}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_unknown_parameters_are_an_error(estimator: Any) -> None:
    with pytest.raises(UnknownName, match="unknown parameter 'nothing'"):
        estimator.set_params(nothing=1)


def test_parameters_take_effect_at_the_next_fit() -> None:
    vote = venire.MajorityVote().fit(ROWS)
    drawn = {vote.set_params(seed=seed).fit(ROWS).labels_["b"] for seed in range(20)}
    assert drawn == {"no", "yes"}


def test_a_grid_search_can_set_what_is_inside() -> None:
    class Outer(venire.MajorityVote):
        def __init__(self, inner: venire.OneCoin) -> None:
            self.inner = inner

    outer = Outer(venire.OneCoin())
    outer.set_params(inner__max_iter=3)
    assert outer.get_params()["inner__max_iter"] == 3
    assert outer.get_params(deep=False) == {"inner": outer.inner}


KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table, None: pd.DataFrame}


@pytest.mark.parametrize("backend", KINDS)
def test_verdicts_as_a_frame(backend: Any) -> None:
    fitted = venire.OneCoin().fit(ROWS)
    frame = fitted.to_frame(backend)
    assert isinstance(frame, KINDS[backend])
    rows = frame if isinstance(frame, pd.DataFrame) else pd.DataFrame(frame.to_pydict()) if (
        isinstance(frame, pa.Table)
    ) else pd.DataFrame(frame.to_dict(as_series=False))  # fmt: skip
    assert list(rows) == ["task", "label", "confidence", "entropy", "p(no)", "p(yes)"]
    assert dict(zip(rows["task"], rows["label"], strict=True)) == fitted.labels_
    assert rows["p(no)"].tolist() == fitted.posteriors_[:, 0].tolist()
    assert rows["entropy"].tolist() == [0.0, 1.0]


def test_skills_as_a_frame() -> None:
    fitted = venire.OneCoin().fit(ROWS)
    assert list(fitted.skills_frame("pandas")) == ["worker", "labels", "skill"]
    frame = fitted.skills_frame("pandas", intervals=True)
    assert list(frame) == ["worker", "labels", "skill", "low", "high"]
    assert frame["labels"].tolist() == [2, 2]
    votes = venire.MajorityVote().fit(ROWS).skills_frame("pandas", intervals=True)
    assert (votes["low"] <= votes["skill"]).all()
    assert (votes["skill"] <= votes["high"]).all()


def test_items_without_labels_have_no_verdict() -> None:
    table = LabelTable.from_matrix([[0, 0], [-1, -1], [1, 1]])
    frame = venire.MajorityVote().fit(table).to_frame("polars")
    assert frame["label"].to_list() == [0, None, 1]


def test_without_any_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__
    hidden = ("pandas", "polars", "pyarrow")

    def importing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in hidden:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    fitted = venire.MajorityVote().fit(ROWS)
    for name in [m for m in sys.modules if m.partition(".")[0] in hidden]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", importing)
    monkeypatch.setattr(frames, "import_module", importing)
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pyarrow is not installed.*venire\[data\]"):
        fitted.to_frame()
    with pytest.raises(InputError, match="pip install polars, or take another backend"):
        fitted.to_frame("polars")
