"""Streams are loaded beside each other: each once, those that are asked for first."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.server.support import Flaky, bench, running, settings_of, until
from venire.errors import NotFound, StoreDown, StreamDown, StreamLoading
from venire.server import ItemIn, Lease, ManualClock, Service
from venire.server.operations import streams
from venire.server.runtime import loading
from venire.server.runtime.loading import BESIDE
from venire.server.store import SnapshotRow
from venire.server.stream import background
from venire.server.stream.background import LOADERS


class Held(Flaky):
    """A store in which the log of some streams is not read until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, threading.Event] = {}
        self.begun: list[str] = []

    def engines(self, stream: str) -> list[Any]:
        """What a load reads once, after the snapshot."""
        self.begun.append(stream)
        if stream in self.gates:
            assert self.gates[stream].wait(280.0)
        return super().engines(stream)

    @contextmanager
    def holding(self, *names: str) -> Iterator[None]:
        """Inside, whoever loads one of these waits."""
        self.gates = {name: threading.Event() for name in names}
        try:
            yield
        finally:
            for gate in self.gates.values():
                gate.set()


async def filled(**open_items: int) -> Held:
    """A store with so many open items in each stream."""
    storage = Held()
    async with bench(storage, make=False) as b:
        for name, count in open_items.items():
            await b.service.create_stream(name, settings_of(), "test")
            await b.service.add_items(name, [ItemIn(f"i{n}") for n in range(count)])
    storage.begun.clear()
    return storage


@running
async def test_many_who_ask_at_once_get_one_stream() -> None:
    storage = await filled(posts=3)
    service = Service(storage, ManualClock())
    with storage.holding("posts"):
        await service.start(wait=False)
        asking = [asyncio.create_task(service.runtime.live_stream("posts")) for _ in range(20)]
        await until(lambda: storage.begun == ["posts"])
        asking[0].cancel()  # a client that is gone does not end it for the others
        await asyncio.sleep(0.05)
        assert not any(one.done() for one in asking[1:])
    found = await asyncio.gather(*asking[1:])
    assert all(one is found[0] for one in found)
    assert service.runtime.loaded() == [found[0]]
    assert storage.begun == ["posts"]
    await service.stop()


@running
async def test_two_that_take_long_do_not_hold_up_a_third() -> None:
    storage = await filled(a=1, b=1, c=1, d=1)
    service = Service(storage, ManualClock())
    with storage.holding("a", "b"):
        await service.start(wait=False)
        assert service.up
        await until(lambda: len(storage.begun) == BESIDE)
        assert service.loading == 4
        assert isinstance(await service.next("d", "ann"), Lease)  # it is asked for, so it is first
        assert (set(storage.begun[:2]), storage.begun[2:]) == ({"a", "b"}, ["d"])
        assert [one.stream for one in await service.overview()] == ["d"]
        assert service.loading == 3
    await service.loaded()
    assert storage.begun[2:] == ["d", "c"]
    assert [one.name for one in await service.streams()] == ["a", "b", "c", "d"]
    assert service.loading == 0
    await service.stop()


@running
async def test_what_nobody_asks_for_is_loaded_by_size() -> None:
    storage = await filled(a=9, b=5, c=7, d=1, e=1)
    service = Service(storage, ManualClock())
    with storage.holding("b", "c", "d", "e"):
        await service.start(wait=False)
        await until(lambda: len(storage.begun) == BESIDE)
        assert set(storage.begun) == {"d", "e"}
        for name in ("d", "e"):
            storage.gates[name].set()
        await until(lambda: len(storage.begun) == 2 * BESIDE)
        assert set(storage.begun[2:]) == {"b", "c"}
    await service.loaded()
    assert storage.begun[4:] == ["a"]
    await service.stop()


@running
async def test_the_threads_that_load_are_bounded() -> None:
    names = [f"s{n}" for n in range(2 * LOADERS)]
    storage = await filled(**dict.fromkeys(names, 1))
    service = Service(storage, ManualClock())
    with storage.holding(*names):
        await service.start(wait=False)
        asking = [asyncio.create_task(service.stream(name)) for name in names]
        await until(lambda: len(storage.begun) == LOADERS)
        await asyncio.sleep(0.05)
        assert len(storage.begun) == LOADERS
    await asyncio.gather(*asking)
    assert sorted(storage.begun) == names
    await service.stop()


