"""What the service takes and gives: plain frozen values, ready to be written as JSON.

Times are seconds since 1970 in UTC. `to_json` of a value is `dataclasses.asdict` of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from venire.model import DeliveryStatus, ExitReason, ItemStatus, NoWork, Role, StreamStatus

__all__ = [
    "Added",
    "Alternative",
    "Answer",
    "AuditView",
    "Deleted",
    "DeliveryView",
    "Erased",
    "EventView",
    "ExitView",
    "Explanation",
    "Given",
    "Insights",
    "ItemIn",
    "ItemView",
    "KeyView",
    "LabelIn",
    "LabelView",
    "LabelerView",
    "Lease",
    "NewKey",
    "Nothing",
    "Outcome",
    "RevisionView",
    "SettingsVersion",
    "StreamView",
    "WebhookView",
]


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream as it is now."""

    name: str
    status: StreamStatus
    version: int
    settings: dict[str, Any]
    created_at: float
    slot: int
    open_items: int
    leases: int
    labels: int
    exits: int


@dataclass(frozen=True, slots=True)
class SettingsVersion:
    """One version of what a stream is told: who told it, and when."""

    version: int
    at: float
    actor: str
    status: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ItemIn:
    """An item as a producer sends it; `payload` is data that is passed on and never looked at."""

    id: str
    payload: Any = None
    weight: float | None = None
    eligible: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """What became of an item that was sent."""

    id: str
    status: Literal["created", "exists"]


@dataclass(frozen=True, slots=True)
class Lease:
    """Work: an item that a labeler holds until `expires_at`, unless a heartbeat renews it."""

    token: str | None
    stream: str
    item: str
    labeler: str
    payload: Any
    classes: tuple[str, ...]
    given_at: float
    expires_at: float
    ttl: float
    slot: int
    gain: float | None


@dataclass(frozen=True, slots=True)
class Nothing:
    """No work, and why."""

    reason: NoWork


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a label that answers a lease.

    `late`: the item had left, the label is kept for learning. `expired`: the lease was over,
    which does not matter to the label.
    """

    stream: str
    item: str
    labeler: str
    said: str
    late: bool
    expired: bool
    at: float


@dataclass(frozen=True, slots=True)
class LabelIn:
    """A label that comes without a lease."""

    item: str
    labeler: str
    said: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a label that came in bulk; `code` and `message` say why it was refused.

    Codes: unknown_class, unknown_labeler, unknown_item, not_allowed, not_given, changed.
    """

    status: Literal["accepted", "exists", "late", "refused"]
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LabelView:
    """A label of an item, and the id of the key by which it came, if that is known."""

    labeler: str
    said: str
    at: float
    slot: int
    late: bool
    lead_seconds: float | None
    source: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item with what is known of it: `posterior` while it is open, `exit` once it has left.

    `verdict` and `confidence` are what holds now: while it is open by the labels so far, and once
    it has left by the last of its `revisions`, or the exit where there are none.
    """

    id: str
    status: ItemStatus
    payload: Any
    weight: float
    eligible: tuple[str, ...] | None
    excluded: tuple[str, ...]
    arrived_slot: int
    arrived_at: float
    labels: tuple[LabelView, ...]
    verdict: str | None
    confidence: float
    posterior: dict[str, float] | None
    held_by: tuple[str, ...]
    exit: ExitView | None
    revisions: tuple[RevisionView, ...] = ()
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ExitView:
    """An item that has left; `n` is the cursor, 1 for the stream's first."""

    n: int
    item: str
    verdict: str | None
    confidence: float
    labels: int
    reason: ExitReason
    arrived_slot: int
    slot: int
    at: float


@dataclass(frozen=True, slots=True)
class RevisionView:
    """The verdict of an item that has left became another; its exit stays what it was.

    `n` is the cursor, 1 for the stream's first; `before` is what was said of it last, when it
    left or by an earlier revision; `labels` counts late ones too.
    """

    n: int
    item: str
    before: str | None
    before_confidence: float
    verdict: str | None
    confidence: float
    labels: int
    slot: int
    at: float


@dataclass(frozen=True, slots=True)
class EventView:
    """An entry of a stream's log."""

    n: int
    slot: int
    at: float
    kind: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another item that the labeler could have been given at that moment."""

    item: str
    gain: float | None


@dataclass(frozen=True, slots=True)
class Given:
    """The item was given to a labeler, and why: its gain was the best, at this price."""

    n: int
    slot: int
    at: float
    labeler: str
    gain: float | None
    price: float | None
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an item was given to whom, and why it left, recomputed from the log.

    Where that takes too long, `complete` is false, and prices and alternatives are left out.
    """

    item: str
    arrived_slot: int
    given: tuple[Given, ...]
    labels: tuple[LabelView, ...]
    exit: ExitView | None
    why: str
    complete: bool = True


@dataclass(frozen=True, slots=True)
class LabelerView:
    """A labeler as the stream knows it; `skill` is learned, with an interval around it.

    `expired` counts the leases that ran out since the server started.
    """

    id: str
    kind: str | None
    state: Literal["free", "busy", "away"]
    capacity: int
    holds: int
    skill: float | None
    skill_low: float | None
    skill_high: float | None
    labels: int
    late_labels: int
    expired: int
    lead_median: float | None
    lead_p90: float | None
    drifting: bool
    clone_of: str | None


@dataclass(frozen=True, slots=True)
class Insights:
    """The figures of a stream, for pages, metrics and the command line alike.

    Counts are over the stream's life. `labels_per_item`, `agreement`, `mean_confidence`,
    `verdicts`, `reasons` and the response times are over the last thousand items that left and
    were not withdrawn. Rates are over the last minute, and `slots_skipped` is counted since the
    server started.
    """

    stream: str
    status: StreamStatus
    slot: int
    open_items: int
    leased_items: int
    oldest_seconds: float | None
    labels: int
    late_labels: int
    exits: int
    withdrawn: int
    exits_per_minute: float
    labels_per_minute: float
    labels_per_item: float | None
    budget: int | None
    budget_left: int | None
    agreement: float | None
    mean_confidence: float | None
    verdicts: dict[str, int]
    reasons: dict[str, int]
    response_median: float | None
    response_p90: float | None
    waiting: int
    labelers: dict[str, int] = field(default_factory=dict)
    slots_skipped: int = 0
    revisions: int = 0


@dataclass(frozen=True, slots=True)
class AuditView:
    """A line of the audit trail: who did what, when, with which key, to what; `n` is the cursor."""

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
    """An item whose payload is gone, and how long that was; 0 if it was gone before."""

    stream: str
    item: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A stream that is gone, and what it had."""

    stream: str
    items: int
    labels: int
    events: int


@dataclass(frozen=True, slots=True)
class WebhookView:
    """Where exits and revisions are sent; the secret is shown only when it is made.

    Until `old_secret_until` messages are signed with the secret before it as well.
    """

    id: str
    stream: str
    url: str
    created_at: float
    active: bool
    secret: str | None = None
    old_secret_until: float | None = None


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """A message to a webhook; `status` is pending, done or dead.

    It is of the exit `exit_n`, or of the revision `revision_n`.
    """

    webhook: str
    exit_n: int | None
    attempt: int
    status: DeliveryStatus
    next_at: float | None
    last_error: str | None
    revision_n: int | None = None


@dataclass(frozen=True, slots=True)
class KeyView:
    """An API key without its secret."""

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
    """A key that was just made: the only time its token is seen."""

    token: str
    key: KeyView
