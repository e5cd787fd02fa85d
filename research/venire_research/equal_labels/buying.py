"""How venire spends a budget of labels, with its public verbs only.

With every item that arrives, `labels` more labels may be bought; what is not spent is kept. In
each slot:

    chosen  all labelers stand ready. `assign` hands out one item to each, the best labelers
            first (`by_worth`); those of the largest gain are bought, a part of the budget at a
            time (`ROUNDS`), the others are given back (`release`); again while there is
            something left to spend.
    come    the labelers who come in this slot ask for work one after the other (`asked`), until
            the budget of the slot is spent; the rest of them go away with nothing.

Labels come back at once. An item leaves when venire decides so, at the latest after `DEADLINE`
slots. All items have the same, large weight, so nothing leaves because of delay: only the budget
limits the number of labels.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from venire.engine import Scheduler
from venire.errors import UnknownName
from venire.labels import LabelTable
from venire.model import Assignment, Bounds, Exit, Item, Label, Labeler
from venire.scheduling import LearnWhileServing, Realised
from venire.scheduling.base import Learning, Policy
from venire_research.equal_labels.replay import DEADLINE, Ints, Replay

__all__ = ["MODES", "WEIGHT", "Bought", "Mode", "buy"]

Mode = Literal["chosen", "come"]
MODES: Final = get_args(Mode)

#: What a right verdict is worth, in slots of delay.
WEIGHT: Final = 1e6

#: The budget of a slot is spent in this many rounds: nobody is asked twice in a round.
ROUNDS: Final = 4

#: The required confidence; an item that reaches it leaves at once.
ENOUGH: Final = 0.999


@dataclass(frozen=True, eq=False)
class Bought:
    """The labels that venire bought, and for each item its verdict (-1: none) and delay."""

    table: LabelTable
    verdict: Ints
    confidence: NDArray[np.float64]
    response: Ints

    @property
    def labels(self) -> int:
        """How many labels were bought."""
        return len(self.table.labeler)


def buy(
    replay: Replay,
    mode: Mode,
    labels: float,
    policy: Policy | None = None,
    learning: Learning | None = None,
    gold: Mapping[int, int] | None = None,
) -> Bought:
    """Serve the stream with `labels` labels per item, with venire's defaults unless given.

    `gold` are items whose class somebody says when they leave, as in an audit.

    >>> rows = [(i, w, i % 2) for i in range(40) for w in "abc"]
    >>> stream = Replay.of(LabelTable.from_rows(rows), np.arange(40) % 2, seed=0)
    >>> bought = buy(stream, "chosen", 1.5)
    >>> bought.labels, bool((bought.verdict == stream.truth).all())
    (60, True)
    """
    if mode not in MODES:
        raise UnknownName("mode", mode, MODES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few labels cause warnings; the result is scored
        return _Buyer(replay, mode, labels, policy, learning, gold or {}).run()


class _Buyer:
    """One run: a scheduler, and how much of the budget is spent."""

    def __init__(
        self,
        replay: Replay,
        mode: Mode,
        labels: float,
        policy: Policy | None,
        learning: Learning | None,
        gold: Mapping[int, int],
    ) -> None:
        self.replay, self.mode, self.labels, self.gold = replay, mode, labels, gold
        table = replay.table
        items = len(table.items)
        self.scheduler = Scheduler(
            [Labeler(str(m), capacity=items) for m in table.labelers],
            range(len(table.classes)),
            policy or Realised(),
            LearnWhileServing() if learning is None else copy.deepcopy(learning),
            bounds=Bounds(min_confidence=ENOUGH, deadline=DEADLINE),
            remember=None if gold else 0,
        )
        self.bought: list[tuple[int, int, int]] = []
        self.verdict = np.full(items, -1)
        self.confidence = np.zeros(items)
        self.response = np.zeros(items, np.int64)

    def run(self) -> Bought:
        """Run all slots, then finish the remaining items."""
        visits = self.replay.visits(self.labels)
        arrived = np.searchsorted(self.replay.arrival, np.arange(len(visits)), "right")
        first = 0
        for slot, last in enumerate(arrived.tolist()):
            self.scheduler.arrive(self._items(range(first, last)))
            first, budget = last, int(self.labels * last + 1e-9)
            if self.mode == "chosen":
                self._choose(budget)
            else:
                self._receive(visits[slot].tolist(), budget)
            self._note(self.scheduler.close())
            self.scheduler.drain()
        while self.scheduler.outstanding:
            self._note(self.scheduler.close())
        item, labeler, said = np.array(self.bought, np.int64).reshape(-1, 3).T
        table = self.replay.table
        names = table.items, table.labelers, table.classes
        bought = LabelTable.from_codes(item, labeler, said, *names)
        return Bought(bought, self.verdict, self.confidence, self.response)

    def _items(self, rows: range) -> Iterator[Item]:
        table = self.replay.table
        for i in rows:
            able = table.labeler[table.start[i] : table.start[i + 1]]
            everyone = len(able) == len(table.labelers)
            yield Item(str(i), WEIGHT, None if everyone else frozenset(map(str, able.tolist())))

    def _choose(self, budget: int) -> None:
        """Every labeler is given an item; buy the best of these assignments while the budget lasts.

        A part of the budget at a time, so that the best labelers can be asked again.
        """
        most = -(-(budget - len(self.bought)) // ROUNDS)
        while (left := min(most, budget - len(self.bought))) > 0:
            work = self.scheduler.assign(self.scheduler.by_worth)
            ranked = sorted(work, key=lambda a: -np.nan_to_num(a.gain))
            for a in ranked[left:]:
                self.scheduler.release(a.item, a.labeler)
            self._ask(ranked[:left])
            if not work:
                return

    def _receive(self, visitors: list[int], budget: int) -> None:
        """Each visitor asks for work while the budget lasts."""
        while visitors and (left := budget - len(self.bought)) > 0:
            here, visitors = visitors[:left], visitors[left:]
            self._ask(self.scheduler.assign([str(m) for m in here]))

    def _ask(self, work: Iterable[Assignment]) -> None:
        codes = [(int(a.item), int(a.labeler)) for a in work]
        said = [self.replay.said(i, m) for i, m in codes]
        self.bought += [(i, m, k) for (i, m), k in zip(codes, said, strict=True)]
        labels = (Label(str(i), str(m), k) for (i, m), k in zip(codes, said, strict=True))
        self.scheduler.observe(labels)

    def _note(self, exits: Iterable[Exit]) -> None:
        for e in exits:
            i = int(e.item)
            self.verdict[i] = -1 if e.verdict.label is None else e.verdict.label
            self.confidence[i] = e.verdict.confidence
            self.response[i] = e.slot - e.arrival
            if i in self.gold:
                self.scheduler.gold(e.item, self.gold[i], e.verdict, e.labels)
