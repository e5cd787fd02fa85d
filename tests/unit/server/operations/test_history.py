"""A stream with a bounded history is served as before, and says what has left the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.support import Bench, Flaky, bench, running
from venire.errors import Archived, Conflict, FileError, InputError, NotFound
from venire.server import ItemIn, ServiceSettings
from venire.server.messages import GoldIn
from venire.server.operations import history
from venire.server.store import DropHistory, open_storage
from venire.server.store.history.files import SegmentFiles, SegmentWriter
from venire.server.store.history.segments import Steps, restore_segment
from venire.server.store.maintenance.verify import verify
from venire.server.store.records import SegmentRow

DAY = 86_400.0


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SMALL", Steps(items=2, events=3))
    monkeypatch.setattr(history, "ERASE_ITEMS", 2)


def of(archive: Path | None) -> ServiceSettings:
    return ServiceSettings(archive=archive)


async def fill(b: Bench, first: int, last: int) -> None:
    """Items that come, are labelled and leave; then a snapshot."""
    for n in range(first, last):
        await b.add(f"p{n}")
        rows = [(f"p{n}", who, "spam") for who in ("ann", "bob")]
        await b.service.add_labels("posts", rows)
        await b.pass_time(10)
    await b.service.runtime.snapshot(b.live)
    await b.service.runtime.flush()


@running
async def test_what_a_retention_does_not_keep_is_archived(tmp_path: Path) -> None:
    async with bench(server=of(tmp_path), retention={"items": 3}) as b:
        await fill(b, 0, 4)
        await fill(b, 4, 8)
        before = await b.service.item("posts", "p0")
        await b.service.keep_history("posts")
        assert b.live.segment is not None
        assert b.live.segment.exits == 4
        assert [row.id for row in b.storage.exits("posts")] == ["p4", "p5", "p6", "p7"]
        assert await b.service.item("posts", "p0") == before, "it is read from the archive"
        assert (await b.service.stream("posts")).exits == 8
        assert verify(b.storage, "posts").differences == ()
        await b.service.keep_history("posts")
        assert len(b.storage.segments("posts")) == 1
    async with bench(b.storage, b.clock, of(None), make=False) as b:
        await _is_archived(b)
        await b.add("p8")
        await b.service.add_labels("posts", [("p8", who, "ok") for who in ("ann", "bob")])
        await b.pass_time(10)
        assert [row.n for row in await b.service.exits("posts", 8)] == [9]
        assert verify(b.storage, "posts").differences == ()
        assert restore_segment(b.storage, "posts", tmp_path) is not None
        assert verify(b.storage, "posts").differences == ()


async def _is_archived(b: Bench) -> None:
    """What a server without the archive says of an archived item."""
    service = b.service
    for ask in (service.item, service.explain):
        with pytest.raises(Archived, match="item 'p0' is in segment 000001 of the archive"):
            await ask("posts", "p0")
    with pytest.raises(Archived, match="is in segment"):
        await service.erase_payload("posts", "p0", "me")
    with pytest.raises(NotFound):
        await service.item("posts", "nothing")
    added = await service.add_items("posts", [ItemIn("p0", {"text": "p0"})])
    assert [x.status for x in added] == ["exists"]
    with pytest.raises(Conflict):
        await service.add_items("posts", [ItemIn("p0", "other")])
    [late] = await service.add_labels("posts", [("p0", "cec", "ok")])
    assert (late.status, late.code) == ("refused", "archived")
    [gold] = await service.add_gold("posts", [GoldIn("p0", "ok")])
    assert (gold.status, gold.code) == ("refused", "archived")
    with pytest.raises(Archived, match="exits up to 4 are archived, got the cursor 0"):
        await service.exits("posts")
    assert [row.n for row in await service.exits("posts", 4)] == [5, 6, 7, 8]
    with pytest.raises(Archived, match="events up to"):
        await service.check_event("posts", 0)
    with pytest.raises(Archived):
        await anext(service.events("posts", 0))
    explained = await service.explain("posts", "p5")
    assert explained.exit is not None


@running
async def test_a_late_label_and_a_gold_that_race_with_it_are_kept(tmp_path: Path) -> None:
    async with bench(server=of(tmp_path), retention={"items": 0}) as b:
        await fill(b, 0, 4)
        await b.service.keep_history("posts")
        [late] = await b.service.add_labels("posts", [("p0", "cec", "ok")])
        assert late.status == "late", "it left a moment ago, and is remembered"
        [again] = await b.service.add_labels("posts", [("p0", "cec", "ok")])
        assert again.status == "exists"
        [gold] = await b.service.add_gold("posts", [GoldIn("p0", "ok")])
        assert gold.code == "archived"
        view = await b.service.item("posts", "p0")
        assert [label.labeler for label in view.labels] == ["ann", "bob", "cec"]
        assert verify(b.storage, "posts").differences == ()


@running
async def test_an_archived_payload_is_erased(tmp_path: Path) -> None:
    async with bench(server=of(tmp_path), retention={"items": 0}) as b:
        await fill(b, 0, 3)
        await b.service.keep_history("posts")
        done = await b.service.erase_payload("posts", "p1", "me")
        assert done.bytes == len('{"text":"p1"}')
        assert (await b.service.item("posts", "p1")).payload is None
        assert (await b.service.item("posts", "p0")).payload == {"text": "p0"}
        assert (await b.service.erase_payload("posts", "p1", "me")).bytes == 0
        added = await b.service.add_items("posts", [ItemIn("p1", {"text": "p1"})])
        assert [x.status for x in added] == ["exists"]
        assert "item.erase" in [row.action for row in await b.service.audit()]


@running
async def test_a_deleted_stream_leaves_nothing_in_the_archive(tmp_path: Path) -> None:
    async with bench(server=of(tmp_path), retention={"items": 0}) as b:
        await fill(b, 0, 3)
        await b.service.keep_history("posts")
        assert (tmp_path / "posts" / "000001" / "manifest.json").is_file()
        await b.service.close("posts", "me")
        await b.service.delete_stream("posts", "me")
        assert list(tmp_path.iterdir()) == []
        assert b.storage.segments("posts") == []
        assert not b.storage.remains("posts")


@running
async def test_payloads_are_erased_by_age() -> None:
    async with bench(retention={"payload_days": 2}) as b:
        await fill(b, 0, 3)
        await b.pass_time(DAY)
        await fill(b, 3, 5)
        await b.pass_time(1.5 * DAY)
        await b.service.keep_history("posts")
        kept = [(await b.service.item("posts", f"p{n}")).payload is not None for n in range(5)]
        assert kept == [False, False, False, True, True]
        assert (await b.service.audit())[-1].details == {"items": 3}
        await b.service.keep_history("posts")
        assert [row.action for row in await b.service.audit()].count("retention.erase") == 1
        assert verify(b.storage, "posts").differences == ()


@running
async def test_without_an_archive_items_are_deleted_only_if_that_is_said() -> None:
    async with bench(retention={"item_days": 1, "delete": True}) as b:
        with pytest.raises(InputError, match="start it with --archive FOLDER, or set"):
            await b.service.change_stream("posts", {"retention": {"item_days": 1}}, "me")
        await fill(b, 0, 3)
        await b.service.keep_history("posts")
        assert b.storage.segments("posts") == []
        await b.pass_time(2 * DAY)
        await b.service.keep_history("posts")
        assert b.storage.exits("posts") == []
        with pytest.raises(Archived, match="was deleted by the stream's retention"):
            await b.service.item("posts", "p0")
        assert verify(b.storage, "posts").differences == ()


@running
async def test_what_was_interrupted_is_finished(tmp_path: Path) -> None:
    storage = Flaky()
    async with bench(storage, server=of(tmp_path), retention={"items": 0}) as b:
        await fill(b, 0, 4)
        write, dropped = storage.write, []

        def failing(changes: Any) -> None:
            write(changes)
            if any(isinstance(change, DropHistory) for change in changes):
                dropped.append(changes)
                raise OSError("the process is killed here")

        storage.write = failing  # type: ignore[method-assign]
        with pytest.raises(Exception, match="killed here"):
            await b.service.keep_history("posts")
        storage.write = write  # type: ignore[method-assign]
        assert len(dropped) == 1
        assert len(b.storage.exits("posts")) == 2
    async with bench(storage, b.clock, of(tmp_path), make=False) as b:
        await b.service.keep_history("posts")
        assert b.storage.exits("posts") == []
        assert len(b.storage.segments("posts")) == 1
        assert verify(b.storage, "posts").differences == ()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_others_are_served_meanwhile(
    kind: str, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    @running
    async def run() -> None:
        with open_storage(new_url(kind)) as storage:
            async with bench(storage, server=of(tmp_path), retention={"items": 5}) as b:  # type: ignore[arg-type]
                await fill(b, 0, 20)
                moving = asyncio.create_task(b.service.keep_history("posts"))
                while not moving.done():
                    await b.service.insights("posts")
                    await asyncio.sleep(0.001)
                await moving
                await fill(b, 20, 25)
                await b.service.keep_history("posts")
                assert len(storage.segments("posts")) == 1
                assert verify(storage, "posts").differences == ()

    run()


@running
async def test_two_who_archive_at_once_do_not_write_the_same_files(tmp_path: Path) -> None:
    async with bench(server=of(tmp_path), retention={"items": 3}) as b:
        await fill(b, 0, 4)
        await fill(b, 4, 8)
        await asyncio.gather(*(b.service.keep_history("posts") for _ in range(3)))
        assert [segment.n for segment in b.storage.segments("posts")] == [1]
        assert SegmentFiles(tmp_path, b.storage.segments("posts")[0]).faults("") == []
        assert restore_segment(b.storage, "posts", tmp_path) is not None
        assert verify(b.storage, "posts").differences == ()


def test_a_segment_whose_folder_was_replaced_is_given_up(tmp_path: Path) -> None:
    segment = SegmentRow(
        stream="posts",
        n=1,
        at=9.0,
        first_event=0,
        next_event=4,
        ended_at=2.0,
        slot=6,
        exits=1,
        revisions=1,
        notes=1,
        name="000001",
        digest="",
    )
    with pytest.raises(FileError, match="another program archives"):
        write_twice(tmp_path, segment)
    assert not (tmp_path / "posts" / "000001" / "manifest.json").exists()


def write_twice(archive: Path, segment: SegmentRow) -> None:
    """As two programs would that know nothing of each other."""
    with SegmentWriter(archive, segment) as first, SegmentWriter(archive, segment):
        first.finish("")
