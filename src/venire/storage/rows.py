"""The rows of a store: one tuple for each table, its fields in the order of the columns.

Times (`at`, `..._at`) are seconds since 1970 in UTC, as `float`; they are for people and are
never read back into a decision. Slots are whole numbers. `payload`, `body` and the like are JSON
text, kept as they were given. Names, ids and labels are strings: what a class is called in a
store is a string.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = [
    "DELIVERY_STATUSES",
    "ITEM_STATUSES",
    "LEASE_STATUSES",
    "STREAM_STATUSES",
    "Counts",
    "DeliveryRow",
    "EngineRow",
    "EventRow",
    "ExitRow",
    "Exited",
    "ItemRow",
    "KeyRow",
    "LabelRow",
    "LeaseRow",
    "SettingsRow",
    "SnapshotRow",
    "StreamRow",
    "TallyRow",
    "WebhookRow",
]

STREAM_STATUSES: Final = ("running", "paused", "closed")
ITEM_STATUSES: Final = ("open", "left", "withdrawn")
LEASE_STATUSES: Final = ("open", "done", "released", "expired")
DELIVERY_STATUSES: Final = ("pending", "done", "dead")


class StreamRow(NamedTuple):
    """A stream: its name, when it was made, and whether it is running, paused or closed."""

    name: str
    created_at: float
    status: str = "running"


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
    from 1, and is the cursor of whoever reads them; the fields from there on are None while
    the item is open. `verdict` is None for an item that left without a label.
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
    status: str = "open"
    exit_n: int | None = None
    exit_slot: int | None = None
    left_at: float | None = None
    verdict: str | None = None
    confidence: float | None = None
    labels: int | None = None
    reason: str | None = None


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


class LabelRow(NamedTuple):
    """What a labeler said of an item: once, and never changed.

    `late` says that the item had left; `lead_seconds` is the time from lease to label, None for
    a label nobody asked for; `source` says how it came (`lease`, `bulk`, ...).
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


class LeaseRow(NamedTuple):
    """An item given to a labeler, under a token of which only the sha256 is kept.

    `answer` is the first answer to whoever brought the label, kept for retries (JSON).
    """

    token_hash: str
    stream: str
    item: str
    labeler: str
    given_at: float
    ttl: float
    status: str = "open"
    ended_at: float | None = None
    answer: str | None = None


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
    """How many there are of something, kept as they come so that nobody has to count them.

    `kind` is `items` (then `name` is their status), `labels` or `late` (of the labeler `name`).
    """

    stream: str
    kind: str
    name: str
    number: int


class KeyRow(NamedTuple):
    """A key to the service, of which only the sha256 is kept; `labeler` binds it to one."""

    id: str
    hash: str
    role: str
    labeler: str | None
    name: str
    created_at: float
    last_used_at: float | None = None
    revoked_at: float | None = None


class WebhookRow(NamedTuple):
    """Who is told when items leave; the secret signs what is sent, so it is kept as it is."""

    id: str
    stream: str
    url: str
    secret: str
    created_at: float


class DeliveryRow(NamedTuple):
    """One exit on its way to one webhook: pending until `next_at`, done, or dead."""

    webhook: str
    stream: str
    exit_n: int
    attempt: int
    next_at: float
    status: str = "pending"
    last_error: str | None = None


class Exited(NamedTuple):
    """How an item left, without its payload, for figures over many of them.

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
    """How much of everything a stream has; `events` and `exits` are the next numbers' base."""

    open: int
    left: int
    withdrawn: int
    labels: int
    late: int
    leases: int
    events: int
    exits: int
