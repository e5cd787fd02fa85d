"""Large requests: a thread works on them, few of their pieces wait for the disk, others go on."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.server.support import Bench, Flaky, bench, running, settings_of
from venire.engine import Scheduler
from venire.server import ItemIn, Lease
from venire.server.edge.handlers import dumps, long_answer
from venire.server.runtime.ticker import CHUNK, MAX_UNCOMMITTED, THREAD_FROM
from venire.server.store import Change, Insert, ItemRow
from venire.server.stream.live_stream import LARGE_STREAM

OPEN: dict[str, Any] = {"open_panel": True, "learning": "while-serving", "panel": ()}


class HeldLease:
    """A method of something that waits until it is let go."""

    def __init__(self, owner: Any, name: str) -> None:
        self.go, self.begun, self._do = threading.Event(), threading.Event(), getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *args: Any) -> Any:
        self.begun.set()
        assert threading.current_thread() is not threading.main_thread()
        assert self.go.wait(280)
        return self._do(*args)


async def others_are_served(b: Bench, held: HeldLease) -> None:
    """Whoever asks another stream gets an answer while a thread is held, which then goes on."""
    await asyncio.to_thread(held.begun.wait, 280)
    async with asyncio.timeout(200):
        assert isinstance(await b.service.next("other", "ann"), Lease)
    held.go.set()


async def with_other(b: Bench) -> None:
    """Beside `posts` there is another stream, with an item."""
    await b.service.create_stream("other", settings_of(), "test")
    await b.service.add_items("other", [ItemIn("a")])


@running
async def test_others_are_served_while_many_items_come() -> None:
    async with bench() as b:
        await with_other(b)
        live = await b.service.runtime.live_stream("posts")
        held = HeldLease(live.engine, "arrive")
        coming = asyncio.ensure_future(
            b.service.add_items("posts", [ItemIn(f"i{n}") for n in range(THREAD_FROM)])
        )
        await others_are_served(b, held)
        assert {added.status for added in await coming} == {"created"}


@running
async def test_others_are_served_while_many_labels_come() -> None:
    async with bench() as b:
        await with_other(b)
        names = [f"i{n}" for n in range(THREAD_FROM)]
        await b.add(*names)
        live = await b.service.runtime.live_stream("posts")
        held = HeldLease(live.engine, "observe")
        coming = asyncio.ensure_future(
            b.service.add_labels("posts", [(name, "ann", "ok") for name in names])
        )
        await others_are_served(b, held)
        assert {outcome.status for outcome in await coming} == {"accepted"}


@running
async def test_others_are_served_while_a_long_stream_is_filed_anew_for_a_newcomer() -> None:
    async with bench(**OPEN) as b:
        await with_other(b)
        await b.service.add_items("posts", [ItemIn(f"i{n}") for n in range(LARGE_STREAM)])
        live = await b.service.runtime.live_stream("posts")
        held = HeldLease(live.engine, "file")
        asking = asyncio.ensure_future(b.service.next("posts", "newcomer"))
        await others_are_served(b, held)
        assert isinstance(await asking, Lease)


@running
async def test_few_pieces_of_a_request_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Flaky()
    async with bench(storage) as b:
        storage.lag, runtime = 0.02, b.service.runtime
        write, pieces, waiting = runtime.write, list[asyncio.Future[None]](), list[int]()

        def counted(changes: Sequence[Change]) -> asyncio.Future[None]:
            done = write(changes)
            if any(isinstance(one, Insert) and isinstance(one.rows[0], ItemRow) for one in changes):
                pieces.append(done)
                waiting.append(sum(not piece.done() for piece in pieces))
            return done

        monkeypatch.setattr(runtime, "write", counted)
        items = [ItemIn(f"i{n}") for n in range(8 * CHUNK)]
        assert len(await b.service.add_items("posts", items)) == len(items)
        assert len(pieces) == 8
        assert max(waiting) <= MAX_UNCOMMITTED + 1


@running
async def test_a_step_that_fails_half_way_loses_its_stream_and_no_other() -> None:
    async with bench() as b:
        await with_other(b)

        def fail(items: Any) -> None:
            raise ArithmeticError("for the test")

        for count in (1, THREAD_FROM):
            live = await b.service.runtime.live_stream("posts")
            live.engine.arrive = fail  # type: ignore[method-assign]
            with pytest.raises(ArithmeticError):
                await b.service.add_items("posts", [ItemIn(f"i{n}") for n in range(count)])
            assert await b.service.runtime.live_stream("posts") is not live
        assert isinstance(await b.service.next("other", "ann"), Lease)
        await b.add("a")
        assert isinstance(await b.service.next("posts", "ann"), Lease)


@running
async def test_late_labels_of_a_request_are_one_event() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        names = [f"i{n}" for n in range(20)]
        await b.add(*names)
        await b.service.add_labels("posts", [(name, "ann", "ok") for name in names])
        await b.pass_time(10.0)
        before = len(b.storage.events("posts", -1, 1000))
        outcomes = await b.service.add_labels("posts", [(name, "bob", "ok") for name in names])
        assert {outcome.status for outcome in outcomes} == {"late"}
        new = b.storage.events("posts", -1, 1000)[before:]
        assert [(row.kind, row.size) for row in new] == [("observed", len(names))]
        labels = b.storage.labels_of("posts", "i7")
        assert [(row.labeler, row.late) for row in labels] == [("ann", False), ("bob", True)]


@running
async def test_open_items_are_no_work_for_the_collector_of_cycles() -> None:
    async with bench() as b:
        await b.add("a", "b", excluded=("bob",))
        live = await b.service.runtime.live_stream("posts")
        restored = Scheduler.restore(live.engine.snapshot())
        kept = [live.open, *live.open.values(), live.engine.item("a"), restored.item("a")]
        kept += [live.engine.state.registry.items, restored.state.registry.items]
        assert not any(map(gc.is_tracked, kept))


@running
async def test_a_long_answer_is_as_a_short_one() -> None:
    for count in (0, 1, 250):
        values = [{"id": f"é{n}", "n": n} for n in range(count)]
        answer = await long_answer({"created": count}, "items", values)
        assert answer.body == dumps({"created": count, "items": values})
        assert json.loads(bytes(answer.body))["items"] == values
