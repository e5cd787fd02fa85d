"""A policy in ordinary Python: subclass, write `choose`, and every part of venire runs it.

The engine, the simulator and the comparisons call the kernels of a policy. Here two of them, who
gets what and who leaves, are methods that show the state to Python code and write down what it
says; the others are compiled as for any policy. It is slower than a compiled policy: see
docs/own-policy.md for how much.

What it is shown of a slot are views of the items and the labelers. A view is made for one call and
holds for that call alone: keep none of them.
"""

from __future__ import annotations

import difflib
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.paper import utility
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import (
    EXHAUSTED,
    NO_GAIN,
    OUTSTANDING,
    POOLED,
    Desk,
    drop_from_pool,
    put_in_pool,
)
from venire.scheduling.kernel.rows import (
    first_eligible,
    labeler_at,
    make_settle,
    never_due_row,
    next_eligible,
    set_due_row,
)
from venire.scheduling.kernel.verdicts import probabilities
from venire.scheduling.policies.greedy import take
from venire.tools.arrays import Bools
from venire.tools.compiling import inlined, kernel

residual = inlined(utility.residual)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    put_in_pool(desk, row)


@kernel
def leave(desk: Desk, row: int) -> None:
    drop_from_pool(desk, row)


@kernel
def give(desk: Desk, row: int, labeler: int, slot: int) -> None:
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    take(desk, labeler, row, slot)


def nobody(desk: Desk, slot: int) -> None:
    """Give nothing to anybody; each policy puts its own `serve` in the place of this."""


settle = make_settle(leave)

#: What all policies in Python share.
SHARED: Final = compiled(enter, leave, nobody, settle)


class _Unchanging(Policy):
    per_row: ClassVar[tuple[str, ...]] = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise InputError(
            f"{type(self).__name__} sets self.{name}, and a policy must not remember anything: "
            "make a setting of it, a field of a frozen dataclass"
        )


@dataclass(frozen=True)
class PythonPolicy(_Unchanging):
    """A policy of your own in ordinary Python: write `choose`, and `leaves` if you like.

    In each slot the labelers go one after the other, the best first, and each chooses until it
    has no room or chooses None. An item that nobody may label any more leaves in any case.

    Settings are the fields of a frozen dataclass. A policy must not remember anything else: a log
    is replayed, and a simulation repeated, by a policy that has seen nothing. Draw random numbers
    from a generator seeded with the slot: `numpy.random.default_rng((self.seed, slot))`.

    >>> from venire import World, simulate
    >>> class HeaviestFirst(PythonPolicy):
    ...     '''Two labels each, the heaviest item first.'''
    ...
    ...     def choose(self, labeler, items, slot):
    ...         wanted = [item for item in items if item.labels < 2]
    ...         return max(wanted, key=lambda item: item.weight, default=None)
    ...
    ...     def leaves(self, item, slot):
    ...         return item.labels >= 2
    >>> HeaviestFirst().describe()
    'heaviest-first'
    >>> simulate(World.synthetic(seed=0), HeaviestFirst(), slots=100).labels_per_item
    2.0
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Without a `name` of its own, call the policy HeaviestFirst `heaviest-first`."""
        super().__init_subclass__(**options)
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()

    @abstractmethod
    def choose(self, labeler: LabelerView, items: Sequence[ItemView], slot: int) -> ItemView | None:
        """One of these items for the labeler, who may have each of them; None: nothing.

        The earliest arrival is first. Labels given in this slot are counted on the items.
        """

    def leaves(self, item: ItemView, slot: int) -> bool:
        """Whether the item leaves at the end of this slot; asked of every item in every slot.

        Without a rule of your own: if no label gains anything in the next slot or later, as in
        Algorithm 1. An item does not leave before its labels in flight have come.
        """
        return all(item.gain(labeler, slot + 1) <= 0.0 for labeler in item.eligible)

    def order(self, labelers: Sequence[LabelerView], slot: int) -> Sequence[LabelerView]:
        """In which order the labelers who have room choose; by default the best first.

        With prices, those come first whose evidence costs least.
        """
        return labelers

    def kernels(self) -> Kernels:
        """The compiled kernels that all share, with `serve` and `settle` in Python."""
        return SHARED._replace(serve=self._serve, settle=self._settle)

    def _serve(self, desk: Desk, slot: int) -> None:
        now = Situation(desk)
        given: Any = self.order(now.best_first(), slot)
        order = tuple(given) if isinstance(given, Iterable) else (given,)
        if not all(isinstance(one, LabelerView) for one in order):
            raise InputError(
                f"{type(self).__name__}.order returned {given!r:.80}, expected a list of some of "
                "the labelers that it was given"
            )
        for labeler in order:
            while labeler.room > 0 and (items := now.items_for(labeler)):
                item = self.choose(labeler, items, slot)
                if item is None:
                    break
                self._check(item, labeler, items)
                give(desk, item.number, labeler.number, slot)
                now.given(item, labeler, slot)

    def _settle(self, desk: Desk, slot: int) -> int:
        due = []
        rows = desk.rows
        for item in Situation(desk).items:
            row = item.number
            if rows["due"][row] >= 0:  # the bounds of the stream say when it leaves
                continue
            exhausted = not item.eligible
            if exhausted or self.leaves(item, slot):
                set_due_row(desk, row, slot, EXHAUSTED if exhausted else NO_GAIN)
                due.append(row)
        count: int = settle(desk, slot)
        for row in due:
            if rows["state"][row] == OUTSTANDING:  # it waits, and is asked again in the next slot
                never_due_row(desk, row)
        return count

    def _check(self, item: Any, labeler: LabelerView, items: Sequence[ItemView]) -> None:
        if not any(item is one for one in items):
            raise InputError(
                f"{type(self).__name__}.choose returned {item!r} for labeler {labeler.number}, "
                "expected one of the items that it was given, or None"
            )


