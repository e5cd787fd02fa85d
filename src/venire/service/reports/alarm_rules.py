"""The rules of alarms: what is measured, when it is too much, and what to tell people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from venire.service.console_messages import TrendsView
from venire.service.messages import Insights
from venire.service.settings import StreamSettings

__all__ = ["Finding", "Watched", "findings"]

#: Fewer exits than this say nothing about shares; fewer items of a class nothing about it.
LEAST_EXITS: Final = 100
LEAST_CALLED: Final = 10


class Finding(NamedTuple):
    """A rule that is broken: whom it is about, what was measured, the limit, and a sentence."""

    rule: str
    subject: str
    value: float
    threshold: float
    message: str


class Watched(NamedTuple):
    """What the rules look at in a labeler; `away` are the seconds since it was last seen."""

    id: str
    labels: int
    drifting: bool
    away: float


def findings(
    settings: StreamSettings, now: Insights, trends: TrendsView, labelers: Sequence[Watched]
) -> list[Finding]:
    """Every rule that is broken."""
    return [
        *_queue(settings, now),
        *_accuracy(settings, now, trends),
        *_single(settings, trends),
        *_mix(settings, trends),
        *_labelers(settings, now, labelers),
        *_budget(settings, now),
    ]


def _queue(settings: StreamSettings, now: Insights) -> Iterator[Finding]:
    rules = settings.alarms
    if rules.queue is not None and now.open_items > rules.queue:
        text = f"{now.open_items:,} items are open, more than {rules.queue:,}"
        yield Finding("queue", "", now.open_items, rules.queue, text)
    oldest, most = now.oldest_seconds, rules.oldest_seconds
    if most is not None and oldest is not None and oldest > most:
        text = f"the oldest item waits for {oldest:,.0f} s, more than {most:,.0f} s"
        yield Finding("oldest_seconds", "", oldest, most, text)
    p90, most = now.response_p90, rules.response_p90_seconds
    if most is not None and p90 is not None and p90 > most:
        text = f"one item in ten waits {p90:,.0f} s for its verdict, more than {most:,.0f} s"
        yield Finding("response_p90_seconds", "", p90, most, text)


def _accuracy(settings: StreamSettings, now: Insights, trends: TrendsView) -> Iterator[Finding]:
    least, most = settings.alarms.accuracy, settings.alarms.error_upper
    found, high, upper = trends.accuracy, trends.accuracy_high, now.error_upper
    if least is None or found is None or high is None or trends.exits < LEAST_EXITS:
        pass
    elif high < least:
        text = (
            f"the estimated accuracy is {found:.1%}, below {least:.1%}: ask for more labels "
            "(min_confidence), or for better labelers"
        )
        yield Finding("accuracy", "", found, least, text)
    if upper is not None and most is not None and upper > most:
        text = (
            f"audits bound the rate of errors by {upper:.1%}, above {most:.1%}: there are too few "
            "audits, or too many errors"
        )
        yield Finding("error_upper", "", upper, most, text)


def _single(settings: StreamSettings, trends: TrendsView) -> Iterator[Finding]:
    """Labels that nobody checks; a stream that wants one label of each item is content."""
    most, share = settings.alarms.single_label_share, trends.single_label_share
    if most is None or share is None or settings.max_overlap == 1:
        return
    if trends.exits >= LEAST_EXITS and share > most:
        text = (
            f"{share:.0%} of the latest {trends.exits:,} items left after one label, which nobody "
            "checks: set min_labels or min_confidence, or audit"
        )
        yield Finding("single_label_share", "", share, most, text)


def _mix(settings: StreamSettings, trends: TrendsView) -> Iterator[Finding]:
    least, most = settings.alarms.kept_share, settings.alarms.mix_shift
    if trends.exits < LEAST_EXITS:
        return
    for name, mix in trends.mix.items():
        if least is not None and mix.called >= LEAST_CALLED and mix.kept < least * mix.called:
            text = (
                f"of {mix.called:,} items that most of their labels call {name}, {mix.kept:,} left "
                f"as {name}: if the labels are right, {name} is missed; ask for more labels "
                "(min_confidence), or audit"
            )
            yield Finding("kept_share", name, mix.kept / mix.called, least, text)
    if most is not None and trends.mix_shift > most:
        text = (
            f"the mix of verdicts has shifted by {trends.mix_shift:.0%} in the last quarter of "
            f"{trends.exits:,} exits"
        )
        yield Finding("mix_shift", "", trends.mix_shift, most, text)


def _labelers(
    settings: StreamSettings, now: Insights, labelers: Sequence[Watched]
) -> Iterator[Finding]:
    rules, most = settings.alarms, settings.alarms.stopped_seconds
    for name, labels, drifting, away in labelers:
        if rules.drift and drifting:
            text = f"the labels of {name} have changed: look at what {name} says lately"
            yield Finding("drift", name, 1.0, 0.0, text)
        if most is not None and now.open_items and labels and away > most:
            text = f"{name} was away for {away:,.0f} s, while {now.open_items:,} items wait"
            yield Finding("stopped_seconds", name, away, most, text)


def _budget(settings: StreamSettings, now: Insights) -> Iterator[Finding]:
    least = settings.alarms.budget_share
    if least is None or not now.budget or now.budget_left is None:
        return
    left = now.budget_left / now.budget
    if left < least:
        text = f"{now.budget_left:,} of {now.budget:,} labels are left of the label budget"
        yield Finding("budget_share", "", left, least, text)
