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
so decided at once, and what the weak ones are worth in part hardly differs from what they are
worth whole. After some nodes it gives up, and the highest bound of what is open stands.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.offline.instance import Problem
from venire.tools.compiling import inlined, kernel

__all__ = ["Bench", "best_set", "lay_bench"]

Floats = NDArray[np.float64]

#: A branch and bound that took so many nodes gives up.
NODES: Final = 300

#: It is content with a set that is at most this share below the best.
CLOSE: Final = 2e-4

FAR: Final = np.inf

# the marks of options in a branch
OPEN: Final = 0
BOUGHT: Final = 1
REFUSED: Final = 2


class Bench(NamedTuple):
    """Where one item is worked on; as many options as labelers times phases.

    `best` are the blocks of the best set so far (labeler, slot), `size[0]` how many they are.
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


def lay_bench(problem: Problem, nodes: int = NODES, close: float = CLOSE) -> Bench:
    """An empty bench for a problem."""
    phases, labelers = problem.evidence.shape
    n = phases * labelers + 1
    floats = [np.zeros(n) for _ in range(4)]
    return Bench(
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
def offer(problem: Problem, item: int, bench: Bench, phase: int, first: int) -> int:
    """Put the labelers of the item on the bench as they are in a phase; how many options now."""
    n = first
    g = problem.group[item]
    for k in range(problem.start[g], problem.start[g + 1]):
        m = problem.members[k]
        if problem.evidence[phase, m] > 0.0 and not is_barred(problem, item, m):
            bench.who[n] = m
            bench.evidence[n] = problem.evidence[phase, m]
            bench.reach[n] = problem.reach[phase, m]
            bench.cost[n] = FAR
            bench.rate[n] = FAR
            n += 1
    if bench.last[0] != g or bench.last[1] != n - first or first > 0:
        for i in range(n):
            bench.order[i] = i
    bench.last[0], bench.last[1] = g if first == 0 else -1, n - first
    return n


@inlined
def look(price: Any, bench: Bench, slot: int, weight: float, first: int, n: int) -> float:
    """Take the prices of a slot into account; how much cheaper the options of a phase became."""
    fall = 0.0
    for i in range(first, n):
        now = price[slot, bench.who[i]]
        if now < bench.cost[i]:
            most = weight * bench.reach[i]
            if now < most:
                fall += min(bench.cost[i], most) - now
            bench.cost[i] = now
            bench.rate[i] = now / bench.evidence[i]
            bench.slot[i] = slot
    return fall


@inlined
def sort_options(bench: Bench, n: int, weight: float) -> int:
    """Queue the options that could be in a best set by cost for evidence; how many they are.

    Insertion into the order of the last time, from which it rarely differs by much.
    """
    for i in range(1, n):
        o = bench.order[i]
        rate = bench.rate[o]
        k = i
        while k > 0:
            other = bench.order[k - 1]
            if bench.rate[other] <= rate:
                break
            bench.order[k] = other
            k -= 1
        bench.order[k] = o
    count = 0
    for i in range(n):
        o = bench.order[i]
        if bench.cost[o] < weight * bench.reach[o]:
            bench.queue[count] = o
            count += 1
    return count


@inlined
def keep(bench: Bench, n: int) -> None:
    """The taken options are the best set so far."""
    size = 0
    for i in range(n):
        if bench.taken[i]:
            bench.best[size, 0] = bench.who[i]
            bench.best[size, 1] = bench.slot[i]
            size += 1
    bench.size[0] = size


@inlined
def take_bought(bench: Bench, count: int, weight: float) -> tuple[float, float]:
    """Take what is bought for certain and nothing else: the residual, and what was paid."""
    rest, paid = weight, 0.0
    for i in range(count):
        o = bench.queue[i]
        bench.taken[o] = bench.mark[o] == BOUGHT
        bench.busy[bench.who[o]] = False
    for i in range(count):
        o = bench.queue[i]
        if bench.taken[o]:
            bench.busy[bench.who[o]] = True
            rest *= 1.0 - bench.reach[o]
            paid += bench.cost[o]
    return rest, paid


@kernel
def weigh(bench: Bench, count: int, weight: float) -> tuple[float, float, int]:
    """A branch: what a set in it gains, which is taken; a bound on all of them; where to split.

    The bound lets open options be bought in part, in order of the queue. The set has those that
    are bought whole, and others while they pay. The bound can be above the set only by an option
    that is bought in part, or by two options of a labeler: there the branch is split (-1 if there
    is neither).
    """
    first, paid = take_bought(bench, count, weight)
    left, owed, rest = first, paid, first
    top, split, flowing = 0.0, -1, True
    for i in range(count):
        o = bench.queue[i]
        e, c = bench.evidence[o], bench.cost[o]
        if bench.mark[o] != OPEN or first * bench.reach[o] <= c:
            continue
        if flowing and left * e <= c:
            flowing, top = False, weight - left - owed
        if flowing:
            after = left * (1.0 - bench.reach[o])
            if after * e < c:
                rate = bench.rate[o]
                flowing, top = False, weight - rate - owed - rate * math.log(left / rate)
                split = o
            else:
                left, owed = after, owed + c
                if split < 0 and bench.busy[bench.who[o]]:
                    split = o
        if rest * bench.reach[o] > c and not bench.busy[bench.who[o]]:
            bench.taken[o] = True
            bench.busy[bench.who[o]] = True
            rest *= 1.0 - bench.reach[o]
            paid += c
    if flowing:
        top = weight - left - owed
    return weight - rest - paid, top, split


@inlined
def buy(bench: Bench, count: int, o: int, end: int) -> int:
    """Buy an option for certain, and no other of its labeler; the end of the trail."""
    bench.mark[o] = BOUGHT
    bench.trail[end] = o
    end += 1
    for i in range(count):
        other = bench.queue[i]
        if bench.mark[other] == OPEN and bench.who[other] == bench.who[o]:
            bench.mark[other] = REFUSED
            bench.trail[end] = other
            end += 1
    return end


@inlined
def refuse(bench: Bench, count: int, o: int, end: int, single: bool) -> int:
    """Refuse an option, and what is worth no more and costs no less; the end of the trail.

    Some best set of those without the option has none of these either: it could have had the
    option in the place of one. Not so where the option's labeler may be in by another (`single`).
    """
    bench.mark[o] = REFUSED
    bench.trail[end] = o
    end += 1
    for i in range(count):
        other = bench.queue[i]
        if (
            single
            and bench.mark[other] == OPEN
            and bench.cost[other] >= bench.cost[o]
            and bench.evidence[other] <= bench.evidence[o]
        ):
            bench.mark[other] = REFUSED
            bench.trail[end] = other
            end += 1
    return end


@inlined
def reopen(bench: Bench, end: int, start: int) -> None:
    """Take back the decisions of the trail from `start` on."""
    for i in range(start, end):
        bench.mark[bench.trail[i]] = OPEN


@inlined
def most_of_open(
    bench: Bench, count: int, weight: float, depth: int, end: int, single: bool
) -> float:
    """A bound on all branches that have not been looked at."""
    most = 0.0
    while depth > 0:
        depth -= 1
        o, start = bench.split[depth], bench.start[depth]
        bought = bench.mark[o] == BOUGHT
        reopen(bench, end, start)
        end = start
        if bought:
            after = refuse(bench, count, o, end, single)
            most = max(most, weigh(bench, count, weight)[1])
            reopen(bench, after, end)
    return most


@inlined
def search(
    bench: Bench, n: int, count: int, weight: float, floor: float, enough: float, single: bool
) -> tuple[float, float]:
    """Branch and bound: the best set above `floor`, which is kept, and a bound on all sets.

    It is not begun where no set can be above `enough`. `single` says that no labeler has two
    options.
    """
    for i in range(n):
        bench.mark[i] = OPEN
        bench.taken[i] = False
    found, top, split = weigh(bench, count, weight)
    best, slack, here = floor, bench.close[0] * top, top
    if top <= enough:
        return best, top
    nodes, depth, end = 0, 0, 0
    while True:
        if found > best:
            best = found
            keep(bench, n)
        nodes += 1
        if split >= 0 and here > best + slack:
            if nodes > bench.nodes[0]:
                most = most_of_open(bench, count, weight, depth, end, single)
                return best, min(top, max(here, most, best + slack))
            bench.split[depth], bench.start[depth] = split, end
            depth += 1
            end = buy(bench, count, split, end)
        else:
            while depth > 0 and bench.mark[bench.split[depth - 1]] == REFUSED:
                depth -= 1
                reopen(bench, end, bench.start[depth])
                end = bench.start[depth]
            if depth == 0:
                return best, min(top, best + slack)
            start = bench.start[depth - 1]
            reopen(bench, end, start)
            end = refuse(bench, count, bench.split[depth - 1], start, single)
        found, here, split = weigh(bench, count, weight)


@kernel
def best_set(problem: Problem, price: Any, item: int, bench: Bench) -> tuple[float, float]:
    """What the item gains at these prices by the best set found, and a bound on any set.

    The set is on the bench.
    """
    weight, arrival = problem.weight[item], problem.arrival[item]
    best, bound, reach, top = 0.0, 0.0, 1.0, 0.0
    bench.size[0] = 0
    phase, first, n = -1, 0, 0
    for slot in range(arrival, len(problem.phase)):
        if problem.phase[slot] != phase:
            phase = problem.phase[slot]
            first = n
            n = offer(problem, item, bench, phase, n)
            for i in range(first, n):
                reach *= 1.0 - bench.reach[i]
        delay = float(slot - arrival)
        if weight <= delay:
            break
        if phase == problem.phase[-1] and weight * (1.0 - reach) - delay <= bound:
            break
        top += look(price, bench, slot, weight, first, n)
        if top - delay <= bound:
            continue
        count = sort_options(bench, n, weight)
        found, top = search(bench, n, count, weight, best + delay, bound + delay, first == 0)
        best = max(best, found - delay)
        bound = max(bound, top - delay)
    return best, max(bound, best)
