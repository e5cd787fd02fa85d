"""The nouns: item, labeler, budget, label, assignment, verdict, exit.

The closed lists of words (why an item left, the states of items, streams, leases and messages,
the roles of keys) are written here once, for the store, the API, its clients and its pages.

All are frozen values. A slot is an int that counts from 0, never a timestamp.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self, TypeAlias

from venire.errors import InputError

__all__ = [
    "LONGEST_RATIONALE",
    "MOST_CAPACITY",
    "MOST_PRICE",
    "MOST_WEIGHT",
    "NOBODY",
    "Assignment",
    "Bounds",
    "Budget",
    "DeliveryStatus",
    "Exit",
    "ExitReason",
    "Item",
    "ItemId",
    "ItemStatus",
    "Label",
    "Labeler",
    "LabelerId",
    "LeaseStatus",
    "NoWork",
    "Revision",
    "Role",
    "StreamStatus",
    "Verdict",
    "rationale_of",
]

#: Far more slots than anybody waits; sums of weights stay finite.
MOST_WEIGHT: Final = 1e15

#: More than any label costs; sums of prices stay finite.
MOST_PRICE: Final = 1e9

#: Characters of a rationale that are kept.
LONGEST_RATIONALE: Final = 2_000

#: The largest 32-bit integer.
MOST_CAPACITY: Final = 2**31 - 1

ItemId: TypeAlias = str
LabelerId: TypeAlias = str

#: One empty set for all items: Python would make, and track, a new one for each.
NOBODY: Final[frozenset[LabelerId]] = frozenset()


class _Word(StrEnum):
    """One of a closed list of words: equal to its text, and shown and stored as that."""

    __repr__ = str.__repr__


class ExitReason(_Word):
    """Why an item left; `meaning` says it in a sentence.

    The order is that of the codes in snapshots, from 0 on: a new reason goes to the end.

    >>> ExitReason("budget"), ExitReason.BUDGET.meaning
    ('budget', 'the budget of labels was spent')
    """

    meaning: str

    def __new__(cls, text: str, meaning: str = "") -> Self:
        """A reason from its text and what it means."""
        reason = str.__new__(cls, text)
        reason._value_, reason.meaning = text, meaning
        return reason

    WITHDRAWN = "withdrawn", "it was taken out by hand"
    NO_GAIN = "no_gain", "no labeler that could still be asked was worth another slot of waiting"
    EXHAUSTED = (
        "exhausted",
        "every labeler that may label it had done so, or was not expected any more",
    )
    OVERLAP = "overlap", "it had the number of labels that the policy asks for"
    LEARNING = "learning", "it was used to learn how good the labelers are"
    DROPPED = "dropped", "it was passed over while the labelers were being learned"
    HORIZON = "horizon", "the simulation ended"
    MAX_LABELS = "max_labels", "it had the most labels that an item may have"
    CONFIDENT = "confident", "its verdict had reached min_confidence"
    DEADLINE = "deadline", "its deadline had come"
    BUDGET = "budget", "the budget of labels was spent"
    UNDECIDED = (
        "undecided",
        "its verdict was below min_confidence, and nobody was left who may label it, "
        "or it had the most labels that an item may have; it left with the verdict of least "
        "expected cost or, while costs do not count yet, the most probable one",
    )
    LEAVE_ON = "leave_on", "a labeler whose word is enough for that class (leave_on) said it"


class ItemStatus(_Word):
    """Where an item stands: it is open for labels, left with its verdict, or was withdrawn."""

    OPEN = "open"
    LEFT = "left"
    WITHDRAWN = "withdrawn"


class StreamStatus(_Word):
    """Whether a stream hands out work and takes items, only takes items, or only hands out work.

    One that is `archived` was closed, and is put away: it can be read, and restored.
    """

    RUNNING = "running"
    PAUSED = "paused"
    CLOSED = "closed"
    ARCHIVED = "archived"


class LeaseStatus(_Word):
    """What became of a lease: it is open, a label came, it was given back, or it expired."""

    OPEN = "open"
    DONE = "done"
    RELEASED = "released"
    EXPIRED = "expired"


class DeliveryStatus(_Word):
    """What became of a message to a webhook: to be tried, delivered, or dead-lettered."""

    PENDING = "pending"
    DONE = "done"
    DEAD = "dead"


class Role(_Word):
    """What the holder of a key may do: everything, send items, label, read, or judge verdicts."""

    ADMIN = "admin"
    PRODUCER = "producer"
    LABELER = "labeler"
    VIEWER = "viewer"
    REVIEWER = "reviewer"


class NoWork(_Word):
    """Why a labeler who asked for work was given none."""

    EMPTY = "empty"
    ALL_LEASED = "all_leased"
    NONE_FOR_YOU = "none_for_you"
    PAUSED = "paused"
    CLOSED = "closed"
    OVER_CAPACITY = "over_capacity"
    BUDGET_SPENT = "budget_spent"


class NoteKind(_Word):
    """What a labeler remarks on an item; `unsure` is an abstention: it looked, and has no label."""

    COMMENT = "comment"
    FLAG = "flag"
    UNSURE = "unsure"


@dataclass(frozen=True, slots=True)
class Item:
    """What gets labelled (the paper's sample s).

    `weight` (w_s) trades accuracy against delay: a weight of 8 says that a right verdict is
    worth waiting up to 8 slots. `eligible` names the only labelers who may label it (None:
    anyone); `excluded` names those who may not. `min_confidence` is the confidence that its verdict
    must reach, in the place of that of `Bounds`.

    >>> Item("post-1", weight=8, min_confidence=0.99)
    Item(id='post-1', weight=8.0, eligible=None, excluded=frozenset(), min_confidence=0.99)
    """

    id: ItemId
    weight: float = 1.0
    eligible: frozenset[LabelerId] | None = None
    excluded: frozenset[LabelerId] = field(default_factory=frozenset)
    min_confidence: float | None = None

    def __post_init__(self) -> None:
        weight = float(self.weight)
        if self.min_confidence is not None and not 0 < self.min_confidence <= 1:
            raise InputError(
                f"item {self.id!r} has min_confidence {self.min_confidence!r}, expected a "
                "probability above 0"
            )
        if not 0 < weight <= MOST_WEIGHT:
            raise InputError(
                f"item {self.id!r} has weight {self.weight!r}, "
                f"expected a number above 0 and up to {MOST_WEIGHT:g}"
            )
        object.__setattr__(self, "weight", weight)
        for name in ("eligible", "excluded"):
            names = getattr(self, name)
            if isinstance(names, str):
                raise InputError(
                    f"item {self.id!r} has {name}={names!r}, expected a set of names: {{{names!r}}}"
                )
            if names is not None:
                object.__setattr__(self, name, frozenset(names))


@dataclass(frozen=True, slots=True)
class Labeler:
    """A person, a model or a judge (the paper's classifier m).

    `competence` (p_m) is the probability that a label of theirs is right, None where it has to
    be learned; `capacity` is how many labels they give in a slot (the paper's gamma copies);
    `price` is what one label of theirs costs, in any one currency.

    >>> Labeler("ann", competence=0.8, price=0.05)
    Labeler(id='ann', competence=0.8, capacity=1, price=0.05)
    """

    id: LabelerId
    competence: float | None = None
    capacity: int = 1
    price: float = 0.0

    def __post_init__(self) -> None:
        if self.competence is not None and not 0 < self.competence < 1:
            raise InputError(
                f"labeler {self.id!r} has competence {self.competence!r}, "
                "expected a probability strictly between 0 and 1"
            )
        if self.capacity != int(self.capacity) or not 1 <= self.capacity <= MOST_CAPACITY:
            raise InputError(
                f"labeler {self.id!r} has capacity {self.capacity!r}, "
                f"expected a whole number of labels per slot, from 1 to {MOST_CAPACITY:,}"
            )
        if not 0 <= self.price <= MOST_PRICE:
            raise InputError(
                f"labeler {self.id!r} has price {self.price!r}, "
                f"expected what one label costs, from 0 to {MOST_PRICE:g}"
            )
        if self.competence is not None:
            object.__setattr__(self, "competence", float(self.competence))
        object.__setattr__(self, "capacity", int(self.capacity))
        object.__setattr__(self, "price", float(self.price))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds for every item, whatever the policy thinks of it.

    `min_labels`: it does not leave with fewer, while somebody can still label it; a labeler to
    whom the policy gives nothing is given the earliest item that is short of them.
    `max_labels`: it is given to no more labelers than that. `min_confidence`: it leaves as soon
    as its verdict has that confidence, without waiting for labels in flight, and not before
    while somebody on the panel may still label it and `max_labels` allows; a labeler to whom the
    policy gives nothing is given the earliest item below it. An item that leaves below it all the
    same leaves as `undecided`. `deadline`: it leaves this many slots after its arrival with the
    labels it has. `spent`: the budget of labels is spent, so that every item leaves with the
    labels it has at the end of the slot, for the reason `budget`.

    `floor=False` is the meaning of `min_confidence` in logs of earlier versions: an item that has
    it leaves, but an item may also leave below it when the policy finds no label worth it.

    >>> Bounds(min_labels=2, max_labels=5, min_confidence=0.95)
    Bounds(min_labels=2, max_labels=5, min_confidence=0.95, deadline=None, spent=False)
    """

    min_labels: int = 0
    max_labels: int | None = None
    min_confidence: float | None = None
    deadline: int | None = None
    spent: bool = False
    floor: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        for name in ("min_labels", "max_labels", "deadline"):
            value, least = getattr(self, name), 1 if name == "max_labels" else 0
            if value is not None and not (value == int(value) and least <= value <= MOST_CAPACITY):
                raise InputError(f"got {name}={value!r}, expected a whole number, {least} or more")
        if self.max_labels is not None and self.max_labels < self.min_labels:
            raise InputError(
                f"got min_labels={self.min_labels} and max_labels={self.max_labels}, expected "
                "the first to be at most the second"
            )
        if self.min_confidence is not None and not 0 < self.min_confidence <= 1:
            raise InputError(
                f"got min_confidence={self.min_confidence!r}, expected a probability above 0"
            )
        if self.min_confidence is None:
            object.__setattr__(self, "floor", True)


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent: `money`, in the currency of the labelers' prices, or `labels`, or both.

    It is for all items of a batch, or with `per_day` for each day of a stream. `slots` is how many
    slots of a stream it is for, those of a day with `per_day`: a scheduler knows no clock.

    >>> Budget(money=50)
    Budget(money=50.0, labels=None, per_day=False)
    >>> Budget(labels=30_000).left(money=12.5, labels=29_000)
    Budget(money=None, labels=1000, per_day=False)
    """

    money: float | None = None
    labels: int | None = None
    per_day: bool = False
    slots: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.money is None and self.labels is None:
            raise InputError("got a budget without a limit, expected money=, labels= or both")
        if self.money is not None:
            if not 0 <= self.money < math.inf:
                raise InputError(f"got a budget of money={self.money!r}, expected 0 or more")
            object.__setattr__(self, "money", float(self.money))
        if self.labels is not None:
            if not (0 <= self.labels < math.inf and self.labels == int(self.labels)):
                raise InputError(
                    f"got a budget of labels={self.labels!r}, expected a whole number, 0 or more"
                )
            object.__setattr__(self, "labels", int(self.labels))
        if self.slots is not None and not (self.slots >= 1 and self.slots == int(self.slots)):
            raise InputError(f"got slots={self.slots!r}, expected a whole number, 1 or more")

    def left(self, money: float, labels: int) -> Budget:
        """The budget after this much of it has been spent, never less than nothing."""
        return Budget(
            None if self.money is None else max(0.0, self.money - money),
            None if self.labels is None else max(0, self.labels - labels),
            self.per_day,
            self.slots,
        )


@dataclass(frozen=True, slots=True)
class Label:
    """What a labeler said of an item, and how sure it said it was (0 to 1), if it did."""

    item: ItemId
    labeler: LabelerId
    said: Hashable
    confidence: float | None = None


def rationale_of(said: object) -> str | None:
    """Why a labeler says what it says, as it is kept; None where it gave no reason.

    >>> rationale_of(" It sells watches. "), rationale_of(" "), rationale_of(5)
    ('It sells watches.', None, None)
    """
    if not isinstance(said, str):
        return None
    return said.replace("\x00", "").strip()[:LONGEST_RATIONALE].rstrip() or None


@dataclass(frozen=True, slots=True)
class Assignment:
    """An item given to a labeler in a slot; `gain` is its incremental utility (sigma).

    `gain` is nan where the competences are not known yet (a learning phase).
    """

    slot: int
    item: ItemId
    labeler: LabelerId
    gain: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The class an item is given, and the probability that it is right.

    An item that leaves without any label has no verdict: `label` is None, `confidence` 0.
    """

    label: Hashable | None
    confidence: float


@dataclass(frozen=True, slots=True)
class Exit:
    """An item leaves at the end of a slot, for a `reason` (see `ExitReason`).

    >>> left = Exit("post-1", 0, 3, 2, Verdict("spam", 0.97), ExitReason.CONFIDENT)
    >>> left.reason, left.reason == "confident"
    ('confident', True)
    """

    item: ItemId
    arrival: int
    slot: int
    labels: int
    verdict: Verdict
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class Revision:
    """The verdict of an item that has left changed, by what is known at the end of a slot.

    `before` is what was said of it last, when it left or by an earlier revision; `labels` counts
    those that came late too. The exit stays what it was.
    """

    item: ItemId
    slot: int
    before: Verdict
    verdict: Verdict
    labels: int
