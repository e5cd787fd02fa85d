"""A table of labels, replayed without some of its labelers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.auto import Auto
from venire.estimators.families import Families
from venire.labels import LabelTable
from venire.labels.subset import keep_labels
from venire.panels.yardstick import Verdicts, verdicts_of

__all__ = ["Replayed"]

#: The most replays whose verdicts are kept.
KEPT: Final = 256


class Replayed:
    """What the verdicts would have been with some of the labelers only.

    A replay fits the product's own method anew to the labels of those who stay, so skills,
    copies and screening are what they would have been too.

    >>> table = LabelTable.from_matrix([[0, 1, 0], [1, 1, 1], [1, 0, 0]] * 10)
    >>> replayed = Replayed(table)
    >>> replayed.verdicts([0, 1, 2]).argmax(axis=1)[:3].tolist()
    [0, 1, 0]
    >>> replayed.verdicts([1]).argmax(axis=1)[:3].tolist()
    [1, 1, 0]
    """

    def __init__(
        self,
        table: LabelTable,
        seed: int = 0,
        watch: Callable[[int], None] | None = None,
        families: Families | None = None,
    ) -> None:
        self.table, self.fits = table, 0
        self._seed, self._watch, self._families = seed, watch, families
        self._kept: dict[frozenset[int], Verdicts] = {}

    def fit(self, members: Iterable[int]) -> Auto:
        """The default method on the labels of these labelers, by number."""
        self.fits += 1
        if self._watch is not None:
            self._watch(self.fits)
        on = np.zeros(len(self.table.labelers), np.bool_)
        on[list(members)] = True
        left = keep_labels(self.table, on[self.table.labeler])
        return Auto(self._families, seed=self._seed).fit(left)

    def verdicts(self, members: Iterable[int]) -> Verdicts:
        """Their verdicts."""
        some = frozenset(members)
        if not some:
            return np.zeros((len(self.table.items), len(self.table.classes)))
        if some not in self._kept:
            if len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[some] = verdicts_of(self.fit(some))
        return self._kept[some]

    def spent(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the labels of each labeler cost."""
        given = np.bincount(self.table.labeler, minlength=len(self.table.labelers))
        return np.asarray(given * prices)
