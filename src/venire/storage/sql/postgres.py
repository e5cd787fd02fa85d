"""A store in PostgreSQL, through psycopg 3.

One connection writes, and holds an advisory lock of the database, so that a second server on the
same database is refused. When it is lost, nothing can be written until `ping` has made another
and holds the lock again: by then whatever the lost one was doing is either done or undone, and
what is read is what there is. Reads have a pool of their own.

A session that says nothing for ten seconds is ended by PostgreSQL, and its lock with it: that of a
process that was stopped, or of a host that is gone. A thread says something every three. So a
commit on the session proves that it still owns the store, and no clocks are compared. (Where its
time-outs do not reach, others have it end the session: see `locks`.)

Several servers may share the streams out among themselves: each then holds the lock of the store
together with the others, and one for each stream that it claimed, in the same session (`locks`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, create_engine, exc

from venire.errors import InputError, MissingExtra, StoreDown, StoreError, StoreInUse
from venire.storage.changes import Change
from venire.storage.ownership import Members
from venire.storage.sql import schema
from venire.storage.sql.statements import TOUCH, Step
from venire.storage.sql.tables import metadata
from venire.storage.sql.writing import SqlStorage

try:
    import psycopg
except ImportError:  # pragma: no cover
    raise MissingExtra("psycopg", "postgres") from None

from venire.storage.sql import locks

__all__ = ["PostgresStorage"]

#: Milliseconds to wait for the lock of the store: the database may not have noticed yet that the
#: process or the connection that held it is gone.
_LOCK_TIMEOUT = 3000

#: How often a transaction is tried that PostgreSQL gave up for another one.
_TRIES = 3

#: From this many rows on, COPY is used instead of INSERT; and the most rows of one COPY, so that
#: a long write says something now and then: others take a session in one COPY for silent (`locks`).
_COPY, _COPY_MOST = 50, 5_000

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

    def __init__(self, url: str, owner: bool = True, address: str | None = None) -> None:
        self._address = _address(url)
        self.url, self.owner = _shown(self._address), owner
        self.shared, self._member = address is not None, address or ""
        self._claimed: frozenset[str] = frozenset()  # replaced as a whole: the loop reads it
        self._pid = 0
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
        self._closed = threading.Event()
        try:
            with self._errors():
                if self.shared:
                    locks.check_address(self._member)
                    self._prepare_alone()
                self._writing = self._take()
                if not self.shared:
                    self._prepare()
            if owner:
                threading.Thread(
                    target=self._say_something, name="venire-pulse", daemon=True
                ).start()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(**{**_CONNECT, **self._address})

    def _take(self) -> psycopg.Connection[Any]:
        """A connection to write by, with the lock if this is the owner."""
        connection = self._connect()
        try:
            connection.autocommit = True
            if self.owner:
                self._check_direct(connection)
                self._own(connection)
                locks.set_timeouts(connection)
            connection.execute("SET lock_timeout = '10s'")
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', false) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
        except BaseException:
            connection.close()
            raise
        self._claimed = frozenset()  # they went with the session that held them
        self._pid = connection.info.backend_pid
        return connection

    def _own(self, connection: psycopg.Connection[Any], alone: bool = False) -> None:
        """Take the lock of the store, or share it; `StoreError` if another server has it alone."""
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{_LOCK_TIMEOUT}ms",))
        try:
            if self.shared and not alone:
                locks.join(connection, self._member)
            else:
                connection.execute("SELECT pg_advisory_lock(%s)", (locks.STORE,))
        except psycopg.errors.LockNotAvailable:
            connection.execute(locks.END_SILENT)  # for the next attempt
            raise StoreInUse(
                f"the store {self.url} is in use by another server: stop it first, "
                "or give this one a database of its own"
            ) from None

    def _check_direct(self, connection: psycopg.Connection[Any]) -> None:
        """Refuse a pooler: behind one the lock is not this process's, or outlives it."""
        found = connection.execute("SELECT pg_backend_pid()").fetchone()
        if found is not None and found[0] != connection.info.backend_pid:
            raise StoreError(
                f"the store {self.url} is behind a connection pooler, which breaks the lock that "
                "keeps two servers apart: give the address of PostgreSQL itself"
            )

    def _say_something(self) -> None:
        """Keep the session of the owner alive, as long as this process is."""
        while not self._closed.wait(locks.HEARTBEAT):
            with self._write_lock, suppress(psycopg.Error):
                if self._writing is not None:  # when it is lost, the next write says so
                    self._writing.execute("SELECT 1")

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

    def _prepare_alone(self) -> None:
        """Make or upgrade a store that is to be shared, while nobody else has it."""
        with self._engine.connect() as reading:
            if not schema.check_version(schema.version_of(reading), self.url):
                return
        with self._connect() as connection:
            connection.autocommit = True
            self._own(connection, alone=True)
            self._prepare()

    # the streams of several servers

    def holds(self, stream: str) -> bool:
        """Whether this server may write a stream, as far as it knows."""
        return not self.shared or stream in self._claimed

    def claims(self) -> frozenset[str]:
        """The streams that it has claimed."""
        return self._claimed

    def claim(self, stream: str) -> bool:
        """Claim a stream; False if another server has it."""
        if not self.shared or stream in self._claimed:
            return True
        with self._write_lock, self._errors():
            if self._writing is None or not locks.try_claim(self._writing, stream):
                return False
            self._ends.pop(stream, None)  # others may have written since
            self._claimed |= {stream}
            return True

    def disclaim(self, stream: str) -> None:
        """Let others claim a stream."""
        with self._write_lock, self._errors():
            if stream in self._claimed:
                self._claimed -= {stream}
                if self._writing is not None:
                    locks.unclaim(self._writing, stream)

    def resign(self) -> None:
        """Let the other servers know that this one will claim nothing more."""
        with self._write_lock, self._errors():
            if self.shared and self._writing is not None:
                locks.resign(self._writing)

    @property
    def session(self) -> int:
        """The number of the session in which this process writes."""
        return self._pid

    def members(self) -> Members:
        """The servers that share the store now."""
        me = self._pid
        with self._connection() as connection:
            if self.shared:
                connection.exec_driver_sql(locks.END_SILENT)
            rows = connection.exec_driver_sql(locks.HELD).all()
        return locks.members([tuple(row) for row in rows], me)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Inside, no other server that shares the store is inside."""
        if not self.shared:
            yield
            return
        with self._errors(), self._connect() as connection:
            connection.autocommit = True
            connection.execute("SELECT pg_advisory_lock(%s)", (locks.START,))
            locks.set_timeouts(connection)
            yield

    def close(self) -> None:
        """Close all connections, and let others own the store."""
        self._closed.set()
        with self._write_lock:
            self._engine.dispose()
            if self._writing is not None:
                self._writing.close()
                self._writing = None

    def ping(self) -> None:
        """Write something small, on a new connection if the old one is lost."""
        with self._write_lock, self._errors():
            if self._closed.is_set():
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

    def write(self, changes: Sequence[Change]) -> None:
        """Make the changes as one transaction; again if others stood in its way."""
        for left in reversed(range(_TRIES)):
            try:
                return super().write(changes)
            except StoreError as error:
                if not left or not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                    raise

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        if self._writing is None:
            raise StoreDown("the connection to the store is lost")
        with self._writing.transaction(), self._writing.cursor() as cursor:
            yield cursor

    def _many(self, cursor: Any, step: Step) -> int:
        table, rows = step.statement.table, step.rows
        if table is not None and len(rows) >= _COPY:
            parts = range(0, len(rows), _COPY_MOST)
            return sum(_copy(cursor, table, rows[n : n + _COPY_MOST]) for n in parts)
        if len(rows) == 1:
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


def _address(url: str) -> dict[str, Any]:
    """The parts of an address, as libpq reads it: several hosts too, for a failover pair.

    >>> _address("postgresql+psycopg://v@a:5432,b:5433/x?target_session_attrs=read-write")["host"]
    'a,b'
    """
    kind, _, rest = url.partition("://")
    try:
        return dict(psycopg.conninfo.conninfo_to_dict(f"postgresql://{rest}"))
    except psycopg.ProgrammingError as error:
        shown = f"{kind}://{rest.rpartition('@')[2]}"
        raise InputError(
            f"got the store {shown!r}, which is not a valid address: {error}"
        ) from None


def _shown(address: dict[str, Any]) -> str:
    """The address without what is secret.

    >>> _shown(_address("postgresql://v:secret@a:5432,b/x?sslmode=require"))
    'postgresql://v@a:5432,b/x'
    """
    hosts = str(address.get("host", "")).split(",")
    ports = str(address.get("port", "")).split(",")
    ports += [""] * (len(hosts) - len(ports))
    places = ",".join(f"{h}:{p}" if p else h for h, p in zip(hosts, ports, strict=False))
    user = f"{address['user']}@" if "user" in address else ""
    return f"postgresql://{user}{places}/{address.get('dbname', '')}"


#: The codes of time-outs within a transaction, which end the session.
_ENDED: Final = frozenset({"25P03", "25P04"})


def _translated(error: BaseException) -> StoreError:
    text = " ".join(str(error).split())
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreDown(f"PostgreSQL cannot be used for now: {text}")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreDown(f"PostgreSQL is read-only for now: {text}")
    if getattr(error, "sqlstate", None) in _ENDED:
        return StoreDown(f"PostgreSQL has ended the session: {text}")
    return StoreError(f"the store refused it: {text}")


@lru_cache(maxsize=64)
def _for_psycopg(sql: str) -> str:
    """The statement with the placeholders of psycopg.

    That a key was used is not worth waiting for another server that says so too, and is stopped.
    """
    if sql == TOUCH.sql:
        sql = sql.replace(
            "id = ?", "id = (SELECT id FROM keys WHERE id = ? FOR UPDATE SKIP LOCKED)"
        )
    return sql.replace("?", "%s")


def _copy(cursor: Any, table: str, rows: Sequence[Sequence[Any]]) -> int:
    with cursor.copy(_copying(table)) as copy:
        for row in rows:
            copy.write_row(row)
    return int(cursor.rowcount)


@lru_cache(maxsize=16)
def _copying(table: str) -> str:
    columns = ", ".join(column.name for column in metadata.tables[table].columns)
    return f"COPY {table} ({columns}) FROM STDIN"
