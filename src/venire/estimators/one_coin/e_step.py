"""The E step of the one-coin model: expected right labels and the true log-likelihood."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from venire.estimators.base import Floats
from venire.estimators.passes.blocks import Blocks
from venire.estimators.passes.em import count_pass, one_coin_pass, pair_pass, share_pass
from venire.labels import LabelTable
from venire.labels.partitions import Partitions, Table

__all__ = ["CoinModel", "Hits", "coin_model"]


class Hits(NamedTuple):
    """Expected counts: of the items of each class, and of each labeler's right labels."""

    items: Floats
    right: Floats


class CoinModel:
    """Passes over a table with one competence per labeler; items without labels do not count.

    >>> with CoinModel(LabelTable.from_matrix([[0, 0], [1, 0]])) as model:
    ...     total, hits = model.expect(np.array([0.8, 0.6]), np.array([0.5, 0.5]))
    >>> round(total, 4), hits.right.round(4).tolist()
    (-2.7871, [1.5844, 1.1299])
    """

    def __init__(self, table: LabelTable, threads: int | None = None) -> None:
        self.labelers, self.classes = len(table.labelers), len(table.classes)
        self.rows = len(table.items)
        codes = self.labelers * self.classes
        self._blocks = Blocks(table, codes + self.classes, threads)
        self.items, given = self._blocks.run(count_pass, codes)
        self._said: Floats = given.reshape(self.labelers, self.classes)
        self.given: Floats = self._said.sum(axis=1)

    def shares(self) -> Hits:
        """Expected counts with the vote shares as posteriors."""
        K = self.classes
        room = K + self.labelers * K * K
        sums = self._blocks.run(share_pass, room, self._blocks.said_of, K)[1]
        return Hits(sums[:K], np.einsum("mkk->m", sums[K:].reshape(self.labelers, K, K)))

    def expect(
        self, p: Floats, priors: Floats, posteriors: Floats | None = None
    ) -> tuple[float, Hits]:
        """Log-likelihood and expected counts; `posteriors` receives those of items with labels."""
        log_right = np.log(p)
        log_wrong = np.log1p(-p) - np.log(self.classes - 1)
        if self.classes == 2:
            return self._pairs(log_right, log_wrong, np.log(priors), posteriors)
        K = self.classes
        weight = np.repeat(log_right - log_wrong, K)
        given = weight, np.exp(weight), self._blocks.said_of, priors
        run = self._blocks.run
        total, sums = run(one_coin_pass, weight.size + K, *given, posteriors=posteriors)
        right = sums[:-K].reshape(self._said.shape).sum(axis=1)
        return total + float(self.given @ log_wrong), Hits(sums[-K:], right)

    def conclude(self, p: Floats, priors: Floats) -> tuple[float, Hits, Floats]:
        """The same, and the posteriors of all items: items without labels have the priors."""
        posteriors = np.empty((self.rows, self.classes))
        posteriors[np.diff(self._blocks.table.start) == 0] = priors
        return *self.expect(p, priors, posteriors), posteriors

    def _pairs(
        self, log_right: Floats, log_wrong: Floats, log_prior: Floats, posteriors: Floats | None
    ) -> tuple[float, Hits]:
        weight = np.stack([log_wrong - log_right, log_right - log_wrong], axis=1).ravel()
        odds = float(log_prior[1] - log_prior[0])
        room = weight.size + 1
        given = weight, np.exp(weight), odds
        total, sums = self._blocks.run(pair_pass, room, *given, posteriors=posteriors)
        zeros, ones = self._said[:, 0], self._said[:, 1]
        total += float(zeros @ log_right + ones @ log_wrong + self.items * log_prior[0])
        right = sums[1:-1:2] + np.maximum(zeros - sums[:-1:2], 0.0)
        return total, Hits(np.array([self.items - sums[-1], sums[-1]]).clip(0.0), right)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.__exit__()


def coin_model(table: Table, threads: int | None = None) -> CoinModel:
    """The model of a table, in one piece or in partitions."""
    if isinstance(table, Partitions):
        model: CoinModel = table.model(CoinModel)
        return model
    return CoinModel(table, threads)
