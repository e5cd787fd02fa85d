"""A policy of your own: two labels each, the heaviest item first. Is that better than by arrival?

python examples/policy.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import Desk, room
from venire.scheduling.kernel.queues import (
    begin_serving,
    dequeue,
    enqueue,
    make_turn,
    move,
    release,
)
from venire.scheduling.policies.baselines import plan_exit, satisfied, set_target, take
from venire.testing import check_policy
from venire.tools.compiling import inlined, kernel
from venire_research.regimes import compare

LEAST, MOST = -1.0, 1e300


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    """How good an item is for a labeler. It must not rise where `key`, set below, falls."""
    return float(desk.rows[row].weight)


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    """No item in this queue scores more; there is only one queue, so any upper bound will do."""
    return MOST


@inlined
def refile(desk: Desk, row: int, slot: int) -> None:
    """After a labeler's turn: an item that was looked at goes back, or leaves with this slot."""
    if satisfied(desk, row):
        release(desk, row)
        plan_exit(desk, row, slot)
    else:
        move(desk, row, 0)


take_turn = make_turn(score, bound, take, refile)


@kernel
def enter(desk: Desk, row: int, slot: int) -> None:
    """An item arrives, or comes back because a label did not come."""
    set_target(desk, row)  # `settings()[0]` labels, or all eligible labelers if they are fewer
    desk.rows[row].key = desk.rows[row].weight
    if satisfied(desk, row):
        plan_exit(desk, row, slot)
    else:
        enqueue(desk, row, 0)


@kernel
def leave(desk: Desk, row: int) -> None:
    """An item leaves."""
    dequeue(desk, row)


@kernel
def serve(desk: Desk, slot: int) -> None:
    """Assign the work of a slot, to one labeler after the other."""
    begin_serving(desk)
    for m in range(len(desk.panel)):
        if room(desk, m) > 0:
            take_turn(desk, m, slot, LEAST)


@dataclass(frozen=True)
class HeaviestFirst(Policy):
    """Every item gets `overlap` labels, the heaviest first."""

    overlap: int = 2
    name: ClassVar[str] = "heaviest-first"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)

    def settings(self) -> tuple[int, ...]:
        """The overlap, which the kernels read."""
        return (self.overlap,)


if __name__ == "__main__":
    check_policy(HeaviestFirst())
    print("it keeps the rules: nobody twice, nobody over capacity, replays to the same state")
    for row in compare(
        [HeaviestFirst(), "fixed-overlap:2"],
        ["paper", "overload"],
        1,
        certificate=False,
        quick=True,
    ):
        print(
            f"{row['regime']:9} {row['policy']:17} utility {row['utility_ratio']:.3f} "
            f"of Algorithm 1's, {row['accuracy']:.3f} right, {row['mean_response']:6.2f} slots"
        )
