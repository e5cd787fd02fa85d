"""The servers on a store in PostgreSQL: who owns it, or shares it, and who owns which stream.

Rows say so, in tables that only venire's role may write: `servers` has one for each session in
which a server writes, `claims` one for each stream that is claimed. A row holds for as long as its
session lives, that is, while `pg_stat_activity` has a session of its number, role and begin, which
nobody can forge. PostgreSQL ends the transaction of a session before it leaves that list: once the
owner of a stream is gone, nothing of it can be committed any more. So a commit in the session
proves that it held its claims, and no clocks are compared. Advisory locks would be as good if they
were not for everybody: any role that may connect can take them, under any name.

PostgreSQL's time-outs end a session that waits for its client, but not between the messages of a
pipeline or of COPY. So whoever wants to own something, or looks at the members, has PostgreSQL end
a session that waits for its client in the middle of something for as long as that, by PostgreSQL's
clock. A long write is therefore many statements, each of them short.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any, Final, NamedTuple

import psycopg

from venire.errors import InputError
from venire.server.store.ownership import Members, lock_of

#: The session of an owner ends after this number of seconds of silence. It says something every
#: second; who has not for `QUIET` seconds is not expected to claim anything.
SILENT: Final = 10
QUIET: Final = 2
HEARTBEAT: Final = 1.0

#: The advisory lock of servers before schema 0013.
_OLD_LOCK: Final = int.from_bytes(b"venire", "big")

#: Of the session of an owner: by these PostgreSQL notices that the process or its host is gone.
#: An older version does not have all of them.
_TIMEOUTS: Final = {
    "idle_session_timeout": f"{SILENT}s",
    "idle_in_transaction_session_timeout": f"{SILENT}s",
    "tcp_keepalives_idle": "4",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": f"{SILENT}s",
}

#: Of a session that only reads: if it is lost, others may need its place. One in use is never idle
#: for so long, and one of the pool is made anew.
IDLE: Final = "30s"

_BEGAN: Final = "(extract(epoch FROM a.backend_start) * 1000000)::bigint"

#: The session `a` is that of the row `s`. The begin is hidden from other roles: a session of the
#: same number and role is then taken for the same.
_SAME: Final = f"a.pid = s.pid AND a.usesysid = s.role AND coalesce({_BEGAN} = s.began, true)"

_WAITING: Final = """
a.wait_event IN ('ClientRead', 'ClientWrite') AND clock_timestamp() - a.state_change > interval"""

MEMBERS: Final = f"""
SELECT s.pid, s.address, s.secret, s.leaving OR coalesce({_WAITING} '{QUIET} s', false),
array(SELECT stream FROM claims WHERE claims.pid = s.pid)
FROM servers s JOIN pg_stat_activity a ON {_SAME} WHERE s.address <> ''
"""

END_SILENT: Final = f"""
SELECT pg_terminate_backend(a.pid) FROM servers s JOIN pg_stat_activity a ON {_SAME}
WHERE a.pid <> pg_backend_pid() AND {_WAITING} '{SILENT} s'
"""

#: One at a time: whoever becomes a server or claims something, once the gone are forgotten.
_IN_TURN: Final = f"""
LOCK TABLE servers IN SHARE ROW EXCLUSIVE MODE;
DELETE FROM servers s WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE {_SAME});
"""

_JOIN: Final = f"""
INSERT INTO servers (pid, role, began, address, secret, leaving)
SELECT a.pid, a.usesysid::bigint, {_BEGAN}, %(address)s, %(secret)s, false
FROM pg_stat_activity a WHERE a.pid = pg_backend_pid()
AND NOT EXISTS (SELECT 1 FROM servers WHERE address = '' OR %(address)s = '')
"""

_CLAIM: Final = """
INSERT INTO claims (stream, pid) VALUES (%(stream)s, pg_backend_pid()) ON CONFLICT DO NOTHING
"""

#: Whether a server of an older version has the store: one whose role may write to it.
_OLD_SERVERS: Final = f"""
SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND (classid::bigint << 32) | objid::bigint = {_OLD_LOCK}
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND has_table_privilege(usesysid, 'events', 'INSERT')
"""

_SERVERS: Final = f"SELECT count(*) FROM servers s JOIN pg_stat_activity a ON {_SAME}"

Session = psycopg.Connection[Any]


class Row(NamedTuple):
    """A row of `MEMBERS`."""

    pid: int
    address: str
    secret: str
    takes_nothing: bool
    streams: list[str]


def set_timeouts(session: Session) -> None:
    """Let PostgreSQL end a session that says nothing."""
    for name, value in _TIMEOUTS.items():
        session.execute(
            "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s", (value, name)
        )


def set_idle_timeout(session: Session) -> None:
    """Let PostgreSQL end a session that reads nothing any more: nobody may be at its other end."""
    session.execute(
        "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = 'idle_session_timeout'",
        (IDLE,),
    )
    session.commit()


def check_address(address: str) -> None:
    """Refuse what is no address of a server.

    >>> check_address("http://10.0.0.7:8400")
    """
    if not address.isascii() or not address.startswith(("http://", "https://")):
        raise InputError(f"got the address {address!r}, expected http://HOST:PORT")


def in_use(connection: Any) -> bool:
    """Whether any server has the store, of this version or of an older one."""
    connection.exec_driver_sql("SELECT pg_stat_clear_snapshot()")  # as it is now
    asked = [_OLD_SERVERS]
    if connection.exec_driver_sql("SELECT to_regclass('servers')").scalar() is not None:
        asked.append(_SERVERS)
    return any(connection.exec_driver_sql(query).scalar() for query in asked)


def join(session: Session, address: str, secret: str) -> bool:
    """Become a server, beside those that share the store, or alone if there is no address.

    False if another one has it alone, or anybody who would be alone.
    """
    return _in_turn(session, _JOIN, {"address": address, "secret": secret})


def end_earlier(session: Session, secret: str) -> None:
    """End the sessions that a server had before: their connections are lost."""
    session.execute(
        f"SELECT pg_terminate_backend(a.pid) FROM servers s JOIN pg_stat_activity a ON {_SAME} "
        "WHERE s.secret = %s AND s.pid <> pg_backend_pid()".encode(),
        (secret,),
    )


def resign(session: Session) -> None:
    """Stay a server of those that share the store, but one that claims nothing more."""
    session.execute("UPDATE servers SET leaving = true WHERE pid = pg_backend_pid()")


def try_claim(session: Session, stream: str) -> bool:
    return _in_turn(session, _CLAIM, {"stream": stream})


def _in_turn(session: Session, insert: str, values: dict[str, str]) -> bool:
    """Insert a row while nobody else does; whether that was possible.

    All of it is one message: a connection that is lost in the middle would keep the others
    waiting, until PostgreSQL notices.
    """
    with psycopg.ClientCursor(session) as cursor:
        cursor.execute(f"{_IN_TURN}{insert}".encode(), values)
        while cursor.nextset():
            pass
        return cursor.rowcount == 1


def unclaim(session: Session, stream: str) -> None:
    session.execute("DELETE FROM claims WHERE stream = %s AND pid = pg_backend_pid()", (stream,))


def members(rows: list[Row], me: int) -> Members:
    """The members by the rows of `MEMBERS`.

    >>> found = members([Row(7, "http://a:1", "x", False, ["posts"]),
    ...                  Row(8, "http://b:1", "y", True, [])], 7)
    >>> found.addresses, found.owner("posts"), found.not_taking
    ({7: 'http://a:1', 8: 'http://b:1'}, 7, frozenset({8}))
    """
    return Members(
        me,
        {row.pid: row.address for row in rows},
        {lock_of(stream): row.pid for row in rows for stream in row.streams},
        frozenset(row.pid for row in rows if row.takes_nothing),
        {row.pid: row.secret for row in rows},
    )


#: How many times a second psycopg says that nothing has come.
_STEPS: Final = 10

#: Seconds without a word after which PostgreSQL is asked, and those for what may be on its way
#: when it says that it has answered.
SILENCE: Final = 4
_ON_ITS_WAY: Final = 1

#: What every connection has; the address of the store may say otherwise.
CONNECT: Final[dict[str, Any]] = {
    "connect_timeout": 4,
    "client_encoding": "utf8",
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "venire",
}

_WORKS: Final = """
SELECT state = 'active' AND coalesce(wait_event_type, '') <> 'Client'
FROM pg_stat_activity WHERE pid = %s
"""


class Silent(psycopg.OperationalError):
    """PostgreSQL does not answer."""


class Connection(psycopg.Connection[Any]):
    """A connection whose waits end: `to` makes one."""

    _address: dict[str, Any] | None = None
    _closing: threading.Event | None = None
    _steps = _reassured = 0  # for how long nothing has come, and when PostgreSQL was last at work

    @classmethod
    def to(cls, address: dict[str, Any], closing: threading.Event) -> Connection:
        """Connect; once `closing` is set nothing is waited for any more."""
        made = cls.connect(**{**CONNECT, **address})
        made._address, made._closing = address, closing
        return made

    @property
    def silent(self) -> bool:
        """Whether an answer is waited for that should have come."""
        return self._steps >= SILENCE * _STEPS

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **more: Any) -> Any:
        """Do a part of the conversation, as psycopg has it; `Silent` if there is none."""
        try:
            return super().wait(self._listening(gen), *args, **more)
        except Silent:
            self.close()
            raise
        finally:
            self._steps = self._reassured = 0

    def _listening(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            state = next(gen)
            while True:
                ready = yield state
                if ready:
                    self._steps = self._reassured = 0
                else:
                    self._nothing_came()
                state = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _nothing_came(self) -> None:
        self._steps += 1
        if self._closing is not None and self._closing.is_set():
            raise Silent("the store is being closed")
        doubts = self._steps - self._reassured - SILENCE * _STEPS
        if doubts == 0 and self._works():
            self._reassured = self._steps
        elif doubts >= _ON_ITS_WAY * _STEPS:
            raise Silent(f"PostgreSQL has not answered for {SILENCE} s")

    def _works(self) -> bool:
        """Whether PostgreSQL works for this session, or has no connection to spare to ask by."""
        if self._address is None:  # this is the one to ask by
            raise Silent(f"PostgreSQL has not answered for {SILENCE} s")
        hasty = {**CONNECT, **self._address, "connect_timeout": 2}
        try:
            with Connection.connect(**hasty, autocommit=True) as other:
                found = other.execute(_WORKS, (self.info.backend_pid,)).fetchone()
        except psycopg.Error as error:
            if "FATAL" in str(error):  # it answers: while it refuses, there is nothing better
                return True
            raise Silent(
                f"PostgreSQL has not answered for {SILENCE} s, and cannot be asked why: {error}"
            ) from None
        return found is not None and bool(found[0])
