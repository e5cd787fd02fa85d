"""Algorithm 2: learn first, then serve (paper, section 3.2).

For `slots` slots (the paper's T_L) one item, chosen at random among the arrivals of the slot,
is labelled by everyone, and the other arrivals leave unlabelled. Then the competences are
learned from those labels (Algorithm 3, Online Learn), and any policy serves with them as if
they were true. Utility counts from slot T_L on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from venire.accuracy import clamp_competence
from venire.competence.base import BaseEstimator
from venire.competence.one_coin import OneCoin
from venire.compiling import kernel
from venire.errors import InputError
from venire.labels import LabelTable
from venire.scheduling.base import Belief, Ints, Kernels, Learner, Learning, Policy
from venire.scheduling.beliefs import make_refile
from venire.scheduling.desk import (
    DROPPED,
    LEARNING,
    OUTSTANDING,
    ROWS,
    SETTING,
    Desk,
    allowed,
    barred,
    room,
    touch,
)
from venire.scheduling.draws import below
from venire.scheduling.hearing import Bools, make_hear
from venire.scheduling.loop import Stream, make_run
from venire.scheduling.turns import begin_serving
from venire.scheduling.wheel import make_settle, set_due

__all__ = ["LearnThenServe", "OneForAll"]


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    set_due(desk, row, slot, LEARNING if desk.rows[row].labels > 0 else DROPPED)


@kernel
def leave(desk: Desk, row: int) -> None:
    """Nothing is kept of a row."""


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
        if room(desk, m) > 0 and allowed(desk, row, m) and not barred(desk, row, m):
            touch(desk, row, m, slot, np.nan)
            set_due(desk, row, slot, LEARNING)


settle_slot = make_settle(leave)


@kernel
def settle(desk: Desk, slot: int) -> int:
    return settle_slot(desk, slot)


hear_all = make_hear(leave, enter)


@kernel
def hear(desk: Desk, labels: Ints, slot: int, fresh: Bools) -> int:
    return hear_all(desk, labels, slot, fresh)


file_rows = make_refile(enter)


@kernel
def file_all(desk: Desk, rows: Ints, slot: int) -> None:
    file_rows(desk, rows, slot)


run_slots = make_run(enter, serve, settle)


@kernel
def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
    return run_slots(desk, stream, start, stop)


@dataclass(frozen=True)
class OneForAll(Policy):
    """One arrival of each slot, chosen at random, is labelled by all; the others leave."""

    seed: int = 0
    name: ClassVar[str] = "one-for-all"

    def kernels(self) -> Kernels:
        """Phase I of Algorithm 2, compiled."""
        return Kernels(enter, leave, serve, settle, hear, run, file_all)

    def settings(self) -> tuple[int, ...]:
        """The seed."""
        return (self.seed,)


@dataclass(frozen=True)
class LearnThenServe(Learning):
    """Algorithm 2: `slots` slots of learning (T_L), then serve with what was learned.

    `estimator` learns the competences (Algorithm 3, Online Learn, by default). The paper takes
    nobody to be better than 1 - rho and leaves rho open; it matters here, since after a short
    phase many labelers have never been seen wrong, and without it one of them would outvote
    everybody for ever.

    >>> from venire import Greedy, World, simulate
    >>> run = simulate(World.synthetic(seed=0), Greedy(), LearnThenServe(45), slots=1000)
    >>> 0.9 < run.ratio < 1
    True
    """

    slots: int
    seed: int = 0
    estimator: BaseEstimator = field(default_factory=lambda: OneCoin(prior=None))
    rho: float = 0.01
    name: ClassVar[str] = "then-serve"

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise InputError(f"got a learning phase of {self.slots} slots, expected at least 1")
        if not 0 < self.rho < 0.5:
            raise InputError(f"got rho = {self.rho}, expected a number between 0 and 1/2")

    def phase(self, slot: int) -> Policy | None:
        """The learning policy while the phase lasts."""
        return OneForAll(self.seed) if slot < self.slots else None

    def next_refresh(self, slot: int) -> int | None:
        """The competences are learned once, at the end of the phase."""
        return self.slots - 1 if slot < self.slots else None

    def begin(self, competences: Sequence[float | None], classes: int) -> Learner:
        """Nothing is known until the phase ends; what somebody says of a labeler is not asked."""
        return _OnlineLearn(self, len(competences), classes)

    def counts_from(self) -> int:
        """Utility counts from slot T_L on."""
        return self.slots

    def describe(self) -> str:
        """Name and length (and rho, if it is another), as `--learning` takes them.

        >>> LearnThenServe(45).describe(), LearnThenServe(45, rho=0.1).describe()
        ('then-serve:45', 'then-serve:45:0.1')
        """
        usual = type(self).rho
        rho = "" if self.rho == usual else f":{self.rho!r}"
        return f"{self.name}:{self.slots}{rho}"


class _OnlineLearn(Learner):
    """Online Learn (Algorithm 3) on the labels of the phase, kept in the paper's range."""

    def __init__(self, how: LearnThenServe, labelers: int, classes: int) -> None:
        self.how, self.labelers, self.classes = how, labelers, classes
        self.joined: list[float | None] = []

    def learn(self, items: Ints, labelers: Ints, said: Ints) -> None:
        """Fit the labels of the phase."""
        self.labelers, self.joined = self.labelers + len(self.joined), []
        if not len(said):  # nothing arrived: everyone counts the same
            self.belief = Belief(np.full(self.labelers, (1 + 1 / self.classes) / 2))
            return
        names, item = np.unique(items, return_inverse=True)
        panel, classes = tuple(range(self.labelers)), tuple(range(self.classes))
        table = LabelTable.from_codes(item, labelers, said, tuple(names.tolist()), panel, classes)
        learned = self.how.estimator.fit(table).competences_
        self._believe(clamp_competence(learned, self.classes, self.how.rho))

    def join(self, competence: float | None) -> None:
        """Who joins after the phase counts as the others do, unless somebody knows better."""
        self.joined.append(competence)
        if self.belief is not None:
            self._believe(self.belief.competences[: self.labelers])

    def _believe(self, learned: NDArray[np.float64]) -> None:
        usual = float(learned.mean())
        newcomers = [usual if p is None else p for p in self.joined]
        self.belief = Belief(np.append(learned, newcomers))

    def state(self) -> dict[str, NDArray[Any]]:
        """What was learned, and who joined since."""
        joined = np.array([np.nan if p is None else p for p in self.joined])
        state = {"labelers": np.array(self.labelers), "joined": joined}
        if self.belief is not None:
            state["competences"] = self.belief.competences
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from there."""
        self.labelers = int(state["labelers"])
        self.joined = [None if np.isnan(p) else p for p in state["joined"].tolist()]
        if "competences" in state:
            self.belief = Belief(state["competences"])
