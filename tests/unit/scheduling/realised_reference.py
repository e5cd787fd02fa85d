"""`Realised` and `RealisedProxy` as their modules say them: plain lists, any number of classes.

Shared with the package are the formulas that define a value to the last bit: the residual, the
reach, the reserve, the loss after more evidence, and the bin of a price.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.reference import PlainWorld
from venire.paper.accuracy import on_grid
from venire.paper.utility import reach, residual
from venire.scheduling.base import Belief
from venire.scheduling.kernel.desk import N_BINS
from venire.scheduling.policies import item_value, queue_price
from venire.scheduling.policies import realised as policy


def plain(function: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = function.py_func
    return found


reserve_price = plain(item_value.reserve_price)
loss_after = plain(item_value.loss_after)
bin_of, edge = plain(item_value.bin_of), plain(queue_price.edge)

Bins = list[list[float]]
Pair = tuple[int, int]


@dataclass
class Case:
    """An outstanding item, valued."""

    loss: float
    left: float
    cap: float
    least: float
    fresh: bool
    pair: Pair
    weight: float
    told: bool = False
    rate: float = 0.0
    limit: float = math.inf

    def __post_init__(self) -> None:
        self.log = math.log(self.left)
        self.stay, self.now = self._reserve(1.0), self._reserve(0.0)

    def charge(self, offers: list[tuple[float, float]]) -> Case:
        """Where labels cost money; offers are (evidence, price), the best first."""
        known = self.weight, self.loss, self.left, self.told
        plans = []  # (gain, evidence, money) with the first, the first two, ...
        for k in range(1, len(offers) + 1):
            x, money = sum(e for e, _ in offers[:k]), sum(p for _, p in offers[:k])
            plans.append((self.loss - loss_after(*known, x, x / k, 1.0) - money, x, money))
        self.stay = max(0.0, *((gain - 1.0) / x for gain, x, _ in plans), 0.0)
        self.now = max(0.0, *(gain / x for gain, x, _ in plans), 0.0)
        self.limit = max(0.0, *((gain + money) / x for gain, x, money in plans), 0.0)
        gain, x, money = max(plans, key=lambda plan: plan[0], default=(0.0, 0.0, 0.0))
        if gain > 0.0:
            self.cap, self.rate, self.least = x, money / x, min(x, self.least)
        return self

    def after(self, evidence: float) -> float:
        """What is lost with more evidence."""
        known = self.weight, self.loss, self.left, self.told
        return float(loss_after(*known, evidence, self.least))

    def _reserve(self, cost: float) -> float:
        if self.cap <= 0:
            return 0.0
        everything = (self.loss - cost - self.after(self.cap)) / self.cap
        some = float(reserve_price(self.loss, self.left, self.least, self.cap, cost))
        return max(some, everything)


@dataclass
class Market:
    """One run by a belief; `ask(item, labeler, slot)` is what anybody says."""

    world: PlainWorld
    by_labels: bool
    ask: Callable[[int, int, int], int]
    belief: Belief
    classes: int
    costs: list[list[float]] | None = None  # what errors cost, by truth and verdict
    said: dict[tuple[int, int], int] = field(default_factory=dict)
    counts: list[int] = field(default_factory=list)
    mean_log: float = 0.0
    mean_square: float = 0.0
    mean: float = 0.0
    busy: int = 0

    def __post_init__(self) -> None:
        self.own = [float(e) for e in self.belief.evidence(self.classes)]
        self.told = self.belief.pairs(self.classes).tolist()
        self.votes = self.belief.votes(self.classes).tolist()
        self.order = [int(m) for m in self.belief.order(self.classes)]
        self.prices = self.world.prices
        self.priced = any(self.prices)
        if self.priced:
            self.order.sort(key=lambda m: self.prices[m] / self.own[m] if self.own[m] else math.inf)
        self.lean = [0.0] * self.classes
        if self.belief.prior is not None:
            self.lean = [float(x) for x in on_grid(np.log(self.belief.prior))]
        self.held = self._mean(self._in_a_slot)
        self.least = self._mean(self._one_label)
        self.cap = sum(self.evidence(m, (0, 1)) for m in self.order)  # of what is to arrive

    # the panel

    def evidence(self, m: int, pair: Pair) -> float:
        """How much a label of m tells about a pair of classes."""
        return float(self.told[m][pair[0]][pair[1]]) if self.by_labels else self.own[m]

    def _by_capacity(self, pair: Pair) -> list[tuple[int, float]]:
        return [(c, self.evidence(m, pair)) for m, c in enumerate(self.world.capacities)]

    def _in_a_slot(self, pair: Pair) -> float:
        return sum(c * e for c, e in self._by_capacity(pair))

    def _one_label(self, pair: Pair) -> float:
        held = self._in_a_slot(pair)
        return sum(c * e * e for c, e in self._by_capacity(pair)) / held if held > 0 else 0.0

    def _mean(self, of: Callable[[Pair], float]) -> float:
        pairs = list(itertools.permutations(range(self.classes), 2))
        return sum(of(pair) for pair in pairs) / len(pairs)

    # what an item is worth

    def case(self, i: int) -> Case:
        case = self._free_case(i)
        return self._charged(case, self.world.items[i].unused()) if self.priced else case

    def _charged(self, case: Case, may: Iterable[int]) -> Case:
        told = [(self.evidence(m, case.pair), self.prices[m]) for m in self.order if m in may]
        return case.charge([offer for offer in told if offer[0] > 0.0])

    def _free_case(self, i: int) -> Case:
        """An item's value if labels cost nothing."""
        item = self.world.items[i]
        used = [m for _, m in item.labels]
        known = [m for m in used if (i, m) in self.said]
        pair, wrong, scale = self._read(i, known) if self.by_labels else ((0, 1), 0.0, 1.0)
        weight = item.weight * scale
        cap = sum(self.evidence(m, pair) for m in item.unused())
        least = self._one_label(pair)
        least = min(least, cap) if least > 0 else cap
        if not self.by_labels:
            left = residual(weight, sum(self.own[m] for m in used))
            return Case(left, left, cap, least, False, pair, weight)
        coming = sum(self.evidence(m, pair) for m in used if m not in known)
        left = residual(item_value.SHARE * weight * math.sqrt(wrong * (1.0 - wrong)), coming)
        loss = weight * wrong if known else weight
        if coming > 0:
            return Case(min(loss, left), left, cap, least, False, pair, weight, True)
        return Case(loss, left, cap, least, not known, pair, weight, bool(known))

    def _read(self, i: int, known: list[int]) -> tuple[Pair, float, float]:
        """The two classes that matter, the chance to be wrong, and what to multiply weights by.

        Those are the most probable ones. Of equal ones the later class is taken for the more
        probable.
        """
        score = [
            self.lean[j] + sum(self.votes[m][self.said[i, m]][j] for m in known)
            for j in range(self.classes)
        ]
        ranked = sorted(range(self.classes), key=lambda j: (-score[j], -j))
        others = sorted(ranked[1:], reverse=True)
        odds = sum(math.exp(score[j] - score[ranked[0]]) for j in others)
        if self.costs is not None:
            return self._by_cost(score, 1.0 - odds / (1.0 + odds))
        first, second = sorted(ranked[:2])
        return (first, second), odds / (1.0 + odds), 1.0

    def _by_cost(self, score: list[float], top: float) -> tuple[Pair, float, float]:
        """The same where errors differ in cost; `top` is how probable the first class is.

        They are the verdict that costs least and the class that costs most under it, the later
        one of equals.
        """
        assert self.costs is not None
        costs, later = self.costs, range(self.classes - 1, -1, -1)
        odds = [math.exp(x - max(score)) for x in score]
        lost = [sum(odds[j] * costs[j][v] for j in reversed(later)) for v in reversed(later)]
        verdict = min(later, key=lambda v: lost[v])
        second = max((j for j in later if j != verdict), key=lambda j: odds[j] * costs[j][verdict])
        here = lost[verdict] * top
        there = odds[verdict] * costs[verdict][second] * top
        first, last = sorted((verdict, second))
        return (first, last), here / (here + there), here + there

    def gain(self, i: int, m: int) -> float:
        """What a label gains, without its price."""
        case = self._free_case(i)
        e = self.evidence(m, case.pair)
        if e <= 0:
            return 0.0
        return case.loss - case.left * math.exp(-e) if case.fresh else case.left * reach(e)

    # the price

    def price(self, rows: list[Case], now: str, next_slot: bool) -> tuple[float, int, float]:
        bins: Bins = [[0.0] * 9 for _ in range(N_BINS)]
        for case in rows:
            _add(bins, bin_of(case.stay), 0, 1.0, case)
            _add(bins, bin_of(getattr(case, now)), 3, 1.0, case)
        bursts = self._expect(bins, next_slot)
        for b in range(N_BINS - 2, 0, -1):
            bins[b] = [own + above for own, above in zip(bins[b], bins[b + 1], strict=True)]
        b = 1
        while b < N_BINS - 1 and self._asked(bins, b, 1.0, edge(b), bursts) > edge(b):
            b += 1
        if b == 1:
            return item_value.LOWEST, 0, 0.0
        b -= 1
        count = bins[b][0] - bins[b + 1][0]
        if count > 0:
            few = _last(lambda h: self._asked(bins, b, h, edge(b), bursts) <= edge(b), 0.0, 1.0, 24)
            if few * count >= 0.5:
                return edge(b), b, few * count
        low, high = edge(b), edge(b + 1)
        for _ in range(20):
            middle = 0.5 * (low + high)
            if self._asked(bins, b, 0.0, middle, bursts) > middle:
                low = middle
            else:
                high = middle
        return high, b, 0.0

    def _asked(self, bins: Bins, b: int, share: float, price: float, bursts: float) -> float:
        mixed = [
            above + share * (own - above) for own, above in zip(bins[b], bins[b + 1], strict=True)
        ]
        n, stay, total, load = (
            mixed[0],
            *(
                max(
                    min(mixed[k + 1] - mixed[k] * math.log(price), mixed[k + 2]),
                    mixed[k] * self.least,
                )
                for k in (0, 3, 6)
            ),
        )
        if total <= self.held * (1.0 + queue_price.ROUND):
            return 0.0
        slots = total / self.held - 1.0
        load *= (1.0 + bursts * min(1.0, slots / queue_price.LONG)) / self.held
        if stay < (total - self.held) * (1.0 - queue_price.ROUND):
            return math.inf
        longest = slots + load * queue_price.LASTS * max(1, len(self.counts))
        if load < 1:
            longest = min(longest, slots / (1.0 - load))
        return math.ceil(longest * (1.0 - queue_price.ROUND)) * n / stay

    def _expect(self, bins: Bins, next_slot: bool) -> float:
        ranked = sorted([*self.counts[-16:], 0], reverse=True)
        top, bottom = -(-len(ranked) // 5), len(ranked) // 5
        middle = ranked[top : len(ranked) - bottom]
        usual = max(sum(middle) / max(1, len(middle)), 0.01 * self.mean)
        if usual <= 0:
            return 0.0
        share, scale = (0.5 * item_value.SHARE, 1.0) if self.by_labels else (1.0, 1.0)
        if self.by_labels and self.costs is not None:
            likely = 1.0 / sum(math.exp(x - max(self.lean)) for x in self.lean)
            _, wrong, scale = self._by_cost(self.lean, 1.0 - (1.0 - likely))
            share = item_value.SHARE * math.sqrt(wrong * (1.0 - wrong))
        step = math.sqrt(max(0.0, self.mean_square - self.mean_log * self.mean_log)) / 2.0
        for i in range(-3, 4):
            weight = scale * math.exp(self.mean_log + i * step)
            case = Case(weight, share * weight, self.cap, self.least, True, (0, 1), weight)
            if self.priced:
                case.cap = 0.0
                self._charged(case, self.order)
            _add(bins, bin_of(case.now), 6, usual / 7, case)
            if next_slot:
                _add(bins, bin_of(case.now), 3, usual / 7, case)
                _add(bins, bin_of(case.stay), 0, usual / 7, case)
        return max(0.0, self.mean / usual - 1.0)

    # a slot

    def serve(self, slot: int) -> None:
        rows = self.world.outstanding(slot)
        if not rows or self.held <= 0:
            return
        valued = {i: self.case(i) for i in rows}
        price, _, _ = self.price(list(valued.values()), "now", next_slot=False)
        chosen, others = self._choose(valued, price)
        room = list(self.world.capacities)
        self._hand_out(slot, chosen, room, price)
        if any(room[m] > 0 and self.own[m] > 0 for m in self.order):
            self._hand_out(slot, sorted(chosen + others), room, 0.0)

    def _choose(self, valued: dict[int, Case], price: float) -> tuple[list[int], list[int]]:
        want: dict[int, float] = {}
        place: dict[int, int] = {}
        for i, case in valued.items():
            if case.cap <= 0:
                continue
            paid = price + case.rate
            x = case.log - math.log(paid)
            inside = case.least <= x <= case.cap
            surplus = case.loss - paid - paid * x
            if not inside:
                x = case.least if x < case.least else case.cap
                surplus = case.loss - case.left * math.exp(-x) - paid * x
            if surplus <= 0:
                x, surplus = case.cap, case.loss - case.after(case.cap) - paid * case.cap
            place[i], want[i] = 0, x
            if case.now > price and surplus > 0:
                waits = case.stay >= price
                place[i] = max(1, N_BINS - 2 - int(x * 32)) if waits else N_BINS - 1
        wanting = [i for i in place if place[i] > 0]
        if sum(want[i] for i in wanting) <= self.held:
            return wanting, [i for i in place if place[i] == 0]
        chosen, left = [], self.held
        for b in range(N_BINS - 1, 0, -1):
            here = [i for i in wanting if place[i] == b]
            asked = sum(want[i] for i in here)
            if asked > left or b == 1:
                for i in here:
                    if left > 0:
                        chosen.append(i)
                    left -= want[i]
                break
            left -= asked
            chosen += here
        return chosen, [i for i in place if i not in chosen]

    def _hand_out(self, slot: int, rows: list[int], room: list[int], floor: float) -> None:
        """A label must be worth more than its price and `floor` for each unit of its evidence."""

        def worth(i: int, m: int) -> float:
            gain = self.gain(i, m)
            least = floor * self.evidence(m, self.case(i).pair) + self.prices[m]
            return gain if gain > least and not self._refused(i, m) else 0.0

        for m in self.order:
            while room[m] > 0 and self.own[m] > 0:
                may = [i for i in rows if m in self.world.items[i].unused()]
                best = max(may, key=lambda i: (worth(i, m), -i), default=-1)
                if best < 0 or worth(best, m) <= 0:
                    break
                gain = self.gain(best, m) - self.prices[m]
                self.world.assignments.append((slot, best, m, gain))
                self.world.items[best].labels.append((slot, m))
                room[m] -= 1

    def _refused(self, i: int, m: int) -> bool:
        """Whether a label is too dear for the item, or others should be heard first."""
        if self.prices[m] <= 0.0:
            return False
        waits = any((i, k) not in self.said for _, k in self.world.items[i].labels)
        case = self.case(i)
        most = case.limit * self.evidence(m, case.pair) * (1.0 + policy.ROUND)
        return (self.prices[m] > 1.0 and waits) or self.prices[m] > most

    def settle(self, slot: int) -> None:
        for _, i, m, _ in self.world.assignments:
            self.said.setdefault((i, m), self.ask(i, m, slot))
        rows = self.world.outstanding(slot)
        valued = {i: self.case(i) for i in rows}
        self._remember(
            [self.world.items[i].weight for i in rows if self.world.items[i].arrival == slot]
        )
        low, spare = 0, 0.0
        if self.held > 0:
            _, low, spare = self.price(list(valued.values()), "stay", next_slot=True)
        few = {
            i for i in rows if item_value.FEW * len(self.world.items[i].eligible) <= len(self.order)
        }
        served = self._rehearse({i: valued[i] for i in few if bin_of(valued[i].stay) > low})
        for i, case in valued.items():
            b = bin_of(case.stay)
            if i in few:
                stays = i in served
            else:
                stays = b > low
                if b == low and spare >= 0.5:
                    spare -= 1.0
                    stays = True
            if not stays:
                self.world.leave(slot, i, "no_gain" if case.cap > 0 else "exhausted")

    def _rehearse(self, waiting: dict[int, Case]) -> set[int]:
        """Who is worth the labelers that it would get, in some slot to come."""
        full = self.world.capacities
        booked = [0] * len(full)

        def free(i: int, ahead: int) -> list[int]:
            """Who may label the item, tells anything, and is free by then."""
            may = reversed(self.world.items[i].unused())
            useful = [m for m in may if self.evidence(m, waiting[i].pair) > 0]
            return [m for m in useful if 1 + booked[m] // full[m] <= ahead]

        def gain(i: int, ahead: int) -> float:
            told = sum(self.evidence(m, waiting[i].pair) for m in free(i, ahead))
            return waiting[i].loss - waiting[i].after(told) - waiting[i].rate * told

        most = {i: gain(i, 1) for i in waiting}
        served: set[int] = set()
        for i in sorted(waiting, key=lambda i: (-most[i], i)):
            slots = range(1, 2 + max(booked))
            ahead = next((t for t in slots if most[i] > t and gain(i, t) > t and free(i, t)), 0)
            if ahead:
                served.add(i)
                for m in free(i, ahead):
                    booked[m] += 1
        return served

    def _remember(self, weights: list[float]) -> None:
        if not weights and not self.busy:
            return
        if self.busy:
            rate = max(1 / queue_price.SLOWLY, 1 / len(self.counts))
            self.mean += rate * (len(weights) - self.mean)
        self.counts.append(len(weights))
        if weights:
            self.busy += 1
            rate = max(1 / 16, 1 / self.busy)
            logs = [math.log(w) for w in weights]
            self.mean_log += rate * (sum(logs) / len(logs) - self.mean_log)
            squares = sum(log * log for log in logs)
            self.mean_square += rate * (squares / len(logs) - self.mean_square)


def _add(bins: Bins, b: int, column: int, rows: float, case: Case) -> None:
    bins[b][column] += rows
    bins[b][column + 1] += rows * case.log
    bins[b][column + 2] += rows * case.cap


def _last(holds: Callable[[float], bool], low: float, high: float, times: int) -> float:
    """The largest number found by halving for which it holds."""
    for _ in range(times):
        half = 0.5 * (low + high)
        low, high = (half, high) if holds(half) else (low, half)
    return low


def realised(
    world: PlainWorld,
    by_labels: bool,
    ask: Callable[[int, int, int], int],
    belief: Belief | None = None,
    classes: int = 2,
    costs: list[list[float]] | None = None,
) -> PlainWorld:
    """A run with this belief; by default of the competences of the world."""
    belief = belief or Belief(np.asarray(world.competences, dtype=np.float64))
    market = Market(world, by_labels, ask, belief, classes, costs)
    for slot in range(world.slots):
        market.serve(slot)
        market.settle(slot)
    return world.end()
