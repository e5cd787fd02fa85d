"""What learning while serving estimates with: a stream, or any estimator on a window of labels.

Both begin with "better than chance", take labels as they come, go on from where they stand, and
remember a bounded number of items.
"""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from venire.accuracy import clamp_competence, clamp_confusions
from venire.competence.base import BaseEstimator
from venire.competence.stream_files import pack, unpack
from venire.competence.stream_panel import forget, welcome
from venire.competence.streaming import Streaming
from venire.labels import LabelTable
from venire.scheduling.base import Floats, Ints

__all__ = ["Estimate", "FromBatches", "FromStream", "Guess"]

Arrays = dict[str, NDArray[Any]]

#: A thorough look sweeps the window so often, or until nothing moves by more than this.
SWEEPS, STILL = 100, 1e-5

#: Nobody is taken to be better than 1 - RHO on the word of a batch estimator.
RHO = 0.01


class Guess(NamedTuple):
    """What is thought of the labelers: competences, and full matrices if there are any."""

    competences: Floats
    confusions: Floats | None = None
    prior: Floats | None = None


class Estimate(ABC):
    """What is known of a panel, by numbers."""

    @abstractmethod
    def take(self, items: Ints, labelers: Ints, said: Ints, thorough: bool) -> None:
        """Take labels in; if `thorough`, work through everything that is remembered."""

    @abstractmethod
    def join(self, competence: float | None) -> None:
        """One more labeler."""

    @abstractmethod
    def guess(self) -> Guess:
        """What is thought now."""

    @abstractmethod
    def state(self) -> Arrays:
        """All of it as arrays of its own."""

    @abstractmethod
    def restore(self, state: Arrays) -> None:
        """Go on from what `state` gave."""


class FromStream(Estimate):
    """Incremental EM on a window (`Streaming`); a labeler that has changed is learned anew."""

    def __init__(self, stream: Streaming, competences: Sequence[float | None]) -> None:
        self.stream, self.labelers = stream, 0
        for p in competences:
            self.join(p)

    def take(self, items: Ints, labelers: Ints, said: Ints, thorough: bool) -> None:
        """Take labels in; of those for whom the drift test raised an alarm, forget the past."""
        before = self._alarms()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the classes got their names back
            if said.size:
                self.stream.update(items, labelers, said)
            changed = self._alarms() > before
            if changed.any():
                forget(self.stream, changed)
            if thorough and self.stream._core.labels:
                self.stream.refine(SWEEPS, STILL)

    def _alarms(self) -> Ints:
        monitor = self.stream._core.monitor
        return np.zeros(self.labelers, np.int64) if monitor is None else monitor.alarms.copy()

    def join(self, competence: float | None) -> None:
        """One more labeler."""
        welcome(self.stream, self.labelers, competence)
        self.labelers += 1

    def guess(self) -> Guess:
        """Competences; full matrices and the frequencies of the classes if it learns them."""
        found = self.stream
        if found.model == "one-coin":
            return Guess(found.competences_)
        return Guess(found.competences_, found.confusions_, found.priors_)

    def state(self) -> Arrays:
        """The stream, as it is saved."""
        return {name: array.copy() for name, array in pack(self.stream).items()}

    def restore(self, state: Arrays) -> None:
        """The stream, as it was saved."""
        own = {name: state[name].copy() for name in pack(self.stream)}
        self.stream = unpack(type(self.stream), own)
        self.labelers = len(self.stream.labelers_)


class FromBatches(Estimate):
    """Any estimator, fitted again and again to the labels of the latest items.

    It starts from what it found last where it can (where it has a parameter `start`). Who has
    no label in the window is what somebody said of it, or a stranger.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        competences: Sequence[float | None],
        classes: int,
        window: int,
        stranger: float,
    ) -> None:
        self.estimator, self.classes, self.window = estimator, classes, window
        self.stranger = stranger
        self.given = np.array([stranger if p is None else p for p in competences])
        self.labels = np.zeros((0, 3), np.int64)
        self.found: Guess | None = None
        self.warm = "start" in getattr(estimator, "__dataclass_fields__", {})

    def take(self, items: Ints, labelers: Ints, said: Ints, thorough: bool) -> None:
        """Keep the labels; if `thorough`, fit all that are kept."""
        self.labels = np.concatenate([self.labels, np.column_stack([items, labelers, said])])
        if not thorough or not len(self.labels):
            return
        names, index = np.unique(self.labels[:, 0], return_inverse=True)
        kept = index >= len(names) - self.window
        names, self.labels = names[-self.window :], self.labels[kept]
        index = index[kept] - index[kept].min()
        panel, classes = tuple(range(len(self.given))), tuple(range(self.classes))
        codes = index, self.labels[:, 1], self.labels[:, 2]
        table = LabelTable.from_codes(*codes, tuple(names.tolist()), panel, classes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few labels, near chance: it will see more
            self._settle(self._begin().fit(table))

    def _begin(self) -> BaseEstimator:
        """A fresh estimator, which starts from what was found last if it can."""
        if not self.warm or self.found is None:
            return copy.copy(self.estimator)
        last = self.found
        start = last.competences if last.confusions is None else last.confusions
        return cast(BaseEstimator, replace(cast(Any, self.estimator), start=start))

    def _settle(self, fitted: BaseEstimator) -> None:
        full = "confusions_" in vars(fitted)
        p = clamp_competence(fitted.competences_, self.classes, RHO)
        seen = np.bincount(self.labels[:, 1], minlength=len(self.given)) > 0
        p = np.where(seen, p, self.given)
        if not full:
            self.found = Guess(p)
            return
        square = _coins(self.given, self.classes)
        matrices = np.where(seen[:, None, None], fitted.confusions_, square)
        self.found = Guess(p, clamp_confusions(matrices, RHO), fitted.priors_.copy())

    def join(self, competence: float | None) -> None:
        """One more labeler."""
        self.given = np.append(self.given, self.stranger if competence is None else competence)
        if self.found is not None:
            p, square, prior = self.found
            more = _coins(self.given[-1:], self.classes)
            square = None if square is None else np.concatenate([square, more])
            self.found = Guess(np.append(p, self.given[-1]), square, prior)

    def guess(self) -> Guess:
        """What the last fit found."""
        return self.found or Guess(self.given.copy())

    def state(self) -> Arrays:
        """The labels that are kept, and what the last fit found."""
        state = {"given": self.given.copy(), "labels": self.labels.copy()}
        if self.found is not None:
            named = self.found._asdict().items()
            state |= {f"found.{name}": a.copy() for name, a in named if a is not None}
        return state

    def restore(self, state: Arrays) -> None:
        """The same."""
        self.given, self.labels = state["given"].copy(), state["labels"].copy()
        found = {n: state[f"found.{n}"].copy() for n in Guess._fields if f"found.{n}" in state}
        self.found = Guess(**found) if found else None


def _coins(competences: Floats, classes: int) -> Floats:
    p = clamp_competence(competences, classes, RHO)[:, None, None]
    return np.where(np.eye(classes, dtype=np.bool_), p, (1.0 - p) / (classes - 1))
