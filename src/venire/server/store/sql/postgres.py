"""A store in PostgreSQL, through psycopg 3.

One connection writes, and its session is a row among the servers of the store, so that a second
server on the same database is refused. When it is lost, nothing can be written until `ping` has
made another, and its row: by then whatever the lost one was doing is either done or undone, and
what is read is what there is. Reads have a pool of their own.

A session that says nothing for ten seconds is ended by PostgreSQL, and what it owned is free: that
of a process that was stopped, or of a host that is gone. A thread says something every second. So a
commit on the session proves that it still owns the store, and no clocks are compared. (Where its
time-outs do not reach, others have it end the session: see `servers`.) A database that says nothing
to us is noticed as well (`patient`).

Several servers may share the streams out among themselves: each then has a row beside the others,
and one for each stream that it claimed (`servers`).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, create_engine, exc

from venire.errors import InputError, MissingExtra, StoreDown, StoreError, StoreInUse
from venire.server.store.changes import Change
from venire.server.store.ownership import Members
from venire.server.store.sql import migrations
from venire.server.store.sql.statements import TOUCH_KEY, Step
from venire.server.store.sql.storage import Storage
from venire.server.store.sql.tables import metadata

try:
    import psycopg
except ImportError:  # pragma: no cover
    raise MissingExtra("psycopg", "postgres") from None

from venire.server.store.sql import servers
from venire.server.store.sql.servers import Connection as Session

#: Milliseconds to wait for the store: the database may not have noticed yet that the process or the
#: connection that had it is gone; and those between two looks.
_LOCK_TIMEOUT = 3000
_LOOK: Final = 100

#: How often a transaction is tried that PostgreSQL gave up for another one.
_TRIES = 3

#: Seconds after the first time, and twice as many after the second: at once it may meet the other
#: transaction again, which was woken just now.
_PAUSE = 0.2

#: From this many rows on, COPY is used instead of INSERT; and the most rows of one COPY, so that
#: a long write says something now and then: a session in one COPY is taken for silent (`servers`).
_COPY, _COPY_MOST = 50, 5_000


class PostgresStorage(Storage):
    """A store in the tables of a PostgreSQL database."""

    _driver_error = psycopg.Error

    def __init__(self, url: str, owner: bool = True, address: str | None = None) -> None:
        self._address = _address(url)
        self.url, self.owner = _shown(self._address), owner
        self.shared, self._member = address is not None, address or ""
        self._claimed: frozenset[str] = frozenset()  # replaced as a whole: the loop reads it
        self._pid, self._secret = 0, secrets.token_hex(32)
        self._fault = "PostgreSQL cannot be used for now: the connection is closed"
        self._connecting, self._failures = threading.Lock(), 0
        self._engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            pool_size=4,
            max_overflow=12,
            pool_timeout=10,
            pool_pre_ping=True,
        )
        self._write_lock = threading.RLock()
        self._ends = {}
        self._writing: Session | None = None
        self._closed = threading.Event()
        try:
            with self._errors():
                if self.shared:
                    servers.check_address(self._member)
                self._prepare()
                self._writing = self._take()
            if owner:
                threading.Thread(
                    target=self._say_something, name="venire-pulse", daemon=True
                ).start()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Session:
        """A connection to read by; who waits while another fails to get one fails with it."""
        failures = self._failures
        with self._connecting:
            if self._failures != failures:
                raise psycopg.OperationalError("no connection could be made a moment ago")
            try:
                made = Session.to(self._address, self._closed)
                servers.set_idle_timeout(made)
                return made
            except psycopg.Error:
                self._failures += 1
                raise

    def _take(self) -> Session:
        """A connection to write by, with the store if this is the owner."""
        connection = Session.to(self._address, self._closed)
        try:
            connection.autocommit = True
            if self.owner:
                self._check_direct(connection)
                servers.set_timeouts(connection)
                self._own(connection)
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

    def _own(self, connection: Session) -> None:
        """Own the store, or share it; `StoreInUse` if another server has it."""
        connection.execute("SELECT set_config('lock_timeout', %s, false)", (f"{_LOCK_TIMEOUT}ms",))
        servers.end_earlier(connection, self._secret)
        for _ in range(0, _LOCK_TIMEOUT, _LOOK):
            with suppress(psycopg.errors.LockNotAvailable):
                if servers.join(connection, self._member, self._secret):
                    return self._check_version(connection)
            self._closed.wait(_LOOK / 1000)
        connection.execute(servers.END_SILENT)  # for the next attempt
        raise self._in_use()

    def _check_version(self, connection: Session) -> None:
        """See that no newer version has upgraded the store before this one had it."""
        asked = f"SELECT version_num FROM {migrations.VERSION_TABLE}".encode()
        if (found := connection.execute(asked).fetchone()) is not None:
            migrations.needs_upgrade(found[0], self.url)

    def _in_use(self) -> StoreInUse:
        return StoreInUse(
            f"the store {self.url} is in use by another server: stop it first, "
            "or give this one a database of its own"
        )

    def _check_direct(self, connection: Session) -> None:
        """Refuse a pooler: behind one the session is not this process's, or outlives it."""
        found = connection.execute("SELECT pg_backend_pid()").fetchone()
        if found is not None and found[0] != connection.info.backend_pid:
            raise StoreError(
                f"the store {self.url} is behind a connection pooler, which breaks what keeps two "
                "servers apart: give the address of PostgreSQL itself"
            )

    def _say_something(self) -> None:
        """Keep the session of the owner alive, as long as this process is."""
        while not self._closed.wait(servers.HEARTBEAT):
            if self._write_lock.acquire(blocking=False):  # whoever has it says something
                try:
                    if self._writing is not None and not self._writing.closed:
                        self._writing.execute("SELECT 1")
                except psycopg.Error as error:
                    self._fault = str(self._translated(error))
                finally:
                    self._write_lock.release()

    def _prepare(self) -> None:
        """Make the store, or upgrade it while no server has it."""
        with self._engine.begin() as connection:
            version = migrations.version_of(connection)
            if not migrations.needs_upgrade(version, self.url):
                return
            if not self.owner:
                raise StoreError(
                    f"the store {self.url} is of schema {version or 'none'}, this venire writes "
                    f"{migrations.HEAD}: start venire serve once, which makes or upgrades it"
                )
            try:
                if version is not None and not self._alone(connection):
                    return
                migrations.upgrade(connection, self.url)
            except exc.DBAPIError as error:
                if isinstance(error.orig, _BESIDE):
                    raise self._in_use() from None
                raise

    def _alone(self, connection: Connection) -> bool:
        """See that no server has the store that is upgraded; whether it still has to be."""
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_LOCK_TIMEOUT}")
        connection.exec_driver_sql(
            f"LOCK TABLE {migrations.VERSION_TABLE} IN ACCESS EXCLUSIVE MODE"
        )
        if not migrations.needs_upgrade(migrations.version_of(connection), self.url):
            return False
        for _ in range(0, _LOCK_TIMEOUT, _LOOK):
            if not servers.in_use(connection):
                return True
            self._closed.wait(_LOOK / 1000)
        raise self._in_use()

    # the streams of several servers

    def holds(self, stream: str) -> bool:
        return not self.shared or stream in self._claimed

    def claims(self) -> frozenset[str]:
        return self._claimed

    def claim(self, stream: str) -> bool:
        if not self.shared or stream in self._claimed:
            return True
        with self._write_lock, self._errors():
            if self._writing is None or not servers.try_claim(self._writing, stream):
                return False
            self._ends.pop(stream, None)  # others may have written since
            self._claimed |= {stream}
            return True

    def disclaim(self, stream: str) -> None:
        with self._write_lock, self._errors():
            if stream in self._claimed:
                self._claimed -= {stream}
                if self._writing is not None:
                    servers.unclaim(self._writing, stream)

    def resign(self) -> None:
        with self._write_lock, self._errors():
            if self.shared and self._writing is not None:
                servers.resign(self._writing)

    @property
    def session(self) -> int:
        return self._pid

    @property
    def secret(self) -> str:
        return self._secret

    @property
    def lost(self) -> str | None:
        gone = (writing := self._writing) is None or writing.closed
        return self._fault if gone else None

    @property
    def silent(self) -> bool:
        return (writing := self._writing) is None or writing.closed or writing.silent

    def members(self) -> Members:
        me = self._pid
        with self._connection() as connection:
            if self.shared:
                connection.exec_driver_sql(servers.END_SILENT)
            rows = connection.exec_driver_sql(servers.MEMBERS).all()
        return servers.members([servers.Row(*row) for row in rows], me)

    @contextmanager
    def starting(self) -> Iterator[None]:
        if not self.shared:
            yield
            return
        with self._errors():
            connection = Session.to(self._address, self._closed)
            try:
                servers.set_timeouts(connection)
                connection.execute(
                    f"LOCK TABLE {migrations.VERSION_TABLE} IN SHARE ROW EXCLUSIVE MODE".encode()
                )
                yield
            finally:
                connection.close()

    def abandon(self) -> None:
        self._closed.set()

    def close(self) -> None:
        self.abandon()
        with self._write_lock:
            self._engine.dispose()
            if self._writing is not None:
                self._writing.close()
                self._writing = None

    def ping(self) -> None:
        with self._write_lock, self._errors():
            if self._closed.is_set():
                raise StoreDown("the store is closed")
            self._ends.clear()
            if self._writing is not None and not self._writing.closed:
                with suppress(psycopg.Error):
                    self._writable(self._writing)
                    return
            if self._writing is not None:
                self._writing.close()
                self._writing = None
            try:
                self._writing = self._take()
            except StoreError as error:
                # By the lost connection, whose end the database has not noticed yet.
                raise StoreDown(str(error)) from error
            self._writable(self._writing)

    def sizes(self) -> dict[str, int]:
        with self._connection() as connection:
            found = connection.exec_driver_sql("SELECT pg_database_size(current_database())")
            return {"bytes": int(found.scalar() or 0)}

    @staticmethod
    def _writable(connection: Session) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO meta (key, value) VALUES ('ping', '1') ON CONFLICT (key) "
                "DO UPDATE SET value = (meta.value::bigint + 1)::text"
            )

    def write(self, changes: Sequence[Change]) -> None:
        for left in reversed(range(_TRIES)):
            try:
                return super().write(changes)
            except StoreError as error:
                if not left or not isinstance(error.__cause__, psycopg.errors.DeadlockDetected):
                    raise
            self._closed.wait(_PAUSE * (_TRIES - left))

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

    def _translated(self, error: BaseException) -> StoreError:
        text = " ".join(str(error).split())
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return StoreDown(f"PostgreSQL cannot be used for now: {text}")
        if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            return StoreDown(f"PostgreSQL is read-only for now: {text}")
        if getattr(error, "sqlstate", None) in _ENDED:
            return StoreDown(f"PostgreSQL has ended the session: {text}")
        return StoreError(f"the store refused it: {text}")


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


#: How it fails that two make or upgrade a store at the same time.
_BESIDE: Final = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.LockNotAvailable,
)

#: The codes of time-outs within a transaction, which end the session.
_ENDED: Final = frozenset({"25P03", "25P04"})


@lru_cache(maxsize=64)
def _for_psycopg(sql: str) -> str:
    """The statement with the placeholders of psycopg.

    That a key was used is not worth waiting for another server that says so too, and is stopped.
    """
    if sql == TOUCH_KEY:
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
