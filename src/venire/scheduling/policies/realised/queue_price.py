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
"""

from __future__ import annotations

import math
from typing import Final, TypeAlias

from venire.scheduling.kernel.desk import N_BINS, Desk
from venire.tools.compiling import inlined, kernel

#: The evidence that a slot has, that of one label, how much arrives in bursts as a multiple of the
#: usual arrivals, and for how many slots items have been arriving.
Known: TypeAlias = tuple[float, float, float, float]

PER_OCTAVE: Final = 8
LOWEST: Final = 2.0**-12  # a price below this counts as 0
PER_LOG: Final = PER_OCTAVE / math.log(2.0)

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
def bin_of(price: float) -> int:
    """The bin that this price falls into; 0 for all up to the lowest."""
    if price <= LOWEST:
        return 0
    return min(N_BINS - 1, 1 + int(math.log(price / LOWEST) * PER_LOG))


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
