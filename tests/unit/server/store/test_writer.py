"""The writer commits in order, many at once, and fails together."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from tests.store.store import MemoryStorage
from venire.errors import StoreDown
from venire.server.store import Change, Insert, SetMeta, StreamRow, Writer


class Gate(MemoryStorage):
    """A store whose commits wait to be let through, and may be told to fail."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.entered = threading.Semaphore(0), threading.Semaphore(0)
        self.broken = False
        self.groups: list[list[str]] = []

    def write(self, changes: Sequence[Change]) -> None:
        self.entered.release()
        assert self.go.acquire(timeout=100)
        if self.broken:
            raise StoreDown("the disk is full")
        super().write(changes)
        self.groups.append([x.key for x in changes if isinstance(x, SetMeta)])

    def ping(self) -> None:
        if self.broken:
            raise StoreDown("still full")


def _change(name: str) -> list[Change]:
    return [SetMeta(name, name)]


def test_what_comes_during_a_commit_shares_the_next_one() -> None:
    storage = Gate()
    with Writer(storage, seconds=time.perf_counter) as writer:
        first = writer.submit(_change("a"))
        assert storage.entered.acquire(timeout=100)
        rest = [writer.submit(_change(name)) for name in "bcd"]
        assert writer.waiting == 3
        assert not first.done()
        storage.go.release(2)
        for future in [first, *rest]:
            future.result(timeout=100)
        stats = writer.stats
    assert storage.groups == [["a"], ["b", "c", "d"]]
    assert (stats.commits, stats.requests, stats.changes, stats.largest) == (2, 4, 4, 3)
    assert stats.seconds >= stats.last_seconds > 0


def test_a_failure_takes_all_that_is_queued_with_it_and_stays() -> None:
    storage = Gate()
    with Writer(storage) as writer:
        storage.broken = True
        first = writer.submit(_change("a"))
        assert storage.entered.acquire(timeout=100)
        second = writer.submit(_change("b"))
        storage.go.release()
        for future in (first, second):
            with pytest.raises(StoreDown, match="could not write it: the disk is full"):
                future.result(timeout=100)
        assert not writer.up
        with pytest.raises(StoreDown, match="cannot be written to for now: the disk is full"):
            writer.submit(_change("c")).result(timeout=100)
        assert not writer.recover()
        storage.broken = False
        assert not writer.up, "it came up by itself"
        assert writer.recover()
        storage.go.release()
        writer.submit(_change("d")).result(timeout=100)
        assert writer.stats.failures == 1
    assert storage.groups == [["d"]]
    assert storage.meta("a") is storage.meta("b") is storage.meta("c") is None


def test_an_unforeseen_error_is_a_failure_like_any_other() -> None:
    storage = MemoryStorage()
    with Writer(storage) as writer:
        future = writer.submit(["nonsense"])  # type: ignore[list-item]
        with pytest.raises(StoreDown) as raised:
            future.result(timeout=100)
        assert raised.value.__cause__ is not None
        assert not writer.up
        assert writer.recover()


def test_no_changes_are_a_barrier() -> None:
    storage = MemoryStorage()
    with Writer(storage) as writer:
        futures = [writer.submit(_change(f"{k}")) for k in range(50)]
        writer.submit([]).result(timeout=100)
        assert all(future.done() for future in futures)
        assert writer.stats.requests <= 51


def test_closing_commits_what_is_queued() -> None:
    storage = MemoryStorage()
    writer = Writer(storage)
    futures = [writer.submit(_change(f"{k}")) for k in range(100)]
    writer.close()
    for future in futures:
        future.result(timeout=0)
    with pytest.raises(StoreDown, match="closed"):
        writer.submit([]).result(timeout=0)
    assert not writer.recover()


def test_futures_of_a_loop_are_resolved_in_it_once_for_each_group() -> None:
    storage = MemoryStorage()
    calls = 0

    async def run() -> None:
        nonlocal calls
        loop = asyncio.get_running_loop()

        def call(function: object) -> None:
            nonlocal calls
            calls += 1
            loop.call_soon_threadsafe(function)  # type: ignore[arg-type]

        with Writer(storage, call) as writer:
            cancelled = writer.submit_to(_change("x"), loop.create_future())
            cancelled.cancel()
            tickets = [writer.submit_to(_change(f"{k}"), loop.create_future()) for k in range(200)]
            await asyncio.wait_for(asyncio.gather(*tickets), 100)
            assert calls == writer.stats.commits
            stream: list[Change] = [Insert([StreamRow(name="s", created_at=0.0)])]
            await writer.submit_to(stream, loop.create_future())
            with pytest.raises(StoreDown, match="already"):
                await writer.submit_to(stream, loop.create_future())

    asyncio.run(run())
    assert storage.meta("x") == "x", "what was handed in is written, whoever waits for it"


def test_many_threads_lose_nothing() -> None:
    storage = MemoryStorage()
    with Writer(storage) as writer:

        def work(name: str) -> None:
            for k in range(100):
                done: Future[None] = writer.submit(_change(f"{name}{k}"))
                done.result(timeout=100)
                assert storage.meta(f"{name}{k}") is not None

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert writer.stats.requests == 400
