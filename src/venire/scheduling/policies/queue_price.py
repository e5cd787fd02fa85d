"""The price of evidence, from the rows that wait, the supply of a slot, and expected arrivals.

Let a slot have S of evidence, let the rows that would buy at some price want D of it, and let n of
them, which want D', be worth one more slot of waiting. If D <= S all are served. If not, some of
the n must wait. One more buyer of x displaces others of x in total from this slot, these displace
others from the next, and so on until the queue ends. If arrivals want `load` of each slot and go on
for ever, that takes q / (1 - load) slots, where q = D / S - 1; it never ends with a load of 1 or
more. If they go on for another t slots only, it ends after q + load t slots. Nobody knows t; looked
at in a random slot, arrivals go on for at most four times as long as they have gone on, with a
chance of 4 in 5, and t is that. T is the less of the two. Each time n x / D' rows wait one slot
more; so evidence costs

    asked = ceil(T) n / D'

in delay of others, and is infinite if rows that cannot wait want more than a slot has. Demand,
ln(left / price) but at least one label and at most what those who may still label the rows can
give, falls with the price, and rows leave whose reserve is below it: the price is the lowest that
is not below `asked`.

Rows are counted in bins by their reserve, eight to a doubling of the price, so that a queue of
any length costs one look at each row and a few hundred steps.

**Expected arrivals: how many rows in a usual slot, how heavy, and how much comes in bursts.**

The memory of the policy holds the arrivals of the last `WINDOW` slots, their mean over all slots
after the first arrival, and a running mean and mean square of the logarithm of their weights. A
usual slot brings the mean of the last counts without the largest and the smallest fifth of them, so
that one burst does not count as usual. What the mean over all slots is above that comes in bursts.
The first arrivals do not count there: time begins with them, so they do not say when more will
come, and a batch that is alone does not pay for others that never come. Seven weights represent
all, evenly spread over three standard deviations around the mean logarithm.

**Rows that few labelers may label: whether those few will have time for them.**

One price for all evidence assumes that a label is as good for one row as for another. A row that
only a few may label is not helped by other labelers who are idle, and it competes only with rows
that need the same few; at that price it may wait for nothing, with many others.

For such rows, those that at most one in `FEW` of the panel may label, a plan of the next slots is
made when a slot is settled. The rows go in order of what they could still gain. A row looks for the
first slot in which those of its labelers who are free by then are worth the wait,

    loss - (loss with the evidence of these) > slots until then

which is what it gains by that slot, against the delay up to it, and books one label of each of
them; a labeler of capacity c with n labels booked is free in slot 1 + n // c. A row that finds no
such slot would wait for nothing, and leaves. Future arrivals are ignored: they would take some of
these labelers, and give the row nothing that it lacks.

Rows that more labelers may label are governed by the price alone.
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from venire.scheduling.base import PolicyMemory
from venire.scheduling.kernel.desk import COSTLY, N_BINS, POOLED, PRICED, SETTING, Desk
from venire.scheduling.kernel.queues import make_heap
from venire.scheduling.kernel.rows import (
    first_eligible,
    labeler_at,
    new_stamp,
    next_eligible,
)
from venire.scheduling.policies.item_value import (
    BY_LABELS,
    LOWEST,
    PER_OCTAVE,
    SHARE,
    bin_of,
    by_cost,
    evidence_of,
    one_label,
    plan_to_buy,
    reserve_price,
    rest_of,
)
from venire.tools.compiling import inlined, kernel

#: The evidence that a slot has, that of one label, how much arrives in bursts as a multiple of the
#: usual arrivals, and for how many slots items have been arriving.
Known: TypeAlias = tuple[float, float, float, float]

# columns of the bins, three each: how many rows, the sum of the logarithms of what they have left,
# and how much evidence their labelers can give
STAY: Final = 0  # rows that would stay one more slot, by their reserve
NOW: Final = 3  # rows that would buy in this slot, by their reserve for it
FLOW: Final = 6  # the usual arrivals of a slot, by their reserve for it
COLUMNS: Final = 9

#: Sums that differ by less, as they do in another order, count as equal: rounding in the last bit
#: must not make a queue a slot longer.
ROUND: Final = 1e-9

#: Arrivals are expected to go on for at most this multiple of the time that they have gone on.
LASTS: Final = 4.0

#: Bursts count in full when the queue is at least this many slots long.
LONG: Final = 16.0


@inlined
def edge(b: int) -> float:
    """The lowest price of a bin."""
    return float(LOWEST * 2.0 ** ((b - 1) / PER_OCTAVE))


@inlined
def clear_bins(desk: Desk) -> None:
    for b in range(N_BINS):
        for column in range(COLUMNS):
            desk.bins[b, column] = 0.0


@inlined
def add(desk: Desk, b: int, column: int, rows: float, log: float, cap: float) -> None:
    """Count rows of this logarithm and this cap each."""
    desk.bins[b, column] += rows
    desk.bins[b, column + 1] += rows * log
    desk.bins[b, column + 2] += rows * cap


@inlined
def up_to(desk: Desk, b: int, share: float, column: int) -> float:
    """The sum over the bins above b and a share of bin b; `bins` holds sums from the top."""
    above = desk.bins[b + 1, column]
    return float(above + share * (desk.bins[b, column] - above))


@inlined
def demand(
    desk: Desk, b: int, share: float, column: int, log_price: float, least: float
) -> tuple[float, float]:
    """How many rows there are from bin b on, and how much evidence they want."""
    n = up_to(desk, b, share, column)
    most = min(up_to(desk, b, share, column + 1) - n * log_price, up_to(desk, b, share, column + 2))
    return n, max(most, n * least)


@kernel
def asked(desk: Desk, b: int, share: float, price: float, known: Known) -> float:
    """What evidence costs if the rows above bin b buy, and a share of those in it."""
    held, least, bursts, age = known
    log_price = math.log(price)
    _, total = demand(desk, b, share, NOW, log_price, least)
    if total <= held * (1.0 + ROUND):
        return 0.0
    n, of_these = demand(desk, b, share, STAY, log_price, least)
    _, load = demand(desk, b, share, FLOW, log_price, least)
    slots = total / held - 1.0
    load *= (1.0 + bursts * min(1.0, slots / LONG)) / held
    if of_these < (total - held) * (1.0 - ROUND):
        return math.inf
    longest = slots + load * LASTS * age
    if load < 1.0:
        longest = min(longest, slots / (1.0 - load))
    return math.ceil(longest * (1.0 - ROUND)) * n / of_these


@kernel
def find_price(desk: Desk, known: Known) -> tuple[float, int, float]:
    """The price, the bin up to which rows leave, and how many rows of that bin may stay."""
    for b in range(N_BINS - 2, 0, -1):
        for column in range(COLUMNS):
            desk.bins[b, column] += desk.bins[b + 1, column]
    b = 1
    while b < N_BINS - 1 and asked(desk, b, 1.0, edge(b), known) > edge(b):
        b += 1
    if b == 1:
        return LOWEST, 0, 0.0
    b -= 1
    low, high = edge(b), edge(b + 1)
    count = desk.bins[b, STAY] - desk.bins[b + 1, STAY]
    if count > 0.0:  # rows of equal value: some may stay, some not
        few, many = 0.0, 1.0
        for _ in range(24):
            half = 0.5 * (few + many)
            if asked(desk, b, half, low, known) > low:
                many = half
            else:
                few = half
        if few * count >= 0.5:
            return low, b, few * count
    for _ in range(20):
        middle = 0.5 * (low + high)
        if asked(desk, b, 0.0, middle, known) > middle:
            low = middle
        else:
            high = middle
    return high, b, 0.0


WAITS: Final = 0  # the turn of a row that has taken nobody
TAKES: Final = 1


@inlined
def after(desk: Desk, a: int, b: int) -> bool:
    """Whether row a goes after row b: it could gain less, or as much and came later."""
    x, y = desk.cases[a].want, desk.cases[b].want
    return x < y or (x == y and a > b)


sink, heapify = make_heap(after)


@inlined
def sort_chosen(desk: Desk, count: int) -> None:
    """Sort the first rows of `chosen` in the order in which they go."""
    heap = desk.chosen
    heapify(desk, heap, count)
    for last in range(count - 1, 0, -1):
        heap[0], heap[last] = heap[last], heap[0]
        sink(desk, heap, 0, last)


@inlined
def free_in(desk: Desk, labeler: int) -> int:
    """The first of the next slots in which the labeler is free: 1, 2, ..."""
    return int(1 + desk.panel[labeler].pointer // desk.panel[labeler].capacity)


@inlined
def on_offer(desk: Desk, row: int, ahead: int, take: bool) -> tuple[float, int]:
    """The evidence of all who are free by a slot and may label the row; when more of them are.

    That is the first slot in which one more is free, 0 if all are. With `take` they are booked.
    """
    total, later = 0.0, 0
    place = first_eligible(desk, row)
    while place >= 0:
        m = labeler_at(desk, row, place)
        e = evidence_of(desk, m, desk.cases[row].kind // 2)
        if desk.panel[m].capacity > 0 and e > 0.0:
            free = free_in(desk, m)
            if free <= ahead:
                total += e
                if take:
                    desk.panel[m].pointer += 1
            elif later == 0 or free < later:
                later = free
        place = next_eligible(desk, row, place)
    return total, later


@inlined
def gained(desk: Desk, row: int, evidence: float) -> float:
    gain: float = desk.cases[row].loss - rest_of(desk, row, evidence)
    return gain - desk.cases[row].rate * evidence


@inlined
def begin(desk: Desk, busy: bool) -> None:
    """Nobody is booked, but with `busy` for the labels in flight."""
    for m in range(len(desk.panel)):
        most = min(desk.panel[m].inflight, desk.panel[m].capacity)
        desk.panel[m].pointer = most if busy else 0


@inlined
def takes(desk: Desk, row: int) -> bool:
    """Book whom the row takes, if anybody."""
    _, ahead = on_offer(desk, row, 0, False)
    while 0 < ahead < desk.cases[row].want:
        evidence, later = on_offer(desk, row, ahead, False)
        if gained(desk, row, evidence) > ahead:
            on_offer(desk, row, ahead, True)
            return True
        ahead = later
    return False


@kernel
def rehearse(desk: Desk, low: int) -> None:
    """Write into `turn` which rows of few labelers above the bin `low` take any."""
    count = 0
    for i in range(desk.meta[POOLED]):
        row = desk.pool[i]
        if desk.cases[row].few:
            desk.cases[row].turn = WAITS
            if desk.cases[row].stay > low:
                if count == 0:
                    begin(desk, False)
                desk.cases[row].want = gained(desk, row, on_offer(desk, row, 1, False)[0])
                desk.chosen[count] = row
                count += 1
    if count == 0:
        return
    sort_chosen(desk, count)
    begin(desk, True)
    for i in range(count):
        if takes(desk, desk.chosen[i]):
            desk.cases[desk.chosen[i]].turn = TAKES


WINDOW: Final = 16
SLOWLY: Final = 1024  # slots over which the mean forgets
WEIGHTS: Final = 7

MEMORY: Final = PolicyMemory(
    "log",  # mean logarithm of the weight of an arrival
    "square",  # mean square of it
    "slots",  # slots since the first arrival
    "busy",  # slots with arrivals
    "price",  # the price forecast last
    "mean",  # mean arrivals of a slot, without the first
    "floor",  # the least that a label must gain now, for each unit of its evidence
    counts=WINDOW,  # arrivals in each of the last slots, in a ring
)
LOG, SQUARE, SLOTS, BUSY, PRICE, MEAN, FLOOR, COUNTS = MEMORY.places


@inlined
def remember(desk: Desk, arrived: int, logs: float, squares: float) -> None:
    """Record the arrivals of a slot: how many, and the sums over the logarithms of weights."""
    g = desk.gauges
    if g[BUSY] > 0.0:
        g[MEAN] += max(1.0 / SLOWLY, 1.0 / g[SLOTS]) * (arrived - g[MEAN])
    elif arrived == 0:
        return
    g[COUNTS + int(g[SLOTS]) % WINDOW] = arrived
    g[SLOTS] += 1.0
    if arrived > 0:
        g[BUSY] += 1.0
        rate = max(1.0 / WINDOW, 1.0 / g[BUSY])
        g[LOG] += rate * (logs / arrived - g[LOG])
        g[SQUARE] += rate * (squares / arrived - g[SQUARE])


@inlined
def usual_arrivals(desk: Desk) -> float:
    """The mean of the last counts and a zero, without the largest and the smallest fifth."""
    g = desk.gauges
    n = min(WINDOW, int(g[SLOTS])) + 1
    top, bottom = (n + 4) // 5, n // 5
    total = 0.0
    for i in range(n - 1):
        rank = 0
        for k in range(n - 1):
            more = g[COUNTS + k] > g[COUNTS + i]
            if more or (g[COUNTS + k] == g[COUNTS + i] and k < i):
                rank += 1
        if top <= rank < n - bottom:
            total += g[COUNTS + i]
    return total / max(1, n - top - bottom)


@inlined
def new_row(desk: Desk) -> tuple[float, float]:
    """Of a row without labels: what is left to gain as a share of its weight, and its scale."""
    if desk.meta[SETTING] != BY_LABELS:
        return 1.0, 1.0
    if desk.meta[COSTLY] == 0:
        return 0.5 * SHARE, 1.0
    top, total = -math.inf, 0.0
    for j in range(len(desk.scores)):
        desk.scores[j] = desk.lean[j]
        top = max(top, desk.lean[j])
    for j in range(len(desk.scores)):
        total += math.exp(desk.scores[j] - top)
    _, wrong, scale = by_cost(desk, 1.0 - 1.0 / total)
    return SHARE * math.sqrt(wrong * (1.0 - wrong)), scale


@kernel
def expect(desk: Desk, next_slot: bool) -> float:
    """Add the usual arrivals to the bins; returns what comes in bursts as a multiple of them.

    With `next_slot` these rows are also counted among those that buy.
    """
    g = desk.gauges
    usual = max(usual_arrivals(desk), 0.01 * g[MEAN])
    if usual <= 0.0:
        return 0.0
    share, scale = new_row(desk)
    step = math.sqrt(max(0.0, g[SQUARE] - g[LOG] * g[LOG])) / 2.0
    least, cap, rows = one_label(desk), desk.held[0, 0, 1], usual / WEIGHTS
    for i in range(WEIGHTS):
        weight = scale * math.exp(g[LOG] + (i - WEIGHTS // 2) * step)
        left = share * weight
        log = math.log(left)
        if desk.meta[PRICED] == 0:
            now = reserve_price(weight, left, least, cap, 0.0)
            stay = reserve_price(weight, left, least, cap, 1.0)
        else:
            everybody, new = (new_stamp(desk), False), (weight, weight, left, False)
            stay, now, cap, _, _ = plan_to_buy(desk, 1, False, everybody, new)
        add(desk, bin_of(now), FLOW, rows, log, cap)
        if next_slot:
            add(desk, bin_of(now), NOW, rows, log, cap)
            add(desk, bin_of(stay), STAY, rows, log, cap)
    return max(0.0, g[MEAN] / usual - 1.0)
