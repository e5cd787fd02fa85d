"""Snapshots of earlier versions, which kept a stream of incremental EM."""

import numpy as np

from venire.competence.stream_files import pack
from venire.competence.streaming import Streaming
from venire.scheduling import LearnWhileServing
from venire.scheduling.old_estimates import labels_of_stream


def saved(model: str) -> tuple[Streaming, list[tuple[int, int, int]]]:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(40, 1))
    said = np.where(rng.random((40, 4)) < [0.9, 0.8, 0.8, 0.7], truth, 1 - truth)
    stream = Streaming(classes=(0, 1), labelers=tuple(range(4)), model=model)  # type: ignore[arg-type]
    item, labeler = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    stream.update(item, labeler, said.ravel())
    rows = zip(item.tolist(), labeler.tolist(), said.ravel().tolist(), strict=True)
    return stream, sorted(rows)


def test_the_labels_of_the_window_and_the_belief_are_kept() -> None:
    for model in ("dawid-skene", "one-coin"):
        stream, rows = saved(model)
        kept = labels_of_stream(dict(pack(stream)))
        assert [tuple(row[:3]) for row in kept["labels"].tolist()] == rows
        np.testing.assert_array_equal(kept["found.competences"], stream.competences_)
        assert ("found.confusions" in kept) == (model == "dawid-skene")


def test_a_learner_goes_on_from_such_a_snapshot() -> None:
    stream, rows = saved("dawid-skene")
    learner = LearnWhileServing().begin([None] * 4, 2)
    own = {n: a for n, a in learner.state().items() if not n.startswith("estimate.")}
    learner.restore(own | {f"estimate.{n}": a for n, a in pack(stream).items()})
    assert learner.belief is not None
    np.testing.assert_array_equal(learner.belief.competences, stream.competences_)
    none = np.zeros(0, np.int64)
    for _ in range(3):
        learner.learn(none, none, none)
    fresh = LearnWhileServing().begin([None] * 4, 2)
    columns = np.array(rows).T
    fresh.learn(*columns)
    assert fresh.belief is not None
    np.testing.assert_allclose(learner.belief.competences, fresh.belief.competences)
