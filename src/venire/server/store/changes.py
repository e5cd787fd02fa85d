"""What can be written into a store: one frozen value for each kind of change.

`Storage.write` takes any number of them and makes them one transaction. The kinds that carry
`rows` take many rows at once, and those are the quick ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from venire.server.store.history_changes import (
    AddArchived,
    AddSegment,
    DropHistory,
    EraseArchived,
    PutBack,
    RemoveSegment,
    Restorable,
)
from venire.server.store.rows import (
    AlarmRow,
    AuditRow,
    CheckRow,
    DeliveryRow,
    EngineRow,
    EventRow,
    ExitRow,
    FollowRow,
    GoldRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RevisionRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)

__all__ = [
    "VERIFIED",
    "AddAlarms",
    "AddArchived",
    "AddAudit",
    "AddChecks",
    "AddDeliveries",
    "AddEngine",
    "AddEvents",
    "AddFollows",
    "AddGold",
    "AddItems",
    "AddKey",
    "AddLabels",
    "AddLeases",
    "AddNotes",
    "AddRevisions",
    "AddSegment",
    "AddSettings",
    "AddStream",
    "AddWebhook",
    "ArchiveStream",
    "Change",
    "CorrectGold",
    "DeleteStream",
    "DropAlarms",
    "DropHistory",
    "DropMeta",
    "EndLeases",
    "EraseArchived",
    "ErasePayload",
    "ExpireKey",
    "LeaseEnd",
    "LeaveItems",
    "MarkDeleted",
    "PurgeStream",
    "PutBack",
    "RemoveSegment",
    "RemoveWebhook",
    "RenewLease",
    "Restorable",
    "RetellAudit",
    "RevokeKey",
    "RotateSecret",
    "SaveSnapshot",
    "SetMeta",
    "SetStatus",
    "SettleFollow",
    "TouchKey",
    "UpdateDelivery",
]


#: How names begin under which the store keeps up to where logs were checked.
VERIFIED: Final = "verified:"


@dataclass(frozen=True, slots=True)
class AddStream:
    """A new stream."""

    row: StreamRow


@dataclass(frozen=True, slots=True)
class SetStatus:
    """A stream is running, paused or closed from now on."""

    stream: str
    status: str


@dataclass(frozen=True, slots=True)
class AddSettings:
    """A new version of a stream's settings."""

    row: SettingsRow


@dataclass(frozen=True, slots=True)
class AddEvents:
    """Events at the end of a stream's log; a gap or an overlap in the numbers is refused."""

    rows: Sequence[EventRow]


@dataclass(frozen=True, slots=True)
class AddItems:
    """New items."""

    rows: Sequence[ItemRow]


@dataclass(frozen=True, slots=True)
class LeaveItems:
    """Items left; one that is not open is refused: no item has two verdicts."""

    rows: Sequence[ExitRow]


@dataclass(frozen=True, slots=True)
class AddRevisions:
    """Revised verdicts of items that have left; a number that exists is refused."""

    rows: Sequence[RevisionRow]


@dataclass(frozen=True, slots=True)
class AddChecks:
    """Verdicts drawn to be audited; a number that exists is refused."""

    rows: Sequence[CheckRow]


@dataclass(frozen=True, slots=True)
class AddGold:
    """Gold of items; a second one for the same item is refused."""

    rows: Sequence[GoldRow]


@dataclass(frozen=True, slots=True)
class CorrectGold:
    """Gold that was wrong, as it is now; an item without gold is refused."""

    rows: Sequence[GoldRow]


@dataclass(frozen=True, slots=True)
class AddFollows:
    """Link items that were sent back to the new items they became, each new item at most once."""

    rows: Sequence[FollowRow]


@dataclass(frozen=True, slots=True)
class SettleFollow:
    """An item that follows another has left, and what that means for the other is written."""

    stream: str
    item: str
    at: float


@dataclass(frozen=True, slots=True)
class DropAlarms:
    """Delete the alarms of a stream up to number `n`, but the last of each rule and subject."""

    stream: str
    n: int


@dataclass(frozen=True, slots=True)
class AddAlarms:
    """Alarms that were raised or cleared; a number that exists is refused."""

    rows: Sequence[AlarmRow]


@dataclass(frozen=True, slots=True)
class AddLabels:
    """New labels; a second one by the same labeler of the same item is refused."""

    rows: Sequence[LabelRow]


@dataclass(frozen=True, slots=True)
class AddLeases:
    """New leases."""

    rows: Sequence[LeaseRow]


