"""Streaming: what the estimator of tables says of the labels in the window, and its invariants."""

import gc
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.estimators.worlds import Ints, label_matrices, real, simulate
from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.dependence import certainty
from venire.estimators.streaming.estimator import Streaming
from venire.labels import LabelTable
from venire.paper.accuracy import clamp_confusions
from venire.scheduling import LearnWhileServing
from venire.testing import check_competence

MODELS = ("one-coin", "dawid-skene")


def stranger(K: int) -> Any:
    return np.where(np.eye(K, dtype=bool), 7.0, 3.0 / (K - 1))


def plain_posterior(
    labels: dict[int, int], confusions: Any, priors: Any, certain: float
) -> list[float]:
    """The posterior of an item, by the docstring: labels by labeler."""
    q = [
        (float(priors[k]) * float(np.prod([confusions[m][k][x] for m, x in labels.items()])))
        ** certain
        for k in range(len(priors))
    ]
    return [x / sum(q) for x in q]


@settings(max_examples=40, deadline=None)
@given(label_matrices(), st.integers(1, 20), st.integers(0, 2**32))
def test_it_says_what_the_batch_says_of_the_same_labels(
    drawn: tuple[Ints, int], batch: int, seed: int
) -> None:
    """However they come: matrices and shares are those of `Auto`, posteriors follow."""
    matrix, K = drawn
    M = matrix.shape[1]
    rows = np.argwhere(matrix >= 0)
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    stream = Streaming(range(K), range(M), drift=None)
    for a in range(0, len(rows), batch):
        i, m = rows[a : a + batch].T
        stream.update(i, m, matrix[i, m])
    if not len(rows):
        return
    held, index = np.unique(rows[:, 0], return_inverse=True)
    said = matrix[rows[:, 0], rows[:, 1]]
    names = range(len(held)), range(M), range(K)
    table = LabelTable.from_codes(index, rows[:, 1], said, *names)
    fitted = Auto(stranger=stranger(K)).fit(table)
    square = clamp_confusions(fitted.rows_, 0.01)
    np.testing.assert_allclose(stream.confusions_, square, atol=1e-9)
    np.testing.assert_allclose(stream.priors_, fitted.shares_, atol=1e-9)
    plain = [
        plain_posterior({m: x for m, x in enumerate(row) if x >= 0}, square, fitted.shares_, 1.0)
        for row in matrix[held].tolist()
    ]
    certain = certainty(table, np.array(plain))
    for i in held.tolist():
        given_labels = {m: int(x) for m, x in enumerate(matrix[i].tolist()) if x >= 0}
        expected = plain_posterior(given_labels, square, fitted.shares_, certain)
        np.testing.assert_allclose(stream.posterior_of([i])[0], expected, atol=1e-9)


def test_it_learns_what_learning_while_serving_learns() -> None:
    table, _ = simulate([0.9, 0.8, 0.75, 0.7, 0.6], 300, seed=1, share=0.8)
    stream = Streaming((0, 1), range(5)).partial_fit(table)
    learner = LearnWhileServing().begin([None] * 5, 2)
    learner.learn(*(a.astype(np.int64) for a in (table.item, table.labeler, table.said)))
    assert learner.belief is not None
    learned = np.asarray(learner.belief.confusions, dtype=np.float64)
    np.testing.assert_allclose(stream.confusions_, learned, atol=1e-9)


