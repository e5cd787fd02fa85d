"""Settings of a stream, and of the service as a whole.

`StreamSettings` is the body of `POST /v1/streams`; the store keeps every version of it. Every field
except `classes` may be changed while the stream runs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from venire.costs import MOST_COST
from venire.errors import InputError
from venire.model import MOST_CAPACITY, MOST_PRICE, MOST_WEIGHT
from venire.student import Student


class Unit(NamedTuple):
    """What a number counts: beside its bounds in the type of a setting.

    >>> Unit("seconds").name
    'seconds'
    """

    name: str


Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False), Unit("days")]


class Retention(BaseModel, extra="forbid", frozen=True, use_attribute_docstrings=True):
    """How long history stays; None keeps it for ever.

    >>> Retention(item_days=90).archives, Retention(item_days=90, delete=True).archives
    (True, False)
    """

    payload_days: Days | None = None
    """The payload of an item is erased so long after the item left."""
    item_days: Days | None = None
    """Items are archived, with all that was said of them, so long after they left."""
    items: Annotated[int, Field(ge=0, le=2**53), Unit("items")] | None = None
    """Archive all items except the given number of those that left last."""
    delete: bool = False
    """What would be archived is deleted instead, for good."""

    @property
    def bounds_items(self) -> bool:
        """Whether items leave the store."""
        return self.item_days is not None or self.items is not None

    @property
    def archives(self) -> bool:
        """Whether an archive is needed."""
        return self.bounds_items and not self.delete


def check_retention(retention: Retention, archive: object | None) -> None:
    """Refuse to archive without an archive."""
    if retention.archives and archive is None:
        raise InputError(
            "got a retention that archives items, and this server has no archive: start it with "
            "--archive FOLDER, or set retention.delete, which deletes them for good"
        )


#: Maximum of the setting `ahead`.
MOST_AHEAD: Final = 100

#: Maximum length of guidelines, of a description and of a payload to practise with, in characters.
LONGEST_GUIDELINES: Final = 50_000
LONGEST_DESCRIPTION: Final = 2_000
LONGEST_PRACTICE: Final = 50_000

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(max_length=LONGEST_DESCRIPTION)]


class Block(BaseModel, extra="forbid", frozen=True):
    """A part of the page: which field of the payload it shows, and how.

    `field` is a path such as `prompt` or `messages.0.content`; the whole payload if it is empty.
    `title` stands above it. With `beside` it stands beside the block before it, as two responses
    do. `highlight` names a field that says what to mark in a text: a list of words, or of pairs
    [start, end], counted in characters.

    >>> Block(field="response", show="markdown", title="Response").show
    'markdown'
    """

    field: Annotated[str, Field(max_length=200)] = ""
    show: Literal["auto", "text", "markdown", "code", "image", "audio", "table"] = "auto"
    title: Annotated[str, Field(max_length=200)] = ""
    beside: bool = False
    highlight: Annotated[str, Field(max_length=200)] = ""


class Practice(BaseModel, extra="forbid", frozen=True):
    """An item to practise with: its payload, the right answer, and why it is right (Markdown).

    >>> Practice(payload="BUY NOW", answer="spam", why="It *shouts*.").answer
    'spam'
    """

    payload: JsonValue
    answer: Name
    why: Text = ""

    @field_validator("payload")
    @classmethod
    def _short(cls, payload: JsonValue) -> JsonValue:
        if len(json.dumps(payload)) > LONGEST_PRACTICE:
            raise ValueError(f"got a payload of more than {LONGEST_PRACTICE:,} characters")
        return payload


class PageSettings(BaseModel, use_attribute_docstrings=True):
    """What people who label see, and how far ahead of the server they may be."""

    guidelines: Annotated[str, Field(max_length=LONGEST_GUIDELINES)] = ""
    """How to label, in Markdown; always at hand on the labelling page."""
    descriptions: Annotated[dict[Name, Text], Field(max_length=1000)] = {}
    """What each class means, in Markdown, by class."""
    layout: Annotated[tuple[Block, ...], Field(max_length=20)] = ()
    """What the page shows of a payload, block by block; chosen by its shape if there is none."""
    practice: Annotated[tuple[Practice, ...], Field(max_length=50)] = ()
    """Items with known answers that a person labels first, with feedback; nothing of that is a
    label."""
    ahead: Annotated[int, Field(ge=0, le=MOST_AHEAD), Unit("items")] = 11
    """How many items beyond its capacity a labeler may hold if it asks for that, as the labelling
    page does: the next one, and those whose answers can still be undone."""
    undo_seconds: Annotated[float, Field(ge=0, le=600, allow_inf_nan=False), Unit("seconds")] = 30.0
    """For how long the labelling page keeps an answer, so that it can be undone; at most the last
    ten of them."""
    show_left: bool = False
    """Whether the labelling page says how many open items its labeler has not answered."""

    def check_classes(self, classes: tuple[str, ...]) -> None:
        """`ValueError` if a description or a practice item names a class that there is not."""
        named = {*self.descriptions, *(one.answer for one in self.practice)}
        unknown = sorted(named - set(classes))
        if unknown:
            raise ValueError(
                f"descriptions or practice name the class {unknown[0]!r}, expected one of "
                f"{list(classes)}"
            )


def page_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Those settings of a stream that its labelers may see; not the answers of practice items.

    >>> page_of({"classes": ["a", "b"], "guidelines": "Look twice.", "panel": []})
    {'classes': ['a', 'b'], 'guidelines': 'Look twice.'}
    """
    seen = ("classes", "guidelines", "descriptions", "layout", "ahead", "undo_seconds", "show_left")
    return {name: settings[name] for name in seen if name in settings}


