"""The nouns: item, labeler, label, assignment, verdict, exit, and the events that make a log.

All are frozen values. A slot is an int that counts from 0, never a timestamp.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from venire.errors import InputError

__all__ = [
    "Arrived",
    "Assigned",
    "Assignment",
    "Closed",
    "Event",
    "Exit",
    "Item",
    "ItemId",
    "Joined",
    "Label",
    "Labeler",
    "LabelerId",
    "Left",
    "Observed",
    "Released",
    "Verdict",
]

ItemId: TypeAlias = str
LabelerId: TypeAlias = str


@dataclass(frozen=True, slots=True)
class Item:
    """What gets labelled (the paper's sample s).

    `weight` (w_s) trades accuracy against delay: a weight of 8 says that a right verdict is
    worth waiting up to 8 slots. `eligible` names the only labelers who may label it (None:
    anyone); `excluded` names those who may not.

    >>> Item("post-1", weight=8)
    Item(id='post-1', weight=8.0, eligible=None, excluded=frozenset())
    """

    id: ItemId
    weight: float = 1.0
    eligible: frozenset[LabelerId] | None = None
    excluded: frozenset[LabelerId] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        weight = float(self.weight)
        if not (math.isfinite(weight) and weight > 0):
            raise InputError(
                f"item {self.id!r} has weight {self.weight!r}, expected a finite number above 0"
            )
        object.__setattr__(self, "weight", weight)
        if self.eligible is not None:
            object.__setattr__(self, "eligible", frozenset(self.eligible))
        object.__setattr__(self, "excluded", frozenset(self.excluded))


@dataclass(frozen=True, slots=True)
class Labeler:
    """A person, a model or a judge (the paper's classifier m).

    `competence` (p_m) is the probability that a label of theirs is right, None where it has to
    be learned; `capacity` is how many labels they give in a slot (the paper's gamma copies).

    >>> Labeler("ann", competence=0.8)
    Labeler(id='ann', competence=0.8, capacity=1)
    """

    id: LabelerId
    competence: float | None = None
    capacity: int = 1

    def __post_init__(self) -> None:
        if self.competence is not None and not 0 < self.competence < 1:
            raise InputError(
                f"labeler {self.id!r} has competence {self.competence!r}, "
                "expected a probability strictly between 0 and 1"
            )
        if self.capacity != int(self.capacity) or self.capacity < 1:
            raise InputError(
                f"labeler {self.id!r} has capacity {self.capacity!r}, "
                "expected a whole number of labels per slot, at least 1"
            )


@dataclass(frozen=True, slots=True)
class Label:
    """What a labeler said of an item."""

    item: ItemId
    labeler: LabelerId
    said: Hashable


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
    """An item leaves at the end of a slot.

    `reason` is one of: no_gain (no labeler is worth another slot), exhausted (every eligible
    labeler has labelled it), overlap (it has the number of labels that was asked for),
    learning and dropped (a learning phase used it, or passed it over), horizon (the
    simulation ended first).
    """

    item: ItemId
    arrival: int
    slot: int
    labels: int
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Arrived:
    """Items entered."""

    slot: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Work was handed out."""

    slot: int
    assignments: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class Observed:
    """A label came back; `late` says that its item had already left."""

    slot: int
    label: Label
    late: bool


@dataclass(frozen=True, slots=True)
class Released:
    """A label will not come: the lease ended, or the labeler gave the work back."""

    slot: int
    item: ItemId
    labeler: LabelerId


@dataclass(frozen=True, slots=True)
class Joined:
    """A labeler came, or came back."""

    slot: int
    labeler: Labeler


@dataclass(frozen=True, slots=True)
class Left:
    """A labeler went; labels in flight may still come."""

    slot: int
    labeler: LabelerId


@dataclass(frozen=True, slots=True)
class Closed:
    """A slot ended; these items left."""

    slot: int
    exits: tuple[Exit, ...]


Event: TypeAlias = Arrived | Assigned | Observed | Released | Joined | Left | Closed
