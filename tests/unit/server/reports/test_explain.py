"""Explanations are bounded, begin at a snapshot, end with their client, and stop nobody."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.server.support import Bench, Flaky, bench, running
from venire.errors import TooMuch
from venire.server import ServiceSettings
from venire.server.reports import explain
from venire.server.store import EventRow
from venire.server.stream.background import MAX_EXPLANATIONS


class Slow(Flaky):
    """A store whose log is read only when it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.reading = threading.Event(), threading.Event()
        self.held, self.begun, self.ended = False, 0, 0
        self.first = -1

    def all_events(self, stream: str, after: int = -1, chunk: int = 1_000) -> Iterator[EventRow]:
        self.first = after
        if not self.held:
            yield from super().all_events(stream, after, chunk)
            return
        self.begun += 1
        self.reading.set()
        try:
            for row in super().all_events(stream, after, chunk):
                assert self.go.wait(60)
                yield row
        finally:
            self.ended += 1


async def some(b: Bench) -> None:
    await b.add("a", "b", "c")
    for labeler in ("ann", "bob"):
        lease = await b.take(labeler)
        await b.service.label(lease.token or "", "ok")


@running
async def test_explanations_take_no_thread_that_requests_read_by() -> None:
    storage = Slow()
    async with bench(storage) as b:
        await some(b)
        storage.held = True
        asked = [
            asyncio.ensure_future(b.service.explain("posts", "a")) for _ in range(MAX_EXPLANATIONS)
        ]
        await asyncio.to_thread(storage.reading.wait, 60)
        async with asyncio.timeout(280):
            await b.add("d")
            assert (await b.service.item("posts", "d")).status == "open"
            with pytest.raises(TooMuch, match="explanations"):
                await b.service.explain("posts", "a")
        assert storage.begun == 1
        storage.go.set()
        assert all(found.complete for found in await asyncio.gather(*asked))


@running
async def test_an_explanation_ends_with_its_client() -> None:
    storage = Slow()
    async with bench(storage) as b:
        await some(b)
        storage.held = True
        asked = asyncio.ensure_future(b.service.explain("posts", "a"))
        await asyncio.to_thread(storage.reading.wait, 60)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        storage.go.set()
        while storage.ended == 0:
            await asyncio.sleep(0.002)
        storage.held = False
        assert (await b.service.explain("posts", "b")).complete


@running
async def test_what_is_too_far_is_told_from_the_log_alone() -> None:
    async with bench() as b:
        await some(b)
        full = await b.service.explain("posts", "a")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(explain, "MAX_REPLAYED", 0)
            told = await b.service.explain("posts", "a")
        assert full.complete
        assert not told.complete
        assert [_bare(given) for given in told.given] == [_bare(given) for given in full.given]
        assert all(given.price is None for given in told.given)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(explain, "MAX_SECONDS", -1.0)
            assert (await b.service.explain("posts", "a")).given == ()


def _bare(given: Any) -> tuple[Any, ...]:
    return given.n, given.slot, given.labeler, given.gain


@running
async def test_an_explanation_begins_at_the_last_snapshot_before_the_item() -> None:
    storage = Slow()
    async with bench(storage, server=ServiceSettings(snapshot_every=1)) as b:
        for n in range(4):
            await b.add(f"i{n}")
            lease = await b.take("ann")
            await b.service.label(lease.token or "", "ok")
            await b.service.runtime.snapshot(b.live)
            await b.pass_time(10.0)
        await b.add("last")
        while (await b.take("bob")).item != "last":
            pass
        found = await b.service.explain("posts", "last")
        assert [given.labeler for given in found.given] == ["bob"]
        assert storage.first >= 8  # not from the first event on


@running
async def test_an_item_that_nobody_was_assigned_needs_no_replay() -> None:
    async with bench() as b:
        await some(b)
        await b.add("later")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(explain, "MAX_REPLAYED", 0)
            found = await b.service.explain("posts", "later")
        assert found.complete
        assert found.given == ()


@running
async def test_snapshots_on_the_way_change_no_explanation() -> None:
    """Replayed from the snapshot nearest to each assignment, or all of it from the first."""
    async with bench(policy="fixed-overlap:3") as b:
        await b.add(*(f"i{n}" for n in range(5)))
        for labeler in ("ann", "bob", "ann", "bob"):
            for _ in range(3):
                lease = await b.take(labeler)
                await b.service.label(lease.token or "", "ok")
            await b.pass_time(10.0)
            await b.add(f"of-{labeler}-{b.clock.monotonic()}")
            await b.service.runtime.snapshot(b.live)
        names = [f"i{n}" for n in range(5)]
        near = [await b.service.explain("posts", name) for name in names]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(b.storage, "snapshot_numbers", lambda stream: [0])
            far = [await b.service.explain("posts", name) for name in names]
        assert near == far
        assert all(found.complete for found in near)
        assert max(len(found.given) for found in near) >= 2
