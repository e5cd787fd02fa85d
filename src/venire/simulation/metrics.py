"""What a schedule earned by three measures, less what it cost, with the true competences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.paper import utility
from venire.paper.accuracy import evidence, on_grid
from venire.tools.compiling import inlined, kernel

__all__ = ["Ledger", "keep_ledger"]

Floats = NDArray[np.float64]

earned = inlined(utility.earned)


@dataclass(frozen=True, eq=False)
class Ledger:
    """What each item earned.

    `utility` is u_s: delay to the last label, the best on the way. `realised` has the delay to
    the exit. `true` has the weight if the verdict is right, else 0, less the delay to the exit;
    nan where the truth is not known. Items that do not count (a learning phase) earn 0. All
    three are less the `money` that the labels of the item cost.
    """

    utility: Floats
    realised: Floats
    true: Floats
    counts: NDArray[np.bool_]
    money: Floats


@kernel
def add_up(
    touches: NDArray[Any],
    weight: Floats,
    arrival: NDArray[np.int64],
    worth: Floats,
    evidence: Floats,
    best: Floats,
) -> None:
    """Go through the labels in order: total evidence, and the best f_s so far."""
    for k in range(len(touches)):
        row = touches[k].row
        evidence[row] += worth[k]
        now = earned(weight[row], evidence[row], touches[k].slot - arrival[row])
        best[row] = max(best[row], now)


def keep_ledger(
    touches: NDArray[Any],
    rows: NDArray[Any],
    truth: NDArray[np.int16],
    competences: Floats,
    classes: int,
    c: float = 1.0,
    counts_from: int = 0,
    since: NDArray[np.int64] | None = None,
    prices: Floats | None = None,
) -> Ledger:
    """Compute what each item earned, from the labels and the exits.

    `competences` is one number for each labeler; or, with `since`, a row of them that holds
    from each of these slots on. `prices` is what a label of each labeler costs; None: nothing.
    """
    weight, arrival = np.ascontiguousarray(rows["weight"]), np.ascontiguousarray(rows["arrival"])
    held, best = np.zeros(len(rows)), np.zeros(len(rows))
    value = np.atleast_2d(on_grid(c * evidence(competences, classes)))
    phase = 0 if since is None else np.searchsorted(since, touches["slot"], side="right") - 1
    add_up(touches, weight, arrival, value[phase, touches["labeler"]], held, best)
    counts = arrival >= counts_from
    wait = rows["exit"] - arrival
    realised = -weight * np.expm1(-held) - wait
    true = np.where(rows["verdict"] == truth, weight, 0.0) - wait
    true[truth < 0] = np.nan
    money = np.zeros(len(rows))
    if prices is not None and prices.any():
        spent = np.bincount(touches["row"], prices[touches["labeler"]], len(rows))
        money = spent.astype(np.float64)
    for account in (best, realised, true):
        account -= money
        account[~counts] = 0.0
    return Ledger(best, realised, true, counts, money)