#: The pattern of a stream's name, which is part of URL paths.
STREAM_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"

#: Seconds for which a failed message to a webhook is retried, unless a setting says otherwise.
RETRIED: Final = 3 * 86_400.0

#: Maximum length of an item's id, and of a note on it, in characters.
LONGEST_ID: Final = 200
LONGEST_NOTE: Final = 2_000

#: Settings that are not stored while they are empty, so that servers from before them read streams.
LATER: Final = frozenset(
    {
        "families",
        "show_left",
        "guarantee",
        "guarantee_level",
        "expert_share",
        "leave_on",
        "routes",
        "repeat_share",
        "repeat_after_slots",
    }
)

#: What begins a name that stands for all labelers of a kind.
KIND: Final = "kind:"

#: The shortest slot, in seconds: the server has to close every one.
MIN_SLOT: Final = 0.01

#: Maximum of the setting `revisions`.
MAX_REVISIONS: Final = 100_000

Seconds = Annotated[float, Field(gt=0, le=10 * 365 * 86_400, allow_inf_nan=False), Unit("seconds")]
SlotSeconds = Annotated[
    float, Field(ge=MIN_SLOT, le=10 * 365 * 86_400, allow_inf_nan=False), Unit("seconds")
]
Weight = Annotated[float, Field(gt=0, le=MOST_WEIGHT, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1), Unit("0 to 1")]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Member(BaseModel, extra="forbid", frozen=True):
    """A labeler on the panel: a record, a program or a model.

    `capacity` is how many items it may hold at once. `competence` is the probability that its label
    is right, if known; otherwise it is learned. `price` is what one label of it costs, in the unit
    of the items' weights. `kind` is a note for people. What a `trusted` one says is gold: it is
    given verdicts to audit, and those that tell most (`expert_share`), and no other work. A
    `retired` one is given nothing; its labels stay.

    >>> Member(id="ann").capacity
    1
    """

    id: Name
    competence: Annotated[float, Field(gt=0, lt=1)] | None = None
    capacity: Annotated[int, Field(ge=1, le=MOST_CAPACITY)] = 1
    price: Annotated[float, Field(ge=0, le=MOST_PRICE)] = 0.0
    kind: Annotated[str, Field(max_length=40)] | None = None
    trusted: bool = False
    retired: bool = False


class ErrorCost(BaseModel, extra="forbid", frozen=True):
    """What it costs to say `verdict` of an item that is `truth`.

    >>> ErrorCost(truth="toxic", verdict="ok", cost=10).cost
    10.0
    """

    truth: Name
    verdict: Name
    cost: Annotated[float, Field(gt=0, le=MOST_COST, allow_inf_nan=False)]


