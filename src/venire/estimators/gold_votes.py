"""The vote that gold gives: each labeler counts by how often it was right where the truth is known.

Methods that stay near the vote start from it. Where most labelers share their errors the vote is
theirs, and whoever is right contradicts it; nothing in the labels can show that. Gold can: if what
was learned from all labels is wrong on gold significantly more often than the labelers' record on
gold is, then the verdicts follow that record alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import TINY, Floats
from venire.estimators.given import Gold, fixed_counts, gold_classes
from venire.estimators.passes.vote_counts import vote_pass
from venire.labels import LabelTable
from venire.paper.accuracy import one_coin

__all__ = ["GoldVotes", "gold_votes"]

#: Pseudo-labels of each labeler on gold items, as often right as the panel is on them.
SHRINK: Final = 8.0

#: Fewer gold items than this are known truth, and say nothing of who is better than others.
FEWEST: Final = 10

#: Right and wrong pseudo-items of the panel.
PANEL: Final = (7.0, 3.0)

#: Standard errors by which the record on gold must be better than what was learned.
SIGNIFICANT: Final = 2.0


class GoldVotes(NamedTuple):
    """The class of each item (-1: not known), the labelers' weights, and the weighted votes.

    `rates` are how often each labeler is right by gold, shrunk towards the panel's `mean`; `given`
    and `right` count its labels on gold items.
    """

    known: NDArray[np.int64]
    mean: float
    rates: Floats
    weights: Floats
    shares: Floats
    given: NDArray[np.int64]
    right: NDArray[np.int64]

    def gold(self, table: LabelTable) -> dict[Hashable, Hashable]:
        """The known classes by name."""
        places = np.flatnonzero(self.known >= 0).tolist()
        return {table.items[i]: table.classes[self.known[i]] for i in places}

    def settle(self, posteriors: Floats) -> Floats:
        """Write the known classes into posteriors."""
        gold = self.known >= 0
        posteriors[gold] = np.eye(posteriors.shape[1])[self.known[gold]]
        return posteriors

    def overrule(self, table: LabelTable, confusions: Floats, priors: Floats) -> bool:
        """Whether the record on gold is better than these matrices, on the gold items themselves.

        The matrices may have seen the gold; the record of a labeler is taken without the item that
        it is tested on. So gold overrules only what is clearly wrong.
        """
        item, labeler, said = self._told(table)
        truth, K = self.known[item], len(table.classes)
        learned = np.tile(np.log(priors.clip(TINY)), (len(self.known), 1))
        np.add.at(learned, item, np.log(confusions.clip(TINY))[labeler, :, said])
        hits = self.right[labeler] - (said == truth) + SHRINK * self.mean
        rate = (hits / (self.given[labeler] - 1 + SHRINK)).clip(1 / K, 1 - TINY)
        record = np.zeros(learned.shape)
        np.add.at(record, (item, said), np.log(rate * (K - 1) / (1 - rate)))
        tested = np.unique(item)
        truth = self.known[tested]
        better = _hits(record[tested], truth) - _hits(learned[tested], truth)
        spread = float(np.sqrt((better**2).sum()))
        return spread > 0 and float(better.sum()) > SIGNIFICANT * spread

    def record(self, table: LabelTable) -> tuple[Floats, Floats]:
        """Confusion matrices by the record on gold alone, and the posteriors that follow."""
        K = len(table.classes)
        coins = one_coin(self.rates, K)
        counts = fixed_counts(table, self.known).labels.transpose(0, 2, 1) + SHRINK * coins
        rows = (counts / counts.sum(axis=2, keepdims=True)).clip(TINY)
        logs = np.zeros((len(table.items), K))
        np.add.at(logs, table.item, np.log(rows)[table.labeler, :, table.said])
        posteriors = np.exp(logs - logs.max(axis=1, keepdims=True))
        return rows, self.settle(posteriors / posteriors.sum(axis=1, keepdims=True))

    def _told(self, table: LabelTable) -> tuple[NDArray[np.int64], ...]:
        """Item, labeler and class of the labels on gold items."""
        told = (self.known >= 0)[table.item]
        return tuple(a[told].astype(np.int64) for a in (table.item, table.labeler, table.said))


def gold_votes(table: LabelTable, gold: Gold | None) -> GoldVotes | None:
    r"""The votes on a table, labelers weighted by gold; None without gold for any of its items.

        a_m = ( shrink * panel's share + times m was right ) / ( shrink + labels of m on gold )
        w_m = max( 0, (K a_m - 1) / (K - 1) )

    These are the weights of `WeightedMajority`, with the truth in the place of the vote: 0 at
    chance, 1 for one who is always right. Who has labelled no gold counts like the panel, and with
    fewer than ten gold items everybody does.

    >>> rows = [(i, m, "yes") for i in range(20) for m in ("ann", "bob")]
    >>> table = LabelTable.from_rows([*rows, (20, "ann", "no")])
    >>> gold_votes(table, dict.fromkeys(range(12, 21), "yes")).weights.tolist()
    [1.0, 1.0]
    >>> gold_votes(table, dict.fromkeys(range(10, 21), "yes")).weights.round(2).tolist()
    [0.73, 0.83]
    """
    known = gold_classes(table, gold)
    if known is None or not (known >= 0).any():
        return None
    M, K = len(table.labelers), len(table.classes)
    truth = known[table.item]
    given = np.bincount(table.labeler[truth >= 0], minlength=M)
    right = np.bincount(table.labeler[table.said == truth], minlength=M)
    mean = _panel_mean(table, truth)
    rates = (right + SHRINK * mean) / (given + SHRINK)
    weights = np.maximum(K * rates - 1, 0.0) / (K - 1)
    if not weights.any() or np.count_nonzero(known >= 0) < FEWEST:
        weights = np.ones(M)
    shares = np.empty((len(table.items), K))
    vote_pass(table.start, table.labeler, table.said, weights, shares)
    votes = GoldVotes(known, mean, rates, weights, shares, given, right)
    votes.settle(shares)
    return votes


def _panel_mean(table: LabelTable, truth: NDArray[np.int64]) -> float:
    """How often the panel is right: the mean over gold items, with pseudo-items."""
    given = np.bincount(table.item[truth >= 0], minlength=len(table.items))
    right = np.bincount(table.item[table.said == truth], minlength=len(table.items))
    shares = right[given > 0] / given[given > 0]
    return float((shares.sum() + PANEL[0]) / (len(shares) + sum(PANEL)))


def _hits(scores: Floats, truth: NDArray[np.int64]) -> Floats:
    """1 where the truth has the largest score, 1/t where t classes have it, otherwise 0."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-9
    return np.asarray(best[np.arange(len(truth)), truth] / best.sum(axis=1))
