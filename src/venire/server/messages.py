"""What the service takes and returns: plain frozen dataclasses, ready to be written as JSON.

Times are seconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeVar

from venire.model import ExitReason, ItemStatus, NoteKind, NoWork, StreamStatus

V = TypeVar("V")


def view(kind: type[V], found: object, /, **more: Any) -> V:
    """What clients see of a result: its fields of the same name, and these.

    >>> from types import SimpleNamespace
    >>> view(Nothing, SimpleNamespace(reason="none_for_you", gain=0.0))
    Nothing(reason='none_for_you')
    """
    names = _names(kind)  # type: ignore[arg-type] # classes are hashable
    return kind(**{name: getattr(found, name) for name in names if name not in more}, **more)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream as it is now; `student` is what its student has learned, if it has one."""

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
    student: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SettingsVersion:
    """One version of a stream's settings: what, when and by whom."""

    version: int
    at: float
    actor: str
    status: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArchivedStream:
    """A stream that is archived, since when, and what it holds."""

    name: str
    created_at: float
    archived_at: float
    exits: int
    labels: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A deleted stream, and what it held."""

    stream: str
    items: int
    labels: int
    events: int


@dataclass(frozen=True, slots=True)
class ItemIn:
    """An item as a producer sends it; `payload` is passed on to labelers and never inspected."""

    id: str
    payload: Any = None
    weight: float | None = None
    eligible: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    min_confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Added:
    """The outcome for an item that was sent."""

    id: str
    status: Literal["created", "exists"]


@dataclass(frozen=True, slots=True)
class Lease:
    """An item leased to a labeler until `expires_at`; a heartbeat renews the lease.

    `shown` is what a page draws of the payload, part by part, where that was asked for.
    """

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
    shown: tuple[dict[str, Any], ...] | None = None


@dataclass(frozen=True, slots=True)
class NoteView:
    """What a labeler remarked on an item; `n` is the cursor, counted from 1 in each stream."""

    n: int
    item: str
    labeler: str
    kind: NoteKind
    text: str
    at: float
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a labeler has come: its labels since a time, and all of them.

    `left` is how many open items it has not answered, if the stream has `show_left`.
    """

    stream: str
    labeler: str
    since: float
    labels: int
    total: int
    unsure: int
    left: int | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """No work is available, and why."""

    reason: NoWork


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a label for a lease.

    `late`: the item had left; the label is kept for learning. `expired`: the lease had ended; the
    label counts all the same.
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
    """A label sent without a lease; `said` is None where the labeler is not sure."""

    item: str
    labeler: str
    said: str | None
    confidence: float | None = None
    rationale: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a label or gold sent in bulk; `code` and `message` say why it was refused.

    Codes: unknown_class, unknown_labeler, unknown_item, not_allowed, not_given, panel_full,
    changed. Gold that was taken may have the code not_learned: its item is forgotten. Gold that
    takes the place of other gold is corrected.
    """

    status: Literal["accepted", "exists", "late", "refused", "corrected"]
    code: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LabelView:
    """A label of an item, and the id of the key that sent it, if known.

    `confidence` is how sure the labeler said it was, and `rationale` why it said so; None where it
    did not say.
    """

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


@dataclass(frozen=True, slots=True)
class GoldSaid:
    """What somebody trusted said of an item, when, who, and how it came.

    `source` is `audit` for a drawn audit, `asked` for an item that a trusted labeler was given
    for what it tells, `review` for a review, `sent` for gold that was sent.
    """

    label: str
    at: float
    source: str
    actor: str
    key: str | None


@dataclass(frozen=True, slots=True)
class GoldView:
    """The gold of an item, as in `GoldSaid`; `earlier` is what was corrected, the first first."""

    item: str
    label: str
    at: float
    source: str
    actor: str
    key: str | None
    earlier: tuple[GoldSaid, ...] = ()


@dataclass(frozen=True, slots=True)
class RouteView:
    """Where the verdict of an item sent it (the setting `routes`), or from where it came.

    `kind` says what the `target` is, a `stream` or a `webhook`. `settled_at` is when it had arrived
    there, or could not, for the reason `fault`; None while it is on its way.
    """

    stream: str
    item: str
    kind: Literal["stream", "webhook"]
    target: str
    at: float
    settled_at: float | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class RepeatView:
    """What a labeler said of an item that it was asked about again; `before` is its label."""

    item: str
    labeler: str
    before: str
    said: str
    at: float
    slot: int
    lead_seconds: float | None = None
    key: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item and its state: `posterior` while it is open, `exit` once it has left.

    `verdict` and `confidence` are current: by the labels so far while the item is open, and
    afterwards by its last revision, or by its exit if there is none. `follow_up` is the item as
    which it was sent back for more labels, `follows` the one that was sent back as this. `gold` is
    what somebody trusted said, `gold_said` who, when, and what that corrected. `rests_on` says in
    words what the confidence rests on, and whether that is stale; None where it is hidden.
    `routed` is where its verdict sent it, `routed_from` from where another stream's sent it here.
    `repeats` is what those said who were asked about it again, which is no label.
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
    min_confidence: float | None = None
    gold: str | None = None
    notes: tuple[NoteView, ...] = ()
    follows: str | None = None
    follow_up: str | None = None
    gold_said: GoldView | None = None
    rests_on: str | None = None
    routed: tuple[RouteView, ...] = ()
    routed_from: tuple[RouteView, ...] = ()
    repeats: tuple[RepeatView, ...] = ()


@dataclass(frozen=True, slots=True)
class Erased:
    """An item whose payload was erased, and its size in bytes; 0 if it was erased before."""

    stream: str
    item: str
    bytes: int


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
class ExitView:
    """The exit of an item; `n` is the cursor, counted from 1 in each stream.

    `reason` is None where the verdict is hidden: it tells whether labelers agreed. `guaranteed` is
    whether the verdict is so by the audits up to now, in a stream with a guarantee.
    """

    n: int
    item: str
    verdict: str | None
    confidence: float
    labels: int
    reason: ExitReason | None
    arrived_slot: int
    slot: int
    at: float
    guaranteed: bool | None = None


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A changed verdict of an item that has left; its exit stays as it was.

    `n` is the cursor, counted from 1 in each stream; `before` is the previous verdict, of the exit
    or of an earlier revision; `labels` includes late ones.
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
class BoundView:
    """What audits say of the rate of errors: at most `upper`, and from `low` to `high`.

    Each holds with probability `level` at all times. `audited` verdicts were drawn and looked at,
    `skipped` of them passed over, `wrong` of the others are wrong; `estimate` is their share.
    """

    audited: int
    wrong: int
    skipped: int
    estimate: float | None
    upper: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class AuditsView:
    """The accuracy audits of a stream: of all verdicts, and of those that say each class.

    `due` verdicts wait for a trusted labeler; `due_items` are the first of them, for admins and
    trusted labelers only. `gold` counts all gold, most of which says nothing about the others.
    """

    stream: str
    share: float
    level: float
    drawn: int
    due: int
    gold: int
    overall: BoundView
    classes: dict[str, BoundView]
    due_items: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GoldIn:
    """What somebody who is trusted says of an item."""

    item: str
    label: str


@dataclass(frozen=True, slots=True)
class EventView:
    """An entry of a stream's log."""

    n: int
    slot: int
    at: float
    kind: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Insights:
    """The statistics of a stream, for pages, metrics and the command line alike.

    Counts are over the stream's life, and so is `money`: what all labels cost, at the present
    prices. `today_left` is what is left of the daily budget, labels in flight subtracted.
    `labels_per_item`, `agreement`, `mean_confidence`, `verdicts`, `reasons` and the response times
    are over the last 1000 exits, withdrawn items excepted. Rates are over the last minute;
    `slots_skipped` is counted since the server started. `error_upper` is the upper bound on the
    rate of errors, at 95 %, by those of the `audits` that are a random sample. The accuracy is
    estimated by `mean_confidence`, and lies between `accuracy_low` and `accuracy_high` with 95 %,
    if confidences are right. `alarms` counts those that are on, `alarms_of_verdicts` those of them
    that verdicts raised, `unsure` how often a labeler abstained. `exits_by_minute` and
    `queue_by_minute` are the last 60 minutes, that of now at the end; after a restart only as far
    as the last 1000 exits tell.
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
    gold: int = 0
    audits: int = 0
    audits_due: int = 0
    error_upper: float | None = None
    money: float = 0.0
    today_left: dict[str, float] = field(default_factory=dict)
    unsure: int = 0
    flags: int = 0
    comments: int = 0
    alarms: int = 0
    alarms_of_verdicts: int = 0
    accuracy_low: float | None = None
    accuracy_high: float | None = None
    single_label_share: float | None = None
    exits_by_minute: tuple[int, ...] = ()
    queue_by_minute: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another item that the labeler could have been assigned; to whom it went at that moment."""

    item: str
    gain: float | None
    given_to: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """An assignment of the item to a labeler: its gain, the price, and the alternatives."""

    n: int
    slot: int
    at: float
    labeler: str
    gain: float | None
    price: float | None
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Belief:
    """The posterior of an item after something happened: it arrived, got a label, or left.

    `why` is `arrived`, `label` (then `labeler` said `said`), or `learned` where the stream learned
    competences and believes something else by the same labels.
    """

    n: int
    slot: int
    at: float
    why: Literal["arrived", "label", "learned"]
    posterior: dict[str, float]
    labeler: str | None = None
    said: str | None = None


@dataclass(frozen=True, slots=True)
class Enough:
    """One labeler's word was enough for the item to leave (the setting `leave_on`)."""

    n: int
    slot: int
    at: float
    labeler: str
    said: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an item was assigned to whom, and why it left, recomputed from the log.

    `enough` is whose word alone it left on, if that was so.
    `beliefs`, if they were asked for, is how the posterior moved. If the replay takes too long,
    `complete` is false, and prices, alternatives and beliefs are left out.
    """

    item: str
    arrived_slot: int
    given: tuple[Given, ...]
    labels: tuple[LabelView, ...]
    exit: ExitView | None
    why: str
    complete: bool = True
    beliefs: tuple[Belief, ...] = ()
    enough: Enough | None = None
