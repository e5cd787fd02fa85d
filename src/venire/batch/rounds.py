"""Believe, choose, ask, and again, until the budget is spent or nothing is left to gain.

The first round gives every item one label, by labelers drawn at random: until labels are compared
all labelers are the same, and those who meet at random can be compared best. Each later round buys
the most valuable labels (`choice`), GROWTH times as many as there are, so that the labelers are
learned anew some twenty times while three labels an item are bought, whatever the size of the
batch. An item with a target is done when its verdict has that confidence; one that has become
doubtful again is not.

**A share of the budget for an expert: somebody whose labels are the truth, at a price.**

The panel is asked first, with what is left of the budget. Then the expert sees the items whose
verdicts are least sure, and settles these. It teaches nothing about the others: items that were
chosen because nobody was sure of them are not a sample of the rest. docs/gold.md has what that is
worth, and what else was tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from venire.batch.choice import (
    Alone,
    Belief,
    believe,
    best_entries,
    check_margin,
    first_entries,
    good_enough,
    heard,
    trial,
)
from venire.batch.labelers import AWAY, FREE, Pupil, Work
from venire.costs import Costs, cost_matrix
from venire.errors import InputError
from venire.estimators.dependence import Families
from venire.estimators.gold import Gold
from venire.estimators.voices import Voices, voices_of
from venire.labels import LabelTable, Names
from venire.labels.sources.columns import like
from venire.model import Budget
from venire.tools.arrays import Bools, Floats, Ints

#: The labels of a round, as a share of those that there are, and the least number.
GROWTH: Final = 0.05
LEAST: Final = 10

#: The same share where a round takes hours (docs/judges.md, batches).
IN_BATCHES: Final = 0.2

#: Of rounds that take hours: what is left of the budget is bought with the last round if it is less
#: than this share of another one, and left unspent if it is less than the second.
REST: Final = 0.5
CRUMB: Final = 0.1

#: The share of a budget in money that the first labels may take in order to be of all labelers.
FIRST: Final = 1 / 3

#: From this many labels on shared items a labeler's own price begins to count; until then a price
#: may be off the panel's mean by a factor of BARGAIN.
KNOWN: Final = 60.0
BARGAIN: Final = 3.0

#: An item whose verdict may be wrong with less than this probability is given no other label.
ENOUGH: Final = 0.001

#: A label counts for at least this share of the dearest one's price, free ones too.
CHEAPEST: Final = 0.02

#: The curve has a point whenever the labels have grown by this factor since the last one.
SHOWN: Final = 1.25

#: Without a target, a verdict of this confidence counts as sure.
SURE: Final = 0.95


class Progress(NamedTuple):
    """How far a batch is: labels, money, the share of the budget, sure items, expected accuracy.

    `share` is None where no budget limits it.
    """

    labels: int
    spent: float
    share: float | None
    sure: int
    expected: float


class Point(NamedTuple):
    """A point of the curve: what was expected after a number of labels and an amount of money.

    `right` is the share of right verdicts among the items of known truth, None without truth.
    """

    labels: int
    spent: float
    expected: float
    right: float | None


class Source(Protocol):
    """Where answers come from: see `Recorded` and `Live`."""

    price: Floats
    most: Floats
    open: Bools
    ended: bool
    trouble: str | None
    confidence: Floats | None
    rationales: dict[int, str]

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes that were said so far, or may be."""

    def ask(self, entries: Ints) -> tuple[Ints, Floats]:
        """What was said, a class or one of FREE, NO_LABEL and AWAY (see `labelers`), and costs."""

    def left_over(self) -> tuple[Ints, Ints, Floats]:
        """Entries that were paid for and not asked for, with answers and costs."""


@dataclass(frozen=True)
class Terms:
    """On which terms a batch is labelled; `label` says what each of them means.

    A `pupil` is the student's seat: it votes with the panel, for nothing, and is not counted.
    """

    budget: Budget | None = None
    costs: Costs | None = None
    seed: int = 0
    truth: Mapping[Any, Hashable] | None = None
    progress: Callable[[Progress], None] | None = None
    pupil: Pupil | None = None
    gold: Gold | None = None
    growth: float = GROWTH
    alone: float | None = None

    def __post_init__(self) -> None:
        check_margin(self.alone, self.gold)
        if not 0 < self.growth < float("inf"):
            raise InputError(f"got growth {self.growth!r}, expected a share above 0, such as 0.05")


