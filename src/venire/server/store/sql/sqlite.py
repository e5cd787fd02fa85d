"""A store in one SQLite file.

Acknowledged means on disk: the journal is a write-ahead log and every commit waits for it to be
synchronised (`synchronous=FULL`). One connection writes; readers have their own and are never in
its way. The owner holds a lock on `FILE.lock`, so that a second server on the same file is
refused; the lock goes with the process, however it ends.

SQLite before 3.51.3 may damage a write-ahead log when it is reset, so `pysqlite3`, which brings a
newer one, is taken where it is installed. A process must not open one file through both.
"""

from __future__ import annotations

import glob
import importlib
import os
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from sqlalchemy import Connection, Engine, NullPool, QueuePool, create_engine, event
from sqlalchemy.engine import URL

from venire.errors import InputError, StoreDown, StoreError
from venire.server.store.changes import (
    VERIFIED,
    Change,
    DropHistory,
    EraseArchived,
    ErasePayload,
    PurgeStream,
)
from venire.server.store.file_lock import (
    OWNER,
    FileLock,
    check_writable,
    create_private,
    make_private,
)
from venire.server.store.sql import migrations
from venire.server.store.sql.statements import Step
from venire.server.store.sql.storage import Storage

#: The first version whose write-ahead log survives being reset.
_SOUND = (3, 51, 3)

#: A folder whose files are in memory, on Linux.
_SHARED_MEMORY = "/dev/shm"

#: Milliseconds to wait for another process that writes a key or makes a backup.
_BUSY = 10_000

#: Milliseconds for which writers may have to wait while the log is emptied.
_CHECKPOINT_BUSY = 50

#: How many new rows go into one statement: a fifth quicker than one by one.
_BATCH = 50


