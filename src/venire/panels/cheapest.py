"""The cheapest panel that is still good enough, and the best one at a price.

Two greedy searches, and the cheaper of the two results. *Backward*: labelers leave one by one,
the one with the least accuracy lost for the money saved first, while what is left is good enough.
*Forward*: labelers come one by one, the one with the most accuracy for its cost first, until the
panel is good enough; then whoever is no longer needed leaves again.

Both look up only the labeler that is next (the lazy greedy of Minoux, 1978): a labeler is missed
more, and adds more, in a smaller panel than in a larger one, so a loss that was measured earlier is
at most what it is now, and a gain at least. The first three who come are an exception: fewer cannot
be told apart. The best panel can be cheaper: there are 2^M of them, and small ones are searched in
tests/unit/panels.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from venire.errors import InputError

Accuracy = Callable[[frozenset[int]], float]

#: Accuracies that differ by less are equal.
ROUNDING = 1e-12

#: A search for the best panel at a price ends after this number of labelers who gained nothing.
IDLE_ROUNDS = 2

#: In smaller panels a labeler may add more once others have come.
FEW_MEMBERS = 3


@dataclass(frozen=True, slots=True)
class Chosen:
    """Labelers by number, what they cost and how accurate they are.

    `reached` says whether that is as accurate as was asked for.
    """

    members: frozenset[int]
    cost: float
    accuracy: float
    reached: bool


def cheapest_panel(
    accuracy: Accuracy,
    costs: Sequence[float],
    want: float,
    start: frozenset[int] | None = None,
) -> Chosen:
    """The cheapest panel found whose accuracy is at least `want`; all of them if none reaches it.

    `accuracy` is asked with sets of numbers of labelers. A labeler who costs nothing stays, unless
    it is not among those to `start` from: give these where some of them may be better than all.

    >>> right = {0: 0.3, 1: 0.2, 2: 0.2, 3: 0.05}
    >>> found = cheapest_panel(lambda some: sum(right[m] for m in some), [5, 1, 1, 3], 0.35)
    >>> sorted(found.members), found.cost, found.reached
    ([1, 2], 2.0, True)
    """
    everyone = frozenset(range(len(costs)))
    most = everyone if start is None else start
    enough = accuracy(most) >= want - ROUNDING
    found = [_backward(accuracy, costs, want, most)] if enough else []
    forward = _forward(accuracy, costs, want) if enough or start is not None else None
    if forward is not None:
        found.append(_backward(accuracy, costs, want, forward))
    if not found:
        return Chosen(everyone, math.fsum(costs), accuracy(everyone), False)
    members = min(found, key=lambda some: (_cost(costs, some), -accuracy(some)))
    return Chosen(members, _cost(costs, members), accuracy(members), True)


def best_panel(accuracy: Accuracy, costs: Sequence[float], most: float) -> Chosen:
    """The most accurate panel found that costs at most `most`; of equal ones the cheapest.

    Labelers come one by one while they can be paid, whoever adds most for its cost first, or
    whoever adds most; the better of the two, or the best labeler alone if that is better still
    (Khuller, Moss and Naor, 1999).

    >>> right = {0: 0.3, 1: 0.2, 2: 0.2, 3: 0.05}
    >>> found = best_panel(lambda some: sum(right[m] for m in some), [5, 1, 1, 3], 5)
    >>> sorted(found.members), found.cost
    ([1, 2, 3], 5.0)
    """
    if min(costs, default=math.inf) > most:
        raise InputError(
            f"got {most!r} as the most that a panel may cost, expected at least the cost of one "
            f"labeler, {min(costs, default=math.inf):,.6g}"
        )
    tried = [frozenset({m}) for m, cost in enumerate(costs) if cost <= most]
    tried += [_paid(accuracy, costs, most, power) for power in (0.0, 1.0)]
    best = min(tried, key=lambda some: (-round(accuracy(some), 12), _cost(costs, some)))
    return Chosen(best, _cost(costs, best), accuracy(best), True)


def _paid(accuracy: Accuracy, costs: Sequence[float], most: float, power: float) -> frozenset[int]:
    """The best panel on the way, by gain for the cost to this power.

    It ends after two in a row who gained nothing: a second labeler may only bring ties.
    """
    members, best, high, idle = frozenset[int](), frozenset[int](), 0.0, 0
    while idle < IDLE_ROUNDS:
        left = most - _cost(costs, members) + ROUNDING
        able = [m for m, cost in enumerate(costs) if m not in members and cost <= left]
        if not able:
            break
        now = accuracy(members) if members else 0.0
        gains = {m: accuracy(members | {m}) - now for m in able}
        m = max(able, key=lambda m: (gains[m] / max(costs[m], ROUNDING) ** power, -costs[m]))
        members |= {m}
        idle += 1
        if now + gains[m] > high + ROUNDING:
            best, high, idle = members, now + gains[m], 0
    return best


def _cost(costs: Sequence[float], members: frozenset[int]) -> float:
    return math.fsum(costs[m] for m in members)


def _backward(
    accuracy: Accuracy, costs: Sequence[float], want: float, members: frozenset[int]
) -> frozenset[int]:
    """Who stays, if those leave who are missed least for their cost."""
    now = accuracy(members)
    queue = [(-math.inf, -costs[m], m) for m in members if costs[m] > 0]
    heapq.heapify(queue)
    while queue:
        _, _, m = heapq.heappop(queue)
        rest = members - {m}
        left = accuracy(rest) if rest else 0.0
        if left < want - ROUNDING:
            continue  # it would be missed even more later
        key = ((now - left) / costs[m], -costs[m], m)
        if queue and key > queue[0]:
            heapq.heappush(queue, key)
            continue
        members, now = rest, left
    return members


def _forward(accuracy: Accuracy, costs: Sequence[float], want: float) -> frozenset[int] | None:
    """A panel that is good enough, by those who add most for their cost; None if stuck."""
    members = frozenset(m for m, cost in enumerate(costs) if cost <= 0)
    now = accuracy(members) if members else 0.0
    queue = [(-math.inf, m) for m, cost in enumerate(costs) if cost > 0]
    while now < want - ROUNDING and queue:
        if len(members) < FEW_MEMBERS:
            queue = [(-math.inf, m) for _, m in queue]
        m, with_it = _next(accuracy, costs, queue, members, now)
        if with_it <= now:
            return None
        members, now = members | {m}, with_it
    return members if now >= want - ROUNDING else None


def _next(
    accuracy: Accuracy,
    costs: Sequence[float],
    queue: list[tuple[float, int]],
    members: frozenset[int],
    now: float,
) -> tuple[int, float]:
    """Who adds most for its cost, taken off the queue, and the accuracy with it."""
    heapq.heapify(queue)
    while True:
        _, m = heapq.heappop(queue)
        with_it = accuracy(members | {m})
        key = ((now - with_it) / costs[m], m)
        if not queue or key <= queue[0]:
            return m, with_it
        heapq.heappush(queue, key)
