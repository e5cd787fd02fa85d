"""A panel of functions and models as workers of a stream on a running server: `work --panel`."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from venire.batch.labelers import Caller, as_answer
from venire.client import AsyncClient, Worker
from venire.client.worker import Tally
from venire.connectors.models.batching import Batching
from venire.errors import VenireError

__all__ = ["WorkReport", "label_stream"]

LOG = logging.getLogger("venire.models")


@dataclass
class WorkReport:
    """What became of one labeler: counts, and why it ended early."""

    id: str
    tally: Tally = field(default_factory=Tally)
    stopped: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


async def label_stream(
    callers: Sequence[Caller],
    open_client: Callable[[], AsyncClient],
    stream: str,
    ready: Callable[[Callable[[], None]], None] = lambda stop: None,
    **options: Any,
) -> list[WorkReport]:
    """Let every labeler of a panel label for a stream until there is nothing to do.

    A labeler works on as many items at once as it takes, if its capacity in the stream allows it. A
    labeler that fails ends; the others go on. `ready` is given a function that stops them all.
    """
    async with open_client() as client:
        settings = (await client.stream(stream)).get("settings") or {}
    seats = {one["id"]: int(one.get("capacity", 1)) for one in settings.get("panel") or ()}
    workers: list[Worker] = []

    async def run(caller: Caller) -> WorkReport:
        async with open_client() as client:
            at_once = _at_once(caller, seats.get(caller.id, 1) if settings else None)
            call = label_of(caller)
            worker = Worker(client, stream, caller.id, call, concurrency=at_once, **options)
            workers.append(worker)
            return await _report(caller, worker)

    runs = [asyncio.ensure_future(run(caller)) for caller in callers]
    ready(lambda: _stop(workers))
    reports = list(await asyncio.gather(*runs))
    for caller in callers:
        close = getattr(getattr(caller.call, "__self__", None), "close", None)
        if inspect.iscoroutinefunction(close):
            await close()
    return reports


def _stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.stop()


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
    """The label as text, None for no answer; of what is still to be waited for, later."""
    if inspect.isawaitable(said):
        return _later(said)
    label = as_answer(said, 0.0).label
    return None if label is None else str(label)


async def _later(said: Awaitable[Any]) -> Any:
    return _text(await said)


def _at_once(caller: Caller, capacity: int | None) -> int:
    """As many items as its calls take; a line for a labeler that could do more."""
    wanted = caller.parallel * caller.at_once
    if capacity is None or capacity >= wanted:
        return wanted
    if caller.many is not True:  # else it takes lists, and has no number that it likes
        LOG.info(
            "labeler %s works on %d at once, not on %d: give it a capacity of %d in the panel",
            *(caller.id, capacity, wanted, wanted),
        )
    return capacity


async def _report(caller: Caller, worker: Worker) -> WorkReport:
    """Work to the end; an error of one labeler is its own."""
    stopped = None
    try:
        await worker.run()
        stopped = worker.gave_up
    except VenireError as error:
        stopped = str(error)
        LOG.warning("labeler %s stops: %s", caller.id, error)
    return WorkReport(caller.id, worker.tally, stopped)
