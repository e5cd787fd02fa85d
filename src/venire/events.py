"""What can happen to a scheduler: the events that make its log.

Each verb of `Scheduler` that changes anything appends one of these, and the state is a fold over
them. All are frozen values, and all say in which slot they happened.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from venire.budget import Budget
from venire.model import (
    Assignment,
    Bounds,
    Exit,
    Item,
    ItemId,
    Label,
    Labeler,
    LabelerId,
    Revision,
    Verdict,
)

__all__ = [
    "Arrived",
    "Assigned",
    "Changed",
    "Closed",
    "Event",
    "GoldGiven",
    "Joined",
    "Left",
    "Observed",
    "Released",
    "Revised",
    "Withdrawn",
]


@dataclass(frozen=True, slots=True)
class Arrived:
    """Items entered."""

    slot: int
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Work was handed out, to everyone (`asked` is None) or to those who asked for it.

    Those who asked may hold `ahead` items more than their capacity.
    """

    slot: int
    assignments: tuple[Assignment, ...]
    asked: tuple[LabelerId, ...] | None = None
    ahead: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """A label came back; `late` says that its item had already left."""

    slot: int
    label: Label
    late: bool


@dataclass(frozen=True, slots=True)
class Released:
    """A label will not come: the lease ended, or the labeler gave the work back.

    `barred` says that the labeler is not to get the item again.
    """

    slot: int
    item: ItemId
    labeler: LabelerId
    barred: bool = False


@dataclass(frozen=True, slots=True)
class Joined:
    """A labeler joined the panel, or came back."""

    slot: int
    labeler: Labeler


@dataclass(frozen=True, slots=True)
class Left:
    """A labeler left the panel; labels in flight may still come."""

    slot: int
    labeler: LabelerId


@dataclass(frozen=True, slots=True)
class Closed:
    """A slot ended: the items that left, and the revised verdicts of items that had left."""

    slot: int
    exits: tuple[Exit, ...]
    revisions: tuple[Revision, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An item was withdrawn, without a verdict."""

    slot: int
    item: ItemId


@dataclass(frozen=True, slots=True)
class GoldGiven:
    """Somebody who is trusted said what the class of an item is.

    `before` is the verdict that it had left with, or was revised to; None while it is open, or
    where that is not known. `labels` is how many labels that was by. `corrects` is what was said
    to be its class before, if that was wrong.
    """

    slot: int
    item: ItemId
    label: Hashable
    before: Verdict | None = None
    labels: int = 0
    corrects: Hashable | None = None

    @property
    def revision(self) -> Revision | None:
        """The revision of the verdict, if it was another."""
        if self.before is None or self.before.label == self.label:
            return None
        return Revision(self.item, self.slot, self.before, Verdict(self.label, 1.0), self.labels)


@dataclass(frozen=True, slots=True)
class Revised:
    """An item that has left was decided again, apart from its own labels."""

    slot: int
    revision: Revision


@dataclass(frozen=True, slots=True)
class Changed:
    """Settings changed; None: as before. Names are as `--policy` and `--learning` take them.

    A budget of "none" says that it ended.
    `costs` are what errors cost: truth, verdict, cost. `families` are those who may share errors,
    each with the name of its family.
    """

    slot: int
    policy: str | None = None
    learning: str | None = None
    bounds: Bounds | None = None
    c: float | None = None
    revisions: int | None = None
    budget: Budget | Literal["none"] | None = None
    costs: tuple[tuple[Hashable, Hashable, float], ...] | None = None
    families: tuple[tuple[Hashable, Hashable], ...] | None = None


Event: TypeAlias = (
    Arrived
    | Assigned
    | Observed
    | Released
    | Joined
    | Left
    | Closed
    | Withdrawn
    | GoldGiven
    | Revised
    | Changed
)
