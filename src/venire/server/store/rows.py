"""The rows of a store: one tuple for each table, its fields in the order of the columns.

Times (`at`, `..._at`) are seconds since 1970 in UTC, as `float`; they are for people and are
never read back into a decision. Slots are whole numbers. `payload`, `body` and the like are JSON
text, kept as they were given. Names, ids and labels are strings: what a class is called in a
store is a string.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from venire.model import DeliveryStatus, ItemStatus, LeaseStatus, StreamStatus
from venire.server.store.segment_rows import ArchivedRow, SegmentRow

__all__ = [
    "DELIVERY_KINDS",
    "ERASED",
    "ROWS",
    "STREAM_STATUSES",
    "UNSETTLED",
    "AlarmRow",
    "ArchivedRow",
    "AuditRow",
    "CheckRow",
    "Counts",
    "DeliveryRow",
    "EngineRow",
    "EventRow",
    "ExitRow",
    "Exited",
    "FollowRow",
    "GoldRow",
    "ItemRow",
    "KeyRow",
    "LabelRow",
    "LeaseRow",
    "NoteRow",
    "RevisionRow",
    "SegmentRow",
    "SettingsRow",
    "SnapshotRow",
    "StreamRow",
    "TallyRow",
    "WebhookRow",
]

DELIVERY_KINDS: Final = ("exit", "revision", "alarm")

#: What the status of a stream may be in the store: that of an archived one is closed.
STREAM_STATUSES: Final = (StreamStatus.RUNNING, StreamStatus.PAUSED, StreamStatus.CLOSED)

#: Deliveries that are not done: to be retried, or dead-lettered.
UNSETTLED: Final = (DeliveryStatus.PENDING, DeliveryStatus.DEAD)

#: What stands in place of the digest of an item whose payload was erased; the payload is `null`.
ERASED: Final = "erased"


class StreamRow(NamedTuple):
    """A stream: its name, when it was made, and whether it is running, paused or closed.

    `deleted_at` is set while the rows of a deleted stream are being removed, and this one last;
    `archived_at` while it is archived, and then its status is closed.
    """

    name: str
    created_at: float
    status: str = StreamStatus.RUNNING
    deleted_at: float | None = None
    archived_at: float | None = None


class SettingsRow(NamedTuple):
    """The settings of a stream in one version (the first is 1), who set them, and when."""

    stream: str
    version: int
    at: float
    actor: str
    body: str


class EventRow(NamedTuple):
    """Events `n` to `n + size - 1` of a stream's log (the first is 0), see `codec`.

    A run of labels is kept in one row: `size` is 1 for everything else.
    """

    stream: str
    n: int
    size: int
    slot: int
    at: float
    kind: str
    body: str


class ItemRow(NamedTuple):
    """An item, and how it left.

    `digest` tells whether an item of the same id has the same content; `eligible` and `excluded`
    are JSON lists of names (`eligible` None: anyone). `exit_n` counts the exits of the stream
    from 1, and is the cursor for reading them; the fields from there on are None while
    the item is open. `verdict` is None for an item that left without a label. `key` is the id of
    the key that sent the item, where that is known; `min_confidence` the confidence that its
    verdict must reach, if it has its own.
    """

    stream: str
    id: str
    digest: str
    payload: str
    weight: float
    eligible: str | None
    excluded: str
    arrived_slot: int
    arrived_at: float
    status: str = ItemStatus.OPEN
    exit_n: int | None = None
    exit_slot: int | None = None
    left_at: float | None = None
    verdict: str | None = None
    confidence: float | None = None
    labels: int | None = None
    reason: str | None = None
    key: str | None = None
    min_confidence: float | None = None


class ExitRow(NamedTuple):
    """How an item left: what `LeaveItems` writes into its `ItemRow`."""

    stream: str
    id: str
    status: str
    exit_n: int
    exit_slot: int
    left_at: float
    verdict: str | None
    confidence: float
    labels: int
    reason: str


class RevisionRow(NamedTuple):
    """The verdict of an item that has left was revised; its `ItemRow` stays as it was.

    `n` counts the revisions of the stream from 1. `before` is what was said last, when the item
    left or by an earlier revision, None where it had no label; `labels` counts late ones too.
    """

    stream: str
    n: int
    item: str
    slot: int
    at: float
    before: str | None
    before_confidence: float
    verdict: str | None
    confidence: float
    labels: int


class CheckRow(NamedTuple):
    """A verdict was drawn at random to be audited by a trusted labeler; see docs/audits.md.

    `n` counts the draws of the stream from 1; `verdict` is what the item left with, and `share` the
    probability with which it was drawn. What the trusted labeler said is a `GoldRow`.
    """

    stream: str
    n: int
    item: str
    at: float
    share: float
    verdict: str
    extra: bool = False


class GoldRow(NamedTuple):
    """What somebody who is trusted said of an item.

    `source` is `audit` for the answer to a drawn audit, `sent` for gold that was sent; `actor` and
    `key` say by whom. `earlier` is what was corrected, the first first, as JSON: label, at, source,
    actor and key of each.
    """

    stream: str
    item: str
    label: str
    at: float
    source: str
    actor: str
    key: str | None = None
    earlier: str | None = None


class LabelRow(NamedTuple):
    """What a labeler said of an item; never changed.

    `late` says that the item had left; `lead_seconds` is the time from lease to label, None for
    a label that was not asked for; `source` says how it came (`lease`, `bulk`, ...), and `key` by
    which key, where that is known.
    """

    stream: str
    item: str
    labeler: str
    said: str
    at: float
    slot: int
    late: bool
    lead_seconds: float | None
    source: str
    key: str | None = None


class NoteRow(NamedTuple):
    """What a labeler remarked on an item; never changed, but for a payload that is erased.

    `n` counts the notes of the stream from 1. `kind` is `comment` (with a `text`), `flag` (the item
    itself is at fault) or `unsure` (an abstention: the labeler looked, and gave no label).
    """

    stream: str
    n: int
    item: str
    labeler: str
    kind: str
    text: str
    at: float
    key: str | None = None


class LeaseRow(NamedTuple):
    """An item given to a labeler, under a token of which only the sha256 is kept.

    `answer` is the first answer to the request with the label, kept for retries (JSON). `key` is
    the id of the key that asked for the work, `ended_key` of the one that answered it or gave it
    back.
    """

    token_hash: str
    stream: str
    item: str
    labeler: str
    given_at: float
    ttl: float
    status: str = LeaseStatus.OPEN
    ended_at: float | None = None
    answer: str | None = None
    key: str | None = None
    ended_key: str | None = None


class SnapshotRow(NamedTuple):
    """The state of a stream's engine after its first `n` events."""

    stream: str
    n: int
    at: float
    body: bytes


