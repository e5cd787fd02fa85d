"""Who does something, and the audit entry that records it.

An entry is written in the same transaction as the change it records, so neither exists without the
other. Pulling work and labelling leave no audit entries: leases and labels store the id of the key
in their own rows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from venire.server.store import AuditRow
from venire.server.store.contents import compact


class Actor(NamedTuple):
    """A display name, and the id of the API key, if any.

    >>> str(Actor("Ann's laptop", "key_5e88")), str(Actor("me"))
    ("Ann's laptop (key_5e88)", 'me')
    """

    name: str
    key: str | None = None

    def __str__(self) -> str:
        return self.name if self.key is None else f"{self.name} ({self.key})"

    @classmethod
    def of(cls, who: Actor | str) -> Actor:
        return cls(who) if isinstance(who, str) else who


#: The default actor: a Python caller that does not identify itself.
PROGRAM: Final = Actor("a program")


def audit_row(
    who: Actor | str,
    at: float,
    action: str,
    stream: str | None = None,
    subject: str | None = None,
    /,
    **details: Any,
) -> AuditRow:
    """An entry of the audit trail.

    >>> audit_row("me", 0.0, "stream.change", "posts", version=2).details
    '{"version":2}'
    """
    actor = Actor.of(who)
    return AuditRow(
        n=0,
        at=at,
        actor=str(actor),
        key=actor.key,
        action=action,
        stream=stream,
        subject=subject,
        details=compact(details),
    )
