"""The statistics of a stream: rates, the latest exits, and what came and went in each minute."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from venire.model import Exit, ExitReason, Verdict
from venire.server.store import Exited

#: The minutes that are kept.
MINUTES: Final = 60


class History:
    """Arrivals, exits and withdrawals by minute; the queue of earlier follows from that of now.

    >>> history = History()
    >>> history.came(30.0, 3)
    >>> history.went(70.0, verdict=True)
    >>> history.exits(130.0)[-3:], history.queue(2, 130.0)[-3:]
    ([0, 1, 0], [3, 2, 2])
    """

    def __init__(self) -> None:
        self._came: Counter[int] = Counter()
        self._left: Counter[int] = Counter()
        self._withdrawn: Counter[int] = Counter()

    def came(self, now: float, count: int = 1) -> None:
        self._count(self._came, now, count)

    def went(self, now: float, verdict: bool) -> None:
        """An item left with its verdict, or was withdrawn."""
        self._count(self._left if verdict else self._withdrawn, now, 1)

    def exits(self, now: float) -> list[int]:
        """Exits in each minute, that of now at the end."""
        return [self._left[minute] for minute in _minutes(now)]

    def queue(self, open_now: int, now: float) -> list[int]:
        """Open items at the end of each minute, those of now at the end."""
        found = [open_now]
        for minute in reversed(_minutes(now)[1:]):
            found.append(found[-1] - self._came[minute] + self._left[minute])
            found[-1] = max(0, found[-1] + self._withdrawn[minute])
        return found[::-1]

    def _count(self, counts: Counter[int], now: float, count: int) -> None:
        minute = int(now // 60)
        if minute not in counts:
            for old in [old for old in counts if old <= minute - MINUTES]:
                del counts[old]
        counts[minute] += count


def _minutes(now: float) -> range:
    end = int(now // 60) + 1
    return range(end - MINUTES, end)


#: How many of the latest exits to keep.
KEPT_EXITS: Final = 1000

#: The window of rates, in seconds.
WINDOW: Final = 60.0


class Rate:
    """A rate per minute, over the last minute.

    >>> rate = Rate()
    >>> rate.add(0.5, 3)
    >>> rate.add(30.0, 1)
    >>> rate.per_minute(59.0), rate.per_minute(61.0), rate.per_minute(1000.0)
    (4.0, 1.0, 0.0)
    """

    def __init__(self) -> None:
        self._bins: deque[tuple[int, int]] = deque()

    def add(self, now: float, count: int = 1) -> None:
        second = int(now)
        if self._bins and self._bins[-1][0] == second:
            count += self._bins.pop()[1]
        self._bins.append((second, count))

    def per_minute(self, now: float) -> float:
        """The count over the last minute."""
        while self._bins and self._bins[0][0] < now - WINDOW:
            self._bins.popleft()
        return sum(count for _, count in self._bins) * 60.0 / WINDOW


class Summary(NamedTuple):
    """What the latest exits amount to; see `Insights`.

    `agreement` is the share of labels that agree with the verdict, of items with two or more;
    `confidence` that of verdicts, which items without a label do not have.
    """

    verdicts: dict[str, int]
    reasons: dict[str, int]
    agreement: float | None
    confidence: float | None
    accuracy: tuple[float | None, float | None]
    single_label_share: float | None
    labels_per_item: float | None
    response_median: float | None
    response_p90: float | None


@dataclass
class Statistics:
    """Counts since the stream began, and its latest exits."""

    labels: int = 0
    late: int = 0
    left: int = 0
    withdrawn: int = 0
    slots_skipped: int = 0
    recent: deque[tuple[Exit, float, float]] = field(
        default_factory=lambda: deque(maxlen=KEPT_EXITS)
    )
    exits_rate: Rate = field(default_factory=Rate)
    labels_rate: Rate = field(default_factory=Rate)
    history: History = field(default_factory=History)
    _summary: Summary | None = None

    def add_exit(self, exit: Exit, seconds: float, agreement: float, now: float) -> None:
        """Record an exit, its seconds since arrival, and the share of labels that agreed."""
        self.left += 1
        self.exits_rate.add(now)
        self.recent.append((exit, seconds, agreement))
        self._summary = None

    def load_exits(self, rows: list[Exited]) -> None:
        """Load the exits from before this server started, latest first."""
        self._summary = None
        for row in reversed(rows):
            verdict = Verdict(row.verdict, row.confidence)
            exit = Exit(
                row.item,
                row.arrived_slot,
                row.exit_slot,
                row.labels,
                verdict,
                ExitReason(row.reason),
            )
            seconds = max(0.0, row.left_at - row.arrived_at)
            self.recent.append((exit, seconds, row.agreed / row.said if row.said else 0.0))

    def load_history(
        self, rows: Iterable[Exited], arrivals: Iterable[float], offset: float
    ) -> None:
        """Load what came and went before this server started, as far as the exits go back.

        `offset` is how far the clock of the store is ahead of that of this server.
        """
        for row in rows:
            self.history.came(row.arrived_at - offset)
            self.history.went(row.left_at - offset, verdict=True)
        for at in arrivals:
            self.history.came(at - offset)

    def count_labels(self, late: int, labels: int, now: float) -> None:
        """Count labels, `late` of which were late."""
        self.labels += labels
        self.late += late
        self.labels_rate.add(now, labels)

    def summary(self) -> Summary:
        """What the latest exits amount to; computed once for each exit, however often it is read.

        >>> statistics = Statistics()
        >>> statistics.add_exit(Exit("a", 0, 1, 1, Verdict("ok", 0.8), "no_gain"), 5.0, 1.0, 0.0)
        >>> statistics.summary().confidence, statistics.summary() is statistics.summary()
        (0.8, True)
        """
        if self._summary is None:
            exits = [exit for exit, *_ in self.recent]
            verdicts = [exit.verdict for exit in exits if exit.verdict.label is not None]
            confidences = [verdict.confidence for verdict in verdicts]
            seconds = [seconds for _, seconds, _ in self.recent]
            self._summary = Summary(
                verdicts=dict(sorted(Counter(str(one.label) for one in verdicts).items())),
                reasons=dict(sorted(Counter(exit.reason for exit in exits).items())),
                agreement=mean([agreed for exit, _, agreed in self.recent if exit.labels >= 2]),
                confidence=mean(confidences),
                accuracy=accuracy_interval(confidences),
                single_label_share=mean([float(exit.labels == 1) for exit in exits]),
                labels_per_item=mean([float(exit.labels) for exit in exits]),
                response_median=quantile(seconds, 0.5),
                response_p90=quantile(seconds, 0.9),
            )
        return self._summary


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def accuracy_interval(confidences: Sequence[float]) -> tuple[float | None, float | None]:
    """Where the accuracy of that many verdicts lies, 19 times in 20, if the confidences are right.

    >>> accuracy_interval([0.8] * 100)
    (0.7216, 0.8784)
    """
    if not confidences:
        return None, None
    middle = sum(confidences) / len(confidences)
    spread = 1.96 * math.sqrt(sum(p * (1 - p) for p in confidences)) / len(confidences)
    return round(max(0.0, middle - spread), 4), round(min(1.0, middle + spread), 4)


def quantile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least this share of the values do not exceed; None if empty.

    >>> quantile([4, 1, 3, 2], 0.5), quantile(range(1, 11), 0.9), quantile([], 0.5)
    (2, 9, None)
    """
    ranked = sorted(values)
    if not ranked:
        return None
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]
