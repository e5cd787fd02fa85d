"""What is deleted is gone, for good and in every place; what is not is as it was."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.store.store import MemoryStorage
from tests.unit.server.support import Flaky, asleep, bench, running, settings_of, until
from venire.errors import Conflict, NotFound, StateError, StoreDown
from venire.server import ItemIn, Lease, Service
from venire.server.operations import history
from venire.server.store import ERASED, MarkDeleted, open_storage
from venire.server.store.maintenance.verify import Deletion, deletions, found_in, not_erased, verify

SECRET = "what somebody said in confidence"


@running
async def test_a_payload_is_erased_and_the_rest_of_the_item_stays() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        items = [ItemIn("open", SECRET), ItemIn("left", SECRET), ItemIn("kept", "as it is")]
        await b.service.add_items("posts", items)
        await b.service.add_labels("posts", [("left", "ann", "spam")])
        await b.pass_time(10)
        for item, status in (("open", "withdrawn"), ("left", "left")):
            done = await b.service.erase_payload("posts", item, "me")
            assert done.bytes == len(json.dumps(SECRET))
            view = await b.service.item("posts", item)
            assert (view.payload, view.status) == (None, status)
            assert (await b.service.erase_payload("posts", item, "me")).bytes == 0
        assert view.verdict == "spam"
        assert [label.said for label in view.labels] == ["spam"]
        assert (await b.service.item("posts", "kept")).payload == "as it is"
        assert SECRET not in repr(b.storage.items("posts"))
        assert not_erased(b.storage, "posts") == []
        again = await b.service.add_items("posts", [ItemIn("left", SECRET), ItemIn("new", "x")])
        assert [added.status for added in again] == ["exists", "created"], "it came back"
        assert (await b.service.item("posts", "left")).payload is None
        with pytest.raises(NotFound):
            await b.service.erase_payload("posts", "nothing", "me")
    async with bench(b.storage, b.clock) as b:
        again = await b.service.add_items("posts", [ItemIn("left", SECRET)])
        assert [added.status for added in again] == ["exists"]


@running
async def test_a_payload_that_is_there_though_it_was_erased_is_found() -> None:
    async with bench() as b:
        await b.add("p1")
        await b.service.erase_payload("posts", "p1", "me")
        assert isinstance(b.storage, MemoryStorage)
        row = b.storage.tables.items["posts"]["p1"]
        assert row.digest == ERASED
        b.storage.tables.items["posts"]["p1"] = row._replace(payload=json.dumps(SECRET))
        assert not_erased(b.storage, "posts") == [
            "the payload of item 'p1' is there, though it was erased"
        ]


@running
async def test_what_is_erased_is_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "venire.db"
    with open_storage(f"sqlite:///{path}") as storage:
        service = Service(storage)
        await service.start()
        await service.create_stream("posts", settings_of(), "me")
        payloads = {f"p{k}": f"{SECRET} number {k:04}" + "." * (k * 40) for k in range(200)}
        await service.add_items("posts", [ItemIn(*item) for item in payloads.items()])
        erased = [f"p{k}" for k in range(0, 200, 7)]
        for item in erased:
            await service.erase_payload("posts", item, "me")
        await service.stop()
        assert verify(storage, "posts").events == 1 + len(erased)
    for item, payload in payloads.items():
        assert bool(found_in(path, payload[:45])) == (item not in erased), item


@running
async def test_a_stream_is_deleted_with_all_that_belongs_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PURGE_ROWS", 3)
    path = tmp_path / "venire.db"
    with open_storage(f"sqlite:///{path}") as storage:
        service = Service(storage)
        await service.start()
        for name in ("posts", "kept"):
            await service.create_stream(name, settings_of(), "me")
            await service.add_items(name, [ItemIn(f"{name} {k}", SECRET + name) for k in range(20)])
        lease = await service.next("posts", "ann")
        assert isinstance(lease, Lease)
        before = await service.stream("kept")
        with pytest.raises(StateError, match="close it"):
            await service.delete_stream("posts", "me")
        await service.close("posts", "me")
        done = await service.delete_stream("posts", "me")
        assert (done.items, done.labels) == (20, 0)
        for verb in (service.stream, service.insights, service.labelers):
            with pytest.raises(NotFound):
                await verb("posts")
        with pytest.raises(NotFound):
            await service.label(str(lease.token), "ok")
        assert [view.name for view in await service.streams()] == ["kept"]
        assert not storage.remains("posts")
        (gone,) = deletions(storage)
        assert (gone.stream, gone.actor, gone.ok) == ("posts", "me", True)
        assert await service.stream("kept") == before
        await service.create_stream("posts", settings_of(), "me")
        await service.add_items("posts", [ItemIn("posts 0", "another")])
        assert deletions(storage) == []
        await service.stop()
        assert verify(storage, "posts").ok
        assert verify(storage, "kept").ok
    assert not found_in(path, f"{SECRET}posts")
    assert found_in(path, f"{SECRET}kept")


@running
async def test_what_is_remembered_of_a_stream_goes_with_it() -> None:
    async with bench() as b:
        for said, same in (("spam", 1), ("ok", 0)):  # as many labels each time
            await b.add("p1")
            await b.service.add_labels("posts", [("p1", "ann", "spam"), ("p1", "bob", said)])
            [pair] = (await b.service.agreement("posts")).pairs
            assert (pair.items, pair.same) == (1, same)
            await b.service.check_alarms("posts")
            await b.pass_time(10)
            await b.service.close("posts", "me")
            await b.service.delete_stream("posts", "me")
            assert b.service._skills_then == {}
            await b.service.create_stream("posts", settings_of(), "me")


@running
async def test_those_who_wait_for_a_stream_that_is_deleted_are_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with bench() as b:
        position = b.service.runtime.log_position("posts")
        wait, waiting = position.wait, []

        def counted(*given: Any) -> Any:
            waiting.append(given)
            return wait(*given)

        monkeypatch.setattr(position, "wait", counted)
        work = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
        exits = asyncio.create_task(b.service.exits("posts", wait=60))
        events = b.service.events("posts")
        event = asyncio.ensure_future(anext(events))
        await until(lambda: len(waiting) == 2)
        await b.service.close("posts", "me")
        await b.service.delete_stream("posts", "me")
        with pytest.raises(NotFound):
            await work
        assert await exits == []
        with pytest.raises(StopAsyncIteration):
            await event


@running
async def test_a_deletion_goes_on_after_a_restart() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1", "p2")
    storage.write([MarkDeleted("posts", 5.0)])
    async with bench(storage, b.clock, make=False) as b:
        with pytest.raises(NotFound):
            await b.service.stream("posts")
        await until(lambda: not b.service.runtime.deleting)
        assert storage.deleted_streams() == []
        assert not storage.remains("posts")
        await b.service.create_stream("posts", settings_of(), "me")


@running
async def test_a_store_that_goes_away_meanwhile_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "PURGE_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(history, "PURGE_ROWS", 1)
    storage = Flaky()
    async with bench(storage) as b:
        await b.add(*(f"p{k}" for k in range(30)))
        await b.service.close("posts", "me")
        storage.down = True
        with pytest.raises(StoreDown):
            await b.service.delete_stream("posts", "me")
        storage.down = False
        await until(lambda: not b.service.runtime.deleting)
        assert (await b.service.stream("posts")).open_items == 30, "it was not deleted"
        going = asyncio.create_task(b.service.delete_stream("posts", "me"))
        await until(lambda: storage.counts("posts").open < 20)
        storage.down = True
        with pytest.raises((Conflict, StoreDown)):
            await b.service.create_stream("posts", settings_of(), "me")
        await asyncio.sleep(0.1)
        storage.down = False
        assert (await going).items == 30
        assert deletions(storage) == [Deletion("posts", b.clock.wall(), "me", True)]
