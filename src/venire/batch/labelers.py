"""Functions and judges as labelers, what they answer, and what each of them may label.

`Pupil` is what a batch knows of a student (`venire.student`, which is above it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from venire.errors import InputError, VenireError
from venire.estimators.dependence import Families
from venire.labels import LabelTable, Names
from venire.model import MOST_PRICE, MOST_WEIGHT, ItemId, LabelerId
from venire.tools.arrays import Floats, Ints


class Pupil(Protocol):
    """A model that learns from the labels of a batch and votes with the panel."""

    def join(self, table: LabelTable, now: bool = False) -> LabelTable:
        """The table with its votes, as labels of labelers after those of the panel."""

    def record(self) -> dict[str, Any]:
        """What is reported of it."""


class Teachable(Protocol):
    """A student, which joins a batch of contents: `venire.student.Student`."""

    def join_batch(self, contents: Sequence[Any]) -> Pupil:
        """Its seat in the batch."""


#: What stands for the class that was said: nobody was asked, there was an answer without a label,
#: or the labeler was away.
FREE: Final = -1
NO_LABEL: Final = -2
AWAY: Final = -3


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One item of a batch: what the labelers are shown, and what its verdict is worth.

    `weight` is what a right verdict is worth, against those of the other items. `target` is the
    confidence at which the item is done (None: that of the batch). `eligible` names the only
    labelers who may label it (None: anyone).

    >>> BatchItem("post-1", {"text": "Buy now!"}, target=0.99).weight
    1.0
    """

    id: ItemId
    content: Any = None
    weight: float = 1.0
    target: float | None = None
    eligible: frozenset[LabelerId] | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.weight, int | float) and 0 < self.weight <= MOST_WEIGHT):
            raise InputError(
                f"item {self.id!r} has weight {self.weight!r}, expected a number above 0"
            )
        check_target(self.target, f"item {self.id!r} has target")


def check_target(target: float | None, who: str = "got target") -> None:
    """Refuse a target that is not a probability between 0 and 1."""
    if target is not None and not (isinstance(target, int | float) and 0 < target < 1):
        raise InputError(f"{who} {target!r}, expected a confidence between 0 and 1, such as 0.95")


def as_items(given: Mapping[ItemId, Any] | Iterable[Any]) -> tuple[BatchItem, ...]:
    """Items of any form: a dict from id to content, records with an `id`, or `BatchItem`s.

    The fields `weight`, `target` and `eligible` of a record say what `BatchItem` says; labelers
    are shown the whole record.

    >>> [item.id for item in as_items({"a": "first text", "b": "second text"})]
    ['a', 'b']
    >>> as_items([{"id": 7, "text": "Buy now!", "weight": 2}])[0].weight
    2.0
    """
    if isinstance(given, Mapping):
        items = tuple(BatchItem(str(name), content) for name, content in given.items())
    else:
        items = tuple(_item(one, place) for place, one in enumerate(given, 1))
    if not items:
        raise InputError("got no items, expected at least one")
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise InputError(f"got item {item.id!r} twice, expected every id once")
        seen.add(item.id)
    return items


def _item(one: Any, place: int) -> BatchItem:
    if isinstance(one, BatchItem):
        return one
    if not isinstance(one, Mapping) or one.get("id") in (None, ""):
        raise InputError(
            f"item {place} is {one!r}, expected a record with an id, such as "
            '{"id": "post-1", "text": "..."}, or a dict from id to content'
        )
    eligible = one.get("eligible")
    if isinstance(eligible, str):
        eligible = [name.strip() for name in eligible.split("|") if name.strip()] or None
    weight = one.get("weight")
    return BatchItem(
        str(one["id"]),
        one,
        float(weight) if isinstance(weight, int | float) else 1.0 if weight is None else weight,
        one.get("target"),
        None if eligible is None else frozenset(map(str, eligible)),
    )


@dataclass(frozen=True, eq=False)
class Work:
    """All entries, by item: labeler `labeler[e]` may label item i for e in `start[i]:start[i + 1]`.

    `families` says which labelers may share errors (`Auto`), `asked` which gold items were chosen,
    and not drawn at random.

    >>> work = Work.of(as_items({"a": "", "b": ""}), ["ann", "bob"])
    >>> work.start.tolist(), work.labeler.tolist(), work.item.tolist()
    ([0, 2, 4], [0, 1, 0, 1], [0, 0, 1, 1])
    """

    items: Names
    labelers: Names
    start: Ints
    labeler: Ints
    weight: Floats
    target: Floats
    families: Families | None = None
    asked: frozenset[Any] = frozenset()

    @property
    def item(self) -> Ints:
        return np.repeat(np.arange(len(self.items)), np.diff(self.start))

    @classmethod
    def of(
        cls, items: Sequence[BatchItem], labelers: Sequence[LabelerId], target: float | None = None
    ) -> Work:
        """Everybody may label everything, but for items that say who may; no target is infinite."""
        check_target(target)
        place = {name: m for m, name in enumerate(labelers)}
        everyone = np.arange(len(labelers))
        able = [everyone if i.eligible is None else _places(i, place) for i in items]
        start = np.concatenate([[0], np.cumsum([len(a) for a in able])]).astype(np.int64)
        goals = [i.target or target or np.inf for i in items]
        return cls(
            tuple(i.id for i in items),
            tuple(labelers),
            start,
            np.concatenate(able).astype(np.int64),
            np.array([i.weight for i in items], np.float64),
            np.array(goals, np.float64),
        )


