r"""How often two labelers agree, how often they should, and how alike that makes their errors.

Correct the agreement of labelers a and b, on the items that both have labelled, for chance:

    c_ab = (agreement - sum_k p_ak p_bk) / sqrt( (1 - sum_k p_ak**2) (1 - sum_k p_bk**2) )

with p_ak how often a says k there. If all that a and b have in common is the truth, c_ab is a
product l_a l_b: exactly for two classes and any confusion matrices, and nearly so for more.
Difficulty that everybody shares keeps it a product, only with larger l, so that a pair which
stands out from l_a l_b has something in common that the panel has not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import bdtrc, betaln, ndtri, xlog1py, xlogy

from venire.estimators.base import Floats
from venire.labels import LabelTable

__all__ = ["PairCounts", "Panel", "fit_panel", "panel_pairs"]

#: A pair that stands out by more than this is left out when the l are fitted.
OUTLIER: Final = 3.0

#: Labelers whose pooled agreement is below this many standard errors say nothing about others.
INFORMED: Final = 2.0

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
        out = z > OUTLIER
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
    informed = pooled > INFORMED
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
