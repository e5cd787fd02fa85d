"""The results of a stream, readable at any time; reading changes nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.parameters import Parameters
from venire.estimators.streaming.drift import Drift
from venire.estimators.streaming.remembered_labels import ITEM, opinions, posteriors
from venire.estimators.streaming.state import Found, StreamState
from venire.estimators.ties import winners

__all__ = ["StreamViews"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class StreamViews(Parameters):
    """The read-only side of `Streaming`: posteriors, verdicts, skills and drift, by name."""

    state: StreamState
    _read: Found | None

    @abstractmethod
    def _fit(self) -> Found:
        """Fit the estimator to the labels in the window."""

    def _present(self) -> Found:
        """The current fit, kept until new labels come."""
        if self._read is None:
            self._read = self._fit()
        return self._read

    def posterior_of(self, items: Iterable[Hashable]) -> Floats:
        """The probability of each class, one row per item: current, or final."""
        names = list(items)
        of, finals = self.state.items, self.state.finals.of
        unknown = next((n for n in names if n not in of and n not in finals), None)
        if unknown is not None:
            raise InputError(
                f"item {unknown!r} is not known: expected one that was labelled and is among the "
                f"{len(of)} items in the window or the {len(finals)} final verdicts"
            )
        present = self._present()
        out = np.empty((len(names), len(present.priors)))
        here = np.array([n in of for n in names], dtype=np.bool_)
        out[here] = self._posteriors(_ints(of[n] for n in names if n in of))
        out[~here] = self.state.finals.posteriors((n for n in names if n not in of), out.shape[1])
        return out

    def _posteriors(self, numbers: Ints) -> Floats:
        """Posteriors of items in the window; class shares for one whose labels were all dropped."""
        found = self._present()
        wanted = np.unique(numbers)
        labels = self.state.labels
        if len(wanted) < len(self.state.items):
            labels = labels[np.isin(labels[:, ITEM], wanted)]
        items, told = opinions(labels, *found[:2])
        logs = np.tile(np.log(found.priors), (len(wanted), 1))
        logs[np.searchsorted(wanted, items)] = told
        out = posteriors(found.certainty * logs)
        for name, code in self.state.gold.items():
            place = int(np.searchsorted(wanted, self.state.items.get(name, -1)))
            if place < len(wanted) and wanted[place] == self.state.items.get(name, -1):
                out[place] = np.eye(out.shape[1])[code]
        return out[np.searchsorted(wanted, numbers)]

    def skill_of(self, labeler: Hashable) -> float:
        """The chance that this labeler is right about an item."""
        if labeler not in self.state.labelers:
            raise InputError(
                f"labeler {labeler!r} is not known: expected one who was declared or seen"
            )
        return float(self.competences_[self.state.labelers[labeler]])

    def is_final(self, item: Hashable) -> bool:
        """Whether the verdict on this item is final."""
        return item in self.state.finals.of

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return tuple(self.state.classes)

    @property
    def labelers_(self) -> tuple[Hashable, ...]:
        """The labelers, in the order of their codes."""
        return tuple(self.state.labelers)

    @property
    def items_(self) -> tuple[Hashable, ...]:
        """The items that are known: those with final verdicts, then those in the window."""
        return (*self.state.finals.of, *self.state.items)

    @property
    def posteriors_(self) -> Floats:
        """The probability of each class, one row for each of `items_`."""
        return self.posterior_of(self.items_)

    @property
    def labels_(self) -> dict[Hashable, Hashable]:
        """The most probable class of each of `items_`; a tie is broken by a draw from names."""
        names, items = self.classes_, self.items_
        best = winners(self._named(), items, names).tolist() if names else []
        return dict(zip(items, (names[k] for k in best), strict=True))

    @property
    def probas_(self) -> dict[Hashable, dict[Hashable, float]]:
        """The probability of each class for each of `items_`."""
        rows = (dict(zip(self.classes_, r, strict=True)) for r in self._named().tolist())
        return dict(zip(self.items_, rows, strict=True))

    def _named(self) -> Floats:
        """The posteriors without a second class that has no name yet."""
        return self.posteriors_[:, : max(1, len(self.state.classes))]

    @property
    def confusions_(self) -> Floats:
        """Confusion matrices, labelers x K (truth) x K (said)."""
        return self._present().confusions.copy()

    @property
    def priors_(self) -> Floats:
        """How frequent each class is."""
        return self._present().priors.copy()

    @property
    def competences_(self) -> Floats:
        """The chance that a labeler is right, in the order of `labelers_`."""
        return np.asarray(np.einsum("mkk,k->m", self.confusions_, self.priors_))

    @property
    def skills_(self) -> dict[Hashable, float]:
        """The chance that a labeler is right."""
        return dict(zip(self.state.labelers, self.competences_.tolist(), strict=True))

    @property
    def log_likelihood_(self) -> float:
        """Log-likelihood of the labels in the window."""
        _, told = opinions(self.state.labels, *self._present()[:2])
        return float(np.logaddexp.reduce(told, axis=1).sum())

    @property
    def drift_(self) -> dict[Hashable, Drift]:
        """Whether each labeler has changed; empty with drift=None."""
        if self.state.monitor is None:
            return {}
        return dict(zip(self.state.labelers, self.state.monitor.drifts(), strict=True))


def _ints(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)