def _places(item: BatchItem, place: dict[LabelerId, int]) -> Ints:
    assert item.eligible is not None
    unknown = min(item.eligible - place.keys(), default=None)
    if unknown is not None:
        raise InputError(
            f"item {item.id!r} names the labeler {unknown!r}, who is not on the panel: "
            f"expected some of {sorted(place)[:10]}"
        )
    return np.array(sorted(place[name] for name in item.eligible), np.int64)


#: A function of many items is called with at most this number at a time, unless it says how many.
MANY: Final = 256


class Answer(NamedTuple):
    """What a labeler said, what it cost if that is not the price of every label, how sure, and why.

    The confidence, if there is one, is not believed: `venire.estimators.voices` says why.

    >>> Answer("spam", cost=0.0012, confidence=0.9).confidence
    0.9
    """

    label: Hashable
    cost: float | None = None
    confidence: float | None = None
    rationale: str | None = None


class NoAnswer(VenireError):
    """Raised by a labeler that has no label for an item; what was paid for it is in `cost`.

    >>> NoAnswer("the model refused", cost=0.001).cost
    0.001
    """

    def __init__(self, message: str = "no answer", cost: float = 0.0) -> None:
        """`cost` is what was paid although no label came."""
        super().__init__(message)
        self.cost = cost


@runtime_checkable
class Answering(Protocol):
    """A labeler that is an object: an `id`, and `answer`, which may be a coroutine function.

    It may have a `price`, a `parallel` (how many calls may run at a time), a `many` (the longest
    list of items it takes), a `family` (others of it may share its errors), a `trusted` (what it
    says is the truth) and a `stopped` (why it will not answer any more). Judges and models are such
    objects.
    """

    id: str

    def answer(self, item: Any) -> Any:
        """Label an item: a label, or an object with `label`, `cost`, `confidence`, `rationale`."""


@dataclass(frozen=True)
class Caller:
    """A labeler that is a function of the content of an item, plain or async.

    The function returns a label, probabilities by class, an `Answer`, or raises `NoAnswer`. With
    `many` it is called with a list of contents, up to that many if it is a number, and returns a
    list, in which a `NoAnswer` stands for an item without a label. `price` is what a label costs
    where the answer does not say it; `parallel` is how many calls may run at a time. Labelers of
    one `family` may share errors, and count for as many votes as they are worth (`Auto`). What a
    `trusted` labeler says is the truth: an expert, who gets a share of the budget. A `digest` of
    its configuration tells whether answers in a journal are still its own.

    >>> Caller("length", lambda text: "long" if len(text) > 20 else "short", price=0.01).price
    0.01
    """

    id: str
    call: Callable[[Any], Any]
    price: float = 0.0
    parallel: int = 1
    many: bool | int = False
    family: Hashable = None
    trusted: bool = False
    digest: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.call):
            raise InputError(f"labeler {self.id!r} is {self.call!r}, expected a function")
        if not (isinstance(self.price, int | float) and 0 <= self.price <= MOST_PRICE):
            raise InputError(
                f"labeler {self.id!r} has price {self.price!r}, expected a number, 0 or more"
            )
        if not (isinstance(self.parallel, int) and 1 <= self.parallel <= 10_000):
            raise InputError(
                f"labeler {self.id!r} has parallel={self.parallel!r}, expected 1 to 10000"
            )
        named = self.family != "" and not isinstance(self.family, bool)
        if not named or not isinstance(self.family, Hashable):
            raise InputError(
                f"labeler {self.id!r} has family {self.family!r}, expected a name such as "
                '"llama"; leave it out for none'
            )
        if not isinstance(self.trusted, bool):
            raise InputError(
                f"labeler {self.id!r} has trusted={self.trusted!r}, expected true or false"
            )
        if not isinstance(self.many, int) or self.many < 0:
            raise InputError(
                f"labeler {self.id!r} has many={self.many!r}, expected true, false or the number "
                f"of items that it takes at a time, such as 64"
            )

    @property
    def at_once(self) -> int:
        """With how many items it is called.

        >>> Caller("net", lambda texts: ["ok"] * len(texts), many=64).at_once
        64
        """
        return MANY if self.many is True else max(1, self.many)

    @property
    def stopped(self) -> bool:
        """Whether it will not answer any more."""
        return bool(getattr(getattr(self.call, "__self__", None), "stopped", None))


