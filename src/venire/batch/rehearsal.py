"""How many labels a panel would need for an accuracy: a batch of made-up items is labelled.

The labelers of the rehearsal label as they were found to (`Anchored`), each for itself. It is an
estimate: labelers who share errors need more labels than that, and those of whom few labels are
known, one or two an item, are better than they were found to be and need fewer (docs/student.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.batch.recorded import Recorded, recorded_work
from venire.batch.rounds import run_rounds
from venire.budget import Budget
from venire.estimators.votes.anchored import Anchored
from venire.labels import LabelTable

__all__ = ["labels_needed"]

#: Made-up items, and the most labels for each.
ITEMS: Final = 1000
MOST: Final = 12


def labels_needed(bought: LabelTable, accuracy: float, seed: int = 0) -> float | None:
    """Labels an item with which the panel alone would be as accurate; None for more than MOST.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 6)) < 0.7, truth, 1 - truth)
    >>> few, many = (labels_needed(LabelTable.from_matrix(said), a) for a in (0.75, 0.8))
    >>> 1 <= few < many
    True
    """
    truth, table = _made_up(bought, seed)
    n = len(table.items)
    work, source = recorded_work(table), Recorded(table, np.ones(len(table.labelers)))

    def right(codes: NDArray[np.int64]) -> float:
        return float((codes == truth).mean())

    budget = Budget(labels=n * min(MOST, len(table.labelers)))
    _, curve = run_rounds(work, source, budget, seed=seed, right=right)
    before, low = 0.0, 0.0
    for point in curve:
        here, reached = point.labels / n, point.right or 0.0
        if reached >= accuracy:
            return before + (accuracy - low) / (reached - low) * (here - before) if before else here
        before, low = here, max(low, reached)
    return None


def _made_up(bought: LabelTable, seed: int) -> tuple[NDArray[np.int64], LabelTable]:
    """Items of classes as frequent as they were found to be, each labelled by everybody."""
    fitted, rng = Anchored().fit(bought), np.random.default_rng(seed)
    n, K = min(ITEMS, len(bought.items)), len(bought.classes)
    truth = rng.choice(K, p=fitted.priors_ / fitted.priors_.sum(), size=n)
    gave = np.bincount(bought.labeler, minlength=len(bought.labelers)) > 0
    sums = fitted.confusions_[gave].cumsum(axis=2)[:, truth]  # labelers x items x classes
    said = (sums[..., :-1] < rng.random((*sums.shape[:2], 1))).sum(axis=2)
    return truth, LabelTable.from_matrix(said.T, K)
