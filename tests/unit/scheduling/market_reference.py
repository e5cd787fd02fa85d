"""Water-filling and the plan of a look-ahead, plainly: lists, sorting, bisection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tests.reference import PlainWorld
from venire.paper.utility import gain, reach, residual

STEP, UNIT, FREE = 2.0**-20, 2.0**32, -(2**25)


@dataclass
class Bid:
    value: float
    charge: float
    cap: float
    name: int = 0
    money: float = 0.0

    def total(self, log: float) -> float:
        """The logarithm of what evidence costs, money included."""
        return math.log(math.exp(log) + self.money / self.cap) if self.money else log

    def wanted(self, log: float) -> float:
        return max(0.0, min(self.cap, math.log(self.value) - self.total(log)))

    def worth(self, log: float) -> float:
        """What it gains at this price before it pays for its delay."""
        price, some = math.exp(log), math.log(self.value) - self.total(log)
        if some >= self.cap:
            return -self.value * math.expm1(-self.cap) - self.money - price * self.cap
        cost = price + self.money / self.cap if self.money else price
        return self.value - cost - cost * some if some > 0.0 else 0.0

    def surplus(self, log: float) -> float:
        return self.worth(log) - self.charge

    def buys(self, log: float) -> int:
        """How many units it buys."""
        return int(self.wanted(log) * UNIT) if self.surplus(log) > 0.0 else 0


def price(bids: Sequence[Bid], supply: float) -> int:
    """The highest price on the grid at which more is demanded than there is."""
    low, high = FREE, 2**25
    if sum(b.buys(FREE * STEP) for b in bids) <= int(supply * UNIT):
        return FREE
    while high - low > 1:
        middle = (low + high) // 2
        if sum(b.buys(middle * STEP) for b in bids) > int(supply * UNIT):
            low = middle
        else:
            high = middle
    return low


def buyers(bids: Sequence[Bid], supply: float) -> list[int]:
    """The names of those that get evidence."""
    k = price(bids, supply)
    log, above = k * STEP, (k + 1) * STEP
    if k == FREE:
        return [b.name for b in bids if b.surplus(log) > 0.0]
    sure = [b for b in bids if b.surplus(above) > 0.0]
    left = int(supply * UNIT) - sum(b.buys(above) for b in sure)
    picked = [b.name for b in sure]
    others = [b for b in bids if b.surplus(log) > 0.0 and b not in sure]
    for b in sorted(others, key=lambda b: (-b.surplus(log), b.name)):
        if b.buys(log) > left and not _pays(b, left / UNIT, len(picked), math.exp(log)):
            break
        left -= b.buys(log)
        picked.append(b.name)
    return picked


def _pays(b: Bid, left: float, others: int, price: float) -> bool:
    if left <= 0.0:
        return False
    share = -others * price * math.expm1(-left / others) if others else 0.0
    some = min(left, b.cap)
    paid = b.money / b.cap * some if b.money else 0.0
    return -b.value * math.expm1(-some) - paid - b.charge > share


def waterfill(world: PlainWorld) -> PlainWorld:
    """Algorithm 1 in which the delay of those who buy counts as paid."""
    order = world.order()
    for slot in range(world.slots):
        queue = world.outstanding(slot)
        bids = [_bid(world, i, slot) for i in queue]
        paid = set(buyers(bids, supply(world, queue)))
        copies = [m for m in order for _ in range(world.capacities[m])]
        for m in copies:
            best, value = -1, world.prices[m]
            for i in queue:
                here = _score(world, i, m, slot, i in paid)
                if m in world.items[i].unused() and here > value:
                    best, value = i, here
            if best >= 0:
                world.give(slot, best, m)
        for i in queue:
            unused = world.items[i].unused()
            cap, money = _on_sale(world, i)
            net = -_left(world, i) * math.expm1(-cap) - money
            if net <= slot + 1 - world.items[i].last():
                world.leave(slot, i, "no_gain" if unused else "exhausted")
    return world.end()


def supply(world: PlainWorld, queue: Sequence[int]) -> float:
    """What a slot can sell to this queue: a labeler gives no more than there are rows for it."""
    total, most = 0.0, max((_left(world, i) for i in queue), default=0.0)
    for m, capacity in enumerate(world.capacities):
        rows = sum(m in world.items[i].eligible for i in queue)
        if world.prices[m] == 0 or world.prices[m] < most * reach(world.evidence[m]):
            total += min(capacity, rows) * world.evidence[m]
    return total


def _left(world: PlainWorld, i: int) -> float:
    return residual(world.items[i].weight, sum(world.evidence[k] for _, k in world.items[i].labels))


def _bid(world: PlainWorld, i: int, slot: int) -> Bid:
    cap, money = _on_sale(world, i)
    return Bid(_left(world, i), float(slot - world.items[i].last()), cap, i, money)


def _on_sale(world: PlainWorld, i: int) -> tuple[float, float]:
    """The evidence and the price of the labels that each add more than they cost, cheapest first.

    Without prices, of all: one that tells nothing adds nothing.
    """
    unused, rest, cap, money = world.items[i].unused(), _left(world, i), 0.0, 0.0
    if not any(world.prices):
        return sum(world.evidence[m] for m in unused), 0.0
    for m in world.order():
        if m in unused and rest * reach(world.evidence[m]) > world.prices[m]:
            cap, money = cap + world.evidence[m], money + world.prices[m]
            rest *= 1.0 - reach(world.evidence[m])
    return cap, money


def _score(world: PlainWorld, i: int, m: int, slot: int, paid: bool) -> float:
    delay = 0 if paid else slot - world.items[i].last()
    return gain(_left(world, i), reach(world.evidence[m]), delay)


def path(bids: Sequence[Bid], now: float, later: float, log: float) -> tuple[bool, list[float]]:
    """Fill slot after slot from this price on: whether it is too low, and the prices (logs)."""
    prices, left, rest = [log], now, 1.0
    queue = sorted(bids, key=lambda b: (b.value, b.name))
    while queue:
        b = queue[0]
        some = 0.0
        if b.worth(prices[-1]) - b.charge - (len(prices) - 1) > 0.0:
            some = b.wanted(prices[-1]) * rest
        if some <= left:
            left, rest = left - some, 1.0
            queue.pop(0)
            continue
        rest *= 1.0 - left / some
        target = b.worth(prices[-1]) + 1.0
        low, high = -80.0, prices[-1]
        if b.worth(low) <= target or len(prices) == 256:
            return True, prices
        for _ in range(100):
            middle = (low + high) / 2.0
            low, high = (middle, high) if b.worth(middle) > target else (low, middle)
        prices.append(low)
        left = later
    return False, prices


def plan(bids: Sequence[Bid], now: float, later: float) -> list[float]:
    """The prices of the best plan, as logarithms, by bisection on the first of them."""
    low, high = -40.0, max(math.log(b.value) for b in bids) + 1.0
    if not path(bids, now, later, low)[0]:
        return path(bids, now, later, low)[1]
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if path(bids, now, later, middle)[0] else (low, middle)
    return path(bids, now, later, high)[1]


def dual_bound(bids: Sequence[Bid], now: float, later: float, prices: Sequence[float]) -> float:
    """No plan earns more, whatever the prices: what is sold, and what every bid earns at best."""
    total = now * math.exp(prices[0]) + later * sum(math.exp(log) for log in prices[1:])
    for b in bids:
        total += max(0.0, *(b.surplus(log) - t for t, log in enumerate(prices)))
    return total
