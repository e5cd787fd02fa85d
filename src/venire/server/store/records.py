"""Everything that a store keeps: one record for each table, its fields in the order of the columns.

Times (`at`, `..._at`) are seconds since 1970 in UTC, as `float`; they are for people and are
never read back into a decision. Slots are whole numbers. `payload`, `body` and the like are JSON
text, kept as they were given. Names, ids and labels are strings: what a class is called in a
store is a string.
"""

from __future__ import annotations

from typing import Annotated, Final

from venire.model import DeliveryStatus, ItemStatus, LeaseStatus, NoteKind, StreamStatus
from venire.server.store.record import OneOf, Record, References, Small, Stream

DELIVERY_KINDS: Final = ("exit", "revision", "alarm")

#: To what the setting `routes` sends verdicts.
ROUTE_KINDS: Final = ("stream", "webhook")

#: What the status of a stream may be in the store: that of an archived one is closed.
STREAM_STATUSES: Final = (StreamStatus.RUNNING, StreamStatus.PAUSED, StreamStatus.CLOSED)

#: Deliveries that are not done: to be retried, or dead-lettered.
UNSETTLED: Final = (DeliveryStatus.PENDING, DeliveryStatus.DEAD)

#: What stands in place of the digest of an item whose payload was erased; the payload is `null`.
ERASED: Final = "erased"


class StreamRow(Record, table="streams", key="name"):
    """A stream: its name, when it was made, and whether it is running, paused or closed.

    `deleted_at` is set while the rows of a deleted stream are being removed, and this one last;
    `archived_at` while it is archived, and then its status is closed.
    """

    name: str
    created_at: float
    status: Annotated[str, OneOf(STREAM_STATUSES)] = StreamStatus.RUNNING
    deleted_at: float | None = None
    archived_at: float | None = None


class SettingsRow(Record, table="settings", key="stream version"):
    """The settings of a stream in one version (the first is 1), who set them, and when."""

    stream: Stream
    version: Small
    at: float
    actor: str
    body: str


class EventRow(Record, table="events", key="stream n"):
    """Events `n` to `n + size - 1` of a stream's log (the first is 0), see `log`.

    A run of labels is kept in one row: `size` is 1 for everything else.
    """

    stream: Stream
    n: int
    size: Small
    slot: int
    at: float
    kind: str
    body: str


class ItemRow(
    Record,
    table="items",
    key="stream id",
    unique={"items_exit": "stream exit_n"},
    indexes={
        "items_by_status": "stream status id",
        "items_by_arrival": "stream arrived_at id",
        "items_by_verdict": "stream verdict arrived_at id",
        "items_by_reason": "stream reason arrived_at id",
        "items_by_doubt": "stream status confidence exit_n",
    },
):
    """An item, and how it left.

    `digest` tells whether an item of the same id has the same content; `eligible` and `excluded`
    are JSON lists of names (`eligible` None: anyone). `exit_n` counts the exits of the stream
    from 1, and is the cursor for reading them; the fields from there on are None while
    the item is open. `verdict` is None for an item that left without a label. `key` is the id of
    the key that sent the item, where that is known; `min_confidence` the confidence that its
    verdict must reach, if it has its own.
    """

    stream: Stream
    id: str
    digest: str
    payload: str
    weight: float
    eligible: str | None
    excluded: str
    arrived_slot: int
    arrived_at: float
    status: Annotated[str, OneOf(ItemStatus)] = ItemStatus.OPEN
    exit_n: int | None = None
    exit_slot: int | None = None
    left_at: float | None = None
    verdict: str | None = None
    confidence: float | None = None
    labels: Small | None = None
    reason: str | None = None
    key: str | None = None
    min_confidence: float | None = None


class ExitRow(Record):
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


class RevisionRow(
    Record,
    table="revisions",
    key="stream n",
    indexes={"revisions_by_item": "stream item n"},
):
    """The verdict of an item that has left was revised; its `ItemRow` stays as it was.

    `n` counts the revisions of the stream from 1. `before` is what was said last, when the item
    left or by an earlier revision, None where it had no label; `labels` counts late ones too.
    """

    stream: Stream
    n: int
    item: str
    slot: int
    at: float
    before: str | None
    before_confidence: float
    verdict: str | None
    confidence: float
    labels: Small