Rows = NDArray[np.int64]


@kernel
def note_eligible(desk: Desk, rows: Rows, eligible: Bools) -> None:
    """Write into `eligible` who may still label each of these rows: [row, labeler]."""
    for i in range(len(rows)):
        place = first_eligible(desk, rows[i])
        while place >= 0:
            eligible[i, labeler_at(desk, rows[i], place)] = True
            place = next_eligible(desk, rows[i], place)


#: What people call things that a policy knows by other names.
_OTHERWISE: Final = {
    "id": "number",
    "name": "number",
    "index": "number",
    "row": "number",
    "competence": "evidence",
    "accuracy": "evidence",
    "skill": "evidence",
    "load": "room",
    "cost": "price",
    "votes": "said",
    "answers": "said",
    "probabilities": "posterior",
    "confidence": "posterior",
    "count": "labels",
    "n_labels": "labels",
    "created": "arrival",
    "age": "arrival",
}


def _unknown(what: str, name: str, view: type) -> str:
    """What to say of an attribute that there is not, with the right one."""
    known = [word for word in dir(view) if not word.startswith("_") and word != "COLUMNS"]
    near = difflib.get_close_matches(name, known, n=1)
    meant = _OTHERWISE.get(name) or next(iter(near), "")
    hint = f": did you mean {meant!r}? It has " if meant in known else ", but "
    return f"{what} in a policy has no attribute {name!r}{hint}{', '.join(known)}"


@dataclass(slots=True, eq=False, repr=False)
class LabelerView:
    """A labeler, as a policy sees it.

    `number` is its place in the panel. `evidence` is what one of its labels is believed to be
    worth, and `reach` the share of what is left to gain of an item that one label takes,
    1 - exp(-evidence). `capacity` is 0 while it is away; `room` is how many more items it can be
    given in this slot. `price` is what one label of it costs.
    """

    number: int
    evidence: float
    reach: float
    capacity: int
    room: int
    price: float

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_unknown("a labeler", name, LabelerView))

    def __repr__(self) -> str:
        return f"LabelerView({self.number}, evidence={self.evidence:.3g}, room={self.room})"


