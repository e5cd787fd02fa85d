"""What an item earns (paper, definition 4 and the incremental utility of section 3.2).

    f_s(R) = w_s * accuracy(R) - (D(R) - a_s)      D(R): the slot of the latest label in R
    u_s    = the largest f_s on the way to R       so it never falls; 0 without labels
    gain   = w_s exp(-E_s) (1 - exp(-evidence_m)) - (t - t_last)

(The paper prints the gain with `1 - exp(err)`; see docs/errata.md.) Three accountings are
always computed side by side:

    utility            the paper's: delay to the last label
    realised utility   the same accuracy, delay to the exit: what the owner of the item waits
    true utility       where the truth is known: the weight if the verdict is right, else 0,
                       less the delay to the exit

The scalar functions below are plain Python; the compiled kernels compile these very functions,
so there is one definition of each formula.
"""

from __future__ import annotations

import math
from collections.abc import Iterable


def residual(weight: float, evidence: float) -> float:
    """What is left to gain of an item: w_s exp(-E_s), to 40 significant bits.

    The rounding (Veltkamp's split) makes ties exact. Two residuals that differ, differ by more
    than the rounding error of a gain, so at equal delay the order of residuals is the order of
    the computed gains, for every labeler, tie for tie.

    >>> residual(8.0, 0.0), round(residual(8.0, 1.0), 6)
    (8.0, 2.943036)
    """
    exact = weight * math.exp(-evidence)
    scaled = exact * 8193.0
    return scaled - (scaled - exact)


def reach(evidence: float) -> float:
    """The share of a residual that one label of this evidence takes: 1 - exp(-evidence).

    >>> round(reach(0.5), 6)
    0.393469
    """
    return -math.expm1(-evidence)


def gain(residual: float, reach: float, delay: float) -> float:
    """Incremental utility of one assignment (sigma, rho), `delay` slots after the last label.

    >>> gain(8.0, 0.5, 1)
    3.0
    """
    return residual * reach - delay


def earned(weight: float, evidence: float, delay: float) -> float:
    """f_s of an item that holds this much evidence, the last of it `delay` slots after arrival.

    >>> round(earned(8.0, 1.0, 2), 6)
    3.056964
    """
    return -weight * math.expm1(-evidence) - delay


def f(weight: float, arrival: int, blocks: Iterable[tuple[float, int]]) -> float:
    """f_s of a set of (evidence, slot) blocks; 0 for the empty set.

    >>> round(f(8.0, 0, [(0.5, 0), (0.5, 2)]), 6)
    3.056964
    """
    taken = list(blocks)
    if not taken:
        return 0.0
    return earned(weight, sum(e for e, _ in taken), max(slot for _, slot in taken) - arrival)


def u(weight: float, arrival: int, blocks: Iterable[tuple[float, int]]) -> float:
    """u_s after these (evidence, slot) blocks in this order: the largest f_s on the way.

    >>> round(u(8.0, 0, [(1.0, 0), (0.1, 5)]), 6)
    5.056964
    """
    best, taken = 0.0, []
    for block in blocks:
        taken.append(block)
        best = max(best, f(weight, arrival, taken))
    return best


def realised_utility(weight: float, evidence: float, arrival: int, exit_slot: int) -> float:
    """What the owner of the item gets: the accuracy, less the wait until it left.

    >>> round(realised_utility(8.0, 1.0, arrival=0, exit_slot=3), 6)
    2.056964
    """
    return earned(weight, evidence, exit_slot - arrival)


def true_utility(weight: float, right: bool, arrival: int, exit_slot: int) -> float:
    """The weight if the verdict is right, else 0, less the wait until the item left.

    >>> true_utility(8.0, True, 0, 3), true_utility(8.0, False, 0, 3)
    (5.0, -3.0)
    """
    return (weight if right else 0.0) - (exit_slot - arrival)
