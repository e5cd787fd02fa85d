"""What operators get from the service: audit entries, deletions, webhooks and keys.

Times are seconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from venire.model import DeliveryStatus, ExitReason, ItemStatus, Role
from venire.server.messages import LabelView

#: Kinds of verdicts that wait for a reviewer, and the orders in which they are listed.
Kind = Literal["audit", "disputed", "doubtful"]
Order = Literal["doubt", "telling"]


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


@dataclass(frozen=True, slots=True)
class ArchivedStream:
    """A stream that is archived, since when, and what it holds."""

    name: str
    created_at: float
    archived_at: float
    exits: int
    labels: int


@dataclass(frozen=True, slots=True)
class ItemSummary:
    """An item in a listing: `excerpt` is the beginning of its text, or of its payload.

    `verdict` and `confidence` are those of the exit, None while the item is open; `revised` is what
    the verdict became since, if it did, and `gold` what somebody trusted said.
    """

    id: str
    status: ItemStatus
    excerpt: str
    arrived_at: float
    left_at: float | None
    verdict: str | None
    confidence: float | None
    labels: int
    reason: ExitReason | None
    revised: str | None = None
    gold: str | None = None


@dataclass(frozen=True, slots=True)
class ItemsPage:
    """Items, the latest arrival first; `next` is the cursor for more, None at the end.

    A search for something rare may return few items, or none, and still have a `next`: it looked
    for as long as one request may, and goes on from there.
    """

    items: tuple[ItemSummary, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A verdict that waits for a reviewer.

    The kind is `audit` for a verdict that was drawn at random: it is shown without verdict and
    labels, since whoever knows them tends to agree. Others are `disputed` where labels differ from
    the verdict, and `doubtful` where none does. `votes` says how often each class was said.
    `reason` says why its truth tells something, in the order of what tells most. `rationales` are
    the labels that say why, by labeler.
    """

    item: str
    kind: Literal["audit", "disputed", "doubtful"]
    excerpt: str
    arrived_at: float
    left_at: float | None
    verdict: str | None = None
    confidence: float | None = None
    votes: dict[str, int] = field(default_factory=dict)
    reason: str | None = None
    rationales: tuple[LabelView, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewsPage:
    """Verdicts that wait for a reviewer: audits first, then in the order that was asked for.

    `audits_due` counts the audits; `next` is the cursor for more, None at the end. `words` say what
    the answers so far tell about who is right, and whether more would pay.
    """

    stream: str
    audits_due: int
    items: tuple[ReviewItem, ...]
    next: str | None
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The outcome of a review: `before` is the verdict that was judged, `label` is now gold.

    A verdict that is overridden is revised: see the item's revisions. Nothing changes for one that
    was judged the same before. With `corrected`, it had been judged otherwise.
    """

    item: str
    outcome: Literal["confirmed", "overridden", "corrected"]
    before: str | None
    label: str


@dataclass(frozen=True, slots=True)
class SentBackView:
    """An item that was sent back for more labels: it comes again under the id `follow_up`.

    When that leaves, and is surer, the verdict of the item is revised.
    """

    stream: str
    item: str
    follow_up: str
    min_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class AlarmView:
    """A rule of the stream is broken from `at` on, or, with `raised` false, is kept again.

    `value` is what was measured when it was raised, `threshold` the limit then; `subject` is whom
    it is about, such as a labeler, or None. `n` counts the stream's alarms, raised and cleared.
    """

    n: int
    at: float
    rule: str
    subject: str | None
    raised: bool
    value: float
    threshold: float
    message: str


@dataclass(frozen=True, slots=True)
class AlarmsView:
    """The alarms of a stream that are on, and a part of what was raised and cleared, in order."""

    stream: str
    active: tuple[AlarmView, ...]
    history: tuple[AlarmView, ...]


@dataclass(frozen=True, slots=True)
class Mix:
    """A class among the latest exits: in verdicts, in votes, and what became of its votes.

    `verdicts` is the share of verdicts that say it, `votes` the share of votes, where the votes of
    an item count one together. Of the `called` items that most of their labels put into the
    class, `kept` left as it.
    """

    verdicts: float
    votes: float
    called: int
    kept: int


@dataclass(frozen=True, slots=True)
class Period:
    """A part of the latest exits, in order: from when to when, and how the items left.

    `arrivals` counts the items that arrived from the end of the period before to `until`, of the
    first period from `since` on. Times are from arrival to verdict, in seconds. `verdicts` and
    `votes` are shares of the classes, where the votes of an item count one together; `money` is
    what the labels of the items cost at the present prices, and `student_share` the share of them
    that left with labels of the student alone.
    """

    since: float
    until: float
    exits: int
    seconds_p50: float
    seconds_p95: float
    labels_per_item: float
    confidence: float
    single_label_share: float
    verdicts: dict[str, float]
    arrivals: int = 0
    votes: dict[str, float] = field(default_factory=dict)
    money: float = 0.0
    student_share: float = 0.0


@dataclass(frozen=True, slots=True)
class TrendsView:
    """The latest exits of a stream, withdrawn items excepted: in all, and in periods of as many.

    `accuracy` is the mean confidence of the verdicts, with an interval of 95 % if the confidences
    are right; `mix_shift` is how far the mix of the last quarter is from that before, between 0 and
    1, beyond what chance explains.
    """

    stream: str
    exits: int
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    single_label_share: float | None
    mix_shift: float
    mix: dict[str, Mix]
    reasons: dict[str, int]
    periods: tuple[Period, ...]
