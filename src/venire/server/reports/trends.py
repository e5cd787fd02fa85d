"""How well a stream does: trends of its latest exits, rates by its audits, and its guarantee.

Verdicts are set against votes. A stream may look well by every mean and yet lose a rare class: if
most items leave after one label, and the class is so rare that one label cannot convince anybody,
then whoever says it is overruled. So for each class it is counted how many items most of their
labels put into it, and how many of those left as it.

The rates of each class, how often it comes, how right and how complete its verdicts are, rest on
audits, which are drawn at random with known probabilities, each of which counts for one over its
own (`venire.audits.rates`); verdicts of the others narrow the intervals. Whatever else has gold,
because somebody chose it, reviewed a doubtful verdict or was asked, does not count.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from venire.audits.rates import Rate, precision_of, recall_of, share_of
from venire.model import ItemStatus
from venire.server.admin_messages import (
    ClassRates,
    GuaranteeView,
    IntervalView,
    Mix,
    Period,
    RatesView,
    RateView,
    ThresholdView,
    TrendsView,
)
from venire.server.messages import view
from venire.server.reports.event_json import exit_view
from venire.server.store import Exited, GoldRow, ItemRow, LabelRow, Storage
from venire.server.store.maintenance.guaranteed import Guaranteed, Tested, counted_in, judged_of
from venire.server.stream.statistics import accuracy_interval, mean, quantile

if TYPE_CHECKING:
    from venire.server.messages import ExitView
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import SettingsRow
    from venire.server.stream.checks import Checks
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


#: How many of the latest exits are looked at for rates, and the most classes.
RATED: Final = 50_000
CLASSES: Final = 20


class Audited(NamedTuple):
    """Verdicts as items left with them, and what audits say of those that were drawn.

    `drawn` are in order, with the probability of each. `gold` has only what was answered; those of
    the drawn ones before the last answer that are not in it were passed over.
    """

    verdicts: dict[str, str]
    confidences: dict[str, float]
    drawn: dict[str, float]
    gold: dict[str, str]
    passed_over: tuple[str, ...]


def audited_of(storage: Storage, stream: str, shares: dict[str, float], last: int) -> Audited:
    """The latest verdicts, up to number `last`, that could have been drawn, and their audits.

    `shares` are the probabilities of those that were drawn, in order.
    """
    on = _times(storage, stream)
    verdicts: dict[str, str] = {}
    confidences: dict[str, float] = {}
    rows = [
        row
        for row in storage.exits(stream, max(0, last - RATED))
        if row.status == ItemStatus.LEFT and row.verdict is not None and row.exit_n is not None
        and row.exit_n <= last and _was_on(on, row)
    ]  # fmt: skip
    gold = {row.item: row for row in storage.gold_among(stream, [row.id for row in rows])}
    for row in rows:
        if row.id not in gold or not _before(gold[row.id], row):
            verdicts[row.id], confidences[row.id] = str(row.verdict), row.confidence or 0.0
    drawn = {item: share for item, share in shares.items() if item in verdicts}
    answered = {item: gold[item].label for item in drawn if item in gold}
    places = [n for n, item in enumerate(drawn) if item in answered]
    upto = list(drawn)[: places[-1] + 1] if places else []
    passed = tuple(item for item in upto if item not in answered)
    return Audited(verdicts, confidences, drawn, answered, passed)


def _times(storage: Storage, stream: str) -> list[tuple[float, bool]]:
    """From when on verdicts were drawn, and from when on not."""
    found = []
    for row in storage.settings(stream):
        fields = json.loads(row.body)["settings"]
        found.append((row.at, bool(fields.get("audit_share") or fields.get("audit_at_least"))))
    return found


def _was_on(times: list[tuple[float, bool]], row: ItemRow) -> bool:
    if row.left_at is None:
        return False
    place = bisect_right(times, row.left_at, key=lambda one: one[0])
    return place > 0 and times[place - 1][1]


def _before(gold: GoldRow, row: ItemRow) -> bool:
    """Whether the class was known before the item left: then its verdict is no labeler's."""
    first: float = json.loads(gold.earlier)[0][1] if gold.earlier else gold.at
    return row.left_at is not None and first < row.left_at


def rates_over(
    stream: str, classes: tuple[str, ...], found: Audited, level: float, due: int
) -> RatesView:
    """Share, precision and recall of each class, with their intervals.

    >>> verdicts = {str(k): "spam" if k % 4 == 0 else "ok" for k in range(400)}
    >>> drawn = {str(k): 0.25 for k in range(0, 400, 3)}
    >>> gold = {item: verdicts[item] for item in drawn}
    >>> audited = Audited(verdicts, dict.fromkeys(verdicts, 0.9), drawn, gold, ())
    >>> view = rates_over("posts", ("spam", "ok"), audited, 0.95, 0)
    >>> spam = view.classes["spam"]
    >>> spam.share.estimate, spam.precision.estimate, spam.recall.estimate, spam.share.gold
    (0.25, 1.0, 1.0, 134)
    """
    named = classes[:CLASSES] if found.gold else ()
    return RatesView(
        stream=stream,
        level=level,
        items=len(found.verdicts),
        drawn=len(found.drawn),
        gold=len(found.gold),
        passed_over=len(found.passed_over),
        due=due,
        classes={name: _class_rates(found, name, len(classes), level) for name in named},
    )


