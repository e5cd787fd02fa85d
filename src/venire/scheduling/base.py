"""The contract of a policy: who labels what, and when an item leaves.

A policy is a small frozen value (its settings) that names its compiled kernels. The engine and
the simulator call the same kernels; nothing else decides. To add one: write a file with the
kernels and a `Policy` subclass, and name it in the package's `__init__`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
from venire.scheduling.state.policy_memory import PolicyMemory

__all__ = ["Belief", "Kernels", "Learner", "Learning", "Policy"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Kernels(NamedTuple):
    """The compiled side of a policy; each works on a `Desk`.

    enter(desk, row, slot)    the row becomes outstanding, or comes back with another value
    leave(desk, row)          the row is taken out of whatever the policy keeps
    serve(desk, slot)         hand out this slot's work by `touch`
    settle(desk, slot)        end the slot; how many rows leave, listed in `desk.gone`
    hear(desk, labels, slot, fresh)   labels come in; which are new (see incoming_labels.py)
    refile(desk, rows, slot)  value these rows and enter them, one after the other

    A policy writes the first three; `algorithm1.build.compiled` makes the rest.
    """

    enter: Callable[..., None]
    leave: Callable[..., None]
    serve: Callable[..., None]
    settle: Callable[..., Any]
    hear: Callable[..., int]
    refile: Callable[..., None]


class Policy:
    """Who labels what, and when an item leaves.

    `name` is what `--policy` calls it; `built` are its kernels, from `algorithm1.build.compiled`.
    `memory` names what the kernels remember in `desk.gauges` from slot to slot, and
    `counter_names` what they count in `meta[COUNTER:]`, up to eight. Both belong to the policy:
    they are reset when it replaces a policy of another class (see state/policy_memory.py).
    """

    name: ClassVar[str]
    built: ClassVar[Kernels]
    memory: ClassVar[PolicyMemory] = PolicyMemory()
    counter_names: ClassVar[tuple[str, ...]] = ()

    def kernels(self) -> Kernels:
        """The compiled kernels."""
        return self.built

    def settings(self) -> tuple[int, ...]:
        """Up to four whole numbers that the kernels read from `meta[SETTING:]`."""
        return ()

    def price(self, gauges: Floats) -> float | None:
        """What a unit of evidence cost when work was last handed out; None without prices."""
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
    """What is taken for true of the labelers, and of how often each class comes.

    Parameters
    ----------
    competences
        One number for each labeler.
    confusions
        [labeler, truth, said], for labelers who are not as good on every class.
    prior
        How often each class comes; None: equally often.
    hoped
        Competences by which work is handed out where they promise more than the belief does,
        so that a labeler nobody knows gets a chance. Verdicts never use them.
    seed
        Labelers who are worth the same are ordered by a draw from this, so that it is not always
        the same ones who label an item together; None: by their number.
    certainty
        What the log-odds of a verdict are multiplied by to say how sure it is: below 1 where labels
        share their errors. Neither verdicts nor who gets what depend on it.
    """

    competences: Floats
    confusions: Floats | None = None
    prior: Floats | None = None
    hoped: Floats | None = None
    seed: int | None = None
    certainty: float = 1.0

    def evidence(self, classes: int) -> Floats:
        """How much a label of each is worth, by the paper's measure; work goes by it.

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
        """How much each label speaks for each class: [labeler, said, class]."""
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

    `belief` is what it takes for true now; None while nothing is known.
    """

    belief: Belief | None = None

    @abstractmethod
    def learn(self, items: Ints, labelers: Ints, said: Ints) -> None:
        """Take in the labels that came since the last time, and form `belief` anew.

        One entry per label, in the order they came; items are numbered as they arrived,
        labelers and classes as they are in the panel and the classes.
        """

    @abstractmethod
    def join(self, competence: float | None) -> None:
        """One more labeler on the panel; its competence if somebody says it."""

    def alarms(self) -> Ints | None:
        """How often each labeler was found to have changed; None where nobody looks."""
        return None

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, for a snapshot."""

    @abstractmethod
    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Go on from what `state` gave, to the bit."""


class Learning(ABC):
    """How the competences come to be known while a policy runs.

    Where there is none, the competences are known from the start (the paper's genie).
    """

    name: ClassVar[str]

    @abstractmethod
    def phase(self, slot: int) -> Policy | None:
        """The policy that takes this slot over, None to serve."""

    @abstractmethod
    def next_refresh(self, slot: int) -> int | None:
        """The first slot, this one or a later one, at whose end competences are learned anew."""

    @abstractmethod
    def begin(self, competences: Sequence[float | None], classes: int) -> Learner:
        """A learner for this panel, before the first label.

        One entry per labeler: its competence if somebody says it, else None.
        """

    def counts_from(self) -> int:
        """The first slot whose arrivals count for the utility."""
        return 0

    def describe(self) -> str:
        """Name and settings, as `--learning` takes them."""
        return self.name