class Route(BaseModel, extra="forbid", frozen=True):
    """Where items go whose verdict is `verdict` (None: any) with such a confidence.

    That is `at_least` or more, and less than `below` (None: any). They go to a `stream`, in which
    each arrives as an item of the same id, or to a `webhook` (its id).

    >>> route = Route(verdict="toxic", at_least=0.5, below=0.8, stream="experts")
    >>> route.takes("toxic", 0.5), route.takes("toxic", 0.8), route.takes("ok", 0.6)
    (True, False, False)
    """

    verdict: Name | None = None
    at_least: Annotated[float, Field(ge=0, le=1)] = 0.0
    below: Annotated[float, Field(gt=0, le=1)] | None = None
    stream: Annotated[str, Field(pattern=rf"^{STREAM_NAME}$")] | None = None
    webhook: Annotated[str, Field(min_length=1, max_length=200)] | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.stream is None) == (self.webhook is None):
            raise ValueError(
                f"got the stream {self.stream!r} and the webhook {self.webhook!r}, expected one of "
                "them"
            )
        if self.below is not None and self.at_least >= self.below:
            raise ValueError(
                f"got at_least {self.at_least:g} and below {self.below:g}, expected the first to "
                "be less"
            )
        return self

    @property
    def place(self) -> tuple[str, str]:
        """Whether it is a stream or a webhook, and its name or id."""
        return ("webhook", self.webhook or "") if self.stream is None else ("stream", self.stream)

    def takes(self, verdict: str | None, confidence: float) -> bool:
        """Whether a verdict with this confidence goes there."""
        below = self.below is None or confidence < self.below
        return self.verdict in (None, verdict) and self.at_least <= confidence and below


class DailyBudget(BaseModel, extra="forbid", frozen=True, use_attribute_docstrings=True):
    """What may be spent each day: `money`, in the unit of the labelers' prices, `labels`, or both.

    >>> DailyBudget(money=50).per_day
    True
    """

    money: (
        Annotated[float, Field(ge=0, allow_inf_nan=False), Unit("a day, in the unit of prices")]
        | None
    ) = None
    """What labels may cost: at no time more, and at a pace at which the last of it buys as much as
    the first."""
    labels: Annotated[int, Field(ge=0, le=2**53), Unit("labels a day")] | None = None
    """How many labels may be bought."""
    per_day: Literal[True] = True

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.money is None and self.labels is None:
            raise ValueError("got a budget without a limit, expected money, labels or both")
        return self


class StudentSettings(BaseModel, extra="forbid", frozen=True):
    """A model that learns from the verdicts and joins the panel; see docs/student.md.

    `field` is what it sees of an item's payload, a text or a list of numbers; by default all of its
    text. `bins` is how many bins its confidence has, and `id` its name.

    >>> StudentSettings(field="text").voices[0]
    'student (1 of 5)'
    """

    id: Annotated[Name, Field(max_length=100)] = "student"
    field: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    bins: Annotated[int, Field(ge=1, le=10)] = 5

    @property
    def student(self) -> Student:
        return Student(field=self.field, bins=self.bins, id=self.id)

    @cached_property
    def voices(self) -> tuple[str, ...]:
        """The labelers that it is on the panel."""
        return self.student.voices


class AlarmRules(BaseModel, extra="forbid", frozen=True, use_attribute_docstrings=True):
    """When to raise an alarm; None turns a rule off.

    >>> AlarmRules(queue=1000).single_label_share
    0.8
    """

    queue: Annotated[Count, Unit("items")] | None = None
    """More items than this are open."""
    oldest_seconds: Seconds | None = None
    """An open item has waited longer."""
    response_p90_seconds: Seconds | None = None
    """A tenth of the last thousand items took longer from arrival to verdict."""
    accuracy: Share | None = None
    """The estimated accuracy, with its whole interval, is lower."""
    error_upper: Share | None = None
    """The upper bound on the rate of errors, by audits, is higher."""
    single_label_share: Share | None = 0.8
    """More of the latest items left after one label."""
    kept_share: Share | None = 0.5
    """Of the items that most labels put into a class, fewer left as that class."""
    mix_shift: Share | None = 0.3
    """The mix of the latest verdicts differs more from that of those before."""
    drift: bool = True
    """A labeler labels differently than before."""
    stopped_seconds: Seconds | None = 3600.0
    """A labeler that had labelled gave nothing for longer, while items wait."""
    budget_share: Share | None = 0.1
    """Less of the label budget is left."""