class EngineRow(NamedTuple):
    """Which version of the engine wrote the events of a stream from number `n` on.

    The snapshot with `n` events is the state that it began with, and stays.
    """

    stream: str
    n: int
    version: str
    at: float


class TallyRow(NamedTuple):
    """How many rows there are of a kind, kept up to date so that nobody has to count them.

    `kind` is `items` (then `name` is their status), `labels`, `late`, or a kind of note (of the
    labeler `name`).
    """

    stream: str
    kind: str
    name: str
    number: int


class KeyRow(NamedTuple):
    """A key to the service, of which only the sha256 is kept; `labeler` binds it to one.

    It is invalid once it is revoked, and from `expires_at` on.
    """

    id: str
    hash: str
    role: str
    labeler: str | None
    name: str
    created_at: float
    last_used_at: float | None = None
    revoked_at: float | None = None
    expires_at: float | None = None


class WebhookRow(NamedTuple):
    """An address that is told when items leave; its secret signs the messages, so it is kept.

    `old_secret`, the one before, signs them too until `old_until`.
    """

    id: str
    stream: str
    url: str
    secret: str
    created_at: float
    old_secret: str | None = None
    old_until: float | None = None


class DeliveryRow(NamedTuple):
    """The delivery of an exit to a webhook: to be tried at `next_at`, done, or dead-lettered.

    `failing_since` is when it first failed. With the kind `revision` or `alarm` it is that of one,
    and `exit_n` is its number.
    """

    webhook: str
    stream: str
    exit_n: int
    attempt: int
    next_at: float
    status: str = DeliveryStatus.PENDING
    last_error: str | None = None
    failing_since: float | None = None
    kind: str = "exit"


class AuditRow(NamedTuple):
    """Who did what, when and with which key; `n` is given by the store, and grows.

    `action` is such as `stream.pause`; `subject` is what it was done to (an item, a key, ...),
    `details` is a JSON object. Rows are never changed, and outlive the streams they are about.
    """

    n: int
    at: float
    actor: str
    key: str | None
    action: str
    stream: str | None = None
    subject: str | None = None
    details: str = "{}"


class AlarmRow(NamedTuple):
    """A rule of a stream was broken, or is kept again (`raised` false); `n` counts from 1.

    `subject` is whom it is about, such as a labeler, or empty.
    """

    stream: str
    n: int
    at: float
    rule: str
    subject: str
    raised: bool
    value: float
    threshold: float
    message: str


class FollowRow(NamedTuple):
    """An item that was sent back for more labels, as another item; `settled_at` once that left."""

    stream: str
    item: str
    original: str
    at: float
    actor: str
    key: str | None = None
    settled_at: float | None = None


class Exited(NamedTuple):
    """How an item left, without its payload, for statistics over many of them.

    `said` counts the labels that came before it left, `agreed` those of them that say what the
    verdict says.
    """

    item: str
    arrived_slot: int
    arrived_at: float
    exit_slot: int
    left_at: float
    verdict: str | None
    confidence: float
    labels: int
    reason: str
    said: int
    agreed: int


class Counts(NamedTuple):
    """How many rows of each kind a stream has.

    New events, exits, revisions and notes are numbered from `events`, `exits`, `revisions` and
    `notes` on. Items and labels that are archived count too.
    """

    open: int
    left: int
    withdrawn: int
    labels: int
    late: int
    leases: int
    events: int
    exits: int
    revisions: int = 0
    notes: int = 0


#: The kind of the rows of each table.
ROWS: Final[dict[str, type[tuple[Any, ...]]]] = {
    "streams": StreamRow,
    "settings": SettingsRow,
    "events": EventRow,
    "items": ItemRow,
    "revisions": RevisionRow,
    "checks": CheckRow,
    "gold": GoldRow,
    "alarms": AlarmRow,
    "follows": FollowRow,
    "labels": LabelRow,
    "leases": LeaseRow,
    "notes": NoteRow,
    "snapshots": SnapshotRow,
    "engines": EngineRow,
    "segments": SegmentRow,
    "archived": ArchivedRow,
    "tallies": TallyRow,
    "keys": KeyRow,
    "webhooks": WebhookRow,
    "deliveries": DeliveryRow,
    "audit": AuditRow,
}
