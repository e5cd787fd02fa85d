"""An estimator, taught by gold: the explanations that its labels allow, weighed by the truth."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from venire.estimators.anchor import Anchored
from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.truth.mixture import mixture_by_gold
from venire.estimators.truth.skills import ToldSkills, told_skills
from venire.estimators.votes import MajorityVote
from venire.labels import LabelTable
from venire.labels.partitions import Table, total
from venire.tools.arrays import Floats, Ints

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator


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
