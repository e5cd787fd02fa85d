"""Labelers who are copies of each other: three judges on one model are not three opinions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from venire.errors import InputError
from venire.estimators.base import BaseEstimator, Floats
from venire.estimators.screening.shared_errors import Panel, fit_panel, panel_pairs
from venire.labels import LabelTable
from venire.labels.counts import labels_given
from venire.labels.partitions import Table, gathered, total
from venire.labels.sources import as_labels
from venire.labels.subset import drop_empty, keep_labels

__all__ = ["CloneGroup", "ClonePair", "Clones", "find_clones", "manageable"]

#: Two labelers with fewer items in common are not compared.
MIN_OVERLAP: Final = 20

#: Two labelers whose errors correlate less than this are not copies.
STRENGTH: Final = 0.5

#: The most labelers that are compared, those with most labels: the matrix of pairs is dense.
MOST_LABELERS: Final = 2000

#: The most members of a group that are named.
MOST_NAMED: Final = 5

#: The most pairs of labels that are used; a larger table is sampled by items.
MOST_PAIRS: Final = 5_000_000


@dataclass(frozen=True)
class ClonePair:
    """Two labelers whose errors are more similar than the panel's.

    `correlation` is that of their labels given the truth; `p_value` is Holm's, so it accounts
    for all pairs that were compared.
    """

    first: Hashable
    second: Hashable
    correlation: float
    p_value: float


@dataclass(frozen=True)
class CloneGroup:
    """Labelers joined by clone pairs.

    `worth` is how many independent labelers the g members count for when their errors have a
    mean correlation r: g / (1 + (g - 1) r), the design effect of survey sampling.
    """

    members: tuple[Hashable, ...]
    correlation: float

    @property
    def worth(self) -> float:
        """How many independent labelers the group counts for."""
        g = len(self.members)
        return g / (1 + (g - 1) * self.correlation)

    @property
    def names(self) -> str:
        """The members, in words: at most five of them.

        >>> CloneGroup(("a", "b", "c"), 0.5).names
        'a, b and c'
        """
        more = len(self.members) - MOST_NAMED
        shown = [str(name) for name in self.members[:MOST_NAMED]]
        shown += [f"{more} more"] if more > 0 else []
        return ", ".join(shown[:-1]) + " and " + shown[-1]

    def record(self) -> dict[str, Any]:
        """The group for JSON, its members as text.

        >>> CloneGroup(("a", 2), 1.0).record()
        {'members': ['a', '2'], 'correlation': 1.0, 'worth': 1.0}
        """
        members = [str(name) for name in self.members]
        return {"members": members, "correlation": self.correlation, "worth": self.worth}


@dataclass(frozen=True)
class Clones:
    """The clone groups of a panel, the pairs that make them, and how many were compared."""

    groups: tuple[CloneGroup, ...]
    pairs: tuple[ClonePair, ...]
    compared: int


def find_clones(
    labels: Any,
    level: float = 0.05,
    *,
    strength: float = STRENGTH,
    min_overlap: int = MIN_OVERLAP,
    seed: int = 0,
) -> Clones:
    """Find labelers who agree more than their knowledge of the truth explains.

    What two labelers who know the truth to some degree should agree on is fitted to the whole
    panel (`venire.estimators.screening.shared_errors`), so what the panel has in common, such as
    item difficulty, does not count. A pair is a clone pair if its excess agreement is significant
    at `level` among all pairs compared (Holm), and its errors have a correlation of at least
    `strength`. Groups are what clone pairs connect. No model of the items is fitted: posteriors
    dominated by copies would explain their agreement away.

    It works as long as less than half of the labelers (of those who know something) are copies
    of one another: beyond that nothing in the labels says who the copies are.

    Parameters
    ----------
    labels
        A table of labels in any form, or a fitted estimator.
    level : float
        The probability of one or more false pairs, if there are no clones.
    strength : float
        How strongly errors must correlate. A lower value finds looser groups.
    min_overlap : int
        Items that two labelers must have in common to be compared.
    seed : int
        For the sample of items of a large table.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 8)) < 0.75, truth, 1 - truth)
    >>> copied = rng.random((300, 2)) < 0.95
    >>> said[:, 1:3] = np.where(copied, said[:, :1], said[:, 1:3])
    >>> found = find_clones(LabelTable.from_matrix(said))
    >>> [group.members for group in found.groups], round(found.groups[0].worth, 1), found.compared
    ([(0, 1, 2)], 1.1, 28)
    """
    if not 0 < level < 1:
        raise InputError(f"got level={level!r}, expected a number strictly between 0 and 1")
    if min_overlap < 2:
        raise InputError(f"got min_overlap={min_overlap!r}, expected at least 2")
    table = labels.table_ if isinstance(labels, BaseEstimator) else as_labels(labels)
    small, who = manageable(table, min_overlap, seed)
    panel = fit_panel(panel_pairs(small), min_overlap)
    if panel.first.size < 3:
        return Clones((), (), int(panel.first.size))
    p_value = _holm(ndtr(-panel.z))
    strong = (p_value <= level) & (panel.correlation >= strength)
    names = [table.labelers[m] for m in who]
    return Clones(
        _groups(panel, strong, names),
        tuple(
            ClonePair(names[a], names[b], float(r), float(p))
            for a, b, r, p in zip(
                panel.first[strong],
                panel.second[strong],
                panel.correlation[strong],
                p_value[strong],
                strict=True,
            )
        ),
        int(panel.first.size),
    )


def _holm(p: Floats) -> Floats:
    """Holm's step-down adjustment."""
    order = np.argsort(p, kind="stable")
    steps = np.minimum(p[order] * (p.size - np.arange(p.size)), 1.0)
    out = np.empty_like(p)
    out[order] = np.maximum.accumulate(steps)
    return out


