"""The value of an item: what its labels leave to gain (`desk.cases`).

Two numbers describe a row: what is lost if it leaves now, and how that falls with more evidence.
Both follow from who labelled it, or from what the labels said.

    by evidence   loss = left = w exp(-E)                    the paper's accuracy
    by labels     loss = w (1 - q), or w without any label   q: the posterior of the verdict
                  left = SHARE w sqrt(q (1 - q))

`left` falls by exp(-evidence) with each label. By labels that is exact on average: the
mean of sqrt(q (1 - q)) over what a labeler may say is the old one times the Bhattacharyya
coefficient of its answers under the two classes, and minus the logarithm of that is its evidence
(`accuracy.pair_evidence`). The chance that a verdict is wrong, min(q, 1 - q), is at most
sqrt(q (1 - q)), and equals it at q = 1/2 only; SHARE is how much of it is left on average over
panels from weak to strong (benchmarks/realised.py shows that 0.7 to 0.9 do as well). Among more
than two classes, the two most probable ones decide which evidence counts. A first label is
worth more than its evidence, since an item without any has no verdict. Labels in flight count by
their evidence, as if they will come.

The row would buy evidence up to the price

    reserve = max over x of (loss - cost - left exp(-x)) / x

where `cost` is 1 for a row that must stay one more slot to get it, and x is at least one label and
at most the evidence of its eligible labelers.

For a row whose labels agree, `left` is far above the loss, and left exp(-x) says that a little
more evidence is worth nothing. It is worth something, since it may turn the verdict; where little
more is to be had and the weight is large, that is what counts. The logarithm of the odds after
evidence of x is about normal, with mean 4 x and variance 8 x in favour of the truth; so if the
verdict is wrong with probability q now, and l = ln((1 - q) / q), it is wrong then with probability

    (1 - q) Phi(-(l + 4 x) / sqrt(8 x)) + q Phi((l - 4 x) / sqrt(8 x))

unless they could not turn it even if all contradicted it (a label of evidence e moves the logarithm
of the odds by 2 acosh(exp(e))). People err together on hard items, so that labels against the odds
are worth less than that; TRUST is how much of it is believed. A row has the choice to buy all that
its labelers can give, at that.

**Errors that do not cost the same** (`by_cost`). Of an item of class j with probability q_j, the
verdict v costs sum_j q_j C_jv. The verdict is the one of least cost; s is the class that costs most
if it is the truth. Write

    x = sum_j q_j C_jv        what is lost with the verdict
    y = q_v C_vs              what is lost with s instead

Between two classes this is the same as equal costs with other odds: what is lost is (x + y) times
the chance x / (x + y) of being wrong, and labels change that as they change any odds. So an item
is valued as one with the weight w (x + y) and that chance; with all costs 1, x + y is 1.

**Money** (`plan_to_buy`). Labelers go in increasing price of evidence (`by_merit` in
kernel/verdicts.py). The first k of those who may label a row give it evidence x for money c, and
with them it gains

    loss - (loss with x) - c

Its reserve is the largest (gain - cost of the delay) / x over k. Its plan is the k of the largest
gain: the cheap ones, and dear ones where what the others leave to gain is worth it. The plan's
evidence is its cap and c / x its `rate`. Its `limit` is the largest (gain + c) / x, the most that
it would pay for evidence if there were none at a better price: who is in the plan may have no time.
It refuses labelers who cost more than that for their evidence.
"""

from __future__ import annotations

import math
from typing import Final

from venire.model import MOST_WEIGHT
from venire.paper import utility
from venire.scheduling.kernel.desk import BARRED, COSTLY, N_BINS, PENDING, PRICED, SETTING, Desk
from venire.scheduling.kernel.rows import (
    eligible_count,
    first_eligible,
    labeler_at,
    next_eligible,
    stamp_eligible,
)
from venire.scheduling.kernel.verdicts import add_votes, best_of
from venire.tools.compiling import inlined, kernel

#: The chance of being wrong as a share of sqrt(q (1 - q)).
SHARE: Final = 0.85

#: A row is for few if at most one labeler in this many may label it.
FEW: Final = 4

