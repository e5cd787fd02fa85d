"""A student's seat on the panel of a `Scheduler`.

    seat = Student().join(scheduler, contents)
    ... scheduler.arrive(items)
    seat.label()                      # says what it thinks of the items that are open
    ... scheduler.assign(), observe(labels), scheduler.close()
    seat.learn()                      # learns when there are enough new verdicts

The scheduler needs no knowledge of it: its voices are labelers of price 0 who hand in labels for
every open item without being asked. They are away, so that nobody waits for them: an item has one
voice of a student, and would else wait for the others. It reads what the others said from the
scheduler's log, and is taught only items that have left; those that it labels are open. So what it
says of an item was never learned from that item.

**A student in a batch: taught again whenever there are a quarter more labels.**

The batch buys labels of the others only, so what the student is taught is free of its votes. Of an
item that it was taught it says what a model says that was not taught that item. Its answers are
not bought and not kept: each time it has learned more, what it says replaces what it said before.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from venire.events import Closed, GoldGiven, Observed, Withdrawn
from venire.labels import LabelTable
from venire.model import Label
from venire.student.student import MOST, UNTAUGHT, Taught, lessons, with_voices
from venire.tools.arrays import Ints

if TYPE_CHECKING:
    from venire.engine import Scheduler
    from venire.student.student import Student


#: It is taught again once the labels have grown by this factor since the last time.
MORE: Final = 1.25


class StudentInBatch:
    """The seat of a student in a batch; `venire.batch.rounds` calls it."""

    def __init__(self, student: Student, contents: Sequence[Any]) -> None:
        self.student = student
        self.seen = student.look(contents)
        self.taught: Taught | None = None
        self.version = 0
        self._labels = 0
        self._said: tuple[Ints, Ints, Ints] | None = None  # items, bins, classes

    def join(self, table: LabelTable, now: bool = False) -> LabelTable:
        """The table with what the student says, as soon as it has learned anything.

        `table` holds the labels of the others. With `now` it learns from all of them.
        """
        due = table.labeler.size if now else int(table.labeler.size / MORE)
        if self._labels == 0 or (self._labels < due if now else self._labels <= due):
            self._learn(table)
        return table if self._said is None else with_voices(table, self.student, *self._said)

    def _learn(self, table: LabelTable) -> None:
        self._labels = table.labeler.size
        learned = self.student.learn(self.seen, lessons(table), self.version + 1)
        self._said = None
        if learned is None:
            return
        self.taught, self.version = learned, learned.version
        if learned.ready:
            shares = learned.held_out.copy()
            rest = np.flatnonzero(self.seen.usable & (shares.sum(axis=1) == 0))
            if rest.size:
                shares[rest] = learned.model.shares(self.seen.rows[rest])
            places = np.flatnonzero(self.seen.usable)
            self._said = (places, *learned.answers(shares[places]))

    def record(self) -> dict[str, Any]:
        learned = self.taught.record() if self.taught else UNTAUGHT
        return {"id": self.student.id, **learned}


#: It learns again after this share of new verdicts, and never from fewer new ones than LEAST.
GROWTH: Final = 0.25
LEAST: Final = 50


def is_due(verdicts: int, taught: int) -> bool:
    """Whether there are enough verdicts since those that it was taught.

    >>> is_due(49, 0), is_due(50, 0), is_due(240, 200), is_due(250, 200)
    (False, True, False, True)
    """
    return verdicts - taught >= max(LEAST, GROWTH * min(taught, MOST))


def teach(
    student: Student,
    said: Mapping[Any, Mapping[str, Hashable]],
    contents: Mapping[Any, Any],
    classes: tuple[Hashable, ...],
    gold: Mapping[Any, Hashable],
    version: int,
) -> Taught | None:
    """What the student learns from the labels of items, by item and labeler; None if nothing."""
    items = [item for item, labels in said.items() if labels or item in gold]
    rows = [(item, who, what) for item in items for who, what in said[item].items()]
    if not rows:
        return None
    table = LabelTable.from_rows(rows, classes)
    known = {item: gold[item] for item in items if item in gold}
    taught = lessons(table, frozenset(student.voices), known)
    return student.learn(student.look([contents.get(i) for i in table.items]), taught, version)


class Seat:
    """The seat of a student on the panel of a scheduler; see `venire.student.seat`.

    Parameters
    ----------
    student, scheduler
        Who sits where.
    contents
        What the items are, by id.
    background
        Learn in a thread, and use what was learned from the next `learn` on after it ended.

    Attributes
    ----------
    taught : Taught or None
        What it learned last.
    """

    def __init__(
        self,
        student: Student,
        scheduler: Scheduler,
        contents: Mapping[str, Any],
        background: bool = False,
    ) -> None:
        self.student, self.scheduler, self.contents = student, scheduler, contents
        self.taught: Taught | None = None
        self.version = self._verdicts = self._used = 0
        self._read = scheduler.state.events - len(scheduler.log)
        self._said: dict[Any, dict[str, Hashable]] = {}  # of all items, by the others
        self._left: dict[Any, None] = {}
        self._gold: dict[Any, Hashable] = {}
        self._labelled: set[Any] = set()  # open items that it has labelled
        self._counts = {True: [0, 0, 0.0], False: [0, 0, 0.0]}  # items, labels, confidence
        self._pool = ThreadPoolExecutor(1, "venire-student") if background else None
        self._coming: Future[Taught | None] | None = None

    def label(self) -> int:
        """Label the open items that it has not labelled; how many that were."""
        if self.taught is None or not self.taught.ready:
            return 0
        new = [item for item in self.scheduler.outstanding if item not in self._labelled]
        if not new:
            return 0
        self._labelled.update(new)
        seen = self.student.look([self.contents.get(item) for item in new], self.taught)
        places = np.flatnonzero(seen.usable)
        if not places.size:
            return 0
        bins, said = self.taught.answers(self.taught.model.shares(seen.rows[places]))
        voices, classes = self.student.voices, self.scheduler.classes
        rows = zip(places.tolist(), bins.tolist(), said.tolist(), strict=True)
        labels = [Label(new[i], voices[b], classes[k]) for i, b, k in rows]
        allowed = [label for label in labels if self._may(label)]
        self.scheduler.observe(allowed)
        return len(allowed)

    def _may(self, label: Label) -> bool:
        item = self.scheduler.item(label.item)
        only = item.eligible
        return label.labeler not in item.excluded and (only is None or label.labeler in only)

    def learn(self) -> bool:
        """Read the log, and learn if there are enough new verdicts; whether it knows more now."""
        self._catch_up()
        if self._coming is not None:
            return self._take() if self._coming.done() else False
        if not is_due(self._verdicts, self._used):
            return False
        self._used = self._verdicts
        said = {item: dict(self._said[item]) for item in self._left}
        given = self.contents, self.scheduler.classes, dict(self._gold), self.version + 1
        if self._pool is not None:
            self._coming = self._pool.submit(teach, self.student, said, *given)
            return False
        return self._use(teach(self.student, said, *given))

    def _take(self) -> bool:
        assert self._coming is not None
        found, self._coming = self._coming.result(), None
        return self._use(found)

    def _use(self, found: Taught | None) -> bool:
        if found is None:
            return False
        self.taught, self.version = found, found.version
        if found.ready:
            self.student.take_seats(self.scheduler, found)
        return True

    def _catch_up(self) -> None:
        """Read what happened since the last time from the scheduler's log."""
        log, total = self.scheduler.log, self.scheduler.state.events
        fresh = log[max(0, self._read - (total - len(log))) :]
        self._read = total
        voices = frozenset(self.student.voices)
        for event in fresh:
            if isinstance(event, Observed) and event.label.labeler not in voices:
                self._said.setdefault(event.label.item, {})[event.label.labeler] = event.label.said
            elif isinstance(event, GoldGiven):
                self._gold[event.item] = event.label
            elif isinstance(event, Withdrawn):
                self._forget(event.item)
            elif isinstance(event, Closed):
                for exit in event.exits:
                    self._leave(exit.item, exit.verdict.confidence)

    def _leave(self, item: Any, confidence: float) -> None:
        others = self._said.setdefault(item, {})
        counts = self._counts[item in self._labelled]
        for place, more in enumerate((1, len(others), confidence)):
            counts[place] += more
        self._labelled.discard(item)
        if not others and item not in self._gold:
            self._forget(item)
            return
        self._left[item] = None
        self._verdicts += 1
        if len(self._left) > MOST:
            self._forget(next(iter(self._left)))

    def _forget(self, item: Any) -> None:
        self._said.pop(item, None)
        self._left.pop(item, None)
        self._gold.pop(item, None)
        self._labelled.discard(item)

    def record(self) -> dict[str, Any]:
        """Version, verdicts it was taught, agreement, and the labels of the others, an item.

        `without` are the items that left without its vote, `with` those that left with it.
        """
        learned = self.taught.record() if self.taught else UNTAUGHT
        return {
            "id": self.student.id,
            **learned,
            "without": _means(*self._counts[False]),
            "with": _means(*self._counts[True]),
        }

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _means(items: float, labels: float, confidence: float) -> dict[str, float | None]:
    return {
        "items": items,
        "labels_per_item": labels / items if items else None,
        "confidence": confidence / items if items else None,
    }
