"""Why an item went to whom and left as it did: what `explain` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from venire.server.messages import ExitView, LabelView


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
class Explanation:
    """Why an item was assigned to whom, and why it left, recomputed from the log.

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