class Book:
    """The answers so far: of each entry what was said: a class, FREE, NO_LABEL or AWAY."""

    def __init__(self, work: Work, source: Source, terms: Terms) -> None:
        self.work, self.source, self.terms = work, source, terms
        self.said = np.full(work.labeler.size, FREE, np.int32)
        self.cost = np.zeros(work.labeler.size)
        self.spent, self.labels = 0.0, 0
        self.alone: Alone | None = None

    def ask(self, entries: Ints) -> None:
        self.take(entries, *self.source.ask(entries))

    def take(self, entries: Ints, said: Ints, cost: Floats) -> None:
        self.said[entries], self.cost[entries] = said, cost
        asked = said != FREE
        self.spent += float(cost[asked].sum())
        self.labels += int((asked & (said != AWAY)).sum())

    @property
    def costs(self) -> Floats | None:
        """What errors cost, among the classes that were said so far."""
        return costs_so_far(self.terms.costs, self.source.classes)

    def table(self, voices: Voices | None = None) -> LabelTable:
        """The labels; a class nobody said is added while there is only one."""
        there, work, classes = np.flatnonzero(self.said >= 0), self.work, self.source.classes
        names = (*classes, *((None, False)[: 2 - len(classes)] if len(classes) < 2 else ()))
        item = np.searchsorted(work.start, there, side="right") - 1
        labeler, labelers = work.labeler[there], work.labelers
        if voices is not None:
            labeler, labelers = voices.voice, voices.names
        return LabelTable.from_codes(item, labeler, self.said[there], work.items, labelers, names)

    @property
    def voices(self) -> Voices | None:
        """Who said each label and how sure; None where nobody said how sure they are."""
        there, sure = self.said >= 0, self.source.confidence
        if sure is None:
            return None
        return voices_of(self.work.labeler[there], sure[there], self.work.labelers)

    def hear(
        self, costs: Floats | None = None, now: bool = False, seed: int = 0
    ) -> tuple[LabelTable, Belief]:
        """The labels, by the voices of those who say how sure they are, and what they say.

        A pupil votes too; with `now` it learns from all labels first. Gold of a class that nobody
        has said so far teaches nothing yet.
        """
        voices, pupil = self.voices, self.terms.pupil
        table = self.table(voices)
        table = table if pupil is None else pupil.join(table, now)
        known, kin = said_so_far(self.terms.gold, table), _families(self.work, voices)
        belief = believe(table, costs, kin, seed, known, self.work.asked)
        return table, belief if voices is None else heard(belief, voices)

    def right(self, codes: Ints) -> float | None:
        """The share of right verdicts; None without truth."""
        truth = self.terms.truth
        if truth is None:
            return None
        return share_right(codes, truth_codes(truth, self.work.items, self.source.classes))


def said_so_far(gold: Gold | None, table: LabelTable) -> Gold | None:
    """The gold whose classes occur in the table, as they are written there.

    >>> table = LabelTable.from_rows([("a", "ann", 0), ("b", "ann", 1)])
    >>> said_so_far({"a": "1", "b": "7"}, table)
    {'a': 1}
    """
    if not gold:
        return None
    named = zip(gold, like(list(gold.values()), table.classes), strict=True)
    return {item: label for item, label in named if label in table.classes}


def _families(work: Work, voices: Voices | None) -> Families | None:
    if voices is None or not work.families:
        return work.families
    owners = zip(voices.names, voices.labeler.tolist(), strict=True)
    return {name: work.families.get(work.labelers[m]) for name, m in owners}


def run_rounds(work: Work, source: Source, terms: Terms) -> tuple[Book, list[Point]]:
    """Buy labels in rounds until the money ends or more pays for none; what was heard, and when."""
    book, curve = Book(work, source, terms), list[Point]()
    buyer = _Buyer(book)
    settled = np.zeros(len(work.items), np.bool_)
    if terms.gold and terms.alone is not None:
        settled = buyer.try_alone(terms.gold, terms.alone)
    for entries in buyer.first_round():
        book.ask(entries)
        _report(buyer, 0, 0.0)
    number, sure, goals = 0, 0, np.isfinite(work.target)
    while book.labels and not source.ended:
        number += 1
        table, belief = book.hear(book.costs)
        done = settled | (belief.risk < ENOUGH)
        due = not curve or book.labels >= SHOWN * curve[-1].labels
        if due or goals.any():
            reached = _sure(work, table, belief)
            sure, done = int(reached.sum()), done | (goals & reached)
        if due:
            kept = belief.confidence(belief.verdict) * (np.diff(table.start) > 0)
            expected = float(np.average(kept, weights=work.weight))
            curve.append(Point(book.labels, book.spent, expected, book.right(belief.verdict)))
        _report(buyer, sure, curve[-1].expected)
        worth = np.where(done, 0.0, work.weight)
        entries = buyer.choose(belief, worth, terms.seed + 1_000_003 * number)
        if not entries.size:
            break
        book.ask(entries)
    book.take(*source.left_over())
    return book, curve


