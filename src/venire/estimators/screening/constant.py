r"""Labelers who always say the same class."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import BaseEstimator, Floats
from venire.labels import LabelTable
from venire.labels.sources import as_table

__all__ = ["constant_labelers", "find_constant"]

#: A labeler who says one class with at least this share, in at least this many labels, is tested.
MOSTLY: Final = 0.95
FEWEST: Final = 8

#: A constant labeler says another class with this probability.
SLIP: Final = 0.02

#: A class with this share of the others' votes is the obvious guess.
COMMON: Final = 2 / 3

#: Labels are ignored only on evidence of at least 100 to 1.
WANTED: Final = np.log(100.0)


def find_constant(labels: Any) -> tuple[Any, ...]:
    """The names of the labelers who always say the same class.

    A labeler who says one class in 95 % of eight labels or more is compared with the others: one
    who knows anything says something else about items that the others find to be of another class.
    The labels are compared under two explanations,

        like the others    sum_k r_k C_k(said), r the shares of the others' votes on the item and
                           C how the others label items on which the rest votes k
        constant           0.98 for the one class, for every item

    and a labeler is returned if the second is 100 times more probable. Where one class is rare, or
    the others say nothing about its items, both explain the labels equally well, and nobody is
    returned; nor is one whose class has two thirds of the others' votes anyway: it repeats the
    known class shares, and without it the rare class would win too often.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(100, 1))
    >>> said = np.where(rng.random((100, 6)) < 0.8, truth, 1 - truth)
    >>> said[:, 4:] = 1
    >>> find_constant(LabelTable.from_matrix(said))
    (4, 5)
    """
    table = labels.table_ if isinstance(labels, BaseEstimator) else as_table(labels)
    return tuple(table.labelers[m] for m in np.flatnonzero(constant_labelers(table)).tolist())


def constant_labelers(table: LabelTable) -> NDArray[np.bool_]:
    """Whether each labeler of the table always says the same class."""
    M, K = len(table.labelers), len(table.classes)
    counts = np.bincount(table.labeler.astype(np.int64) * K + table.said, minlength=M * K)
    counts = counts.reshape(M, K)
    given = counts.sum(axis=1)
    suspect = (given >= FEWEST) & (counts.max(axis=1) >= MOSTLY * given)
    if not suspect.any() or not counts[~suspect].any():
        return np.zeros(M, np.bool_)
    favourite = counts.argmax(axis=1)
    share = counts[~suspect].sum(axis=0) / counts[~suspect].sum()
    votes = np.zeros((len(table.items), K))
    own = ~suspect[table.labeler]
    np.add.at(votes, (table.item[own], table.said[own]), 1.0)
    like = _like_the_others(table, votes, own)
    evident = _evidence(table, votes, like, suspect, favourite) > WANTED
    return np.asarray(suspect & evident & (share[favourite] < COMMON))


def _like_the_others(table: LabelTable, votes: Floats, own: NDArray[np.bool_]) -> Floats:
    """C: how a labeler labels an item on which the rest votes k, K (rest) x K (said)."""
    K = votes.shape[1]
    s, said = table.item[own], table.said[own]
    rest = votes[s]
    rest[np.arange(s.size), said] -= 1.0
    total = rest.sum(axis=1)
    rest = rest[total > 0] / total[total > 0, None]
    joint = np.eye(K) + 1.0 / K
    for k in range(K):
        joint[:, k] += rest[said[total > 0] == k].sum(axis=0)
    return np.asarray(joint / joint.sum(axis=1, keepdims=True))


def _evidence(
    table: LabelTable,
    votes: Floats,
    like: Floats,
    suspect: NDArray[np.bool_],
    favourite: NDArray[np.int64],
) -> Floats:
    """The log-odds of each suspect being constant."""
    K = votes.shape[1]
    mine = suspect[table.labeler] & (votes.sum(axis=1)[table.item] > 0)
    s, m, said = table.item[mine], table.labeler[mine], table.said[mine]
    share = votes[s] / votes[s].sum(axis=1, keepdims=True)
    others = np.log(np.einsum("ek,ke->e", share, like[:, said]))
    constant = np.log(np.where(said == favourite[m], 1 - SLIP, SLIP / (K - 1)))
    total: Floats = np.bincount(m, constant - others, minlength=len(suspect)).astype(np.float64)
    return total
