"""What can be written into a store.

`Storage.write` takes any number of changes and makes them one transaction. `Insert` adds rows of
any record; the others do more than that. Those that carry `rows` take many at once, and are the
quick ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from venire.server.store.record import Record
from venire.server.store.records import (
    DeliveryRow,
    ExitRow,
    GoldRow,
    RoutedRow,
    SegmentRow,
)

#: How names begin under which the store keeps up to where logs were checked.
VERIFIED: Final = "verified:"


@dataclass(frozen=True, slots=True)
class Change:
    """One of those below."""


@dataclass(frozen=True, slots=True)
class Insert(Change):
    """New rows of one record; a row whose key exists is refused, unless the record `replaces`.

    Events must follow the last one of their log. After a new snapshot, older ones thin out with
    their age (see `sql.storage`): the first (n = 0) stays, and so do those with which a
    version of the engine began. The audit trail is numbered by the store.
    """

    rows: Sequence[Record]


@dataclass(frozen=True, slots=True)
class SetStatus(Change):
    """A stream is running, paused or closed from now on."""

    stream: str
    status: str


@dataclass(frozen=True, slots=True)
class LeaveItems(Change):
    """Items left; one that is not open is refused: no item has two verdicts."""

    rows: Sequence[ExitRow]


@dataclass(frozen=True, slots=True)
class CorrectGold(Change):
    """Gold that was wrong, as it is now; an item without gold is refused."""

    rows: Sequence[GoldRow]


@dataclass(frozen=True, slots=True)
class SettleFollow(Change):
    """An item that follows another has left, and what that means for the other is written."""

    stream: str
    item: str
    at: float


@dataclass(frozen=True, slots=True)
class SettleRoute(Change):
    """What became of an item that its verdict sends elsewhere; its row is replaced."""

    row: RoutedRow


@dataclass(frozen=True, slots=True)
class DropAlarms(Change):
    """Delete the alarms of a stream up to number `n`, but the last of each rule and subject."""

    stream: str
    n: int


@dataclass(frozen=True, slots=True)
class LeaseEnd:
    """How a lease ended: done (with its answer), released or expired; and by which key."""

    token_hash: str
    status: str
    ended_at: float
    answer: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class EndLeases(Change):
    """Leases ended. An expired one may still become done; an unknown one is refused."""

    rows: Sequence[LeaseEnd]


@dataclass(frozen=True, slots=True)
class RenewLease(Change):
    """A lease lasts `ttl` seconds from `given_at`, as the heartbeat asked for."""

    token_hash: str
    ttl: float


@dataclass(frozen=True, slots=True)
class RevokeKey(Change):
    """A key is revoked; the time of the first revocation stays."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class ExpireKey(Change):
    """A key expires at `at`; an earlier expiry stays."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class TouchKey(Change):
    """A key was used."""

    id: str
    at: float


@dataclass(frozen=True, slots=True)
class RotateSecret(Change):
    """A webhook has a new secret; messages are signed with the old one too until `old_until`."""

    id: str
    secret: str
    old_until: float


@dataclass(frozen=True, slots=True)
class RemoveWebhook(Change):
    """A webhook is removed, with its deliveries."""

    id: str


@dataclass(frozen=True, slots=True)
class UpdateDelivery(Change):
    """A delivery was tried (or is to be tried again); its row is replaced.

    Nothing happens if the webhook was removed meanwhile.
    """

    row: DeliveryRow


@dataclass(frozen=True, slots=True)
class SetMeta(Change):
    """A named value of the store itself, such as the secret that signs sessions."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class DropMeta(Change):
    """Delete a named value, if there is one."""

    key: str


@dataclass(frozen=True, slots=True)
class ErasePayload(Change):
    """Erase the payload of an item, the digest of its content, the texts of its notes and reasons.

    An unknown item is refused.
    """

    stream: str
    item: str


@dataclass(frozen=True, slots=True)
class RetellAudit(Change):
    """Replace the details of an entry of the audit trail, where they hold what was erased."""

    n: int
    details: str


@dataclass(frozen=True, slots=True)
class ArchiveStream(Change):
    """A stream is archived from `at` on; None: it is restored. An unknown one is refused."""

    stream: str
    at: float | None


@dataclass(frozen=True, slots=True)
class MarkDeleted(Change):
    """A stream is deleted: `streams` no longer lists it, though rows of it may be left."""

    stream: str
    at: float


@dataclass(frozen=True, slots=True)
class PurgeStream(Change):
    """Delete at most `limit` rows of a stream from each table."""

    stream: str
    limit: int


@dataclass(frozen=True, slots=True)
class DeleteStream(Change):
    """Delete the stream itself, if it exists; refused while any row of it is left."""

    stream: str


@dataclass(frozen=True, slots=True)
class DropHistory(Change):
    """Drop rows that the segment has: events below `events`, exits and revisions up to a number.

    Of the items that go, their ids stay (see `ArchivedRow`), and so do leases that are open, labels
    that came since and gold. Counts stay as they are. The same again changes nothing.
    """

    segment: SegmentRow
    events: int
    exits: int
    revisions: int


@dataclass(frozen=True, slots=True)
class PutBack(Change):
    """Rows of a segment are in their table again; those that are there already stay."""

    rows: Sequence[Record]


@dataclass(frozen=True, slots=True)
class RemoveSegment(Change):
    """A segment is restored: all of its rows are back."""

    stream: str
    n: int


@dataclass(frozen=True, slots=True)
class EraseArchived(Change):
    """The payload of an archived item was erased: forget its digest, and erase what came later."""

    stream: str
    item: str