def costs_so_far(costs: Costs | None, classes: Sequence[Hashable]) -> Floats | None:
    """The matrix of the costs among the classes that were said so far.

    >>> costs_so_far({("1", "0"): 10, ("2", "0"): 5}, [0, 1]).tolist()
    [[0.0, 1.0], [10.0, 0.0]]
    """
    named: Costs = {like(pair, classes): cost for pair, cost in (costs or {}).items()}
    return cost_matrix(named, classes, all_known=False)


def _sure(work: Work, table: LabelTable, belief: Belief) -> Bools:
    """Which items have their target, or SURE without one; none while nothing is learned."""
    goal = np.where(np.isfinite(work.target), work.target, SURE)
    there = np.diff(table.start) > 0
    sure = belief.confidence(belief.verdict) >= goal
    return np.asarray(belief.learned & there & sure)


class _Buyer:
    """What can be bought with what is left of the budget."""

    def __init__(self, book: Book) -> None:
        self.book, self.work, self.source = book, book.work, book.source
        self.budget, self.growth = book.terms.budget, book.terms.growth
        self.seed = book.terms.seed

    def try_alone(self, gold: Gold, margin: float) -> Bools:
        """Try everybody on some items, and let one who is good enough label the rest.

        Returns the items that need no other label; none if nobody is good enough, or where the
        trial would take more than FIRST of the budget (of all labels).
        """
        work, source, book = self.work, self.source, self.book
        tried, settled = trial(work, gold, self.seed), np.zeros(len(work.items), np.bool_)
        limit = self.budget or Budget(labels=work.labeler.size)
        money = math.inf if limit.money is None else FIRST * limit.money
        labels = math.inf if limit.labels is None else FIRST * limit.labels
        if not tried.size or tried.size > labels or source.most[work.labeler[tried]].sum() > money:
            return settled
        book.ask(tried)
        matrix = book.costs
        belief = book.hear(matrix, seed=self.seed)[1]
        found = good_enough(work, book.said.astype(np.int64), belief, matrix, gold, margin)
        if found is None:
            return settled
        m, book.alone = found
        own = self._affordable(np.flatnonzero((work.labeler == m) & (book.said == FREE)))
        book.ask(own)
        settled[work.item[tried]] = True
        settled[work.item[own[book.said[own] >= 0]]] = True
        return settled

    def prices(self) -> Floats:
        """What a label of each labeler takes of the budget; infinite for those who cannot be asked.

        With limits on both money and labels it is the sum of the shares of the two.
        """
        price, limit = self.source.price, self.budget
        money = None if limit is None else limit.money
        labels = None if limit is None else limit.labels
        if money is None and labels is None:
            burden = price if price.any() else np.ones_like(price)
        else:
            burden = np.zeros_like(price)
            burden += price / money if money else 0.0
            burden += 1.0 / labels if labels else 0.0
        burden = np.maximum(burden, CHEAPEST * burden.max(initial=0.0))
        left = self.left()
        dear = self.source.most > left.money + 1e-9 if left and left.money is not None else False
        return np.where(self.source.open & ~np.asarray(dear), np.maximum(burden, 1e-300), np.inf)

    def left(self) -> Budget | None:
        return self.budget and self.budget.left(self.book.spent, self.book.labels)

    def share(self) -> float | None:
        if self.budget is None:
            return None
        money, labels = self.budget.money, self.budget.labels
        used = [self.book.spent / money] if money else []
        return max([*used, *([self.book.labels / labels] if labels else [])], default=1.0)

    def first_round(self) -> list[Ints]:
        """A label for each item, in some portions; those of most weight first."""
        price = self._first_prices()
        entries = first_entries(self.work, np.isfinite(price)[self.work.labeler], price, self.seed)
        drawn = np.random.default_rng(self.seed).random(entries.size)
        order = np.lexsort((drawn, -self.work.weight))
        entries = entries[order][entries[order] >= 0]
        asked = np.bincount(self.work.item, self.book.said != FREE) > 0
        entries = self._affordable(entries[~asked[self.work.item[entries]]])
        parts = max(1, round(0.5 / self.growth))
        return [part for part in np.array_split(entries, parts) if part.size]

    def _first_prices(self) -> Floats:
        """Prices to a power between 0 and 1, the least with which the first labels cost no more
        than FIRST of the budget: labelers share them as evenly as that allows.
        """  # noqa: D205
        price, money = self.prices(), None if self.budget is None else self.budget.money
        able = np.isfinite(price)
        if money is None or not able.any():
            return np.where(able, 1.0, np.inf)
        paid = np.maximum(self.source.price[able], 1e-300)
        for power in (0.0, 0.25, 0.5, 0.75, 1.0):
            odds = price[able] ** -power
            mean = float((odds * paid).sum() / odds.sum())
            if mean * len(self.work.items) <= FIRST * money:
                break
        return np.where(able, price**power, np.inf)

    def choose(self, belief: Belief, worth: Floats, seed: int) -> Ints:
        """The entries of the next round, the most valuable first."""
        prices = self.prices()
        price = known_prices(prices, belief.known[: len(prices)])  # a student is not bought
        entries, value = best_entries(self.work, self.book.said, belief, worth, price, seed)
        order = np.argsort(-value, kind="stable")
        order = order[value[order] > 0]
        size = max(LEAST, int(self.growth * self.book.labels))
        if self.growth < IN_BATCHES:
            return self._affordable(entries[order[:size]])
        whole = self._affordable(entries[order])
        wanted = np.isfinite(self.work.target).any() and whole.size == order.size
        if whole.size < CRUMB * size and not wanted:  # no round is worth the wait any more
            return whole[:0]
        return whole if whole.size <= (1 + REST) * size else whole[:size]

    def _affordable(self, entries: Ints) -> Ints:
        left = self.left()
        if left is None:
            return entries
        if left.labels is not None:
            entries = entries[: left.labels]
        if left.money is None:
            return entries
        total = np.cumsum(self.source.most[self.work.labeler[entries]])
        return entries[total <= left.money + 1e-9]


