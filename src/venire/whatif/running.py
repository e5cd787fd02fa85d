"""A recorded stream, run again with another policy, panel, way of learning or budget.

Items, weights, eligibility, visits of labelers and the time that each label took are those of the
log. A labeler can be asked about an item only where the log holds that label, unless missing labels
are drawn (`Drawn`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from venire.budget import Budget
from venire.engine import Scheduler
from venire.errors import InputError, UnknownName
from venire.events import (
    Arrived,
    Assigned,
    Changed,
    Event,
    GoldGiven,
    Joined,
    Left,
    Withdrawn,
)
from venire.model import Bounds, Exit, ExitReason, Item, ItemId, Label, LabelerId
from venire.scheduling.by_name import learning_named, policy_named
from venire.whatif.missing import Drawn
from venire.whatif.recorded import Pair, Recorded

__all__ = ["Plan", "Rerun", "rerun"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do otherwise; None: as it was.

    Names of policy and learning are as `venire simulate` takes them; `without` are labelers who
    are left out. When the next label cannot be paid from the budget, nothing more is bought, and
    items leave with the labels that they have. `min_confidence` and `max_labels` bound
    every item; a confidence that an item has of its own stays.
    """

    policy: str | None = None
    learning: str | None = None
    without: frozenset[LabelerId] = frozenset()
    budget: Budget | None = None
    min_confidence: float | None = None
    max_labels: int | None = None

    def bounds(self, bounds: Bounds) -> Bounds:
        """The bounds with those of the plan in their place."""
        least = self.min_confidence
        if least is not None:
            bounds = replace(bounds, min_confidence=least, floor=True)
        if self.max_labels is not None:
            few = min(bounds.min_labels, self.max_labels)
            bounds = replace(bounds, max_labels=self.max_labels, min_labels=few)
        return bounds

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget.per_day:
            raise InputError("got a budget per day, expected one for the whole log: leave per_day")


@dataclass(eq=False)
class Rerun:
    """What came of it: exits by item, labels of each item, and how much was recorded.

    `drawn` counts the labels that the log does not hold; `idle` the visits on which a labeler was
    given nothing, of `visits`; `ran_out` the items that left when all labels that the log holds of
    them had been used.
    """

    exits: dict[ItemId, Exit] = field(default_factory=dict)
    labels: dict[ItemId, list[LabelerId]] = field(default_factory=dict)
    drawn: int = 0
    visits: int = 0
    idle: int = 0

    @property
    def ran_out(self) -> int:
        """How many items left when nobody was left to ask."""
        ends = ExitReason.EXHAUSTED, ExitReason.UNDECIDED
        return sum(exit.reason in ends for exit in self.exits.values())


