"""Labelers that run in this process as workers of a stream on a running server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from venire.client import AsyncClient, Worker
from venire.client.worker import Tally
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

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


async def work_together(
    hands: Callable[[Mapping[str, Any]], Sequence[Hand]],
    open_client: OpenClient,
    stream: str,
    ready: Ready = lambda stop: None,
    **options: Any,
) -> list[CrewReport]:
    """Let everybody label for a stream until there is nothing to do, or all are stopped.

    `hands` makes the labelers from the settings of the stream, which are empty if the key may not
    read them. A labeler that fails ends; the others go on. `ready` is given a function that stops
    them all; `options` are those of a `Worker`.
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