class StreamSettings(PageSettings):
    """How a stream is served; what people see on the labelling page is in `PageSettings`.

    Examples
    --------
    >>> StreamSettings(classes=["spam", "ok"], panel=[{"id": "ann"}]).policy
    'realised'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    classes: Annotated[tuple[Name, ...], Field(min_length=2, max_length=1000)]
    """The possible labels. Cannot be changed later."""
    panel: Annotated[tuple[Member, ...], Field(max_length=10_000)] = ()
    """The labelers known from the start."""
    open_panel: bool = True
    """Whether a labeler that is not on the panel joins it by requesting work."""
    unasked_labels: bool = False
    """Whether a labeler's own key may send labels for items it was never assigned."""
    policy: Annotated[str, Field(max_length=100)] = "realised"
    """Who gets what, and when an item leaves: a name with parameters, as `fixed-overlap:5`."""
    learning: Annotated[str, Field(max_length=100)] = "while-serving"
    """How it learns how good labelers are; with `known` each needs a competence."""
    slot_seconds: SlotSeconds = 60.0
    """The length of a slot: verdicts are given at its end. Slots that the server cannot close in
    time are skipped."""
    default_weight: Annotated[Weight, Unit("in the unit of prices")] = 10.0
    """What a right verdict is worth, for items without a weight of their own. A change applies to
    items that arrive after it."""
    delay_cost: Annotated[Weight, Unit("a slot")] = 1.0
    """What waiting for one slot costs, in the unit of the weights and prices."""
    min_labels: Annotated[Count, Unit("labels")] = 1
    """An item does not leave with fewer labels, unless nobody on the panel is left to label it."""
    max_overlap: Annotated[int, Field(ge=1, le=2**31 - 1), Unit("labels")] | None = None
    """An item leaves once it has this number of labels, decided or not."""
    min_confidence: Annotated[float, Field(gt=0, le=1), Unit("0 to 1")] | None = None
    """An item leaves once its verdict is as sure as this, and not before while somebody could still
    label it; one that leaves below it before its deadline is undecided."""
    deadline_slots: Annotated[int, Field(ge=1, le=2**31 - 1), Unit("slots")] | None = None
    """An item leaves at the latest so long after its arrival."""
    leave_on: Annotated[
        dict[Name, Annotated[tuple[Name, ...], Field(min_length=1, max_length=1000)]],
        Field(max_length=1000),
    ] = {}  # pydantic copies it
    """Whose word is enough for a class, `{"illegal": ["ann", "kind:person"]}`: an item of which one
    of these says it leaves as that at the end of the slot, and nobody else is asked. A labeler by
    name, or all those on the panel of a kind."""
    routes: Annotated[tuple[Route, ...], Field(max_length=1000)] = ()
    """Where items go when they leave, by their verdict and its confidence, besides to whoever reads
    the exits: to another stream, in which each arrives once, or to a webhook, which then gets the
    verdicts of its routes only. Confidences are from `at_least` up, and less than `below`."""
    label_budget: Annotated[int, Field(ge=0, le=2**53), Unit("labels")] | None = None
    """Labels in all; once they are spent, items leave with the labels they have."""
    budget: DailyBudget | None = None
    """What may be spent each day, `{"money": 50}` or `{"labels": 300}`; a day is 86,400 seconds of
    slots."""
    revisions: Annotated[int, Field(ge=0, le=MAX_REVISIONS, strict=True), Unit("items")] = 0
    """How many of the latest items that left are decided again whenever more is learned about the
    labelers; verdicts that changed are published."""
    costs: Annotated[tuple[ErrorCost, ...], Field(max_length=10_000)] = ()
    """What errors cost, by truth and verdict; 1 where nothing is said. The verdict is the class of
    least expected cost."""
    families: Annotated[dict[Name, Name], Field(max_length=10_000)] = {}  # pydantic copies it
    """Labelers who may share errors, by the name of their family, `{"llama-a": "llama"}`: together
    they count for as many votes as they are worth. Labelers who have not come yet may be named."""
    audit_share: Share = 0.0
    """The share of the verdicts, drawn at random, that a trusted labeler audits."""
    audit_at_least: Annotated[int, Field(ge=0, le=1_000_000), Unit("of each class")] = 0
    """So many audits of each class of verdicts, or all that there are: of the first ones of a class
    every one is drawn, of the next as many every second, then every fourth, down to `audit_share`.
    0: all verdicts are drawn alike."""
    expert_share: Share = 0.0
    """The share of what all labels cost (of their number, where labelers other than the trusted
    ones are free) that trusted labelers may cost, audits included. Up to this they are given, once
    no audit is due, the verdicts whose truth tells most about who is right, as long as more answers
    pay. 0: audits only."""
    guarantee: Annotated[float, Field(gt=0, lt=1), Unit("0 to 1")] | None = None
    """Verdicts are marked as guaranteed: 0.95 for at most 5 % of the marked ones wrong, whatever
    labelers do, by audits; needs `audit_share`. The others are the ones to review. A change of it,
    of its level or of `audit_share` begins a new test."""
    guarantee_level: Annotated[float, Field(gt=0, lt=1), Unit("0 to 1")] | None = None
    """The probability with which the guarantee holds at all times; None: 0.95."""
    repeat_share: Share = 0.0
    """The share of the work of each labeler that is an item which it has labelled before and which
    has left since: does it say the same again? Its answer is no label and changes no verdict, and
    it costs as much as a label."""
    repeat_after_slots: Annotated[int, Field(ge=1, le=2**31 - 1), Unit("slots")] | None = None
    """How long ago that was at least; None: 60 slots."""
    student: StudentSettings | None = None
    """A model that learns from the verdicts and labels every item, `{"field": "text"}`. Its label
    counts in `min_labels` and `max_overlap`, and costs nothing; budgets must be in money."""
    alarms: AlarmRules = AlarmRules()
    """When to raise an alarm."""
    retention: Retention = Retention()
    """How long payloads and items that left stay in the store; by default for ever."""
    lease_floor_seconds: Seconds = 60.0
    """The shortest lease, which lasts twice the labeler's 90th percentile of labelling time."""
    lease_ceiling_seconds: Seconds = 3600.0
    """The longest lease."""

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """All fields; those of `LATER` are left out if empty, as in settings from before them."""
        fields: dict[str, Any] = write(self)
        return {k: v for k, v in fields.items() if k not in LATER or getattr(self, k)}

    @model_validator(mode="after")
    def _together(self) -> Self:
        if len(set(self.classes)) < len(self.classes):
            raise ValueError(f"got the classes {list(self.classes)}, expected distinct names")
        self.check_classes(self.classes)
        names = [member.id for member in self.panel]
        if len(set(names)) < len(names):
            raise ValueError("a labeler is on the panel twice, expected distinct ids")
        if not self.asked and not self.open_panel:
            raise ValueError("the panel is empty and closed: name labelers, or set open_panel")
        if self.max_overlap is not None and self.min_labels > self.max_overlap:
            raise ValueError(
                f"min_labels {self.min_labels} is more than max_overlap {self.max_overlap}"
            )
        for cost in self.costs:
            if not {cost.truth, cost.verdict} <= set(self.classes) or cost.truth == cost.verdict:
                raise ValueError(
                    f"got a cost of {cost.truth!r} called {cost.verdict!r}, expected two different "
                    f"classes among {list(self.classes)}"
                )
        if len(self.cost_pairs) < len(self.costs):
            raise ValueError("an error has two costs, expected one for each truth and verdict")
        if self.guarantee is not None and not self.audit_share:
            raise ValueError(
                "got a guarantee without audits, by which it is tested: set audit_share, such as "
                "0.05, and name somebody trusted on the panel"
            )
        unknown = sorted(self.leave_on.keys() - set(self.classes))
        if unknown:
            raise ValueError(
                f"leave_on names the class {unknown[0]!r}, expected one of {list(self.classes)}"
            )
        if self.repeat_after_slots is not None and not self.repeat_share:
            raise ValueError("got repeat_after_slots without repeat_share: set both, or neither")
        for route in self.routes:
            if route.verdict is not None and route.verdict not in self.classes:
                raise ValueError(
                    f"routes names the class {route.verdict!r}, expected one of "
                    f"{list(self.classes)}"
                )
        if self.guarantee_level is not None and self.guarantee is None:
            raise ValueError("got guarantee_level without guarantee: set both, or neither")
        self._check_student()
        if self.lease_floor_seconds > self.lease_ceiling_seconds:
            raise ValueError("lease_floor_seconds is more than lease_ceiling_seconds")
        return self

    def _check_student(self) -> None:
        if self.student is None:
            return
        if self.voices & {member.id for member in self.panel}:
            raise ValueError(f"the student {self.student.id!r} is on the panel: give it another id")
        if self.label_budget is not None or (self.budget and self.budget.labels is not None):
            raise ValueError(
                "got a budget in labels and a student, which labels every item for nothing: give "
                "the labelers a price, and the budget in money"
            )

    @cached_property
    def voices(self) -> frozenset[str]:
        """The labelers that are the student's; none without one."""
        return frozenset() if self.student is None else frozenset(self.student.voices)

    @cached_property
    def trusted(self) -> frozenset[str]:
        """The labelers whose word is gold."""
        return frozenset(m.id for m in self.panel if m.trusted and not m.retired)

    def places(self, verdict: str | None, confidence: float) -> list[tuple[str, str]]:
        """Where an item with this verdict goes, each place once."""
        found = (route.place for route in self.routes if route.takes(verdict, confidence))
        return list(dict.fromkeys(found))

    @cached_property
    def routed_hooks(self) -> frozenset[str]:
        """The webhooks that get the verdicts of their routes only."""
        return frozenset(route.webhook for route in self.routes if route.webhook is not None)

    def leaves_on(self, said: str, labeler: str) -> bool:
        """Whether the word of this labeler is enough for a class.

        >>> panel = [{"id": "ann", "kind": "person"}, {"id": "bob"}]
        >>> rules = {"spam": ["kind:person"], "ok": ["bob"]}
        >>> s = StreamSettings(classes=["spam", "ok"], panel=panel, leave_on=rules)
        >>> s.leaves_on("spam", "ann"), s.leaves_on("spam", "bob"), s.leaves_on("ok", "bob")
        (True, False, True)
        """
        named = self.leave_on.get(said, ())
        return bool(named) and (labeler in named or self._kinds.get(labeler) in named)

    @cached_property
    def _kinds(self) -> dict[str, str]:
        """The labelers on the panel whose kind is known, as `leave_on` names it."""
        return {who.id: f"{KIND}{who.kind}" for who in self.panel if who.kind is not None}

    @cached_property
    def retired(self) -> frozenset[str]:
        """The labelers who are given nothing any more."""
        return frozenset(member.id for member in self.panel if member.retired)

    @property
    def asked(self) -> list[Member]:
        """Those on the panel who are asked for labels."""
        return [member for member in self.panel if not member.trusted and not member.retired]

    @property
    def cost_pairs(self) -> dict[tuple[Hashable, Hashable], float]:
        """What errors cost, as the engine takes it."""
        return {(cost.truth, cost.verdict): cost.cost for cost in self.costs}


