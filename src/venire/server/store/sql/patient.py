"""A connection to PostgreSQL that notices when nobody is at the other end any more.

TCP keep-alive and `tcp_user_timeout` tell of a host that is gone, but not of one that confirms what
it gets and never answers: a proxy that forgot the connection, a database that is suspended. So a
wait that nothing interrupts for some seconds makes the connection ask, by another one, what
PostgreSQL thinks of the session. If it works for it, however long, that is no silence. If it waits
for us while we wait for it, or cannot be asked at all, the connection is lost.

Time is counted in the steps in which psycopg waits, so what this process slept does not count.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any, Final

import psycopg

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
