"""A store in PostgreSQL, through psycopg 3.

One connection writes, and holds an advisory lock of the database, so that a second server on the
same database is refused. When it is lost, nothing can be written until `ping` has made another
and holds the lock again: by then whatever the lost one was doing is either done or undone, and
what is read is what there is. Reads have a pool of their own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, create_engine, exc
from sqlalchemy.engine import URL

from venire.errors import MissingExtra, StoreDown, StoreError
from venire.storage.sql import schema
from venire.storage.sql.statements import Step
from venire.storage.sql.tables import metadata
from venire.storage.sql.writing import SqlStorage

try:
    import psycopg
except ImportError:  # pragma: no cover
    raise MissingExtra("psycopg", "postgres") from None

__all__ = ["PostgresStorage"]

#: The advisory lock of the owner of the store: "venire" as a number.
_LOCK = int.from_bytes(b"venire", "big")

#: Milliseconds to wait for it: the database may not have noticed yet that the process or the
#: connection that held it is gone.
_LOCK_TIMEOUT = 3000

#: From this many rows on, COPY is used instead of INSERT.
_COPY = 50

_CONNECT = {
    "connect_timeout": 5,
    "client_encoding": "utf8",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "venire",
}


class PostgresStorage(SqlStorage):
    """A store in the tables of a PostgreSQL database."""

    def __init__(self, url: URL, owner: bool = True) -> None:
        self.url, self.owner = url.render_as_string(hide_password=True), owner
        plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._address = psycopg.conninfo.conninfo_to_dict(plain)
        self._engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            pool_size=4,
            max_overflow=12,
            pool_pre_ping=True,
        )
        self._write_lock = threading.RLock()
        self._ends = {}
        self._writing: psycopg.Connection[Any] | None = None
        self._closed = False
        try:
            with self._errors():
                self._writing = self._take()
                self._prepare()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**{**_CONNECT, **self._address})  # type: ignore[arg-type]

    def _take(self) -> psycopg.Connection[Any]:
        """A connection to write by, with the lock if this is the owner."""
        connection = self._connect()
        try:
            connection.autocommit = True
            if self.owner:
                self._own(connection)
            connection.execute("SET lock_timeout = '10s'")
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _own(self, connection: psycopg.Connection[Any]) -> None:
        """Take the lock of the owner; `StoreError` if another server has it."""
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{_LOCK_TIMEOUT}ms",))
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        except psycopg.errors.LockNotAvailable:
            raise StoreError(
                f"the store {self.url} is in use by another server: stop it first, "
                "or give this one a database of its own"
            ) from None

    def _prepare(self) -> None:
        with self._engine.begin() as connection:
            version = schema.version_of(connection)
            if not schema.check_version(version, self.url):
                return
            if not self.owner:
                raise StoreError(
                    f"the store {self.url} is of schema {version or 'none'}, this venire writes "
                    f"{schema.HEAD}: start venire serve once, which makes or upgrades it"
                )
            schema.upgrade(connection)

    def close(self) -> None:
        """Close all connections, and let others own the store."""
        self._closed = True
        with self._write_lock:
            self._engine.dispose()
            if self._writing is not None:
                self._writing.close()
                self._writing = None

    def ping(self) -> None:
        """Write something small, on a new connection if the old one is lost."""
        with self._write_lock, self._errors():
            if self._closed:
                raise StoreDown("the store is closed")
            self._ends.clear()
            if self._writing is not None and not self._writing.broken:
                with suppress(psycopg.Error):
                    self._writable(self._writing)
                    return
            if self._writing is not None:
                self._writing.close()
                self._writing = None
            try:
                self._writing = self._take()
            except StoreError as error:
                # Held by the lost connection, whose end the database has not noticed yet.
                raise StoreDown(str(error)) from error
            self._writable(self._writing)

    def sizes(self) -> dict[str, int]:
        """The database, with whatever else is in it."""
        with self._connection() as connection:
            found = connection.exec_driver_sql("SELECT pg_database_size(current_database())")
            return {"bytes": int(found.scalar() or 0)}

    @staticmethod
    def _writable(connection: psycopg.Connection[Any]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO meta (key, value) VALUES ('ping', '1') ON CONFLICT (key) "
                "DO UPDATE SET value = (meta.value::bigint + 1)::text"
            )

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        if self._writing is None:
            raise StoreDown("the connection to the store is lost")
        with self._writing.transaction(), self._writing.cursor() as cursor:
            yield cursor

    def _many(self, cursor: Any, step: Step) -> int:
        table, rows = step.statement.table, step.rows
        if table is not None and len(rows) >= _COPY:
            with cursor.copy(_copying(table)) as copy:
                for row in rows:
                    copy.write_row(row)
        elif len(rows) == 1:
            cursor.execute(_for_psycopg(step.statement.sql), rows[0])
        else:
            cursor.executemany(_for_psycopg(step.statement.sql), rows)
        return int(cursor.rowcount)

    def _hold(self) -> Connection:
        connection = self._engine.connect()
        return connection.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.Error, exc.DBAPIError) as error:
            raise _translated(getattr(error, "orig", None) or error) from error
        except exc.TimeoutError as error:
            raise StoreDown("all connections to the store are in use") from error
        except UnicodeEncodeError as error:
            raise StoreError(f"got text that is not Unicode: {error.reason}") from error


def _translated(error: BaseException) -> StoreError:
    text = " ".join(str(error).split())
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreDown(f"PostgreSQL cannot be used for now: {text}")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreDown(f"PostgreSQL is read-only for now: {text}")
    return StoreError(f"the store refused it: {text}")


@lru_cache(maxsize=64)
def _for_psycopg(sql: str) -> str:
    return sql.replace("?", "%s")


@lru_cache(maxsize=16)
def _copying(table: str) -> str:
    columns = ", ".join(column.name for column in metadata.tables[table].columns)
    return f"COPY {table} ({columns}) FROM STDIN"
