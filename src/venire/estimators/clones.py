r"""Labelers who are copies of each other: three judges on one model are not three opinions.

**How often two labelers agree, how often they should, and how alike that makes their errors.**

Correct the agreement of labelers a and b, on the items that both have labelled, for chance:

    c_ab = (agreement - sum_k p_ak p_bk) / sqrt( (1 - sum_k p_ak**2) (1 - sum_k p_bk**2) )

with p_ak how often a says k there. If all that a and b have in common is the truth, c_ab is a
product l_a l_b: exactly for two classes and any confusion matrices, and nearly so for more.
Difficulty that everybody shares keeps it a product, only with larger l, so that a pair which
stands out from l_a l_b has something in common that the panel has not.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtrc, betaln, ndtr, ndtri, xlog1py, xlogy

from venire.errors import InputError
from venire.estimators.base import BaseEstimator
from venire.labels import LabelTable
from venire.labels.partitions import Table, gathered, labels_given, total
from venire.labels.sources import as_labels
from venire.labels.table import drop_empty, keep_labels
from venire.tools.arrays import Floats

#: A pair that stands out by more than this is left out when the l are fitted.
OUTLIER_Z: Final = 3.0

#: Labelers whose pooled agreement is below this many standard errors say nothing about others.
INFORMED_ERRORS: Final = 2.0

#: The l stay below this, so that a pair of perfect labelers still leaves room for errors.
_MOST: Final = 0.98
_FLOOR: Final = 0.01
_EXTREME: Final = 37.0


class PairCounts(NamedTuple):
    """Labelers x labelers: items in common, on how many they agree, chance, and its scale."""

    shared: Floats
    agree: Floats
    chance: Floats
    scale: Floats

    @property
    def corrected(self) -> Floats:
        """The chance-corrected agreement c_ab, 0 where it is not defined."""
        ok = (self.shared > 0) & (self.scale > 1e-9)
        out = np.zeros_like(self.shared)
        np.divide(self.agree / np.maximum(self.shared, 1) - self.chance, self.scale, out, where=ok)
        return out


class Panel(NamedTuple):
    """The pairs a < b that share enough items, against what the panel makes one expect."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    z: Floats
    correlation: Floats


def panel_pairs(table: LabelTable) -> PairCounts:
    """Agreement of all pairs of labelers.

    >>> counts = panel_pairs(LabelTable.from_matrix([[0, 0], [1, 1], [0, 1], [1, 1]]))
    >>> counts.agree[0, 1].tolist(), round(float(counts.corrected[0, 1]), 3)
    (3.0, 0.577)
    """
    item, shape = table.item, (len(table.items), len(table.labelers))
    everyone = csr_array((np.ones(item.size), (item, table.labeler)), shape=shape)
    shared: Floats = (everyone.T @ everyone).toarray()
    agree, chance, square = (np.zeros_like(shared) for _ in range(3))
    for k in range(len(table.classes)):
        k_ = table.said == k
        of_k = csr_array((np.ones(int(k_.sum())), (item[k_], table.labeler[k_])), shape=shape)
        said = (of_k.T @ everyone).toarray()
        agree += (of_k.T @ of_k).toarray()
        chance += said * said.T
        square += said * said
    items = np.maximum(shared, 1)
    spread = np.maximum(1 - square / items**2, 0)
    return PairCounts(shared, agree, chance / items**2, np.sqrt(spread * spread.T))


def fit_panel(counts: PairCounts, min_overlap: int) -> Panel:
    """Fit the l, leaving out pairs that stand out, and say by how much each pair does.

    Agreements are binomial, so z comes from the exact tail (mid-p). It is centred and scaled
    by its median and its median absolute deviation over all pairs (never to less than 1): what
    is usual in a panel does not stand out, be it common difficulty or K > 2.
    """
    pairs = (counts.shared >= min_overlap) & (counts.scale > 1e-9)
    np.fill_diagonal(pairs, False)
    a, b = np.nonzero(np.triu(pairs))
    c, weight = counts.corrected, np.where(pairs, counts.shared * counts.scale, 0.0)
    l = _start(c, pairs, counts.shared)
    for _ in range(10):
        z = _standing_out(counts, l, a, b)
        out = z > OUTLIER_Z
        usable = weight.copy()
        usable[a[out], b[out]] = usable[b[out], a[out]] = 0.0
        better = _products(c, usable, l)
        moved = np.abs(better - l).max(initial=0.0)
        l = better
        if moved < 1e-4:
            break
    left = np.sqrt((1 - l[a] ** 2) * (1 - l[b] ** 2))
    correlation = np.clip((c[a, b] - l[a] * l[b]) / left, -1, 1)
    return Panel(a, b, _standing_out(counts, l, a, b), correlation)


def _start(c: Floats, pairs: NDArray[np.bool_], shared: Floats) -> Floats:
    """Medians, which a group of copies does not move; over partners who know something."""
    counted = np.where(pairs, shared, 0.0)
    pooled = (counted * c).sum(axis=1) / np.sqrt(np.maximum(counted.sum(axis=1), 1))
    informed = pooled > INFORMED_ERRORS
    if informed.sum() < 3:
        informed[:] = True
    usable = pairs & informed
    among = c[usable & informed[:, None]]
    typical = max(float(np.median(among)) if among.size else 0.0, _FLOOR)
    rows = [np.median(row[ok]) if ok.any() else 0.0 for row, ok in zip(c, usable, strict=True)]
    return np.asarray(np.clip(np.array(rows) / np.sqrt(typical), -_MOST, _MOST))


def _products(c: Floats, weight: Floats, l: Floats) -> Floats:
    """Weighted least squares of c_ab on l_a l_b, by damped alternation."""
    pairs, weighted = csr_array(weight), csr_array(weight * c)
    for _ in range(200):
        top, bottom = weighted @ l, pairs @ (l * l)
        fitted = np.divide(top, bottom, np.zeros_like(l), where=bottom > 1e-12)
        better = (l + np.clip(fitted, -_MOST, _MOST)) / 2
        moved = np.abs(better - l).max(initial=0.0)
        l = better
        if moved < 1e-7:
            break
    return l


def _standing_out(
    counts: PairCounts, l: Floats, a: NDArray[np.int64], b: NDArray[np.int64]
) -> Floats:
    """Z of each pair against the product of its l, in units of the panel's own spread."""
    n, x = counts.shared[a, b], counts.agree[a, b]
    expected = np.clip(counts.chance[a, b] + counts.scale[a, b] * l[a] * l[b], 1e-9, 1 - 1e-9)
    # the binomial tail, half of x itself included; scipy.stats takes a second to import
    log = xlogy(x, expected) + xlog1py(n - x, -expected) - betaln(n - x + 1, x + 1) - np.log1p(n)
    tail = bdtrc(x, n.astype(np.int64), expected) + 0.5 * np.exp(log)
    z = np.clip(-ndtri(np.clip(tail, 1e-300, 1.0)), -_EXTREME, _EXTREME)
    if not z.size:
        return np.asarray(z)
    middle = np.median(z)
    scale = max(1.0, 1.4826 * float(np.median(np.abs(z - middle))))
    return np.asarray((z - max(float(middle), 0.0)) / scale)


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
    panel (`venire.estimators.clones`), so what the panel has in common, such as
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
    columns = (x[strong] for x in (panel.first, panel.second, panel.correlation, p_value))
    rows = zip(*columns, strict=True)
    pairs = tuple(ClonePair(names[a], names[b], float(r), float(p)) for a, b, r, p in rows)
    return Clones(_groups(panel, strong, names), pairs, int(panel.first.size))


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
