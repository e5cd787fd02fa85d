"""Believe, choose, ask, and again, until the budget is spent or nothing is left to gain.

The first round gives every item one label, by labelers drawn at random: until labels are compared
all labelers are the same, and those who meet at random can be compared best. Each later round buys
the most valuable labels (`choice`), GROWTH times as many as there are, so that the labelers are
learned anew some twenty times while three labels an item are bought, whatever the size of the
batch. An item with a target is done when its verdict has that confidence; one that has become
doubtful again is not.

**How many labels a panel would need for an accuracy: a batch of made-up items is labelled.**

The labelers of the rehearsal label as they were found to (`Anchored`), each for itself. It is an
estimate: labelers who share errors need more labels than that, and those of whom few labels are
known, one or two an item, are better than they were found to be and need fewer (docs/student.md).

Labels that are there already, as a source of answers: how to try a budget on old data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from venire.batch.alone import Alone, good_enough, trial
from venire.batch.choice import (
    Belief,
    believe,
    best_entries,
    first_entries,
    heard,
)
from venire.batch.labelers import AWAY, FREE, Pupil, Work, check_target
from venire.budget import Budget
from venire.costs import Costs, cost_matrix
from venire.errors import InputError
from venire.estimators.anchor import Anchored
from venire.estimators.dependence import Families
from venire.estimators.gold import Gold
from venire.estimators.voices import Voices, voices_of
from venire.labels import LabelTable
from venire.labels.sources.columns import like
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

#: Labels on shared items from which on a labeler's own price counts fully in the end, and the
#: factor by which a price may be off the mean of the panel before that.
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
        """What was said, a class or one of FREE, NO_LABEL and AWAY (see work.py), and costs."""

    def left_over(self) -> tuple[Ints, Ints, Floats]:
        """Entries that were paid for and not asked for, with answers and costs."""


class Book:
    """The answers so far: of each entry what was said: a class, FREE, NO_LABEL or AWAY."""

    def __init__(self, work: Work) -> None:
        """Nothing was asked yet."""
        self.work = work
        self.said = np.full(work.labeler.size, FREE, np.int32)
        self.cost = np.zeros(work.labeler.size)
        self.spent, self.labels = 0.0, 0
        self.alone: Alone | None = None

    def take(self, entries: Ints, said: Ints, cost: Floats) -> None:
        """Note answers."""
        self.said[entries], self.cost[entries] = said, cost
        asked = said != FREE
        self.spent += float(cost[asked].sum())
        self.labels += int((asked & (said != AWAY)).sum())

    def table(self, classes: Sequence[Hashable], voices: Voices | None = None) -> LabelTable:
        """The labels; a class nobody said is added while there is only one."""
        there, work = np.flatnonzero(self.said >= 0), self.work
        names = (*classes, *((None, False)[: 2 - len(classes)] if len(classes) < 2 else ()))
        item = np.searchsorted(work.start, there, side="right") - 1
        labeler, labelers = work.labeler[there], work.labelers
        if voices is not None:
            labeler, labelers = voices.voice, voices.names
        return LabelTable.from_codes(item, labeler, self.said[there], work.items, labelers, names)

    def voices(self, confidence: Floats | None) -> Voices | None:
        """Who said each label and how sure; None where nobody said how sure they are."""
        if confidence is None:
            return None
        there = self.said >= 0
        return voices_of(self.work.labeler[there], confidence[there], self.work.labelers)


def hear(
    book: Book,
    source: Source,
    costs: Floats | None = None,
    pupil: Pupil | None = None,
    now: bool = False,
    seed: int = 0,
    gold: Gold | None = None,
) -> tuple[LabelTable, Belief]:
    """The labels, by the voices of those who say how sure they are, and what they say.

    A `pupil` votes too; with `now` it learns from all labels first. `gold` is what is known of
    items; a class that nobody has said so far teaches nothing yet.
    """
    voices = book.voices(source.confidence)
    table = book.table(source.classes, voices)
    table = table if pupil is None else pupil.join(table, now)
    known, kin = said_so_far(gold, table), _families(book.work, voices)
    belief = believe(table, costs, kin, seed, known, book.work.asked)
    return table, belief if voices is None else heard(belief, voices)


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


def run_rounds(
    work: Work,
    source: Source,
    budget: Budget | None,
    costs: Costs | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
    right: Callable[[Ints], float] | None = None,
    pupil: Pupil | None = None,
    gold: Gold | None = None,
    growth: float = GROWTH,
    alone: float | None = None,
) -> tuple[Book, list[Point]]:
    """Buy labels; returns them and the curve. `right` scores verdicts, for the curve only.

    A `pupil` votes with the panel; its votes cost nothing and are not counted. `gold` teaches in
    every round. A round adds `growth` of the labels so far. With `alone`, a labeler with whom no
    more than that is expected to be lost labels the rest alone (`venire.batch.alone`).
    """
    book, curve = Book(work), list[Point]()
    buyer = _Buyer(work, source, budget, book, growth)
    settled = np.zeros(len(work.items), np.bool_)
    if gold and alone is not None:
        settled = buyer.trusting(costs, pupil, gold, alone, seed)
    for entries in buyer.first_round(seed):
        book.take(entries, *source.ask(entries))
        _report(progress, buyer, 0, 0.0)
    number, sure, goals = 0, 0, np.isfinite(work.target)
    while book.labels and not source.ended:
        number += 1
        table, belief = hear(book, source, costs_so_far(costs, source.classes), pupil, gold=gold)
        done = settled | (belief.risk < ENOUGH)
        due = not curve or book.labels >= SHOWN * curve[-1].labels
        if due or goals.any():
            reached = _sure(work, table, belief)
            sure, done = int(reached.sum()), done | (goals & reached)
        if due:
            kept = belief.confidence(belief.verdict) * (np.diff(table.start) > 0)
            expected = float(np.average(kept, weights=work.weight))
            score = right(belief.verdict) if right else None
            curve.append(Point(book.labels, book.spent, expected, score))
        _report(progress, buyer, sure, curve[-1].expected)
        worth = np.where(done, 0.0, work.weight)
        entries = buyer.choose(belief, worth, seed + 1_000_003 * number)
        if not entries.size:
            break
        book.take(entries, *source.ask(entries))
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

    def __init__(
        self, work: Work, source: Source, budget: Budget | None, book: Book, growth: float
    ) -> None:
        self.work, self.source, self.budget, self.book = work, source, budget, book
        self.growth = growth

    def trusting(
        self, costs: Costs | None, pupil: Pupil | None, gold: Gold, margin: float, seed: int
    ) -> Bools:
        """Try everybody on some items, and let one who is good enough label the rest.

        Returns the items that need no other label; none if nobody is good enough, or where the
        trial would take more than FIRST of the budget (of all labels).
        """
        work, source, book = self.work, self.source, self.book
        tried, settled = trial(work, gold, seed), np.zeros(len(work.items), np.bool_)
        limit = self.budget or Budget(labels=work.labeler.size)
        money = math.inf if limit.money is None else FIRST * limit.money
        labels = math.inf if limit.labels is None else FIRST * limit.labels
        if not tried.size or tried.size > labels or source.most[work.labeler[tried]].sum() > money:
            return settled
        book.take(tried, *source.ask(tried))
        matrix = costs_so_far(costs, source.classes)
        belief = hear(book, source, matrix, pupil, seed=seed, gold=gold)[1]
        found = good_enough(work, book.said.astype(np.int64), belief, matrix, gold, margin)
        if found is None:
            return settled
        m, book.alone = found
        own = self._affordable(np.flatnonzero((work.labeler == m) & (book.said == FREE)))
        book.take(own, *source.ask(own))
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
        """The share of the budget that is spent."""
        if self.budget is None:
            return None
        money, labels = self.budget.money, self.budget.labels
        used = [self.book.spent / money] if money else []
        return max([*used, *([self.book.labels / labels] if labels else [])], default=1.0)

    def first_round(self, seed: int) -> list[Ints]:
        """A label for each item, in some portions; those of most weight first."""
        price = self._first_prices()
        entries = first_entries(self.work, np.isfinite(price)[self.work.labeler], price, seed)
        drawn = np.random.default_rng(seed).random(entries.size)
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


def _report(
    progress: Callable[[Progress], None] | None, buyer: _Buyer, sure: int, expected: float
) -> None:
    if progress is not None:
        book = buyer.book
        progress(Progress(book.labels, book.spent, buyer.share(), sure, expected))


def recorded_work(
    table: LabelTable, target: float | None = None, weights: Mapping[Hashable, float] | None = None
) -> Work:
    """Who may label what: those who did.

    >>> recorded_work(LabelTable.from_matrix([[0, 1], [-1, 1]])).labeler.tolist()
    [0, 1, 1]
    """
    check_target(target)
    n = len(table.items)
    weight = np.array([(weights or {}).get(name, 1.0) for name in table.items], np.float64)
    goal = np.full(n, np.inf if target is None else target)
    labeler = table.labeler.astype(np.int64)
    return Work(table.items, table.labelers, table.start, labeler, weight, goal)


class Recorded:
    """Answers out of a table of labels; every labeler has one price.

    >>> source = Recorded(LabelTable.from_matrix([[0, 1], [-1, 1]]), np.array([1.0, 2.0]))
    >>> [a.tolist() for a in source.ask(np.array([2, 0]))]
    [[1, 0], [2.0, 1.0]]
    """

    def __init__(self, table: LabelTable, price: Floats) -> None:
        if len(price) != len(table.labelers) or not (price >= 0).all():
            raise InputError("expected a price of 0 or more for each labeler of the table")
        self.classes: tuple[Hashable, ...] = tuple(table.classes)
        self.price = self.most = price.astype(np.float64)
        self.open = np.ones(len(price), np.bool_)
        self.ended = False
        self.trouble: str | None = None
        self.confidence: Floats | None = None
        self.rationales: dict[int, str] = {}
        self._labeler, self._said = table.labeler, table.said

    def ask(self, entries: Ints) -> tuple[Ints, Floats]:
        """What was said, as numbers of classes, and what each of it costs."""
        return self._said[entries].astype(np.int64), self.price[self._labeler[entries]]

    def left_over(self) -> tuple[Ints, Ints, Floats]:
        """Answers that were paid for and not asked for: none."""
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)


#: Made-up items, and the most labels for each.
ITEMS: Final = 1000
MOST: Final = 12


def labels_needed(bought: LabelTable, accuracy: float, seed: int = 0) -> float | None:
    """Labels an item with which the panel alone would be as accurate; None for more than MOST.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 6)) < 0.7, truth, 1 - truth)
    >>> few, many = (labels_needed(LabelTable.from_matrix(said), a) for a in (0.75, 0.8))
    >>> 1 <= few < many
    True
    """
    truth, table = _made_up(bought, seed)
    n = len(table.items)
    work, source = recorded_work(table), Recorded(table, np.ones(len(table.labelers)))

    def right(codes: NDArray[np.int64]) -> float:
        return float((codes == truth).mean())

    budget = Budget(labels=n * min(MOST, len(table.labelers)))
    _, curve = run_rounds(work, source, budget, seed=seed, right=right)
    before, low = 0.0, 0.0
    for point in curve:
        here, reached = point.labels / n, point.right or 0.0
        if reached >= accuracy:
            return before + (accuracy - low) / (reached - low) * (here - before) if before else here
        before, low = here, max(low, reached)
    return None


def _made_up(bought: LabelTable, seed: int) -> tuple[NDArray[np.int64], LabelTable]:
    """Items of classes as frequent as they were found to be, each labelled by everybody."""
    fitted, rng = Anchored().fit(bought), np.random.default_rng(seed)
    n, K = min(ITEMS, len(bought.items)), len(bought.classes)
    truth = rng.choice(K, p=fitted.priors_ / fitted.priors_.sum(), size=n)
    gave = np.bincount(bought.labeler, minlength=len(bought.labelers)) > 0
    sums = fitted.confusions_[gave].cumsum(axis=2)[:, truth]  # labelers x items x classes
    said = (sums[..., :-1] < rng.random((*sums.shape[:2], 1))).sum(axis=2)
    return truth, LabelTable.from_matrix(said.T, K)
