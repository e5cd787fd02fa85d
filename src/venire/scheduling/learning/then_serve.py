"""Algorithm 2: learn first, then serve (paper, section 3.2).

For `slots` slots (the paper's T_L) one item, chosen at random among the arrivals of the slot,
is labelled by everyone, and the other arrivals leave unlabelled. Then the competences are
learned from those labels (Algorithm 3, Online Learn), and any policy serves with them as if
they were true. Utility counts from slot T_L on. That is `Algorithm2`.

`LearnThenServe` has the same phase and is robust where labelers are not as the paper assumes: some
always say the same class, some share their errors, some give few labels. It learns as
`LearnWhileServing` does (`venire.scheduling.learning.estimates`) and continues to learn while it
serves, since a phase that is long enough for every panel would be very long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.base import BaseEstimator, estimator_of
from venire.estimators.one_coin import OneCoin
from venire.labels import LabelTable
from venire.paper.accuracy import clamp_competence
from venire.scheduling.base import Belief, Kernels, Learner, Learning, Policy
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import (
    DROPPED,
    LEARNING,
    OUTSTANDING,
    ROWS,
    SETTING,
    Desk,
    room,
    touch,
)
from venire.scheduling.kernel.queues import begin_serving
from venire.scheduling.kernel.rows import may_take, set_due
from venire.scheduling.learning.estimates import RHO, Estimate, EstimateLearner
from venire.scheduling.learning.while_serving import LONGEST, Periods
from venire.tools.arrays import Ints
from venire.tools.compiling import kernel
from venire.tools.draws import below


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    set_due(desk, row, slot, LEARNING if desk.rows[row].labels > 0 else DROPPED)


@kernel
def leave(desk: Desk, row: int) -> None:
    """Nothing to remove: no queue is kept."""


@kernel
def serve(desk: Desk, slot: int) -> None:
    begin_serving(desk)
    first = desk.meta[ROWS]
    while first > 0 and desk.rows[first - 1].arrival == slot:
        first -= 1
        if desk.rows[first].labels > 0:
            return
    n = desk.meta[ROWS] - first
    if n == 0:
        return
    row = first + below(desk.meta[SETTING], slot, 0, n)
    if desk.rows[row].state != OUTSTANDING:  # it was withdrawn
        return
    for m in range(len(desk.panel)):
        if room(desk, m) > 0 and may_take(desk, row, m):
            touch(desk, row, m, slot, np.nan)
            set_due(desk, row, slot, LEARNING)


@dataclass(frozen=True)
class OneForAll(Policy):
    """One arrival of each slot, chosen at random, is labelled by all; the others leave."""

    seed: int = 0
    name: ClassVar[str] = "one-for-all"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
    per_row: ClassVar[tuple[str, ...]] = ()

    def settings(self) -> tuple[int, ...]:
        return (self.seed,)


@dataclass(frozen=True)
class LearnThenServe(Learning):
    """A learning phase of `slots` slots (T_L), then serve, and go on learning.

    In the phase one arrival of each slot is labelled by everyone. What is learned from it, and
    afterwards from every label, is what `LearnWhileServing` learns: the labels of the window fitted
    again, from the vote, at the end of every period. An `estimator` is fitted once, to the labels
    of the phase, and its result is never updated: see `Algorithm2`. No competence is taken to be
    above 1 - `rho`.

    >>> from venire import Greedy, World, simulate
    >>> run = simulate(World.synthetic(seed=0), Greedy(), LearnThenServe(45), slots=1000)
    >>> 0.9 < run.ratio < 1
    True
    """

    slots: int
    seed: int = 0
    estimator: BaseEstimator | str | None = None
    rho: float = RHO
    name: ClassVar[str] = "then-serve"

    def __post_init__(self) -> None:
        if self.estimator is not None:
            object.__setattr__(self, "estimator", estimator_of(self.estimator))
        if self.slots < 1:
            raise InputError(f"got a learning phase of {self.slots} slots, expected at least 1")
        if not 0 < self.rho < 0.5:
            raise InputError(f"got rho = {self.rho}, expected a number between 0 and 1/2")

    def phase(self, slot: int) -> Policy | None:
        """The learning policy while the phase lasts."""
        return OneForAll(self.seed) if slot < self.slots else None

    def next_refresh(self, slot: int) -> int | None:
        """The end of the phase; then, without an estimator that learns once, of every period."""
        if slot < self.slots:
            return self.slots - 1
        return Periods(LONGEST, 0.0).next_refresh(slot) if self.estimator is None else None

    def begin(self, competences: Sequence[float | None], classes: int) -> Learner:
        """Nothing is known until the phase ends."""
        if self.estimator is not None:
            return _OnlineLearn(estimator_of(self.estimator), self.rho, len(competences), classes)
        return _KeepsLearning(Estimate(Auto(), competences, classes, rho=self.rho))

    def counts_from(self) -> int:
        """Utility counts from slot T_L on."""
        return self.slots

    def describe(self) -> str:
        """Name and length (and rho, if not the default), as `--learning` takes them.

        >>> LearnThenServe(45).describe(), LearnThenServe(45, rho=0.1).describe()
        ('then-serve:45', 'then-serve:45:0.1')
        """
        usual = type(self).rho
        rho = "" if self.rho == usual else f":{self.rho!r}"
        return f"{self.name}:{self.slots}{rho}"


@dataclass(frozen=True)
class Algorithm2(LearnThenServe):
    """The paper's Algorithm 2, unchanged: learn for `slots` slots, then serve with the result.

    `estimator` is Algorithm 3 (Online Learn). The paper assumes that no competence is above 1 - rho
    and leaves rho open; it matters here, since after a short phase many labelers have never been
    wrong, and without it one of them would outvote all others forever. Stated competences are not
    used.

    It relies on its model: see docs/learning.md for what happens where the model does not hold.

    >>> from venire import Greedy, World, simulate
    >>> run = simulate(World.synthetic(seed=0), Greedy(), Algorithm2(45), slots=1000)
    >>> 0.9 < run.ratio < 0.99
    True
    """

    estimator: BaseEstimator | None = field(default_factory=lambda: OneCoin(prior=None))
    name: ClassVar[str] = "algorithm-2"


class _KeepsLearning(EstimateLearner):
    """Learns from the labels of the phase and all later ones, fitted again each time."""

    def learn(self, items: Ints, labelers: Ints, said: Ints) -> None:
        self.estimate.take(items, labelers, said, thorough=True)
        self.distinct = self.told_apart()
        self._believe()

    def join(self, competence: float | None) -> None:
        self.estimate.join(competence)
        if self.belief is not None:
            self._believe()

    def _believe(self) -> None:
        p, square, prior, certain, tones = self.estimate.guess()
        distinct = self.distinct
        self.belief = Belief(p, square, prior, None, None, certain, distinct, tones)

    def state(self) -> dict[str, NDArray[Any]]:
        own = {"learned": np.array(self.belief is not None), "distinct": self.distinct.copy()}
        return own | self.estimate.state()

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from there; also from snapshots of earlier versions, which learned once."""
        self.estimate.restore(_labels_forgotten(state) if "joined" in state else state)
        self.distinct = state["distinct"].copy() if "distinct" in state else self.told_apart()
        if state.get("learned", "competences" in state):
            self._believe()