def _class_rates(found: Audited, of: str, classes: int, level: float) -> ClassRates:
    said, sure, passed_over = found.verdicts, found.confidences, found.passed_over
    scores = {x: p if said[x] == of else (1 - p) / (classes - 1) for x, p in sure.items()}
    other = ""  # no class has this name
    missed = {item: other if said[item] == of else of for item in passed_over}
    hits = {item: of if said[item] == of else other for item in passed_over}
    none, all_of = dict.fromkeys(passed_over, other), dict.fromkeys(passed_over, of)

    def made(rate: Any, more: Mapping[str, str]) -> dict[str, Any]:
        gold = found.gold | dict(more)
        chances = {item: found.drawn[item] for item in gold}
        even = len(set(chances.values())) < 2
        made: Rate = rate(said, gold, of, scores, None if even else chances, level)
        return made.record()

    def worst(rate: Any, low: Mapping[str, str], high: Mapping[str, str]) -> RateView:
        """A rate; each end as if those that were passed over spoke against it."""
        best = made(rate, {})
        least, most = (made(rate, low), made(rate, high)) if passed_over else (best, best)
        only = best["gold_only"]["estimate"], least["gold_only"]["low"], most["gold_only"]["high"]
        return RateView(
            best["estimate"],
            least["low"],
            most["high"],
            level,
            IntervalView(*only),
            best["worth"],
            best["gold"],
            best["items"],
        )

    return ClassRates(
        worst(share_of, none, all_of),
        worst(precision_of, missed, hits),
        worst(recall_of, missed, hits),
    )


async def guarantee_of(runtime: Runtime, live: LiveStream) -> Guaranteed | None:
    """What is guaranteed by now; None in a stream without a guarantee."""
    if live.settings.guarantee is None:
        return None
    checks, kept = live.checks, live.guaranteed
    by = live.version, live.exit_n, checks.gold, checks.corrected
    if kept is None or kept[0] != by:
        before = None if kept is None else kept[1]
        given = runtime.storage, live.name, before
        tested, found = await runtime.read_committed(_read, *given)
        kept = live.guaranteed = by, tested, found
    return kept[2]


def _read(
    storage: Storage, stream: str, before: Tested | None
) -> tuple[Tested | None, Guaranteed | None]:
    tested = counted_in(storage, stream, before)
    return tested, None if tested is None else judged_of(storage, stream, tested)


def marked_exit(row: ItemRow, proven: Guaranteed | None) -> ExitView:
    left = exit_view(row)
    if proven is None:
        return left
    return replace(left, guaranteed=proven.marks(row.exit_n, row.confidence))


def guarantee_view(proven: Guaranteed | None) -> GuaranteeView | None:
    """What is guaranteed, as clients see it."""
    if proven is None:
        return None
    found = proven.found
    return view(GuaranteeView, found, curve=tuple(ThresholdView(*row) for row in found.curve))


ALONE: Final = "by labels alone"
TRUSTED: Final = "said by somebody trusted"

#: Settings on which verdicts depend, and what to call them.
WATCHED: Final = MappingProxyType(
    {
        "panel": "the panel",
        "guidelines": "the guidelines",
        "policy": "the policy",
        "learning": "the way of learning",
        "student": "the student",
        "families": "the families of labelers",
        "costs": "the costs of errors",
        "min_labels": "the number of labels",
        "max_overlap": "the number of labels",
        "min_confidence": "the required confidence",
    }
)


class BasisChange(NamedTuple):
    """When verdicts began to be made otherwise, and what changed."""

    at: float
    what: str


def last_change(rows: Sequence[SettingsRow]) -> BasisChange | None:
    """The last version of the settings by which verdicts are made otherwise.

    >>> from venire.server.store import SettingsRow
    >>> bodies = [{"policy": "greedy", "ahead": 1}, {"policy": "realised", "ahead": 1},
    ...           {"policy": "realised", "ahead": 2}]
    >>> rows = [SettingsRow.load(["posts", n, float(n), "me", json.dumps({"settings": body})])
    ...         for n, body in enumerate(bodies, 1)]
    >>> last_change(rows), last_change(rows[:1])
    (BasisChange(at=2.0, what='the policy'), None)
    """
    bodies = [json.loads(row.body)["settings"] for row in rows]
    for (_, one), (row, other) in reversed(list(pairwise(zip(rows, bodies, strict=True)))):
        for name, words in WATCHED.items():
            if _watched(one, name) != _watched(other, name):
                return BasisChange(row.at, words)
    return None


def _watched(settings: Mapping[str, Any], name: str) -> Any:
    """The value; of the panel only who labels, and of which kind."""
    value = settings.get(name)
    if name != "panel":
        return value or None
    members = [m for m in value or () if not m.get("trusted") and not m.get("retired")]
    return sorted((m["id"], str(m.get("kind"))) for m in members)


def rests_on(
    checks: Checks, left_at: float | None, change: tuple[float, str] | None, shifted: bool
) -> str:
    """What the confidence of an item that left then (None: it is open) rests on.

    >>> from venire.server.stream.checks import Checks
    >>> checks = Checks()
    >>> rests_on(checks, None, None, False)
    'by labels alone'
    """
    bound = checks.bound()
    said = bound.audited - bound.skipped
    if not said or checks.last_checked is None:
        if not checks.gold:
            return ALONE
        return f"by labels, taught by {checks.gold:,} gold; not checked by audits"
    right, audits = 1 - bound.wrong / said, "1 audit" if said == 1 else f"{said:,} audits"
    words = (
        f"by labels; checked on {audits}, the last of {_day(checks.last_checked)}: "
        f"{100 * right:.1f} % of these verdicts were right"
    )
    later = left_at is None or left_at > checks.last_checked
    if change is not None:
        at, what = change
        if at > checks.last_checked and (left_at is None or left_at >= at):
            return f"{words}; stale: {what} changed on {_day(at)}"
    if shifted and later:
        return f"{words}; stale: the mix of verdicts has changed"
    return words


def _day(at: float) -> str:
    day = datetime.fromtimestamp(at, UTC)
    return f"{day.day} {day:%B %Y}"