def test_spammers_do_not_deceive_it() -> None:
    """12 labelers of 0.8 and eight who always say one class, three labels an item."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=900)
    stream = Streaming((0, 1), range(20))
    votes = np.zeros((900, 2))
    for i in range(900):
        who = rng.permutation(20)[:3]
        said = np.where(who >= 12, 0, np.where(rng.random(3) < 0.8, truth[i], 1 - truth[i]))
        stream.update([i] * 3, who, said)
        np.add.at(votes[i], said, 1)
    right = np.mean([stream.labels_[i] == truth[i] for i in range(900)])
    assert right >= (votes.argmax(axis=1) == truth).mean() + 0.02
    assert stream.competences_[12:] == pytest.approx([0.5] * 8, abs=0.02)


@settings(max_examples=20, deadline=None)
@given(label_matrices(), st.sampled_from(MODELS), st.randoms(use_true_random=False))
def test_order_is_irrelevant(drawn: tuple[Ints, int], model: Any, random: Any) -> None:
    matrix, K = drawn
    rows = [(int(i), int(m), int(matrix[i, m])) for i, m in np.argwhere(matrix >= 0)]
    one, two = (Streaming(range(K), range(matrix.shape[1]), model=model) for _ in range(2))
    for stream, order in ((one, rows), (two, random.sample(rows, len(rows)))):
        for i, m, x in order:
            stream.update([i], [m], [x])
    np.testing.assert_allclose(one.confusions_, two.confusions_, atol=1e-9)
    items = list(one.state.items)
    np.testing.assert_allclose(one.posterior_of(items), two.posterior_of(items), atol=1e-9)


def everything(stream: Streaming) -> list[Any]:
    """All that a stream is, to the bit."""
    state = stream.state
    arrays: list[Any] = [state.labels, *(state.looked or ())[:2]]
    if state.monitor is not None:
        arrays += [getattr(state.monitor, n) for n in state.monitor.arrays()]
    finals = state.finals.posteriors(state.finals.of, max(2, len(state.classes)))
    names = state.classes, state.labelers, list(state.items.items()), list(state.finals.of)
    rest = finals.tobytes(), state.known, state.taken, state.next_look
    return [*(a.tobytes() for a in arrays), *map(repr, names + rest)]


@pytest.mark.parametrize("repeats", ["first", "last"])
def test_a_repeated_batch_changes_nothing(repeats: Any) -> None:
    table, _ = simulate([0.9, 0.8, 0.7], 50, seed=0)
    stream = Streaming(repeats=repeats).partial_fit(table)
    before = everything(stream)
    assert everything(stream.partial_fit(table)) == before


def test_a_repeated_label_is_an_error_and_nothing_is_changed() -> None:
    rows = [("a", "ann", "x"), ("a", "bob", "y")]
    stream = Streaming().partial_fit(rows)
    before = everything(stream)
    with pytest.raises(InputError, match=r"'bob' labels item 'a' more than once"):
        stream.partial_fit([("b", "eve", "z"), ("a", "bob", "y"), ("c", "bob", "x")])
    assert everything(stream) == before
    with pytest.raises(InputError, match="more than once"):
        stream.update(["q", "q"], [0, 0], [1, 1])
    assert everything(stream) == before


def test_the_first_or_the_last_label_counts() -> None:
    for repeats, said in (("first", "x"), ("last", "y")):
        stream = Streaming("xy", repeats=repeats)  # type: ignore[arg-type]
        stream.partial_fit([("a", "ann", "x")]).partial_fit([("a", "ann", "y")])
        assert stream.labels_ == {"a": said}
        stream.update(["b", "b"], [0, 0], [0, 1])
        assert stream.labels_["b"] == said
        fresh = Streaming("xy").partial_fit([("a", "ann", said), ("b", "ann", said)])
        np.testing.assert_allclose(stream.refine().confusions_, fresh.confusions_, atol=1e-9)


def test_names_come_as_they_come() -> None:
    stream = Streaming()
    stream.partial_fit([("a", "ann", "yes"), ("a", "bob", "no"), ("b", "ann", "no")])
    assert (stream.classes_, stream.labelers_) == (("no", "yes"), ("ann", "bob"))
    stream.partial_fit([("c", "eve", "maybe"), ("a", "eve", "yes")])
    assert stream.classes_ == ("no", "yes", "maybe")
    assert stream.confusions_.shape == (3, 3, 3)
    np.testing.assert_allclose(stream.confusions_.sum(axis=2), 1)
    np.testing.assert_allclose(stream.posteriors_.sum(axis=1), 1)
    assert set(stream.labels_) == {"a", "b", "c"}
    assert stream.skill_of("eve") == pytest.approx(stream.skills_["eve"])
    assert list(stream.drift_) == ["ann", "bob", "eve"]


def test_labels_may_come_one_by_one() -> None:
    table, _ = simulate([0.9, 0.8, 0.7], 60, seed=5, classes=3)
    rows = list(zip(table.item.tolist(), table.labeler.tolist(), table.said.tolist(), strict=True))
    order = tuple(dict.fromkeys(said for _, _, said in rows))
    single, known = Streaming(), Streaming(order)
    for row in rows:
        single.partial_fit([row])
        known.partial_fit([row])
        assert single.classes_ == order[: len(single.classes_)]
    np.testing.assert_allclose(single.confusions_, known.confusions_, atol=1e-6)


def test_one_class_only_so_far(tmp_path: Path) -> None:
    stream = Streaming().partial_fit([("a", "ann", "x"), ("b", "bob", "x")])
    assert stream.classes_ == ("x",)
    assert stream.labels_ == {"a": "x", "b": "x"}
    assert all(list(p) == ["x"] and 0.5 < p["x"] < 1 for p in stream.probas_.values())
    stream.save(tmp_path / "stream")
    assert Streaming.load(tmp_path / "stream").probas_ == stream.probas_
    stream.partial_fit([("c", "ann", "y")])
    assert stream.labels_ == {"a": "x", "b": "x", "c": "y"}
    np.testing.assert_allclose([sum(p.values()) for p in stream.probas_.values()], 1)


def test_an_empty_batch_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("task,worker,label\n")
    nothing = np.zeros(0, np.int64)
    columns: dict[str, list[str]] = {"task": [], "worker": [], "label": []}
    table = LabelTable.from_codes(nothing, nothing, nothing, (), (), ("x", "y"))
    empties: list[Any] = [[], columns, pd.DataFrame(columns), (nothing,) * 3, file, table]
    for stream in Streaming(), Streaming("xy"), Streaming().partial_fit([("a", "ann", "x")]):
        before = everything(stream)
        for empty in empties:
            stream.partial_fit(empty)
            assert everything(stream) == before
    with pytest.raises(InputError, match="no rows"):
        Streaming().fit([])
    with pytest.raises(InputError, match="one class only"):
        Streaming().fit([("a", "ann", "x")])


def test_classes_that_come_late_end_as_classes_known_before() -> None:
    table, _ = simulate([0.9, 0.8, 0.8, 0.7], 200, seed=3, classes=3)
    late = np.flatnonzero(table.said == 2)
    early = np.flatnonzero(table.said != 2)
    rows = [
        (int(table.item[e]), int(table.labeler[e]), int(table.said[e])) for e in (*early, *late)
    ]
    grown = Streaming().partial_fit(rows[: early.size])
    grown.partial_fit([*rows[early.size :], (999, 0, 0)])
    known = Streaming((0, 1, 2)).partial_fit([*rows, (999, 0, 0)])
    np.testing.assert_allclose(grown.confusions_, known.confusions_, atol=1e-6)


def test_old_items_leave_and_their_verdicts_are_final() -> None:
    table, truth = simulate([0.9, 0.85, 0.8, 0.75], 500, seed=0)
    stream = Streaming((0, 1), range(4), max_items=64, max_finals=100)
    for i in range(0, 500, 5):
        part = slice(table.start[i], table.start[i + 5])
        stream.update(table.item[part], table.labeler[part], table.said[part])
        assert len(stream.state.items) <= 64
        assert len(stream.state.finals.of) <= 100
    assert stream.is_final(400)
    assert not stream.is_final(499)
    assert len(stream.state.labels) == 4 * len(stream.state.items)
    labels = stream.labels_
    assert len(labels) in range(160, 165)
    assert np.mean([labels[i] == truth[int(i)] for i in labels]) > 0.9  # type: ignore[call-overload]
    assert stream.competences_ == pytest.approx([0.9, 0.85, 0.8, 0.75], abs=0.15)

    before, skill = stream.posterior_of([400]), stream.skill_of(0)
    stream.partial_fit([(400, "late", 1 - labels[400]), (401, "late", 1 - labels[401])])  # type: ignore[operator]
    assert (stream.posterior_of([400]) == before).all()
    assert stream.skill_of(0) == pytest.approx(skill)
    assert "late" in stream.skills_
    with pytest.raises(InputError, match="item 3 is not known"):
        stream.posterior_of([499, 3])


def test_a_batch_larger_than_the_window() -> None:
    table, truth = simulate([0.9, 0.85, 0.8, 0.75], 500, seed=0)
    stream = Streaming(max_items=50, max_finals=1000).partial_fit(table)
    assert len(stream.state.items) <= 50
    assert len(stream.labels_) == 500
    assert np.mean([stream.labels_[i] == truth[i] for i in range(500)]) > 0.9


@pytest.mark.slow
def test_memory_is_bounded() -> None:
    stream = Streaming((0, 1), range(20), max_items=200, drift=0.05)
    rng = np.random.default_rng(0)

    def hours(first: int) -> int:
        for i in range(first, first + 800, 50):
            item = np.repeat(np.arange(i, i + 50), 6)
            labeler = np.argsort(rng.random((50, 20)), axis=1)[:, :6].ravel()
            stream.update(item, labeler, rng.integers(2, size=300))
        gc.collect()  # what waits to be collected is no growth
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    one, two = hours(0), hours(800)
    tracemalloc.stop()
    assert two < 1.05 * one + 60_000


def test_reading_changes_nothing_and_the_same_stream_gives_the_same() -> None:
    table, _ = simulate([0.9, 0.8, 0.7, 0.6], 200, seed=0, classes=3, share=0.6)
    one, two = (Streaming(max_items=60).partial_fit(table) for _ in range(2))
    before = everything(one)
    for name in ("labels_", "probas_", "posteriors_", "skills_", "confusions_", "priors_",
                 "competences_", "items_", "drift_", "log_likelihood_"):  # fmt: skip
        getattr(one, name)
    one.posterior_of([199])
    one.confusions_[:], one.priors_[:], one.posteriors_[:] = 0, 0, 0
    assert everything(one) == before == everything(two)
    assert everything(pickle.loads(pickle.dumps(one))) == before


@pytest.mark.parametrize("model", MODELS)
def test_passes_the_battery(model: Any) -> None:
    check_competence(Streaming(model=model))  # type: ignore[arg-type]


def test_a_labeler_with_one_label_is_not_perfect() -> None:
    table, _ = simulate([0.9, 0.8, 0.8, 0.7], 100, seed=0)
    for model in MODELS:
        stream = Streaming(model=model).partial_fit(table)  # type: ignore[arg-type]
        stream.partial_fit(LabelTable.from_rows([(0, "new", stream.labels_[0])], classes=(0, 1)))
        assert 0.5 < stream.skill_of("new") < 0.97


@pytest.mark.parametrize(
    "bad",
    [
        {"model": "two-coin"}, {"repeats": "never"}, {"max_items": 0}, {"max_finals": -1},
        {"half_life": 0.5}, {"classes": ["a"]}, {"classes": ["a", "a"]}, {"labelers": ["m", "m"]},
        {"drift": 2.0},
    ],
)  # fmt: skip
def test_refuses_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected|known"):
        Streaming(**bad)


def test_refuses_labels() -> None:
    stream = Streaming("xy", ["ann"])
    before = everything(stream)
    for bad in (["a"], [1], [0]), (["a"], [0], [2]), (["a"], [0, 0], [1]), (["a"], [-1], [0]):
        with pytest.raises(InputError, match="expected"):
            stream.update(*bad)
    with pytest.raises(InputError, match="expected one of the classes"):
        stream.partial_fit([("a", "ann", "z")])
    with pytest.raises(InputError, match="expected one of the classes"):
        stream.partial_fit(LabelTable.from_rows([("a", "bob", "z"), ("a", "ann", "x")]))
    with pytest.raises(InputError, match="'zoe' is not known"):
        stream.skill_of("zoe")
    assert everything(stream) == before


@pytest.mark.parametrize("name", ["rte", "llmjudge2024_binary"])
def test_a_hundred_batches_end_where_the_table_does(name: str) -> None:
    table, _ = real(name)
    fitted = Auto(stranger=stranger(len(table.classes))).fit(table)
    order = np.random.default_rng(0).permutation(table.said.size)
    stream = Streaming(list(table.classes), list(table.labelers), drift=None)
    for part in np.array_split(order, 100):
        stream.update(table.item[part], table.labeler[part], table.said[part])
    expected = clamp_confusions(fitted.rows_, 0.01)
    np.testing.assert_allclose(stream.confusions_, expected, atol=1e-6)
