"""What the schedule believes of its labelers, and what it concludes about an item.

`believe` writes competences onto the desk in the form the kernels use; `decide` is the
weighted-majority rule (paper, eq. 1) over the labels of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venire import utility
from venire.accuracy import RHO, on_grid
from venire.compiling import inlined, kernel
from venire.errors import InputError
from venire.scheduling.base import Belief, Kernels
from venire.scheduling.desk import (
    BARRED,
    BELIEVED,
    OUTSTANDING,
    PENDING,
    POOLED,
    ROWS,
    Desk,
    clear_files,
)
from venire.scheduling.wheel import never_due

__all__ = [
    "believe",
    "check_c",
    "decide_gone",
    "decide_row",
    "depart",
    "let_go_row",
    "make_refile",
    "refile_all",
    "revalue",
]


def check_c(c: float) -> None:
    """Refuse a constant of the accuracy proxy that is none."""
    if not (math.isfinite(c) and c > 0):
        raise InputError(f"got c = {c}, expected a finite number above 0")


def believe(desk: Desk, belief: Belief | None, c: float = 1.0) -> None:
    """Take this for true; None: nothing is known, every vote counts the same."""
    panel, classes = desk.panel, len(desk.scores)
    desk.meta[BELIEVED] = belief is not None
    desk.lean[:] = 0.0
    if belief is None:
        panel["evidence"] = panel["reach"] = 0.0
        desk.bounds[1:] = 0.0
        desk.pairs[:] = 0.0
        desk.votes[:] = np.eye(classes)
        return
    panel["evidence"] = on_grid(c * belief.evidence(classes))
    panel["reach"] = [utility.reach(e) for e in panel["evidence"]]
    desk.bounds[1] = panel["evidence"].sum()
    desk.bounds[2] = panel["evidence"][panel["capacity"] > 0].sum()
    desk.votes[:] = belief.votes(classes)
    desk.pairs[:] = belief.pairs(classes)
    if belief.prior is not None:
        share = np.clip(belief.prior, RHO, 1.0)
        desk.lean[:] = on_grid(np.log(share / share.sum()))
    desk.order[:] = belief.order(classes)


def refile_all(desk: Desk, kernels: Kernels, slot: int, first: int | None = None) -> int:
    """File every outstanding row anew, after a change of belief, panel or policy.

    Rows that are in the pool keep its order, so that random draws do not depend on this.
    Returns the first outstanding row: given as `first` the next time, it saves looking at
    those that have left.
    """
    pooled, start = desk.pool[: desk.meta[POOLED]].copy(), first or 0
    others = desk.rows["state"][start : desk.meta[ROWS]] == OUTSTANDING
    begin = start + int(others.argmax()) if others.any() else int(desk.meta[ROWS])
    others[pooled - start] = False
    clear_files(desk, first)
    rows = np.concatenate([pooled, start + np.flatnonzero(others)]).astype(np.int64)
    if kernels.refile is not None:
        kernels.refile(desk, rows, slot)
        return begin
    for row in rows:
        revalue(desk, row)
        kernels.enter(desk, row, slot)
    return begin


@kernel
def revalue(desk: Desk, row: int) -> None:
    """Recompute what the labels of a row are worth, and when the last one came.

    Whether it leaves, and when, is open again until it is entered anew.
    """
    never_due(desk, row)
    desk.rows[row].evidence = 0.0
    desk.rows[row].labels = 0
    desk.rows[row].pending = 0
    desk.rows[row].last = desk.rows[row].arrival
    k = desk.rows[row].head
    while k >= 0:
        said = desk.touches[k].said
        if said >= -1:
            desk.rows[row].evidence += desk.panel[desk.touches[k].labeler].evidence
            desk.rows[row].last = max(desk.rows[row].last, desk.touches[k].slot)
            desk.rows[row].labels += 1
            desk.rows[row].pending += said == -1
        k = desk.touches[k].next


def make_refile(enter: Callable[..., Any]) -> Callable[[Desk, Any, int], None]:
    """Build `refile(desk, rows, slot)` out of a policy's `enter`."""

    @inlined
    def refile_rows(desk: Desk, rows: Any, slot: int) -> None:
        for i in range(len(rows)):
            revalue(desk, rows[i])
            enter(desk, rows[i], slot)

    refile: Callable[[Desk, Any, int], None] = refile_rows
    return refile


@inlined
def let_go(desk: Desk, row: int) -> None:
    """Nobody waits any more for the labels in flight of a row that has left."""
    k = desk.rows[row].head
    while k >= 0 and desk.rows[row].pending > 0:
        if desk.touches[k].said == PENDING:
            desk.touches[k].said = BARRED
            desk.panel[desk.touches[k].labeler].inflight -= 1
            desk.panel[desk.touches[k].labeler].load -= 1
            desk.rows[row].pending -= 1
            desk.rows[row].labels -= 1
        k = desk.touches[k].next


@inlined
def decide(desk: Desk, row: int) -> None:
    """Write the verdict of a row and its confidence; a tie goes to the later class.

    The confidence is the posterior of the verdict; while nothing is known of the labelers it
    is the share of the votes.
    """
    scores = desk.scores
    for j in range(len(scores)):
        scores[j] = desk.lean[j]
    votes = 0
    k = desk.rows[row].head
    while k >= 0:
        said = desk.touches[k].said
        if said >= 0:
            m = desk.touches[k].labeler
            for j in range(len(scores)):
                scores[j] += desk.votes[m, said, j]
            votes += 1
        k = desk.touches[k].next
    desk.rows[row].verdict = -1
    desk.rows[row].confidence = 0.0
    if votes == 0:
        return
    best = len(scores) - 1
    for j in range(len(scores) - 2, -1, -1):
        if scores[j] > scores[best]:
            best = j
    total = 1.0
    for j in range(len(scores)):
        if j != best:
            total += math.exp(scores[j] - scores[best])
    desk.rows[row].verdict = best
    desk.rows[row].confidence = 1.0 / total if desk.meta[BELIEVED] else scores[best] / votes


@inlined
def decide_gone(desk: Desk, count: int) -> None:
    """Decide the rows that have just left."""
    for i in range(count):
        decide(desk, desk.gone[i])


@kernel
def decide_row(desk: Desk, row: int) -> None:
    """Decide one row by what is believed now."""
    decide(desk, row)


@kernel
def let_go_row(desk: Desk, row: int) -> None:
    """Wait no more for the labels in flight of one row."""
    let_go(desk, row)


@kernel
def depart(desk: Desk, rows: Any) -> None:
    """Decide rows that leave by what is believed now, and wait no more for their labels."""
    for i in range(len(rows)):
        decide(desk, rows[i])
        let_go(desk, rows[i])
