"""The registry: items, labelers and classes by name, and their numbers in the queue.

**The last items that left, with their labels, so that their verdicts can be revised.**

When beliefs change, so do verdicts. An item that has left is decided again from its labels, late
ones included, by the rule that decides outstanding items; if the label differs from the one given
last, that is a `Revision`. Only the last `most` items that left are kept.

**Labels that were heard since competences were learned last, in arrays: 16 bytes a label.**

As tuples in a list they take 130, and a period of learning may hold a million of them.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.engine.queue import untracked
from venire.errors import InputError, StateError
from venire.model import NOBODY, Item, ItemId, Label, Labeler, LabelerId
from venire.scheduling.base import Belief
from venire.scheduling.kernel.verdicts import decide_apart


class Heard:
    """For each label the number of its item, its labeler and its class.

    >>> heard = Heard([(7, 0, 1)])
    >>> heard.extend([(8, 2, 0)])
    >>> list(heard), heard.labelers.tolist()
    ([(7, 0, 1), (8, 2, 0)], [0, 2])
    """

    def __init__(self, labels: Iterable[Iterable[int]] = ()) -> None:
        self._items, self._labelers, self._said = array("q"), array("i"), array("i")
        self.extend(labels)

    def extend(self, labels: Iterable[Iterable[int]]) -> None:
        for item, labeler, said in labels:
            self._items.append(item)
            self._labelers.append(labeler)
            self._said.append(said)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        return zip(self._items, self._labelers, self._said, strict=True)

    @property
    def labelers(self) -> NDArray[np.int64]:
        return np.array(self._labelers, np.int64)

    def columns(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        return np.array(self._items, np.int64), self.labelers, np.array(self._said, np.int64)

    def copy(self) -> Heard:
        other = Heard()
        other._items, other._labelers = copy(self._items), copy(self._labelers)
        other._said = copy(self._said)
        return other


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
        other = Departed(self.most)
        other.items = dict(self.items)
        return other

    def lines(self) -> Iterator[list[Any]]:
        """The items in plain values, one by one."""
        return ([item, *kept] for item, kept in self.items.items())

    def state(self) -> list[list[Any]]:
        return list(self.lines())

    def restore(self, state: Iterable[list[Any]]) -> None:
        self.items = {
            item: Kept(tuple(who), tuple(said), verdict, confidence)
            for item, who, said, verdict, confidence in state
        }


class Registry:
    """Items, labelers and classes by name.

    `row` are the items that are outstanding; `left` are those that have left (the last
    `remember` of them; None: all), with the number under which they are learned from, and
    `late` what was said of them since.

    An item may name labelers who are not on the panel and may come: `_groups_of` are the groups
    and `_barred_from` the outstanding items that wait for such a name.
    """

    def __init__(
        self,
        panel: Sequence[Labeler | LabelerId],
        classes: Sequence[Hashable],
        remember: int | None = None,
    ) -> None:
        for what, given in (("panel", panel), ("classes", classes)):
            if isinstance(given, str):
                raise InputError(f"got {what}={given!r}, expected a list of names")
        self.classes = tuple(classes)
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes):
            raise InputError(
                f"got the classes {list(classes)}, expected at least two, all distinct"
            )
        if remember is not None and remember < 0:
            raise InputError(f"got remember={remember}, expected a whole number, 0 or more")
        self.code = {name: k for k, name in enumerate(self.classes)}
        self.labelers = [who if isinstance(who, Labeler) else Labeler(who) for who in panel]
        self.number = {who.id: m for m, who in enumerate(self.labelers)}
        if not self.labelers:
            raise InputError("the panel is empty, expected at least one labeler")
        if len(self.number) < len(self.labelers):
            twice = next(w.id for m, w in enumerate(self.labelers) if self.number[w.id] != m)
            raise InputError(f"labeler {twice!r} is on the panel twice, expected distinct names")
        self.remember = remember
        self.items: list[Item] = untracked([])
        self.serials: list[int] = []
        self.row: dict[ItemId, int] = {}
        self.left: dict[ItemId, int] = {}
        self._leaving: deque[ItemId] = deque()  # the keys of `left`, in their order
        self.late: dict[ItemId, dict[LabelerId, Hashable]] = {}
        self.groups: dict[frozenset[LabelerId] | None, int] = {None: 0}
        self.arrived = 0
        self._groups_of: dict[LabelerId, set[frozenset[LabelerId]]] = {}
        self._barred_from: dict[LabelerId, set[ItemId]] = {}

    # items

    def check_new(self, items: Iterable[Item]) -> None:
        """Raise `InputError` for an item whose id is not new."""
        seen: set[ItemId] = set()
        for item in items:
            if not isinstance(item, Item):
                raise InputError(
                    f"got the item {item!r}, expected such as Item('post-1', weight=8)"
                )
            if item.id in self.row or item.id in self.left or item.id in seen:
                raise InputError(f"item {item.id!r} has arrived before, expected a new id")
            seen.add(item.id)

    def add(self, item: Item, row: int) -> None:
        self.items.append(untracked(item))
        self.serials.append(self.arrived)
        self.row[item.id] = row
        self.arrived += 1
        self._bar(item)

    def add_group(self, eligible: frozenset[LabelerId], group: int) -> None:
        """A group of labelers, who alone may label some items."""
        self.groups[eligible] = group
        for name in eligible:
            if name not in self.number:
                self._groups_of.setdefault(name, set()).add(eligible)

    def _bar(self, item: Item) -> None:
        for name in item.excluded:
            if name not in self.number:
                self._barred_from.setdefault(name, set()).add(item.id)

    def expected(self, labeler: LabelerId) -> tuple[list[int], list[int]]:
        """The groups that wait for a labeler who joins now, and the rows that it may not have."""
        groups = sorted(self.groups[names] for names in self._groups_of.pop(labeler, ()))
        return groups, sorted(self.row[id] for id in self._barred_from.pop(labeler, ()))

    def remove(self, row: int) -> Item:
        item = self.items[row]
        self.left[item.id] = self.serials[row]
        del self.row[item.id]
        for name in item.excluded:
            waiting = self._barred_from.get(name, set())
            waiting.discard(item.id)
            if not waiting:
                self._barred_from.pop(name, None)
        self._leaving.append(item.id)
        if self.remember is not None and len(self.left) > self.remember:
            oldest = self._leaving.popleft()  # to find it in `left` means to skip all deleted ones
            del self.left[oldest]
            self.late.pop(oldest, None)
        return item

    def keep(self, rows: Sequence[int], groups: dict[int, int]) -> None:
        """Only these rows are left in the queue, and groups have new numbers."""
        self.items = untracked([self.items[row] for row in rows])
        self.serials = [self.serials[row] for row in rows]
        self.row = {item.id: row for row, item in enumerate(self.items) if item.id in self.row}
        self._set_groups({n: groups[g] for n, g in self.groups.items() if g in groups})

    def _set_groups(self, groups: dict[frozenset[LabelerId] | None, int]) -> None:
        self.groups, self._groups_of = {None: 0}, {}
        for eligible, group in groups.items():
            if eligible is not None:
                self.add_group(eligible, group)

    def outstanding(self, item: ItemId) -> int:
        if item not in self.row:
            raise InputError(f"item {item!r} is not outstanding: it has left, or never arrived")
        return self.row[item]

    # labelers and labels

    def known(self, labeler: LabelerId) -> int:
        """The number of a labeler who is, or was, on the panel."""
        if labeler not in self.number:
            raise InputError(f"labeler {labeler!r} is not on the panel: join first")
        return self.number[labeler]

    def class_of(self, item: ItemId, label: Hashable, who: str = "gold") -> int:
        """The code of a class that somebody said of an item."""
        try:
            known = label in self.code
        except TypeError:
            known = False
        if not known:
            raise InputError(
                f"{who} said {label!r} of item {item!r}, expected one of {list(self.classes)}"
            )
        return self.code[label]

    def serial_of(self, item: ItemId) -> int | None:
        """The number under which an item is learned from; None if it is forgotten."""
        return self.serials[self.row[item]] if item in self.row else self.left.get(item)

    def check(self, label: Label) -> None:
        """Raise an error for a label with an unknown name, or that contradicts a late one."""
        self.known(label.labeler)
        self.class_of(label.item, label.said, f"labeler {label.labeler!r}")
        if label.item in self.left:
            before = self.late.get(label.item, {}).get(label.labeler, label.said)
            if before != label.said:
                raise contradiction(label, before)
        elif label.item not in self.row:
            raise InputError(f"item {label.item!r} never arrived: call arrive first")

    def coded(self, labels: Sequence[Label]) -> list[tuple[int, int, int, int]]:
        """Row (-1: the item has left), labeler and class of labels, and 0.

        Raises an error if a name is unknown, or a label contradicts another.
        """
        row, number, code = self.row, self.number, self.code
        for x in labels:
            if x.confidence is not None and not 0 <= x.confidence <= 1:
                raise InputError(
                    f"labeler {x.labeler!r} said {x.said!r} of item {x.item!r} with a confidence "
                    f"of {x.confidence!r}, expected 0 to 1, or none"
                )
        try:
            found = [(row.get(x.item, -1), number[x.labeler], code[x.said], 0) for x in labels]
        except (KeyError, TypeError):
            found = [(-1, 0, 0, 0)] * len(labels)
        for label, (place, _, _, _) in zip(labels, found, strict=True):
            if place < 0:
                self.check(label)
        if len(labels) > 1 and len({(x.item, x.labeler) for x in labels}) < len(labels):
            said: dict[tuple[ItemId, LabelerId], Hashable] = {}
            for label in labels:
                if said.setdefault((label.item, label.labeler), label.said) != label.said:
                    raise contradiction(label, said[label.item, label.labeler])
        return found

    def note_late(self, label: Label) -> bool:
        """Note a label for an item that has left; False if it is known already."""
        said = self.late.setdefault(label.item, {})
        if label.labeler in said:
            return False
        said[label.labeler] = label.said
        return True

    # state

    def dissolve(self) -> None:
        """Free everything piece by piece: freed in one go, it would block all other threads."""
        for many in (self.items, self.serials):
            while many:
                del many[-1000:]
        for names in (self.row, self.left, self.late):
            while names:
                names.popitem()
        while self._leaving:
            self._leaving.pop()

    def copy(self) -> Registry:
        other = copy(self)
        other.labelers, other.items = list(self.labelers), untracked(list(self.items))
        other.serials, other.groups = list(self.serials), dict(self.groups)
        other.number, other.row, other.left = dict(self.number), dict(self.row), dict(self.left)
        other._leaving = deque(self._leaving)
        other.late = {item: dict(said) for item, said in self.late.items()}
        return other

    def lists(self) -> dict[str, Iterable[Any]]:
        """Everything but `arrived` in plain values, made lazily."""
        return {
            "labelers": ([w.id, w.competence, w.capacity, w.price] for w in self.labelers),
            "items": (
                [i.id, i.weight, None if i.eligible is None else sorted(i.eligible), x]
                + ([] if i.min_confidence is None else [i.min_confidence])
                for i in self.items
                for x in [sorted(i.excluded)]
            ),
            "serials": self.serials,
            "rows": sorted(self.row.items(), key=lambda pair: pair[1]),
            "left": self.left.items(),
            "late": ([item, sorted(said.items())] for item, said in self.late.items()),
            "groups": ([sorted(names or ()), group] for names, group in self.groups.items()),
        }

    def state(self) -> dict[str, Any]:
        lists = {name: list(values) for name, values in self.lists().items()}
        return lists | {"arrived": self.arrived}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` gave; its lists are read in the order of `lists`."""
        self.labelers = [Labeler(*fields) for fields in state["labelers"]]
        self.number = {who.id: m for m, who in enumerate(self.labelers)}
        self.items = [
            untracked(Item(name, weight, only, frozenset(barred) if barred else NOBODY, *more))
            for name, weight, only, barred, *more in state["items"]
        ]
        untracked(self.items)
        self.serials = list(state["serials"])
        self.row, self.left = dict(state["rows"]), dict(state["left"])
        self._leaving = deque(self.left)
        self.late = {item: dict(said) for item, said in state["late"]}
        self._set_groups(
            {frozenset(names) if group else None: group for names, group in state["groups"]}
        )
        for row in self.row.values():
            self._bar(self.items[row])
        self.arrived = state["arrived"]


def contradiction(label: Label, before: Hashable) -> StateError:
    """The error for a label that contradicts what the labeler said before."""
    return StateError(
        f"labeler {label.labeler!r} said {before!r} of item {label.item!r} before and "
        f"{label.said!r} now: a label cannot be changed"
    )
