"""Algorithm 1 as printed, with its `Break`: for the test that shows it failing.

The first labeler that finds nothing to do ends the slot for all worse ones (docs/errata.md, 3).
Meant for labelers of capacity 1, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.build import compiled
from venire.scheduling.kernel.desk import Desk, room
from venire.scheduling.kernel.queues import begin_serving
from venire.scheduling.policies.greedy import enter, leave, plan_exits, take_turn
from venire.tools.compiling import kernel

__all__ = ["LiteralGreedy"]


@kernel
def serve(desk: Desk, slot: int) -> None:
    first = begin_serving(desk)
    for m in desk.order:
        if room(desk, m) > 0:
            take_turn(desk, m, slot, 0.0)
            if room(desk, m) > 0:
                break
    plan_exits(desk, first, slot)


@dataclass(frozen=True)
class LiteralGreedy(Policy):
    """Algorithm 1 with `Break`; see the head of this module."""

    name: ClassVar[str] = "greedy-break"
    built: ClassVar[Kernels] = compiled(enter, leave, serve)
