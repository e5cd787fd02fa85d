"""Labels that are there already, as a source of answers: how to try a budget on old data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import NDArray

from venire.batch.work import Work, check_target
from venire.errors import InputError
from venire.labels import LabelTable

__all__ = ["Recorded", "recorded_work"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def recorded_work(
    table: LabelTable, target: float | None = None, weights: Mapping[Hashable, float] | None = None
) -> Work:
    """Who may label what: those who did.

    >>> recorded_work(LabelTable.from_matrix([[0, 1], [-1, 1]])).labeler.tolist()
    [0, 1, 1]
    """
    check_target(target)
    n = len(table.items)
    weight = np.array([(weights or {}).get(name, 1.0) for name in table.items], np.float64)
    goal = np.full(n, np.inf if target is None else target)
    labeler = table.labeler.astype(np.int64)
    return Work(table.items, table.labelers, table.start, labeler, weight, goal)


class Recorded:
    """Answers out of a table of labels; every labeler has one price.

    >>> source = Recorded(LabelTable.from_matrix([[0, 1], [-1, 1]]), np.array([1.0, 2.0]))
    >>> [a.tolist() for a in source.ask(np.array([2, 0]))]
    [[1, 0], [2.0, 1.0]]
    """

    def __init__(self, table: LabelTable, price: Floats) -> None:
        """`price` is in the order of `table.labelers`."""
        if len(price) != len(table.labelers) or not (price >= 0).all():
            raise InputError("expected a price of 0 or more for each labeler of the table")
        self.classes: tuple[Hashable, ...] = tuple(table.classes)
        self.price = self.most = price.astype(np.float64)
        self.open = np.ones(len(price), np.bool_)
        self.ended = False
        self.trouble: str | None = None
        self.confidence: Floats | None = None
        self.rationales: dict[int, str] = {}
        self._labeler, self._said = table.labeler, table.said

    def ask(self, entries: Ints) -> tuple[Ints, Floats]:
        """What was said, as numbers of classes, and what each of it costs."""
        return self._said[entries].astype(np.int64), self.price[self._labeler[entries]]

    def left_over(self) -> tuple[Ints, Ints, Floats]:
        """Answers that were paid for and not asked for: none."""
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