class CheckRow(Record, table="checks", key="stream n", unique={"checks_item": "stream item"}):
    """A verdict was drawn at random to be audited by a trusted labeler; see docs/audits.md.

    `n` counts the draws of the stream from 1; `verdict` is what the item left with, and `share` the
    probability with which it was drawn. What the trusted labeler said is a `GoldRow`.
    """

    stream: Stream
    n: int
    item: str
    at: float
    share: float
    verdict: str
    extra: bool = False


class GoldRow(Record, table="gold", key="stream item"):
    """What somebody who is trusted said of an item.

    `source` is `audit` for the answer to a drawn audit, `asked` for one of those that tell most,
    `sent` for gold that was sent; `actor` and `key` say by whom. `earlier` is what was corrected,
    the first first, as JSON: label, at, source, actor and key of each.
    """

    stream: Stream
    item: str
    label: str
    at: float
    source: str
    actor: str
    key: str | None = None
    earlier: str | None = None


class LabelRow(
    Record,
    table="labels",
    key="stream item labeler",
    indexes={"labels_by_time": "stream at", "labels_by_labeler": "stream labeler at"},
):
    """What a labeler said of an item; never changed, but for a payload that is erased.

    `late` says that the item had left; `lead_seconds` is the time from lease to label, None for
    a label that was not asked for; `source` says how it came (`lease`, `bulk`, ...), and `key` by
    which key, where that is known. `confidence` is how sure the labeler said it was, if it did, and
    `rationale` why it said so; it is erased with the payload of the item.
    """

    stream: Stream
    item: str
    labeler: str
    said: str
    at: float
    slot: int
    late: bool
    lead_seconds: float | None
    source: str
    key: str | None = None
    confidence: float | None = None
    rationale: str | None = None


class NoteRow(Record, table="notes", key="stream n", indexes={"notes_by_item": "stream item n"}):
    """What a labeler remarked on an item; never changed, but for a payload that is erased.

    `n` counts the notes of the stream from 1. `kind` is `comment` (with a `text`), `flag` (the item
    itself is at fault) or `unsure` (an abstention: the labeler looked, and gave no label).
    """

    stream: Stream
    n: int
    item: str
    labeler: str
    kind: Annotated[str, OneOf(NoteKind)]
    text: str
    at: float
    key: str | None = None


class LeaseRow(
    Record,
    table="leases",
    key="token_hash",
    indexes={"leases_by_stream": "stream status", "leases_by_item": "stream item labeler"},
):
    """An item given to a labeler, under a token of which only the sha256 is kept.

    `answer` is the first answer to the request with the label, kept for retries (JSON). `key` is
    the id of the key that asked for the work, `ended_key` of the one that answered it or gave it
    back. `again` is what the labeler said of the item before, if it is asked again.
    """

    token_hash: str
    stream: Stream
    item: str
    labeler: str
    given_at: float
    ttl: float
    status: Annotated[str, OneOf(LeaseStatus)] = LeaseStatus.OPEN
    ended_at: float | None = None
    answer: str | None = None
    key: str | None = None
    ended_key: str | None = None
    again: str | None = None


class SnapshotRow(Record, table="snapshots", key="stream n", replaces=True):
    """The state of a stream's engine after its first `n` events."""

    stream: Stream
    n: int
    at: float
    body: bytes


class EngineRow(Record, table="engines", key="stream n", replaces=True):
    """Which version of the engine wrote the events of a stream from number `n` on.

    The snapshot with `n` events is the state that it began with, and stays.
    """

    stream: Stream
    n: int
    version: str
    at: float


class SegmentRow(Record, table="segments", key="stream n"):
    """A part of a stream's history that has left the store; see `history`.

    Segment `n` (the first is 1) holds the events from `first_event` to before `next_event`, the
    last of them written at `ended_at`; the items up to exit number `exits` that are in no segment
    before it, with their labels from before `slot` and their notes up to number `notes`; and the
    revisions up to number `revisions`. It is in the folder `name`, or was deleted if that is empty.
    `digest` is its SHA-256, which depends on that of the segment before.
    """

    stream: Stream
    n: int
    at: float
    first_event: int
    next_event: int
    ended_at: float
    slot: int
    exits: int
    revisions: int
    notes: int
    name: str
    digest: str


