"""The interfaces of policies (who labels what, when an item leaves) and of learning.

A policy is a small frozen value, its settings, with compiled kernels. The engine and the simulator
call the same kernels; nothing else decides. To add one, write a file with three kernels and a
`Policy` subclass, and name it in the package's `__init__` (see examples/policy.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.paper.accuracy import (
    clamp_competence,
    clamp_confusions,
    confusion_evidence,
    evidence,
    log_likelihoods,
    one_coin,
    pair_evidence,
    vote_weight,
)
from venire.tools.arrays import Floats, Ints

#: Arrays with an entry for each row that some policies use: a policy says which (`Policy.per_row`).
PER_ROW: Final = ("cases", "stalls", "bids")


class Kernels(NamedTuple):
    """The compiled side of a policy; each works on a `Desk`.

    enter(desk, row, slot)    the row becomes outstanding, or comes back with another value
    leave(desk, row)          the row is removed from whatever the policy keeps
    serve(desk, slot)         assign this slot's work by `touch`
    settle(desk, slot)        end the slot; returns how many rows leave, listed in `desk.gone`
    hear(desk, labels, slot, fresh)   enter labels (see kernel/rows.py)
    refile(desk, rows, slot)  value these rows again and enter them, one after the other

    A policy writes the first three; `kernel.build.compiled` makes the rest.
    """

    enter: Callable[..., None]
    leave: Callable[..., None]
    serve: Callable[..., None]
    settle: Callable[..., Any]
    hear: Callable[..., int]
    refile: Callable[..., None]


#: The most numbers that a policy can remember.
N_GAUGES: Final = 64

#: A list of numbers begins at a multiple of this, with a cache line.
LINE: Final = 8


class PolicyMemory:
    """Names for what a policy remembers from slot to slot, each with a place in `desk.gauges`.

    The same place means something else to another policy, so a memory belongs to one class of
    policies: one that replaces a policy of another class begins with an empty memory, one of the
    same class, whatever its settings, keeps it. Its counters, the order of its queue (`key` of the
    rows, the turn) and its pool are part of it (`forget` in kernel/desk.py). Everything else on a
    desk is the state of items and labelers, which all policies read in the same way, or is rebuilt
    by `refile_all`.

    Parameters
    ----------
    names
        Single numbers.
    after
        The memory of another policy that this one extends: names and places.
    lists
        Names of lists of numbers, and their lengths.

    >>> MEMORY = PolicyMemory("price", "sold", counts=16)
    >>> PRICE, SOLD, COUNTS = MEMORY.places
    >>> COUNTS
    8
    >>> gauges = np.zeros(64)
    >>> gauges[PRICE] = 2.5
    >>> MEMORY.read(gauges)["price"]
    array([2.5])
    """

    def __init__(self, *names: str, after: PolicyMemory | None = None, **lists: int) -> None:
        self.layout: dict[str, tuple[int, int]] = {} if after is None else dict(after.layout)
        end = max((place + size for place, size in self.layout.values()), default=0)
        own = []
        for name, size in [*((name, 1) for name in names), *lists.items()]:
            if name in self.layout:
                raise InputError(f"got {name!r} twice, expected distinct names in a memory")
            place = end if size == 1 else -(-end // LINE) * LINE
            end = place + size
            self.layout[name] = place, size
            own.append(place)
        if end > N_GAUGES:
            raise InputError(f"got a memory of {end} numbers, expected at most {N_GAUGES}")
        self.places = tuple(own)

    def read(self, gauges: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The values now, by name."""
        return {name: gauges[at : at + size].copy() for name, (at, size) in self.layout.items()}


