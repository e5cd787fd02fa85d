"""The rules of alarms: what is measured, when it is too much, and what to tell people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from venire.server.admin_messages import TrendsView
from venire.server.messages import Insights
from venire.server.settings import StreamSettings

#: Fewer exits than this say nothing about shares, ...
LEAST_EXITS: Final = 100

#: ... and fewer items that most labels call a class say nothing about that class.
LEAST_CALLED: Final = 10

#: Rules about verdicts, or about what labelers say: hidden from those who judge them.
OF_VERDICTS: Final = frozenset({"accuracy", "kept_share", "mix_shift", "drift"})

#: What pages and messages for people call a rule.
TITLES: Final = MappingProxyType(
    {
        "queue": "queue",
        "oldest_seconds": "oldest item",
        "response_p90_seconds": "slow verdicts",
        "accuracy": "estimated accuracy",
        "error_upper": "error rate",
        "single_label_share": "single labels",
        "kept_share": "missed class",
        "mix_shift": "mix of verdicts",
        "drift": "changed labeler",
        "stopped_seconds": "absent labeler",
        "budget_share": "budget left",
    }
)


def title_of(rule: str) -> str:
    """What people call a rule; one that there is no more, by its name.

    >>> title_of("response_p90_seconds"), title_of("late_labels")
    ('slow verdicts', 'late labels')
    """
    return TITLES.get(rule, rule.replace("_", " "))


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
        text = f"the oldest item has been waiting for {oldest:,.0f} s, more than {most:,.0f} s"
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
            text = f"{name} labels differently than before: look at its recent labels"
            yield Finding("drift", name, 1.0, 0.0, text)
        if most is not None and now.open_items and labels and away > most:
            text = f"{name} has been away for {away:,.0f} s, while {now.open_items:,} items wait"
            yield Finding("stopped_seconds", name, away, most, text)


def _budget(settings: StreamSettings, now: Insights) -> Iterator[Finding]:
    least = settings.alarms.budget_share
    if least is None or not now.budget or now.budget_left is None:
        return
    left = now.budget_left / now.budget
    if left < least:
        text = f"{now.budget_left:,} of the {now.budget:,} labels in the budget are left"
        yield Finding("budget_share", "", left, least, text)


def cleared(
    was: Finding,
    settings: StreamSettings,
    now: Insights,
    trends: TrendsView,
    labelers: Sequence[Watched],
) -> Finding:
    """What is so now, of a rule that is no longer broken."""
    limit = getattr(settings.alarms, was.rule)
    if limit is None or limit is False:
        return was._replace(message="this rule is off now")
    one = next((x for x in labelers if x.id == was.subject), None)
    mix = trends.mix.get(was.subject)
    kept = mix.kept / mix.called if mix is not None and mix.called else None
    values: dict[str, float | None] = {
        "queue": now.open_items,
        "oldest_seconds": now.oldest_seconds,
        "response_p90_seconds": now.response_p90,
        "error_upper": now.error_upper,
        "kept_share": kept,
        **{name: getattr(trends, name) for name in ("accuracy", "single_label_share", "mix_shift")},
        "drift": 0.0,
        "stopped_seconds": None if one is None else one.away,
        "budget_share": now.budget_left / now.budget if now.budget and now.budget_left else None,
    }
    value = values[was.rule]
    text = _now(was, value, now.open_items, mix.called if mix is not None else 0)
    if value is None or was.rule == "drift":
        return was._replace(message=text, value=value or 0.0)
    back = "back below" if was.rule not in _LEAST else "back above"
    shown = _amount(was.rule, value), _amount(was.rule, float(limit))
    if shown[0] == shown[1] or (value < limit) == (was.rule in _LEAST):
        back = "within the limit of"  # at the limit, or an interval reaches it
    return was._replace(value=value, threshold=float(limit), message=f"{text}, {back} {shown[1]}")


#: Rules with a least value; the others have a greatest.
_LEAST: Final = ("accuracy", "kept_share", "budget_share")


def _amount(rule: str, value: float) -> str:
    """A value of a rule, with its unit."""
    if rule == "queue":
        return f"{value:,.0f}"
    return f"{value:,.0f} s" if rule.endswith("_seconds") else f"{value:.1%}".replace(".0%", "%")


def _now(was: Finding, value: float | None, queue: int, called: int) -> str:
    """What is measured now, in words."""
    who, told = was.subject, "" if value is None else _amount(was.rule, value)
    if value is None:
        return {
            "oldest_seconds": "no item waits",
            "stopped_seconds": f"{who} is not expected any more",
            "kept_share": f"too few of the latest items are called {who} to tell",
        }.get(was.rule, "there is nothing to measure any more")
    if was.rule == "stopped_seconds" and not queue:
        return f"no items wait, {who} was away for {told}"
    return {
        "queue": f"{told} open items",
        "oldest_seconds": f"the oldest item has been waiting for {told}",
        "response_p90_seconds": f"one item in ten waits {told} or longer for its verdict",
        "accuracy": f"the estimated accuracy is {told}",
        "error_upper": f"audits bound the rate of errors by {told}",
        "single_label_share": f"{told} of the latest items left after one label",
        "kept_share": f"of {called:,} items that most of their labels call {who}, {told} left so",
        "mix_shift": f"the mix of verdicts differs by {told} from before",
        "drift": f"{who} labels as before again",
        "stopped_seconds": f"{who} was here {told} ago",
        "budget_share": f"{told} of the label budget is left",
    }[was.rule]
