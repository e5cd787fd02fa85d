"""Archived streams: put away, read, restored and deleted; nothing can be written into them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.store.store import MemoryStorage
from tests.unit.server.support import Bench, bench, running
from venire.errors import StateError
from venire.server.messages import GoldIn
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.verify import verify


async def put_away(b: Bench) -> None:
    """Two items leave, and the stream is closed and archived."""
    await b.add("p1", "p2")
    await b.service.add_labels(
        "posts", [(i, m, "ok") for i in ("p1", "p2") for m in ("ann", "bob")]
    )
    await b.pass_time(10)
    await b.service.close("posts", "me")
    view = await b.service.archive("posts", "me")
    assert view.status == "archived"


@running
async def test_it_is_not_in_memory_nor_listed_and_can_be_read() -> None:
    storage = MemoryStorage()
    async with bench(storage) as b:
        await put_away(b)
        assert b.service.runtime.loaded() == []
        assert await b.service.streams() == []
    async with bench(storage) as b:
        assert b.service.runtime.loaded() == []
        assert [(one.name, one.exits, one.labels) for one in await b.service.archived()] == [
            ("posts", 2, 4)
        ]
        assert (await b.service.item("posts", "p1")).verdict == "ok"
        assert len(await b.service.exits("posts")) == 2
        assert (await b.service.stream("posts")).status == "archived"
        assert (await b.service.settings_history("posts"))[-1].status == "archived"
        assert verify(b.storage, "posts").ok


@running
async def test_only_one_that_is_closed_and_drained_is_archived() -> None:
    async with bench() as b:
        with pytest.raises(StateError, match="is running and has 0 open items"):
            await b.service.archive("posts", "me")
        await b.add("p1")
        await b.service.close("posts", "me")
        with pytest.raises(StateError, match="is closed and has 1 open items"):
            await b.service.archive("posts", "me")
        with pytest.raises(StateError, match="expected an archived one"):
            await b.service.restore("posts", "me")


WRITES: dict[str, Callable[[Bench], Awaitable[Any]]] = {
    "items": lambda b: b.add("new"),
    "labels": lambda b: b.service.add_labels("posts", [("p1", "cec", "ok")]),
    "gold": lambda b: b.service.add_gold("posts", [GoldIn("p1", "ok")]),
    "review": lambda b: b.service.review("posts", "p1", "ok", None, "me"),
    "back": lambda b: b.service.send_back("posts", "p1", "me"),
    "change": lambda b: b.service.change_stream("posts", {"max_overlap": 5}, "me"),
    "retire": lambda b: b.service.retire_labeler("posts", "ann", "me"),
    "withdraw": lambda b: b.service.withdraw("posts", "p1"),
    "pause": lambda b: b.service.pause("posts", "me"),
    "resume": lambda b: b.service.resume("posts", "me"),
    "close": lambda b: b.service.close("posts", "me"),
}


@pytest.mark.parametrize("what", sorted(WRITES))
@running
async def test_nothing_can_be_written_into_it(what: str) -> None:
    async with bench() as b:
        await put_away(b)
        events = b.storage.counts("posts").events
        with pytest.raises(StateError, match="archived"):
            await WRITES[what](b)
        await b.service.runtime.flush()
        assert b.storage.counts("posts").events == events
        assert await b.why("ann") == "closed"


@running
async def test_a_lease_from_before_is_refused_until_it_is_restored() -> None:
    async with bench(deadline_slots=1) as b:
        await b.add("p1")
        lease = await b.take("cec")
        assert lease.token is not None
        await b.service.add_labels("posts", [("p1", "ann", "ok"), ("p1", "bob", "ok")])
        await b.pass_time(20)
        await b.service.close("posts", "me")
        await b.service.archive("posts", "me")
        for call in (
            b.service.label(lease.token, "ok"),
            b.service.heartbeat(lease.token),
            b.service.abstain(lease.token),
            b.service.release(lease.token),
        ):
            with pytest.raises(StateError, match="archived"):
                await call
        await b.service.restore("posts", "me")
        assert (await b.service.label(lease.token, "ok")).late
        assert (await b.service.stream("posts")).status == "closed"
        assert verify(b.storage, "posts").ok


@running
async def test_it_can_be_erased_exported_restored_and_deleted(tmp_path: Any) -> None:
    async with bench() as b:
        await put_away(b)
        assert (await b.service.erase_payload("posts", "p1", "me")).bytes > 0
        write_archive(b.storage, tmp_path / "a.ndjson")
        other = MemoryStorage()
        read_archive(other, tmp_path / "a.ndjson")
        assert other.streams() == b.storage.streams()
        assert other.streams()[0].archived_at is not None
        done = [row.action for row in await b.service.audit(stream="posts")]
        assert done[-2:] == ["stream.archive", "item.erase"]
        assert (await b.service.restore("posts", "me")).status == "closed"
        assert [view.name for view in await b.service.streams()] == ["posts"]
        await b.service.archive("posts", "me")
        assert (await b.service.delete_stream("posts", "me")).items == 2
        assert await b.service.archived() == []
        assert b.storage.streams() == []
