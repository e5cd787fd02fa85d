"""The demo's labelers at a server: each takes work and labels it, at the pace of the slots.

Items arrive as in the demo, slot by slot. Every labeler has a key of its own and uses the ordinary
client. The truth is used only to count right verdicts.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

from venire.client import AsyncClient, Nothing, ServerError, Work
from venire_research.digits.panel import DigitJob
from venire_research.digits.served import SLOT_SECONDS, STREAM
from venire_research.digits.shift import Progress

__all__ = ["PRODUCER", "Crowd", "lead_seconds"]

#: The name of the key that sends the items.
PRODUCER: Final = "producer"

#: Seconds after which a labeler asks again, where there is no work for it.
_REST: Final = 0.5


def lead_seconds(draw: random.Random) -> float:
    """How long a labeler takes for a label: something less than a slot.

    >>> 0.9 < lead_seconds(random.Random(0)) < 2.9
    True
    """
    return SLOT_SECONDS * draw.uniform(0.3, 0.95)


@dataclass
class Crowd:
    """Labelers and a producer at work on the stream of a server.

    `keys` are those of the labelers by name, and of the producer; `slots` are the items that are
    still to arrive, slot by slot. `tell` is called with the progress after each verdict.
    """

    job: DigitJob
    url: str
    keys: Mapping[str, str]
    slots: Sequence[Sequence[Mapping[str, Any]]]
    tell: Callable[[Progress], None]

    async def work(self) -> None:
        """Work until cancelled."""
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            client = {
                name: await stack.enter_async_context(AsyncClient(self.url, key))
                for name, key in self.keys.items()
            }
            group.create_task(self._send(client[PRODUCER]))
            group.create_task(self._count(client[PRODUCER]))
            for m, name in enumerate(self.job.labelers):
                for hand in range(self.job.capacity[m]):
                    group.create_task(self._label(client[name], m, random.Random(100 * m + hand)))

    async def _send(self, client: AsyncClient) -> None:
        """Send the items of each slot when it begins."""
        seconds = asyncio.get_running_loop().time
        due = seconds()
        with suppress(ServerError):  # somebody closed the stream
            for items in self.slots:
                if items:
                    await client.add_items(STREAM, items)
                due += SLOT_SECONDS
                await asyncio.sleep(due - seconds())

    async def _label(self, client: AsyncClient, labeler: int, draw: random.Random) -> None:
        """Take an item, look at it for a while, label it; one hand of a labeler."""
        while True:
            work: Work | Nothing = Nothing("closed")
            with suppress(ServerError):  # somebody deleted the stream, or withdrew the item
                work = await client.next(STREAM)
            lead = lead_seconds(draw) if work else _REST
            await asyncio.sleep(lead)
            if isinstance(work, Work) and work.item in self.job.row:
                said = self.job.said[self.job.row[work.item], labeler]
                with suppress(ServerError):
                    await client.label(work.token, str(said))
                await asyncio.sleep(SLOT_SECONDS - lead)  # one label a slot

    async def _count(self, client: AsyncClient) -> None:
        """Count the verdicts, and those that are right."""
        now = Progress()
        with suppress(ServerError):
            async for left in client.follow_exits(STREAM):
                row = self.job.row.get(left.item)
                if left.verdict is not None and row is not None:
                    right = now.right + (left.verdict == str(self.job.truth[row]))
                    now = Progress(verdicts=now.verdicts + 1, right=right)
                    self.tell(now)