@dataclass(slots=True, eq=False, repr=False)
class ItemView:
    """An outstanding item, as a policy sees it.

    `number` is its place among the items, a lower one arrived earlier. It has a `weight` and the
    slot of its `arrival`; `last` is the slot of its latest label, or the arrival. `labels` counts
    its labels, those in flight included, and `pending` those in flight. `evidence` is what its
    labels are worth together.
    """

    _situation: Situation
    _place: int
    number: int
    weight: float
    arrival: int
    last: int
    labels: int
    pending: int
    evidence: float

    #: The columns of a row that are shown.
    COLUMNS: ClassVar = ("weight", "arrival", "last", "labels", "pending", "evidence")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_unknown("an item", name, ItemView))

    def __repr__(self) -> str:
        return f"ItemView({self.number}, weight={self.weight:g}, labels={self.labels})"

    def gain(self, labeler: LabelerView, slot: int) -> float:
        """What one label of this labeler in this slot adds to the utility, less its price."""
        left = utility.residual(self.weight, self.evidence)
        return utility.gain(left, labeler.reach, max(slot - self.last, 0)) - labeler.price

    @property
    def eligible(self) -> tuple[LabelerView, ...]:
        """Who may still label it: they have no label of it, and are not excluded."""
        labelers = self._situation.labelers
        return tuple(labelers[m] for m in np.flatnonzero(self._situation.may[self._place]))

    @property
    def said(self) -> dict[int, int]:
        """What each labeler said of it, by number: the class by its place among the classes."""
        touches, found = self._situation.desk.touches, {}
        k = int(self._situation.desk.rows["head"][self.number])
        while k >= 0:
            touch = touches[k]
            if touch["said"] >= 0:
                found[int(touch["labeler"])] = int(touch["said"]) % len(self._situation.desk.scores)
            k = int(touch["next"])
        return found

    @property
    def posterior(self) -> tuple[float, ...]:
        """How probable each class is by its labels; shares of the votes while nothing is known."""
        return tuple(probabilities(self._situation.desk, self.number).tolist())


class Situation:
    """The outstanding items, the earliest arrival first, and the labelers; both as views."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        rows = np.sort(desk.pool[: desk.meta[POOLED]]).astype(np.int64)
        self.may: Bools = np.zeros((len(rows), len(desk.panel)), np.bool_)
        note_eligible(desk, rows, self.may)
        room = desk.panel["capacity"] - desk.panel["load"]
        shown = (*(desk.panel[name] for name in ("evidence", "reach", "capacity")), room)
        panel = zip(*(a.tolist() for a in (*shown, desk.panel["price"])), strict=True)
        self.labelers = [LabelerView(m, *values) for m, values in enumerate(panel)]
        queue = desk.rows[rows]
        columns = zip(*(queue[name].tolist() for name in ItemView.COLUMNS), strict=True)
        numbered = enumerate(zip(rows.tolist(), columns, strict=True))
        self.items = [ItemView(self, place, row, *values) for place, (row, values) in numbered]

    def best_first(self) -> list[LabelerView]:
        """The labelers who have room, those first whose labels are worth the most."""
        return [self.labelers[m] for m in self.desk.order.tolist() if self.labelers[m].room > 0]

    def items_for(self, labeler: LabelerView) -> list[ItemView]:
        return [self.items[i] for i in np.flatnonzero(self.may[:, labeler.number]).tolist()]

    def given(self, item: ItemView, labeler: LabelerView, slot: int) -> None:
        """Note that the item was given to the labeler: the label is expected to come."""
        self.may[item._place, labeler.number] = False
        item.labels += 1
        item.pending += 1
        item.last = slot
        item.evidence += labeler.evidence
        labeler.room -= 1
