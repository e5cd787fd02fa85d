"""A store in a file: versions, damage, a full disk, a file that goes away, a process that dies."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from tests.forked import started
from tests.store.battery import everything
from venire.errors import StoreDown, StoreError
from venire.server.store import (
    Insert,
    ItemRow,
    SetMeta,
    StreamRow,
    WebhookRow,
    Writer,
    open_storage,
)
from venire.server.store.maintenance.archive import write_archive
from venire.server.store.maintenance.verify import verify
from venire.server.store.sql import migrations, sqlite
from venire.server.store.sql.sqlite import SqliteStorage

DATA = Path(__file__).parent.parent.parent.parent / "data"


def _open(path: Path, owner: bool = True) -> SqliteStorage:
    storage = open_storage(f"sqlite:///{path}", owner)
    assert isinstance(storage, SqliteStorage)
    return storage


def _version(path: Path, version: str) -> None:
    connection = sqlite._driver().connect(str(path))
    connection.execute(f"UPDATE {migrations.VERSION_TABLE} SET version_num = ?", (version,))
    connection.commit()
    connection.close()


class TestVersions:
    def test_every_older_version_has_its_file(self) -> None:
        files = sorted(path.stem for path in DATA.glob("schema-*.db"))
        wanted = [f"schema-{n:04}" for n in range(1, int(migrations.HEAD))]
        assert files == wanted, "python -m tests.store.older makes what is missing"

    @pytest.mark.parametrize("old", sorted(DATA.glob("schema-*.db")), ids=lambda path: path.stem)
    def test_an_older_store_is_upgraded_and_kept(self, old: Path, tmp_path: Path) -> None:
        path = Path(shutil.copy(old, tmp_path / "venire.db"))
        with pytest.raises(StoreError, match="start venire serve once"):
            _open(path, owner=False)
        with _open(path) as storage:
            assert verify(storage, "posts").ok
            assert len(storage.items("posts")) == 23
            assert storage.keys()[0].id == "key_1"
            now = everything(storage, "posts")
        version = old.stem.removeprefix("schema-")
        kept = Path(shutil.copy(f"{path}.schema-{version}.bak", tmp_path / "kept.db"))
        with _open(path) as storage, _open(kept) as before:
            assert everything(storage, "posts") == everything(before, "posts") == now

    def test_a_newer_store_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "venire.db"
        _open(path).close()
        _version(path, "9999")
        before = path.read_bytes()
        for owner in (True, False):
            with pytest.raises(StoreError, match=r"newer venire \(schema 9999, .* up to"):
                _open(path, owner)
        assert path.read_bytes() == before

    def test_a_database_of_something_else_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "other.db"
        connection = sqlite._driver().connect(str(path))
        connection.execute("CREATE TABLE items (name TEXT)")
        connection.close()
        with pytest.raises(StoreError, match=r"not a store of venire.*\(items\)"):
            _open(path)

    def test_a_failed_upgrade_changes_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = Path(shutil.copy(DATA / "schema-0001.db", tmp_path / "venire.db"))
        real = migrations.upgrade

        def half(connection: object, url: str) -> None:
            real(connection, url)  # type: ignore[arg-type]
            raise StoreError("interrupted")

        monkeypatch.setattr(migrations, "upgrade", half)
        with pytest.raises(StoreError, match="interrupted"):
            _open(path)
        monkeypatch.undo()
        with _open(path) as storage:
            assert verify(storage, "posts").ok


def _modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}


@pytest.mark.skipif(sys.platform == "win32", reason="files have no modes there")
class TestPrivacy:
    @pytest.fixture(autouse=True)
    def _lenient(self) -> Iterator[None]:
        """As on a machine where all files are for all to read."""
        before = os.umask(0)
        yield
        os.umask(before)

    def test_nobody_else_may_read_what_a_store_writes(self, tmp_path: Path) -> None:
        with _open(tmp_path / "venire.db") as storage:
            storage.write([Insert([StreamRow(name="s", created_at=0.0)])])
            storage.copy_to(tmp_path / "copy.db")
            write_archive(storage, tmp_path / "all.ndjson")
            found = _modes(tmp_path)
        assert set(found) >= {"venire.db", "venire.db-wal", "venire.db.lock", "all.ndjson"}
        assert set(found.values()) == {"0o600"}

    def test_the_files_of_an_older_version_are_closed_to_others(self, tmp_path: Path) -> None:
        path = Path(shutil.copy(DATA / "schema-0003.db", tmp_path / "venire.db"))
        path.chmod(0o644)
        old = tmp_path / "venire.db.schema-0002.bak"
        old.touch(0o644)
        other = tmp_path / "venire.dbx"
        other.touch(0o644)
        _open(path).close()
        assert _modes(tmp_path) == {
            "venire.db": "0o600",
            "venire.db.lock": "0o600",
            "venire.db.schema-0002.bak": "0o600",
            "venire.db.schema-0003.bak": "0o600",
            "venire.dbx": "0o644",
        }

    def test_a_group_that_was_let_in_stays_in(self, tmp_path: Path) -> None:
        path = tmp_path / "venire.db"
        _open(path).close()
        path.chmod(0o660)
        _open(path).close()
        assert _modes(tmp_path)["venire.db"] == "0o660"


class TestTrouble:
    def test_a_link_does_not_lead_round_the_lock(self, tmp_path: Path) -> None:
        path, link = tmp_path / "venire.db", tmp_path / "link.db"
        (tmp_path / "folder").symlink_to(tmp_path)
        link.symlink_to(path)
        with _open(path):
            for name in (link, tmp_path / "folder" / "venire.db"):
                with pytest.raises(StoreError, match="in use by another server"):
                    _open(name)
        with _open(link) as storage:
            assert storage.path == path
            with pytest.raises(StoreError, match="in use by another server"):
                _open(path)
        link.unlink()
        link.symlink_to(link)
        with pytest.raises(StoreError):
            _open(link)

    def test_a_file_that_is_no_database(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("dear diary " * 1000)
        with pytest.raises(StoreError, match="not a database") as raised:
            _open(path)
        assert not isinstance(raised.value, StoreDown)

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="there is no folder"):
            _open(tmp_path / "no" / "venire.db")

    @pytest.mark.parametrize("end", ["", "-wal"])
    def test_a_file_of_somebody_else_is_refused_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
    ) -> None:
        """It can be read, such as a copy that root restored: the first write would fail."""
        path = tmp_path / "venire.db"
        _open(path).close()
        theirs = Path(f"{path}{end}")
        theirs.touch()
        access = os.access
        monkeypatch.setattr(os, "access", lambda file, mode: file != theirs and access(file, mode))
        with pytest.raises(StoreError, match=r"Permission denied\. .* able to write") as raised:
            _open(path)
        assert not isinstance(raised.value, StoreDown)
        assert str(theirs) in str(raised.value)

    def test_a_full_disk_is_survived(self, tmp_path: Path) -> None:
        with _open(tmp_path / "venire.db") as storage, Writer(storage) as writer:
            storage.write([Insert([StreamRow(name="s", created_at=0.0)])])
            storage._writing.execute("PRAGMA max_page_count = 60")
            rows = [
                ItemRow(
                    stream="s",
                    id=f"i{k}",
                    digest="d",
                    payload="x" * 900,
                    weight=1,
                    eligible=None,
                    excluded="[]",
                    arrived_slot=0,
                    arrived_at=0.0,
                )
                for k in range(500)
            ]
            with pytest.raises(StoreDown, match="full"):
                writer.submit([Insert(rows)]).result(timeout=120)
            assert not writer.up
            assert storage.items("s") == []
            assert writer.recover(), "there is room again on a new connection"
            writer.submit([Insert(rows)]).result(timeout=120)
            assert len(storage.items("s")) == 500

    def test_a_file_that_went_away_is_noticed(self, tmp_path: Path) -> None:
        path = tmp_path / "venire.db"
        with _open(path) as storage:
            path.rename(tmp_path / "elsewhere.db")
            for verb in (storage.ping, lambda: storage.write([SetMeta("a", "1")])):
                with pytest.raises(StoreDown, match="cannot be reached"):
                    verb()
            path.write_bytes(b"")
            with pytest.raises(StoreDown, match="not the file that was opened"):
                storage.ping()
            path.unlink()
            (tmp_path / "elsewhere.db").rename(path)
            storage.ping()
            storage.write([SetMeta("a", "1")])
            assert storage.meta("a") == "1"

    def test_another_process_that_writes_for_long_is_waited_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite, "_BUSY", 50)
        path = tmp_path / "venire.db"
        with _open(path) as storage:
            other = sqlite._driver().connect(str(path), isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreDown, match="locked"):
                storage.write([SetMeta("a", "1")])
            other.execute("ROLLBACK")
            other.close()
            storage.write([SetMeta("a", "1")])

    def test_an_old_sqlite_is_warned_of(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pysqlite3", None)
        import sqlite3

        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
        with pytest.warns(UserWarning, match="pip install pysqlite3"):
            assert sqlite._driver() is sqlite3
        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 51, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert sqlite._driver() is sqlite3


def test_a_copy_is_a_store(tmp_path: Path) -> None:
    with _open(tmp_path / "venire.db") as storage:
        storage.write([Insert([StreamRow(name="s", created_at=0.0)])])
        storage.copy_to(tmp_path / "copy.db")
        storage.write([Insert([StreamRow(name="t", created_at=0.0)])])
        storage.copy_to(tmp_path / "copy.db")
    with _open(tmp_path / "copy.db") as copy:
        assert [row.name for row in copy.streams()] == ["s", "t"]


WRITE_FOREVER = """
import sys
from venire.server.store import SetMeta, Writer, open_storage
with open_storage(sys.argv[1]) as storage, Writer(storage) as writer:
    n = 0
    while True:
        n += 1
        writer.submit([SetMeta("n", str(n)), SetMeta(f"n{n}", "")]).result()
        print(n, flush=True)
