"""The report on a panel: what each labeler costs and brings, and who can go.

Who can go is found by replaying the table of labels without some of its labelers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.display import block, facts, table
from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.clones import CloneGroup
from venire.estimators.dependence import COPY_CORRELATION, Families
from venire.estimators.intervals import implied_intervals
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.labels.table import keep_labels
from venire.panels.cheapest import Chosen, best_panel, cheapest_panel
from venire.panels.yardstick import (
    AgainstTruth,
    Estimate,
    Verdicts,
    Yardstick,
    against_truth,
    second_labels,
    verdicts_of,
)

#: The most replays whose verdicts are kept.
KEPT_REPLAYS: Final = 256


class Replayed:
    """What the verdicts would have been with some of the labelers only.

    A replay fits the product's own method anew to the labels of those who stay, so skills,
    copies and screening are what they would have been too.

    >>> table = LabelTable.from_matrix([[0, 1, 0], [1, 1, 1], [1, 0, 0]] * 10)
    >>> replayed = Replayed(table)
    >>> replayed.verdicts([0, 1, 2]).argmax(axis=1)[:3].tolist()
    [0, 1, 0]
    >>> replayed.verdicts([1]).argmax(axis=1)[:3].tolist()
    [1, 1, 0]
    """

    def __init__(
        self,
        table: LabelTable,
        seed: int = 0,
        watch: Callable[[int], None] | None = None,
        families: Families | None = None,
    ) -> None:
        self.table, self.fits = table, 0
        self._seed, self._watch, self._families = seed, watch, families
        self._kept: dict[frozenset[int], Verdicts] = {}

    def fit(self, members: Iterable[int]) -> Auto:
        """The default method on the labels of these labelers, by number."""
        self.fits += 1
        if self._watch is not None:
            self._watch(self.fits)
        on = np.zeros(len(self.table.labelers), np.bool_)
        on[list(members)] = True
        left = keep_labels(self.table, on[self.table.labeler])
        return Auto(self._families, seed=self._seed).fit(left)

    def taught(self, truth: NDArray[np.int64], asked: Collection[Hashable] = ()) -> Auto:
        """The default method on all labels, taught by the known classes of some items."""
        table = self.table
        known = np.flatnonzero((truth >= 0) & (truth < len(table.classes))).tolist()
        gold = {table.items[i]: table.classes[truth[i]] for i in known}
        return Auto(self._families, seed=self._seed).fit(table, gold=gold or None, asked=asked)

    def verdicts(self, members: Iterable[int]) -> Verdicts:
        some = frozenset(members)
        if not some:
            return np.zeros((len(self.table.items), len(self.table.classes)))
        if some not in self._kept:
            if len(self._kept) >= KEPT_REPLAYS:
                self._kept.pop(next(iter(self._kept)))
            self._kept[some] = verdicts_of(self.fit(some))
        return self._kept[some]

    def spent(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        given = np.bincount(self.table.labeler, minlength=len(self.table.labelers))
        return np.asarray(given * prices)


#: The expected accuracy that may be lost where no accuracy is asked for.
LOSE: Final = 0.005

#: Standard errors by which it must be better without a labeler to say that it does harm.
EVIDENT_ERRORS: Final = 2.0

Names = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class PanelMember:
    """A labeler of the panel.

    `skill` with its 90 % interval is what `aggregate` reports. The `family` are those with whom it
    counts for fewer votes, declared or found, the `copies` those with the same errors, and those
    who are `similar` are only reported. `without` is the change in accuracy if it left, `second`
    what a second label of it for every item would bring if its errors were independent. `stays`
    says whether it is on the cheapest panel. Of the labels on items of known truth, `known`,
    `right` are right.
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
    similar: Names
    without: Estimate
    second: Estimate
    stays: bool
    known: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class PanelReport:
    """A panel, each of its labelers, and the cheapest panel that is good enough.

    Accuracies are measured by the truth where it was given (`measured`), else by the calibrated
    posteriors of the whole panel; so is the choice. `want` is the accuracy asked for, `reached`
    whether a panel has it, `expected` what becomes of the accuracy with the cheapest panel, whose
    cost is `cheapest`, by what it was chosen by. A choice looks better by the truth that made it
    than it is; `change` is fair: each half of the items is judged by the panel that the truth of
    the other half chooses. Without truth both are the same.

    `families` are the labelers who count as one, with the correlation of their errors and their
    worth in votes; `relations` says it in words, as `Auto.relations_` of all labels does.
    `against` has what the truth says of the panel as a whole: how many independent votes it is
    worth, and the agreement of each labeler with the truth beyond chance; None without truth.
    `asked` of the known classes are of items that were chosen for what they tell: they teach skills
    and second labels, and measure nothing.
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
    families: tuple[CloneGroup, ...] = ()
    relations: tuple[str, ...] = ()
    against: AgainstTruth | None = None
    asked: int = 0

    def __repr__(self) -> str:
        size = f"items={self.items}, labels={self.labels}, labelers={len(self.members)}"
        found = f"accuracy={self.accuracy.value:.3f}, can go: {len(self.can_go)}"
        return f"PanelReport({size}, {found})"

    def _repr_html_(self) -> str:
        """What a notebook shows: how accurate the panel is, and what each labeler brings."""
        how = "accuracy, measured" if self.measured else "accuracy, expected"
        size = {"items": self.items, "labels": self.labels, how: self.accuracy.value}
        members: dict[str, list[Any]] = {
            "labeler": [one.labeler for one in self.members],
            "skill": [one.skill for one in self.members],
            "price": [one.price for one in self.members],
            "labels": [one.labels for one in self.members],
            "change without": [one.without.value for one in self.members],
            "can go": ["" if one.stays else "yes" for one in self.members],
        }
        return block("Panel", [facts(size), table(members, len(self.members))])

    @property
    def can_go(self) -> Names:
        """Those who are not on the cheapest panel."""
        return tuple(member.labeler for member in self.members if not member.stays)

    def record(self) -> dict[str, Any]:
        """Everything as plain values, as `venire panel --json` prints it."""
        return {
            **asdict(self),
            "families": [group.record() for group in self.families],
            "against": self.against and self.against.record(),
            "can_go": list(self.can_go),
            "best_again": self.best_again.labeler,
        }

    @property
    def best_again(self) -> PanelMember:
        """Of those who stay, the labeler whose second label would bring most."""
        staying = [member for member in self.members if member.stays] or self.members
        return max(staying, key=lambda member: member.second.value)


def panel_report(
    labels: Any,
    prices: Mapping[Any, float] | None = None,
    truth: Any = None,
    want: float | None = None,
    *,
    lose: float = LOSE,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    families: Families | None = None,
    most: float | None = None,
    asked: Collection[Hashable] = (),
) -> PanelReport:
    """Measure what each labeler brings, by replaying the labels without it.

    Parameters
    ----------
    labels
        A table of labels, in any form that `as_table` takes.
    prices
        What one label of each labeler costs; 1 for everybody without it.
    truth
        Known classes, in any form that `as_truth` takes. Accuracy is then measured by them, whoever
        does evident harm by them goes, and of the others nobody whom they miss.
    want
        The accuracy wanted of the cheapest panel; by default that of all of them, less `lose`, but
        for those without whom it is evidently better by the truth.
    lose
        The expected accuracy that may be lost where no accuracy is asked for.
    seed
        For the fits.
    progress
        Called with the number of replays so far.
    families
        Labelers who may share errors, by name: see `Auto`.
    most
        In place of `want`: what the labels of the panel may cost. The panel is then the best one
        found at that price.
    asked
        Those of the items with truth that were chosen (`questions`), and not drawn at random. They
        teach the skills and measure nothing; where all were, accuracy is what is expected.

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
    _check(want, lose, most)
    replayed = Replayed(table, seed, progress, families)
    everyone = frozenset(range(len(table.labelers)))
    fitted = replayed.fit(everyone)
    told, whole, against, measured, some = fitted, verdicts_of(fitted), None, False, 0
    if truth is not None:
        codes = as_truth(truth, table)
        told = replayed.taught(codes, asked)
        chosen_for = np.array([name in asked for name in table.items]) & (codes >= 0)
        codes, some = np.where(chosen_for, -1, codes), int(chosen_for.sum())
        measured = bool((codes >= 0).any()) or not some
    if measured:
        rule, against = Yardstick.of_truth(codes, len(table.classes)), against_truth(table, codes)
    else:
        rule = Yardstick.of_posteriors(told.posteriors_)
    without = {m: rule.change(whole, replayed.verdicts(everyone - {m})) for m in everyone}
    spent, accuracy = replayed.spent(price), rule.accuracy(whole)
    choice = _Choice(replayed, spent.tolist(), want, lose, measured, most)
    floor, chosen = choice.by(rule)
    after = replayed.verdicts(chosen.members)
    expected = change = rule.change(whole, after)
    if measured and rule.used.sum() > 1:
        half = np.zeros(len(table.items), np.bool_)
        half[np.random.default_rng(seed).permutation(np.flatnonzero(rule.used))[::2]] = True
        apart = [replayed.verdicts(choice.by(rule.only(x))[1].members) for x in (~half, half)]
        change = rule.change(whole, np.where(half[:, None], *apart))
    return PanelReport(
        items=len(table.items),
        labels=len(table.said),
        cost=math.fsum(spent),
        measured=measured,
        accuracy=accuracy,
        members=_members(table, fitted, told, price, spent, without, chosen),
        want=floor,
        reached=chosen.reached,
        cheapest=chosen.cost,
        change=change,
        expected=expected,
        families=fitted.families_,
        relations=told.relations_,
        against=against,
        asked=some,
    )


