"""The same streams under other rules: what each gets right, what it spends, how long it takes.

Every method labels the same images at the same times and gets the same labels; a seed sets the
order, the times and the weights. All of a stream counts, a learning phase too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators import DawidSkene, OneCoin
from venire.labels import LabelTable
from venire.model import Labeler
from venire.paper.accuracy import clamp_competence
from venire.scheduling import Algorithm2, Everyone, FixedOverlap, Greedy, Policy
from venire.simulation import Run, World, simulate
from venire.student import Student
from venire_research.common.sheets import spread
from venire_research.digits.outcome import Outcome, Score
from venire_research.digits.panel import DIGITS, SLOTS, DigitJob
from venire_research.digits.shift import LEARNING_SLOTS, hire, work

__all__ = ["METHODS", "Method", "Trial", "compare", "mean_and_spread"]

Floats = NDArray[np.float64]


class Result(NamedTuple):
    """What came of a stream; where any were learned, the competences at its end.

    Of venire also its verdicts as revised to the end, which need no more labels.
    """

    outcome: Outcome
    learned: Floats | None = None
    revised: Outcome | None = None


Way = Callable[[DigitJob, int, int, int], Result]


@dataclass(frozen=True)
class Method:
    """A way to label the stream: `run(job, seed, learning_slots, slots)`."""

    key: str
    title: str
    run: Way


@dataclass(frozen=True, eq=False)
class Trial:
    """A method on one stream."""

    method: Method
    seed: int
    outcome: Outcome
    score: Score
    learned: Floats | None = None
    revised: Outcome | None = None

    def record(self) -> dict[str, Any]:
        """One flat row of the saved table."""
        measured = {name: getattr(self.score, name) for name in Score.measures()}
        items = len(self.outcome.weight)
        return {"method": self.method.key, "seed": self.seed, "items": items, **measured}


def _venire(job: DigitJob, seed: int, _: int, slots: int) -> Result:
    """The defaults: `Realised`, learning while serving."""
    return _served(job, seed, slots, None)


def _with_student(job: DigitJob, seed: int, _: int, slots: int) -> Result:
    """The defaults, and a student who learns from the verdicts."""
    return _served(job, seed, slots, Student())


def _served(job: DigitJob, seed: int, slots: int, student: Student | None) -> Result:
    scheduler = hire(job, revisions=len(job.names))
    for _ in work(job, scheduler, seed, slots, student):
        pass
    believed = scheduler.competences or {}
    learned = np.array([believed.get(name, np.nan) for name in job.labelers])
    outcome = Outcome.of_log(job, seed, slots, scheduler.log)
    return Result(outcome, learned, outcome.revised(job, seed, scheduler.log))


def _paper(job: DigitJob, seed: int, learning_slots: int, slots: int) -> Result:
    """Algorithms 2, 3 and 1: competences learned without truth."""
    estimator = OneCoin(prior=None)
    learning = Algorithm2(learning_slots, seed=seed, estimator=estimator)
    outcome = Outcome.of_run(simulate(job.world(seed), Greedy(), learning, slots))
    if not hasattr(estimator, "competences_"):  # nothing arrived to learn from
        return Result(outcome)
    learned = clamp_competence(estimator.competences_, len(DIGITS), learning.rho)
    return Result(outcome, learned)


def _genie(job: DigitJob, seed: int, _: int, slots: int) -> Result:
    """Algorithm 1 with the true competences from the start."""
    return Result(Outcome.of_run(simulate(job.world(seed), Greedy(), None, slots)))


def _best_alone(job: DigitJob, seed: int, _: int, slots: int) -> Result:
    """The labeler who is right most often, first come, first served."""
    world = job.only(job.best).world(seed)
    return Result(Outcome.of_run(simulate(world, FixedOverlap(1), None, slots)))


def _by_majority(policy: Policy) -> Way:
    """A policy that looks at nobody's competence, and a vote that counts everybody the same."""

    def run(job: DigitJob, seed: int, _: int, slots: int) -> Result:
        return Result(Outcome.of_run(_evenly(job, seed, slots, policy)))

    return run


def _by_dawid_skene(policy: Policy) -> Way:
    """The same labels, and verdicts by Dawid-Skene on all of them when the stream has ended."""

    def run(job: DigitJob, seed: int, _: int, slots: int) -> Result:
        run = _evenly(job, seed, slots, policy)
        verdict = DawidSkene().fit(_labels(run)).posteriors_.argmax(axis=1)
        return Result(Outcome.of_run(run).decided_by(verdict))

    return run


def _evenly(job: DigitJob, seed: int, slots: int, policy: Policy) -> Run:
    return simulate(_all_equal(job.world(seed)), policy, None, slots)


def _all_equal(world: World) -> World:
    """Everybody is believed to be equally good, so that every vote has the same weight."""
    panel = (Labeler(who.id, 0.5, who.capacity, price=who.price) for who in world.panel)
    return replace(world, panel=tuple(panel))


def _labels(run: Run) -> LabelTable:
    touches = run.touches
    names = range(len(run.rows)), range(len(run.world.panel)), range(len(DIGITS))
    return LabelTable.from_codes(touches["row"], touches["labeler"], touches["said"], *names)


METHODS = (
    Method("venire-student", "venire, with a student", _with_student),
    Method("venire", "venire", _venire),
    Method("overlap-3", "3 labels each, majority", _by_majority(FixedOverlap(3))),
    Method("overlap-3-ds", "3 labels each, Dawid-Skene", _by_dawid_skene(FixedOverlap(3))),
    Method("overlap-5", "5 labels each, majority", _by_majority(FixedOverlap(5))),
    Method("overlap-5-ds", "5 labels each, Dawid-Skene", _by_dawid_skene(FixedOverlap(5))),
    Method("best-alone", "best labeler alone", _best_alone),
    Method("everyone", "everyone labels all, majority", _by_majority(Everyone())),
    Method("paper-learned", "paper, competences learned", _paper),
    Method("paper-genie", "paper, competences known", _genie),
)


def compare(
    job: DigitJob,
    seeds: Iterable[int],
    learning_slots: int = LEARNING_SLOTS,
    slots: int = SLOTS,
    methods: Sequence[Method] = METHODS,
) -> Iterator[Trial]:
    """Run every method on the stream of every seed.

    >>> from venire_research.digits import load_job
    >>> trials = list(compare(load_job(), seeds=[0], slots=60))
    >>> [trial.method.key for trial in trials if trial.score.answered < 0.5]
    ['best-alone', 'everyone']
    """
    for seed in seeds:
        for method in methods:
            outcome, learned, revised = method.run(job, seed, learning_slots, slots)
            yield Trial(method, seed, outcome, outcome.score, learned, revised)


def mean_and_spread(trials: Sequence[Trial], method: Method, measure: str) -> tuple[float, float]:
    """Mean and standard deviation over the seeds; the deviation of one seed is 0."""
    values = [float(getattr(t.score, measure)) for t in trials if t.method is method]
    return fmean(values), spread(values)
