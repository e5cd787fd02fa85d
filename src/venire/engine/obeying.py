"""Doing what a log says was decided, whatever this engine would decide.

Decisions are who gets what and who leaves. A log that another version of the engine wrote may
hold others than this one makes; what happened has happened all the same. So work is given as the
log has it, and at the end of a slot exactly those leave who left; whoever this version would have
let go besides is brought back, and leaves when it is this version that decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from venire.engine.bounded_queue import BoundedClerk
from venire.model import Exit
from venire.scheduling.algorithm1.exit_wheel import never_due_row
from venire.scheduling.algorithm1.verdicts import depart, revalue
from venire.scheduling.state.desk import GONE, MAX_LABELS, OUTSTANDING, PENDING, REASONS, TOUCHES

__all__ = ["give", "settle_as"]


def give(clerk: BoundedClerk, row: int, labeler: int, slot: int, gain: float) -> None:
    """Give a row to a labeler, who must not have it yet."""
    touch, panel = int(clerk.desk.meta[TOUCHES]), clerk.desk.panel
    clerk._link(row, labeler, slot, PENDING)
    clerk.desk.touches["gain"][touch] = gain
    panel["inflight"][labeler] += 1
    panel["load"][labeler] += 1
    clerk._revalue(row, slot)
    clerk._touched.append(row)
    if clerk._full(row):
        clerk._retire(row, MAX_LABELS, slot)


def settle_as(
    clerk: BoundedClerk, slot: int, rows: Sequence[int], exits: Sequence[Exit], codes: Sequence[int]
) -> None:
    """End a slot in which these rows left, each with its exit and the code of its verdict."""
    desk, kernels, leaving = clerk.desk, clerk.kernels, set(rows)
    gone = set(desk.gone[: kernels.settle(desk, slot)].tolist())
    for row in sorted(gone - leaving):
        desk.rows["state"][row] = OUTSTANDING
        revalue(desk, row)
        kernels.enter(desk, row, slot)
    for row in sorted(leaving - gone):
        kernels.leave(desk, row)
        never_due_row(desk, row)
        desk.rows["state"][row], desk.rows["exit"][row] = GONE, slot
    depart(desk, np.array(rows, np.int32))
    for row, exit, code in zip(rows, exits, codes, strict=True):
        r = desk.rows[row]
        r["verdict"], r["confidence"] = code, exit.verdict.confidence
        r["labels"] = exit.labels
        r["reason"] = REASONS.index(exit.reason)
        clerk.retired.pop(row, None)
    desk.panel["load"] = desk.panel["inflight"]
    clerk.stale = True  # rows that came back are due again where a bound says so