@dataclass(frozen=True, slots=True)
class AddNotes:
    """Notes of labelers; a number that exists is refused."""

    rows: Sequence[NoteRow]


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """How a lease ended: done (with its answer), released or expired; and by which key."""

    token_hash: str
    status: str
    ended_at: float
    answer: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class EndLeases:
    """Leases ended. An expired one may still become done; an unknown one is refused."""

    rows: Sequence[LeaseEnd]


@dataclass(frozen=True, slots=True)
class RenewLease:
    """A lease lasts `ttl` seconds from `given_at`, as the heartbeat asked for."""

    token_hash: str
    ttl: float


@dataclass(frozen=True, slots=True)
class AddEngine:
    """From here on another version of the engine writes the events of a stream.

    It replaces one that began at the same event, and so has written nothing.
    """

    row: EngineRow


@dataclass(frozen=True, slots=True)
class SaveSnapshot:
    """Keep a snapshot; older ones thin out with their age (see `snapshot_retention`).

    The first (n = 0) stays, and so do those with which a version of the engine began.
    """

    row: SnapshotRow


@dataclass(frozen=True, slots=True)
class AddKey:
    """A new key."""

    row: KeyRow


@dataclass(frozen=True, slots=True)
class RevokeKey:
    """A key is revoked; the time of the first revocation stays."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class ExpireKey:
    """A key expires at `at`; an earlier expiry stays."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class TouchKey:
    """A key was used."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class AddWebhook:
    """A new webhook."""

    row: WebhookRow


@dataclass(frozen=True, slots=True)
class RotateSecret:
    """A webhook has a new secret; messages are signed with the old one too until `old_until`."""

    id: str
    secret: str
    old_until: float


@dataclass(frozen=True, slots=True)
class RemoveWebhook:
    """A webhook is removed, with its deliveries."""

    id: str


@dataclass(frozen=True, slots=True)
class AddDeliveries:
    """Exits and revisions to be delivered; written in the transaction of the thing itself."""

    rows: Sequence[DeliveryRow]


@dataclass(frozen=True, slots=True)
class UpdateDelivery:
    """A delivery was tried (or is to be tried again); its row is replaced.

    Nothing happens if the webhook was removed meanwhile.
    """

    row: DeliveryRow


@dataclass(frozen=True, slots=True)
class SetMeta:
    """A named value of the store itself, such as the secret that signs sessions."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DropMeta:
    """Delete a named value, if there is one."""

    key: str


@dataclass(frozen=True, slots=True)
class AddAudit:
    """Lines of the audit trail, numbered by the store."""

    rows: Sequence[AuditRow]


@dataclass(frozen=True, slots=True)
class ErasePayload:
    """Erase the payload of an item, the digest of its content and the texts of its notes.

    An unknown item is refused.
    """

    stream: str
    item: str


@dataclass(frozen=True, slots=True)
class RetellAudit:
    """Replace the details of an entry of the audit trail, where they hold what was erased."""

    n: int
    details: str


@dataclass(frozen=True, slots=True)
class ArchiveStream:
    """A stream is archived from `at` on; None: it is restored. An unknown one is refused."""

    stream: str
    at: float | None


@dataclass(frozen=True, slots=True)
class MarkDeleted:
    """A stream is deleted: `streams` no longer lists it, though rows of it may be left."""

    stream: str
    at: float


@dataclass(frozen=True, slots=True)
class PurgeStream:
    """Delete at most `limit` rows of a stream from each table."""

    stream: str
    limit: int


@dataclass(frozen=True, slots=True)
class DeleteStream:
    """Delete the stream itself, if it exists; refused while any row of it is left."""

    stream: str


Change: TypeAlias = (
    AddStream
    | SetStatus
    | AddSettings
    | AddEvents
    | AddItems
    | LeaveItems
    | AddRevisions
    | AddChecks
    | AddGold
    | CorrectGold
    | AddAlarms
    | DropAlarms
    | AddFollows
    | SettleFollow
    | AddLabels
    | AddLeases
    | AddNotes
    | EndLeases
    | RenewLease
    | AddEngine
    | SaveSnapshot
    | AddKey
    | RevokeKey
    | TouchKey
    | AddWebhook
    | RotateSecret
    | RemoveWebhook
    | AddDeliveries
    | UpdateDelivery
    | SetMeta
    | DropMeta
    | AddAudit
    | ExpireKey
    | ErasePayload
    | RetellAudit
    | ArchiveStream
    | MarkDeleted
    | PurgeStream
    | DeleteStream
    | AddSegment
    | AddArchived
    | DropHistory
    | PutBack
    | RemoveSegment
    | EraseArchived
)
