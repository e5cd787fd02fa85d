"""An estimator of one's own: the page is true, the check finds faults, names go for objects."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import venire as vn
from venire.errors import InputError, UnknownName
from venire.estimators import BaseEstimator
from venire.testing import check_competence

PAGE = Path(__file__).parents[3] / "docs" / "own-estimator.md"
ROWS = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "yes")]


def test_the_page_runs_and_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```(python)?\n(.*?)```", PAGE.read_text(), re.S)
    module = ModuleType("own_estimator")  # so that what it defines can be pickled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for kind, text in blocks:
            if kind:
                exec(compile(text, str(PAGE), "exec"), module.__dict__)
    assert printed.getvalue() == "".join(text for kind, text in blocks if not kind)


class NotItself(vn.MajorityVote):
    def fit(self, labels: Any) -> Any:
        super().fit(labels)
        return vn.MajorityVote().fit(labels)


class OnlyTables(vn.OneCoin):
    def fit(self, labels: Any, gold: Any = None) -> Any:
        assert isinstance(labels, vn.LabelTable), "fit takes no rows"
        return super().fit(labels)


@pytest.mark.parametrize(("cls", "says"), [(NotItself, "does not return"), (OnlyTables, "no rows")])
def test_the_check_finds_faults(cls: type[BaseEstimator], says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        check_competence(cls())


def test_what_is_concluded_must_fit_the_table() -> None:
    table = vn.as_table(ROWS)
    with pytest.raises(InputError, match=r"posteriors of the shape \(2,\), expected \(2, 2\)"):
        vn.MajorityVote().conclude(table, np.ones(2), np.ones(2))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"competences": [2.0, 0.5]}, "competences with 2 among them, expected probabilities"),
        ({"competences": [np.nan, 0.5]}, "competences with nan"),
        ({"posteriors": [[3.0, 1.0], [0.0, 1.0]]}, "posteriors with 3 .* with the sum 1"),
        (
            {"posteriors": [[0.1, 0.1], [0.0, 1.0]]},
            "posteriors that sum to 0.2, expected 1",
        ),
        ({"confusions": np.zeros((2, 2, 2))}, "confusions that sum to 0, expected 1"),
        ({"priors": [1.0, 1.0]}, "priors that sum to 2, expected 1"),
    ],
)
def test_what_is_concluded_must_be_probabilities(found: dict[str, Any], says: str) -> None:
    right: dict[str, Any] = {"competences": [0.9, 0.5], "posteriors": np.full((2, 2), 0.5)}
    with pytest.raises(InputError, match=says):
        vn.MajorityVote().conclude(vn.as_table(ROWS), **(right | found))


class Forgetful(vn.MajorityVote):
    def fit(self, labels: Any) -> Any:
        super().fit(labels)


def test_a_fit_that_returns_nothing_is_told_so() -> None:
    learning = vn.LearnWhileServing(estimator=Forgetful())
    for use in (
        lambda: Forgetful().fit(ROWS),
        lambda: vn.simulate(vn.World.synthetic(seed=0), "greedy", learning, slots=20),
    ):
        with pytest.raises(InputError, match="fit returned NoneType, expected the estimator"):
            use()


@pytest.mark.parametrize("method", [vn.MajorityVote, vn.WeightedMajority, vn.DawidSkene])
def test_three_arrays(method: Any) -> None:
    arrays = tuple(zip(*ROWS, strict=True))
    assert method().fit(*arrays).labels_ == method().fit(ROWS).labels_
    named = dict(zip(("tasks", "workers", "labels"), arrays, strict=True))
    assert method().fit(**named).labels_ == method().fit(ROWS).labels_
    assert method().fit_predict(*map(np.array, arrays)) == method().fit(ROWS).labels_


def test_gold_is_still_taken_by_place() -> None:
    assert vn.DawidSkene().fit(ROWS, {"b": "no"}).labels_["b"] == "no"
    assert vn.DawidSkene().fit(ROWS, {"b": "no"}, None).labels_["b"] == "no"


def test_three_arrays_of_numbers() -> None:
    arrays = ["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 4.0]
    assert set(vn.RobustMean().fit(*arrays).values_) == {"a", "b"}


def test_policies_learnings_and_estimators_go_by_name() -> None:
    world = vn.World.synthetic(seed=0)
    by_name = vn.simulate(world, "greedy", "while-serving", slots=30)
    by_object = vn.simulate(world, vn.Greedy(), vn.LearnWhileServing(), slots=30)
    assert by_name.touches.tobytes() == by_object.touches.tobytes()
    by_names = vn.Scheduler(["ann"], ["no", "yes"], "realised", "while-serving").state
    assert (by_names.policy, by_names.learning) == (vn.Realised(), vn.LearnWhileServing())
    assert vn.LearnWhileServing(estimator="one-coin").estimator.name == "one-coin"  # type: ignore[union-attr]
    with pytest.raises(UnknownName, match="unknown policy 'gredy': did you mean 'greedy'"):
        vn.Scheduler(["ann"], ["no", "yes"], policy="gredy")
    with pytest.raises(UnknownName, match="unknown method 'one-con': did you mean 'one-coin'"):
        vn.LearnThenServe(5, estimator="one-con")
    with pytest.raises(InputError, match=r"got estimator=<class .*, expected a name such as"):
        vn.LearnThenServe(5, estimator=vn.OneCoin)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("what", "name", "says"),
    [
        ("item", "id", "an item in a policy has no attribute 'id': did you mean 'number'"),
        ("item", "wieght", "did you mean 'weight'"),
        ("labeler", "competence", "a labeler in a policy .* did you mean 'evidence'"),
        ("labeler", "colour", "has no attribute 'colour', but capacity, evidence, number"),
    ],
)
def test_a_policy_that_asks_for_what_there_is_not(what: str, name: str, says: str) -> None:
    class Curious(vn.PythonPolicy):
        def choose(self, labeler: Any, items: Any, slot: int) -> Any:
            return getattr(items[0] if what == "item" else labeler, name)

    with pytest.raises(AttributeError, match=says):
        vn.simulate(vn.World.synthetic(seed=0), Curious(), slots=3)


@pytest.mark.parametrize("order", [3, [0, 1]])
def test_a_policy_whose_order_is_of_no_labelers(order: Any) -> None:
    class Ordered(vn.PythonPolicy):
        def choose(self, labeler: Any, items: Any, slot: int) -> Any:
            return items[0]

        def order(self, labelers: Any, slot: int) -> Any:
            return order

    with pytest.raises(InputError, match="expected a list of some of the labelers"):
        vn.simulate(vn.World.synthetic(seed=0), Ordered(), slots=3)


def test_a_table_is_shown_in_a_line() -> None:
    table = vn.as_table([(i, m, (i + m) % 9) for i in range(500) for m in range(5)])
    assert repr(table) == (
        "LabelTable(2,500 labels of 500 items by 5 labelers, classes 0, 1, 2, 3, 4, 5, and 3 more)"
    )


@pytest.mark.parametrize("seed", ["a", -1, 1.5])
@pytest.mark.parametrize("method", [vn.MajorityVote, vn.OneCoin, vn.Auto])
def test_a_seed_that_is_none_is_refused(method: Any, seed: Any) -> None:
    with pytest.raises(InputError, match="expected a whole number from 0 on"):
        method(seed=seed).fit(ROWS)
