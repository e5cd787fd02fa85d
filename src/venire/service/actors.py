"""Who does something, and the line of the audit trail that says so.

A line is written in the same transaction as what it is about, so neither is there without the
other. Pulling work and answering it leave no lines of their own: leases and labels have the id of
the key in their rows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from venire.storage import AuditRow
from venire.storage.contents import compact

__all__ = ["PROGRAM", "Actor", "done_by"]


class Actor(NamedTuple):
    """A name for people, and the id of the key, if there is one.

    >>> str(Actor("Ann's laptop", "key_5e88")), str(Actor("me"))
    ("Ann's laptop (key_5e88)", 'me')
    """

    name: str
    key: str | None = None

    def __str__(self) -> str:
        return self.name if self.key is None else f"{self.name} ({self.key})"

    @classmethod
    def of(cls, who: Actor | str) -> Actor:
        """An actor, also from a bare name."""
        return cls(who) if isinstance(who, str) else who


#: Whoever calls the service from Python without saying who it is.
PROGRAM: Final = Actor("a program")


def done_by(
    who: Actor | str,
    at: float,
    action: str,
    stream: str | None = None,
    subject: str | None = None,
    /,
    **details: Any,
) -> AuditRow:
    """A line of the audit trail.

    >>> done_by("me", 0.0, "stream.change", "posts", version=2).details
    '{"version":2}'
    """
    actor = Actor.of(who)
    told = compact(details)
    return AuditRow(0, at, str(actor), actor.key, action, stream, subject, told)
