r"""How good labelers are where some truth is known.

The skill of a labeler is the share of its labels that are right. Of those on gold items that is
known. Of the others it is expected: the mean over its labels of the mixture that gold weighs
(`mixture`), before it is calibrated; the calibration makes verdicts less sure, and would make
everybody look worse. Items that were asked for are contested, and labelers err there more often
than elsewhere: they count as what they are, a few known labels, and not as a sample of the rest.

The mixture has learned from gold whom to believe already, so the labels on gold are not counted
again as evidence about the others: on real sets that was less right (docs/gold.md). The interval is
that of a Beta distribution for the labels without gold, as if

    c = 1 / (1 / (PRIOR + drawn) + 1 / n)

of them had been looked at, with n the number of these labels and `drawn` the gold items that were
drawn at random, whoever labelled them: what they teach is whom to believe.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from venire.estimators.truth.mixture import Mixture, mixed
from venire.labels import LabelTable
from venire.labels.partitions import Table, total
from venire.tools.arrays import Floats, Ints

#: What the labels alone are worth, in labels whose truth is known. Chosen on half of the sets.
PRIOR: Final = 20.0

#: A skill is never surer than this from 0 or 1 where an interval is made.
EDGE: Final = 0.005


class ToldSkills(NamedTuple):
    """Of each labeler: labels on gold items (`known`), how many are `right`, the other labels
    (`rest`), how many of these are expected to be right, and how many gold items were drawn.

    >>> told = ToldSkills(np.array([20]), np.array([18]), np.array([80]), np.array([72.0]), 20)
    >>> told.skills.tolist(), told.intervals().round(2).tolist()
    ([0.9], [[0.82, 0.96]])
    """  # noqa: D205

    known: Ints
    right: Ints
    rest: Ints
    expected: Floats
    drawn: int

    @property
    def skills(self) -> Floats:
        """The share of right labels; a half of somebody without labels."""
        given = self.known + self.rest
        return np.where(given > 0, (self.right + self.expected) / np.maximum(given, 1), 0.5)

    def intervals(self, level: float = 0.9) -> Floats:
        """An interval for each skill, labelers x 2."""
        from scipy.special import betaincinv

        given, rest = self.known + self.rest, np.maximum(self.rest, 1)
        others = np.where(self.rest > 0, self.expected / rest, 0.5).clip(EDGE, 1 - EDGE)
        looked = 1 / (1 / (PRIOR + self.drawn) + 1 / rest)
        share = np.where(given > 0, self.rest / np.maximum(given, 1), 1.0)
        variance = share**2 * others * (1 - others) / (looked + 1)
        p = self.skills.clip(EDGE, 1 - EDGE)
        size = p * (1 - p) / np.maximum(variance, 1e-12)
        size = np.maximum(size - 1, 1.0)
        ends = (betaincinv(p * size, (1 - p) * size, (1 + s * level) / 2) for s in (-1, 1))
        low, high = ends
        found = np.stack([np.minimum(low, self.skills), np.maximum(high, self.skills)], axis=1)
        exact = (given > 0) & (self.rest == 0)
        return np.where(exact[:, None], self.skills[:, None], found)

    def merged(self, owner: Ints, labelers: int) -> ToldSkills:
        """The same of those to whom several belong: two voices of one judge.

        >>> told = ToldSkills(*(np.array([2, 1]) for _ in range(3)), np.array([1.0, 2.0]), 2)
        >>> told.merged(np.array([0, 0]), 1).known.tolist()
        [3]
        """
        known, right, rest = (
            np.bincount(owner, part, minlength=labelers).astype(np.int64)
            for part in (self.known, self.right, self.rest)
        )
        expected = np.bincount(owner, self.expected, minlength=labelers)
        return ToldSkills(known, right, rest, np.asarray(expected), self.drawn)


def told_skills(
    table: Table, known: Ints, mixture: Mixture, aggregates: list[Floats]
) -> ToldSkills:
    """The skills of all labelers, where `known` has the class of some items, and -1.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 3)) < [0.95, 0.6, 0.6], truth, 1 - truth)
    >>> said = np.hstack([said, said[:, 1:2], said[:, 1:2]])  # two copies of the second
    >>> table = LabelTable.from_matrix(said)
    >>> gold = {i: int(truth[i, 0]) for i in range(30)}
    >>> from venire import Auto
    >>> [round(p, 2) for p in Auto().fit(table).competences_.tolist()]
    [0.73, 0.67, 0.67, 0.67, 0.67]
    >>> [round(p, 2) for p in Auto().fit(table, gold=gold).competences_.tolist()]
    [0.84, 0.67, 0.65, 0.67, 0.67]
    >>> [round(float(p), 2) for p in (said == truth).mean(axis=0)]
    [0.96, 0.6, 0.59, 0.6, 0.6]
    """
    given, right, rest, expected = total(table, _sums, known, mixture, *aggregates)
    labels, hits, others = (part.astype(np.int64) for part in (given, right, rest))
    return ToldSkills(labels, hits, others, expected, mixture.gold - mixture.asked)


def _sums(
    table: LabelTable, known: Ints, mixture: Mixture, *aggregates: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The sums of one table: labels on gold, right ones, other labels, and what is expected."""
    q, gold = mixed(table, mixture, *aggregates), known[table.item] >= 0
    right = table.said == known[table.item]
    expected = q[table.item, table.said]
    parts = gold, gold & right, ~gold, np.where(gold, 0.0, expected)
    M = len(table.labelers)
    a, b, c, d = (
        np.bincount(table.labeler, part, minlength=M).astype(np.float64) for part in parts
    )
    return a, b, c, d
