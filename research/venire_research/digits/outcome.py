"""What came of a stream, image by image, whoever scheduled it, and what is counted of it.

answered        share of the images that left with a verdict before the end; a learning
                phase passes some over, and others may still wait when the stream ends
right           share of right verdicts: among the answered, and among all that arrived
labels, money   labels bought for each image that arrived, and what they cost
response        slots from arrival to the exit, among all; who still waits at the end counts
                up to then, so it is a lower bound for a queue that grows
true utility    the weight if the verdict is right, else 0, less response and money; per image
waiting         images still outstanding when the stream ends
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.events import Assigned, Closed, Event
from venire.scheduling.kernel.desk import HORIZON
from venire.simulation import Run
from venire_research.digits.panel import DigitJob

__all__ = ["Outcome", "Score"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Score:
    """What a method achieved on one stream; see the head of this module."""

    answered: float
    right_of_answered: float
    right_of_all: float
    labels_per_item: float
    money_per_item: float
    response: float
    true_utility: float
    waiting: int

    @classmethod
    def measures(cls) -> tuple[str, ...]:
        """The names of what is measured."""
        return tuple(f.name for f in fields(cls))


@dataclass(frozen=True, eq=False)
class Outcome:
    """An entry for each image that arrived, in this order; `verdict` is -1 where there is none.

    `exit` is the last slot of the stream for those that are still waiting.
    """

    slots: int
    weight: Floats
    truth: Ints
    arrival: Ints
    exit: Ints
    waiting: NDArray[np.bool_]
    verdict: Ints
    labels: Ints
    money: Floats

    @classmethod
    def of_run(cls, run: Run) -> Outcome:
        """What came of a simulated run."""
        rows = run.rows
        waiting = rows["reason"] == HORIZON
        return cls(
            slots=run.slots,
            weight=rows["weight"],
            truth=run.items.truth.astype(np.int64),
            arrival=rows["arrival"],
            exit=rows["exit"],
            waiting=waiting,
            verdict=np.where((rows["labels"] > 0) & ~waiting, rows["verdict"], -1),
            labels=rows["labels"],
            money=run.ledger.money,
        )

    @classmethod
    def of_log(cls, job: DigitJob, seed: int, slots: int, log: Iterable[Event]) -> Outcome:
        """What came of a stream that a `Scheduler` handled, out of its log."""
        items = job.world(seed).items(slots)
        price = dict(zip(job.labelers, job.prices, strict=True))
        row = {items.name(i): i for i in range(len(items))}
        arrival = np.repeat(np.arange(slots), np.diff(items.first(slots)))
        exit, verdict = np.full(len(items), slots - 1), np.full(len(items), -1)
        labels, money = np.zeros(len(items), np.int64), np.zeros(len(items))
        waiting = np.ones(len(items), np.bool_)
        for event in log:
            if isinstance(event, Assigned):
                for a in event.assignments:
                    labels[row[a.item]] += 1
                    money[row[a.item]] += price[a.labeler]
            elif isinstance(event, Closed):
                for left in event.exits:
                    i = row[left.item]
                    said = left.verdict.label
                    exit[i], waiting[i] = left.slot, False
                    verdict[i] = -1 if said is None else said
        truth = items.truth.astype(np.int64)
        return cls(slots, items.weight, truth, arrival, exit, waiting, verdict, labels, money)

    def revised(self, job: DigitJob, seed: int, log: Iterable[Event]) -> Outcome:
        """The same with the verdicts that the scheduler has come to by the end of its log."""
        items = job.world(seed).items(self.slots)
        row = {items.name(i): i for i in range(len(items))}
        verdict = self.verdict.copy()
        for event in log:
            for one in event.revisions if isinstance(event, Closed) else ():
                said: Any = one.verdict.label  # a digit
                verdict[row[one.item]] = -1 if said is None else said
        return self.decided_by(verdict)

    def decided_by(self, verdict: Ints) -> Outcome:
        """The same with other verdicts for those that had one."""
        return replace(self, verdict=np.where(self.verdict >= 0, verdict, -1))

    @property
    def queue(self) -> Ints:
        """How many images are outstanding at the end of each slot."""
        gone = np.where(self.waiting, self.slots, self.exit)
        change = np.bincount(self.arrival, minlength=self.slots + 1)
        change -= np.bincount(gone, minlength=self.slots + 1)
        return np.cumsum(change[: self.slots])

    @property
    def score(self) -> Score:
        """What is counted."""
        answered = self.verdict >= 0
        right = answered & (self.verdict == self.truth)
        response = self.exit - self.arrival
        earned = np.where(right, self.weight, 0.0) - response - self.money
        return Score(
            answered=_mean(answered),
            right_of_answered=_mean(right[answered]),
            right_of_all=_mean(right),
            labels_per_item=_mean(self.labels),
            money_per_item=_mean(self.money),
            response=_mean(response),
            true_utility=_mean(earned),
            waiting=int(self.waiting.sum()),
        )


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else 0.0
