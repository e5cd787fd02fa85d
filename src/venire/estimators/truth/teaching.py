"""An estimator, taught by gold: the explanations that its labels allow, weighed by the truth."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from venire.estimators.anchored import Anchored
from venire.estimators.dawid_skene import DawidSkene
from venire.estimators.truth.mixture import Mixture, mixture_by_gold
from venire.estimators.votes import MajorityVote
from venire.labels.partitions import Table

if TYPE_CHECKING:
    from venire.estimators.base import BaseEstimator

__all__ = ["ALONE", "Checked", "checked", "explanations", "taught"]

#: What confidences rest on without gold.
ALONE: Final = "by labels alone"

#: Explanations with less weight than this are not named.
NAMED: Final = 0.05


class Checked(NamedTuple):
    """What confidences were checked on: gold items, how many of them are right without their own
    gold, the temperature, the explanations by weight, the day of the gold where it is known, and
    how many of the items were asked: these weigh explanations, and check no confidence.

    >>> Checked(50, 44.0, 0.8, {"majority": 0.9, "ann alone": 0.1}, date(2026, 11, 16)).rests_on
    'checked on 50 gold labels, of 16 November 2026'
    """  # noqa: D205

    gold: int
    right: float
    temperature: float
    explanations: dict[str, float]
    day: date | None = None
    asked: int = 0

    @property
    def rests_on(self) -> str:
        """What the confidences rest on, in words."""
        when = "" if self.day is None else f", of {self.day.day} {self.day:%B %Y}"
        drawn = self.gold - self.asked
        if not drawn:
            return f"by labels and {_gold(self.gold)} that were asked, not checked{when}"
        more = f" ({self.asked:,} more were asked)" if self.asked else ""
        return f"checked on {_gold(drawn)}{more}{when}"

    @property
    def words(self) -> str:
        """What gold says, in two sentences."""
        named = [f"{name} {w:.0%}" for name, w in self.explanations.items() if w >= NAMED]
        return (
            f"Verdicts are a mixture of explanations, by how well each predicts gold: "
            f"{', '.join(named)}. Of {self.gold:,} gold items {self.right:,.0f} are right without "
            f"their own gold."
        )

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return {
            "gold": self.gold,
            "asked": self.asked,
            "right": self.right,
            "temperature": self.temperature,
            "explanations": {k: v for k, v in self.explanations.items() if v >= 0.001},
            "day": None if self.day is None else self.day.isoformat(),
        }


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
) -> tuple[Mixture, Any] | None:
    """What gold makes of a fitted default: the mixture and its posteriors; None without any."""
    names, aggregates = explanations(table, default, threads)
    mixture = mixture_by_gold(table, known, names, aggregates, asked)
    return None if mixture is None else (mixture, mixture.posteriors(table, aggregates))


def checked(mixture: Mixture, table: Table) -> Checked:
    """The record of a mixture on a table."""
    named = mixture.shares(table.labelers)
    told = mixture.gold, mixture.right, mixture.calibration.temperature
    return Checked(*told, named, asked=mixture.asked)
