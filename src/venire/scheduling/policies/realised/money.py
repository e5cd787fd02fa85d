"""Where labels cost money: whom a row would pay, and up to which price of evidence it buys.

Labelers go in increasing price of evidence (`by_merit` in verdicts.py). The first k of those who
may label a row give it evidence x for money c, and with them it gains

    loss - (loss with x) - c

Its reserve is the largest (gain - cost of the delay) / x over k. Its plan is the k of the largest
gain: the cheap ones, and dear ones where what the others leave to gain is worth it. The plan's
evidence is its cap and c / x its `rate`. Its `limit` is the largest (gain + c) / x, the most that
it would pay for evidence if there were none at a better price: who is in the plan may have no time.
It refuses labelers who cost more than that for their evidence.
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
    x = money = best = later = now = cap = rate = limit = 0.0
    for m in desk.order:
        p = desk.panel[m]
        e = evidence_of(desk, m, pair)
        if e <= 0.0 or (p.mark == stamp) != marked or (p.capacity <= 0 and not away):
            continue
        x, money = x + e, money + p.price
        labels += 1
        gain = loss - loss_after(weight, loss, left, told, x, x / labels, 1.0) - money
        later, now = max(later, (gain - 1.0) / x), max(now, gain / x)
        limit = max(limit, (gain + money) / x)
        if gain > best:
            best, cap, rate = gain, x, money / x
    return later, now, cap, rate, limit
