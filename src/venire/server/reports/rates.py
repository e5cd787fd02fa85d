"""The rates of a stream: how often each class comes, how right and how complete its verdicts are.

They rest on audits, which are drawn at random with known probabilities, each of which counts for
one over its own (`venire.audits.rates`); verdicts of the others narrow the intervals. Whatever else
has gold, because somebody chose it, reviewed a doubtful verdict or was asked, does not count.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from venire.audits.rates import Rate, precision_of, recall_of, share_of
from venire.model import ItemStatus
from venire.server.admin_messages import ClassRates, IntervalView, RatesView, RateView
from venire.server.store import GoldRow, ItemRow, Storage

#: How many of the latest exits are looked at, and the most classes.
EXITS: Final = 50_000
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
        for row in storage.exits(stream, max(0, last - EXITS))
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
    said, sure = found.verdicts, found.confidences
    scores = {x: p if said[x] == of else (1 - p) / (classes - 1) for x, p in sure.items()}
    other = ""  # no class has this name
    missed = {item: other if said[item] == of else of for item in found.passed_over}
    hits = {item: of if said[item] == of else other for item in found.passed_over}

    def view(rate: Any, low: Mapping[str, str], high: Mapping[str, str]) -> RateView:
        return _worst(rate, found, of, scores, level, low, high)

    return ClassRates(
        view(
            share_of, dict.fromkeys(found.passed_over, other), dict.fromkeys(found.passed_over, of)
        ),
        view(precision_of, missed, hits),
        view(recall_of, missed, hits),
    )


def _worst(
    rate: Any,
    found: Audited,
    of: str,
    scores: Mapping[str, float],
    level: float,
    low: Mapping[str, str],
    high: Mapping[str, str],
) -> RateView:
    """A rate; each end as if those that were passed over spoke against it."""

    def made(more: Mapping[str, str]) -> Rate:
        gold = found.gold | dict(more)
        chances = {item: found.drawn[item] for item in gold}
        even = len(set(chances.values())) < 2
        made: Rate = rate(found.verdicts, gold, of, scores, None if even else chances, level)
        return made

    best = made({})
    ends = (made(low), made(high)) if found.passed_over else (best, best)
    told = best.record() | {"low": ends[0].record()["low"], "high": ends[1].record()["high"]}
    only = told["gold_only"]
    alone = (only["low"], only["high"])
    if found.passed_over:
        alone = ends[0].record()["gold_only"]["low"], ends[1].record()["gold_only"]["high"]
    return RateView(
        told["estimate"],
        told["low"],
        told["high"],
        level,
        IntervalView(only["estimate"], *alone),
        told["worth"],
        told["gold"],
        told["items"],
    )
