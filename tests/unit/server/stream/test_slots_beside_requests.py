"""No request keeps the others waiting: long slots are closed in a thread, newcomers are few."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.unit.server.support import Bench, Flaky, bench, running, settings_of
from venire import LearnWhileServing, Scheduler
from venire.engine import queue
from venire.errors import TooMuch
from venire.scheduling.kernel import build
from venire.server import ItemIn, Lease, Nothing, ServiceSettings
from venire.server.stream.labels import MAX_NEWCOMERS
from venire.server.stream.live_stream import LARGE_STREAM, LiveStream

OPEN: dict[str, Any] = {"open_panel": True, "learning": "while-serving", "panel": ()}


class HeldLease:
    """Slots of a stream that are not closed before they are let go."""

    def __init__(self, live: LiveStream) -> None:
        self.go, self.begun = threading.Event(), threading.Event()
        self._advance = live.engine.advance
        live.engine.advance = self._held  # type: ignore[method-assign]

    def _held(self, slot: int) -> Any:
        self.begun.set()
        assert self.go.wait(280)
        return self._advance(slot)


async def closing(b: Bench) -> HeldLease:
    """A stream with a long slot, of which a thread has begun to close it."""
    await b.service.add_items("posts", [ItemIn(f"i{n}") for n in range(LARGE_STREAM)])
    held = HeldLease(await b.service.runtime.live_stream("posts"))
    b.clock.advance(10.0)
    b.service.runtime.ticker.tick()
    await asyncio.to_thread(held.begun.wait, 280)
    return held


@running
async def test_other_streams_are_served_while_a_long_slot_is_closed() -> None:
    async with bench() as b:
        await b.service.create_stream("other", settings_of(), "test")
        await b.service.add_items("other", [ItemIn("a")])
        held = await closing(b)
        waiting = asyncio.ensure_future(b.service.next("posts", "ann"))
        async with asyncio.timeout(200):
            assert isinstance(await b.service.next("other", "ann"), Lease)
            assert (await b.service.insights("other")).open_items == 1
        assert not waiting.done()
        held.go.set()
        assert isinstance(await waiting, Lease)
        assert (await b.service.runtime.live_stream("posts")).engine.slot == 1


@running
async def test_whoever_waits_for_work_gets_it_after_a_long_slot() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        held = await closing(b)
        asked = asyncio.ensure_future(b.service.next("posts", "bob", wait=280.0))
        await asyncio.sleep(0.01)
        held.go.set()
        assert isinstance(await asked, Lease)


@running
async def test_the_end_of_a_server_waits_for_a_slot_under_way() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        held = await closing(b)
        asyncio.get_running_loop().call_later(0.1, held.go.set)
    assert storage.snapshots("posts")[-1].n > 0
    async with bench(storage) as b:
        assert len(b.live.open) == LARGE_STREAM


@running
async def test_a_long_slot_that_fails_loses_its_stream_and_no_other() -> None:
    async with bench() as b:
        await b.service.create_stream("other", settings_of(), "test")
        await b.service.add_items("posts", [ItemIn(f"i{n}") for n in range(LARGE_STREAM)])
        live = await b.service.runtime.live_stream("posts")

        def fail(slot: int) -> Any:
            raise ArithmeticError("for the test")

        live.engine.advance = fail  # type: ignore[method-assign]
        b.clock.advance(10.0)
        b.service.runtime.ticker.tick()
        while live.busy is not None:
            await asyncio.sleep(0.001)
        assert isinstance(await b.service.next("other", "ann"), Nothing)
        again = await b.service.runtime.live_stream("posts")  # loaded anew, as the store has it
        assert again is not live
        assert len(again.open) == LARGE_STREAM


def test_labelers_who_join_one_after_the_other_are_filed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    filing = build.refile_all

    def counted(*args: Any) -> int:
        calls.append(1)
        return filing(*args)

    async def come() -> None:
        async with bench(**OPEN) as b:
            await b.add("a", "b")
            monkeypatch.setattr(queue, "refile_all", counted)
            rows = [("a", f"m{n}", "ok") for n in range(MAX_NEWCOMERS - 1)]
            outcomes = await b.service.add_labels("posts", rows)
            assert {outcome.status for outcome in outcomes} == {"accepted"}
            assert len(calls) == 1
            rows = [("b", f"n{n}", "ok") for n in range(3 * MAX_NEWCOMERS)]
            assert len(await b.service.add_labels("posts", rows)) == len(rows)
            assert len(calls) <= 6  # they come in pieces, with room for others in between
            assert len(b.live.labelers) == 4 * MAX_NEWCOMERS - 1

    running(come)()


@running
async def test_no_more_labelers_join_than_may() -> None:
    async with bench(server=ServiceSettings(max_labelers=3), **OPEN) as b:
        await b.add("a")
        rows = [("a", f"m{n}", "ok") for n in range(5)]
        outcomes = await b.service.add_labels("posts", rows)
        assert [outcome.code for outcome in outcomes] == [None] * 3 + ["panel_full"] * 2
        with pytest.raises(TooMuch, match="max_labelers"):
            await b.service.next("posts", "one more")
        assert isinstance(await b.service.next("posts", "m0"), Nothing)


def test_a_snapshot_is_of_what_was_filed() -> None:
    """A stream that is saved with labelers not yet filed goes on as one that filed them."""
    s = Scheduler(["ann"], ("spam", "ok"), learning=LearnWhileServing())
    s.join("bob")
    assert Scheduler.restore(s.snapshot()).fingerprint() == s.fingerprint()
