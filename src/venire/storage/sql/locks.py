"""The locks of servers in PostgreSQL: who owns a store, or shares it, and who owns which stream.

All are advisory locks of the session in which a server writes. The owner of a whole store holds
`STORE` alone; servers that share its streams out hold it together, with a lock for each stream
that they claimed, and `LEAVE` when they are about to go. The session bears the server's address in
its name. So `pg_locks` and `pg_stat_activity` are the list of the members, and PostgreSQL removes
who is gone.

PostgreSQL's time-outs end a session that waits for its client, but not between the messages of a
pipeline or of COPY. So whoever wants a lock, or looks at the members, has PostgreSQL end a session
that waits for its client in the middle of something for as long as that, by PostgreSQL's clock. A
long write is therefore many statements, each of them short.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

from venire.errors import InputError
from venire.storage.ownership import Members, lock_of

__all__ = [
    "END_SILENT",
    "HEARTBEAT",
    "HELD",
    "START",
    "STORE",
    "check_address",
    "join",
    "members",
    "resign",
    "set_timeouts",
    "try_claim",
    "unclaim",
]

#: The locks of the owner of the store, of the servers that start, and of those that leave: names
#: as numbers.
STORE: Final = int.from_bytes(b"venire", "big")
START: Final = int.from_bytes(b"vnstart", "big")
LEAVE: Final = int.from_bytes(b"vnleave", "big")

#: The session of an owner that says nothing for so many seconds ends. It says something every
#: second; who has not for `QUIET` seconds is not expected to claim anything.
SILENT: Final = 10
QUIET: Final = 2
HEARTBEAT: Final = 1.0

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

#: PostgreSQL keeps 63 bytes of a session's name.
_MARK, _LONGEST = "venire ", 63

_WAITING: Final = """
wait_event IN ('ClientRead', 'ClientWrite') AND clock_timestamp() - state_change > interval"""

HELD: Final = f"""
SELECT pid, (classid::bigint << 32) | objid::bigint, mode = 'ShareLock', application_name,
coalesce({_WAITING} '{QUIET} s', false)
FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

END_SILENT: Final = f"""
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid <> pg_backend_pid()
AND (classid::bigint << 32) | objid::bigint = {STORE}
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND {_WAITING} '{SILENT} s'
"""

Session = psycopg.Connection[Any]


def set_timeouts(session: Session) -> None:
    """Let PostgreSQL end a session that says nothing."""
    for name, value in _TIMEOUTS.items():
        session.execute(
            "SELECT set_config(name, %s, false) FROM pg_settings WHERE name = %s", (value, name)
        )


def check_address(address: str) -> None:
    """Refuse an address that does not fit into the name of a session.

    >>> check_address("http://10.0.0.7:8400")
    """
    room = _LONGEST - len(_MARK)
    if not address.isascii() or len(address) > room or not address.startswith("http"):
        raise InputError(
            f"got the address {address!r}, expected http://HOST:PORT of at most {room} characters"
        )


def join(session: Session, address: str) -> None:
    """Become a server of those that share the store, once nobody owns it alone."""
    session.execute("SELECT set_config('application_name', %s, false)", (f"{_MARK}{address}",))
    session.execute("SELECT pg_advisory_lock_shared(%s)", (STORE,))


def resign(session: Session) -> None:
    """Stay a server of those that share the store, but one that claims nothing more."""
    session.execute("SELECT pg_advisory_lock_shared(%s)", (LEAVE,))


def try_claim(session: Session, stream: str) -> bool:
    """Take the lock of a stream, if nobody has it."""
    found = session.execute("SELECT pg_try_advisory_lock(%s)", (lock_of(stream),)).fetchone()
    return found is not None and bool(found[0])


def unclaim(session: Session, stream: str) -> None:
    """Give the lock of a stream back."""
    session.execute("SELECT pg_advisory_unlock(%s)", (lock_of(stream),))


def members(rows: list[tuple[int, int, bool, str, bool]], me: int) -> Members:
    """The members by the rows of `HELD`.

    >>> a, b = "venire http://a:1", "venire http://b:1"
    >>> members([(7, STORE, True, a, False), (7, 42, False, a, False),
    ...          (8, STORE, True, b, False), (8, LEAVE, True, b, False)], 7)
    Members(me=7, addresses={7: 'http://a:1', 8: 'http://b:1'}, holders={42: 7},
            not_taking=frozenset({8}))
    """
    addresses = {
        pid: name.removeprefix(_MARK)
        for pid, lock, shared, name, _ in rows
        if shared and lock == STORE
    }
    holders = {lock: pid for pid, lock, shared, *_ in rows if not shared and pid in addresses}
    not_taking = {pid for pid, lock, *_, quiet in rows if quiet or lock == LEAVE}
    return Members(me, addresses, holders, frozenset(not_taking & addresses.keys()))
