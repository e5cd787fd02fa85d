"""Streaming against a plain reference, against the batch fit, and its invariants."""

import pickle
import tracemalloc
from collections.abc import Hashable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.competence.stream_reference import Label, Reference
from tests.unit.competence.worlds import Ints, label_matrices, real, simulate
from venire.competence import DawidSkene, OneCoin
from venire.competence.streaming import Streaming
from venire.errors import InputError
from venire.labels import LabelTable
from venire.testing import check_competence

MODELS = ("one-coin", "dawid-skene")

#: Arrays of noise have no truth: the stream may well find their classes misnamed.
misnamed = pytest.mark.filterwarnings("ignore:the stream has come to take")


def labels_of(matrix: Ints) -> list[Label]:
    return [Label(int(i), int(m), int(matrix[i, m])) for i, m in np.argwhere(matrix >= 0)]


def batches(labels: list[Label], random: Random, most: int = 4) -> list[list[Label]]:
    shuffled = random.sample(labels, len(labels))
    cuts = sorted(random.randrange(len(labels) + 1) for _ in range(random.randrange(most)))
    ends = [0, *cuts, len(labels)]
    return [shuffled[a:b] for a, b in pairwise(ends) if a < b]


def feed(stream: Streaming, batch: list[Label]) -> Streaming:
    item, labeler, said = (list(column) for column in zip(*batch, strict=True))
    return stream.update(item, labeler, said)


def pseudo(K: int) -> list[list[float]]:
    return [[2.0 if x == k else 0.5 for x in range(K)] for k in range(K)]


def stream_for(K: int, labelers: int, model: Any, **more: Any) -> Streaming:
    usual = {"prior": pseudo(K), "drift": None, "max_items": None}
    return Streaming(range(K), range(labelers), model=model, **{**usual, **more})


@misnamed
@settings(max_examples=60)
@given(
    label_matrices(),
    st.sampled_from(MODELS),
    st.integers(0, 3),
    st.sampled_from([None, 3.0]),
    st.randoms(use_true_random=False),
)
def test_equals_the_plain_reference(
    drawn: tuple[Ints, int], model: str, sweeps: int, half_life: float | None, random: Random
) -> None:
    matrix, K = drawn
    M = matrix.shape[1]
    stream = stream_for(K, M, model, sweeps=sweeps, half_life=half_life)
    plain = Reference(K, M, pseudo(K), model == "one-coin", half_life or 0)
    for batch in batches(labels_of(matrix), random):
        feed(stream, batch)
        plain.partial_fit(batch, sweeps)
    np.testing.assert_allclose(stream.confusions_, plain.P, atol=1e-9)
    np.testing.assert_allclose(stream.priors_, plain.pi, atol=1e-9)
    for i in plain.labels:
        np.testing.assert_allclose(stream.posterior_of([i])[0], plain.belief(i), atol=1e-9)


def test_hundreds_of_half_lives_do_not_overflow() -> None:
    table, _ = simulate([0.9, 0.8, 0.7], 400, seed=0)
    stream = stream_for(2, 3, "one-coin", half_life=2.0, sweeps=1)
    plain = Reference(2, 3, pseudo(2), True, 2.0)
    for batch in np.array_split(np.arange(1200), 40):
        rows = [Label(int(table.item[e]), int(table.labeler[e]), int(table.said[e])) for e in batch]
        feed(stream, rows)
        plain.partial_fit(rows, 1)
    np.testing.assert_allclose(stream.confusions_, plain.P, atol=1e-9)


