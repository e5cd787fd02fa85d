"""Ways of learning: while serving, or first and then serve.

**Learn while serving: no learning phase, competences are learned from the labels of the service.**

Everybody is assumed to be better than chance at first (Beta(7, 3)), the policy serves with that
from the first slot, and every label says something about who gave it, however few labels an item
has. At the end of a period (see below) the belief is recomputed from the labels of the window,
by the estimator that `aggregate` uses too (`venire.estimators.Auto`), starting from the vote:
earlier beliefs have no influence, so no belief can reinforce itself. Four things could go wrong.

**Cliques.** Labelers are known by those with whom they share items. Were it always the same ones
who label an item together (labelers who are worth the same, in the order of the panel), those who
share an error would find each other reliable. So the order of labelers of equal worth is drawn
again whenever something is learned: an unknown labeler meets everybody. It costs no label.

**The feedback loop.** Nothing is learned about labelers whom the policy does not ask: a labeler
believed at chance is worth nothing, is never asked, and stays at chance. So in the first slots of
each period (a share `explore` of them, at least one) a labeler who recently got less than that
share of the mean number of labels, outside of such slots, is assigned work as an unknown labeler
would be; verdicts use the belief. "Recently" is since the last time that share was a whole label.
So no labeler is lost: each gets labels in a share `explore` of the slots in which the policy would
ask an unknown labeler, newcomers from the next such slot on. And it costs little: in all other
slots it changes nothing, and in these a useless label is valued as an unknown labeler's, whose
evidence is small (0.17 for two classes); under Algorithm 1 it comes last, after all better ones,
for an item that waits anyway.

**Flips, and panels that agree on nothing.** EM can end where every class is swapped, or where all
items are of one class because a few labelers always say so. The estimator stays near the vote,
ignores labelers who always say the same class, and where labels do not tell labelers apart all
votes are equal.

**Drift.** Labels count for as long as the window holds them, which is best while nobody changes,
until the sequential test of a labeler (`venire.estimators.streaming.drift`) raises an alarm: then
its labels so far are forgotten, and it is learned again.

**Periods.** Time is divided into periods that grow geometrically, each a quarter as long as all the
time before it, up to a longest one; from then on all have that length, so that change is followed
however late it comes. The first slots of a period, a small share of them, are for exploring.
Competences are updated at the end of a period and at the end of its exploration.

**Algorithm 2: learn first, then serve (paper, section 3.2).**

For `slots` slots (the paper's T_L) one item, chosen at random among the arrivals of the slot,
is labelled by everyone, and the other arrivals leave unlabelled. Then the competences are
learned from those labels (Algorithm 3, Online Learn), and any policy serves with them as if
they were true. Utility counts from slot T_L on. That is `Algorithm2`.

`LearnThenServe` has the same phase and is robust where labelers are not as the paper assumes: some
always say the same class, some share their errors, some give few labels. It learns as
`LearnWhileServing` does (`venire.scheduling.estimates`) and continues to learn while it
serves, since a phase that is long enough for every panel would be very long.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError, UnknownName
from venire.estimators.auto import Auto
from venire.estimators.base import BaseEstimator, estimator_of
from venire.estimators.one_coin import OneCoin
from venire.labels import LabelTable
from venire.paper.accuracy import clamp_competence
from venire.scheduling.base import Belief, Kernels, Learner, Learning, Policy
from venire.scheduling.estimates import (
    BETTER_THAN_CHANCE,
    RHO,
    Arrays,
    Estimate,
    EstimateLearner,
    Memory,
)
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
from venire.tools.arrays import Ints
from venire.tools.compiling import kernel
from venire.tools.draws import below

Model = Literal["dawid-skene", "one-coin"]


@dataclass(frozen=True)
class LearnWhileServing(Learning):
    """Serve from the first slot, and learn from every label.

    Parameters
    ----------
    model
        "dawid-skene" learns a confusion matrix of each labeler and how often each class comes,
        shrunk towards the panel's where labels are few; "one-coin" one competence each, as in
        the paper.
    explore
        In this share of the slots, labelers who are rarely asked are assigned work as if unknown.
    half_life
        The latest `half_life` / ln 2 labels of each labeler count, which is the total weight of
        labels that lose half their weight with every `half_life` later ones; None: all in the
        window, unless there is an alarm.
    drift
        The false-alarm probability, per 1,000 labels of a labeler, of the test after which what
        was learned of a labeler is forgotten; None: no test.
    window
        How many items' labels are remembered.
    longest
        The most slots between two updates.
    prior
        Right and wrong pseudo-labels of a labeler without a stated competence.
    estimator
        Another batch estimator, or its name, fitted again to the labels of the window each time.

    A stated competence is where the prior of a labeler begins.

    >>> from venire import World, simulate
    >>> world = World.synthetic(seed=0)
    >>> run, told = (simulate(world, None, x, 1000) for x in (LearnWhileServing(), None))
    >>> run.true_utility > 0.99 * told.true_utility
    True
    """

    model: Model = "dawid-skene"
    explore: float = 0.05
    half_life: float | None = None
    drift: float | None = 0.001
    window: int = 10_000
    longest: int = 100
    prior: tuple[float, float] = BETTER_THAN_CHANCE
    estimator: BaseEstimator | str | None = None
    name: ClassVar[str] = "while-serving"

    def __post_init__(self) -> None:
        if self.estimator is not None:
            object.__setattr__(self, "estimator", estimator_of(self.estimator))
        if self.model not in get_args(Model):
            raise UnknownName("model", self.model, get_args(Model))
        if not 0 <= self.explore < 1:
            raise InputError(f"got explore={self.explore}, expected a share from 0 to below 1")
        if self.window < 1 or self.longest < 1:
            raise InputError(
                f"got a window of {self.window} items and periods of {self.longest} slots, "
                "expected at least 1 of each"
            )
        if self.half_life is not None and not self.half_life >= 1:
            raise InputError(
                f"got half_life={self.half_life!r}, expected at least 1 label, or None"
            )
        right, wrong = self.prior
        if not 0 < wrong < right:
            raise InputError(
                f"got prior={self.prior!r}, expected more right than wrong pseudo-labels, both "
                "above 0"
            )

    def phase(self, slot: int) -> Policy | None:
        return None

    def next_refresh(self, slot: int) -> int:
        return self.periods.next_refresh(slot)

    @property
    def periods(self) -> Periods:
        return Periods(self.longest, self.explore)

    def stranger(self) -> float:
        """The competence assumed of an unknown labeler.

        >>> LearnWhileServing().stranger()
        0.7
        """
        right, wrong = self.prior
        return right / (right + wrong)

    def begin(self, competences: Sequence[float | None], classes: int) -> Learner:
        """A learner that knows only the stated competences."""
        estimate = Estimate(
            Auto() if self.estimator is None else estimator_of(self.estimator),
            competences,
            classes,
            self.prior,
            Memory(self.window, self.half_life, self.drift),
            matrices=self.model != "one-coin",
        )
        return _WhileServing(self, estimate, classes)

    def describe(self) -> str:
        """Name and settings, without trailing defaults, as `--learning` takes them.

        >>> LearnWhileServing("one-coin").describe(), LearnWhileServing(longest=50).describe()
        ('while-serving:one-coin', 'while-serving:dawid-skene:0.05:none:0.001:10000:50')
        """
        own = [f for f in fields(self) if f.name not in ("prior", "estimator")]
        while own and getattr(self, own[-1].name) == own[-1].default:
            own.pop()
        values = (getattr(self, f.name) for f in own)
        return ":".join([self.name, *("none" if v is None else str(v) for v in values)])


class _WhileServing(EstimateLearner):
    """What was learned while serving: an estimate, and which labelers to explore.

    It counts slots by the schedule on which it is called.
    """

    def __init__(self, how: LearnWhileServing, estimate: Estimate, classes: int) -> None:
        super().__init__(estimate)
        self.how, self.classes = how, classes
        self.slot = -1
        labelers = len(estimate.guess().competences)
        self.asked = np.zeros(labelers, np.int64)  # labels since `starved` was last computed
        self.starved = np.zeros(labelers, np.bool_)
        self.exploring = False
        self._believe()

    def learn(self, items: Ints, labelers: Ints, said: Ints) -> None:
        """Learn from the labels; at the end of a period, find out who was rarely asked."""
        periods = self.how.periods
        last, self.slot = self.slot, periods.next_refresh(self.slot + 1)
        start, length = periods.of(self.slot)
        self.exploring = self.slot == start + length - 1
        self.estimate.take(items, labelers, said, thorough=self.exploring)
        if self.exploring:
            self.distinct = self.told_apart()
        if self.exploring and last >= start:  # labels since the exploration of this period
            self._count(labelers)
        self._believe()

    def _count(self, labelers: Ints) -> None:
        """Find out who is rarely asked, once there are enough labels to tell."""
        self.asked += np.bincount(labelers, minlength=len(self.asked))
        least = self.how.explore * self.asked.mean()
        if least >= 1:
            self.starved = self.asked < least
            self.asked[:] = 0

    def join(self, competence: float | None) -> None:
        self.estimate.join(competence)
        self.starved = np.append(self.starved, True)
        self.asked = np.append(self.asked, 0)
        self._believe()

    def _believe(self) -> None:
        guess = self.estimate.guess()
        hoped = None
        if self.exploring and self.starved.any():
            chance = 1.0 / self.classes
            hoped = np.where(self.starved, max(self.how.stranger(), chance), chance)
        p, square, prior, certain, tones = guess
        self.belief = Belief(p, square, prior, hoped, self.slot + 1, certain, self.distinct, tones)

    def state(self) -> Arrays:
        own = {"slot": np.array(self.slot), "exploring": np.array(self.exploring)}
        own |= {"asked": self.asked.copy(), "starved": self.starved.copy()}
        own["distinct"] = self.distinct.copy()
        return own | {f"estimate.{name}": a for name, a in self.estimate.state().items()}

    def restore(self, state: Arrays) -> None:
        self.slot, self.exploring = int(state["slot"]), bool(state["exploring"])
        self.asked, self.starved = state["asked"].copy(), state["starved"].copy()
        start = len("estimate.")
        parts = {n[start:]: a for n, a in state.items() if n.startswith("estimate.")}
        self.estimate.restore(parts)
        self.distinct = state["distinct"].copy() if "distinct" in state else self.told_apart()
        self._believe()


#: The length of a period over all the time before it.
GROWTH: Final = 0.25

#: The usual length of the longest period, in slots.
LONGEST: Final = 100


@dataclass(frozen=True)
class Periods:
    """Periods of at most `longest` slots, a share `explore` of each for exploring.

    >>> periods = Periods(longest=100, explore=0.05)
    >>> [periods.of(slot) for slot in (0, 7, 50, 10_000)]
    [(0, 1), (7, 1), (41, 10), (9957, 100)]
    >>> periods.next_refresh(41), periods.next_refresh(42), periods.next_refresh(51)
    (41, 50, 51)
    """

    longest: int
    explore: float

    def of(self, slot: int) -> tuple[int, int]:
        """The first slot and the length of the period that this slot is in."""
        starts = _growing(self.longest)
        if slot >= starts[-1]:
            return slot - (slot - starts[-1]) % self.longest, self.longest
        k = bisect_right(starts, slot)
        return starts[k - 1], starts[k] - starts[k - 1]

    def next_refresh(self, slot: int) -> int:
        """The first slot, this one or a later one, that ends a period or its exploration."""
        start, length = self.of(slot)
        explored = start + math.ceil(self.explore * length) - 1
        return explored if slot <= explored else start + length - 1


@cache
def _growing(longest: int) -> tuple[int, ...]:
    """The first slots of the periods, up to the first one of the longest length."""
    starts = [0]
    while (length := max(1, int(GROWTH * starts[-1]))) < longest:
        starts.append(starts[-1] + length)
    return tuple(starts)


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

    def state(self) -> Arrays:
        own = {"learned": np.array(self.belief is not None), "distinct": self.distinct.copy()}
        return own | self.estimate.state()

    def restore(self, state: Arrays) -> None:
        """Continue from there; also from snapshots of earlier versions, which learned once."""
        self.estimate.restore(_labels_forgotten(state) if "joined" in state else state)
        self.distinct = state["distinct"].copy() if "distinct" in state else self.told_apart()
        if state.get("learned", "competences" in state):
            self._believe()


def _labels_forgotten(state: Arrays) -> Arrays:
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

    def state(self) -> Arrays:
        joined = np.array([np.nan if p is None else p for p in self.joined])
        state = {"labelers": np.array(self.labelers), "joined": joined}
        if self.belief is not None:
            state["competences"] = self.belief.competences
        return state

    def restore(self, state: Arrays) -> None:
        self.labelers = int(state["labelers"])
        self.joined = [None if np.isnan(p) else p for p in state["joined"].tolist()]
        if "competences" in state:
            self.belief = Belief(state["competences"])
