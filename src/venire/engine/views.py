"""What can be read off a scheduler, for programs, dataframes and notebooks; nothing changes."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from venire.display import SHOWN, block, facts, table
from venire.engine.registry import Heard
from venire.engine.state import State
from venire.estimators.frames import Backend, frame_of
from venire.events import Event
from venire.model import Bounds, Budget, Item, ItemId, Labeler, LabelerId, Verdict
from venire.paper import utility
from venire.scheduling.base import Learning, Policy
from venire.scheduling.kernel.desk import COUNTER
from venire.scheduling.kernel.verdicts import probabilities


def item_columns(scheduler: Readable, first: int | None = None) -> dict[str, list[Any]]:
    """The columns of `Scheduler.to_frame`, of all items or of the first ones only."""
    queue, items = scheduler.state.queue, list(scheduler.outstanding[:first])
    rows = queue.desk.rows[queue.outstanding()[:first]]
    verdicts = [scheduler.verdict(item) for item in items]
    return {
        "item": items,
        "arrival": rows["arrival"].tolist(),
        "weight": rows["weight"].tolist(),
        "labels": (rows["labels"] - rows["pending"]).tolist(),
        "in_flight": rows["pending"].tolist(),
        "verdict": [verdict.label for verdict in verdicts],
        "confidence": [verdict.confidence for verdict in verdicts],
    }


def texts(values: tuple[object, ...]) -> Iterator[str]:
    """How two or more values look in a tuple, where `Heard` looks as a list; in pieces.

    >>> "".join(texts((7, Heard([(1, 2, 0), (3, 4, 1)]))))
    '(7, [(1, 2, 0), (3, 4, 1)])'
    """
    for place, value in enumerate(values):
        yield ", " if place else "("
        if isinstance(value, Heard):
            labels, between = iter(value), "["
            while piece := list(islice(labels, 1000)):
                yield between + repr(piece)[1:-1]
                between = ", "
            yield "]" if len(value) else "[]"
        else:
            yield repr(value)
    yield ")"


class Readable:
    """What can be read of a scheduler."""

    #: What the parts share. Read it if you must; only the verbs change it.
    state: State

    @property
    def slot(self) -> int:
        """The slot of now, from 0 on."""
        return self.state.slot

    @property
    def log(self) -> list[Event]:
        """The events since the start, `restore` or the last `drain`."""
        return self.state.log

    @property
    def policy(self) -> Policy:
        """Who labels what."""
        return self.state.policy

    @property
    def learning(self) -> Learning | None:
        """How competences are learned; None: they are given."""
        return self.state.learning

    @property
    def c(self) -> float:
        """The constant of the accuracy proxy."""
        return self.state.c

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """What a label may say."""
        return self.state.registry.classes

    @property
    def bounds(self) -> Bounds:
        """What holds for every item."""
        return self.state.raw.bounds

    @property
    def budget(self) -> Budget | None:
        """What may be spent."""
        return self.state.purse.budget

    @property
    def budget_left(self) -> tuple[float | None, float | None]:
        """Money and labels left of the budget if all labels in flight come; None: no limit.

        >>> from venire import Budget, Item, Labeler, Scheduler
        >>> budget = Budget(labels=5, slots=10)
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"], budget=budget)
        >>> s.arrive(Item("post-1", weight=8))
        >>> len(s.assign()), s.budget_left
        (1, (None, 4.0))
        """
        return self.state.purse.left(self.state.in_flight, self.state.prices)

    @property
    def multipliers(self) -> tuple[float, float]:
        """What a unit of money, and a label, cost beside the price, because of the budget."""
        return self.state.purse.multipliers

    @property
    def revisions(self) -> int:
        """How many of the items that left last may be revised."""
        return self.state.departed.most

    @property
    def costs(self) -> dict[tuple[Hashable, Hashable], float]:
        """What errors cost, where it was said."""
        return dict(self.state.costs)

    @property
    def families(self) -> dict[LabelerId, Hashable]:
        """The families of labelers who may share errors, where it was said."""
        return dict(self.state.families)

    @property
    def panel(self) -> tuple[Labeler, ...]:
        """Everybody who is, or was, on the panel."""
        return tuple(self.state.registry.labelers)

    @property
    def seated(self) -> tuple[LabelerId, ...]:
        """The labelers who are on the panel and have not left.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.leave("ann")
        >>> s.seated
        ('bob',)
        """
        state = self.state
        able = zip(state.registry.labelers, state.raw.queue.capacity.tolist(), strict=True)
        return tuple(who.id for who, capacity in able if capacity > 0)

    @property
    def outstanding(self) -> tuple[ItemId, ...]:
        """The items that have not left, the earliest arrival first."""
        items = self.state.registry.items
        return tuple(items[row].id for row in self.state.queue.outstanding())

    @property
    def competences(self) -> dict[LabelerId, float] | None:
        """What is believed of each labeler; None while nothing is known."""
        belief = self.state.raw.queue.belief
        if belief is None:
            return None
        pairs = zip(self.state.registry.labelers, belief.competences.tolist(), strict=True)
        return {who.id: p for who, p in pairs}

    @property
    def by_worth(self) -> tuple[LabelerId, ...]:
        """Everybody on the panel, those first whose labels are believed to tell the most.

        Among equals those who gave fewer labels since competences were learned last.

        >>> from venire import Labeler, Scheduler
        >>> Scheduler([Labeler("ann", 0.7), Labeler("bob", 0.9)], classes=["spam", "ok"]).by_worth
        ('bob', 'ann')
        """
        desk, heard = self.state.queue.desk, self.state.heard
        given = np.bincount(heard.labelers, minlength=len(desk.panel))
        order = desk.order[np.lexsort((given[desk.order], -desk.panel["evidence"][desk.order]))]
        return tuple(self.state.registry.labelers[m].id for m in order)

    @property
    def in_flight(self) -> tuple[tuple[ItemId, LabelerId], ...]:
        """The assignments whose labels have not come, the earliest first."""
        items, labelers = self.state.registry.items, self.state.registry.labelers
        return tuple((items[row].id, labelers[m].id) for row, m in self.state.queue.in_flight())

    @property
    def counters(self) -> dict[str, int]:
        """What the policy counted since it took over, by name; empty for most."""
        return self.state.policy.counters(self.state.queue.desk.meta[COUNTER:])

    @property
    def price(self) -> float | None:
        """What a unit of evidence cost when work was last handed out; None without prices."""
        return self.state.policy.price(self.state.queue.desk.gauges)

    @property
    def is_filed(self) -> bool:
        """Whether the next look at the queue need not `file` anything."""
        return not self.state.raw.queue.stale

    def file(self) -> None:
        """File every item now if panel, belief or policy changed, so that the next look is quick.

        >>> from venire import Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.join(Labeler("bob", 0.8))
        >>> s.is_filed, s.file(), s.is_filed
        (False, None, True)
        """
        self.state.file()

    def item(self, item: ItemId) -> Item:
        """An outstanding item."""
        return self.state.registry.items[self.state.registry.outstanding(item)]

    def verdict(self, item: ItemId) -> Verdict:
        """What the labels of an item say so far; once it left, only while it may be revised."""
        state = self.state
        kept = state.departed.items.get(item)
        if kept is not None and item not in state.registry.row:
            return state.verdict(kept.verdict, kept.confidence)
        if item in state.gold:
            return state.verdict(state.gold[item], 1.0)
        return state.verdict(*state.queue.decide(state.registry.outstanding(item)))

    def posterior(self, item: ItemId) -> dict[Hashable, float]:
        """How probable each class is, by the labels that an outstanding item has so far.

        That of the verdict is its confidence: both are as certain as labels that share errors are.

        >>> from venire import Item, Label, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1"))
        >>> s.observe(Label("post-1", "ann", "ok"))
        >>> {k: round(p, 3) for k, p in s.posterior("post-1").items()}
        {'spam': 0.1, 'ok': 0.9}
        """
        queue, registry = self.state.queue, self.state.registry
        share = probabilities(queue.desk, registry.outstanding(item))
        return dict(zip(registry.classes, share.tolist(), strict=True))

    def ranking(self, labeler: LabelerId, limit: int = 10) -> list[tuple[ItemId, float]]:
        """What the labeler could be given now, by the gain of one label, the largest first.

        This is Algorithm 1's measure; other policies look at more than that.

        >>> from venire import Item, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9)], classes=["spam", "ok"])
        >>> s.arrive([Item("post-1", weight=8), Item("post-2", weight=9)])
        >>> [(item, round(gain, 2)) for item, gain in s.ranking("ann")]
        [('post-2', 5.26), ('post-1', 4.68)]
        """
        registry, slot = self.state.registry, self.state.slot
        m, bounded, queue = registry.known(labeler), self.state.bounded, self.state.queue
        rows, reach = queue.desk.rows, float(queue.desk.panel["reach"][m])
        price = float(queue.desk.panel["price"][m])
        found = []
        for row in queue.outstanding().tolist():
            if queue.find(row, m) < 0 and bounded.in_group(row, m):
                left = utility.residual(float(rows["weight"][row]), float(rows["evidence"][row]))
                gain = utility.gain(left, reach, slot - int(rows["last"][row]))
                found.append((gain - price, -row))
        best = sorted(found, reverse=True)[:limit]
        return [(registry.items[-row].id, gain) for gain, row in best]

    def fingerprint(self) -> str:
        """A digest of the whole state; equal for equal logs."""
        state, bounded = self.state, self.state.bounded
        names = (
            state.slot,
            state.quiet,
            state.registry.state(),
            state.heard,
            bounded.bounds,
            sorted(bounded.retired),
            state.departed.most,
            state.departed.state(),
            *([state.gold] if state.gold else []),
            *([state.sufficed] if state.sufficed else []),
            *([state.costs] if state.costs else []),
            *([state.families] if state.families else []),
            *([state.tones.state()] if state.tones else []),
            *([state.purse.budget, state.purse.state()] if state.purse.budget else []),
        )
        digest = hashlib.sha256()
        for text in texts(names):
            digest.update(text.encode())
        for column in bounded.queue.columns():
            digest.update(np.ascontiguousarray(column).tobytes())
        learned = {} if state.learner is None else state.learner.state()
        for name in sorted(learned):
            digest.update(np.ascontiguousarray(learned[name]).tobytes())
        return digest.hexdigest()

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The outstanding items as a dataframe, the earliest arrival first.

        The columns: item, arrival, weight, labels, in_flight, verdict and confidence so far.
        `backend` is "pandas", "polars" or "pyarrow"; by default the first that is installed.

        >>> from venire import Item, Label, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1", weight=8))
        >>> s.observe(Label("post-1", "ann", "ok"))
        >>> s.to_frame("pandas")
             item  arrival  weight  labels  in_flight verdict  confidence
        0  post-1        0     8.0       1          0      ok         0.9
        >>> s
        Scheduler(labelers=2, policy=realised, slot=0, items=1, in_flight=0)
        """
        return frame_of(item_columns(self), backend)

    def __repr__(self) -> str:
        at = f"slot={self.slot}, items={len(self.outstanding)}, in_flight={len(self.in_flight)}"
        return f"Scheduler(labelers={len(self.panel)}, policy={self.policy.describe()}, {at})"

    def _repr_html_(self) -> str:
        """What a notebook shows: where the stream stands, the labelers, the first items."""
        known = self.competences or {}
        labelers: dict[str, list[Any]] = {
            "labeler": [who.id for who in self.panel],
            "capacity": [who.capacity for who in self.panel],
            "competence": [known.get(who.id) for who in self.panel],
        }
        stream = {
            "slot": self.slot,
            "items": len(self.outstanding),
            "labels in flight": len(self.in_flight),
        }
        title = f"Scheduler, {self.policy.describe()}"
        return block(title, [facts(stream), table(labelers), table(item_columns(self, SHOWN))])
