r"""A certificate: an upper bound on what anyone could have earned, and how tight it is.

**The optimum of small instances, by an integer program over sets of labelers.**

A *column* is an item s, a departure d and a set R of options, each a labeler in a phase: it
earns the whole concave w (1 - exp(-E(R))) - (d - a), less the money, with no tangents. With x in
{0, 1} for columns and y[s, m, t] for blocks,

    max  sum of what columns earn
    sum over columns of s of x <= 1
    sum over s of y[s, m, t] <= capacity[m]
    sum over t <= d in the phase of y[s, m, t] >= sum over columns of s that hold the option and
                                                 leave by d of x

For fixed x the rest is to schedule unit jobs with release times and deadlines on each labeler,
which is a transportation problem, so y need not be integer in the program; the schedule is built
by earliest deadline first.

**Few columns.** At prices lambda with the bound L and a schedule that earns V, a column whose
gain at these prices is below v_s - (L - V) is in no schedule that earns more than V: what the
others gain and the blocks are worth is L - v_s at most. Only the others are enumerated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from venire.display import COLOURS, axes_for, block, facts
from venire.errors import InputError
from venire.estimators.frames import Backend, frame_of
from venire.offline.instance import Block, Instance, value_of
from venire.offline.one_item import workspace_for
from venire.offline.prices import candidates, find_prices, gains
from venire.offline.schedule import plan
from venire.tools.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def schedule_columns(certificate: Certificate) -> dict[str, list[int]]:
    """The columns of `Certificate.to_frame`, by slot."""
    blocks = sorted((slot, item, labeler) for item, labeler, slot in certificate.schedule)
    names = ("slot", "item", "labeler")
    return {name: [block[k] for block in blocks] for k, name in enumerate(names)}


def shown_certificate(certificate: Certificate) -> str:
    """The bounds in HTML."""
    found = {
        "nobody can earn more than": certificate.bound,
        "known to be possible": certificate.lower,
        "gap": f"{certificate.gap:.2%}",
        "found by": certificate.method,
        "items": certificate.items,
    }
    return block("Certificate", [facts(found)])


def plot_certificate(
    certificate: Certificate, earned: Mapping[str, float], axes: Axes | None = None
) -> Axes:
    """Bars for what is possible and what was earned, and a line for the bound."""
    bars = {"known to be possible": certificate.lower, **earned}
    axes = axes_for(axes, height=1.1 + 0.35 * len(bars))
    names, values = list(bars), list(bars.values())
    colours = [COLOURS["grey"]] + [COLOURS["blue"]] * len(earned)
    axes.barh(names, values, color=colours, height=0.6)
    axes.axvline(certificate.bound, color=COLOURS["red"], linewidth=1.5)
    for k, value in enumerate(values):
        share = certificate.share(value)
        if share is not None and value > 0:
            axes.text(value, k, f"{share:.1%} ", ha="right", va="center", color="white", fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel("utility")
    axes.set_title(f"share of the bound, {certificate.bound:,.4g} (red line)")
    return axes


#: Schedules are planned at all prices whose bound is within this share of the best.
NEAR: Final = 0.02

#: With more items than this, only at the last two of them, the rough ones: they break ties, which
#: makes better plans.
MANY: Final = 20_000


@dataclass(frozen=True)
class Certificate:
    """OPT is between `lower` and `bound`; `gap` is the bound over the lower, less 1.

    `method` says how the bound was found: `exact` (the optimum of an integer program, to the
    solver's tolerance), `lp` (a Lagrangian bound at the duals of a linear program) or `prices`
    (one at prices found by sweeps); the last two are rounded outward. `schedule` is one that
    earns what is known to be possible: `lower`, unless a run that was given earns more.
    """

    bound: float
    lower: float
    method: str
    items: int
    schedule: tuple[Block, ...] = field(repr=False)

    @property
    def gap(self) -> float:
        """How much the bound may be too high, as a share of what is known to be possible."""
        return self.bound / self.lower - 1.0 if self.lower > 0 else float(self.bound > 0)

    def share(self, utility: float) -> float | None:
        """A utility as a share of the bound; None if there was nothing to earn."""
        return utility / self.bound if self.bound > 0 else None

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The schedule as a dataframe: slot, item and labeler of each label, by their numbers.

        >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
        >>> certify(tiny).to_frame("pandas").values.tolist()
        [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
        """
        return frame_of(schedule_columns(self), backend)

    def plot(self, earned: Mapping[str, float] | None = None, axes: Axes | None = None) -> Axes:
        """Draw what is known to be possible, and what runs `earned`, against the bound.

        On `axes` of matplotlib, or on new ones, which are returned. Needs the extra `plot`.

        >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
        >>> axes = certify(tiny).plot({"mine": 6.0})
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['known to be possible', 'mine']
        """
        return plot_certificate(self, earned or {}, axes)

    def _repr_html_(self) -> str:
        """What a notebook shows: the bounds, and how they were found."""
        return shown_certificate(self)


def certify(
    instance: Instance,
    earned: float = 0.0,
    sweeps: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Bound what anyone could earn on an instance, from above and from below.

    `earned` is what some schedule is known to earn. Small instances are solved exactly, others by
    prices; for instances of medium size those of a linear program are tried too. `sweeps` is the
    number of passes over the items that find the prices.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> c = certify(tiny)
    >>> round(c.lower, 3), round(c.bound, 3), c.method
    (7.546, 7.546, 'exact')
    """
    if not len(instance) or not np.any(instance.evidence):
        return Certificate(0.0, 0.0, "exact", len(instance), ())
    ranked = candidates(instance, sweeps, progress)
    price, bound, method = ranked[0]
    lower, schedule = -1.0, list[Block]()
    near = [other for other in ranked if other.bound <= (1.0 + NEAR) * bound]
    for other in near if len(instance) <= MANY else near[-2:]:
        found = plan(instance, other.price)
        value = value_of(instance, found)
        if value > lower:
            lower, schedule = value, found
    if small(instance):
        best = exact(instance, price, bound, schedule)
        if best is not None:
            schedule, lower = list(best.schedule), best.value
            bound, method = min(bound, best.bound), "exact"
    return Certificate(bound, max(lower, earned), method, len(instance), tuple(schedule))


#: An option: a labeler, its evidence, and the slots of its phase within the window.
Option = tuple[int, float, tuple[int, ...]]

#: A program with more columns takes too long.
COLUMNS: Final = 4_000


#: The most nodes that the solver visits: a count, not a time, so that results are repeatable.
NODES: Final = 2_000


@dataclass(frozen=True)
class Exact:
    """A schedule, what it earns, and a bound on what any schedule earns (to the tolerance)."""

    value: float
    bound: float
    schedule: tuple[Block, ...]


@dataclass(frozen=True)
class Column:
    """Item, departure, options (labeler and the slots it may be in), and what it earns."""

    item: int
    departure: int
    options: tuple[tuple[int, tuple[int, ...]], ...]
    value: float


def small(instance: Instance) -> bool:
    """Whether the integer program is worth trying."""
    return len(instance) <= 60 and len(instance) * len(instance.capacity) <= 500


def optimum(instance: Instance) -> Exact:
    """The optimum of a small instance.

    >>> tiny = Instance([8.0, 3.0], [0, 0], slots=2, evidence=[[1.0, 0.5]], capacity=[1, 1])
    >>> best = optimum(tiny)
    >>> round(best.value, 4), best.schedule
    (7.5456, ((0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1)))
    """
    if not len(instance) or not instance.evidence.any():
        return Exact(0.0, 0.0, ())
    price, bound = find_prices(instance)
    best = exact(instance, price, bound, plan(instance, price))
    if best is None:
        raise InputError(
            f"got an instance of {len(instance)} items that needs more than {COLUMNS:,} columns or "
            f"{NODES:,} nodes: ask for a certificate, which bounds the optimum"
        )
    return best


def exact(
    instance: Instance, price: Floats, bound: float, schedule: Sequence[Block]
) -> Exact | None:
    """The optimum, given prices with their bound and a schedule; None where it takes too long."""
    lower = value_of(instance, schedule)
    gap = max(0.0, bound - lower) + 1e-9 * (1.0 + bound)
    problem, most = instance.problem(), np.zeros(len(instance))
    gains(problem, price + instance.money, most, workspace_for(problem))
    columns: list[Column] = []
    for s in range(len(instance)):
        columns += _columns_of(instance, price, s, most[s] - gap, COLUMNS - len(columns))
        if len(columns) >= COLUMNS:
            return None
    columns = [column for column in columns if column.value > 0]
    if not columns:
        return Exact(lower, lower + gap, tuple(schedule))
    chosen, top = _solve(instance, columns)
    found = _by_deadline(instance, chosen)
    value = value_of(instance, found)
    if value < lower:
        found, value = list(schedule), lower
    if top > value + 1e-5 * (1.0 + value):
        return None
    return Exact(value, max(value, top) + 1e-6 * (1.0 + value), tuple(sorted(found)))


def _columns_of(
    instance: Instance, price: Floats, item: int, least: float, room: int
) -> list[Column]:
    """The columns of an item that gain at least `least` at the prices.

    The search stops at `room` of them, those that earn nothing included.
    """
    weight, arrival = float(instance.weight[item]), int(instance.arrival[item])
    columns: list[Column] = []
    who = instance.may_label(item)
    for d in range(arrival, instance.slots):
        if d - arrival >= weight:
            break
        windows: dict[int, list[int]] = defaultdict(list)
        for t in range(arrival, d + 1):
            windows[instance.phase_of(t)].append(t)
        options: list[tuple[float, Option]] = []
        for m in who:
            for p, slots in windows.items():
                e = float(instance.evidence[p, m])
                if e > 0:
                    cost = float(price[slots, m].min() + instance.money[m])
                    options.append((cost, (m, e, tuple(slots))))
        for value, taken in _sets(options, weight, least + d - arrival, room - len(columns)):
            parts = tuple((o[0], o[2]) for o in taken)
            money = sum(float(instance.money[o[0]]) for o in taken)
            columns.append(Column(item, d, parts, value - (d - arrival) - money))
    return columns


def _sets(
    options: list[tuple[float, Option]], weight: float, least: float, room: int
) -> list[tuple[float, tuple[Option, ...]]]:
    """Sets with at most one option of a labeler that gain at least `least`; with their accuracy."""
    found: list[tuple[float, tuple[Option, ...]]] = []

    def extend(k: int, rest: float, paid: float, taken: tuple[Option, ...]) -> None:
        if len(found) > room:
            return
        more = sum(max(0.0, -rest * np.expm1(-o[1]) - c) for c, o in options[k:])
        if weight - rest - paid + more < least:
            return
        if k == len(options):
            if taken:
                evidence = sum(o[1] for o in taken)
                found.append((float(-weight * np.expm1(-evidence)), taken))
            return
        cost, option = options[k]
        if all(o[0] != option[0] for o in taken):
            extend(k + 1, rest * float(np.exp(-option[1])), paid + cost, (*taken, option))
        extend(k + 1, rest, paid, taken)

    extend(0, weight, 0.0, ())
    return found


def _solve(instance: Instance, columns: list[Column]) -> tuple[list[Column], float]:
    """The chosen columns, and the solver's bound on the program; none if it found no solution."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    entries: list[tuple[int, int, float]] = []
    limits: list[float] = []
    block: dict[Block, int] = {}
    rows: dict[tuple[object, ...], int] = {}

    def row(key: tuple[object, ...], limit: float) -> int:
        if key not in rows:
            rows[key] = len(limits)
            limits.append(limit)
        return rows[key]

    needs: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    slots_of: dict[tuple[int, int, int, int], tuple[int, ...]] = {}
    for j, column in enumerate(columns):
        entries.append((row(("item", column.item), 1.0), j, 1.0))
        for m, slots in column.options:
            needs[column.item, m, slots[0]].add(column.departure)
            slots_of[column.item, m, slots[0], column.departure] = slots
            for t in slots:
                block.setdefault((column.item, m, t), len(columns) + len(block))
    for (_, m, t), v in block.items():
        entries.append((row(("block", m, t), float(instance.capacity[m])), v, 1.0))
    for j, column in enumerate(columns):
        for m, slots in column.options:
            for d in needs[column.item, m, slots[0]]:
                if d >= column.departure:
                    entries.append((row(("need", column.item, m, slots[0], d), 0.0), j, 1.0))
    for (s, m, t0, d), slots in slots_of.items():
        r = row(("need", s, m, t0, d), 0.0)
        entries += [(r, block[s, m, t], -1.0) for t in slots]
    i, j_, a = zip(*entries, strict=True)
    n = len(columns) + len(block)
    matrix = coo_array((a, (i, j_)), shape=(len(limits), n)).tocsr()
    cost = np.zeros(n)
    cost[: len(columns)] = [-column.value for column in columns]
    whole = np.zeros(n)
    whole[: len(columns)] = 1
    result = milp(
        cost,
        integrality=whole,
        bounds=Bounds(0.0, 1.0),
        constraints=LinearConstraint(matrix, -np.inf, np.array(limits)),
        options={"mip_rel_gap": 0.0, "node_limit": NODES},
    )
    if result.x is None or result.mip_dual_bound is None:
        return [], np.inf
    chosen = [c for c, x in zip(columns, result.x, strict=False) if x > 0.5]
    return chosen, -float(result.mip_dual_bound)


def _by_deadline(instance: Instance, chosen: list[Column]) -> list[Block]:
    """Slots for the options of the chosen columns, earliest deadline first."""
    jobs: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for column in chosen:
        for m, slots in column.options:
            jobs[m].append((slots[-1], slots[0], column.item))
    blocks: list[Block] = []
    for m, waiting in jobs.items():
        waiting.sort()
        for t in range(instance.slots):
            ready = [job for job in waiting if job[1] <= t][: int(instance.capacity[m])]
            for job in ready:
                if t > job[0]:
                    raise AssertionError("the chosen columns do not fit into the slots")
                waiting.remove(job)
                blocks.append((job[2], m, t))
    return blocks
