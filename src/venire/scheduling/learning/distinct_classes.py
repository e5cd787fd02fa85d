r"""Which classes stand out, so that an expected cost of them can be believed.

Where an error is twenty times as dear, a class of which an item has 5 % decides its verdict. So
costs ask more of probabilities than the most probable class does: that 5 % are not 20. They are
wrong in three ways, all of which concern a rare class: before anything is learned, when classes
are taken to be equally frequent; where labels tell nobody apart, for the same reason; and while the
few items of a class are outnumbered by doubtful items of others, which fill its share and its rows
of the confusion matrices. The last can be seen: with q_sk the probability that item s is of class
k, the items of the class itself are about

    n_k = sum_s q_sk^2,    and the mean probability of an item of the class is    n_k / sum_s q_sk.

A class is distinct if n_k is at least FEWEST and the mean at least PURE, both chosen on worlds of
moderation (docs/costs.md). Between other classes verdicts are those without costs.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.streaming.remembered_labels import opinions, posteriors
from venire.scheduling.base import Ints
from venire.scheduling.learning.estimates import Guess

__all__ = ["distinct_classes"]

#: The fewest items of a class, and the least mean probability of an item of it.
FEWEST: Final = 10.0
PURE: Final = 0.8


def distinct_classes(labels: Ints, found: Guess | None, classes: int) -> NDArray[np.bool_]:
    """For each class, whether it stands out under what was found; no class if nothing was.

    >>> labels = np.array([(s, m, int(s < 20), 0) for s in range(100) for m in range(3)])
    >>> rows = np.array([[[0.95, 0.05], [0.1, 0.9]]] * 3)
    >>> good = Guess(np.full(3, 0.9), rows, np.array([0.8, 0.2]))
    >>> distinct_classes(labels, good, 2).tolist()
    [True, True]
    >>> distinct_classes(labels[30:], good, 2).tolist()  # ten items of the second class
    [True, False]
    >>> distinct_classes(labels, good._replace(prior=np.array([0.5, 0.5])), 2).tolist()
    [False, False]
    """
    unknown = found is None or (found.prior is not None and not np.ptp(found.prior))
    if found is None or unknown or not len(labels):
        return np.zeros(classes, np.bool_)
    q = posteriors(opinions(labels, *found.read(classes))[1])
    squares, sums = (q**2).sum(axis=0), q.sum(axis=0)
    return np.asarray((squares >= FEWEST) & (squares >= PURE * sums))
