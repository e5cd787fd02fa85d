"""What errors cost: of each true class, for each verdict.

A verdict that is right costs nothing, one that is wrong costs 1 unless something else is said. The
verdict is then the class of least expected cost under the posterior:

    argmin over v of sum over j of q_j C_jv

With equal costs this is the most probable class.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError

#: (truth, verdict): what that error costs.
Costs: TypeAlias = Mapping[tuple[Hashable, Hashable], float]

#: Sums of costs times weights stay finite.
MOST_COST: Final = 1e9


def cost_matrix(
    costs: Costs | None, classes: Sequence[Hashable], all_known: bool = True
) -> NDArray[np.float64] | None:
    """The costs as K x K, truth by verdict; None where every error costs 1.

    A cost of another class is refused, or passed over where not all classes have been seen yet.

    >>> cost_matrix({("toxic", "ok"): 10}, ["ok", "toxic"]).tolist()
    [[0.0, 1.0], [10.0, 0.0]]
    >>> cost_matrix({("toxic", "ok"): 1}, ["ok", "toxic"]) is None
    True
    >>> cost_matrix({("toxic", "fine"): 10}, ["ok", "toxic"])
    Traceback (most recent call last):
    venire.errors.InputError: got a cost of ('toxic', 'fine'), expected a true class and a ...
    """
    square = 1.0 - np.eye(len(classes))
    place = {name: k for k, name in enumerate(classes)}
    for pair, cost in (costs or {}).items():
        about = isinstance(pair, tuple) and len(pair) == 2 and set(pair) <= place.keys()
        if not about and all_known:
            raise InputError(
                f"got a cost of {pair!r}, expected a true class and a verdict, both among "
                f"{list(classes)}: {{(truth, verdict): cost}}"
            )
        _check(pair, cost)
        if about:
            square[place[pair[0]], place[pair[1]]] = cost
    return square if (square != 1.0 - np.eye(len(classes))).any() else None


def _check(pair: tuple[Hashable, Hashable], cost: float) -> None:
    if pair[0] == pair[1] and cost != 0:
        raise InputError(f"got the cost {cost!r} of {pair!r}, expected 0: that verdict is right")
    if pair[0] != pair[1] and not (math.isfinite(cost) and 0 < cost <= MOST_COST):
        raise InputError(
            f"got the cost {cost!r} of {pair!r}, expected a number above 0 and up to {MOST_COST:g}"
        )


def expected_costs(
    posteriors: NDArray[np.float64], matrix: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The expected cost of each verdict, items x K.

    >>> expected_costs(np.array([[0.8, 0.2]]), np.array([[0.0, 1.0], [10.0, 0.0]])).tolist()
    [[2.0, 0.8]]
    """
    return np.asarray(posteriors @ matrix)


def costs_of_text(text: str) -> dict[tuple[Hashable, Hashable], float]:
    """Costs as the command line takes them, truth:verdict=cost with commas between.

    >>> costs_of_text("toxic:ok=10,ok:toxic=1")
    {('toxic', 'ok'): 10.0, ('ok', 'toxic'): 1.0}
    """
    found: dict[tuple[Hashable, Hashable], float] = {}
    for part in text.split(","):
        pair, equals, cost = part.rpartition("=")
        truth, colon, verdict = pair.partition(":")
        try:
            if not (equals and colon and truth.strip() and verdict.strip()):
                raise ValueError
            found[truth.strip(), verdict.strip()] = float(cost)
        except ValueError:
            raise InputError(
                f"got {part!r} in the costs {text!r}, expected truth:verdict=cost, as in "
                "toxic:ok=10,ok:toxic=1"
            ) from None
    return found
