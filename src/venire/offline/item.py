r"""What one item buys when every (labeler, slot) block has a price.

At prices lambda >= 0 an item of weight w that arrives in slot a solves

    max over departures d and sets R of labelers of
        w (1 - exp(-E(R))) - (d - a) - sum over m in R of min over a <= t <= d of lambda[t, m]

or buys nothing. For a fixed d every labeler is an *option*: a cost c (its cheapest block so
far), an evidence e, and a reach x = 1 - exp(-e). (Where competences change there is an option
for each labeler and phase, at most one of a labeler.) Three facts are used:

- an option with c >= w x is in no best set, since what it adds to any set is at most w x;
- let options be bought in part: then they are filled in order of c / e until the marginal
  value w exp(-E) falls to c / e. That is an upper bound on all sets, `ceiling`;
- from one departure to the next, the best set improves by no more than what the prices of
  options fell, each counted from w x at most. So most departures need not be looked at.

`search` is a branch and bound over sets in that order. Its first dive buys what the ceiling
buys whole, and more if it pays; then it proves how good the best is, or gives up after some
nodes and leaves the ceiling.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.compiling import inlined, kernel
from venire.offline.instance import Problem

__all__ = ["Bench", "best_set", "lay_bench"]

Floats = NDArray[np.float64]

#: A branch and bound that took so many nodes gives up.
NODES: Final = 300

#: It is content with a set that is at most this share below the best.
CLOSE: Final = 2e-4

FAR: Final = np.inf


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
    rest: Floats
    paid: Floats
    best: NDArray[np.int64]
    size: NDArray[np.int64]
    nodes: NDArray[np.int64]
    close: Floats
    last: NDArray[np.int64]


def lay_bench(problem: Problem, nodes: int = NODES, close: float = CLOSE) -> Bench:
    """An empty bench for a problem."""
    phases, labelers = problem.evidence.shape
    n = phases * labelers + 1
    floats = [np.zeros(n) for _ in range(6)]
    return Bench(
        floats[0],
        floats[5],
        np.zeros(n, np.int64),
        np.zeros(n, np.int32),
        floats[1],
        floats[2],
        np.arange(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(labelers, np.bool_),
        floats[3],
        floats[4],
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
def ceiling(bench: Bench, k: int, count: int, rest: float) -> tuple[float, int]:
    """The most that options k, k+1, ... of the queue could add, were they bought in part.

    And how far they are bought whole.
    """
    left, paid = rest, 0.0
    for i in range(k, count):
        o = bench.queue[i]
        e, c = bench.evidence[o], bench.cost[o]
        if left * e <= c:
            return rest - left - paid, i
        after = left * (1.0 - bench.reach[o])
        if after * e < c:
            rate = bench.rate[o]
            return rest - rate - paid - rate * math.log(left / rate), i
        left = after
        paid += c
    return rest - left - paid, count


@inlined
def dominated(bench: Bench, gap: int, k: int) -> bool:
    """Whether an option before place k of the queue is not taken, no dearer and worth as much.

    Some best set has no such option: it could have the other in its place. Everything before
    place `gap` is taken.
    """
    o = bench.queue[k]
    for i in range(gap, k):
        j = bench.queue[i]
        if (
            not bench.taken[j]
            and bench.cost[j] <= bench.cost[o]
            and bench.evidence[j] >= bench.evidence[o]
        ):
            return True
    return False


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
def search(
    bench: Bench, n: int, count: int, weight: float, floor: float, single: bool
) -> tuple[float, float]:
    """Branch and bound: the best set above `floor`, which is kept, and a bound on all sets.

    `single` says that no labeler has two options.
    """
    for i in range(n):
        bench.taken[i] = False
        bench.busy[bench.who[i]] = False
    top, sure = ceiling(bench, 0, count, weight)
    best, slack = floor, bench.close[0] * top
    rest, paid, k, gap, nodes = weight, 0.0, 0, 0, 0
    while True:
        if k >= min(sure, count) and weight - rest - paid > best:
            best = weight - rest - paid
            keep(bench, n)
        if k < count:
            o = bench.queue[k]
            if k >= sure:
                more, sure = ceiling(bench, k, count, rest)
                nodes += 1
                if weight - rest - paid + more <= best + slack:
                    k = count
                    continue
            if bench.busy[bench.who[o]]:
                k, sure = k + 1, 0
            elif rest * bench.reach[o] > bench.cost[o] and not (
                single and dominated(bench, gap, k)
            ):
                bench.rest[k], bench.paid[k] = rest, paid
                gap += gap == k
                bench.taken[o] = True
                bench.busy[bench.who[o]] = True
                rest *= 1.0 - bench.reach[o]
                paid += bench.cost[o]
                k += 1
            else:
                k += 1
            continue
        k = count - 1
        while k >= 0 and not bench.taken[bench.queue[k]]:
            k -= 1
        if k < 0:
            return best, min(top, best + slack)
        if nodes > bench.nodes[0]:
            return best, top
        o = bench.queue[k]
        bench.taken[o] = False
        bench.busy[bench.who[o]] = False
        rest, paid, gap = bench.rest[k], bench.paid[k], min(gap, k)
        k, sure = k + 1, 0


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
        top, _ = ceiling(bench, 0, count, weight)
        if top - delay <= bound:
            continue
        found, top = search(bench, n, count, weight, best + delay, first == 0)
        best = max(best, found - delay)
        bound = max(bound, top - delay)
    return best, max(bound, best)
