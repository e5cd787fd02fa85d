"""A slot in which many items leave is written in parts: killed between any two, nothing changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.marks import nightly
from tests.store.store import MemoryStorage
from tests.unit.server.stream.test_revisions import SETTINGS, learn
from tests.unit.server.support import Bench, bench, running, settings_of, until
from tests.unit.server.webhooks.test_deliveries import LOCAL
from venire.errors import StoreDown
from venire.events import Closed
from venire.server import ItemIn
from venire.server.reports.replays import events_of
from venire.server.store import Change, Insert, Storage, open_storage
from venire.server.store.maintenance.export import log_lines
from venire.server.store.maintenance.verify import verify
from venire.server.store.records import EngineRow, EventRow

#: Of twenty exits and one revision: the last two exits and the revision are one transaction.
WRITTEN = [*["closing"] * 7, "closed"]
PARTS = 7


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venire.server.stream.live_stream.MAX_PART", 3)
    monkeypatch.setattr("venire.server.webhooks.deliveries.POLL_SECONDS", 3600.0)


class Crash:
    """Lets a store write so many parts of a slot, and then no more; `after` loses the answer."""

    def __init__(self, storage: Storage, parts: int, after: bool = False) -> None:
        self.storage, self.left, self.after, self.over = storage, parts, after, False
        self._write, self._ping = storage.write, storage.ping
        storage.write, storage.ping = self.write, self.ping  # type: ignore[method-assign]

    def write(self, changes: Sequence[Change]) -> None:
        rows = [row for x in changes if isinstance(x, Insert) for row in x.rows]
        is_part = any(
            isinstance(row, EventRow) and row.kind in ("closing", "closed") for row in rows
        )
        if is_part and self.left == 0 and not self.over:
            if self.after:
                self._write(changes)
            self.over = True
        if self.over:
            raise StoreDown("it is dead")
        self.left -= is_part
        self._write(changes)

    def ping(self) -> None:
        if self.over:
            raise StoreDown("it is dead")
        self._ping()

    def end(self) -> None:
        """The store works again."""
        self.over, self.left = False, -1


async def everything_left(b: Bench) -> list[Any]:
    """The exits, without their times, and the revisions."""
    exits = await b.service.exits("posts", limit=100)
    assert [exit.n for exit in exits] == list(range(1, len(exits) + 1))
    revisions = [replace(one, at=0.0) for one in await b.service.revisions("posts")]
    return [*(replace(exit, at=0.0) for exit in exits), *revisions]


async def crashed(b: Bench, crash: Crash) -> None:
    """Let items leave until the store fails."""
    with contextlib.suppress(StoreDown):
        await learn(b)
    await until(lambda: crash.over)


async def expected() -> list[Any]:
    async with bench(MemoryStorage(), **SETTINGS) as b:
        await learn(b)
        return await everything_left(b)


def kinds(storage: Storage) -> list[str]:
    return [row.kind for row in storage.events("posts") if row.kind in ("closing", "closed")]


@running
async def test_a_slot_is_written_in_parts_and_read_as_one() -> None:
    async with bench(MemoryStorage(), **SETTINGS) as b:
        told = asyncio.create_task(b.service.exits("posts", after=19, wait=30))
        await asyncio.sleep(0.01)
        await learn(b)
        assert len(await everything_left(b)) == 21
        assert [exit.n for exit in await told] == [20]
        assert kinds(b.storage) == WRITTEN
        events = [e async for e in _until(b, b.live.n) if e.kind == "closed"]
        assert [e.body.get("more", False) for e in events] == [True] * 7 + [False]
        assert sum(len(e.body["exits"]) for e in events) == 20
        given = await b.service.explain("posts", "i5")
        assert given.complete
    assert sum('"kind": "closed"' in line for line in log_lines(b.storage, "posts")) == len(WRITTEN)
    assert verify(b.storage, "posts").ok
    closed = [e for e in events_of(b.storage, "posts") if isinstance(e, Closed)]
    assert len({e.slot for e in closed}) == len(closed)  # venire replay reads it as one, too


async def _until(b: Bench, end: int) -> Any:
    async for event in b.service.events("posts", after=0):
        yield event
        if event.n >= end:
            return


@running
async def test_others_write_between_the_parts_and_the_stream_itself_does_not() -> None:
    """Who is first is for the machine to say: others come between in one of ten trials."""
    between = [await _between_the_parts() for _ in range(10)]
    assert sum(between) >= 1


async def _between_the_parts() -> int:
    """What another stream wrote between the parts of a slot; of its own stream nothing may be."""
    storage = MemoryStorage()
    order: list[str] = []
    write = storage.write

    def noted(changes: Sequence[Change]) -> None:
        order.extend(
            f"{row.stream} {row.kind}"
            for change in changes
            if isinstance(change, Insert)
            for row in change.rows
            if isinstance(row, EventRow)
        )
        write(changes)

    async with bench(storage, **SETTINGS) as b:
        await b.service.create_stream("other", settings_of(), "test")
        storage.write = noted  # type: ignore[method-assign]
        over = asyncio.Event()

        async def others() -> None:
            n = 0
            while not over.is_set():
                await b.service.add_items("other", [ItemIn(f"o{n}")])
                n += 1

        beside = asyncio.create_task(others())
        await learn(b)
        await b.add("late")
        over.set()
        await beside
    begun, end = order.index("posts closing"), order.index("posts closed")
    between = order[begun:end]
    assert {line for line in between if line.startswith("posts")} == {"posts closing"}
    assert order.index("posts arrived", begun) > end
    return between.count("other arrived")


@pytest.mark.parametrize("after", [False, True], ids=["not written", "written, answer lost"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
@running
async def test_killed_between_the_parts_a_restart_gives_the_same_exits(
    kind: str, after: bool, new_url: Callable[[str], str]
) -> None:
    """At every part: what is there is no difference, and what is missing is written once."""
    whole = await expected()
    for parts in range(PARTS) if kind == "memory" else (0, 1, PARTS - 2, PARTS - 1):
        url = new_url(kind)
        storage = open_storage(url)
        crash = Crash(storage, parts, after)
        async with bench(storage, server=LOCAL, **SETTINGS) as b:  # type: ignore[arg-type]
            hook = await b.service.webhooks.add("posts", "http://127.0.0.1:9/")
            await crashed(b, crash)
        crash.end()
        if kind != "memory":
            storage.close()
            storage = open_storage(url)
        there = parts + after
        assert kinds(storage) == (WRITTEN[:there] if there < PARTS else WRITTEN)
        assert verify(storage, "posts").ok, verify(storage, "posts").differences
        async with bench(storage, server=LOCAL) as b:  # type: ignore[arg-type]
            if there:  # or the slot is closed when its time has come
                assert await everything_left(b) == whole
            await b.pass_time(10.0)
            assert await everything_left(b) == whole
            assert not b.live.open
            sent = [(row.kind, row.exit_n) for row in storage.deliveries(hook.id)]
            assert sent == [*(("exit", n) for n in range(1, 21)), ("revision", 1)]
        *parts_of_it, last = kinds(storage)
        assert (set(parts_of_it), last) == ({"closing"}, "closed")
        assert verify(storage, "posts").ok, verify(storage, "posts").differences
        storage.close()


@running
async def test_a_store_that_fails_between_the_parts_and_comes_back_gives_the_same_exits() -> None:
    whole = await expected()
    for parts in range(PARTS):
        storage = MemoryStorage()
        crash = Crash(storage, parts)
        async with bench(storage, **SETTINGS) as b:
            await crashed(b, crash)
            crash.end()
            await until(lambda b=b: b.service.up and bool(b.service.runtime.loaded()))  # type: ignore[misc]
            await b.pass_time(10.0)
            assert await everything_left(b) == whole
        assert verify(storage, "posts").ok


@running
async def test_what_another_version_of_the_engine_had_not_finished_is_decided_by_this_one() -> None:
    """The exits that are on disk stay; the others leave when this version lets them go."""
    whole = await expected()
    storage = MemoryStorage()
    crash = Crash(storage, 2)
    async with bench(storage, **SETTINGS) as b:
        await crashed(b, crash)
    crash.end()
    storage.tables.engines["posts", 0] = EngineRow(
        stream="posts", n=0, version="an older one", at=0.0
    )
    log = storage.tables.logs["posts"]
    n = next(n for n, row in log.items() if row.kind == "closing")
    exits = json.loads(log[n].body)
    exits[0][5] = 0.99  # it was surer
    log[n] = log[n]._replace(body=json.dumps(exits))
    for _ in range(2):
        async with bench(storage) as b:
            await b.pass_time(10.0)
            left = await everything_left(b)
            assert {one.item for one in left} == {one.item for one in whole}
            assert [one.n for one in left[:20]] == list(range(1, 21))
            assert left[1:6] == whole[1:6]
    found = verify(storage, "posts")
    assert found.taken > 0
    assert len(found.differences) == 1, found.differences  # the table still has this one's verdict


KILLED = """
import asyncio, os, signal, sys
from tests.unit.server.support import bench
from tests.unit.server.stream.test_revisions import SETTINGS, learn
from venire.server.stream import live_stream
from venire.server.store import LeaveItems, open_storage

live_stream.MAX_PART = 3
storage, left = open_storage(sys.argv[1]), int(sys.argv[2])
write = storage.write

def killed(changes):
    global left
    write(changes)
    left -= any(isinstance(change, LeaveItems) for change in changes)
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with bench(storage, **SETTINGS) as b:
        storage.write = killed
        await learn(b)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("parts", [4, nightly(1), nightly(6)])
@running
async def test_a_process_that_is_killed_between_the_parts(
    parts: int, new_url: Callable[[str], str]
) -> None:
    whole, url = await expected(), new_url("sqlite")
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, url, str(parts)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=200,
    )
    assert done.returncode == -signal.SIGKILL
    with open_storage(url) as storage:
        assert kinds(storage) == ["closing"] * parts
        async with bench(storage) as b:  # type: ignore[arg-type]
            assert await everything_left(b) == whole
        assert verify(storage, "posts").ok