#: Prices are told apart in bins, this many to a doubling.
PER_OCTAVE: Final = 8
LOWEST: Final = 2.0**-12  # a price below this counts as 0
PER_LOG: Final = PER_OCTAVE / math.log(2.0)

NOTHING: Final = -700.0  # stands for the logarithm of 0

residual = inlined(utility.residual)
reach = inlined(utility.reach)


@inlined
def bin_of(price: float) -> int:
    """The bin that this price falls into; 0 for all up to the lowest."""
    if price <= LOWEST:
        return 0
    return min(N_BINS - 1, 1 + int(math.log(price / LOWEST) * PER_LOG))


@inlined
def sum_panel(desk: Desk) -> None:
    """Add up the evidence of those who are not away, if anything has changed.

    The average label is weighted by evidence, so that one expert among many who know nothing
    counts for what it is.
    """
    if desk.bounds[0] > 0.0:
        return
    desk.bounds[0] = 1.0
    classes = len(desk.scores)
    for pair in range(classes * classes):
        once = slot = squares = 0.0
        for m in range(len(desk.panel)):
            capacity = desk.panel[m].capacity
            if capacity > 0:
                e = evidence_of(desk, m, pair)
                once += e
                if desk.panel[m].price < MOST_WEIGHT:  # some row may pay for it
                    slot += capacity * e
                    squares += capacity * e * e
        j, k = pair // classes, pair % classes
        desk.held[0, j, k] = once
        desk.held[1, j, k] = squares / slot if slot > 0.0 else 0.0
        desk.held[2, j, k] = slot


@inlined
def mean_over_pairs(desk: Desk, what: int) -> float:
    classes = len(desk.scores)
    total = 0.0
    for j in range(classes):
        for k in range(classes):
            if j != k:
                total += desk.held[what, j, k]
    return total / (classes * (classes - 1))


@inlined
def one_label(desk: Desk) -> float:
    """The evidence of one label, for the average pair of classes."""
    return mean_over_pairs(desk, 1)


@inlined
def supply(desk: Desk) -> float:
    """The evidence that a slot can give, for the average pair of classes."""
    return mean_over_pairs(desk, 2)