@misnamed
@given(label_matrices(), st.sampled_from(MODELS), st.randoms(use_true_random=False))
def test_refined_it_is_a_fixed_point_of_batch_em(
    drawn: tuple[Ints, int], model: str, random: Random
) -> None:
    matrix, K = drawn
    stream = stream_for(K, matrix.shape[1], model)
    for batch in batches(labels_of(matrix), random):
        feed(stream, batch)
    stream.refine(max_iter=20_000, tol=1e-10)
    plain = Reference(K, matrix.shape[1], pseudo(K), model == "one-coin")
    plain.labels = {i: {m: (x, 0) for m, x in enumerate(r) if x >= 0} for i, r in enumerate(matrix)}
    plain.labels = {i: given for i, given in plain.labels.items() if given}
    plain.P, plain.pi = stream.confusions_.tolist(), stream.priors_.tolist()
    plain.visit(list(plain.labels))
    np.testing.assert_allclose(plain.P, stream.confusions_, atol=1e-6)
    np.testing.assert_allclose(plain.pi, stream.priors_, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("batch", [30, 7, 1000])
def test_ends_where_the_batch_fit_ends(classes: int, batch: int) -> None:
    table, _ = simulate([0.9, 0.8, 0.75, 0.7, 0.6], 300, seed=1, classes=classes, share=0.8)
    order = np.random.default_rng(batch).permutation(table.said.size)
    args = table.item[order], table.labeler[order], table.said[order]
    prior = np.array(pseudo(classes))
    full = DawidSkene(prior=prior, tol=1e-9, max_iter=5000).fit(table)
    coin = OneCoin(prior=(7, 3), tol=1e-9, max_iter=5000).fit(table)
    for fit, model, given_prior in ((full, "dawid-skene", prior), (coin, "one-coin", (7, 3))):
        stream = stream_for(classes, 5, model, prior=given_prior)
        for a in range(0, order.size, batch):
            stream.update(*(x[a : a + batch] for x in args))
        stream.refine(max_iter=5000, tol=1e-9)
        assert stream.converged_
        np.testing.assert_allclose(stream.confusions_, fit.confusions_, atol=1e-6)
        np.testing.assert_allclose(stream.posterior_of(table.items), fit.posteriors_, atol=1e-6)
        assert stream.skills_ == pytest.approx(fit.skills_, abs=1e-6)


@misnamed
@given(label_matrices(), st.sampled_from(MODELS), st.randoms(use_true_random=False))
def test_order_within_a_batch_is_irrelevant(
    drawn: tuple[Ints, int], model: str, random: Random
) -> None:
    matrix, K = drawn
    parts = batches(labels_of(matrix), random)
    one, two = (stream_for(K, matrix.shape[1], model, sweeps=0) for _ in range(2))
    for part in parts:
        feed(one, part)
        feed(two, random.sample(part, len(part)))
    np.testing.assert_allclose(one.confusions_, two.confusions_, atol=1e-12)
    items = list(one._places.of)
    np.testing.assert_allclose(one.posterior_of(items), two.posterior_of(items), atol=1e-12)


def everything(stream: Streaming) -> list[Any]:
    """All that a stream is, to the bit."""
    core = stream._core
    arrays: list[Any] = [*core.window, *core.counts]
    arrays += [getattr(core.monitor, n) for n in core.monitor.arrays()] if core.monitor else []
    names = stream._class, stream._labeler, stream._places.of, stream._places.free
    finals = stream._finals.posteriors(stream._finals.of, core.classes)
    rest = list(stream._finals.of), finals.tobytes(), core.calls, core.labels, core.next_look
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
        stream = Streaming("xy", prior=(2, 1), repeats=repeats)  # type: ignore[arg-type]
        stream.partial_fit([("a", "ann", "x")]).partial_fit([("a", "ann", "y")])
        assert stream.labels_ == {"a": said}
        stream.update(["b", "b"], [0, 0], [0, 1])
        assert stream.labels_["b"] == said
        fresh = Streaming("xy", prior=(2, 1))
        fresh.partial_fit([("a", "ann", said), ("b", "ann", said)]).refine()
        np.testing.assert_allclose(stream.refine().confusions_, fresh.confusions_, atol=1e-5)


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
    for stream in single, known:
        stream.refine(2000, 1e-9)
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
    grown = Streaming(prior=(2, 1)).partial_fit(rows[: early.size])
    grown.partial_fit([*rows[early.size :], (999, 0, 0)]).refine(2000, 1e-9)
    known = Streaming((0, 1, 2), prior=(2, 1)).partial_fit([*rows, (999, 0, 0)]).refine(2000, 1e-9)
    np.testing.assert_allclose(grown.confusions_, known.confusions_, atol=1e-6)


def test_old_items_leave_and_their_verdicts_are_final() -> None:
    table, truth = simulate([0.9, 0.85, 0.8, 0.75], 500, seed=0)
    stream = Streaming((0, 1), range(4), prior=(7, 3), max_items=64, max_finals=100)
    for i in range(0, 500, 5):
        part = slice(table.start[i], table.start[i + 5])
        stream.update(table.item[part], table.labeler[part], table.said[part])
        assert len(stream._places.of) <= 64
        assert len(stream._finals.of) <= 100
    assert stream.is_final(400)
    assert not stream.is_final(499)
    assert {len(a) for a in stream._core.window[:5]} <= set(range(64, 129))
    assert len(stream._core.window.said) < 1500
    labels = stream.labels_
    assert len(labels) in range(160, 165)
    assert np.mean([labels[i] == truth[int(i)] for i in labels]) > 0.9  # type: ignore[call-overload]
    assert stream.competences_ == pytest.approx([0.9, 0.85, 0.8, 0.75], abs=0.05)
    total = stream._core.counts.kept.sum() + stream._core.counts.folded.sum()
    assert total == pytest.approx(2000)

    before, skill = stream.posterior_of([400]), stream.skill_of(0)
    stream.partial_fit([(400, "late", 1 - labels[400]), (401, "late", 1 - labels[401])])  # type: ignore[operator]
    assert (stream.posterior_of([400]) == before).all()
    assert stream.skill_of(0) == pytest.approx(skill, abs=0.01)
    assert stream.skill_of("late") < stream.skill_of(3)
    with pytest.raises(InputError, match="item 3 is not known"):
        stream.posterior_of([499, 3])


def test_a_batch_larger_than_the_window() -> None:
    table, truth = simulate([0.9, 0.85, 0.8, 0.75], 500, seed=0)
    stream = Streaming(max_items=50, max_finals=1000).partial_fit(table)
    assert len(stream._places.of) <= 50
    assert len(stream.labels_) == 500
    assert np.mean([stream.labels_[i] == truth[i] for i in range(500)]) > 0.9


def test_memory_is_bounded() -> None:
    stream = Streaming((0, 1), range(20), max_items=500, drift=0.05)
    rng = np.random.default_rng(0)

    def hours(first: int) -> int:
        for i in range(first, first + 8000, 50):
            item = np.repeat(np.arange(i, i + 50), 6)
            labeler = np.argsort(rng.random((50, 20)), axis=1)[:, :6].ravel()
            stream.update(item, labeler, rng.integers(2, size=300))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    one, two = hours(0), hours(8000)
    tracemalloc.stop()
    assert two < 1.05 * one + 20_000


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


def test_the_mirror_image_is_left_with_a_warning() -> None:
    table, truth = simulate([0.9, 0.8, 0.8, 0.7], 300, seed=0)
    stream = stream_for(2, 4, "one-coin", prior=(7, 3)).partial_fit(table)
    core = stream._core
    for a in (core.counts.kept, core.counts.class_kept, core.window.posterior):
        a[:] = a[..., ::-1].copy()
    with pytest.warns(UserWarning, match="renamed the classes"):
        stream.refine()
    assert stream.competences_ == pytest.approx([0.9, 0.8, 0.8, 0.7], abs=0.06)
    assert np.mean([stream.labels_[i] == truth[i] for i in range(300)]) > 0.9


def test_a_labeler_with_one_label_is_not_perfect() -> None:
    table, _ = simulate([0.9, 0.8, 0.8, 0.7], 100, seed=0)
    for model in MODELS:
        stream = Streaming(model=model).partial_fit(table)  # type: ignore[arg-type]
        stream.partial_fit(LabelTable.from_rows([(0, "new", stream.labels_[0])], classes=(0, 1)))
        assert 0.5 < stream.skill_of("new") < 0.97


@pytest.mark.parametrize(
    "bad",
    [
        {"model": "two-coin"}, {"repeats": "never"}, {"max_items": 0}, {"sweeps": -1},
        {"half_life": 0.5}, {"classes": ["a"]}, {"classes": ["a", "a"]}, {"labelers": ["m", "m"]},
        {"drift": 2.0}, {"prior": -1.0}, {"prior": (1, 1)}, {"prior": [[1, 1, 1]] * 3},
        {"class_prior": "guess"}, {"classes": "ab", "class_prior": [1, 0]},
    ],
)  # fmt: skip
def test_refuses_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"expected|Known"):
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
@pytest.mark.parametrize("model", MODELS)
def test_a_hundred_batches_end_within_a_point_of_the_batch_fit(name: str, model: Any) -> None:
    table, truth = real(name)
    fit = DawidSkene() if model == "dawid-skene" else OneCoin()
    batch = _error(fit.fit(table).labels_, truth)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(table.said.size)
        stream = Streaming(list(table.classes), list(table.labelers), model=model)
        for part in np.array_split(order, 100):
            stream.update(table.item[part], table.labeler[part], table.said[part])
        verdicts: dict[Any, Hashable] = stream.labels_
        labels = {table.items[i]: label for i, label in verdicts.items()}
        assert _error(labels, truth) == pytest.approx(batch, abs=1.0)


def _error(labels: dict[Hashable, Hashable], truth: dict[Hashable, str]) -> float:
    return 100 * float(np.mean([labels[task] != truth[task] for task in labels if task in truth]))
