"""Labelers that run in this process as workers of a stream on a running server: `venire work`.

The functions and models of a panel (`hands_of_panel`), and LLM judges (`hands_of_judges`).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from venire.batch.labelers import Caller, as_answer
from venire.client import AsyncClient, Work, Worker
from venire.client.worker import Tally
from venire.connectors.judges.answers import Answer, NotSure
from venire.connectors.judges.judge import Judge
from venire.connectors.judges.panel import PairJudge
from venire.connectors.models import Batching
from venire.errors import VenireError

LOG = logging.getLogger("venire.work")

OpenClient = Callable[[], AsyncClient]
Ready = Callable[[Callable[[], None]], None]


@dataclass(frozen=True)
class Hand:
    """A labeler: what it says of an item, and how many items it can work on at once.

    With `all_it_may`, it works on as many as its capacity allows, without a word that it could
    do more.
    """

    id: str
    call: Callable[..., Any]
    at_once: int
    all_it_may: bool = False


@dataclass
class CrewReport:
    """What became of one labeler: counts, and why it ended early."""

    id: str
    tally: Tally = field(default_factory=Tally)
    stopped: str | None = None

    @property
    def summary(self) -> str:
        return f"{self.tally.labelled:,} labels"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


#: Makes the labelers from the settings of the stream, which are empty if the key may not read them.
Hands = Callable[[Mapping[str, Any]], Sequence[Hand]]


async def work_together(
    hands: Hands,
    open_client: OpenClient,
    stream: str,
    ready: Ready = lambda stop: None,
    **options: Any,
) -> list[CrewReport]:
    """Let everybody label for a stream until there is nothing to do, or all are stopped.

    A labeler that fails ends; the others go on. `ready` is given a function that stops them all;
    `options` are those of a `Worker`.
    """
    async with open_client() as client:
        settings = (await client.stream(stream)).get("settings") or {}
    seats = {one["id"]: int(one.get("capacity", 1)) for one in settings.get("panel") or ()}
    workers: list[Worker] = []

    async def run(hand: Hand) -> CrewReport:
        async with open_client() as client:
            at_once = _at_once(hand, seats.get(hand.id, 1)) if settings else hand.at_once
            worker = Worker(client, stream, hand.id, hand.call, concurrency=at_once, **options)
            workers.append(worker)
            return await _report(worker, hand.id)

    def stop() -> None:
        for worker in workers:
            worker.stop()

    runs = [asyncio.ensure_future(run(hand)) for hand in hands(settings)]
    ready(stop)
    return list(await asyncio.gather(*runs))


def _at_once(hand: Hand, capacity: int) -> int:
    """On how many items it works at once; a line for a labeler that could do more."""
    if capacity < hand.at_once and not hand.all_it_may:
        LOG.info(
            "labeler %s works on %d at once, not on %d: give it a capacity of %d in the panel",
            *(hand.id, capacity, hand.at_once, hand.at_once),
        )
    return min(capacity, hand.at_once)


async def _report(worker: Worker, id: str) -> CrewReport:
    """Work to the end; an error of one labeler is its own."""
    try:
        await worker.run()
    except VenireError as error:
        LOG.warning("labeler %s stops: %s", id, error)
        return CrewReport(id, worker.tally, str(error))
    return CrewReport(id, worker.tally, worker.gave_up)


def hands_of_panel(callers: Sequence[Caller]) -> Hands:
    """Everybody works on as many items at once as it takes, if its capacity allows it."""
    return lambda settings: [
        Hand(one.id, label_of(one), one.parallel * one.at_once, one.many is True) for one in callers
    ]


async def close_all(callers: Sequence[Caller]) -> None:
    for caller in callers:
        close = getattr(getattr(caller.call, "__self__", None), "close", None)
        if inspect.iscoroutinefunction(close):
            await close()


def label_of(caller: Caller) -> Callable[[Any], Any]:
    """What a labeler says of one item, as text: the classes of a stream are text.

    >>> label_of(Caller("length", len))("Buy now!")
    '8'
    """
    if not caller.many and not inspect.iscoroutinefunction(caller.call):
        return lambda payload: _text(caller.call(payload))
    ask: Callable[[Any], Awaitable[Any]] = caller.call
    if caller.many:
        ask = Batching(caller.call, caller.at_once, caller.parallel)

    async def label(payload: Any) -> Any:
        return _text(await ask(payload))

    return label


def _text(said: Any) -> Any:
    """The label as text, None for no answer, in an `Answer` if there is a confidence or a reason.

    Of what is still to be waited for, later.
    """
    if inspect.isawaitable(said):
        return _later(said)
    answer = as_answer(said, 0.0)
    label = None if answer.label is None else str(answer.label)
    return label if answer[2:] == (None, None) else answer._replace(label=label)


async def _later(said: Awaitable[Any]) -> Any:
    return _text(await said)


@dataclass
class JudgeReport(CrewReport):
    """What became of one judge: also what it used, and its position bias."""

    usage: dict[str, Any] = field(default_factory=dict)
    summary: str = ""


def hands_of_judges(judges: Mapping[str, Judge]) -> Hands:
    """Each is the labeler of its name and works on up to `max_parallel` items at once."""

    def hands(settings: Mapping[str, Any]) -> list[Hand]:
        for judge in judges.values():
            judge.classes(settings.get("classes"))
        return [Hand(id, _call(one), one.config.max_parallel) for id, one in judges.items()]

    return hands


def _call(judge: Judge) -> Callable[[Work], Awaitable[Answer | None]]:
    async def label(work: Work) -> Answer | None:
        try:
            return await judge.answer(work.payload, work.classes)
        except NotSure:
            return None  # the worker abstains

    return label


def with_usage(report: CrewReport, judge: Judge) -> JudgeReport:
    usage, summary = judge.usage.to_json(), judge.usage.summary()
    if isinstance(judge, PairJudge):
        bias = judge.bias
        usage["position"] = {"pairs": bias.pairs, "flips": bias.flips, "bias": bias.bias}
        summary = f"{summary}; {bias.summary()}"
    return JudgeReport(report.id, report.tally, report.stopped, usage, summary)