def _labels_forgotten(state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The state of `_OnlineLearn`, as an estimate without labels."""
    stated = np.append(np.full(int(state["labelers"]), np.nan), state["joined"])
    found = {"found.competences": state["competences"]} if "competences" in state else {}
    return {"stated": stated, "labels": np.zeros((0, 4), np.int64)} | found


class _OnlineLearn(Learner):
    """Online Learn (Algorithm 3) on the labels of the phase, clamped to the paper's range."""

    def __init__(self, estimator: BaseEstimator, rho: float, labelers: int, classes: int) -> None:
        self.estimator, self.rho, self.labelers, self.classes = estimator, rho, labelers, classes
        self.joined: list[float | None] = []

    def learn(self, items: Ints, labelers: Ints, said: Ints) -> None:
        """Fit the labels of the phase."""
        self.labelers, self.joined = self.labelers + len(self.joined), []
        if not len(said):  # nothing arrived: all labelers are equal
            self.belief = Belief(np.full(self.labelers, (1 + 1 / self.classes) / 2))
            return
        names, item = np.unique(items, return_inverse=True)
        panel, classes = tuple(range(self.labelers)), tuple(range(self.classes))
        table = LabelTable.from_codes(item, labelers, said, tuple(names.tolist()), panel, classes)
        learned = self.estimator.fit(table).competences_
        self._believe(clamp_competence(learned, self.classes, self.rho))

    def join(self, competence: float | None) -> None:
        # who joins after the phase gets the mean competence, unless one is stated
        self.joined.append(competence)
        if self.belief is not None:
            self._believe(self.belief.competences[: self.labelers])

    def _believe(self, learned: NDArray[np.float64]) -> None:
        usual = float(learned.mean())
        newcomers = [usual if p is None else p for p in self.joined]
        self.belief = Belief(np.append(learned, newcomers))

    def state(self) -> dict[str, NDArray[Any]]:
        """What was learned, and who has joined since."""
        joined = np.array([np.nan if p is None else p for p in self.joined])
        state = {"labelers": np.array(self.labelers), "joined": joined}
        if self.belief is not None:
            state["competences"] = self.belief.competences
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from there."""
        self.labelers = int(state["labelers"])
        self.joined = [None if np.isnan(p) else p for p in state["joined"].tolist()]
        if "competences" in state:
            self.belief = Belief(state["competences"])
