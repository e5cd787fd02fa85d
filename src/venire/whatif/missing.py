"""Labels that a log does not hold, drawn from what was learned about their labelers."""

from __future__ import annotations

from collections.abc import Hashable
from statistics import median_low

import numpy as np

from venire.estimators.auto import Auto
from venire.labels.stable_draws import name_draws
from venire.whatif.recorded import Pair, Recorded

__all__ = ["Drawn"]


class Drawn:
    """Draws the missing labels of a recorded stream; the same seed gives the same labels.

    An item's class is drawn once from its posterior given every label in the log, and a label
    from the confusion matrix of its labeler, so all labels of an item are about the same class.
    """

    def __init__(self, recorded: Recorded, fitted: Auto, seed: int) -> None:
        self._classes, self._seed = list(fitted.table_.classes), seed
        self._row = {name: s for s, name in enumerate(fitted.table_.items)}
        self._number = {name: m for m, name in enumerate(fitted.table_.labelers)}
        self._posteriors, self._rows = fitted.posteriors_, fitted.confusions_
        shares = self._posteriors.mean(axis=0)
        self._prior, self._mean_row = shares / shares.sum(), self._rows.mean(axis=0)
        delays = dict[str, list[int]]()
        for (_, labeler), every in recorded.asked.items():
            for asked in every:
                waits = [event.slot - asked.slot for _, event in asked.answers[-1:]]
                delays.setdefault(labeler, []).extend(waits)
        self._delay = {name: median_low(slots) for name, slots in delays.items() if slots}

    def label(self, pair: Pair) -> Hashable:
        """What the labeler would have said of the item."""
        item, labeler = pair
        known = item in self._row
        q = self._posteriors[self._row[item]] if known else self._prior
        truth = self._draw(f"class of {item}", q)
        m = self._number.get(labeler)
        row = self._mean_row[truth] if m is None else self._rows[m, truth]
        said: Hashable = self._classes[self._draw(f"{labeler} on {item}", row)]
        return said

    def delay(self, pair: Pair) -> int:
        """How many slots the labeler would have taken: as usual."""
        return self._delay.get(pair[1], 0)

    def _draw(self, name: str, shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
        drawn = float(name_draws([name], [""], self._seed)[0, 0])
        place = int(np.searchsorted(np.cumsum(shares), drawn * shares.sum(), side="right"))
        return min(place, len(shares) - 1)