class ArchivedRow(Record, table="archived", key="stream id"):
    """An item that is in a segment of the archive: its id is not free, nor is its content."""

    stream: Stream
    id: str
    digest: str
    segment: int


class TallyRow(Record, table="tallies", key="stream kind name"):
    """How many rows there are of a kind, kept up to date so that nobody has to count them.

    `kind` is `items` (then `name` is their status), `labels`, `late`, or a kind of note (of the
    labeler `name`).
    """

    stream: Stream
    kind: str
    name: str
    number: int


class KeyRow(Record, table="keys", key="id", unique={"keys_hash": "hash"}):
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


class WebhookRow(Record, table="webhooks", key="id"):
    """An address that is told when items leave; its secret signs the messages, so it is kept.

    `old_secret`, the one before, signs them too until `old_until`.
    """

    id: str
    stream: Stream
    url: str
    secret: str
    created_at: float
    old_secret: str | None = None
    old_until: float | None = None


class DeliveryRow(
    Record,
    table="deliveries",
    key="webhook kind exit_n",
    indexes={"deliveries_by_webhook": "webhook status next_at exit_n kind"},
):
    """The delivery of an exit to a webhook: to be tried at `next_at`, done, or dead-lettered.

    `failing_since` is when it first failed. With the kind `revision` or `alarm` it is that of one,
    and `exit_n` is its number.
    """

    webhook: Annotated[str, References("webhooks.id", cascade=True)]
    stream: str
    exit_n: int
    attempt: Small
    next_at: float
    status: Annotated[str, OneOf(DeliveryStatus)] = DeliveryStatus.PENDING
    last_error: str | None = None
    failing_since: float | None = None
    kind: Annotated[str, OneOf(DELIVERY_KINDS)] = "exit"


class AuditRow(
    Record, table="audit", key="n", indexes={"audit_by_stream": "stream n"}, numbered=True
):
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


class AlarmRow(Record, table="alarms", key="stream n"):
    """A rule of a stream was broken, or is kept again (`raised` false); `n` counts from 1.

    `subject` is whom it is about, such as a labeler, or empty.
    """

    stream: Stream
    n: int
    at: float
    rule: str
    subject: str
    raised: bool
    value: float
    threshold: float
    message: str


class FollowRow(Record, table="follows", key="stream item"):
    """An item that was sent back for more labels, as another item; `settled_at` once that left."""

    stream: Stream
    item: str
    original: str
    at: float
    actor: str
    key: str | None = None
    settled_at: float | None = None


class RoutedRow(
    Record,
    table="routed",
    key="stream item kind target",
    indexes={"routed_waiting": "settled_at at", "routed_by_target": "target item"},
):
    """The verdict of an item that left sends it to another stream, or to a webhook (`routes`).

    `target` is the name of the stream, or the id of the webhook. `settled_at` is when it had
    arrived there and the log said so, or could not, for the reason `fault`.
    """

    stream: Stream
    item: str
    kind: Annotated[str, OneOf(ROUTE_KINDS)]
    target: str
    at: float
    verdict: str | None
    confidence: float
    settled_at: float | None = None
    fault: str | None = None


class RepeatRow(
    Record,
    table="repeats",
    key="stream item labeler",
    indexes={"repeats_by_labeler": "stream labeler at"},
):
    """What a labeler said of an item that it was asked about again (`repeat_share`); no label.

    `before` is its label of the item. `lead_seconds`, `key` and `confidence` are as those of a
    label.
    """

    stream: Stream
    item: str
    labeler: str
    before: str
    said: str
    at: float
    slot: int
    lead_seconds: float | None = None
    key: str | None = None
    confidence: float | None = None


class Exited(Record):
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


class Counts(Record):
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


#: Everything that is kept in a table, in the order of this file, which counts: rows are copied and
#: restored in it, so a record stands below those that it refers to.
RECORDS: Final[tuple[type[Record], ...]] = tuple(
    kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Record) and hasattr(kind, "TABLE")
)