class SqliteStorage(Storage):
    """A store in a file.

    >>> import tempfile
    >>> from venire.server.store import Insert, StreamRow, open_storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_storage(f"sqlite:///{folder}/venire.db") as storage:
    ...         storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    ...     with open_storage(f"sqlite:///{folder}/venire.db") as storage:
    ...         print(storage.streams()[0].name)
    posts
    """

    #: When a commit waits for the disk: always.
    _synchronous: ClassVar[str] = "FULL"

    def __init__(self, url: URL, owner: bool = True, copy: bool = True) -> None:
        """With `copy`, one is made of a store of an earlier schema before it is upgraded."""
        if not url.database or url.database == ":memory:" or url.query or url.host:
            raise InputError(f"got the store {url}, expected sqlite:///FILE (or memory:)")
        self.url, self.owner, self._copies = str(url), owner, copy
        self.path = _resolved(url.database)
        self._driver = _driver()
        self._driver_error = self._driver.Error
        self._write_lock = threading.RLock()
        self._ends = {}
        self._lock: FileLock | None = None
        self._writing: Any = None
        self._engine = self._make_engine()
        if not owner and not self.path.is_file():
            raise StoreError(f"there is no store at {self.path}: venire serve makes one")
        if not self.path.parent.is_dir():
            raise StoreError(f"there is no folder {self.path.parent}: make it first")
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        if self.owner:
            self._lock = FileLock(Path(f"{self.path}.lock"), f"the store {self.path}")
            create_private(self.path)
            names = self.path.stat().st_nlink
            if names > 1:
                raise StoreError(
                    f"the store {self.path} has {names} names (hard links): SQLite keeps a log "
                    "beside each, and what another server writes would be lost. Remove the other "
                    "names (find -samefile lists them), or copy the file"
                )
            for file in (self.path, *self.path.parent.glob(f"{glob.escape(self.path.name)}[-.]*")):
                make_private(file)
            for end in ("", "-wal", "-shm"):
                check_writable(Path(f"{self.path}{end}"))
        with self._errors():
            self._writing = self._connect()
            if self.owner:
                self._writing.execute("PRAGMA journal_mode = WAL")
            with self._engine.connect() as connection:
                version = migrations.version_of(connection)
            if migrations.needs_upgrade(version, self.url):
                self._upgrade(version)
        self._identity = self._stat()

    def _upgrade(self, version: str | None) -> None:
        if not self.owner:
            raise StoreError(
                f"the store {self.url} is of schema {version or 'none'}, this venire writes "
                f"{migrations.HEAD}: start venire serve once, which upgrades it"
            )
        if version is not None and self._copies:
            kept = Path(f"{self.path}.schema-{version}.bak")
            self.copy_to(kept)
            migrations.LOG.info("a copy of the store as it was is at %s", kept)
        engine = create_engine(
            "sqlite://", module=self._driver, creator=self._connect, poolclass=NullPool
        )
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            migrations.upgrade(connection, self.url)
            connection.commit()

    def _connect(self) -> Any:
        connection = self._driver.connect(
            str(self.path), timeout=_BUSY / 1000, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA secure_delete = FAST")
        return connection

    def _make_engine(self) -> Engine:
        engine = create_engine(
            "sqlite://",
            module=self._driver,
            creator=self._connect,
            poolclass=QueuePool,
            pool_size=4,
            max_overflow=12,
        )

        @event.listens_for(engine, "connect")
        def _only_read(connection: Any, _: object) -> None:
            connection.execute("PRAGMA query_only = ON")

        return engine

    def close(self) -> None:
        with self._write_lock:
            self._engine.dispose()
            if self._writing is not None:
                with suppress(self._driver.Error):
                    self._writing.close()
                self._writing = None
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def ping(self) -> None:
        with self._write_lock, self._errors():
            if self.owner and self._lock is None:
                raise StoreDown("the store is closed")
            self._check_file()
            with suppress(self._driver.Error):
                self._writing.close()
            self._writing = self._connect()
            self._ends.clear()
            with self._transaction() as cursor:
                cursor.execute(
                    "INSERT INTO meta (key, value) VALUES ('ping', '1') "
                    "ON CONFLICT (key) DO UPDATE SET value = value + 1"
                )

    def sizes(self) -> dict[str, int]:
        found = {"bytes": self.path, "wal_bytes": Path(f"{self.path}-wal")}
        sizes = {name: path.stat().st_size for name, path in found.items() if path.exists()}
        return {**sizes, "free_bytes": shutil.disk_usage(self.path.parent).free}

    def copy_to(self, target: Path) -> None:
        """A copy of the whole store as it is now, also while it is being written to.

        The copy is a store of its own: to restore it, put it in the place of the other.
        """
        part = Path(f"{target}.part")
        with self._errors():
            part.unlink(missing_ok=True)
            create_private(part)
            connection = self._connect()
            try:
                connection.execute("VACUUM INTO ?", (str(part),))
            finally:
                connection.close()
            self._unchecked(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, target)

    def _unchecked(self, copy: Path) -> None:
        """A copy has not been checked, whatever was found in the store that it is of."""
        connection = self._driver.connect(str(copy), isolation_level=None)
        try:
            tables = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
            if connection.execute(tables).fetchone() is not None:
                connection.execute(f"DELETE FROM meta WHERE key LIKE '{VERIFIED}%'")
        finally:
            connection.close()

    def scrub(self) -> bool | None:
        with self._errors():
            connection = self._connect()
            try:
                connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_BUSY}")
                (busy, *_), *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                return not busy
            finally:
                connection.close()

    def write(self, changes: Sequence[Change]) -> None:
        """Make the changes as one transaction; whole pages of what is erased are overwritten.

        For everything else that would be too slow: parts of pages are overwritten in any case.
        """
        if not any(map(_erases, changes)):
            super().write(changes)
            return
        with self._write_lock, self._errors():
            if self._writing is not None:
                self._writing.execute("PRAGMA secure_delete = ON")
            try:
                super().write(changes)
            finally:
                if self._writing is not None:
                    self._writing.execute("PRAGMA secure_delete = FAST")

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        if self._writing is None:
            raise StoreDown("the store is closed")
        self._check_file()
        cursor = self._writing.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        try:
            yield cursor
            cursor.execute("COMMIT")
        except BaseException:
            with suppress(self._driver.Error):
                cursor.execute("ROLLBACK")
            raise
        finally:
            cursor.close()

    def _many(self, cursor: Any, step: Step) -> int:
        sql, rows = step.statement.sql, step.rows
        if step.statement.table is not None and len(rows) >= _BATCH:
            several = _together(sql)
            end = len(rows) - len(rows) % _BATCH
            for start in range(0, end, _BATCH):
                some = rows[start : start + _BATCH]
                cursor.execute(several, tuple(chain.from_iterable(some)))
            rows = rows[end:]
        cursor.executemany(sql, rows)
        return int(cursor.rowcount)

    def _hold(self) -> Connection:
        connection = self._engine.connect()
        connection.exec_driver_sql("BEGIN")
        return connection

    def _check_file(self) -> None:
        """Refuse a file that was deleted or replaced: what is written to it would be lost."""
        if self._stat() != self._identity:
            raise StoreDown(f"{self.path} is not the file that was opened: put it back")

    def _stat(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise StoreDown(f"{self.path} cannot be reached: {error.strerror}") from None
        return found.st_dev, found.st_ino

    def _translated(self, error: BaseException) -> StoreError:
        if isinstance(error, self._driver.IntegrityError):
            return StoreError(f"the store refused it: {error}")
        damaged = "could not decode" in str(error).lower()  # some bytes of a text have changed
        if isinstance(error, self._driver.OperationalError) and not damaged:
            hint = "" if os.access(self.path, os.R_OK | os.W_OK) else f". {OWNER}"
            return StoreDown(f"SQLite cannot use {self.path} for now: {error}{hint}")
        return StoreError(f"{self.path} cannot be used as a store: {error}")


class TemporaryStorage(SqliteStorage):
    """A store that lives as long as it is open: `memory:`.

    It is a SQLite file in a folder of its own, in memory where the machine has a folder for that,
    because readers of a database without a file wait for writers. The folder goes when the store
    is closed or Python ends.

    >>> from venire.server.store import Insert, StreamRow
    >>> with TemporaryStorage() as storage:
    ...     storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    ...     print(storage.streams()[0].name)
    posts
    """

    _synchronous = "OFF"

    def __init__(self) -> None:
        in_memory = os.access(_SHARED_MEMORY, os.W_OK)
        folder = tempfile.mkdtemp(prefix="venire-", dir=_SHARED_MEMORY if in_memory else None)
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        path = Path(folder) / "venire.db"
        create_private(path)
        path.write_bytes(_empty_store())
        super().__init__(URL.create("sqlite", database=str(path)))
        self.url = "memory:"

    def close(self) -> None:
        super().close()
        self._remove()


@cache
def _empty_store() -> bytes:
    """The file of a store with nothing in it: migrations run once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "venire.db"
        SqliteStorage(URL.create("sqlite", database=str(path))).close()
        return path.read_bytes()


def _resolved(database: str) -> Path:
    """The file itself, by whatever link it was named: the lock is on that."""
    try:
        return Path(database).resolve()
    except (OSError, RuntimeError) as error:  # links in a circle
        raise StoreError(f"{database} cannot be found: {error}") from None


def _erases(change: Change) -> bool:
    """Whether what a change removes must not be found in the file any more.

    What is archived may be erased there later.
    """
    return isinstance(change, ErasePayload | EraseArchived | PurgeStream | DropHistory)


@lru_cache(maxsize=16)
def _together(insert: str) -> str:
    """An insert of one row made into one of several."""
    head, _, values = insert.partition(" VALUES ")
    return f"{head} VALUES {', '.join([values] * _BATCH)}"


def _driver() -> Any:
    """`pysqlite3` if it is there, else Python's own, with a warning where that is unsafe."""
    if sys.platform == "linux":
        with suppress(ImportError):
            return importlib.import_module("pysqlite3")
    import sqlite3

    if sqlite3.sqlite_version_info < _SOUND:
        wanted = ".".join(map(str, _SOUND))
        warnings.warn(
            f"SQLite {sqlite3.sqlite_version} may damage its write-ahead log, {wanted} does not: "
            "pip install pysqlite3, or a newer Python",
            stacklevel=4,
        )
    return sqlite3
