"""The last items that left, with their labels, so that their verdicts can be revised.

When beliefs change, so do verdicts. An item that has left is decided again from its labels, late
ones included, by the rule that decides outstanding items; if the label differs from the one given
last, that is a `Revision`. Only the last `most` items that left are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.model import ItemId
from venire.scheduling.base import Belief
from venire.scheduling.kernel.verdicts import decide_apart

__all__ = ["Departed", "Found", "Kept"]


class Kept(NamedTuple):
    """An item that left: who said what, the newest label first; the verdict given last."""

    labelers: tuple[int, ...]
    said: tuple[int, ...]
    verdict: int
    confidence: float


class Found(NamedTuple):
    """An item whose verdict changed, before and after."""

    item: ItemId
    before: Kept
    now: Kept


class Departed:
    """The last `most` items that left, without those that were withdrawn.

    >>> kept = Departed(2)
    >>> for item in "abc":
    ...     kept.add(item, Kept((1, 0), (0, 1), 1, 0.69))
    >>> list(kept.items)
    ['b', 'c']
    >>> [(f.item, f.now.verdict) for f in kept.revise(Belief(np.array([0.6, 0.9])), 2)]
    [('b', 0), ('c', 0)]
    >>> kept.revise(Belief(np.array([0.6, 0.9])), 2)
    []
    """

    def __init__(self, most: int) -> None:
        self.items: dict[ItemId, Kept] = {}
        self.keep(most)

    def keep(self, most: int) -> None:
        """Keep this many from now on."""
        if isinstance(most, bool) or most != int(most) or most < 0:
            raise InputError(
                f"got revisions={most!r}, expected how many of the items that left last may be "
                "revised: a whole number, 0 for none"
            )
        self.most = int(most)
        self._forget()

    def _forget(self) -> None:
        while len(self.items) > self.most:
            del self.items[next(iter(self.items))]

    def add(self, item: ItemId, kept: Kept) -> None:
        """An item left; the one that left first is forgotten if there are too many."""
        if self.most:
            self.items.pop(item, None)  # the registry may have forgotten the id, and it came again
            self.items[item] = kept
            self._forget()

    def late(self, item: ItemId, labeler: int, said: int) -> None:
        """A label came late; it counts in the next `revise`, unless its labeler has one."""
        kept = self.items.get(item)
        if kept is not None and labeler not in kept.labelers:
            more = (labeler, *kept.labelers), (said, *kept.said)
            self.items[item] = Kept(*more, kept.verdict, kept.confidence)

    def revise(
        self, belief: Belief | None, classes: int, costs: NDArray[np.float64] | None = None
    ) -> list[Found]:
        """Decide all of them again; those whose label changed, in the order they left."""
        names, start, labelers, said = list(self.items), *self._flat()
        verdicts, sure = decide_apart(belief, classes, start, labelers, said, costs)
        old = np.fromiter((kept.verdict for kept in self.items.values()), np.int64, len(names))
        found = []
        for i in np.flatnonzero(verdicts != old).tolist():
            before = self.items[names[i]]
            now = before._replace(verdict=int(verdicts[i]), confidence=float(sure[i]))
            self.items[names[i]] = now
            found.append(Found(names[i], before, now))
        return found

    def _flat(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Where the labels of each item start, who gave them, and what they say."""
        sizes = (len(kept.said) for kept in self.items.values())
        start = np.concatenate([[0], np.cumsum(np.fromiter(sizes, np.int64, len(self.items)))])
        who = chain.from_iterable(kept.labelers for kept in self.items.values())
        what = chain.from_iterable(kept.said for kept in self.items.values())
        return start.astype(np.int64), np.fromiter(who, np.int64), np.fromiter(what, np.int64)

    # state

    def copy(self) -> Departed:
        """An independent copy."""
        other = Departed(self.most)
        other.items = dict(self.items)
        return other

    def lines(self) -> Iterator[list[Any]]:
        """The items in plain values, one by one."""
        return ([item, *kept] for item, kept in self.items.items())

    def state(self) -> list[list[Any]]:
        """The items in plain values."""
        return list(self.lines())

    def restore(self, state: Iterable[list[Any]]) -> None:
        """Continue from what `state` gave."""
        self.items = {
            item: Kept(tuple(who), tuple(said), verdict, confidence)
            for item, who, said, verdict, confidence in state
        }