@running
async def test_who_waits_too_long_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = await filled(posts=1)
    service = Service(storage, ManualClock())
    for wait in (loading.Loading.load, loading.Loading.settled):
        monkeypatch.setattr(wait, "__defaults__", (0.02,))
    with storage.holding("posts"):
        await service.start(wait=False)
        with pytest.raises(StreamLoading, match="'posts' is still being loaded"):
            await service.next("posts", "ann")
        with pytest.raises(StreamLoading):
            await service.streams()
        assert await service.overview() == []
    await service.loaded()
    assert isinstance(await service.next("posts", "ann"), Lease)
    assert storage.begun == ["posts"]
    await service.stop()


@running
async def test_what_was_read_before_an_outage_does_not_enter_memory() -> None:
    storage = await filled(posts=1, other=1)
    service = Service(storage, ManualClock())
    with storage.holding("posts"):
        await service.start(wait=False)
        await until(lambda: "other" in service.runtime.streams and "posts" in storage.begun)
        storage.down = True
        with pytest.raises(StoreDown):
            await service.add_items("other", [ItemIn("lost")])
        storage.down = False
        assert await service.add_items("other", [ItemIn("kept")])  # it waits for no load
        asking = asyncio.create_task(service.next("posts", "ann"))
        await until(lambda: storage.begun.count("posts") == 2)
    assert isinstance(await asking, Lease)
    await service.loaded()
    assert storage.begun.count("posts") == 2
    assert (await service.item("other", "kept")).status == "open"
    with pytest.raises(NotFound):
        await service.item("other", "lost")
    await service.stop()


@running
async def test_a_store_that_is_down_while_streams_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "RETRY", 0.0)
    storage = await filled(a=1, b=1)
    real, fails = storage.engines, ["a", "b", "a"]

    def engines(stream: str) -> list[Any]:
        if stream in fails:
            fails.remove(stream)
            raise StoreDown("the connection was lost")
        return real(stream)

    monkeypatch.setattr(storage, "engines", engines)
    async with bench(storage) as b:
        await until(lambda: len(b.service.runtime.streams) == 2)
        assert not b.service.set_aside
        assert not fails


@running
async def test_a_stream_deleted_and_created_while_it_is_looked_for() -> None:
    """Whoever looked before it was made must not bring back what there was then."""
    storage = await filled(posts=1)
    async with bench(storage) as b:
        service, runtime = b.service, b.service.runtime
        await service.close("posts", "test")
        await service.delete_stream("posts", "test")
        looking = [asyncio.create_task(runtime.live_stream("posts")) for _ in range(5)]
        made = asyncio.create_task(service.create_stream("posts", settings_of(), "test"))
        await asyncio.gather(*looking, return_exceptions=True)
        await made
        await b.add("new")
        live = runtime.streams["posts"]
        assert await runtime.live_stream("posts") is live
        assert list(live.open) == ["new"]


def damaged_snapshots(storage: Held) -> None:
    for key, row in storage.tables.snapshots.items():
        if row.stream == "bad":
            storage.tables.snapshots[key] = row._replace(body=row.body[:40] + b"?" + row.body[41:])


def no_snapshots(storage: Held) -> None:
    for key in [key for key in storage.tables.snapshots if key[0] == "bad"]:
        del storage.tables.snapshots[key]


def unknown_policy(storage: Held) -> None:
    for key, row in storage.tables.settings.items():
        if row.stream == "bad":
            body = row.body.replace("fixed-overlap:2", "telepathy")
            assert body != row.body
            storage.tables.settings[key] = row._replace(body=body)


def missing_item(storage: Held) -> None:
    storage.tables.items["bad"]["ghost"] = storage.tables.items["bad"]["i0"]._replace(id="ghost")


def no_settings(storage: Held) -> None:
    for key in [key for key, row in storage.tables.settings.items() if row.stream == "bad"]:
        del storage.tables.settings[key]


@pytest.mark.parametrize(
    "damage", [damaged_snapshots, no_snapshots, unknown_policy, missing_item, no_settings]
)
def test_a_stream_that_cannot_be_loaded_is_set_aside(damage: Callable[[Held], None]) -> None:
    @running
    async def check() -> None:
        storage = await filled(bad=2, good=2)
        damage(storage)
        async with bench(storage) as b:
            assert list(b.service.set_aside) == ["bad"], b.service.set_aside
            assert b.service.up
            assert isinstance(await b.service.next("good", "ann"), Lease)
            with pytest.raises(StreamDown, match="'bad' is set aside"):
                await b.service.next("bad", "ann")
            assert [one.name for one in await b.service.streams()] == ["good"]
            assert [one.stream for one in await b.service.overview()] == ["good"]

    check()