def changed(settings: StreamSettings, changes: dict[str, Any]) -> StreamSettings:
    """The settings with some fields replaced, validated again.

    >>> old = StreamSettings(classes=["a", "b"])
    >>> changed(old, {"max_overlap": 5}).max_overlap
    5
    """
    return StreamSettings.model_validate({**settings.model_dump(), **changes})


def as_body(settings: StreamSettings, status: str) -> str:
    """One version of a stream's settings and status, as stored.

    >>> of_body(as_body(StreamSettings(classes=["a", "b"]), "paused"))[1]
    'paused'
    """
    return json.dumps({"settings": settings.model_dump(mode="json"), "status": status})


def of_body(body: str) -> tuple[StreamSettings, str]:
    """The settings and the status of a stored version."""
    kept = json.loads(body)
    fields = kept["settings"]
    fields["slot_seconds"] = max(fields["slot_seconds"], MIN_SLOT)  # older stores had less
    return StreamSettings.model_validate(fields), str(kept["status"])


def first_fault(error: ValidationError) -> str:
    """The first validation error, in one line.

    >>> try:
    ...     StreamSettings(classes=["a"])
    ... except ValidationError as error:
    ...     print(first_fault(error))
    classes: Tuple should have at least 2 items after validation, not 1
    """
    fault = error.errors()[0]
    where = ".".join(str(part) for part in fault["loc"])
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


