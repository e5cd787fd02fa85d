"""Snapshots of earlier versions, which kept a stream of incremental EM."""

from pathlib import Path
from typing import Any

import numpy as np

from venire.scheduling import LearnWhileServing
from venire.scheduling.estimates import labels_of_stream

DATA = Path(__file__).parent.parent.parent / "data"

#: What the old estimator thought of the labelers.
OLD = {
    "dawid-skene": [0.79847827, 0.77430129, 0.76161842, 0.68686138],
    "one-coin": [0.79389324, 0.7552878, 0.73776194, 0.61441169],
}


def saved(model: str) -> tuple[dict[str, Any], list[tuple[int, int, int]]]:
    """The arrays of such a stream, and the labels in its window (the last 32 of 40 items)."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(40, 1))
    said = np.where(rng.random((40, 4)) < [0.9, 0.8, 0.8, 0.7], truth, 1 - truth)
    with np.load(DATA / f"stream-1-{model}.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, [(i, m, int(said[i, m])) for i in range(8, 40) for m in range(4)]


def test_the_labels_of_the_window_and_the_belief_are_kept() -> None:
    for model in ("dawid-skene", "one-coin"):
        arrays, rows = saved(model)
        kept = labels_of_stream(arrays)
        assert [tuple(row[:3]) for row in kept["labels"].tolist()] == rows
        np.testing.assert_allclose(kept["found.competences"], OLD[model], atol=1e-7)
        assert ("found.confusions" in kept) == (model == "dawid-skene")


def test_a_learner_goes_on_from_such_a_snapshot() -> None:
    arrays, rows = saved("dawid-skene")
    learner = LearnWhileServing().begin([None] * 4, 2)
    own = {n: a for n, a in learner.state().items() if not n.startswith("estimate.")}
    learner.restore(own | {f"estimate.{n}": a for n, a in arrays.items()})
    assert learner.belief is not None
    np.testing.assert_allclose(learner.belief.competences, OLD["dawid-skene"], atol=1e-7)
    none = np.zeros(0, np.int64)
    for _ in range(3):
        learner.learn(none, none, none)
    fresh = LearnWhileServing().begin([None] * 4, 2)
    columns = np.array(rows).T
    fresh.learn(*columns)
    assert fresh.belief is not None
    np.testing.assert_allclose(learner.belief.competences, fresh.belief.competences)
