"""What the log of a stream holds: what came from outside, and what its scheduler made of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace

from venire.engine import Scheduler
from venire.errors import InputError
from venire.events import (
    Arrived,
    Assigned,
    Changed,
    Closed,
    Event,
    GoldGiven,
    Joined,
    Left,
    Observed,
    Withdrawn,
)
from venire.model import Exit, ItemId, LabelerId

__all__ = ["Pair", "Recorded"]

Pair = tuple[ItemId, LabelerId]


@dataclass(eq=False)
class Recorded:
    """A recorded stream.

    `start` is the scheduler before its first event. `outside` are the events that no scheduler
    decides: items, labelers who come and go, visits of labelers (the `asked` of `Assigned`),
    withdrawals, gold, changes of settings, and how far time went. `said` is the label of each pair
    that the log holds, `labelled_by` the labelers of each item, `delay` the slots from assignment
    to label, `exits` what happened to each item, and `prices` what a label of each labeler costs.

    >>> from venire import Item, Label, Labeler
    >>> panel = [Labeler("ann", 0.9), Labeler("bob", 0.8)]
    >>> start, s = (Scheduler(panel, ["spam", "ok"]) for _ in range(2))
    >>> s.arrive(Item("post-1", weight=8))
    >>> s.observe([Label(a.item, a.labeler, "ok") for a in s.assign()])
    >>> [exit.verdict.label for exit in s.close()]
    ['ok']
    >>> recorded = Recorded.of(start, s.log)
    >>> sorted(recorded.said.items()), recorded.slots
    ([(('post-1', 'ann'), 'ok'), (('post-1', 'bob'), 'ok')], 1)
    """

    start: Scheduler
    outside: list[Event] = field(default_factory=list)
    said: dict[Pair, Hashable] = field(default_factory=dict)
    delay: dict[Pair, int] = field(default_factory=dict)
    exits: dict[ItemId, Exit] = field(default_factory=dict)
    prices: dict[LabelerId, float] = field(default_factory=dict)
    labelled_by: dict[ItemId, list[LabelerId]] = field(default_factory=dict)
    items: list[ItemId] = field(default_factory=list)
    slots: int = 0

    @classmethod
    def of(
        cls, start: Scheduler, log: Iterable[Event], progress: Callable[[int], None] | None = None
    ) -> Recorded:
        """Read a log; `progress` is called with the number of events so far."""
        if start.slot or start.log or start.outstanding:
            raise InputError(
                f"got a scheduler in slot {start.slot} with {len(start.log)} events, expected it "
                "as it was before the first event of its log"
            )
        recorded, given = cls(start), dict[Pair, int]()
        recorded.prices = {who.id: who.price for who in start.panel}
        for number, event in enumerate(log):
            recorded._note(event, given)
            if progress is not None and number % 1000 == 999:
                progress(number + 1)
        return recorded

    def _note(self, event: Event, given: dict[Pair, int]) -> None:
        self.slots = max(self.slots, event.slot + 1)
        match event:
            case Assigned():
                given.update(((a.item, a.labeler), a.slot) for a in event.assignments)
                self.outside.append(replace(event, assignments=()))
            case Observed():
                pair = event.label.item, event.label.labeler
                if pair not in given:  # sent unasked: a visit of its own
                    self.outside.append(Assigned(event.slot, (), (pair[1],)))
                self.said[pair] = event.label.said
                self.delay[pair] = event.slot - given.get(pair, event.slot)
                self.labelled_by.setdefault(pair[0], []).append(pair[1])
            case Closed():
                self.exits.update((e.item, e) for e in event.exits)
                self.outside.append(Closed(event.slot, ()))
            case Arrived() | Joined() | Left() | Withdrawn() | Changed() | GoldGiven():
                self.outside.append(event)
                if isinstance(event, Joined):
                    self.prices[event.labeler.id] = event.labeler.price
                if isinstance(event, Arrived):
                    self.items += [item.id for item in event.items]
            case _:
                pass  # released: that label does not exist
