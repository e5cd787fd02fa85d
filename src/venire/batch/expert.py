"""A share of the budget for an expert: somebody whose labels are the truth, at a price.

The panel is asked first, with what is left of the budget. Then the expert sees the items whose
verdicts are least sure, and settles these. It teaches nothing about the others: items that were
chosen because nobody was sure of them are not a sample of the rest. docs/gold.md has what that is
worth, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from venire.batch.choice import Belief
from venire.batch.labelers import Pupil, Work
from venire.batch.rounds import ENOUGH, Book, Source, costs_so_far, hear
from venire.budget import Budget
from venire.costs import Costs
from venire.errors import InputError
from venire.estimators.gold import Gold
from venire.tools.arrays import Ints

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
    '1 label of dana for 2, on the least sure items: 1 verdict was another'
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
        """In one sentence."""
        many, turned = len(self.answers), self.changed
        return (
            f"{many:,} label{'' if many == 1 else 's'} of {self.id} for {self.spent:,.6g}, on the "
            f"least sure items: {turned:,} verdict{' was' if turned == 1 else 's were'} another"
        )

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
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


def consult(
    book: Book,
    source: Source,
    expert: Expert,
    gold: Gold | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    pupil: Pupil | None = None,
) -> Consulted:
    """Ask the expert about the items whose verdicts may be wrong most, while the money lasts.

    Items with gold, with their target, and those whose verdict is beyond doubt are not asked about.
    """
    work = book.work
    table, belief = hear(book, source, costs_so_far(costs, source.classes), pupil, True, seed, gold)
    items, entry = _least_sure(work, belief, expert, gold or {})
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
