"""What the log of a stream holds: its events, and what was said, by whom, of which item."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from venire.engine import Scheduler
from venire.errors import InputError
from venire.events import Arrived, Assigned, Closed, Event, Joined, Observed, Released
from venire.labels import LabelTable
from venire.model import Exit, ItemId, LabelerId

__all__ = ["Asked", "Pair", "Recorded"]

Pair = tuple[ItemId, LabelerId]


class Asked(NamedTuple):
    """A labeler was asked for a label, and what came of it: the label, or that it will not come.

    `event` is the place of the assignment in the log, -1 if nobody asked; `answers` are the events
    that answer it, each with its place. A lease may end before the label comes, so there may be
    two; at the end of the log there may be none.
    """

    event: int
    slot: int
    answers: list[tuple[int, Observed | Released]]


@dataclass(eq=False)
class Recorded:
    """A recorded stream.

    `start` is the scheduler before its first event, `log` what happened. From the log: `asked` is
    how often each labeler was asked about each item, and what came of it; `said` the label of each
    pair that the log holds, `labelled_by` the labelers of each item, `exits` what happened to each
    item, and `prices` what a label of each labeler costs. `voices` are labelers who are models that
    learn from the verdicts: what they said hangs on what they were taught.

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
    log: list[Event] = field(default_factory=list)
    asked: dict[Pair, list[Asked]] = field(default_factory=dict)
    said: dict[Pair, Hashable] = field(default_factory=dict)
    exits: dict[ItemId, Exit] = field(default_factory=dict)
    prices: dict[LabelerId, float] = field(default_factory=dict)
    labelled_by: dict[ItemId, list[LabelerId]] = field(default_factory=dict)
    items: list[ItemId] = field(default_factory=list)
    slots: int = 0
    voices: frozenset[LabelerId] = frozenset()

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
        recorded = cls(start)
        recorded.prices = {who.id: who.price for who in start.panel}
        for number, event in enumerate(log):
            recorded._note(number, event)
            if progress is not None and number % 1000 == 999:
                progress(number + 1)
        return recorded

    def table(self) -> LabelTable:
        """All labels that the log holds."""
        rows = ((item, labeler, said) for (item, labeler), said in self.said.items())
        return LabelTable.from_rows(rows, self.start.classes)

    def _note(self, number: int, event: Event) -> None:
        self.log.append(event)
        self.slots = max(self.slots, event.slot + 1)
        match event:
            case Arrived():
                self.items += [item.id for item in event.items]
            case Assigned():
                for a in event.assignments:
                    asked = Asked(number, event.slot, [])
                    self.asked.setdefault((a.item, a.labeler), []).append(asked)
            case Observed():
                pair = event.label.item, event.label.labeler
                self._answer(pair, number, event)
                self.said[pair] = event.label.said
                self.labelled_by.setdefault(pair[0], []).append(pair[1])
            case Released():
                self._answer((event.item, event.labeler), number, event)
            case Closed():
                self.exits.update((e.item, e) for e in event.exits)
            case Joined():
                self.prices[event.labeler.id] = event.labeler.price
            case _:
                pass

    def _answer(self, pair: Pair, number: int, event: Observed | Released) -> None:
        asked = self.asked.setdefault(pair, [])
        if not asked:
            asked.append(Asked(-1, event.slot, []))
        asked[-1].answers.append((number, event))