class Policy(ABC):
    """Who labels what, and when an item leaves.

    `name` is what `--policy` calls it; `built` are its kernels, from `kernel.build.compiled`.
    `memory` names what the kernels remember in `desk.gauges` from slot to slot, and
    `counter_names` what they count in `meta[COUNTER:]`, up to eight. Both belong to the policy:
    they are reset when it replaces a policy of another class (see `PolicyMemory`).
    `per_row` names the arrays of `PER_ROW` that the kernels use, by default all.
    """

    name: ClassVar[str]
    built: ClassVar[Kernels]
    memory: ClassVar[PolicyMemory] = PolicyMemory()
    counter_names: ClassVar[tuple[str, ...]] = ()
    per_row: ClassVar[tuple[str, ...]] = PER_ROW

    def kernels(self) -> Kernels:
        return self.built

    def settings(self) -> tuple[int, ...]:
        """Up to four whole numbers that the kernels read from `meta[SETTING:]`."""
        return ()

    def price(self, gauges: Floats) -> float | None:
        """The price of a unit of evidence when work was last assigned; None without prices."""
        return None

    def counters(self, counts: Ints) -> dict[str, int]:
        """What the kernels counted, by name.

        >>> from venire import LookAhead
        >>> LookAhead().counters(np.array([7, 2, 0, 0, 0, 0, 0, 0]))
        {'planned': 7, 'grouped': 2, 'fell_back': 0}
        """
        return dict(zip(self.counter_names, counts.tolist(), strict=False))

    def describe(self) -> str:
        """Name and settings, as `--policy` takes them.

        >>> from venire import FixedOverlap
        >>> FixedOverlap(5).describe()
        'fixed-overlap:5'
        """
        own: tuple[Field[Any], ...] = fields(self) if is_dataclass(self) else ()
        values = [str(getattr(self, f.name)) for f in own if f.name != "seed"]
        return ":".join([self.name, *values])


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed of the labelers, and of how often each class comes.

    Parameters
    ----------
    competences
        One number for each labeler.
    confusions
        [labeler, truth, said], for labelers who are not as good on every class.
    prior
        How often each class comes; None: equally often.
    hoped
        Competences by which work is assigned where they are higher than the belief, so that an
        unknown labeler gets a chance. Verdicts never use them.
    seed
        Breaks ties between labelers of equal worth at random, so that it is not always the same
        ones who label an item together; None: by their number.
    certainty
        The factor on the log-odds of a verdict that gives its confidence: below 1 where labels
        share their errors. Neither verdicts nor assignments depend on it, unless errors do not
        cost the same.
    distinct
        For each class, whether its probabilities can be taken at their word, so that what errors
        cost counts (`learning.estimates.distinct_classes`); None: of every class.
    tones
        [labeler, tone, truth, said]: the matrices of answers by how sure they were, for labelers
        who say so (`venire.estimators.voices`). Verdicts use them; work is assigned by what a
        labeler is on average.
    """

    competences: Floats
    confusions: Floats | None = None
    prior: Floats | None = None
    hoped: Floats | None = None
    seed: int | None = None
    certainty: float = 1.0
    distinct: NDArray[np.bool_] | None = None
    tones: Floats | None = None

    def evidence(self, classes: int) -> Floats:
        """How much a label of each is worth, by the paper's measure; work is assigned by it.

        >>> Belief(np.array([0.9, 0.5])).evidence(2).round(3).tolist()
        [0.879, 0.0]
        """
        if self.confusions is None:
            own = evidence(self.competences, classes)
        else:
            own = confusion_evidence(self.confusions)
        return own if self.hoped is None else np.maximum(own, evidence(self.hoped, classes))

    def pairs(self, classes: int) -> Floats:
        """How well each tells each pair of classes apart: [labeler, class, class]."""
        own = pair_evidence(self._matrices(classes))
        if self.hoped is None:
            return own
        return np.maximum(own, pair_evidence(one_coin(self.hoped, classes)))

    def votes(self, classes: int) -> Floats:
        """The vote of each label for each class: [labeler, said, class].

        With `tones` what was said is the class plus `classes` times the tone.
        """
        if self.tones is not None:
            told = log_likelihoods(self.tones.reshape(-1, classes, classes))
            return np.asarray(told).reshape(len(self.tones), -1, classes)
        if self.confusions is None:
            return vote_weight(self.competences, classes)[:, None, None] * np.eye(classes)
        return log_likelihoods(self.confusions)

    def order(self, classes: int) -> Ints:
        """The labelers, the best first.

        >>> Belief(np.array([0.9, 0.5, 0.9])).order(2).tolist()
        [0, 2, 1]
        >>> orders = [Belief(np.array([0.9, 0.5, 0.9]), seed=s).order(2).tolist() for s in range(9)]
        >>> sorted(set(map(tuple, orders)))
        [(0, 2, 1), (2, 0, 1)]
        """
        if self.confusions is None and self.hoped is None:
            worth = clamp_competence(self.competences, classes)
        else:
            worth = self.evidence(classes)
        if self.seed is None:
            return np.argsort(-worth, kind="stable")
        drawn = np.random.default_rng(self.seed).permutation(len(worth))
        return np.lexsort((drawn, -worth))

    def _matrices(self, classes: int) -> Floats:
        if self.confusions is None:
            return one_coin(self.competences, classes)
        return clamp_confusions(self.confusions)


class Learner(ABC):
    """What one schedule has learned so far; made by `Learning.begin`.

    `belief` is the current belief; None while nothing is known.
    """

    belief: Belief | None = None

    #: Whether it learns what answers are worth by how sure they were. Then `said` is the class plus
    #: the number of classes times the tone (`venire.estimators.voices`).
    voices: ClassVar[bool] = False

    @abstractmethod
    def learn(self, items: Ints, labelers: Ints, said: Ints) -> None:
        """Learn from the labels since the last call, and update `belief`.

        One entry per label, in the order they came; items are numbered by arrival, labelers and
        classes by their place in the panel and the classes.
        """

    @abstractmethod
    def join(self, competence: float | None) -> None:
        """Add a labeler to the panel; its competence if it is stated."""

    def gold(self, item: int, label: int) -> None:
        """The class of an item is known; learners that cannot use it ignore it."""
        return

    def relate(self, families: Mapping[int, Hashable]) -> None:
        """Labelers, by number, who may share errors; learners that cannot use it ignore it."""
        return

    def alarms(self) -> Ints | None:
        """How often each labeler was found to have changed; None without a test for it."""
        return None

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """The whole state as arrays, for a snapshot."""

    @abstractmethod
    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned, to the bit."""


class Learning(ABC):
    """How competences are learned while a policy runs.

    Without one, the competences are known from the start (the paper's genie).
    """

    name: ClassVar[str]

    @abstractmethod
    def phase(self, slot: int) -> Policy | None:
        """The policy that replaces the usual one in this slot; None to serve."""

    @abstractmethod
    def next_refresh(self, slot: int) -> int | None:
        """The first slot, this one or a later one, at whose end competences are updated."""

    @abstractmethod
    def begin(self, competences: Sequence[float | None], classes: int) -> Learner:
        """A learner for this panel, before the first label.

        One entry per labeler: its competence if it is stated, else None.
        """

    def counts_from(self) -> int:
        """The first slot whose arrivals count for the utility."""
        return 0

    def describe(self) -> str:
        """Name and settings, as `--learning` takes them."""
        return self.name
