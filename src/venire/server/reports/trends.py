"""What the latest exits of a stream say: mixes, trends, and estimated accuracy.

Verdicts are set against votes. A stream may look well by every mean and yet lose a rare class: if
most items leave after one label, and the class is so rare that one label cannot convince anybody,
then whoever says it is overruled. So for each class it is counted how many items most of their
labels put into it, and how many of those left as it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from venire.server.admin_messages import Mix, Period, TrendsView
from venire.server.store import Exited, LabelRow, Storage
from venire.server.stream.slot_clock import quantile
from venire.server.stream.statistics import accuracy_interval, mean

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.stream.live_stream import LiveStream

#: How many of the latest exits to look at, and into how many periods to cut them.
EXITS: Final = 2000
PERIODS: Final = 24

#: Items in a period, at least.
LEAST: Final = 5

#: Seconds to keep trends for.
CACHE_SECONDS: Final = 5.0

#: The labels of each item.
Given = dict[str, list[LabelRow]]


class Known(NamedTuple):
    """What is known of the labelers: what a label costs, and who is the student."""

    prices: Mapping[str, float] = MappingProxyType({})
    voices: frozenset[str] = frozenset()


class Trends:
    """The trends of each stream, computed when something left, at most every few seconds."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._kept: dict[str, tuple[float, int, TrendsView]] = {}

    async def of(self, live: LiveStream, age: float = CACHE_SECONDS) -> TrendsView:
        """The trends of a stream, at most `age` seconds old."""
        runtime, name, exits = self._runtime, live.name, live.exit_n
        now = runtime.clock.monotonic()
        at, count, view = self._kept.get(name, (-math.inf, -1, None))
        if view is not None and (count == exits or now - at < age):
            return view
        known = Known({m: who.price for m, who in live.labelers.items()}, live.settings.voices)
        view = await runtime.read_committed(trends_of, runtime.storage, name, known)
        self._kept[name] = now, exits, view
        return view

    def forget(self, stream: str) -> None:
        """Drop the trends of a deleted stream."""
        self._kept.pop(stream, None)


def trends_of(storage: Storage, stream: str, known: Known) -> TrendsView:
    """The trends of a stream, from the store."""
    exits = storage.recent_exits(stream, EXITS)[::-1]
    labels = storage.labels_among(stream, [exit.item for exit in exits])
    ends = [part[-1].left_at for part in _parts(exits)]
    arrivals = storage.arrivals(stream, [exits[0].left_at, *ends]) if exits else []
    return trends_over(stream, exits, labels, arrivals, known)


def trends_over(
    stream: str,
    exits: Sequence[Exited],
    labels: Sequence[LabelRow],
    arrivals: Sequence[int] = (),
    known: Known | None = None,
) -> TrendsView:
    """The trends over exits, the earliest first, and their labels.

    >>> how = [0, 0.0, 1, 9.0, "ok", 0.9, 1, "no_gain", 1, 1]
    >>> exits = [Exited.load([str(k), *how]) for k in range(4)]
    >>> label = LabelRow.load(["s", "0", "ann", "spam", 1.0, 0, False, None, "lease"])
    >>> found = trends_over("s", exits, [label])
    >>> found.single_label_share, found.mix["spam"]
    (1.0, Mix(verdicts=0.0, votes=1.0, called=1, kept=0))
    """
    verdicts = [exit.verdict for exit in exits if exit.verdict is not None]
    confidences = _confidences(exits)
    low, high = accuracy_interval(confidences)
    given = _given(exits, labels)
    parts = _parts(exits)
    came = zip(parts, arrivals or [0] * len(parts), strict=True)
    return TrendsView(
        stream=stream,
        exits=len(exits),
        accuracy=mean(confidences),
        accuracy_low=low,
        accuracy_high=high,
        single_label_share=mean([float(exit.labels == 1) for exit in exits]),
        mix_shift=_shift(verdicts),
        mix=_mixes(exits, given),
        reasons=dict(Counter(exit.reason for exit in exits).most_common()),
        periods=tuple(_period(part, given, n, known or Known()) for part, n in came),
    )


def _confidences(exits: Sequence[Exited]) -> list[float]:
    """How sure the verdicts are; an item that left without a label has none."""
    return [exit.confidence for exit in exits if exit.verdict is not None]


