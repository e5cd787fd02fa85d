"""A policy in ordinary Python: subclass, write `choose`, and every part of venire runs it.

The engine, the simulator and the comparisons call the kernels of a policy. Here two of them, who
gets what and who leaves, are methods that show the state to Python code and write down what it
says; the others are compiled as for any policy. It is slower than a compiled policy: see
docs/own-policy.md for how much.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from venire.errors import InputError
from venire.paper import utility
from venire.scheduling.algorithm1.build import compiled
from venire.scheduling.algorithm1.exit_wheel import make_settle, never_due_row, set_due_row
from venire.scheduling.algorithm1.gain import take
from venire.scheduling.base import Kernels, Policy
from venire.scheduling.policies.plain.views import ItemView, LabelerView, Situation
from venire.scheduling.state.desk import EXHAUSTED, NO_GAIN, OUTSTANDING, Desk
from venire.scheduling.state.pool import drop_from_pool, put_in_pool
from venire.tools.compiling import inlined, kernel

__all__ = ["PythonPolicy"]

residual = inlined(utility.residual)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    put_in_pool(desk, row)


@kernel
def leave(desk: Desk, row: int) -> None:
    drop_from_pool(desk, row)


@kernel
def give(desk: Desk, row: int, labeler: int, slot: int) -> None:
    """Give the row to the labeler, and record the gain."""
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
        for labeler in self.order(now.best_first(), slot):
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
