r"""The start of Online Learn: competences from how often labelers agree (Algorithm 3, 2-3).

Under the one-coin model two labelers agree with probability 1/K + K/(K-1) (p_a - 1/K)(p_b - 1/K),
for any class frequencies, so the *agreement moment*

    N_ab = (K-1)/K * (share of co-labelled items on which a and b agree - 1/K)

estimates (p_a - 1/K)(p_b - 1/K), and any two partners m, m' of labeler i give

    p_i = 1/K ± sqrt( N_im * N_im' / N_mm' ).

Only items that both have labelled count, so the labels may be complete or partial.

**A start from the agreement of all pairs of labelers: a weighted rank-one fit.**

Under the one-coin model, for any K and any class frequencies,

    K/(K-1) (agreement of a and b - 1/K) = r_a r_b,   r = (K p - 1) / (K - 1),

so the matrix of all pairs has rank one off its diagonal. The fit

    minimise  sum over pairs a < b of n_ab (A_ab - r_a r_b)**2

weighs a pair by the number n_ab of items that both have labelled, and uses every pair where
Algorithm 3 (`spectral_start`) uses one triple for each labeler.

The compiled loops of the spectral starts: which labelers agree, and the search for triples.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError, UnknownName
from venire.labels import LabelTable
from venire.labels.partitions import Table, total
from venire.tools.arrays import Floats, Ints
from venire.tools.compiling import threaded

Codes = NDArray[np.integer[Any]]


@threaded()
def best_triples(first: Ints, second: Ints, known: NDArray[np.bool_]) -> Ints:
    """For each labeler, the first pair of the list that it completes to a triple.

    `first` and `second` list the pairs, best first; `known[a, b]` says that the moment of a
    and b is defined. Returns the index of the pair for each labeler, -1 where there is none.
    """
    found = np.full(known.shape[0], -1, dtype=np.int64)
    for i in range(known.shape[0]):
        for j in range(first.size):
            a, b = first[j], second[j]
            if a != i and b != i and known[i, a] and known[i, b]:
                found[i] = j
                break
    return found


@threaded()
def count_pairs(start: Ints, labeler: Codes, said: Codes, agree: Floats, shared: Floats) -> None:
    """Add up, for a <= b, the items that labelers a and b both labelled, and alike."""
    for i in range(start.size - 1):
        for e in range(start[i], start[i + 1]):
            a, k = labeler[e], said[e]
            for f in range(e, start[i + 1]):
                shared[a, labeler[f]] += 1.0
                if said[f] == k:
                    agree[a, labeler[f]] += 1.0


SignRule = Literal["fixed", "literal"]

#: A start goes at most this share of the way from chance to never wrong, or never right. EM
#: cannot leave an exact 0 or 1, and one labeler considered infallible dominates the others: of 500
#: learning phases of five items (the paper's panel) it ended with wrong verdicts in 62 with a share
#: of 0.98, in 17 with 0.8.
REACH: Final = 0.8

#: Two labelers with fewer items in common say too little about each other.
MIN_OVERLAP: Final = 10


def agreement_moments(table: Table, min_overlap: int = MIN_OVERLAP) -> Floats:
    """The matrix N_ab of agreement moments, NaN for labelers with too few items in common.

    A moment is defined when the two share at least `min_overlap` items; where no pair of the table
    shares that many, when they share as many as the best pair does. In a complete table all pairs
    share all items, so all moments are defined.

    >>> N = agreement_moments(LabelTable.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]]))
    >>> N.tolist()
    [[0.25, 0.125, 0.125], [0.125, 0.25, 0.0], [0.125, 0.0, 0.25]]
    """
    if min_overlap < 1:
        raise InputError(f"got min_overlap={min_overlap!r}, expected a whole number above 0")
    K = len(table.classes)
    agree, shared = pair_counts(table)
    off_diagonal = shared[~np.eye(len(table.labelers), dtype=np.bool_)]
    enough = max(1, min(min_overlap, off_diagonal.max(initial=0)))
    share = np.full_like(agree, np.nan)
    np.divide(agree, shared, out=share, where=shared >= enough)
    moments: Floats = (K - 1) / K * (share - 1 / K)
    return moments


def pair_counts(table: Table) -> tuple[Floats, Floats]:
    """For all pairs of labelers, on how many items they agree, and how many both labelled.

    >>> agree, shared = pair_counts(LabelTable.from_matrix([[0, 0], [1, 0], [1, -1]]))
    >>> agree.tolist(), shared.tolist()
    ([[3.0, 1.0], [1.0, 2.0]], [[3.0, 2.0], [2.0, 2.0]])
    """
    agree, shared = total(table, _ordered_pairs)
    upper = np.triu_indices(len(table.labelers), 1)
    for counts in (agree, shared):
        counts.T[upper] = counts[upper]
    return agree, shared


def _ordered_pairs(table: LabelTable) -> tuple[Floats, Floats]:
    """The counts of the pairs a <= b."""
    n = len(table.labelers)
    agree, shared = np.zeros((n, n)), np.zeros((n, n))
    count_pairs(table.start, table.labeler, table.said, agree, shared)
    return agree, shared


def spectral_start(
    table: Table,
    *,
    min_overlap: int = MIN_OVERLAP,
    sign_rule: SignRule = "fixed",
    reach: float = REACH,
) -> Floats:
    r"""Competences from agreement alone (Algorithm 3, Online Learn, lines 2 and 3).

        p_i = 1/K + sign(N_{i m_1}) sqrt( N_{i m_i} N_{i m'_i} / N_{m_i m'_i} )

    where (m_i, m'_i) is the pair of largest abs(N) that leaves out i and whose three moments
    with i are defined; of equal pairs the one that comes first in the table. The sign is
    anchored on m_1, the partner of the first labeler that has a pair. Then, since the
    labels cannot distinguish a panel from its mirror image, all p become 2/K - p if their mean is
    *below* 1/K. What the paper leaves open:

    - a negative radicand, or N_{m_i m'_i} = 0, says nothing: chance, p = 1/K;
    - a labeler with too few items in common with the anchor takes its sign from its m_i;
    - a labeler without a pair gets the mean of the others;
    - if there is no pair at all (two labelers or fewer), or all others are at chance, from
      where EM could not move, everybody gets (1 + 1/K) / 2: EM then starts from majority.

    Parameters
    ----------
    table : LabelTable or Partitions
        Complete or partial labels of any K.
    min_overlap : int
        See `agreement_moments`.
    sign_rule : "fixed" or "literal"
        "literal" flips when the mean is *at least* 1/K, as printed in line 3. It inverts every
        good panel, and exists for the test that shows this.
    reach : float
        The result is brought into [1/K - reach * 1/K, 1/K + reach * (1 - 1/K)]: for two
        classes and the default of 0.8 that is [0.1, 0.9]. The paper has no such limit, and
        then a start may lie outside [0, 1] (docs/errata.md, 9).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(20_000, 1))
    >>> said = np.where(rng.random((20_000, 4)) < [0.9, 0.8, 0.7, 0.4], truth, 1 - truth)
    >>> spectral_start(LabelTable.from_matrix(said), reach=0.98).round(2).tolist()
    [0.89, 0.8, 0.7, 0.4]
    """
    if sign_rule not in ("fixed", "literal"):
        raise UnknownName("sign rule", sign_rule, ("fixed", "literal"))
    chance = 1 / len(table.classes)
    edge = _signed_edges(agreement_moments(table, min_overlap))
    known = ~np.isnan(edge)
    if not edge[known].any():
        return np.full(edge.size, (1 + chance) / 2)
    mean = edge[known].mean()
    if mean < 0 if sign_rule == "fixed" else mean >= 0:
        edge, mean = -edge, -mean
    edge[~known] = mean
    return chance + edge.clip(-reach * chance, reach * (1 - chance))


def _signed_edges(moments: Floats) -> Floats:
    """The estimate of p_i - 1/K of each labeler, up to one sign for all; NaN without a pair."""
    m, other = _partners(moments)
    paired = np.flatnonzero(m >= 0)
    edge = np.full(len(moments), np.nan)
    if not paired.size:
        return edge
    m, other = m[paired], other[paired]
    radicand = np.zeros(paired.size)
    between = moments[m, other]
    product = moments[paired, m] * moments[paired, other]
    np.divide(product, between, out=radicand, where=between != 0)
    to_anchor = np.sign(moments[:, m[0]])
    of_partner = np.nan_to_num(to_anchor[m], nan=1.0)
    sign = to_anchor[paired]
    sign = np.where(np.isnan(sign), np.sign(moments[paired, m]) * of_partner, sign)
    edge[paired] = sign * np.sqrt(np.maximum(radicand, 0.0))
    return edge


def _partners(moments: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pair (m_i, m'_i) of each labeler, -1 where there is none."""
    known = ~np.isnan(moments)
    first, second = np.nonzero(np.triu(known, 1))
    order = np.argsort(-np.abs(moments[first, second]), kind="stable")
    first, second = first[order], second[order]
    pair = best_triples(first, second, known)
    m, other = (np.append(side, -1)[pair] for side in (first, second))
    return m, other


#: Rounds of the fit; EM refines the result.
_ROUNDS: Final = 50

#: Pseudo-items for each labeler, with the agreement of an average labeler.
_SHRINK: Final = 5.0


def rank_one_start(table: Table, reach: float = REACH) -> Floats:
    """Competences from the agreement of all pairs; see `spectral_start` for `reach`.

    Each round solves for every labeler's r with the others fixed, and goes half of the way, so the
    order of the labelers does not matter. A labeler who shares no item with anyone gets the mean of
    the others. If the mean is below chance, all signs are flipped.

    >>> from venire import LabelTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(20_000, 1))
    >>> said = np.where(rng.random((20_000, 4)) < [0.9, 0.8, 0.7, 0.4], truth, 1 - truth)
    >>> rank_one_start(LabelTable.from_matrix(said), reach=0.98).round(2).tolist()
    [0.9, 0.8, 0.7, 0.39]
    """
    K = len(table.classes)
    agree, shared = pair_counts(table)
    np.fill_diagonal(agree, 0.0)
    np.fill_diagonal(shared, 0.0)
    excess = (K * agree - shared) / (K - 1)
    mean = np.sqrt(max(excess.sum() / max(shared.sum(), 1.0), 1e-4))
    r = np.full(len(agree), mean)
    for _ in range(_ROUNDS):
        better = (excess @ r + _SHRINK * mean**3) / (shared @ r**2 + _SHRINK * mean**2)
        r = (r + better.clip(-1.0, 1.0)) / 2
    if r[shared.any(axis=1)].sum() < 0:
        r = -r
    low = -1 / (K - 1)
    return np.asarray((1 + (K - 1) * r.clip(reach * low, reach)) / K)
