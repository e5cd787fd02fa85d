"""The same streams under other rules: what each gets right, what it spends, how long it takes.

Every method labels the same images at the same times with the same labels; a seed sets the
order, the times and the weights. What is counted:

    answered        share of the images that left with a verdict before the end; a learning
                    phase passes some over, and others may still wait when the stream ends
    right           share of right verdicts: among the answered, and among all that arrived
    labels          labels spent for each image that arrived
    delay           slots from arrival to the last label, among the labelled (the paper's)
    response        slots from arrival to the exit, among all; who still waits at the end counts
                    up to then, so it is a lower bound for a queue that grows
    true utility    the weight if the verdict is right, else 0, less the response; per image
    waiting         images still outstanding when the stream ends

Unlike `Run.utility`, which by the paper's rule counts from slot T_L and takes what an item has
earned at the horizon, all of these include the learning phase, and who still waits has nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.estimators import OneCoin
from venire.experiments.common.sheets import spread
from venire.experiments.digits.panel import DIGITS, SLOTS, DigitJob
from venire.experiments.digits.shift import LEARNING_SLOTS
from venire.model import Labeler
from venire.paper.accuracy import clamp_competence
from venire.scheduling import Algorithm2, Everyone, FixedOverlap, Greedy, Policy
from venire.scheduling.state.desk import HORIZON
from venire.simulation import Run, World, simulate

__all__ = ["METHODS", "Method", "Score", "Trial", "compare", "mean_and_spread", "score"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """What a method achieved on one stream; see the head of this module."""

    answered: float
    right_of_answered: float
    right_of_all: float
    labels_per_item: float
    delay: float
    response: float
    true_utility: float
    waiting: int

    @classmethod
    def measures(cls) -> tuple[str, ...]:
        """The names of what is measured."""
        return tuple(f.name for f in fields(cls))


@dataclass(frozen=True, eq=False)
class Trial:
    """A method on one stream: the run, its score and, if it learned any, the competences."""

    method: Method
    seed: int
    run: Run
    score: Score
    learned: Floats | None = None

    def record(self) -> dict[str, Any]:
        """One flat row of the saved table."""
        measured = {name: getattr(self.score, name) for name in Score.measures()}
        return {
            "method": self.method.key,
            "seed": self.seed,
            "items": len(self.run.rows),
        } | measured


@dataclass(frozen=True)
class Method:
    """A way to label the stream: `run(job, seed, learning_slots, slots)`."""

    key: str
    title: str
    run: Callable[[DigitJob, int, int, int], tuple[Run, Floats | None]]


def _learned(
    job: DigitJob, seed: int, learning_slots: int, slots: int
) -> tuple[Run, Floats | None]:
    """Algorithms 2, 3 and 1: competences learned without truth."""
    estimator = OneCoin(prior=None)
    learning = Algorithm2(learning_slots, seed=seed, estimator=estimator)
    run = simulate(job.world(seed), Greedy(), learning, slots)
    if not hasattr(estimator, "competences_"):  # nothing arrived to learn from
        return run, None
    return run, clamp_competence(estimator.competences_, len(DIGITS), learning.rho)


def _genie(job: DigitJob, seed: int, _: int, slots: int) -> tuple[Run, None]:
    """Algorithm 1 with the true competences from the start."""
    return simulate(job.world(seed), Greedy(), None, slots), None


def _best_alone(job: DigitJob, seed: int, _: int, slots: int) -> tuple[Run, None]:
    """The labeler who is right most often, first come, first served."""
    return simulate(job.only(job.best).world(seed), FixedOverlap(1), None, slots), None


def _by_majority(policy: Policy) -> Callable[[DigitJob, int, int, int], tuple[Run, None]]:
    """A policy that looks at nobody's competence, and a vote that counts everybody the same."""

    def run(job: DigitJob, seed: int, _: int, slots: int) -> tuple[Run, None]:
        return simulate(_all_equal(job.world(seed)), policy, None, slots), None

    return run


def _all_equal(world: World) -> World:
    """Everybody is believed to be equally good, so that every vote has the same weight."""
    return replace(world, panel=tuple(Labeler(who.id, 0.5, who.capacity) for who in world.panel))


METHODS = (
    Method("paper-learned", "paper, competences learned", _learned),
    Method("paper-genie", "paper, competences known", _genie),
    Method("overlap-3", "3 labels each, majority", _by_majority(FixedOverlap(3))),
    Method("overlap-5", "5 labels each, majority", _by_majority(FixedOverlap(5))),
    Method("best-alone", "best labeler alone", _best_alone),
    Method("everyone", "everyone labels all, majority", _by_majority(Everyone())),
)


def compare(
    job: DigitJob,
    seeds: Iterable[int],
    learning_slots: int = LEARNING_SLOTS,
    slots: int = SLOTS,
    methods: Sequence[Method] = METHODS,
) -> Iterator[Trial]:
    """Run every method on the stream of every seed.

    >>> from venire.experiments.digits import load_job
    >>> trials = list(compare(load_job(), seeds=[0], slots=60))
    >>> [trial.method.key for trial in trials if trial.score.answered < 0.5]
    ['best-alone', 'everyone']
    """
    for seed in seeds:
        for method in methods:
            run, learned = method.run(job, seed, learning_slots, slots)
            yield Trial(method, seed, run, score(run), learned)


def score(run: Run) -> Score:
    """Count what came of a run."""
    rows, truth = run.rows, run.items.truth
    labelled, waiting = rows["labels"] > 0, rows["reason"] == HORIZON
    answered = labelled & ~waiting
    right = answered & (rows["verdict"] == truth)
    wait = rows["exit"] - rows["arrival"]
    return Score(
        answered=_mean(answered),
        right_of_answered=_mean(right[answered]),
        right_of_all=_mean(right),
        labels_per_item=run.labels_per_item,
        delay=_mean((rows["last"] - rows["arrival"])[labelled]),
        response=_mean(wait),
        true_utility=_mean(np.where(right, rows["weight"], 0.0) - wait),
        waiting=int(waiting.sum()),
    )


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0


def mean_and_spread(trials: Sequence[Trial], method: Method, measure: str) -> tuple[float, float]:
    """Mean and standard deviation over the seeds; the deviation of one seed is 0."""
    values = [float(getattr(t.score, measure)) for t in trials if t.method is method]
    return fmean(values), spread(values)