def known_prices(price: Floats, known: Ints) -> Floats:
    """Prices, of which a factor of up to BARGAIN counts only as far as the labeler is known.

    With w = (known - KNOWN) / (known + KNOWN), not below 0, what is within BARGAIN ** (1 - w) of
    the geometric mean of the panel counts as the mean, and what is beyond by the rest. A cheap
    labeler of whom little is known looks like a bargain; but where the cheap ones are the bad ones,
    many of them turn the vote round by which everybody is judged.

    >>> known_prices(np.array([1.0, 4.0, 128.0]), np.array([0, 0, 0])).round(3).tolist()
    [3.0, 8.0, 42.667]
    >>> known_prices(np.array([1.0, 4.0, 128.0]), np.full(3, 10**9)).round(3).tolist()
    [1.0, 4.0, 128.0]
    """
    able = np.isfinite(price)
    if not able.any():
        return price
    logs = np.log(price, where=able, out=np.zeros_like(price))
    mean = logs[able].mean()
    unknown = 1 - np.maximum(known - KNOWN, 0.0) / (known + KNOWN)
    beyond = np.maximum(np.abs(logs - mean) - unknown * np.log(BARGAIN), 0.0)
    return np.where(able, np.exp(mean + np.sign(logs - mean) * beyond), np.inf)


def _report(buyer: _Buyer, sure: int, expected: float) -> None:
    book = buyer.book
    if book.terms.progress is not None:
        book.terms.progress(Progress(book.labels, book.spent, buyer.share(), sure, expected))


def share_right(codes: Ints, truth: Ints) -> float:
    """The share of right verdicts among the items of known truth (-1: unknown).

    >>> share_right(np.array([0, 1, 1]), np.array([0, 0, -1]))
    0.5
    """
    known = truth >= 0
    return float((codes[known] == truth[known]).mean()) if known.any() else float("nan")


def truth_codes(truth: Mapping[Any, Hashable], items: Names, classes: Sequence[Hashable]) -> Ints:
    """The class of each item as its number, -1 where it is not known, K for one nobody said.

    >>> truth_codes({"a": "1", "b": "7"}, ["a", "b", "c"], [0, 1]).tolist()
    [1, 2, -1]
    """
    place = {name: k for k, name in enumerate(classes)}
    names = list(dict.fromkeys(truth.values()))
    said = zip(names, like(names, classes), strict=True)
    code = {name: place.get(as_said, len(place)) for name, as_said in said}
    return np.fromiter((code[truth[i]] if i in truth else -1 for i in items), np.int64, len(items))


