"""What a policy in ordinary Python is shown of a slot: the items and the labelers.

A view is made for one call and holds for that call alone: keep none of them.
"""

from __future__ import annotations

import difflib
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from venire.paper import utility
from venire.scheduling.algorithm1.verdicts import decide_row
from venire.scheduling.state.desk import BELIEVED, CERTAINTY, POOLED, Desk
from venire.scheduling.state.eligibility import first_eligible, labeler_at, next_eligible
from venire.tools.compiling import kernel

__all__ = ["ItemView", "LabelerView", "Situation"]

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
    hint = f"did you mean {meant!r}? " if meant in known else ""
    return f"{what} in a policy has no attribute {name!r}: {hint}It has {', '.join(known)}"


class LabelerView:
    """A labeler, as a policy sees it.

    `number` is its place in the panel. `evidence` is what one of its labels is believed to be
    worth, and `reach` the share of what is left to gain of an item that one label takes,
    1 - exp(-evidence). `capacity` is 0 while it is away; `room` is how many more items it can be
    given in this slot. `price` is what one label of it costs.
    """

    __slots__ = ("capacity", "evidence", "number", "price", "reach", "room")

    def __init__(
        self, number: int, evidence: float, reach: float, capacity: int, load: int, price: float
    ) -> None:
        self.number = number
        self.evidence = evidence
        self.reach = reach
        self.capacity = capacity
        self.room = capacity - load
        self.price = price

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(_unknown("a labeler", name, LabelerView))

    def __repr__(self) -> str:
        return f"LabelerView({self.number}, evidence={self.evidence:.3g}, room={self.room})"


class ItemView:
    """An outstanding item, as a policy sees it.

    `number` is its place among the items, a lower one arrived earlier. It has a `weight` and the
    slot of its `arrival`; `last` is the slot of its latest label, or the arrival. `labels` counts
    its labels, those in flight included, and `pending` those in flight. `evidence` is what its
    labels are worth together.
    """

    __slots__ = (
        "_place",
        "_situation",
        "arrival",
        "evidence",
        "labels",
        "last",
        "number",
        "pending",
        "weight",
    )

    #: The columns of a row that are shown.
    COLUMNS = ("weight", "arrival", "last", "labels", "pending", "evidence")

    def __init__(
        self,
        situation: Situation,
        place: int,
        number: int,
        weight: float,
        arrival: int,
        last: int,
        labels: int,
        pending: int,
        evidence: float,
    ) -> None:
        self._situation = situation
        self._place = place
        self.number = number
        self.weight = weight
        self.arrival = arrival
        self.last = last
        self.labels = labels
        self.pending = pending
        self.evidence = evidence

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
                found[int(touch["labeler"])] = int(touch["said"])
            k = int(touch["next"])
        return found

    @property
    def posterior(self) -> tuple[float, ...]:
        """How probable each class is by its labels; shares of the votes while nothing is known."""
        desk = self._situation.desk
        decide_row(desk, self.number)
        odds = desk.scores.copy()
        if desk.meta[BELIEVED]:
            odds = np.exp(desk.bounds[CERTAINTY] * (odds - odds.max()))
        total = float(odds.sum())
        return tuple((odds / total if total else np.full_like(odds, 1 / len(odds))).tolist())


class Situation:
    """The outstanding items, the earliest arrival first, and the labelers; both as views."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        rows = np.sort(desk.pool[: desk.meta[POOLED]]).astype(np.int64)
        self.may: Bools = np.zeros((len(rows), len(desk.panel)), np.bool_)
        note_eligible(desk, rows, self.may)
        shown = ("evidence", "reach", "capacity", "load", "price")
        panel = zip(*(desk.panel[name].tolist() for name in shown), strict=True)
        self.labelers = [LabelerView(m, *values) for m, values in enumerate(panel)]
        queue = desk.rows[rows]
        columns = zip(*(queue[name].tolist() for name in ItemView.COLUMNS), strict=True)
        numbered = enumerate(zip(rows.tolist(), columns, strict=True))
        self.items = [ItemView(self, place, row, *values) for place, (row, values) in numbered]

    def best_first(self) -> list[LabelerView]:
        """The labelers who have room, those first whose labels are worth the most."""
        return [self.labelers[m] for m in self.desk.order.tolist() if self.labelers[m].room > 0]

    def items_for(self, labeler: LabelerView) -> list[ItemView]:
        """The items that the labeler may be given."""
        return [self.items[i] for i in np.flatnonzero(self.may[:, labeler.number]).tolist()]

    def given(self, item: ItemView, labeler: LabelerView, slot: int) -> None:
        """Note that the item was given to the labeler: the label is expected to come."""
        self.may[item._place, labeler.number] = False
        item.labels += 1
        item.pending += 1
        item.last = slot
        item.evidence += labeler.evidence
        labeler.room -= 1