"""


def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/venire.db"
    for count in (1, 7, 20):
        with started(
            [sys.executable, "-c", WRITE_FOREVER, url], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            acknowledged = 0
            for line in process.stdout:
                acknowledged = int(line)
                if acknowledged >= count:
                    break
            os.kill(process.pid, signal.SIGKILL)
            rest = process.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        with open_storage(url) as storage:
            assert int(storage.meta("n") or 0) >= acknowledged
            assert storage.meta(f"n{acknowledged}") == ""


def test_what_is_pending_for_a_webhook_is_found_without_reading_what_is_for_others(
    tmp_path: Path,
) -> None:
    hook = WebhookRow(
        id="silent", stream="posts", url="https://example.org/x", secret="whsec_x", created_at=0.0
    )
    with _open(tmp_path / "venire.db") as storage:
        storage.write([Insert([StreamRow(name="posts", created_at=0.0)]), Insert([hook])])
        seen: list[str] = []

        @event.listens_for(storage._engine, "before_cursor_execute")
        def note(connection: Any, cursor: Any, sql: str, values: Any, *_: object) -> None:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            seen.extend(row[-1] for row in cursor.fetchall())

        storage.pending_deliveries("silent", 1000)
        assert len(seen) == 1  # no sorting after it
        assert "INDEX deliveries_by_webhook (webhook=? AND status=?)" in seen[0]


def test_a_file_with_two_names_has_one_owner(tmp_path: Path) -> None:
    one, other = tmp_path / "venire.db", tmp_path / "sub" / "linked.db"
    other.parent.mkdir()
    with open_storage(f"sqlite:///{one}") as storage:
        storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
        os.link(one, other)
        with pytest.raises(StoreError, match=r"has 2 names \(hard links\)"):
            open_storage(f"sqlite:///{other}")
        storage.write([Insert([StreamRow(name="more", created_at=0.0)])])
    other.unlink()
    with open_storage(f"sqlite:///{one}") as storage:
        assert [row.name for row in storage.streams()] == ["more", "posts"]


STORES = sorted(DATA.glob("schema-*.db")) + sorted(DATA.glob("release-*.db"))


@pytest.mark.parametrize("kept", STORES, ids=lambda path: path.stem)
def test_a_store_of_every_earlier_version_is_upgraded_and_verified(
    kept: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = Path(shutil.copy(kept, tmp_path / "venire.db"))
    with caplog.at_level("INFO", "venire.storage"), _open(path) as storage:
        assert all(verify(storage, row.name).ok for row in storage.streams())
    assert f"to {migrations.HEAD}" in caplog.text
    (copy,) = tmp_path.glob("*.bak")
    assert str(copy) in caplog.text
    with closing(sqlite3.connect(copy)) as before:
        (version,) = before.execute("SELECT version_num FROM venire_version").fetchone()
    assert f"schema {version} to" in caplog.text


def test_no_copy_is_made_if_none_is_wanted(tmp_path: Path) -> None:
    path = shutil.copy(DATA / "schema-0003.db", tmp_path / "venire.db")
    with open_storage(f"sqlite:///{path}", copy=False) as storage:
        assert storage.streams()
    assert not list(tmp_path.glob("*.bak"))


def test_what_an_earlier_version_decided_is_no_damage_and_damage_is_found(tmp_path: Path) -> None:
    path = shutil.copy(DATA / "release-7bf64d5.db", tmp_path / "venire.db")
    with open_storage(f"sqlite:///{path}") as storage:
        found = verify(storage, "default")
    assert found.ok
    assert found.taken > 0
    for change in ("UPDATE items SET verdict = 'spam'", "UPDATE labels SET said = 'ok'"):
        broken = shutil.copy(path, tmp_path / "broken.db")
        with closing(sqlite3.connect(broken)) as connection:
            connection.execute(f"{change} WHERE stream = 'default'")
            connection.commit()
        with open_storage(f"sqlite:///{broken}") as storage:
            assert not verify(storage, "default").ok