class _Choice:
    """Chooses the cheapest panel that is good enough, or the best at a price, by a yardstick.

    If that is the truth, those go first without whom it is evidently better. Of the others only
    those whom neither the truth nor the labels miss: truth is known of few items, and among many
    panels there is always one that is lucky on these.
    """

    def __init__(
        self,
        replayed: Replayed,
        spent: list[float],
        want: float | None,
        lose: float,
        true: bool,
        price: float | None = None,
    ) -> None:
        self.replayed, self.spent, self.want, self.lose = replayed, spent, want, lose
        self.price = price
        self.true = true  # else nobody does harm, by the posteriors of all

    def by(self, rule: Yardstick) -> tuple[float, Chosen]:
        """The accuracy that is asked for, and the panel."""
        start = frozenset(range(len(self.spent)))
        start = self._harmless(rule, start) if self.true else start
        fitted = self.replayed.fit(start)
        begin, expect = verdicts_of(fitted), Yardstick.of_posteriors(fitted.posteriors_)
        most = rule.accuracy(begin).value

        def level(some: frozenset[int]) -> float:
            """The accuracy, if as much is lost as the truth or the labels say, what is worse."""
            after = begin if some == start else self.replayed.verdicts(some)
            return most + min(each.change(begin, after).value for each in (rule, expect))

        if self.price is not None:
            chosen = best_panel(level, self.spent, self.price)
            return chosen.accuracy, chosen
        floor = most - self.lose if self.want is None else self.want
        return floor, cheapest_panel(level, self.spent, floor, start if self.true else None)

    def _harmless(self, rule: Yardstick, members: frozenset[int]) -> frozenset[int]:
        """Those who stay if those go without whom it is evidently better, the worst first."""
        while len(members) > 1:
            now = self.replayed.verdicts(members)
            gains = {m: rule.change(now, self.replayed.verdicts(members - {m})) for m in members}
            worst = max(members, key=lambda m: gains[m].value)
            if gains[worst].value <= EVIDENT_ERRORS * gains[worst].error:
                break
            members -= {worst}
        return members


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


