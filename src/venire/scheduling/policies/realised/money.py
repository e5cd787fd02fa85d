"""Where labels cost money: whom a row would pay, and up to which price of evidence it buys.

Labelers go in increasing price of evidence (`by_merit` in verdicts.py). The first k of those who
may label a row give it evidence x for money c, and with them it gains

    loss - (loss with x) - c

Its reserve is the largest (gain - cost of the delay) / x over k. Its plan is the k of the largest
gain: the cheap ones, and dear ones where what the others leave to gain is worth it. The plan's
evidence is its cap, c / x its `rate`, and what the dearest costs for its evidence its `limit`: it
refuses labelers who are dearer than that.
"""

from __future__ import annotations

from venire.scheduling.policies.realised.further_labels import evidence_of, loss_after
from venire.scheduling.state.desk import Desk
from venire.tools.compiling import inlined

__all__ = ["plan_to_buy"]


@inlined
def plan_to_buy(
    desk: Desk, pair: int, away: bool, who: tuple[int, bool], row: tuple[float, float, float, bool]
) -> tuple[float, float, float, float, float]:
    """Where labels cost money: reserve for a slot of delay and for none; cap, rate and limit.

    `who` is a stamp, and whether those with it may label the row, or all others. `row` is weight,
    loss, left and whether any labels tell of it.
    """
    stamp, marked = who
    weight, loss, left, told = row
    labels = 0
    x = money = dearest = best = later = now = cap = rate = limit = 0.0
    for m in desk.order:
        p = desk.panel[m]
        e = evidence_of(desk, m, pair)
        if e <= 0.0 or (p.mark == stamp) != marked or (p.capacity <= 0 and not away):
            continue
        x, money, dearest = x + e, money + p.price, max(dearest, p.price / e)
        labels += 1
        gain = loss - loss_after(weight, loss, left, told, x, x / labels) - money
        later, now = max(later, (gain - 1.0) / x), max(now, gain / x)
        if gain > best:
            best, cap, rate, limit = gain, x, money / x, dearest
    return later, now, cap, rate, limit