@inlined
def unused_evidence(desk: Desk, row: int, pair: int, away: bool) -> float:
    """The evidence of the eligible labelers; with `away`, also of those who are away."""
    group = desk.rows[row].group
    if group == 0 and not away:
        classes = len(desk.scores)
        total = desk.held[0, pair // classes, pair % classes]
        k = desk.rows[row].head
        while k >= 0:
            m = desk.touches[k].labeler
            if desk.panel[m].capacity > 0:
                total -= evidence_of(desk, m, pair)
            k = desk.touches[k].next
        return total
    total = 0.0
    place = first_eligible(desk, row)
    while place >= 0:
        m = labeler_at(desk, row, place)
        if away or desk.panel[m].capacity > 0:
            total += evidence_of(desk, m, pair)
        place = next_eligible(desk, row, place)
    return total


@inlined
def may_label(desk: Desk, row: int) -> int:
    if desk.rows[row].group > 0:
        return eligible_count(desk, row, False) + desk.rows[row].labels
    count = len(desk.panel)
    k = desk.rows[row].head
    while k >= 0:
        if desk.touches[k].said == BARRED:
            count -= 1
        k = desk.touches[k].next
    return count


@inlined
def reserve_price(loss: float, left: float, least: float, cap: float, cost: float) -> float:
    """The highest price at which evidence pays, at this cost in delay; 0 if it never does.

    The best x solves (1 + x) exp(-x) = (loss - cost) / left, by Newton's method.
    """
    most = loss - cost
    if cap <= 0.0 or most <= left * math.exp(-cap):
        return 0.0
    x = min(least, cap)
    if most < left:
        r = math.log(most / left)
        y = math.sqrt(-2.0 * r) - r
        for _ in range(6):
            y += (math.log1p(y) - y - r) * (1.0 + y) / y
        x = min(max(x, y), cap)
    return max(0.0, (most - left * math.exp(-x)) / x)


@inlined
def rest_of(desk: Desk, row: int, evidence: float) -> float:
    """`loss_after` for a row that is valued."""
    told = desk.meta[SETTING] == BY_LABELS and desk.cases[row].kind % 2 == 0
    loss, left = desk.cases[row].loss, desk.cases[row].left
    weight = desk.rows[row].weight * desk.cases[row].scale
    return loss_after(weight, loss, left, told, evidence, desk.cases[row].least)


@inlined
def reserve_of(desk: Desk, row: int, cost: float) -> float:
    """The highest price at which a row would buy some evidence, or all there is."""
    loss, cap = desk.cases[row].loss, desk.cases[row].cap
    if cap <= 0.0:
        return 0.0
    some = reserve_price(loss, desk.cases[row].left, desk.cases[row].least, cap, cost)
    return max(some, (loss - cost - desk.cases[row].rest) / cap)


@inlined
def charge(desk: Desk, row: int, away: bool) -> None:
    """Value a row again where labels cost money."""
    who = stamp_eligible(desk, row)
    case, told = desk.cases[row], desk.meta[SETTING] == BY_LABELS and desk.cases[row].kind % 2 == 0
    of_row = desk.rows[row].weight * case.scale, case.loss, case.left, told
    later, now, cap, rate, limit = plan_to_buy(desk, case.kind // 2, away, who, of_row)
    desk.cases[row].reserve, desk.cases[row].reserve_now = later, now
    desk.cases[row].rate, desk.cases[row].limit = rate, limit
    if cap > 0.0:
        desk.cases[row].cap, desk.cases[row].least = cap, min(cap, desk.cases[row].least)
        desk.cases[row].rest = rest_of(desk, row, cap)


@inlined
def read_labels(desk: Desk, row: int) -> tuple[int, float, int]:
    """The two most probable classes, the chance that the verdict is wrong, how many labels."""
    scores, classes = desk.scores, len(desk.scores)
    for j in range(classes):
        scores[j] = desk.lean[j]
    votes = add_votes(desk, row)
    best = best_of(scores)
    second = -1
    odds = 0.0
    for j in range(classes - 1, -1, -1):
        if j != best:
            odds += math.exp(scores[j] - scores[best])
            if second < 0 or scores[j] > scores[second]:
                second = j
    pair = min(best, second) * classes + max(best, second)
    return pair, odds / (1.0 + odds), votes


@inlined
def coming_evidence(desk: Desk, row: int, pair: int) -> float:
    """The evidence of the labels in flight."""
    coming = 0.0
    k = desk.rows[row].head
    while k >= 0:
        if desk.touches[k].said == PENDING:
            coming += evidence_of(desk, desk.touches[k].labeler, pair)
        k = desk.touches[k].next
    return coming


@inlined
def loss_and_left(desk: Desk, row: int) -> tuple[float, float, int]:
    """What is lost if the row leaves now, what is left to gain, and of which kind the row is.

    The kind is twice the pair of most probable classes, plus one for a row without labels, for
    which a first label is worth more than its evidence.
    """
    weight = desk.rows[row].weight
    desk.cases[row].scale = 1.0
    if desk.meta[SETTING] == BY_EVIDENCE:
        left = residual(weight, desk.rows[row].evidence)
        return left, left, 2
    pair, wrong, votes = read_labels(desk, row)
    if desk.meta[COSTLY] != 0:
        pair, wrong, desk.cases[row].scale = by_cost(desk, wrong)
        weight *= desk.cases[row].scale
    coming = coming_evidence(desk, row, pair)
    left = residual(SHARE * weight * math.sqrt(wrong * (1.0 - wrong)), coming)
    loss = weight * wrong if votes > 0 else weight
    if coming > 0.0:
        return min(loss, left), left, 2 * pair
    return loss, left, 2 * pair + (votes == 0)


@kernel
def appraise(desk: Desk, row: int) -> None:
    """Write the value of a row, from its labels as they are now."""
    sum_panel(desk)
    loss, left, kind = loss_and_left(desk, row)
    pair, classes = kind // 2, len(desk.scores)
    cap = unused_evidence(desk, row, pair, False)
    few, away = FEW * may_label(desk, row) <= len(desk.panel), False
    if cap <= 0.0 and desk.rows[row].labels == 0:  # it waits for those who are away
        cap, few, away = unused_evidence(desk, row, pair, True), False, True
    least = desk.held[1, pair // classes, pair % classes]
    least = min(least, cap) if least > 0.0 else cap
    desk.rows[row].key = left
    desk.cases[row].loss = loss
    desk.cases[row].left = left
    desk.cases[row].log = math.log(left) if left > 0.0 else NOTHING
    desk.cases[row].cap = cap
    desk.cases[row].least = least
    desk.cases[row].kind = kind
    desk.cases[row].few = few
    desk.cases[row].rest = rest_of(desk, row, cap)
    desk.cases[row].reserve = reserve_of(desk, row, 1.0)
    desk.cases[row].reserve_now = reserve_of(desk, row, 0.0)
    desk.cases[row].rate = 0.0
    if desk.meta[PRICED] != 0:
        charge(desk, row, away)
    desk.cases[row].stay = bin_of(desk.cases[row].reserve)
    desk.cases[row].now = bin_of(desk.cases[row].reserve_now)


@inlined
def gain_of(desk: Desk, labeler: int, row: int) -> float:
    kind = desk.cases[row].kind
    e = evidence_of(desk, labeler, kind // 2)
    if e <= 0.0:
        return 0.0
    if kind % 2 == 1:
        more: float = desk.cases[row].loss - desk.cases[row].left * math.exp(-e)
        return more
    less: float = desk.cases[row].left * reach(e)
    return less


BY_EVIDENCE: Final = 0
BY_LABELS: Final = 1

#: How much of what further labels would gain, when those there are agree, is believed.
TRUST: Final = 0.5


@inlined
def evidence_of(desk: Desk, labeler: int, pair: int) -> float:
    if desk.meta[SETTING] == BY_EVIDENCE:
        own: float = desk.panel[labeler].evidence
        return own
    classes = len(desk.scores)
    told: float = desk.pairs[labeler, pair // classes, pair % classes]
    return told


@inlined
def below(x: float) -> float:
    """The chance that a standard normal number is below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@inlined
def loss_after(
    weight: float,
    loss: float,
    left: float,
    told: bool,
    evidence: float,
    least: float,
    trust: float = TRUST,
) -> float:
    """What is lost if a row leaves with more evidence, of `least` in a label.

    `told` if any labels tell of it now; `trust` is how much of what they would gain is believed.
    """
    most = left * math.exp(-evidence)
    if not told or evidence <= 0.0 or loss <= 0.0:
        return most
    q = min(0.5, loss / weight)
    lead, spread, one = math.log((1.0 - q) / q), math.sqrt(8.0 * evidence), min(least, evidence)
    if evidence / one * 2.0 * math.acosh(math.exp(one)) <= lead:
        return most
    stays_wrong = q * below((lead - 4.0 * evidence) / spread)
    turns_wrong = (1.0 - q) * below(-(lead + 4.0 * evidence) / spread)
    return min(most, loss - trust * (loss - weight * (stays_wrong + turns_wrong)))


@inlined
def by_cost(desk: Desk, wrong: float) -> tuple[int, float, float]:
    """The pair of classes that matters, the chance of being wrong, and the scale of the weight.

    `desk.scores` are those of the row, and `wrong` is the chance that the most probable class is
    not the true one: so the others sum to that.
    """
    scores, costs, classes = desk.scores, desk.costs, len(desk.scores)
    top = scores[0]
    for j in range(1, classes):
        top = max(top, scores[j])
    verdict, least = classes - 1, math.inf
    for v in range(classes - 1, -1, -1):
        cost = 0.0
        for j in range(classes):
            cost += math.exp(scores[j] - top) * costs[j, v]
        if cost < least:
            verdict, least = v, cost
    second, most = -1, -1.0
    for j in range(classes - 1, -1, -1):
        if j != verdict and math.exp(scores[j] - top) * costs[j, verdict] > most:
            second, most = j, math.exp(scores[j] - top) * costs[j, verdict]
    x = least * (1.0 - wrong)
    y = math.exp(scores[verdict] - top) * costs[verdict, second] * (1.0 - wrong)
    pair = min(verdict, second) * classes + max(verdict, second)
    return pair, x / (x + y), x + y


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
