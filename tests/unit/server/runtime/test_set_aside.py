"""A stream whose log does not replay, and one that another version of the engine wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.store.store import MemoryStorage
from tests.unit.server.support import Flaky, bench, running, settings_of
from venire.engine import engine_version
from venire.errors import StreamDown
from venire.server import ItemIn, Lease
from venire.server.store import EngineRow
from venire.server.store.maintenance.verify import verify


async def filled() -> Flaky:
    """Two streams of which items have left and others are open; killed, so without a snapshot."""
    storage = Flaky()
    async with bench(storage) as b:
        await b.service.create_stream("other", settings_of(), "test")
        await b.add("a", "b", "c")
        for labeler in ("ann", "bob"):
            for _ in range(2):
                lease = await b.take(labeler)
                await b.service.label(lease.token or "", "spam")
        await b.pass_time(10.0)
        await b.service.next("posts", "cec")
        await b.service.add_items("other", [ItemIn("x")])
    for n in storage.snapshot_numbers("posts")[1:]:
        del storage.tables.snapshots["posts", n]
    return storage


def change(storage: MemoryStorage, kind: str, how: Callable[[Any], Any]) -> None:
    """Change the first event of a kind in the log."""
    log = storage.tables.logs["posts"]
    n, row = next((n, row) for n, row in log.items() if row.kind == kind)
    log[n] = row._replace(body=json.dumps(how(json.loads(row.body))))


def surer(exits: Any) -> Any:
    """Another engine might have been surer of its first verdict."""
    exits[0][5] = 0.99
    return exits


@running
async def test_a_stream_that_does_not_replay_is_set_aside_and_the_others_are_served() -> None:
    storage = await filled()
    change(storage, "closed", surer)
    async with bench(storage) as b:
        assert isinstance(await b.service.next("other", "ann"), Lease)
        assert [stream.name for stream in await b.service.streams()] == ["other"]
        assert list(b.service.set_aside) == ["posts"]
        for ask in (b.service.next("posts", "ann"), b.service.add_items("posts", [ItemIn("y")])):
            with pytest.raises(
                StreamDown, match=r"'posts' is set aside: event \d+ does not replay"
            ):
                await ask
        await b.pass_time(60.0)  # it is not loaded again and again
        assert b.service.up
    assert "does not replay" in verify(storage, "posts").differences[0]


@running
async def test_what_another_version_decided_is_taken_from_the_log() -> None:
    storage = await filled()
    before = storage.counts("posts")
    change(storage, "closed", surer)
    storage.tables.engines["posts", 0] = EngineRow(
        stream="posts", n=0, version="an older one", at=0.0
    )
    for again in range(2):  # from the beginning, and from the state with which this one began
        async with bench(storage) as b:
            assert not b.service.set_aside
            if not again:
                assert storage.counts("posts")._replace(events=0) == before._replace(events=0)
            assert (await b.service.item("posts", "c")).status == "open"
            item = f"d{len(storage.items('posts'))}"
            await b.add(item)
            assert (await b.take(("ann", "bob")[again])).item in ("c", item)
    versions = [(row.n > 0, row.version) for row in storage.engines("posts")]
    assert versions == [(False, "an older one"), (True, engine_version())]
    began = storage.engines("posts")[1].n
    assert began in storage.snapshot_numbers("posts")
    found = verify(storage, "posts")
    assert found.taken > 0, found
    [other] = [*found.differences]  # the test has not changed the table of items
    assert "0.99" in other


@running
async def test_a_store_from_before_versions_were_written_down_is_served() -> None:
    storage = await filled()
    storage.tables.engines.clear()
    async with bench(storage) as b:
        assert not b.service.set_aside
        assert isinstance(await b.service.next("posts", "ann"), Lease)
    assert [row.version for row in storage.engines("posts")] == [engine_version()]
    assert verify(storage, "posts").ok
