"""Arrivals and weights by name, as the command line takes them."""

from __future__ import annotations

import math

from venire.errors import InputError
from venire.model import MOST_WEIGHT
from venire.scheduling.by_name import made_of
from venire.simulation.arrivals import Arrivals, Bursty, Fixed, Poisson

__all__ = ["arrivals_named", "weights_named"]

_ARRIVALS: dict[str, type[Bursty] | type[Fixed] | type[Poisson]] = {
    "bursty": Bursty,
    "fixed": Fixed,
    "poisson": Poisson,
}

#: The longest range of weights, since all of them are listed.
LONGEST = 1_000_000


def arrivals_named(text: str) -> Arrivals:
    """`poisson[:RATE]`, `fixed[:ITEMS]` or `bursty[:SIZE[:EVERY[:TRICKLE]]]`.

    >>> arrivals_named("bursty:50:10")
    Bursty(size=50, every=10, trickle=0.0)
    """
    return made_of("arrivals", text, _ARRIVALS)


def weights_named(text: str) -> tuple[float, ...]:
    """Whole weights from a to b, `a-b`, or a list, `a,b,c`; all equally likely.

    >>> weights_named("3-6"), weights_named("0.5,8")
    ((3.0, 4.0, 5.0, 6.0), (0.5, 8.0))
    """
    low, dash, high = text.partition("-")
    if dash and low.strip().isdecimal() and high.strip().isdecimal():
        a, b = int(low), int(high)
        values = tuple(map(float, range(a, b + 1))) if b - a < LONGEST else ()
    else:
        values = tuple(map(_number, text.split(",")))
    if not values or not all(0 < w <= MOST_WEIGHT for w in values):
        raise InputError(
            f"got the weights {text!r}, expected numbers above 0: write a range such as 3-10, "
            "or a list such as 1,2,5"
        )
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
