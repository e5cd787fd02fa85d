"""What operators get from the service: keys, webhooks, reviews, alarms, trends, and the panel.

Times are seconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from venire.model import DeliveryStatus, Role
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


@dataclass(frozen=True, slots=True)
class LabelerView:
    """A labeler of a stream; `skill` is learned, with its interval.

    `expired` counts the leases that expired since the server started. `price` is what one label
    costs, and `money` what all labels of the labeler cost at that price. `unsure` counts how often
    it looked at an item and abstained. `agreement` is how often another labeler of the same item
    said the same. A `retired` one is given nothing any more. With its `family`, declared or found,
    it counts for fewer votes; `clone_of` is somebody whose errors look alike.
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
    price: float = 0.0
    money: float = 0.0
    trusted: bool = False
    unsure: int = 0
    retired: bool = False
    agreement: float | None = None
    family: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoldAgreement:
    """How often a labeler said what gold says: `right` of `items`, and the interval of 95 %."""

    labeler: str
    items: int
    right: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How often two labelers said the same: `same` of the `items` that both labelled.

    `kappa` is Cohen's: 1 if always, 0 if as often as chance explains, None if nothing but one class
    was said.
    """

    first: str
    second: str
    items: int
    same: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class SelfAgreement:
    """How often a labeler who was asked again said the same: `same` of `items`, and the interval.

    The interval is that of 95 %. See the setting `repeat_share`.
    """

    labeler: str
    items: int
    same: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class AgreementView:
    """How the labelers of a stream agree with gold and with each other, by its latest `labels`.

    `pairs` are of those with the most labels. `relations` says who shares errors, a sentence each.
    `itself` is how those who were asked again agree with themselves, by all such answers.
    """

    stream: str
    labels: int
    gold: tuple[GoldAgreement, ...]
    pairs: tuple[PairAgreement, ...]
    relations: tuple[str, ...] = ()
    itself: tuple[SelfAgreement, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfusionView:
    """How often a labeler says each class of items of each true class, as it was learned.

    `rows[k][j]` is the probability that it says `classes[j]` of an item that is `classes[k]`.
    """

    labeler: str
    classes: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A version of a stream's student: when it learned, from how many verdicts, what came of it.

    `exits` had left until then. `agreement` is how often it agrees with the panel on items that it
    was not taught, `commonest` how often the most frequent class does; it labels items if it is
    `ready`.
    """

    version: int
    at: float
    exits: int
    verdicts: int
    agreement: float
    commonest: float
    ready: bool


@dataclass(frozen=True, slots=True)
class LessonsView:
    """The latest lessons of a stream's student, the earliest first."""

    stream: str
    student: str | None
    lessons: tuple[Lesson, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class PanelMemberView:
    """What a labeler brings and costs.

    `without` is the change in expected accuracy if it left, `second` what a second label of it for
    every item would bring if its errors were independent; `stays` says whether it is on the
    cheapest panel. With its `family` it counts for fewer votes, `copies` have the same errors, and
    those who are `similar` are only reported.
    """

    labeler: str
    skill: float
    skill_low: float
    skill_high: float
    price: float
    labels: int
    share: float
    cost: float
    copies: tuple[str, ...]
    family: tuple[str, ...]
    similar: tuple[str, ...]
    without: Measured
    second: Measured
    stays: bool


@dataclass(frozen=True, slots=True)
class PanelView:
    """A stream's panel by its latest labels, replayed without each of its labelers.

    `accuracy` is expected; `want` is the accuracy asked for, `cheapest` the cost of the cheapest
    panel that reaches it, `can_go` who is not on it, and `change` the change in accuracy.
    `relations` says who shares errors, a sentence each.
    """

    stream: str
    items: int
    labels: int
    cost: float
    accuracy: Measured
    want: float
    reached: bool
    can_go: tuple[str, ...]
    cheapest: float
    change: Measured
    best_again: str
    members: tuple[PanelMemberView, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A measure per item: as it was, as it would have been, and the change."""

    was: float
    would_be: Measured
    change: Measured


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """What another plan would have bought, of the `compared` items that left in both cases.

    `measures` are per item: `right`, the expected share of right verdicts, `labels`, `money` and
    `wait`, the slots to the exit. `items` arrived, `left` of them left under the plan. With nothing
    changed, `repeated` of the `recorded` verdicts come out as they were. `held` is the share of the
    labels asked for that the log holds: the others were drawn, or were not to be had. `hanging` is
    the share of verdicts that would rest on one of them, `turned` the share that is another than it
    was, `turned_hanging` that of both. `ran_out` is the share of items that left when nobody was
    left to ask, `idle` the share of visits on which a labeler was given nothing. `notes` say what
    could not be repeated, in words. Only the beginning of the log was replayed unless it is
    `whole`.
    """

    stream: str
    whole: bool
    items: int
    compared: int
    left: int
    measures: dict[str, Compared]
    recorded: int
    repeated: int
    held: float
    hanging: float
    turned: float
    turned_hanging: float
    ran_out: float
    idle: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IntervalView:
    """An estimate between its two ends; None where nothing is known."""

    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class RateView:
    """A rate of the verdicts, as `venire estimate` states it: `gold_only` by audits alone.

    `worth` is how many audits would by themselves say as much; `gold` of `items` were audited.
    """

    estimate: float | None
    low: float | None
    high: float | None
    level: float
    gold_only: IntervalView
    worth: float | None
    gold: int
    items: int


@dataclass(frozen=True, slots=True)
class ClassRates:
    """A class: its share of the items, and how right and how complete verdicts of it are."""

    share: RateView
    precision: RateView
    recall: RateView


@dataclass(frozen=True, slots=True)
class ThresholdView:
    """The verdicts that are at least so sure: at most the share `bound` of them is wrong.

    `due` were drawn and have no answer yet; they count as wrong. `through` is the number of the
    last exit up to which they are proven to be good enough; 0 if never.
    """

    confidence: float
    verdicts: int
    coverage: float
    audited: int
    wrong: int
    due: int
    bound: float
    through: int


@dataclass(frozen=True, slots=True)
class GuaranteeView:
    """With probability `level` the share `right` of the marked verdicts is right, at all times.

    `marked` of the `verdicts` since the test began are guaranteed: those at least as sure as
    `confidence`, up to the exit `through`. `more` says how large a share would be after further
    audits, if verdicts stay as they are.
    """

    right: float
    level: float
    share: float
    confidence: float | None
    through: int
    marked: int
    verdicts: int
    coverage: float
    curve: tuple[ThresholdView, ...]
    more: dict[int, float]


@dataclass(frozen=True, slots=True)
class RatesView:
    """The rates of a stream by its audits, over the latest items that could have been drawn.

    `drawn` of the `items` were drawn, `gold` of those have an answer, and `passed_over` have none
    though later ones do: each end of an interval is as if these spoke against it. `guarantee` is
    that of the stream, if it has one.
    """

    stream: str
    level: float
    items: int
    drawn: int
    gold: int
    passed_over: int
    due: int
    classes: dict[str, ClassRates]
    guarantee: GuaranteeView | None = None
