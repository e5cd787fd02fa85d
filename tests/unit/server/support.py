"""A service over memory with a clock that is moved by hand, and a store that can fail."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.store.store import MemoryStorage
from venire.errors import StoreDown
from venire.server import ItemIn, Lease, ManualClock, Service, ServiceSettings, StreamSettings
from venire.server.store import Change
from venire.server.stream.live_stream import LiveStream

PANEL = (
    {"id": "ann", "competence": 0.9},
    {"id": "bob", "competence": 0.8},
    {"id": "cec", "competence": 0.7},
)


def running(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a coroutine test in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(600):  # less than pytest allows, and time to compile
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


async def until(true: Callable[[], bool]) -> None:
    """Wait for something to be so, for as long as a test may take."""
    while not true():
        await asyncio.sleep(0.002)


async def asleep(count: int, b: Bench) -> None:
    """Let so many who ask come to wait."""
    await until(lambda: b.service.runtime.waiting == count)


def settings_of(**changes: Any) -> StreamSettings:
    """Three labelers of known competence, fixed overlap of two, slots of ten seconds."""
    usual: dict[str, Any] = {
        "classes": ("spam", "ok"),
        "panel": PANEL,
        "open_panel": False,
        "policy": "fixed-overlap:2",
        "learning": "known",
        "slot_seconds": 10.0,
        "lease_floor_seconds": 60.0,
        "lease_ceiling_seconds": 600.0,
    }
    return StreamSettings.model_validate({**usual, **changes})


class Flaky(MemoryStorage):
    """A store that can be down: writing fails, or reading too, or the answer is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.down = self.lost_answer = False
        self.lag = 0.0
        self.writes = 0

    def write(self, changes: Sequence[Change]) -> None:
        time.sleep(self.lag)
        if self.down:
            raise StoreDown("the disk is full")
        super().write(changes)
        self.writes += bool(changes)
        if self.lost_answer:
            self.lost_answer = False
            raise StoreDown("the connection was lost")

    def ping(self) -> None:
        if self.down:
            raise StoreDown("the disk is full")
        super().ping()


class Bench:
    """A service, its clock and its store."""

    def __init__(self, storage: MemoryStorage, clock: ManualClock, service: Service) -> None:
        self.storage, self.clock, self.service = storage, clock, service

    @property
    def live(self) -> LiveStream:
        """The stream in memory."""
        return self.service.runtime.loaded()[0]

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due."""
        self.clock.advance(seconds)
        self.service.runtime.ticker.tick()
        await self.service.runtime.flush()

    async def add(self, *ids: str, **more: Any) -> None:
        """Add items."""
        await self.service.add_items("posts", [ItemIn(id, {"text": id}, **more) for id in ids])

    async def take(self, labeler: str, wait: float = 0.0) -> Lease:
        """Ask for work, and get some."""
        got = await self.service.next("posts", labeler, wait)
        assert isinstance(got, Lease), got
        return got

    async def why(self, labeler: str) -> str:
        """Ask for work in vain."""
        got = await self.service.next("posts", labeler)
        assert not isinstance(got, Lease), got
        return got.reason


@asynccontextmanager
async def bench(
    storage: MemoryStorage | None = None,
    clock: ManualClock | None = None,
    server: ServiceSettings | None = None,
    make: bool = True,
    **changes: Any,
) -> AsyncIterator[Bench]:
    """A running service with one stream, `posts`."""
    storage, clock = storage or Flaky(), clock or ManualClock()
    service = Service(storage, clock, server)
    await service.start()
    try:
        if make and not storage.streams():
            await service.create_stream("posts", settings_of(**changes), "test")
        yield Bench(storage, clock, service)
    finally:
        await service.stop()