def _groups(
    panel: Panel, strong: NDArray[np.bool_], names: list[Hashable]
) -> tuple[CloneGroup, ...]:
    a, b, n = panel.first[strong], panel.second[strong], len(names)
    links = csr_array((np.ones(a.size), (a, b)), shape=(n, n))
    _, group = connected_components(links, directed=False)
    sizes = np.bincount(group, minlength=n)
    inside = group[panel.first] == group[panel.second]
    found = []
    for g in np.flatnonzero(sizes > 1):
        of_g = inside & (group[panel.first] == g)
        r = float(np.clip(panel.correlation[of_g].mean(), 0, 1))
        found.append(CloneGroup(tuple(names[m] for m in np.flatnonzero(group == g)), r))
    return tuple(found)


def manageable(table: Table, min_overlap: int, seed: int) -> tuple[LabelTable, NDArray[np.int64]]:
    """The labelers worth comparing, and as many items as the limit allows."""
    given = labels_given(table)
    who = np.argsort(-given, kind="stable")[:MOST_LABELERS]
    who = np.sort(who[given[who] >= min_overlap])
    number = np.full(given.size, -1)
    number[who] = np.arange(who.size)
    share = MOST_PAIRS / max(float(total(table, _pairs)), 1.0)
    small = gathered(table, _chosen, number, share, seed)
    fewer = number[small.labeler].astype(small.labeler.dtype)
    return replace(small, labelers=who, labeler=fewer), who


def _pairs(table: LabelTable) -> float:
    return float((np.diff(table.start).astype(np.float64) ** 2).sum())


def _chosen(
    table: LabelTable, first: int, number: NDArray[np.int64], share: float, seed: int
) -> LabelTable:
    """The labels of those who are compared, on a random share of the items."""
    keep = number[table.labeler] >= 0
    if share < 1:
        draws = np.random.PCG64(seed)
        draws.advance(first)  # as if all items were here: one draw for each
        chosen = np.random.Generator(draws).random(len(table.items)) < share
        keep &= np.repeat(chosen, np.diff(table.start))
    return drop_empty(keep_labels(table, keep))
