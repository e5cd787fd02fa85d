r"""Labelers who always say the same class."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import BaseEstimator, Floats
from venire.labels import LabelTable
from venire.labels.counts import said_counts
from venire.labels.entropy import vote_counts
from venire.labels.partitions import Table, total
from venire.labels.sources import as_labels
from venire.labels.subset import keep_labelers

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
    table = labels.table_ if isinstance(labels, BaseEstimator) else as_labels(labels)
    return tuple(table.labelers[m] for m in np.flatnonzero(constant_labelers(table)).tolist())


def constant_labelers(table: Table) -> NDArray[np.bool_]:
    """Whether each labeler of the table always says the same class."""
    K, counts = len(table.classes), said_counts(table)
    given = counts.sum(axis=1)
    suspect = (given >= FEWEST) & (counts.max(axis=1) >= MOSTLY * given)
    if not suspect.any() or not counts[~suspect].any():
        return np.zeros(len(given), np.bool_)
    favourite = counts.argmax(axis=1)
    share = counts[~suspect].sum(axis=0) / counts[~suspect].sum()
    joint = total(table, _beside_the_rest, suspect) + np.eye(K) + 1.0 / K
    like = joint / joint.sum(axis=1, keepdims=True)
    evident = total(table, _evidence, like, suspect, favourite) > WANTED
    return np.asarray(suspect & evident & (share[favourite] < COMMON))


def _votes(table: LabelTable, suspect: NDArray[np.bool_]) -> Floats:
    """The votes of those who are not suspected, items x K."""
    return vote_counts(keep_labelers(table, ~suspect)).astype(np.float64)


def _beside_the_rest(table: LabelTable, suspect: NDArray[np.bool_]) -> Floats:
    """What labelers say where the rest votes k, for C: counts, K (rest) x K (said)."""
    votes, own = _votes(table, suspect), ~suspect[table.labeler]
    K = votes.shape[1]
    s, said = table.item[own], table.said[own]
    rest = votes[s]
    rest[np.arange(s.size), said] -= 1.0
    others = rest.sum(axis=1)
    rest = rest[others > 0] / others[others > 0, None]
    joint = np.zeros((K, K))
    for k in range(K):
        joint[:, k] = rest[said[others > 0] == k].sum(axis=0)
    return joint


def _evidence(
    table: LabelTable,
    like: Floats,
    suspect: NDArray[np.bool_],
    favourite: NDArray[np.int64],
) -> Floats:
    """The log-odds of each suspect being constant."""
    votes = _votes(table, suspect)
    K = votes.shape[1]
    mine = suspect[table.labeler] & (votes.sum(axis=1)[table.item] > 0)
    s, m, said = table.item[mine], table.labeler[mine], table.said[mine]
    share = votes[s] / votes[s].sum(axis=1, keepdims=True)
    others = np.log(np.einsum("ek,ke->e", share, like[:, said]))
    constant = np.log(np.where(said == favourite[m], 1 - SLIP, SLIP / (K - 1)))
    odds: Floats = np.bincount(m, constant - others, minlength=len(suspect)).astype(np.float64)
    return odds