@running
async def test_an_older_snapshot_is_used_if_the_last_one_is_damaged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = await filled(posts=2)
    n = storage.snapshot_numbers("posts")[-1]
    assert n > 0
    row = storage.tables.snapshots["posts", n]
    storage.tables.snapshots["posts", n] = SnapshotRow(
        stream="posts", n=n, at=row.at, body=row.body[:-9]
    )
    async with bench(storage) as b:
        assert not b.service.set_aside
        assert sorted(b.live.open) == ["i0", "i1"]
    assert f"snapshot at event {n} cannot be read" in caplog.text


@running
async def test_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "RETRY", 0.0)
    storage = await filled(posts=1, other=1)
    real, fails = storage.engines, [3]

    def engines(stream: str) -> list[Any]:
        if stream == "posts" and fails[0]:
            fails[0] -= 1
            raise MemoryError("no room")
        return real(stream)

    monkeypatch.setattr(storage, "engines", engines)
    service = Service(storage, ManualClock())
    await service.start()
    assert service.set_aside in ({"posts": "MemoryError: no room"}, {})
    await until(lambda: "posts" in service.runtime.streams)
    assert not service.set_aside
    assert isinstance(await service.next("posts", "ann"), Lease)
    await service.stop()


@running
async def test_a_stream_that_fails_on_its_way_into_memory_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage = await filled(posts=2)
    async with bench(storage) as b:
        assert isinstance(await b.service.next("posts", "ann"), Lease)

    def fail(*_: Any) -> None:
        raise ArithmeticError("no")

    with monkeypatch.context() as patch:
        patch.setattr("venire.server.stream.live_stream.LiveStream.reconcile", fail)
        async with bench(storage) as b:
            assert b.service.set_aside == {"posts": "ArithmeticError: no"}
            assert not b.service.runtime.streams
            assert not b.service.runtime.lease_index.streams


STEPS = st.lists(st.sampled_from(["ask", "fail", "drop", "cancel", "pause"]), max_size=12)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_whatever_happens_meanwhile_nothing_acknowledged_is_lost(steps: list[str]) -> None:
    """Requests, failures of the store, failing steps and clients that leave, in any order."""

    @running
    async def check() -> None:
        storage = await filled(a=1, b=1)
        service = Service(storage, ManualClock())
        await service.start(wait=False)
        tasks: dict[str, asyncio.Task[Any]] = {}
        for n, step in enumerate(steps):
            name = "ab"[n % 2]
            if step == "ask":
                item = f"{name}-{n}"
                adding = service.add_items(name, [ItemIn(item)])
                tasks[item] = asyncio.create_task(adding)
            elif step == "fail":
                storage.down = not storage.down
            elif step == "drop" and name in service.runtime.streams:
                service.runtime.drop(service.runtime.streams[name])
            elif step == "cancel" and tasks:
                tasks[list(tasks)[-1]].cancel()
            else:
                await asyncio.sleep(0.002)
        storage.down = False
        await asyncio.wait(tasks.values()) if tasks else None
        kept = {item for item, task in tasks.items() if not task.cancelled() and not _down(task)}
        await until(lambda: service.up and not service.loading)
        for name in ("a", "b"):
            live = await service.runtime.live_stream(name)
            await service.runtime.flush()
            stored = {row.id for row in storage.items(name)}
            assert set(live.open) == stored
            assert {item for item in kept if item.startswith(name)} <= stored
        assert not service.set_aside
        await service.stop()

    check()


def _down(task: asyncio.Task[Any]) -> bool:
    error = task.exception()
    if error is not None:
        assert isinstance(error, StoreDown), error
    return error is not None


@running
async def test_who_creates_a_stream_while_it_is_compiled_is_told_for_how_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = threading.Event()
    monkeypatch.setattr(background, "warm_up", lambda settings: compiled.wait(60.0))
    monkeypatch.setattr(streams, "COMPILING", 0.0)
    async with bench(make=False) as b:
        with pytest.raises(StreamLoading, match=r"compiled, which takes about \d+ s more") as told:
            await b.service.create_stream("posts", settings_of(), "test")
        assert 1.0 <= told.value.retry_after <= 60.0
        assert await b.service.streams() == []
        compiled.set()
        monkeypatch.setattr(streams, "COMPILING", 60.0)
        assert (await b.service.create_stream("posts", settings_of(), "test")).name == "posts"
