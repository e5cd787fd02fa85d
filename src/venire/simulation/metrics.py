"""What a schedule earned by three measures, less its cost; and what a run looks like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venire.display import COLOURS, axes_for, block, facts, table
from venire.paper import utility
from venire.paper.accuracy import evidence, on_grid
from venire.scheduling.kernel.desk import REASONS
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.simulation.run import Run


def item_columns(run: Run, first: int | None = None) -> dict[str, list[Any]]:
    """The columns of `Run.to_frame`, of all items or of the first ones only."""
    rows, ledger, classes = run.rows[:first], run.ledger, run.world.classes
    columns = {
        "item": [str(run.items.name(i)) for i in range(len(rows))],
        **{name: rows[name].tolist() for name in ("arrival", "weight", "labels", "exit")},
        "verdict": [classes[code] if code >= 0 else None for code in rows["verdict"].tolist()],
        "confidence": rows["confidence"].tolist(),
        "reason": [str(REASONS[code]) for code in rows["reason"].tolist()],
        "utility": ledger.utility[:first].tolist(),
        "realised": ledger.realised[:first].tolist(),
    }
    if run.items.truth_known:
        truth = run.items.truth[: len(rows)].tolist()
        columns["truth"] = [classes[code] if code >= 0 else None for code in truth]
    return columns


def label_columns(run: Run) -> dict[str, list[Any]]:
    """The columns of `Run.labels_frame`."""
    touches, classes = run.touches, run.world.classes
    names = [labeler.id for labeler in run.world.panel]
    return {
        "slot": touches["slot"].tolist(),
        "item": [str(run.items.name(row)) for row in touches["row"].tolist()],
        "labeler": [names[m] for m in touches["labeler"].tolist()],
        "label": [classes[said] if said >= 0 else None for said in touches["said"].tolist()],
        "gain": touches["gain"].tolist(),
    }


def shown_run(run: Run) -> str:
    """The summary and the first items, in HTML. It does not run the genie."""
    learning = run.learning.describe() if run.learning else "known"
    summary = {
        "items": len(run.rows),
        "labels": len(run.touches),
        "labels per item": run.labels_per_item,
        "utility": run.utility,
        "realised utility": run.realised_utility,
        "true utility": run.true_utility,
        "right verdicts": run.accuracy,
        "slots to the exit, mean": run.mean_response,
    }
    title = f"{run.policy.describe()}, competences {learning}, {run.slots:,} slots"
    known = {name: value for name, value in summary.items() if value is not None}
    return block(title, [facts(known), table(item_columns(run, 5), shown=5)])


def plot_run(run: Run, axes: Axes | None = None) -> Axes:
    """Utilities added up over the slots, with those of Algorithm 1 for comparison."""
    axes = axes_for(axes)
    slots, genie = np.arange(run.slots), run.genie
    lines = [("utility", "blue", "-", run, run.ledger.utility)]
    if genie is not run:
        lines.append(("utility of Algorithm 1", "grey", "--", genie, genie.ledger.utility))
    lines.append(("realised utility", "orange", "-", run, run.ledger.realised))
    if run.true_utility is not None:
        lines.append(("true utility", "green", "-", run, np.nan_to_num(run.ledger.true)))
    for label, colour, style, of, earned in lines:
        sums = np.cumsum(np.bincount(of.rows["exit"], earned, minlength=run.slots))
        axes.plot(slots, sums, style, color=COLOURS[colour], label=label)
    axes.set_xlabel("slot")
    axes.set_ylabel("earned so far")
    axes.set_title(f"{run.policy.describe()}: what the items that have left earned")
    axes.legend(frameon=False)
    return axes


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
