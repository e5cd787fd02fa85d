"""Functions and judges as labelers, and what they answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

from venire.errors import InputError, VenireError
from venire.model import MOST_PRICE

__all__ = ["Answer", "Answering", "Caller", "NoAnswer", "as_answer", "as_callers"]

#: A function of many items is called with at most this number at a time, unless it says how many.
MANY: Final = 256


class Answer(NamedTuple):
    """What a labeler said, what it cost if that is not the price of every label, how sure, and why.

    The confidence, if there is one, is not believed: `venire.batch.voices` says what becomes of it.

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
    `trusted` labeler says is the truth: an expert, who gets a share of the budget.

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
                f"labeler {self.id!r} has many={self.many!r}, expected true, false or how many "
                "items it takes at a time, such as 64"
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
        keys = ("price", "many", "family", "trusted")
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
