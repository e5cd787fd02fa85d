r"""What one item buys when every (labeler, slot) block has a price.

At prices lambda >= 0 an item of weight w that arrives in slot a solves

    max over departures d and sets R of labelers of
        w (1 - exp(-E(R))) - (d - a) - sum over m in R of min over a <= t <= d of lambda[t, m]

or buys nothing. For a fixed d every labeler is an *option*: a cost c (its cheapest block so
far), an evidence e, and a reach x = 1 - exp(-e). (Where competences change there is an option
for each labeler and phase, at most one of a labeler.) Three facts are used:

- an option with c >= w x is in no best set, since what it adds to any set is at most w x;
- let options be bought in part: then they are filled in order of c / e until the marginal
  value w exp(-E) falls to c / e. That is an upper bound on all sets;
- from one departure to the next, the best set improves by no more than what the prices of
  options fell, each counted from w x at most. So most departures need not be looked at.

`search` is a branch and bound over sets. A branch has bought some options for certain and refused
others (`weigh`: the same bound on what is left, and a set). It is split at the one option that
the bound buys in part: that is where the bound is above the set. An expert among weak labelers is
thus decided at once, and for weak ones a part is worth nearly as much as the whole. After some
nodes it stops, and the highest bound of the open branches holds.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.instance import Problem
from venire.tools.arrays import Floats
from venire.tools.compiling import inlined, kernel

#: The most nodes of a branch and bound.
NODES: Final = 300

#: It accepts a set that is at most this share below the best.
CLOSE: Final = 2e-4

FAR: Final = np.inf

# the marks of options in a branch
OPEN: Final = 0
BOUGHT: Final = 1
REFUSED: Final = 2


class Workspace(NamedTuple):
    """Working arrays for one item; as many options as labelers times phases.

    `best` are the blocks of the best set so far (labeler, slot), `size[0]` their number.
    """

    cost: Floats
    rate: Floats
    slot: NDArray[np.int64]
    who: NDArray[np.int32]
    evidence: Floats
    reach: Floats
    order: NDArray[np.int64]
    queue: NDArray[np.int64]
    taken: NDArray[np.bool_]
    busy: NDArray[np.bool_]
    mark: NDArray[np.int8]
    trail: NDArray[np.int64]
    split: NDArray[np.int64]
    start: NDArray[np.int64]
    best: NDArray[np.int64]
    size: NDArray[np.int64]
    nodes: NDArray[np.int64]
    close: Floats
    last: NDArray[np.int64]


def workspace_for(problem: Problem, nodes: int = NODES, close: float = CLOSE) -> Workspace:
    phases, labelers = problem.evidence.shape
    n = phases * labelers + 1
    floats = [np.zeros(n) for _ in range(4)]
    return Workspace(
        floats[0],
        floats[3],
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        floats[1],
        floats[2],
        np.arange(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(labelers, np.bool_),
        np.zeros(n, np.int8),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((labelers, 2), np.int64),
        np.zeros(1, np.int64),
        np.array([nodes]),
        np.array([close]),
        np.array([-1, -1]),
    )


@inlined
def is_barred(problem: Problem, item: int, labeler: int) -> bool:
    for k in range(problem.barred_start[item], problem.barred_start[item + 1]):
        if problem.barred[k] == labeler:
            return True
    return False


@inlined
def offer(problem: Problem, item: int, space: Workspace, phase: int, first: int) -> int:
    """Add the labelers of the item in a phase as options; returns how many options there are."""
    n = first
    g = problem.group[item]
    for k in range(problem.start[g], problem.start[g + 1]):
        m = problem.members[k]
        if problem.evidence[phase, m] > 0.0 and not is_barred(problem, item, m):
            space.who[n] = m
            space.evidence[n] = problem.evidence[phase, m]
            space.reach[n] = problem.reach[phase, m]
            space.cost[n] = FAR
            space.rate[n] = FAR
            n += 1
    if space.last[0] != g or space.last[1] != n - first or first > 0:
        for i in range(n):
            space.order[i] = i
    space.last[0], space.last[1] = g if first == 0 else -1, n - first
    return n


@inlined
def look(price: Any, space: Workspace, slot: int, weight: float, first: int, n: int) -> float:
    """Update the costs by the prices of a slot; returns how much cheaper the options became."""
    fall = 0.0
    for i in range(first, n):
        now = price[slot, space.who[i]]
        if now < space.cost[i]:
            most = weight * space.reach[i]
            if now < most:
                fall += min(space.cost[i], most) - now
            space.cost[i] = now
            space.rate[i] = now / space.evidence[i]
            space.slot[i] = slot
    return fall


@inlined
def sort_options(space: Workspace, n: int, weight: float) -> int:
    """Queue the options that could be in a best set by cost per evidence; returns how many.

    Insertion sort from the previous order, from which it rarely differs by much.
    """
    for i in range(1, n):
        o = space.order[i]
        rate = space.rate[o]
        k = i
        while k > 0:
            other = space.order[k - 1]
            if space.rate[other] <= rate:
                break
            space.order[k] = other
            k -= 1
        space.order[k] = o
    count = 0
    for i in range(n):
        o = space.order[i]
        if space.cost[o] < weight * space.reach[o]:
            space.queue[count] = o
            count += 1
    return count


@inlined
def keep(space: Workspace, n: int) -> None:
    """Record the taken options as the best set so far."""
    size = 0
    for i in range(n):
        if space.taken[i]:
            space.best[size, 0] = space.who[i]
            space.best[size, 1] = space.slot[i]
            size += 1
    space.size[0] = size


@inlined
def take_bought(space: Workspace, count: int, weight: float) -> tuple[float, float]:
    """Take exactly the bought options; returns the residual and what was paid."""
    rest, paid = weight, 0.0
    for i in range(count):
        o = space.queue[i]
        space.taken[o] = space.mark[o] == BOUGHT
        space.busy[space.who[o]] = False
    for i in range(count):
        o = space.queue[i]
        if space.taken[o]:
            space.busy[space.who[o]] = True
            rest *= 1.0 - space.reach[o]
            paid += space.cost[o]
    return rest, paid


@kernel
def weigh(space: Workspace, count: int, weight: float) -> tuple[float, float, int]:
    """Evaluate a branch: the gain of a set in it, a bound on all its sets, where to split.

    The bound allows open options to be bought in part, in order of the queue. The set takes those
    that are bought whole, and others while they pay. The bound can exceed the set only by an option
    bought in part, or by two options of a labeler: there the branch is split (-1 if there is
    neither).
    """
    first, paid = take_bought(space, count, weight)
    left, owed, rest = first, paid, first
    top, split, flowing = 0.0, -1, True
    for i in range(count):
        o = space.queue[i]
        e, c = space.evidence[o], space.cost[o]
        if space.mark[o] != OPEN or first * space.reach[o] <= c:
            continue
        if flowing and left * e <= c:
            flowing, top = False, weight - left - owed
        if flowing:
            after = left * (1.0 - space.reach[o])
            if after * e < c:
                rate = space.rate[o]
                flowing, top = False, weight - rate - owed - rate * math.log(left / rate)
                split = o
            else:
                left, owed = after, owed + c
                if split < 0 and space.busy[space.who[o]]:
                    split = o
        if rest * space.reach[o] > c and not space.busy[space.who[o]]:
            space.taken[o] = True
            space.busy[space.who[o]] = True
            rest *= 1.0 - space.reach[o]
            paid += c
    if flowing:
        top = weight - left - owed
    return weight - rest - paid, top, split


@inlined
def buy(space: Workspace, count: int, o: int, end: int) -> int:
    """Mark an option as bought, and others of its labeler as refused; the end of the trail."""
    space.mark[o] = BOUGHT
    space.trail[end] = o
    end += 1
    for i in range(count):
        other = space.queue[i]
        if space.mark[other] == OPEN and space.who[other] == space.who[o]:
            space.mark[other] = REFUSED
            space.trail[end] = other
            end += 1
    return end


@inlined
def refuse(space: Workspace, count: int, o: int, end: int, single: bool) -> int:
    """Mark an option as refused, and all that it dominates; the end of the trail.

    It dominates options that are worth no more and cost no less: a set with one of them could have
    this option instead. That holds only if no labeler has two options (`single`).
    """
    space.mark[o] = REFUSED
    space.trail[end] = o
    end += 1
    for i in range(count):
        other = space.queue[i]
        if (
            single
            and space.mark[other] == OPEN
            and space.cost[other] >= space.cost[o]
            and space.evidence[other] <= space.evidence[o]
        ):
            space.mark[other] = REFUSED
            space.trail[end] = other
            end += 1
    return end


@inlined
def reopen(space: Workspace, end: int, start: int) -> None:
    for i in range(start, end):
        space.mark[space.trail[i]] = OPEN


@inlined
def most_of_open(
    space: Workspace, count: int, weight: float, depth: int, end: int, single: bool
) -> float:
    """A bound on all branches that have not been visited."""
    most = 0.0
    while depth > 0:
        depth -= 1
        o, start = space.split[depth], space.start[depth]
        bought = space.mark[o] == BOUGHT
        reopen(space, end, start)
        end = start
        if bought:
            after = refuse(space, count, o, end, single)
            most = max(most, weigh(space, count, weight)[1])
            reopen(space, after, end)
    return most


@inlined
def search(
    space: Workspace, n: int, count: int, weight: float, floor: float, enough: float, single: bool
) -> tuple[float, float]:
    """Branch and bound: the best set above `floor`, which is recorded, and a bound on all sets.

    It does not start if no set can be above `enough`. `single` says that no labeler has two
    options.
    """
    for i in range(n):
        space.mark[i] = OPEN
        space.taken[i] = False
    found, top, split = weigh(space, count, weight)
    best, slack, here = floor, space.close[0] * top, top
    if top <= enough:
        return best, top
    nodes, depth, end = 0, 0, 0
    while True:
        if found > best:
            best = found
            keep(space, n)
        nodes += 1
        if split >= 0 and here > best + slack:
            if nodes > space.nodes[0]:
                most = most_of_open(space, count, weight, depth, end, single)
                return best, min(top, max(here, most, best + slack))
            space.split[depth], space.start[depth] = split, end
            depth += 1
            end = buy(space, count, split, end)
        else:
            while depth > 0 and space.mark[space.split[depth - 1]] == REFUSED:
                depth -= 1
                reopen(space, end, space.start[depth])
                end = space.start[depth]
            if depth == 0:
                return best, min(top, best + slack)
            start = space.start[depth - 1]
            reopen(space, end, start)
            end = refuse(space, count, space.split[depth - 1], start, single)
        found, here, split = weigh(space, count, weight)


@kernel
def best_set(problem: Problem, price: Any, item: int, space: Workspace) -> tuple[float, float]:
    """What the item gains at these prices by the best set found, and a bound on any set.

    The set is in `space.best`.
    """
    weight, arrival = problem.weight[item], problem.arrival[item]
    best, bound, reach, top = 0.0, 0.0, 1.0, 0.0
    space.size[0] = 0
    phase, first, n = -1, 0, 0
    for slot in range(arrival, len(problem.phase)):
        if problem.phase[slot] != phase:
            phase = problem.phase[slot]
            first = n
            n = offer(problem, item, space, phase, n)
            for i in range(first, n):
                reach *= 1.0 - space.reach[i]
        delay = float(slot - arrival)
        if weight <= delay:
            break
        if phase == problem.phase[-1] and weight * (1.0 - reach) - delay <= bound:
            break
        top += look(price, space, slot, weight, first, n)
        if top - delay <= bound:
            continue
        count = sort_options(space, n, weight)
        found, top = search(space, n, count, weight, best + delay, bound + delay, first == 0)
        best = max(best, found - delay)
        bound = max(bound, top - delay)
    return best, max(bound, best)
