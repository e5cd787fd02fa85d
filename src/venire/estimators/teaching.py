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

An estimator, taught by gold: the explanations that its labels allow, weighed by the truth.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from venire.estimators.anchor import Anchored
from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.mixture import Mixture, mixed, mixture_by_gold
from venire.estimators.votes import MajorityVote
from venire.labels import LabelTable
from venire.labels.partitions import Table, total
from venire.tools.arrays import Floats, Ints

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator


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


#: What confidences rest on without gold.
ALONE: Final = "by labels alone"

#: The mix of classes has changed if it differs by this number of standard errors. A class is
#: compared by itself if that many gold items of it are expected, else together with others.
MIX_ERRORS: Final = 3.0
CLASS_GOLD: Final = 5.0

#: Explanations with less weight than this are not named.
NAMED_WEIGHT: Final = 0.05


class Checked(NamedTuple):
    """What confidences were checked on: gold items, how many of them are right without their own
    gold, the temperature, the explanations by weight, the day of the gold where it is known, and
    how many of the items were asked: these weigh explanations, and check no confidence. `stale`
    says why what was checked may not hold for the other items.

    >>> Checked(50, 44.0, 0.8, {"majority": 0.9, "ann alone": 0.1}, date(2026, 11, 16)).rests_on
    'checked on 50 gold labels, of 16 November 2026'
    """  # noqa: D205

    gold: int
    right: float
    temperature: float
    explanations: dict[str, float]
    day: date | None = None
    asked: int = 0
    stale: str | None = None

    @property
    def rests_on(self) -> str:
        """What the confidences rest on, in words."""
        when = "" if self.day is None else f", of {self.day.day} {self.day:%B %Y}"
        drawn = self.gold - self.asked
        if not drawn:
            return f"by labels and {_gold(self.gold)} that were asked, not checked{when}"
        more = f" ({self.asked:,} more were asked)" if self.asked else ""
        stale = "" if self.stale is None else f"; stale: {self.stale}"
        return f"checked on {_gold(drawn)}{more}{when}{stale}"

    @property
    def words(self) -> str:
        """What gold says, in two sentences."""
        named = [f"{name} {w:.0%}" for name, w in self.explanations.items() if w >= NAMED_WEIGHT]
        return (
            f"Verdicts are a mixture of explanations, by how well each predicts gold: "
            f"{', '.join(named)}. Of {self.gold:,} gold items {self.right:,.0f} are right without "
            f"their own gold."
        )

    def record(self) -> dict[str, Any]:
        named = {k: v for k, v in self.explanations.items() if v >= 0.001}
        day = None if self.day is None else self.day.isoformat()
        return self._asdict() | {"explanations": named, "day": day}


def _gold(number: int) -> str:
    return f"{number:,} gold label{'' if number == 1 else 's'}"


def explanations(
    table: Table, default: BaseEstimator, threads: int | None = None
) -> tuple[tuple[str, ...], list[Any]]:
    """The names and posteriors of what labels alone can mean; the default, fitted, first.

    >>> from venire.estimators import Auto
    >>> from venire.labels import LabelTable
    >>> table = LabelTable.from_matrix([[0, 0, 1], [1, 1, 1], [0, 1, 1]])
    >>> explanations(table, Auto().fit(table))[0]
    ('auto', 'dawid-skene', 'anchored', 'majority')
    """
    seed = default.seed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gold says whether they fit
        steps = DawidSkene(threads=threads, seed=seed).fit(table)
    others = [steps, Anchored(threads=threads, seed=seed).fit(table)]
    others.append(MajorityVote(seed=seed).fit(table))
    fitted: list[Any] = [default, *others]
    return tuple(one.name for one in fitted), [one.posterior_rows() for one in fitted]


def taught(
    table: Table,
    known: Any,
    default: BaseEstimator,
    threads: int | None = None,
    asked: Collection[Any] = (),
) -> tuple[Checked, Any, ToldSkills] | None:
    """What gold makes of a fitted default: the record, the posteriors, the skills; or None."""
    names, aggregates = explanations(table, default, threads)
    mixture = mixture_by_gold(table, known, names, aggregates, asked)
    if mixture is None:
        return None
    told = mixture.gold, mixture.right, mixture.calibration.temperature
    other = another_mix(table, known, aggregates[0], asked)
    record = Checked(*told, mixture.shares(table.labelers), asked=mixture.asked, stale=other)
    skills = told_skills(table, known, mixture, aggregates)
    return record, mixture.posteriors(table, aggregates), skills


def another_mix(
    table: Table, known: Any, posteriors: Any, asked: Collection[Any] = ()
) -> str | None:
    """How the verdicts on gold items differ from those on the rest, if not by chance.

    Verdicts of labels alone are counted by class. If gold was drawn at random from these items, the
    two counts are alike, by Pearson's chi-square up to MIX_ERRORS standard errors (Fisher's root).
    Classes of which gold would have fewer than CLASS_GOLD items are counted as one. Items that were
    asked are no random sample, and are left out.

    >>> from venire.labels import LabelTable
    >>> table = LabelTable.from_matrix([[0, 0]] * 150 + [[1, 1]] * 150)
    >>> q = np.repeat(np.eye(2), 150, axis=0)
    >>> known = np.where(np.arange(300) < 30, 0, -1)
    >>> another_mix(table, known, q)
    'the mix of items is another: 100 % of the verdicts on gold items are 0, 44 % of the rest'
    >>> another_mix(table, np.where(np.arange(300) % 10 < 1, 0, -1), q) is None
    True
    """
    gold, rest = total(table, _by_class, known, posteriors, frozenset(asked))
    share = (gold + rest) / max(float((gold + rest).sum()), 1.0)
    common = gold.sum() * share >= CLASS_GOLD
    if gold.sum() < 1 or rest.sum() < 1 or not common.any():
        return None
    cells = np.array([[*row[common], row[~common].sum()] for row in (gold, rest)])
    cells = cells[:, cells.sum(axis=0) > 0]
    if cells.shape[1] < 2:
        return None
    usual = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / cells.sum()
    square = float(((cells - usual) ** 2 / usual).sum())
    if np.sqrt(2 * square) <= np.sqrt(2 * cells.shape[1] - 3) + MIX_ERRORS:
        return None
    shares = [row / row.sum() for row in (gold, rest)]
    k = int(np.argmax(np.abs(shares[0] - shares[1])))
    return (
        f"the mix of items is another: {shares[0][k]:.0%} of the verdicts on gold items are "
        f"{table.classes[k]}, {shares[1][k]:.0%} of the rest"
    ).replace("%", " %")


def _by_class(
    table: LabelTable, known: Ints, posteriors: Floats, asked: frozenset[Any]
) -> tuple[Floats, Floats]:
    """How many items have each verdict, of those with gold that was drawn and of the rest."""
    drawn = known >= 0
    chosen = np.array([name in asked for name in table.items]) if asked else np.zeros_like(drawn)
    there, said = np.diff(table.start) > 0, posteriors.argmax(axis=1)
    K = posteriors.shape[1]
    gold, rest = (
        np.bincount(said[there & ~chosen & some], minlength=K).astype(np.float64)
        for some in (drawn, ~drawn)
    )
    return gold, rest
