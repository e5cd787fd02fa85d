"""Judges as workers of a stream on a running server: `venire work --judges`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from venire.client import AsyncClient, Work, Worker
from venire.client.worker import Tally
from venire.connectors.judges.opening import AnyJudge
from venire.connectors.judges.pairs import PairJudge
from venire.errors import VenireError

__all__ = ["JudgeReport", "label_stream"]

LOG = logging.getLogger("venire.judges")


@dataclass
class JudgeReport:
    """What became of one judge: counts, what it used, why it ended early, its position bias."""

    id: str
    tally: Tally = field(default_factory=Tally)
    usage: dict[str, Any] = field(default_factory=dict)
    summary: str = ""
    stopped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


async def label_stream(
    judges: Mapping[str, AnyJudge],
    open_client: Callable[[], AsyncClient],
    stream: str,
    ready: Callable[[Callable[[], None]], None] = lambda stop: None,
    **options: Any,
) -> list[JudgeReport]:
    """Let every judge label for a stream until there is nothing to do, or all are stopped.

    Each judge is the labeler of its name and works on up to `max_parallel` items at once, if its
    capacity in the stream allows it. A judge that fails ends; the others go on. `ready` is given a
    function that stops them all.
    """
    async with open_client() as client:
        concurrency = await _concurrency(client, stream, judges)
    workers: list[Worker] = []

    async def run(judge: AnyJudge) -> JudgeReport:
        async with open_client() as client:
            worker = Worker(
                client, stream, judge.id, _call(judge), concurrency=concurrency[judge.id], **options
            )
            workers.append(worker)
            return await _report(judge, worker)

    runs = [asyncio.ensure_future(run(judge)) for judge in judges.values()]
    ready(lambda: _stop(workers))
    return list(await asyncio.gather(*runs))


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.stop()


def _call(judge: AnyJudge) -> Callable[[Work], Awaitable[str]]:
    async def label(work: Work) -> str:
        return (await judge.answer(work.payload, work.classes)).label

    return label


async def _report(judge: AnyJudge, worker: Worker) -> JudgeReport:
    """Work to the end; an error of one judge is its own."""
    stopped = None
    try:
        await worker.run()
        stopped = worker.gave_up
    except VenireError as error:
        stopped = str(error)
        LOG.warning("judge %s stops: %s", judge.id, error)
    usage, summary = judge.usage.to_json(), judge.usage.summary()
    if isinstance(judge, PairJudge):
        bias = judge.bias
        usage["position"] = {"pairs": bias.pairs, "flips": bias.flips, "bias": bias.bias}
        summary = f"{summary}; {bias.summary()}"
    return JudgeReport(judge.id, worker.tally, usage, summary, stopped)


async def _concurrency(
    client: AsyncClient, stream: str, judges: Mapping[str, AnyJudge]
) -> dict[str, int]:
    """How many items each judge works on at once; a line for those that could do more."""
    said = await client.stream(stream)
    settings = said.get("settings") or {}
    seats = {one["id"]: int(one.get("capacity", 1)) for one in settings.get("panel") or ()}
    allowed = {}
    for name, judge in judges.items():
        judge.classes(settings.get("classes"))
        wanted = judge.config.max_parallel
        allowed[name] = min(wanted, seats.get(name, 1)) if settings else wanted
        if allowed[name] < wanted:
            LOG.info(
                "judge %s works on %d at once, not on %d: give it a capacity of %d in the panel",
                *(name, allowed[name], wanted, wanted),
            )
    return allowed
