"""Whatever is changed in the tables behind the log's back is found."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.stored import play
from venire.storage import MemoryStorage, SaveSnapshot, SnapshotRow, open_storage
from venire.storage.archive import read_archive, write_archive
from venire.storage.exporting import label_studio_tasks
from venire.storage.sqlite import SqliteStorage
from venire.storage.testing import everything
from venire.storage.verifying import verify


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("played") / "venire.db"
    with open_storage(f"sqlite:///{path}") as opened:
        play(opened)
    return path


@pytest.fixture
def storage(played: Path, tmp_path: Path) -> Iterator[SqliteStorage]:
    shutil.copy(played, tmp_path / "venire.db")
    with open_storage(f"sqlite:///{tmp_path}/venire.db") as opened:
        assert isinstance(opened, SqliteStorage)
        yield opened


@pytest.mark.parametrize("seed", range(4))
def test_a_store_that_was_left_alone_is_right(seed: int) -> None:
    storage = MemoryStorage()
    run = play(storage, slots=25, seed=seed)
    found = verify(storage, "posts")
    assert found.differences == ()
    assert found.events == run.n
    assert found.exits == run.exits > 10
    assert found.snapshots == 4


LEFT = "(SELECT id FROM items WHERE status = 'left' AND labels > 0 LIMIT 1)"
TAMPERED = {
    "the log says": f"UPDATE items SET verdict = 'neither' WHERE id = {LEFT}",
    "the log says ('left'": f"UPDATE items SET confidence = 0.123 WHERE id = {LEFT}",
    "is ('open',": f"UPDATE items SET status = 'open', exit_n = NULL WHERE id = {LEFT}",
    "arrived in slot 77": f"UPDATE items SET arrived_slot = 77 WHERE id = {LEFT}",
    "is in the log but not in the table": f"DELETE FROM items WHERE id = {LEFT}",
    "the label of": "UPDATE labels SET said = 'x' WHERE item = (SELECT min(item) FROM labels)",
    "by 'ann' is in the log but not": "DELETE FROM labels WHERE labeler = 'ann'",
    "in the table but not in the log": (
        "INSERT INTO labels SELECT stream, item, 'nobody', said, at, slot, late, NULL, source "
        "FROM labels LIMIT 1"
    ),
    "there is no open lease": "UPDATE leases SET status = 'expired' WHERE status = 'open'",
    "but not by the log": (
        "INSERT INTO leases SELECT 'x', stream, id, 'nobody', 0, 1, 'open', NULL, NULL "
        "FROM items WHERE status = 'open' LIMIT 1"
    ),
    "two open leases": (
        "INSERT INTO leases SELECT 'x' || token_hash, stream, item, labeler, 0, 1, 'open', NULL, "
        "NULL FROM leases WHERE status = 'open' LIMIT 1"
    ),
    "there is no label": "UPDATE leases SET status = 'done' WHERE status = 'released'",
    "another state": (
        "UPDATE snapshots SET body = (SELECT body FROM snapshots ORDER BY n LIMIT 1) "
        "WHERE n = (SELECT max(n) FROM snapshots)"
    ),
    "cannot be read": "UPDATE snapshots SET body = x'00' WHERE n = (SELECT max(n) FROM snapshots)",
    "is ahead of the log": "UPDATE snapshots SET n = 9999 WHERE n = (SELECT max(n) FROM snapshots)",
    "no snapshot of the beginning": "DELETE FROM snapshots WHERE n = 0",
    "the log goes on with event": "DELETE FROM events WHERE n = 3",
    "but replaying it gave": (
        "UPDATE events SET body = replace(body, 'no_gain', 'bribed') WHERE kind = 'closed'"
    ),
    "unknown kind": "UPDATE events SET kind = 'folded' WHERE n = 3",
}


@pytest.mark.parametrize("words", TAMPERED)
def test_what_was_tampered_with_is_found(storage: SqliteStorage, words: str) -> None:
    assert verify(storage, "posts").ok
    changed = storage._writing.execute(TAMPERED[words]).rowcount
    assert changed > 0, "the test has changed nothing"
    found = verify(storage, "posts")
    assert not found.ok
    assert any(words in difference for difference in found.differences), found.differences


def test_a_late_label_that_the_engine_has_forgotten_is_no_difference(
    storage: SqliteStorage,
) -> None:
    storage._writing.execute(
        "INSERT INTO labels SELECT stream, item, 'nobody', said, at, slot, 1, NULL, source "
        "FROM labels WHERE item IN (SELECT id FROM items WHERE status = 'left') LIMIT 1"
    )
    assert verify(storage, "posts").ok


def test_a_snapshot_of_a_later_slot_is_right() -> None:
    """Slots that pass without an exit leave no event."""
    storage = MemoryStorage()
    run = play(storage)
    run.engine.advance(run.engine.slot + 1)
    run.commit()
    while run.engine.outstanding:
        run.advance()
    run.engine.advance(run.engine.slot + 10)
    assert run.engine.drain() == []
    run.snapshot()
    assert verify(storage, "posts").ok


def test_an_archive_is_the_whole_store(storage: SqliteStorage, tmp_path: Path) -> None:
    play(storage, stream="others", seed=1)
    target = tmp_path / "all.ndjson"
    rows = write_archive(storage, target)
    into: list[Any] = [MemoryStorage(), open_storage(f"sqlite:///{tmp_path}/new.db")]
    for other in into:
        assert read_archive(other, target) == rows
        for stream in ("posts", "others"):
            assert everything(other, stream) == everything(storage, stream)
            assert verify(other, stream).ok
        other.close()


def test_label_studio_gets_every_label_and_verdict(storage: SqliteStorage) -> None:
    tasks = list(label_studio_tasks(storage, "posts"))
    items = storage.items("posts")
    assert [task["meta"]["venire"]["item"] for task in tasks] == [item.id for item in items]
    for task, item in zip(tasks, items, strict=True):
        said = [
            (a["result"][0]["meta"]["text"][0], a["result"][0]["value"]["choices"][0])
            for a in task["annotations"]
        ]
        assert said == [(row.labeler, row.said) for row in storage.labels_of("posts", item.id)]
        verdicts = [p["result"][0]["value"]["choices"] for p in task["predictions"]]
        assert verdicts == ([[item.verdict]] if item.verdict is not None else [])
    assert sum(len(task["annotations"]) for task in tasks) == storage.counts("posts").labels


def test_snapshots_are_kept_from_the_first(storage: SqliteStorage) -> None:
    for n in (900, 901, 902, 903, 904, 905):
        storage.write([SaveSnapshot(SnapshotRow("posts", n, 0.0, b""))])
    kept = storage.snapshot_numbers("posts")
    assert kept[0] == 0
    assert kept[-2:] == [904, 905]