#: The share of a budget that an expert gets unless it is stated.
SHARE: Final = 0.1


class Expert(NamedTuple):
    """An expert: the items it may label, its answers, and the money that is kept for it."""

    id: Hashable
    work: Work
    source: Source
    money: float


class Consulted(NamedTuple):
    """What an expert said, what each answer cost, and how many verdicts it turned.

    >>> Consulted("dana", {"a": "spam"}, {"a": 2.0}, 1).words
    '1 label of dana for 2, on the least sure items: 1 verdict changed'
    """

    id: Hashable
    answers: Mapping[Any, Hashable]
    costs: Mapping[Any, float]
    changed: int

    @property
    def spent(self) -> float:
        """What was paid, for answers without a label too."""
        return float(sum(self.costs.values()))

    @property
    def words(self) -> str:
        many, turned = len(self.answers), self.changed
        return (
            f"{many:,} label{'' if many == 1 else 's'} of {self.id} for {self.spent:,.6g}, on the "
            f"least sure items: {turned:,} verdict{'' if turned == 1 else 's'} changed"
        )

    def record(self) -> dict[str, Any]:
        return {
            "id": str(self.id),
            "labels": len(self.answers),
            "spent": self.spent,
            "changed": self.changed,
            "answers": {str(item): label for item, label in self.answers.items()},
        }


def reserve(budget: Budget | None, share: float | None, prices: Any) -> tuple[Budget, float]:
    """What is left of a budget for the panel, and what is kept for an expert.

    >>> reserve(Budget(money=50.0), 0.2, [2.0])
    (Budget(money=40.0, labels=None, per_day=False), 10.0)
    """
    part = SHARE if share is None else share
    if not (isinstance(part, int | float) and 0 < part < 1):
        raise InputError(f"got expert_share={share!r}, expected a share between 0 and 1")
    if budget is None or budget.money is None:
        raise InputError(
            "got an expert (trusted) and no budget in money, expected one: the expert gets a "
            "share of it"
        )
    if not all(price > 0 for price in prices):
        raise InputError(
            "got an expert (trusted) without a price, expected what a label of theirs costs"
        )
    kept = part * budget.money
    return replace(budget, money=budget.money - kept), kept


def consult(book: Book, expert: Expert) -> Consulted:
    """Ask the expert about the items whose verdicts may be wrong most, while the money lasts.

    Items with gold, with their target, and those whose verdict is beyond doubt are not asked about.
    """
    work, source, terms = book.work, book.source, book.terms
    table, belief = book.hear(book.costs, True, terms.seed)
    items, entry = _least_sure(work, belief, expert, terms.gold or {})
    said, cost = expert.source.ask(entry)
    rest, also, paid = expert.source.left_over()
    names, item = expert.work.items, expert.work.item
    told, prices = dict[Any, Hashable](), dict[Any, float]()
    for e, code, price in zip(
        [*entry.tolist(), *rest.tolist()], [*said, *also], [*cost, *paid], strict=True
    ):
        prices[names[item[e]]] = float(price)
        if code >= 0:
            told[names[item[e]]] = expert.source.classes[code]
    there = np.diff(table.start) > 0
    verdict = {work.items[i]: source.classes[belief.verdict[i]] for i in items if there[i]}
    turned = sum(name not in verdict or verdict[name] != label for name, label in told.items())
    return Consulted(expert.id, told, prices, turned)


def _least_sure(work: Work, belief: Belief, expert: Expert, gold: Gold) -> tuple[Ints, Ints]:
    """The items to ask about, the most doubtful first, and the expert's entries of them."""
    places = {name: e for e, name in enumerate(expert.work.items)}
    entry = np.array([places.get(name, -1) for name in work.items])
    done = belief.confidence(belief.verdict) >= work.target if belief.learned else False
    risk = np.where((belief.risk < ENOUGH) | done | (entry < 0), 0.0, work.weight * belief.risk)
    risk[[i for i, name in enumerate(work.items) if name in gold]] = 0.0
    most = int(expert.money / float(expert.source.most.max()) + 1e-9)
    items = np.argsort(-risk, kind="stable")[:most]
    items = items[risk[items] > 0]
    return items, entry[items]
