"""The demo's console has a history when it opens: the first slots of the stream, in quick motion.

The service itself does it, with a clock that is moved by hand and begins in the past: items arrive,
labelers take work and label it, slots end, the student learns.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from venire.server import ItemIn, Lease, ManualClock, Service, StreamSettings
from venire.server.store import open_storage
from venire_research.digits import DigitJob
from venire_research.digits.crowd import PRODUCER, lead_seconds
from venire_research.digits.served import SLOT_SECONDS, STREAM, settings_of

__all__ = ["HISTORY", "Opened", "live_through"]

#: How many slots have passed when the console opens; about 300 of the 1,197 images.
HISTORY: Final = 100

#: For how long the link to the console can be used, and the session after it, in seconds.
_SESSION: Final = 12 * 3600.0

#: What a slot is longer than it is, in seconds, so that rounding does not make it shorter.
_MOMENT: Final = 1e-6

Slots = Sequence[Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Opened:
    """What is needed to go on: the admin key, a session's token for the link, and the others' keys.

    `keys` are those of the labelers by name, and of the producer.
    """

    admin: str
    link: str
    keys: Mapping[str, str]


async def live_through(
    storage: str, job: DigitJob, slots: Slots, tell: Callable[[int], None]
) -> Opened:
    """Make the stream in a new store, and live through some slots; `tell` how many are over."""
    with open_storage(storage) as store:
        clock = ManualClock(time.time() - len(slots) * SLOT_SECONDS)
        service = Service(store, clock)
        admin = await service.start()
        assert admin is not None  # the store is new
        try:
            opened = await _open(service, job, admin)
            past = _Past(service, clock, job, random.Random(0))
            for slot, items in enumerate(slots):
                await past.slot(items)
                tell(slot + 1)
            return opened
        finally:
            await service.stop()


async def _open(service: Service, job: DigitJob, admin: str) -> Opened:
    """Create the stream and the keys."""
    settings = StreamSettings.model_validate(settings_of(job))
    await service.create_stream(STREAM, settings, "demo")
    keys = {PRODUCER: (await service.keys.create(PRODUCER, "producer")).token}
    for name in job.labelers:
        keys[name] = (await service.keys.create(name, "labeler", name)).token
    owner = service.keys.authenticate(admin)
    assert owner is not None
    return Opened(admin, await service.sessions.begin(owner, _SESSION), keys)


@dataclass(frozen=True)
class _Past:
    service: Service
    clock: ManualClock
    job: DigitJob
    draw: random.Random

    async def slot(self, items: Sequence[Mapping[str, Any]]) -> None:
        """A slot: items arrive, the labelers take what they are given, and label it in time."""
        begun, labels = self.clock.monotonic(), []
        if items:
            await self.service.add_items(STREAM, [ItemIn(**item) for item in items])
        await self._study()
        for lead, labeler, lease in sorted(await self._take(), key=lambda work: work[0]):
            self.clock.advance(begun + lead - self.clock.monotonic())
            said = self.job.said[self.job.row[lease.item], labeler]
            labels.append(asyncio.create_task(self.service.label(lease.token or "", str(said))))
            await asyncio.sleep(0)  # it reads the clock; what is committed may come together
        await asyncio.gather(*labels)
        self.clock.advance(begun + SLOT_SECONDS - self.clock.monotonic() + _MOMENT)
        await self._study()

    async def _take(self) -> list[tuple[float, int, Lease]]:
        """The work of a slot: when it will be done, by whom, what."""
        hands = [m for m, most in enumerate(self.job.capacity) for _ in range(most)]
        asked = [self.service.next(STREAM, self.job.labelers[m]) for m in hands]
        leases = await asyncio.gather(*asked)
        return [
            (lead_seconds(self.draw), m, lease)
            for m, lease in zip(hands, leases, strict=True)
            if isinstance(lease, Lease)
        ]

    async def _study(self) -> None:
        """Close the slot if it is over, and let the student label and learn."""
        runtime = self.service.runtime
        runtime.ticker.tick()
        await runtime.students.idle(STREAM)
        await runtime.flush()
