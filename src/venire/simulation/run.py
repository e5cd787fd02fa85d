"""Run a policy on a simulated world: what each item earned by three measures, and how it looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.display import COLOURS, axes_for, block, facts, table
from venire.errors import InputError
from venire.estimators.frames import Backend, frame_of
from venire.model import Assignment, Exit, Verdict
from venire.paper import utility
from venire.paper.accuracy import evidence, on_grid
from venire.scheduling.base import Belief, Learner, Learning, Policy
from venire.scheduling.by_name import learning_of, policy_of
from venire.scheduling.kernel.build import put_to_work, refile_all
from venire.scheduling.kernel.desk import (
    COUNTER,
    HORIZON,
    OUTSTANDING,
    REASONS,
    ROWS,
    TOUCHES,
    Desk,
    grow_touches,
)
from venire.scheduling.kernel.verdicts import believe, check_c, decide_row
from venire.scheduling.policies.greedy import Greedy
from venire.simulation.loop import (
    Stream,
    desk_of,
    most_in_a_slot,
    offline_of,
    run_of,
    stream_of,
)
from venire.simulation.world import Items, World
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from venire.offline import Certificate


#: A billion; the arrays of a longer run would not fit into memory.
MOST_SLOTS = 10**9

#: What is shown of the records of items and labels; the rest is how the kernels file them.
ROW_COLUMNS = (
    "weight", "arrival", "last", "labels", "evidence", "exit", "verdict", "confidence", "reason",
)  # fmt: skip
TOUCH_COLUMNS = ("slot", "row", "labeler", "said", "gain")

Progress = Callable[[int, int], None]


def simulate(
    world: World,
    policy: Policy | str | None = None,
    learning: Learning | str | None = None,
    slots: int = 10_000,
    c: float = 1.0,
    progress: Progress | None = None,
) -> Run:
    """Run a policy (`Realised` by default) on the first `slots` slots of a world.

    Policy and learning are objects, or names with their settings (`"fixed-overlap:5"`,
    `"while-serving"`). Without `learning` the competences are known, as to the paper's genie.
    `c` is the constant of the accuracy proxy. `progress(slot, slots)` is called from time to time.

    >>> run = simulate(World.synthetic(seed=0), slots=1000)
    >>> round(run.true_utility / len(run.items), 2), round(run.accuracy, 3)
    (6.23, 0.957)
    """
    if not isinstance(world, World):
        raise InputError(f"got world={world!r}, expected such as World.synthetic(seed=0)")
    if not isinstance(slots, int | np.integer) or not 1 <= slots <= MOST_SLOTS:
        raise InputError(f"got a horizon of {slots} slots, expected 1 to {MOST_SLOTS:,}")
    check_c(c)
    policy, learning = policy_of(policy), learning_of(learning)
    items = world.items(slots)
    stream = stream_of(world, items, slots)
    desk = desk_of(world, items, slots)
    nobody = [None] * len(world.panel)
    learner = learning.begin(nobody, len(world.classes)) if learning else None
    believe(desk, learner.belief if learner else Belief(world.competences), c)
    slot, heard, first = 0, int(desk.meta[TOUCHES]), 0
    active = _active(policy, learning, slot)
    desk = put_to_work(desk, active, active)
    while slot < slots:
        refresh = learning.next_refresh(slot) if learning else _next_change(stream, slot)
        stop = slots if refresh is None else min(slots, refresh + 1)
        desk = _run_until(desk, active, stream, slot, stop, slots, progress)
        slot = stop
        if refresh is not None and slot == refresh + 1 and slot < slots:
            if learner:
                heard = _learn(learner, desk, heard)
            known = stream.competence[np.searchsorted(stream.since, slot, side="right") - 1]
            believe(desk, learner.belief if learner else Belief(known), c)
            before, active = active, _active(policy, learning, slot)
            desk = put_to_work(desk, active, before)
            first = refile_all(desk, active.kernels(), slot, first)
    _end(desk, slots)
    return Run(world, policy, learning, slots, c, items, desk, learner)


def _active(policy: Policy, learning: Learning | None, slot: int) -> Policy:
    return (learning.phase(slot) if learning else None) or policy


def _next_change(stream: Stream, slot: int) -> int | None:
    """The last slot before the competences change, this one or a later one."""
    later = stream.since[stream.since > slot]
    return int(later[0]) - 1 if len(later) else None


def _learn(learner: Learner, desk: Desk, heard: int) -> int:
    """Learn from the labels since touch `heard`; returns how many touches there are now."""
    touches = desk.touches[heard : desk.meta[TOUCHES]]
    touches = touches[touches["said"] >= 0]
    learner.learn(*(touches[name].astype(np.int64) for name in ("row", "labeler", "said")))
    return int(desk.meta[TOUCHES])


def _run_until(
    desk: Desk,
    policy: Policy,
    stream: Stream,
    slot: int,
    stop: int,
    slots: int,
    progress: Progress | None,
) -> Desk:
    """Run slots slot..stop-1 in pieces, so that it can report progress and be interrupted."""
    piece, run = max(1, min(slots // 50, 10_000)), run_of(policy.kernels())
    while slot < stop:
        reached = run(desk, stream, slot, min(stop, slot + piece))
        if reached == slot:
            more = most_in_a_slot(desk.panel["capacity"], len(desk.rows))
            desk = grow_touches(desk, 2 * len(desk.touches) + more)
        slot = reached
        if progress:
            progress(slot, slots)
    return desk


def _end(desk: Desk, slots: int) -> None:
    """Close what is outstanding at the horizon, with what it has earned."""
    rows = desk.rows
    left = np.flatnonzero(rows["state"] == OUTSTANDING)
    rows["exit"][left] = slots - 1
    rows["reason"][left] = HORIZON
    for row in left.tolist():
        decide_row(desk, row)


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


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a policy on a world.

    Regret and ratio are measured against Algorithm 1 with the true competences on the same
    stream, and everything by the true competences. Another policy may earn more than that: then
    the ratio is above 1 and the regret below 0. `learner` is what was learned by the end.

    >>> simulate(World.synthetic(0), slots=100)
    Run(policy=Realised(), learning=None, slots=100, items=539, utility=3217.01)
    """

    world: World
    policy: Policy
    learning: Learning | None
    slots: int
    c: float
    items: Items
    desk: Desk
    learner: Learner | None = None

    def __repr__(self) -> str:
        said = f"policy={self.policy}, learning={self.learning}, slots={self.slots}"
        return f"Run({said}, items={len(self.rows)}, utility={self.utility:.2f})"

    @property
    def touches(self) -> NDArray[Any]:
        """The labels given, in order: slot, row, labeler, said (a class), gain."""
        given = self.desk.touches[len(self.items.masks.barred) : self.desk.meta[TOUCHES]]
        return given[list(TOUCH_COLUMNS)]

    @property
    def rows(self) -> NDArray[Any]:
        """The items in order of arrival, a record each.

        The fields: weight, arrival, last (slot of the latest label, or the arrival), labels,
        evidence, exit, verdict (a class, -1: none), confidence, reason.
        """
        return self.desk.rows[: self.desk.meta[ROWS]][list(ROW_COLUMNS)]

    @cached_property
    def ledger(self) -> Ledger:
        """What each item earned."""
        counts_from = self.learning.counts_from() if self.learning else 0
        truth, classes, (since, p) = self.items.truth, len(self.world.classes), self.world.levels
        labels, prices = (self.touches, self.rows, truth), self.world.prices
        return keep_ledger(*labels, p, classes, self.c, counts_from, since, prices)

    @cached_property
    def genie(self) -> Run:
        """Algorithm 1 with the true competences on the same stream."""
        if self.learning is None and isinstance(self.policy, Greedy):
            return self
        return simulate(self.world, Greedy(), None, self.slots, self.c)

    def certificate(self, progress: Progress | None = None) -> Certificate:
        """What anyone could have earned on this stream, knowing the future; computed once.

        Over the items that count, by the true competences. It bounds the utility and the
        realised utility of every schedule (docs/certificates.md).

        >>> run = simulate(World.synthetic(seed=0), slots=20)
        >>> c = run.certificate()
        >>> run.utility <= c.bound, 0.97 < c.share(run.utility) <= 1
        (True, True)
        """
        kept: Certificate | None = self.__dict__.get("_certificate")
        if kept is None:
            from venire.offline import certify

            counts_from = self.learning.counts_from() if self.learning else 0
            problem = offline_of(self.world, self.items, self.slots, self.c, counts_from)
            kept = certify(problem, max(0.0, self.utility), progress=progress)
            self.__dict__["_certificate"] = kept
        return kept

    @property
    def utility(self) -> float:
        """The paper's: accuracy times weight, less the delay to the last label, and the money."""
        return float(self.ledger.utility.sum())

    @property
    def realised_utility(self) -> float:
        """The same with the delay to the exit."""
        return float(self.ledger.realised.sum())

    @property
    def true_utility(self) -> float | None:
        """The weight of right verdicts, less delay to the exit and money; None without truth."""
        known = ~np.isnan(self.ledger.true)
        if not self.items.truth_known or not known.any():
            return None
        return float(self.ledger.true[known].sum())

    @property
    def money(self) -> float:
        """What all labels cost, those of items that do not count included."""
        return float(self.ledger.money.sum())

    @property
    def regret(self) -> float:
        """What the genie earned more (paper, eq. 10)."""
        return self.genie.utility - self.utility

    @property
    def normalised_regret(self) -> float:
        """Regret divided by the mean total weight of the arrivals of a slot."""
        scale = float(self.rows["weight"].sum()) / self.slots
        return self.regret / scale if scale else 0.0

    @property
    def ratio(self) -> float | None:
        """Utility over the genie's; None where the genie earns nothing."""
        return self.utility / self.genie.utility if self.genie.utility else None

    @property
    def labels_per_item(self) -> float:
        """Labels spent over items that arrived."""
        return len(self.touches) / max(1, len(self.rows))

    @property
    def mean_delay(self) -> float:
        """Slots from arrival to the last label, which is what the paper charges."""
        return _mean(self.rows["last"] - self.rows["arrival"], self.ledger.counts)

    @property
    def mean_response(self) -> float:
        """Slots from arrival to the exit: how long the owner of the item waits."""
        return _mean(self.rows["exit"] - self.rows["arrival"], self.ledger.counts)

    @property
    def accuracy(self) -> float | None:
        """Share of right verdicts among the items that count and whose truth is known."""
        judged = self.ledger.counts & (self.items.truth >= 0)
        if not self.items.truth_known or not judged.any():
            return None
        return _mean(self.rows["verdict"] == self.items.truth, judged)

    @property
    def counters(self) -> dict[str, int]:
        """The counters of the policy, by name; empty for most."""
        return self.policy.counters(self.desk.meta[COUNTER:])

    def assignments(self) -> Iterator[Assignment]:
        """Who labelled what, in order."""
        names = [labeler.id for labeler in self.world.panel]
        for slot, row, labeler, gain in _each(self.touches, "slot", "row", "labeler", "gain"):
            yield Assignment(slot, self._name(row), names[labeler], gain)

    def exits(self) -> Iterator[Exit]:
        """The items in the order in which they left, the earliest arrival first in a slot."""
        order = np.argsort(self.rows["exit"], kind="stable")
        columns = ("arrival", "exit", "labels", "verdict", "confidence", "reason")
        for row, fields in zip(order.tolist(), _each(self.rows[order], *columns), strict=True):
            arrival, left, labels, code, confidence, reason = fields
            verdict = Verdict(self.world.classes[code] if code >= 0 else None, confidence)
            yield Exit(self._name(row), arrival, left, labels, verdict, REASONS[reason])

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The items as a dataframe, in order of arrival: what came of each, and what it earned.

        The columns: item, arrival, weight, labels, exit, verdict, confidence, reason, utility,
        realised and, where the truth is known, truth. `backend` is "pandas", "polars" or
        "pyarrow"; by default the first of them that is installed.

        >>> list(simulate(World.synthetic(0), Greedy(), slots=20).to_frame("pandas"))[:4]
        ['item', 'arrival', 'weight', 'labels']
        """
        return frame_of(item_columns(self), backend)

    def labels_frame(self, backend: Backend | None = None) -> Any:
        """The labels as a dataframe, in order: slot, item, labeler, label, gain.

        >>> list(simulate(World.synthetic(0), Greedy(), slots=20).labels_frame("pandas"))
        ['slot', 'item', 'labeler', 'label', 'gain']
        """
        return frame_of(label_columns(self), backend)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw what the items earned by the slot in which they left, added up.

        On `axes` of matplotlib, or on new ones, which are returned. Needs the extra `plot`.

        >>> simulate(World.synthetic(0), Greedy(), slots=20).plot().get_xlabel()
        'slot'
        """
        return plot_run(self, axes)

    def _repr_html_(self) -> str:
        """What a notebook shows: the summary, and the first items."""
        return shown_run(self)

    def _name(self, row: int) -> str:
        return str(self.items.name(row))

    def summary(self) -> dict[str, Any]:
        """Everything in one flat record, as `venire simulate --json` prints it."""
        return {
            "policy": self.policy.describe(),
            "learning": self.learning.describe() if self.learning else "known",
            "slots": self.slots,
            "seed": self.world.seed,
            "items": len(self.rows),
            "labels": len(self.touches),
            **{name: getattr(self, name) for name in UTILITIES},
            "genie_utility": self.genie.utility,
            **{name: getattr(self, name) for name in MEASURES},
        }


#: What a summary says of a run, beside the utility of the genie.
UTILITIES: Final = ("utility", "realised_utility", "true_utility")
MEASURES: Final = (
    *("regret", "normalised_regret", "ratio", "labels_per_item"),
    *("money", "mean_delay", "mean_response"),
)


def _each(records: NDArray[Any], *columns: str, piece: int = 65_536) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(records), piece):
        part = records[start : start + piece]
        yield from zip(*(part[name].tolist() for name in columns), strict=True)


def _mean(values: NDArray[Any], where: NDArray[np.bool_]) -> float:
    chosen = values[where]
    return float(chosen.mean()) if len(chosen) else 0.0


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
