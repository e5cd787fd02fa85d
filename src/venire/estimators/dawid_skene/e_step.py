"""The E step of the full confusion-matrix model: soft counts and the true log-likelihood."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from venire.estimators.base import Floats
from venire.estimators.given import Soft
from venire.estimators.passes.blocks import Blocks
from venire.estimators.passes.em import count_pass, full_pass, pair_pass, share_pass, weigh_pass
from venire.labels import LabelTable
from venire.labels.partitions import Partitions, Table

__all__ = ["FullModel", "full_model"]


class FullModel:
    """Passes over a table; confusions are [labeler, said, truth], columns of truth sum to 1.

    Items without labels do not count. `given` are the labels of each labeler by what was said,
    `items` is how many items have labels, `rows` how many there are.

    >>> with FullModel(LabelTable.from_matrix([[0, 0], [1, 0]])) as model:
    ...     soft = model.shares()
    >>> soft.items.tolist(), soft.labels[1].tolist()
    ([1.5, 0.5], [[1.5, 0.5], [0.0, 0.0]])
    """

    def __init__(self, table: LabelTable, threads: int | None = None) -> None:
        self.labelers, self.classes = len(table.labelers), len(table.classes)
        self.rows = len(table.items)
        self._room = self.classes + self.labelers * self.classes**2
        self._blocks = Blocks(table, self._room, threads)
        codes = self.labelers * self.classes
        self.items, given = self._blocks.run(count_pass, codes)
        self.given: Floats = given.reshape(self.labelers, self.classes)

    def shares(self) -> Soft:
        """Soft counts with the vote shares as posteriors."""
        return self._soft(
            self._blocks.run(share_pass, self._room, self._blocks.said_of, self.classes)[1]
        )

    def weigh(self, posteriors: Any) -> Soft:
        """Soft counts with given posteriors."""
        run = self._blocks.run(weigh_pass, self._room, self.classes, posteriors=posteriors)
        return self._soft(run[1])

    def expect(
        self, confusions: Floats, priors: Floats, posteriors: Floats | None = None
    ) -> tuple[float, Soft]:
        """Log-likelihood and soft counts; `posteriors` receives those of items with labels."""
        if self.classes == 2:
            return self._pairs(np.log(confusions), np.log(priors), posteriors)
        said = np.ascontiguousarray(confusions.reshape(-1, self.classes))
        given = np.log(said), said, np.log(priors)
        total, sums = self._blocks.run(full_pass, self._room, *given, posteriors=posteriors)
        return total, self._soft(sums)

    def conclude(self, confusions: Floats, priors: Floats) -> tuple[float, Soft, Floats]:
        """The same, and the posteriors of all items: items without labels have the priors."""
        posteriors = np.empty((self.rows, self.classes))
        posteriors[np.diff(self._blocks.table.start) == 0] = priors
        return *self.expect(confusions, priors, posteriors), posteriors

    def _pairs(
        self, log_said: Floats, log_prior: Floats, posteriors: Floats | None
    ) -> tuple[float, Soft]:
        weight = (log_said[..., 1] - log_said[..., 0]).ravel()
        odds = float(log_prior[1] - log_prior[0])
        room = weight.size + 1
        given = weight, np.exp(weight), odds
        total, sums = self._blocks.run(pair_pass, room, *given, posteriors=posteriors)
        total += float((self.given * log_said[..., 0]).sum() + self.items * log_prior[0])
        second = sums[:-1].reshape(self.given.shape)
        labels = np.stack([np.maximum(self.given - second, 0.0), second], axis=-1)
        return total, Soft(np.array([self.items - sums[-1], sums[-1]]).clip(0.0), labels)

    def _soft(self, sums: Floats) -> Soft:
        K = self.classes
        return Soft(sums[:K], sums[K:].reshape(self.labelers, K, K))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.__exit__()


def full_model(table: Table, threads: int | None = None) -> FullModel:
    """The model of a table, in one piece or in partitions."""
    if isinstance(table, Partitions):
        model: FullModel = table.model(FullModel)
        return model
    return FullModel(table, threads)
