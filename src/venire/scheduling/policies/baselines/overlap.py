"""What the policies with a fixed overlap share: the setting, and when an item has enough labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.errors import InputError
from venire.paper import utility
from venire.scheduling.algorithm1.exit_wheel import set_due
from venire.scheduling.base import Policy
from venire.scheduling.state.desk import EXHAUSTED, OVERLAP, SETTING, Desk, touch
from venire.scheduling.state.eligibility import eligible_count
from venire.tools.compiling import inlined

__all__ = ["OverlapPolicy", "plan_exit", "satisfied", "set_target", "take"]

residual = inlined(utility.residual)
gain = inlined(utility.gain)


@inlined
def set_target(desk: Desk, row: int) -> None:
    """Set the target of a row: the overlap, or all eligible labelers if they are fewer.

    Those who are away do not count, unless the row has no label and nobody is present: it waits.
    """
    possible = desk.rows[row].labels + eligible_count(desk, row, True)
    if possible == 0:
        possible = eligible_count(desk, row, False)
    desk.rows[row].target = min(desk.meta[SETTING], possible)


@inlined
def satisfied(desk: Desk, row: int) -> bool:
    """Whether the row has, or will have, its target of labels."""
    enough: bool = desk.rows[row].labels >= desk.rows[row].target
    return enough


@inlined
def plan_exit(desk: Desk, row: int, slot: int) -> None:
    """Let a satisfied row leave at the end of this slot."""
    reason = OVERLAP if desk.rows[row].labels >= desk.meta[SETTING] else EXHAUSTED
    set_due(desk, row, slot, reason)


@inlined
def take(desk: Desk, labeler: int, row: int, slot: int) -> None:
    """Assign the row to the labeler. The gain is recorded; these policies do not use it."""
    value = residual(desk.rows[row].weight, desk.rows[row].evidence)
    delay = slot - desk.rows[row].last
    gained = gain(value, desk.panel[labeler].reach, delay)
    touch(desk, row, labeler, slot, gained - desk.panel[labeler].price)


@dataclass(frozen=True)
class OverlapPolicy(Policy):
    """A policy that gives every item the same number of labels."""

    overlap: int = 3
    per_row: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.overlap < 1:
            raise InputError(f"got an overlap of {self.overlap}, expected at least 1 label an item")

    def settings(self) -> tuple[int, ...]:
        """The overlap."""
        return (self.overlap,)
