r"""A panel against the truth: how many independent votes it amounts to, and agreement with experts.

With errors e (1 where a label is wrong) on the items of known truth, and rho the mean over pairs of
labelers of the correlation of their errors on the items that both labelled, k labelers are worth

    n_eff = k / (1 + (k - 1) rho)

independent ones (arXiv 2605.29800). Kappa is Cohen's: agreement with the experts beyond chance.

A labeler leans towards a class if it says it more often than it is true of the same items. With
pairs, whose classes are the sides, that is its position bias.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable

__all__ = ["AgainstTruth", "against_truth"]

Floats = NDArray[np.float64]

#: Pairs of labelers are compared if they share at least this number of items of known truth.
FEWEST_SHARED: Final = 5


@dataclass(frozen=True, slots=True)
class AgainstTruth:
    """What known labels say of a panel.

    `items` are those with a label and a known class; `labelers` are those that are compared,
    `correlation` the mean of the correlations of their errors (None if no pair can be compared),
    `votes` how many independent votes they amount to. `kappa` is each labeler's agreement with the
    truth beyond chance, None for those without labels there; `leaning` how much more often it says
    each class than it is true of the items it labelled, as a share of these.
    """

    items: int
    labelers: int
    correlation: float | None
    votes: float | None
    kappa: dict[Hashable, float | None]
    leaning: dict[Hashable, dict[Hashable, float]]

    @property
    def words(self) -> str:
        """In one sentence."""
        if self.votes is None or self.correlation is None:
            return f"against {self.items:,} known labels no two labelers can be compared"
        return (
            f"against {self.items:,} known labels, {self.labelers} labelers are worth "
            f"{self.votes:.1f} independent votes (mean correlation of errors "
            f"{self.correlation:.2f})"
        )

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "items": self.items,
            "labelers": self.labelers,
            "correlation": self.correlation,
            "votes": self.votes,
            "kappa": {str(name): value for name, value in self.kappa.items()},
            "leaning": {
                str(name): {str(k): x for k, x in lean.items()}
                for name, lean in self.leaning.items()
            },
        }


def against_truth(table: LabelTable, truth: NDArray[np.int64]) -> AgainstTruth:
    """Compare the labels with the class of each item, -1 where it is not known.

    >>> said = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    >>> found = against_truth(LabelTable.from_matrix(said), np.array([0, 1, 0, 1, 0, 1]))
    >>> round(found.correlation, 2), round(found.votes, 2)
    (0.12, 2.41)
    >>> [round(k, 2) for k in found.kappa.values()]
    [0.33, 0.33, 0.67]
    >>> {k: round(x, 2) for k, x in found.leaning[2].items()}  # it says 1 a sixth more often
    {0: -0.17, 1: 0.17}
    """
    known = truth >= 0
    there = known[table.item]
    item, who = table.item[there], table.labeler[there].astype(np.int64)
    wrong = table.said[there] != truth[item]
    used, place = np.unique(item, return_inverse=True)
    M = len(table.labelers)
    correlation, compared = _correlation(place, who, wrong.astype(np.float64), len(used), M)
    votes = None
    if correlation is not None:
        votes = compared / max(1 + (compared - 1) * correlation, 1e-9)
    kappas, leaning = _kappas(table, truth, there), _leaning(table, truth, there)
    return AgainstTruth(len(used), compared, correlation, votes, kappas, leaning)


def _leaning(
    table: LabelTable, truth: NDArray[np.int64], there: NDArray[np.bool_]
) -> dict[Hashable, dict[Hashable, float]]:
    """How much more often each labeler says a class than it is true of what it labelled."""
    M, K = len(table.labelers), len(table.classes)
    place = table.labeler[there].astype(np.int64) * (K + 1)
    said, right = (
        np.bincount(place + np.minimum(k, K), minlength=M * (K + 1)).reshape(M, K + 1)
        for k in (table.said[there], truth[table.item[there]])
    )
    given = said.sum(axis=1)
    more = (said - right)[:, :K] / np.maximum(given, 1)[:, None]
    return {
        name: dict(zip(table.classes, more[m].tolist(), strict=True))
        for m, name in enumerate(table.labelers)
        if given[m]
    }


def _correlation(
    item: NDArray[np.int64], who: NDArray[np.int64], wrong: Floats, items: int, labelers: int
) -> tuple[float | None, int]:
    """The mean correlation of the errors of pairs, and how many labelers are in one."""
    errors, given = np.zeros((items, labelers)), np.zeros((items, labelers))
    errors[item, who], given[item, who] = wrong, 1.0
    shared = given.T @ given
    own = errors.T @ given  # errors of the first on the items of both
    both = errors.T @ errors
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = own / shared, own.T / shared
        covariance = both / shared - first * second
        spread = np.sqrt(first * (1 - first) * second * (1 - second))
        found = np.where(spread > 0, covariance / spread, np.nan)
    upper = np.triu(shared >= FEWEST_SHARED, 1) & np.isfinite(found)
    if not upper.any():
        return None, 0
    members = int((upper.any(axis=0) | upper.any(axis=1)).sum())
    return float(found[upper].mean()), members


def _kappas(
    table: LabelTable, truth: NDArray[np.int64], there: NDArray[np.bool_]
) -> dict[Hashable, float | None]:
    """Cohen's kappa of each labeler with the truth; a class that nobody said is one more."""
    K = len(table.classes) + 1
    kappas: dict[Hashable, float | None] = {}
    for m, name in enumerate(table.labelers):
        mine = there & (table.labeler == m)
        said, right = table.said[mine], truth[table.item[mine]]
        if not said.size:
            kappas[name] = None
            continue
        by_chance = float(
            (np.bincount(said, minlength=K) * np.bincount(right, minlength=K)).sum()
        ) / (said.size**2)
        agreed = float((said == right).mean())
        kappas[name] = (agreed - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return kappas
