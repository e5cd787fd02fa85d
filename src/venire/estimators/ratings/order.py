"""Whether labels show the declared order of their classes."""

from __future__ import annotations

from typing import Final

import numpy as np

from venire.estimators.ratings.agreement import coincidences
from venire.labels.partitions import Table, total

__all__ = ["order_strength"]

#: Pairs of classes that would meet less often than this by chance are ignored.
_FEWEST: Final = 10.0

#: Pseudo-pairs at each boundary, distributed as by chance.
_PSEUDO: Final = 4.0


def order_strength(table: Table) -> float:
    r"""How much more often labels of an item are neighbours than further apart.

    The classes of the table stand in order.

    o_kl counts the pairs of labels of the same item that say k and l, e_kl those that chance would
    make of the same labels (both as in Krippendorff's alpha). At the boundary between k and k + 1

        ( o_k,k+1 / e_k,k+1 )  /  ( sum of o_ij / sum of e_ij  over the other i <= k < j )

    is above 1 where errors across it are small (four pairs are added as by chance). The strength is
    that of the weakest boundary: classes that are confused in pairs (1 and 2, 3 and 4) have no
    order. It is infinite where too little is known, and 0 with two classes.

    >>> from venire import LabelTable
    >>> order_strength(LabelTable.from_matrix([[0, 1], [1, 2], [1, 1], [2, 2]] * 30, classes=3))
    10.375
    >>> anything = [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]] * 30
    >>> order_strength(LabelTable.from_matrix(anything, classes=3))
    1.0
    """
    K = len(table.classes)
    if K == 2:
        return 0.0
    seen, said = total(table, coincidences)
    chance = np.outer(said, said) / max(said.sum(), 1.0)
    links = [np.inf]
    for k in range(K - 1):
        far = np.zeros((K, K), np.bool_)
        far[: k + 1, k + 1 :] = True
        far[k, k + 1] = False
        near_by_chance, far_by_chance = chance[k, k + 1], chance[far].sum()
        if min(near_by_chance, far_by_chance) >= _FEWEST:
            share = _PSEUDO / (near_by_chance + far_by_chance)
            near = seen[k, k + 1] / near_by_chance + share
            links.append(near / (seen[far].sum() / far_by_chance + share))
    return float(min(links))
