"""What the service says of the labelers of a stream: one by one, as a panel, by another plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
