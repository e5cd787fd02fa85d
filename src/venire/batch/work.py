"""What is to be labelled, and who may label it: one entry for each item and labeler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.families import Families
from venire.labels import Names
from venire.model import MOST_WEIGHT, ItemId, LabelerId

__all__ = ["AWAY", "FREE", "NO_LABEL", "BatchItem", "Work", "as_items"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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
    """Refuse a target that is no probability between 0 and 1."""
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
        """The item of each entry."""
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