def rerun(
    recorded: Recorded,
    plan: Plan,
    seed: int = 0,
    drawn: Drawn | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Rerun:
    """Run the stream again; with `drawn`, missing labels are drawn instead of not offered.

    >>> from venire import Labeler, Scheduler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
    >>> start, s = (Scheduler(panel, ["spam", "ok"], policy_named("everyone")) for _ in range(2))
    >>> s.arrive(Item("post-1", weight=8))
    >>> s.observe([Label(a.item, a.labeler, "ok") for a in s.assign()])
    >>> [exit.labels for exit in s.close()]
    [2]
    >>> cheaper = rerun(Recorded.of(start, s.log), Plan(policy="fixed-overlap:1"))
    >>> cheaper.labels, cheaper.exits["post-1"].labels
    ({'post-1': ['ann']}, 1)
    """
    return _Running(recorded, plan, seed, drawn).run(progress)


class _Running:
    """A rerun while it lasts."""

    def __init__(self, recorded: Recorded, plan: Plan, seed: int, drawn: Drawn | None) -> None:
        self.recorded, self.plan, self.seed, self.drawn = recorded, plan, seed, drawn
        self.engine = _engine(recorded, plan, seed)
        self.out = Rerun()
        self.due: list[tuple[int, int, Pair]] = []  # labels in flight, by the slot they come
        self.given, self.money, self.spent = 0, 0.0, False

    def run(self, progress: Callable[[int, int], None] | None) -> Rerun:
        outside = self.recorded.outside
        for number, event in enumerate(outside):
            self._pass_to(event.slot)
            self._do(event)
            self.engine.drain()
            if progress is not None and number % 200 == 0:
                progress(number, len(outside))
        self._pass_to(self.recorded.slots)
        return self.out

    def _pass_to(self, slot: int) -> None:
        """Let time pass to a slot, with the labels that come until then."""
        while self.due and self.due[0][0] <= slot:
            self._advance(self.due[0][0])
            self._hear(heapq.heappop(self.due)[2])
        self._advance(slot)

    def _advance(self, slot: int) -> None:
        for exit in self.engine.advance(slot):
            self.out.exits[exit.item] = exit

    def _do(self, event: Event) -> None:
        match event:
            case Arrived():
                self.engine.arrive([self._offered(item) for item in event.items])
            case Assigned():
                self._visit(event.asked, event.ahead)
            case Joined() if event.labeler.id not in self.plan.without:
                self.engine.join(event.labeler)
            case Left() if event.labeler not in self.plan.without:
                self.engine.leave(event.labeler)
            case Withdrawn() if event.item in self.engine.state.registry.row:
                self.engine.withdraw(event.item)
            case GoldGiven() if self._knows(event.item):
                self.engine.gold(event.item, event.label)
            case Changed():
                self._change(event)
            case _:
                pass

    def _knows(self, item: ItemId) -> bool:
        """Whether the item has come, and was not withdrawn."""
        return item in self.out.exits or item in self.engine.state.registry.row

    def _offered(self, item: Item) -> Item:
        """The item, for those whose label of it the log holds; for anyone if labels are drawn."""
        without = self.plan.without
        if self.drawn is not None:
            return replace(item, excluded=item.excluded | without)
        held = frozenset(self.recorded.labelled_by.get(item.id, ())) - without
        return replace(item, eligible=held, excluded=frozenset())

    def _visit(self, asked: tuple[LabelerId, ...] | None, ahead: int) -> None:
        names = None
        if asked is not None:
            here = set(self.engine.seated)
            names = [name for name in asked if name in here]
        if self.spent or names == []:
            return
        work = self.engine.assign(names, ahead)
        self.out.visits += 1 if names is None else len(names)
        self.out.idle += (not work) if names is None else len(names) - len(work)
        for a in work:
            self._ask((a.item, a.labeler), a.slot)

    def _ask(self, pair: Pair, slot: int) -> None:
        """Ask for a label, which is paid for; it comes after the time that it took."""
        price = self.recorded.prices.get(pair[1], 0.0)
        if not self._affords(price):
            self.engine.release(*pair)
            return
        held = pair in self.recorded.said
        self.out.drawn += not held
        self.out.labels.setdefault(pair[0], []).append(pair[1])
        self.given += 1
        self.money += price
        wait = self.recorded.delay[pair] if held else self._drawn.delay(pair)
        if wait:
            heapq.heappush(self.due, (slot + wait, self.given, pair))
        else:
            self._hear(pair)

    @property
    def _drawn(self) -> Drawn:
        assert self.drawn is not None
        return self.drawn

    def _hear(self, pair: Pair) -> None:
        said = self.recorded.said.get(pair)
        said = self._drawn.label(pair) if said is None else said
        left = pair[0] in self.out.exits
        if left or pair[0] in self.engine.state.registry.row:  # else it was withdrawn
            self.engine.observe(Label(*pair, said))

    def _affords(self, price: float) -> bool:
        """Whether another label can be paid; after the first that cannot, nothing is bought."""
        budget = self.plan.budget
        if budget is None or self.spent:
            return not self.spent
        left = budget.left(self.money, self.given)
        short = left.money is not None and left.money + 1e-9 < price
        if short or left.labels == 0:
            self.spent = True
            self.engine.change(bounds=replace(self.engine.bounds, spent=True))
        return not self.spent

    def _change(self, event: Changed) -> None:
        """Settings as they were changed, but for those of the plan and a budget that was spent."""
        bounds = None
        if event.bounds is not None:
            bounds = replace(self.plan.bounds(event.bounds), spent=self.spent)
        policy = event.policy if self.plan.policy is None else None
        learning = event.learning if self.plan.learning is None else None
        budget = event.budget if self.plan.budget is None else None
        costs = None if event.costs is None else {(t, v): x for t, v, x in event.costs}
        self.engine.change(policy, learning, bounds, event.c, None, budget, costs=costs)


def _engine(recorded: Recorded, plan: Plan, seed: int) -> Scheduler:
    """A fresh scheduler as the stream began, but for the plan."""
    start = recorded.start
    joined = {e.labeler.id for e in recorded.outside if isinstance(e, Joined)}
    known = {who.id for who in start.panel} | joined
    for name in sorted(plan.without):
        if name not in known:
            raise UnknownName("labeler", name, known)
    panel = [who for who in start.panel if who.id not in plan.without]
    if not panel or not known - plan.without:
        raise InputError("nobody is left on the panel, expected somebody: leave out fewer labelers")
    policy = start.policy if plan.policy is None else policy_named(plan.policy, seed)
    learning = start.learning
    if plan.learning is not None:
        learning = learning_named(plan.learning, seed)
    bounds = replace(plan.bounds(start.bounds), spent=False)
    engine = Scheduler(
        panel,
        start.classes,
        policy,
        learning,
        start.c,
        bounds,
        budget=start.budget if plan.budget is None else None,
        costs=start.costs,
    )
    for who in panel:
        if who.id not in start.seated:
            engine.leave(who.id)
    return engine