def _check(want: float | None, lose: float, most: float | None) -> None:
    if want is not None and most is not None:
        raise InputError("got both want and most, expected one: an accuracy, or a price")
    if most is not None and not 0 < most < math.inf:
        raise InputError(f"got most={most!r}, expected what the labels of a panel may cost")
    if want is not None and not 0 < want <= 1:
        raise InputError(f"got a wanted accuracy of {want!r}, expected a share such as 0.95")
    if not 0 <= lose < 1:
        raise InputError(f"got lose={lose!r}, expected a share such as 0.01")


def _members(
    table: LabelTable,
    fitted: Auto,
    told: Auto,
    price: NDArray[np.float64],
    spent: NDArray[np.float64],
    without: Mapping[int, Estimate],
    chosen: Chosen,
) -> tuple[PanelMember, ...]:
    given = np.bincount(table.labeler, minlength=len(table.labelers))
    intervals, gold = implied_intervals(told), told.told_skills_
    again = second_labels(fitted.posteriors_ if gold is None else told.unsettled_, told.confusions_)
    same = tuple(group for group in fitted.clones_.groups if group.correlation >= COPY_CORRELATION)
    copies, family, similar = map(_others, (same, fitted.families_, fitted.suspects_))
    return tuple(
        PanelMember(
            labeler=name,
            skill=float(told.competences_[m]),
            low=float(intervals[m, 0]),
            high=float(intervals[m, 1]),
            price=float(price[m]),
            labels=int(given[m]),
            share=float(given[m] / max(given.sum(), 1)),
            cost=float(spent[m]),
            copies=copies.get(name, ()),
            family=family.get(name, ()),
            similar=similar.get(name, ()),
            without=without[m],
            second=again[m],
            stays=m in chosen.members,
            known=0 if gold is None else int(gold.known[m]),
            right=0 if gold is None else int(gold.right[m]),
        )
        for m, name in enumerate(table.labelers)
    )


def _others(groups: tuple[CloneGroup, ...]) -> dict[Hashable, Names]:
    return {
        name: tuple(other for other in group.members if other != name)
        for group in groups
        for name in group.members
    }
