"""The price of evidence, from the rows that wait, the supply of a slot, and expected arrivals.

Let a slot have S of evidence, let the rows that would buy at some price want D of it, and let n of
them, which want D', be worth one more slot of waiting. If D <= S all are served. If not, some of
the n must wait. One more buyer of x displaces others of x in total from this slot, these displace
others from the next, and so on until the queue ends, which takes (D / S - 1) / (1 - load) slots if
arrivals want `load` of each slot. Each time n x / D' rows wait one slot more; so evidence costs

    asked = ceil((D / S - 1) / (1 - load)) n / D'

in delay of others, and is infinite if load >= 1, or if rows that cannot wait want more than a slot
has. Demand, ln(left / price) but at least one label, falls with the price, and rows leave whose
reserve is below it: the price is the lowest that is not below `asked`.

Rows are counted in bins by their reserve, eight to a doubling of the price, so that a queue of
any length costs one look at each row and a few hundred steps.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.state.desk import N_BINS, Desk
from venire.tools.compiling import inlined, kernel

__all__ = ["FLOW", "LOWEST", "NOW", "STAY", "add", "bin_of", "clear_bins", "edge", "find_price"]

PER_OCTAVE: Final = 8
LOWEST: Final = 2.0**-12  # a price below this counts as 0
PER_LOG: Final = PER_OCTAVE / math.log(2.0)

# columns of the bins, two each: how many rows, and the sum of the logarithms of what they have left
STAY: Final = 0  # rows that would stay one more slot, by their reserve
NOW: Final = 2  # rows that would buy in this slot, by their reserve for it
FLOW: Final = 4  # the usual arrivals of a slot, by their reserve for it
COLUMNS: Final = 6

#: Sums that differ by less, as they do in another order, count as equal: rounding in the last bit
#: must not make a queue a slot longer.
ROUND: Final = 1e-9

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
    """Empty all bins."""
    for b in range(N_BINS):
        for column in range(COLUMNS):
            desk.bins[b, column] = 0.0


@inlined
def add(desk: Desk, b: int, column: int, rows: float, log: float) -> None:
    """Count rows of this logarithm each."""
    desk.bins[b, column] += rows
    desk.bins[b, column + 1] += rows * log


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
    return n, max(up_to(desk, b, share, column + 1) - n * log_price, n * least)


@kernel
def asked(
    desk: Desk, b: int, share: float, price: float, held: float, least: float, bursts: float
) -> float:
    """What evidence costs if the rows above bin b buy, and a share of those in it."""
    log_price = math.log(price)
    _, total = demand(desk, b, share, NOW, log_price, least)
    if total <= held * (1.0 + ROUND):
        return 0.0
    n, of_these = demand(desk, b, share, STAY, log_price, least)
    _, load = demand(desk, b, share, FLOW, log_price, least)
    slots = total / held - 1.0
    load *= (1.0 + bursts * min(1.0, slots / LONG)) / held
    if load >= 1.0 - ROUND or of_these < (total - held) * (1.0 - ROUND):
        return math.inf
    return math.ceil(slots / (1.0 - load) * (1.0 - ROUND)) * n / of_these


@kernel
def find_price(desk: Desk, held: float, least: float, bursts: float) -> tuple[float, int, float]:
    """The price, the bin up to which rows leave, and how many rows of that bin may stay.

    `bursts` is how much arrives in bursts, as a multiple of the usual arrivals.
    """
    for b in range(N_BINS - 2, 0, -1):
        for column in range(COLUMNS):
            desk.bins[b, column] += desk.bins[b + 1, column]
    b = 1
    while b < N_BINS - 1 and asked(desk, b, 1.0, edge(b), held, least, bursts) > edge(b):
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
            if asked(desk, b, half, low, held, least, bursts) > low:
                many = half
            else:
                few = half
        if few * count >= 0.5:
            return low, b, few * count
    for _ in range(20):
        middle = 0.5 * (low + high)
        if asked(desk, b, 0.0, middle, held, least, bursts) > middle:
            low = middle
        else:
            high = middle
    return high, b, 0.0