def _given(exits: Sequence[Exited], labels: Sequence[LabelRow]) -> Given:
    """The labels of each item that came before it left."""
    given: Given = {exit.item: [] for exit in exits}
    for label in labels:
        if not label.late and label.item in given:
            given[label.item].append(label)
    return given


def _votes(exits: Sequence[Exited], given: Given) -> dict[str, float]:
    """The share of each class in the votes, where those of an item count one together."""
    shares, voted = defaultdict[str, float](float), 0
    for exit in exits:
        said = given[exit.item]
        voted += bool(said)
        for label in said:
            shares[label.said] += 1 / len(said)
    return {name: share / voted for name, share in shares.items()}


def _mixes(exits: Sequence[Exited], given: Given) -> dict[str, Mix]:
    """Verdicts against votes, by class, the most frequent verdict first."""
    verdicts = Counter(exit.verdict for exit in exits if exit.verdict is not None)
    votes, called, kept = _votes(exits, given), Counter[str](), Counter[str]()
    for exit in exits:
        leader = _leader(Counter(label.said for label in given[exit.item]))
        if leader is not None:
            called[leader] += 1
            kept[leader] += exit.verdict == leader
    total = max(verdicts.total(), 1)
    names = sorted({*verdicts, *votes}, key=lambda name: (-verdicts[name], name))
    return {
        name: Mix(verdicts[name] / total, votes.get(name, 0.0), called[name], kept[name])
        for name in names
    }


def _leader(said: Counter[str]) -> str | None:
    """The class that was said most often, if there is one."""
    first = said.most_common(2)
    if not first or (len(first) == 2 and first[0][1] == first[1][1]):
        return None
    return first[0][0]


def _shift(verdicts: Sequence[str]) -> float:
    """The distance of two mixes, that of the last quarter and that before, beyond chance.

    Total variation, less what two samples of one mix differ by on average.

    >>> _shift(["a", "b"] * 300), _shift(["a"] * 300 + ["b"] * 100) > 0.9
    (0.0, True)
    """
    cut = len(verdicts) * 3 // 4
    before, after = Counter(verdicts[:cut]), Counter(verdicts[cut:])
    if not before or not after:
        return 0.0
    n, m = before.total(), after.total()
    distance = chance = 0.0
    for name in {*before, *after}:
        p = (before[name] + after[name]) / (n + m)
        distance += abs(before[name] / n - after[name] / m) / 2
        chance += math.sqrt(2 / math.pi * p * (1 - p) * (1 / n + 1 / m)) / 2
    return max(0.0, distance - chance)


def _parts(exits: Sequence[Exited]) -> list[Sequence[Exited]]:
    """Exits in periods of as many each, the earliest first."""
    size = max(LEAST, math.ceil(len(exits) / PERIODS))
    return [exits[k : k + size] for k in range(0, len(exits), size)]


def _period(exits: Sequence[Exited], given: Given, arrivals: int, known: Known) -> Period:
    seconds = [max(0.0, exit.left_at - exit.arrived_at) for exit in exits]
    verdicts = Counter(exit.verdict for exit in exits if exit.verdict is not None)
    return Period(
        since=exits[0].left_at,
        until=exits[-1].left_at,
        exits=len(exits),
        seconds_p50=quantile(seconds, 0.5) or 0.0,
        seconds_p95=quantile(seconds, 0.95) or 0.0,
        labels_per_item=mean([float(exit.labels) for exit in exits]) or 0.0,
        confidence=mean(_confidences(exits)) or 0.0,
        single_label_share=mean([float(exit.labels == 1) for exit in exits]) or 0.0,
        verdicts={name: number / verdicts.total() for name, number in verdicts.items()},
        arrivals=arrivals,
        votes=_votes(exits, given),
        money=sum(known.prices.get(x.labeler, 0.0) for exit in exits for x in given[exit.item]),
        student_share=mean([_taught(given[exit.item], known.voices) for exit in exits]) or 0.0,
    )


def _taught(labels: Sequence[LabelRow], voices: Set[str]) -> float:
    """Whether all labels are the student's."""
    return float(bool(labels) and all(label.labeler in voices for label in labels))
