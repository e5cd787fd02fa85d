"""The contract of a competence estimator, and the part that all of them share.

The conventions are scikit-learn's: the constructor stores its parameters and nothing else,
`fit` returns the estimator itself, and what was learned has a trailing underscore.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from venire.competence.monitor import Monitor, Step
from venire.errors import StateError
from venire.labels import LabelTable

__all__ = ["BaseEstimator", "CompetenceEstimator", "Floats"]

Floats = NDArray[np.float64]


@runtime_checkable
class CompetenceEstimator(Protocol):
    """What every competence estimator offers.

    After `fit`, `competences_` is aligned with `table.labelers` and `posteriors_` has one row
    per item of the table and one column per class.

    >>> from venire.competence import Known
    >>> isinstance(Known({}), CompetenceEstimator)
    True
    """

    def fit(self, table: LabelTable) -> Self:
        """Estimate how good each labeler of the table is."""
        ...

    def fit_predict(self, table: LabelTable) -> dict[Hashable, Hashable]:
        """Fit, and say the class of each item."""
        ...


class BaseEstimator(ABC):
    """The shared part: named views of what `fit` found.

    Attributes
    ----------
    competences_ : array
        The competence of each labeler, in the order of `table.labelers`.
    posteriors_ : array, items x classes
        The probability of each class for each item.
    log_likelihood_ : float
        Log-likelihood of the labels under the competences found.
    n_iter_, converged_, history_
        How many iterations it took, whether it settled, and its `Step` per iteration.
    """

    competences_: Floats
    posteriors_: Floats
    log_likelihood_: float
    n_iter_: int
    converged_: bool
    history_: tuple[Step, ...]
    table_: LabelTable

    @abstractmethod
    def fit(self, table: LabelTable) -> Self:
        """Estimate how good each labeler of the table is."""

    def _settle(
        self,
        table: LabelTable,
        competences: Floats,
        posteriors: Floats,
        log_likelihood: float,
        monitor: Monitor,
    ) -> Self:
        """Keep what `fit` found, and forget the views of an earlier fit."""
        self.table_, self.competences_, self.posteriors_ = table, competences, posteriors
        self.log_likelihood_ = log_likelihood
        self.n_iter_, self.converged_ = monitor.n_iter, monitor.converged
        self.history_ = tuple(monitor.history)
        for view in ("labels_", "probas_", "skills_"):
            self.__dict__.pop(view, None)
        return self

    def fit_predict(self, table: LabelTable) -> dict[Hashable, Hashable]:
        """Fit, and say the class of each item."""
        return self.fit(table).labels_

    @cached_property
    def labels_(self) -> dict[Hashable, Hashable]:
        """The most probable class of each item; a tie goes to the later class, as in eq. 1.

        An item without any label has no verdict: None.
        """
        names = self.table_.classes
        best = len(names) - 1 - np.argmax(self.posteriors_[:, ::-1], axis=1)
        labelled = np.diff(self.table_.start) > 0
        said = (names[k] if has else None for k, has in zip(best, labelled, strict=True))
        return dict(zip(self.table_.items, said, strict=True))

    @cached_property
    def probas_(self) -> dict[Hashable, dict[Hashable, float]]:
        """The probability of each class for each item."""
        rows = (dict(zip(self.table_.classes, r, strict=True)) for r in self.posteriors_.tolist())
        return dict(zip(self.table_.items, rows, strict=True))

    @cached_property
    def skills_(self) -> dict[Hashable, float]:
        """The competence of each labeler."""
        return dict(zip(self.table_.labelers, self.competences_.tolist(), strict=True))

    if not TYPE_CHECKING:  # for a type checker every attribute would then exist

        def __getattr__(self, name: str) -> Any:
            """Explain what is missing when a result is read before `fit`."""
            kind = type(self).__name__
            if name.endswith("_") and not name.startswith("_"):
                raise _UnfittedError(f"{kind} has no {name} yet: call fit on a table first")
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")


class _UnfittedError(StateError, AttributeError):
    """Both a StateError and what `hasattr` expects."""
