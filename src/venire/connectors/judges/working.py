"""Judges as workers of a stream on a running server: `venire work --judges`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from venire.client import Work
from venire.connectors.crew import CrewReport, Hand, OpenClient, Ready, work_together
from venire.connectors.judges.answers import Answer, NotSure
from venire.connectors.judges.file import AnyJudge
from venire.connectors.judges.pairs import PairJudge


@dataclass
class JudgeReport(CrewReport):
    """What became of one judge: also what it used, and its position bias."""

    usage: dict[str, Any] = field(default_factory=dict)
    summary: str = ""


async def label_stream(
    judges: Mapping[str, AnyJudge],
    open_client: OpenClient,
    stream: str,
    ready: Ready = lambda stop: None,
    **options: Any,
) -> list[JudgeReport]:
    """Let every judge label for a stream (see `work_together`).

    Each judge is the labeler of its name and works on up to `max_parallel` items at once, if its
    capacity in the stream allows it.
    """

    def hands(settings: Mapping[str, Any]) -> list[Hand]:
        for judge in judges.values():
            judge.classes(settings.get("classes"))
        return [Hand(id, _call(one), one.config.max_parallel) for id, one in judges.items()]

    reports = await work_together(hands, open_client, stream, ready, **options)
    return [_with_usage(report, judges[report.id]) for report in reports]


def _call(judge: AnyJudge) -> Callable[[Work], Awaitable[Answer | None]]:
    async def label(work: Work) -> Answer | None:
        try:
            return await judge.answer(work.payload, work.classes)
        except NotSure:
            return None  # the worker abstains

    return label


def _with_usage(report: CrewReport, judge: AnyJudge) -> JudgeReport:
    usage, summary = judge.usage.to_json(), judge.usage.summary()
    if isinstance(judge, PairJudge):
        bias = judge.bias
        usage["position"] = {"pairs": bias.pairs, "flips": bias.flips, "bias": bias.bias}
        summary = f"{summary}; {bias.summary()}"
    return JudgeReport(report.id, report.tally, report.stopped, usage, summary)
