"""History that leaves the store in segments: nothing is lost, doubled or changed by any kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.marks import nightly
from tests.store.battery_history import everything
from tests.store.store import MemoryStorage
from tests.stored import play
from venire.errors import FileError, NotFound, StoreError
from venire.server.store import (
    DeliveryRow,
    ErasePayload,
    Insert,
    LabelRow,
    NoteRow,
    Storage,
    WebhookRow,
    open_storage,
)
from venire.server.store.history.files import (
    PRIVATE,
    SegmentFiles,
    erase_archived,
    find_archived,
)
from venire.server.store.history.segments import (
    Keep,
    Steps,
    archive_stream,
    drops,
    next_segment,
    registering,
    restore_segment,
    write_segment,
)
from venire.server.store.maintenance.verify import verify

FEW = Steps(items=2, events=7)
ALL = Keep(items=0)


class Killed(BaseException):
    """The process ends here."""


def kill_at(step: int) -> Callable[[str], None]:
    seen = iter(range(10_000))

    def tell(_: str) -> None:
        if next(seen) == step:
            raise Killed

    return tell


def filled(storage: Storage, slots: int = 12, seed: int = 0) -> dict[str, Any]:
    play(storage, slots, seed)
    left = storage.exits("posts")[0]
    storage.write(
        [
            Insert(
                [
                    NoteRow(
                        stream="posts",
                        n=1,
                        item=left.id,
                        labeler="ann",
                        kind="comment",
                        text="a remark",
                        at=5.0,
                    )
                ]
            ),
            Insert(
                [
                    LabelRow(
                        stream="posts",
                        item=left.id,
                        labeler="zed",
                        said="ok",
                        at=5.0,
                        slot=0,
                        late=True,
                        lead_seconds=None,
                        source="bulk",
                        rationale="a reason",
                    )
                ]
            ),
        ]
    )
    return whole(storage)


def whole(storage: Storage) -> dict[str, Any]:
    found = everything(storage, "posts")
    return {**found, "snapshots": storage.snapshots("posts")}


def restored(storage: Storage, archive: Path) -> dict[str, Any]:
    while restore_segment(storage, "posts", archive):
        pass
    return whole(storage)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> Any:
    with open_storage(new_url(request.param)) as opened:
        yield opened


def test_what_is_archived_comes_back_as_it_was(storage: Storage, tmp_path: Path) -> None:
    before, counts = filled(storage), storage.counts("posts")
    [segment] = archive_stream(storage, "posts", tmp_path, ALL, 9e9, FEW)
    assert segment.next_event == before["snapshots"][-1].n
    assert storage.snapshot_numbers("posts") == [segment.next_event]
    assert storage.events("posts")[0].n == segment.next_event
    assert storage.exits("posts")[0].exit_n == segment.exits + 1
    assert storage.counts("posts") == counts
    assert SegmentFiles(tmp_path, segment).faults("") == []
    assert archive_stream(storage, "posts", tmp_path, ALL, 9e9, FEW) == []
    assert restored(storage, tmp_path) == before


def test_an_archived_item_can_be_read_and_erased(storage: Storage, tmp_path: Path) -> None:
    filled(storage)
    row = storage.exits("posts", payloads=True)[0]
    labels = storage.labels_of("posts", row.id)
    archive_stream(storage, "posts", tmp_path, ALL, 9e9)
    found = find_archived(storage, "posts", row.id, tmp_path)
    assert (found.item, found.labels, found.notes[0].text) == (row, labels, "a remark")
    storage.write([Insert([labels[-1]._replace(labeler="zoe", slot=10**6)])])  # it came later
    storage.write(erase_archived(storage, "posts", row.id, tmp_path))
    [segment] = storage.segments("posts")
    assert SegmentFiles(tmp_path, segment).faults("") == [], "the chain holds"
    found = find_archived(storage, "posts", row.id, tmp_path)
    assert (found.item.payload, found.item.digest, found.notes[0].text) == ("null", "erased", "")
    assert (labels[-1].rationale, {x.rationale for x in found.labels}) == ("a reason", {None})
    assert found.labels[-1].labeler == "zoe"
    assert SegmentFiles(tmp_path, segment).manifest()["private"]["erased"] == [
        ["item", row.id],
        ["label", f'["{row.id}","zed"]'],
        ["note", "1"],
    ]
    assert storage.archived("posts", [row.id])[row.id].digest == "erased"
    storage.scrub()
    here = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"a remark" not in here
    assert b"a reason" not in here
    assert row.payload.encode() not in here
    assert erase_archived(storage, "posts", row.id, tmp_path) == []
    with pytest.raises(NotFound, match="no archived item 'nothing'"):
        find_archived(storage, "posts", "nothing", tmp_path)


def test_a_kill_at_any_step_loses_nothing(tmp_path: Path) -> None:
    for step in range(100):
        storage, archive = MemoryStorage(), tmp_path / str(step)
        before = filled(storage)
        try:
            archive_stream(storage, "posts", archive, ALL, 9e9, FEW, kill_at(step))
            done = True
        except Killed:
            done = False
            archive_stream(storage, "posts", archive, ALL, 9e9, FEW)
        assert len(storage.segments("posts")) == 1
        assert restored(storage, archive) == before
        if done:
            break
    assert step > 5


def test_a_kill_while_it_is_restored_loses_nothing(tmp_path: Path) -> None:
    storage = MemoryStorage()
    before = filled(storage)
    archive_stream(storage, "posts", tmp_path, ALL, 9e9)
    for step in range(100):
        try:
            restore_segment(storage, "posts", tmp_path, kill_at(step))
            break
        except Killed:
            archive_stream(storage, "posts", tmp_path, ALL, 9e9, FEW)
            assert storage.events("posts")[0].n == storage.segments("posts")[0].next_event
    assert step > 5
    assert whole(storage) == before


def test_a_kill_while_files_are_written_leaves_none_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    before = filled(storage)

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("venire.server.store.history.files._write_json", killed)
        with pytest.raises(Killed):
            archive_stream(storage, "posts", tmp_path, ALL, 9e9)
    assert not (tmp_path / "posts" / "000001").exists()
    assert whole(storage) == before
    archive_stream(storage, "posts", tmp_path, ALL, 9e9)
    assert restored(storage, tmp_path) == before


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.lists(st.integers(0, 25), min_size=1, max_size=4))
def test_several_segments_are_a_chain(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kept: list[int]
) -> None:
    storage, archive = MemoryStorage(), tmp_path_factory.mktemp("archive")
    before = filled(storage, 14, seed)
    for items in sorted(kept, reverse=True):
        archive_stream(storage, "posts", archive, Keep(items=items), 9e9, FEW)
        for segment in storage.segments("posts"):
            assert storage.counts("posts").exits - segment.exits >= items
    previous = ""
    for segment in storage.segments("posts"):
        assert SegmentFiles(archive, segment).faults(previous) == []
        previous = segment.digest
    assert restored(storage, archive) == before


def test_what_is_changed_in_the_archive_is_found(tmp_path: Path) -> None:
    storage = MemoryStorage()
    filled(storage)
    [segment] = archive_stream(storage, "posts", tmp_path, ALL, 9e9)
    files = SegmentFiles(tmp_path, segment)
    path = files.folder / "labels.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    assert files.faults("") == [f"{path} was changed"]
    assert "digest" in files.faults("another")[0]
    with pytest.raises(FileError, match=r"cannot be restored: .*labels.parquet was changed"):
        restore_segment(storage, "posts", tmp_path)
    path.unlink()
    assert files.faults("") == [f"{path} is missing"]
    with pytest.raises(FileError, match="is this the archive of the store"):
        restore_segment(storage, "posts", tmp_path / "elsewhere")


def test_what_is_erased_meanwhile_is_erased_in_the_files(tmp_path: Path) -> None:
    storage = MemoryStorage()
    filled(storage)
    row = storage.exits("posts")[0]
    planned = next_segment(storage, "posts", ALL, 9e9)
    assert planned is not None
    segment = write_segment(storage, planned, tmp_path)
    storage.write(registering(storage, segment))
    storage.write([ErasePayload("posts", row.id)])
    for change in drops(storage, "posts", tmp_path, FEW):
        storage.write([change])
    found = find_archived(storage, "posts", row.id, tmp_path)
    assert (found.item.payload, found.notes[0].text) == ("null", "")
    assert found.labels[-1].rationale is None
    assert b"a reason" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*.parquet"))
    assert SegmentFiles(tmp_path, segment).faults("") == []


def test_of_an_erased_item_nothing_is_kept_whatever_it_still_holds() -> None:
    storage = MemoryStorage()
    filled(storage)
    row, private = storage.exits("posts", payloads=True)[0], PRIVATE["items"]
    secret = private.secret_of(row)
    assert secret is not None
    assert (secret.text, secret.digest) == (row.payload, row.digest)
    assert private.secret_of(row._replace(digest="erased")) is None
    assert private.secret_of(row._replace(payload="null")) is not None, "null is a payload"


def test_what_is_to_be_sent_stays() -> None:
    storage = MemoryStorage()
    filled(storage)
    everything_else = next_segment(storage, "posts", ALL, 9e9)
    assert everything_else is not None
    hook = WebhookRow(
        id="w1", stream="posts", url="https://example.org", secret="whsec_x", created_at=1.0
    )
    storage.write(
        [
            Insert([hook]),
            Insert([DeliveryRow(webhook="w1", stream="posts", exit_n=2, attempt=0, next_at=1.0)]),
        ]
    )
    segment = next_segment(storage, "posts", ALL, 9e9)
    assert segment is None or segment.exits < 2


def test_age_and_count() -> None:
    storage = MemoryStorage()
    filled(storage)
    ends = {row.n for row in storage.snapshots("posts")}
    times = {row.n + row.size: row.at for row in storage.events("posts")}
    middle = sorted(ends)[2]
    by_age = next_segment(storage, "posts", Keep(since=times[middle] + 0.01), 9e9)
    assert by_age is not None
    assert by_age.next_event == middle
    assert next_segment(storage, "posts", Keep(since=0.0), 9e9) is None
    assert next_segment(storage, "posts", Keep(), 9e9) is None
    assert next_segment(storage, "posts", Keep(items=10_000), 9e9) is None


def test_without_a_folder_it_is_deleted(storage: Storage) -> None:
    filled(storage)
    row = storage.exits("posts")[0]
    [segment] = archive_stream(storage, "posts", None, ALL, 9e9)
    assert segment.name == ""
    assert storage.archived("posts", [row.id])[row.id].digest == "erased"
    with pytest.raises(StoreError, match="was deleted, and cannot be restored"):
        restore_segment(storage, "posts", Path("."))
    with pytest.raises(NotFound, match="deleted by the stream's retention"):
        find_archived(storage, "posts", row.id, Path("."))


def marks_of(storage: Storage, marks: Any = ()) -> Any:
    found = verify(storage, "posts", marks)
    assert found.differences == ()
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_bounded_history_can_be_verified(storage: Storage, tmp_path: Path, seed: int) -> None:
    filled(storage, 14, seed)
    events = marks_of(storage).events
    segments = archive_stream(storage, "posts", tmp_path, Keep(items=6), 9e9)
    found = marks_of(storage)
    assert (found.start, found.archived) == (segments[-1].next_event, segments[-1].next_event)
    assert found.events == events
    restored(storage, tmp_path)
    assert marks_of(storage).start == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000))
def test_verifying_goes_on_from_any_mark(seed: int) -> None:
    storage = MemoryStorage()
    filled(storage, 14, seed)
    whole_log = marks_of(storage)
    assert [mark.n for mark in whole_log.marks] == storage.snapshot_numbers("posts")
    for mark in whole_log.marks:
        found = marks_of(storage, [mark])
        assert (found.start, found.events) == (mark.n, whole_log.events)
    found = marks_of(storage, [mark._replace(digest="another") for mark in whole_log.marks])
    assert found.start == 0


def test_damage_after_a_mark_is_found() -> None:
    storage = MemoryStorage()
    filled(storage)
    marks = marks_of(storage).marks
    start, tables = marks[-1], storage.tables
    [*_, (n, id)] = sorted(tables.exits["posts"].items())
    assert n > start.exits
    row = tables.items["posts"][id]
    tables.items["posts"][id] = row._replace(confidence=0.123)
    assert f"item {id!r} is" in verify(storage, "posts", marks).differences[0]
    tables.items["posts"][id] = row
    pair = next(pair for pair in tables.labels["posts"] if pair[0] == id)
    gone = tables.labels["posts"].pop(pair)
    late = [x for x in verify(storage, "posts", marks).differences if "not in the table" in x]
    assert bool(late) == (gone.at > start.at)
    tables.labels["posts"][pair] = gone
    open_one = next(row.id for row in tables.items["posts"].values() if row.status == "open")
    del tables.items["posts"][open_one]
    assert f"item {open_one!r} is in the log but not in the table" in str(
        verify(storage, "posts", marks).differences
    )


_KILLED = """
import os, sys
from pathlib import Path
from venire.server.store import open_storage
from venire.server.store.history.segments import Steps, archive_stream
from venire.server.store.history.segments import Keep
url, archive, last = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
steps = iter(range(1000))
def tell(_):
    if next(steps) == last:
        os.kill(os.getpid(), 9)
with open_storage(url) as storage:
    archive_stream(storage, "posts", archive, Keep(items=0), 9e9, Steps(2, 7), tell)
"""


@pytest.mark.parametrize("step", [1, 5, nightly(0), nightly(2)])
def test_a_process_that_is_killed_loses_nothing(tmp_path: Path, step: int) -> None:
    url, archive = f"sqlite:///{tmp_path}/venire.db", tmp_path / "archive"
    with open_storage(url) as storage:
        before = filled(storage)
    command = [sys.executable, "-c", _KILLED, url, str(archive), str(step)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=env, check=False).returncode == -signal.SIGKILL
    with open_storage(url) as storage:
        assert verify(storage, "posts").differences == ()
        archive_stream(storage, "posts", archive, ALL, 9e9, FEW)
        assert verify(storage, "posts").differences == ()
        assert len(storage.segments("posts")) == 1
        assert restored(storage, archive) == before