def as_callers(given: Mapping[str, Any] | Iterable[Any]) -> tuple[Caller, ...]:
    """Labelers of any form: a dict from id to function, `Caller`s, objects with `id` and `answer`.

    >>> [caller.id for caller in as_callers({"shout": str.isupper, "ask": lambda t: "?" in t})]
    ['shout', 'ask']
    """
    if isinstance(given, Mapping):
        callers = tuple(Caller(str(name), call) for name, call in given.items())
    else:
        callers = tuple(map(_caller, given))
    if not callers:
        raise InputError("got no labelers, expected at least one")
    names = [caller.id for caller in callers]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"got labeler {twice!r} twice, expected every id once")
    return callers


def _caller(one: Any) -> Caller:
    if isinstance(one, Caller):
        return one
    if isinstance(one, Answering):
        keys = ("price", "many", "family", "trusted", "digest")
        more = {key: getattr(one, key) for key in keys if hasattr(one, key)}
        return Caller(one.id, one.answer, parallel=getattr(one, "parallel", 8), **more)
    raise InputError(
        f"got the labeler {one!r}, expected a Caller, an object with id and answer, "
        "or a dict from id to function"
    )


def as_answer(said: Any, price: float) -> Answer:
    """What was said, with what was paid for it.

    >>> as_answer("spam", 0.5).cost, as_answer(Answer("ok", 0.1), 0.5).cost
    (0.5, 0.1)
    >>> as_answer(NoAnswer("an empty text"), 0.5)[:2]
    (None, 0.0)
    >>> as_answer({"spam": 0.9, "ok": 0.1}, 0.5)[:3]
    ('spam', 0.5, 0.9)
    """
    if isinstance(said, NoAnswer):
        return Answer(None, said.cost)
    if isinstance(said, Mapping):
        return _of_shares(said, price)
    if isinstance(said, str | np.generic) or not hasattr(said, "label"):
        return Answer(_plain(said), price)
    cost, sure = getattr(said, "cost", None), getattr(said, "confidence", None)
    sure = None if sure is None or not math.isfinite(sure) else float(sure)
    why = getattr(said, "rationale", None)
    paid = price if cost is None else float(cost)
    return Answer(_plain(said.label), paid, sure, why if isinstance(why, str) else None)


def _of_shares(said: Mapping[Any, Any], price: float) -> Answer:
    """The most probable class of {class: probability}; also {"label": ..., "score": ...}."""
    if set(said) == {"label", "score"}:  # as pipelines of transformers answer
        said = {said["label"]: said["score"]}
    numbers = [isinstance(share, int | float | np.number) for share in said.values()]
    if not numbers or not all(numbers):
        raise InputError(
            f"a labeler said {said!r}, expected a label, or probabilities by class, such as "
            '{"spam": 0.9, "ok": 0.1}'
        )
    known = {name: float(share) for name, share in said.items() if math.isfinite(share)}
    if len(known) < len(said):
        return Answer(None, price)
    best = max(known, key=lambda name: known[name])
    return Answer(_plain(best), price, known[best])


def _plain(label: Any) -> Any:
    """A label of NumPy, as models give them, as a value of Python."""
    return label.item() if isinstance(label, np.generic) else label


def recorded_work(
    table: LabelTable, target: float | None = None, weights: Mapping[Hashable, float] | None = None
) -> Work:
    """Who may label what: those who did.

    >>> recorded_work(LabelTable.from_matrix([[0, 1], [-1, 1]])).labeler.tolist()
    [0, 1, 1]
    """
    check_target(target)
    n = len(table.items)
    weight = np.array([(weights or {}).get(name, 1.0) for name in table.items], np.float64)
    goal = np.full(n, np.inf if target is None else target)
    labeler = table.labeler.astype(np.int64)
    return Work(table.items, table.labelers, table.start, labeler, weight, goal)


class Recorded:
    """Answers out of a table of labels; every labeler has one price.

    >>> source = Recorded(LabelTable.from_matrix([[0, 1], [-1, 1]]), np.array([1.0, 2.0]))
    >>> [a.tolist() for a in source.ask(np.array([2, 0]))]
    [[1, 0], [2.0, 1.0]]
    """

    def __init__(self, table: LabelTable, price: Floats) -> None:
        if len(price) != len(table.labelers) or not (price >= 0).all():
            raise InputError("expected a price of 0 or more for each labeler of the table")
        self.classes: tuple[Hashable, ...] = tuple(table.classes)
        self.price = self.most = price.astype(np.float64)
        self.open = np.ones(len(price), np.bool_)
        self.ended = False
        self.trouble: str | None = None
        self.confidence: Floats | None = None
        self.rationales: dict[int, str] = {}
        self._labeler, self._said = table.labeler, table.said

    def ask(self, entries: Ints) -> tuple[Ints, Floats]:
        return self._said[entries].astype(np.int64), self.price[self._labeler[entries]]

    def left_over(self) -> tuple[Ints, Ints, Floats]:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