class ServiceSettings(BaseModel, extra="forbid", frozen=True):
    """Settings of the service, for all of its streams."""

    max_waiting: Annotated[int, Field(ge=1)] = 1000  # requests for work, at once
    max_wait_seconds: Seconds = 60.0  # the longest that one waits
    max_batch: Annotated[int, Field(ge=1)] = 100_000  # items or labels in one request
    max_open_items: Annotated[int, Field(ge=1)] = 1_000_000  # of a stream; more are refused
    max_labelers: Annotated[int, Field(ge=1)] = 10_000  # of a stream; nobody joins beyond them
    remember_items: Annotated[int, Field(ge=0)] = 100_000  # that left, for their late labels
    archive: Path | None = None  # the folder for what the retention of a stream does not keep
    snapshot_every: Annotated[int, Field(ge=1)] = 20_000  # events between saves of a stream
    allow_private_webhooks: bool = False  # whether they may go to private networks
    webhook_min_attempts: Annotated[int, Field(ge=1, le=50)] = 8  # before giving a message up
    webhook_retry_seconds: Seconds = RETRIED  # of failing before giving a message up
    webhook_timeout_seconds: Seconds = 10.0  # how long an answer is awaited
    webhook_first_delay_seconds: Seconds = 2.0  # before the first retry; doubles with each further
    key_refresh_seconds: Seconds = 2.0  # between readings of keys, which others may change
