"""What operators get from the service: audit entries, deletions, webhooks and keys.

Times are seconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from venire.model import DeliveryStatus, Role


@dataclass(frozen=True, slots=True)
class AuditView:
    """An audit entry: who did what to what, when, with which key; `n` is the cursor."""

    n: int
    at: float
    actor: str
    key: str | None
    action: str
    stream: str | None
    subject: str | None
    details: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Erased:
    """An item whose payload was erased, and its size in bytes; 0 if it was erased before."""

    stream: str
    item: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deleted stream, and what it held."""

    stream: str
    items: int
    labels: int
    events: int


@dataclass(frozen=True, slots=True)
class WebhookView:
    """Where exits, revisions and alarms are sent; the secret is shown only when it is created.

    Until `old_secret_until`, messages are signed with the previous secret as well. With the format
    `text` they are `{"text": ...}`, for people, of alarms and revisions only.
    """

    id: str
    stream: str
    url: str
    created_at: float
    active: bool
    secret: str | None = None
    old_secret_until: float | None = None
    format: str = "json"


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A message to a webhook about the exit `exit_n`, the revision or the alarm of that number."""

    webhook: str
    exit_n: int | None
    attempt: int
    status: DeliveryStatus
    next_at: float | None
    last_error: str | None
    revision_n: int | None = None
    alarm_n: int | None = None


@dataclass(frozen=True, slots=True)
class KeyView:
    """An API key without its token."""

    id: str
    name: str
    role: Role
    labeler: str | None
    created_at: float
    last_used_at: float | None
    revoked_at: float | None
    expires_at: float | None = None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key with its token, which cannot be shown again."""

    token: str
    key: KeyView


@dataclass(frozen=True, slots=True)
class InvitationView:
    """An invitation to label a stream: for whom, until when, and the key of who came by it.

    With `once` its link signs in one time, else until it expires.
    """

    id: str
    stream: str
    labeler: str | None
    once: bool
    created_at: float
    expires_at: float
    used_at: float | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A new invitation with its link, whose token cannot be shown again."""

    token: str
    path: str
    invitation: InvitationView


def invitations_of(stream: str) -> str:
    """How the names begin under which the store keeps the invitations to a stream.

    >>> invitations_of("posts")
    'invitation posts '
    """
    return f"invitation {stream} "
