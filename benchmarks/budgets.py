"""A daily budget: a multiplier against a cut-off and a fixed overlap of the same spend.

    python -m benchmarks.budgets

A day of 120 slots on the paper's panel, five items a slot on average, evenly or more at
noon than at night; labels cost the same, or the better the dearer. The budget is a share of what
`Realised` spends without one. Fixed overlaps are run with one to three labels an item until the
budget is gone; of these the best in hindsight is shown. A cell has the share of right verdicts, and
the true utility of an item.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from venire import Budget, FixedOverlap, Item, Label, Policy, Realised, Scheduler, Trace, World
from venire.model import Bounds
from venire.simulation.loop import ask, stream_of

SLOTS = 120
SEEDS = range(5)
SHARES = (0.3, 0.5, 0.7)


class Day(NamedTuple):
    """What came of a day: money spent, share of right verdicts, true utility an item."""

    spent: float
    accuracy: float
    utility: float


def world_of(seed: int, wave: bool, dear: bool) -> World:
    """The paper's panel; with `wave` more items at noon, with `dear` prices by competence."""
    rng = np.random.default_rng(seed)
    rate = 5.0 * (1.0 - 0.8 * np.cos(2 * np.pi * np.arange(SLOTS) / SLOTS) * wave)
    world = World.synthetic(seed, arrivals=Trace(tuple(rng.poisson(rate).tolist())))
    panel = [
        replace(who, price=0.02 * (10.0 ** (5 * ((who.competence or 0.5) - 0.75)) if dear else 1.0))
        for who in world.panel
    ]
    return replace(world, panel=tuple(panel))


def run(world: World, policy: Policy, budget: Budget | None = None, cut: float = math.inf) -> Day:
    """Drive the engine through a day, every label in its slot; `cut` is a cut-off in money."""
    items = world.items(SLOTS)
    stream = stream_of(world, items, SLOTS)
    number = {who.id: m for m, who in enumerate(world.panel)}
    s = Scheduler(world.panel, world.classes, policy, budget=budget)
    spent, said = 0.0, np.full(len(items), -1)
    left = np.full(len(items), SLOTS)
    for slot in range(SLOTS):
        rows = range(stream.first[slot], stream.first[slot + 1])
        s.arrive(Item(str(i), float(items.weight[i])) for i in rows)
        for a in s.assign() if spent < cut else ():
            spent += world.panel[number[a.labeler]].price
            label = ask(stream, int(a.item), number[a.labeler], slot)
            s.observe(Label(a.item, a.labeler, world.classes[label]))
        if spent >= cut and not s.bounds.spent:
            s.change(bounds=Bounds(spent=True))
        for e in s.close():
            left[int(e.item)] = slot
            if e.verdict.label is not None:
                said[int(e.item)] = world.classes.index(e.verdict.label)
    right = said == items.truth
    earned = (items.weight * right - (left - items.arrival)).sum() - spent
    return Day(spent, float(right.mean()), float(earned / len(items)))


def main(show: Callable[[str], None] = print) -> None:
    """Print the table."""
    show("| items | prices | budget | multiplier | cut-off | fixed overlap |")
    show("|-|-|-|-|-|-|")
    for wave in (True, False):
        for dear in (False, True):
            rows: dict[float, list[tuple[Day, Day, Day]]] = {share: [] for share in SHARES}
            for seed in SEEDS:
                world = world_of(seed, wave, dear)
                whole = run(world, Realised()).spent
                for share in SHARES:
                    money = share * whole
                    paced = run(world, Realised(), Budget(money, slots=SLOTS))
                    assert paced.spent <= money + 1e-9
                    cut = run(world, Realised(), cut=money)
                    fixed = [run(world, FixedOverlap(k), cut=money) for k in (1, 2, 3)]
                    rows[share].append((paced, cut, max(fixed, key=lambda day: day.utility)))
            for share, days in rows.items():
                cells = [
                    f"{np.mean([d[k].accuracy for d in days]):.3f}, "
                    f"{np.mean([d[k].utility for d in days]):.2f}"
                    for k in range(3)
                ]
                name = ("more at noon" if wave else "evenly", "by quality" if dear else "equal")
                show(f"| {' | '.join(name)} | {share:.0%} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
