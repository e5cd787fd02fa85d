"""The report on a panel: what each labeler costs and brings, and who can go."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.intervals import implied_intervals
from venire.estimators.screening.clones import CloneGroup, find_clones
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.panels.cheapest import Chosen, cheapest_panel
from venire.panels.replayed import Replayed
from venire.panels.second_label import second_labels
from venire.panels.yardstick import Estimate, Yardstick, verdicts_of

__all__ = ["PanelMember", "PanelReport", "panel_report"]

#: The expected accuracy that may be lost where no accuracy is asked for.
LOSE: Final = 0.005

Names = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class PanelMember:
    """A labeler of the panel.

    `skill` with its 90 % interval is what `aggregate` reports; `copies` have the same errors and
    count as one labeler, the `family` has similar ones and is only reported. `without` is the
    change in accuracy if it left, `second` what a second label of it for every item would bring
    if its errors were independent. `stays` says whether it is on the cheapest panel.
    """

    labeler: Hashable
    skill: float
    low: float
    high: float
    price: float
    labels: int
    share: float
    cost: float
    copies: Names
    family: Names
    without: Estimate
    second: Estimate
    stays: bool


@dataclass(frozen=True, slots=True)
class PanelReport:
    """A panel, each of its labelers, and the cheapest panel that is good enough.

    Accuracies are measured by the truth where it was given (`measured`), else by the calibrated
    posteriors of the whole panel. `want` is the accuracy asked for, `reached` whether the panel
    has it, `change` what becomes of the accuracy with the cheapest panel, whose cost is
    `cheapest`. The truth has no part in the choice, so it judges it fairly: `expected` is the
    change that the choice was made by.
    """

    items: int
    labels: int
    cost: float
    measured: bool
    accuracy: Estimate
    members: tuple[PanelMember, ...]
    want: float
    reached: bool
    cheapest: float
    change: Estimate
    expected: Estimate

    @property
    def can_go(self) -> Names:
        """Those who are not on the cheapest panel."""
        return tuple(member.labeler for member in self.members if not member.stays)

    def record(self) -> dict[str, Any]:
        """Everything as plain values, as `venire panel --json` prints it."""
        return {
            **asdict(self),
            "can_go": list(self.can_go),
            "best_again": self.best_again.labeler,
        }

    @property
    def best_again(self) -> PanelMember:
        """The labeler whose second label would bring most."""
        return max(self.members, key=lambda member: member.second.value)


def panel_report(
    labels: Any,
    prices: Mapping[Any, float] | None = None,
    truth: Any = None,
    want: float | None = None,
    *,
    lose: float = LOSE,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> PanelReport:
    """Measure what each labeler brings, by replaying the labels without it.

    Parameters
    ----------
    labels
        A table of labels, in any form that `as_table` takes.
    prices
        What one label of each labeler costs; 1 for everybody without it.
    truth
        Known classes, in any form that `as_truth` takes. Accuracy is then measured by them; who
        can go is still decided without them.
    want
        The accuracy wanted of the cheapest panel; by default that of all of them, less `lose`.
    lose
        The expected accuracy that may be lost where no accuracy is asked for.
    seed
        For the fits.
    progress
        Called with the number of replays so far.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(400, 1))
    >>> skills = [0.9, 0.85, 0.85, 0.8, 0.8, 0.55]
    >>> said = np.where(rng.random((400, 6)) < skills, truth, 1 - truth)
    >>> table = LabelTable.from_matrix(said)
    >>> report = panel_report(table, prices={m: 1 + m for m in range(6)}, lose=0.02)
    >>> report.can_go, report.cost, report.cheapest
    ((3, 4, 5), 8400.0, 2400.0)
    >>> print(report.expected)
    -0.0134 ± 0.0106
    """
    table = as_table(labels)
    price = _prices(table, prices)
    _check(want, lose)
    replayed = Replayed(table, seed, progress)
    everyone = frozenset(range(len(table.labelers)))
    fitted = replayed.fit(everyone)
    expect, whole = Yardstick.of_posteriors(fitted.posteriors_), verdicts_of(fitted)
    rule = expect
    if truth is not None:
        rule = Yardstick.of_truth(as_truth(truth, table), len(table.classes))
    without = {m: rule.change(whole, replayed.verdicts(everyone - {m})) for m in everyone}
    spent, accuracy = replayed.spent(price), rule.accuracy(whole)
    floor = accuracy.value - lose if want is None else want

    def level(some: frozenset[int]) -> float:
        """The accuracy of some of them, by the labels; its level by the truth, if given."""
        after = whole if some == everyone else replayed.verdicts(some)
        return accuracy.value + expect.change(whole, after).value

    chosen = cheapest_panel(level, spent.tolist(), floor)
    after = replayed.verdicts(chosen.members)
    return PanelReport(
        items=len(table.items),
        labels=len(table.said),
        cost=math.fsum(spent),
        measured=truth is not None,
        accuracy=accuracy,
        members=_members(table, fitted, price, spent, without, chosen),
        want=floor,
        reached=chosen.reached,
        cheapest=chosen.cost,
        change=rule.change(whole, after),
        expected=expect.change(whole, after),
    )


def _prices(table: LabelTable, prices: Mapping[Any, float] | None) -> NDArray[np.float64]:
    if prices is None:
        return np.ones(len(table.labelers))
    missing = next((name for name in table.labelers if name not in prices), None)
    if missing is not None:
        raise InputError(
            f"labeler {missing!r} has labels and no price, expected one for each labeler: add "
            "it, 0 for labels that cost nothing"
        )
    found = np.array([prices[name] for name in table.labelers], np.float64)
    if not (np.isfinite(found) & (found >= 0)).all():
        raise InputError(f"got the price {found.min()}, expected numbers, 0 or more")
    return found


def _check(want: float | None, lose: float) -> None:
    if want is not None and not 0 < want <= 1:
        raise InputError(f"got a wanted accuracy of {want!r}, expected a share such as 0.95")
    if not 0 <= lose < 1:
        raise InputError(f"got lose={lose!r}, expected a share such as 0.01")


def _members(
    table: LabelTable,
    fitted: Auto,
    price: NDArray[np.float64],
    spent: NDArray[np.float64],
    without: Mapping[int, Estimate],
    chosen: Chosen,
) -> tuple[PanelMember, ...]:
    given = np.bincount(table.labeler, minlength=len(table.labelers))
    intervals = implied_intervals(fitted)
    again = second_labels(fitted.posteriors_, fitted.confusions_)
    copies, families = _others(fitted.clones_.groups), _others(find_clones(table).groups)
    return tuple(
        PanelMember(
            labeler=name,
            skill=float(fitted.competences_[m]),
            low=float(intervals[m, 0]),
            high=float(intervals[m, 1]),
            price=float(price[m]),
            labels=int(given[m]),
            share=float(given[m] / max(given.sum(), 1)),
            cost=float(spent[m]),
            copies=copies.get(name, ()),
            family=families.get(name, ()),
            without=without[m],
            second=again[m],
            stays=m in chosen.members,
        )
        for m, name in enumerate(table.labelers)
    )


def _others(groups: tuple[CloneGroup, ...]) -> dict[Hashable, Names]:
    """For each member of a group the other members."""
    return {
        name: tuple(other for other in group.members if other != name)
        for group in groups
        for name in group.members
    }
