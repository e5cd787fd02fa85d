"""What is lost where errors do not cost the same.

Of an item of class j with probability q_j, the verdict v costs sum_j q_j C_jv. The verdict is the
one of least cost; s is the class that costs most if it is the truth. Write

    x = sum_j q_j C_jv        what is lost with the verdict
    y = q_v C_vs              what is lost with s instead

Between two classes this is the same as equal costs with other odds: what is lost is (x + y) times
the chance x / (x + y) of being wrong, and labels change that as they change any odds. So an item
is valued as one with the weight w (x + y) and that chance; with all costs 1, x + y is 1.
"""

from __future__ import annotations

import math

from venire.scheduling.state.desk import Desk
from venire.tools.compiling import inlined

__all__ = ["by_cost"]


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
