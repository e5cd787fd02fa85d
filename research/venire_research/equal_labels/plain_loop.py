"""The simplest adaptive rival: a plain loop that streams too, with arrays and Dawid-Skene.

The most doubtful open item comes first, and after every 3 % of the labels eight steps of EM say
again how good labelers are. Items leave at their deadline, with the verdict of that moment. There
is no policy, no test of whether EM can be believed, no exploring, and nothing is forgotten.
"""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators import DawidSkene
from venire.labels import LabelTable
from venire.paper.accuracy import one_coin
from venire_research.equal_labels.buying import Mode
from venire_research.equal_labels.replay import DEADLINE, Ints, Replay
from venire_research.equal_labels.rivals import take

__all__ = ["PLAIN_LOOP", "plain_loop"]

#: Its name among the contestants.
PLAIN_LOOP: Final = "plain-loop"

#: Labelers are learned anew whenever this share of labels is new, with this number of steps of EM.
OFTEN: Final = 0.03
STEPS: Final = 8

#: What is believed of everybody before the first fit.
UNKNOWN: Final = 0.7

Floats = NDArray[np.float64]


def plain_loop(replay: Replay, mode: Mode, labels: int, seed: int) -> tuple[LabelTable, Floats]:
    """The labels that it buys, at most `labels`, and the posteriors with which items leave.

    >>> rows = [(i, w, i % 2) for i in range(40) for w in "abc"]
    >>> stream = Replay.of(LabelTable.from_rows(rows), np.arange(40) % 2, seed=0)
    >>> bought, posteriors = plain_loop(stream, "come", 80, seed=0)
    >>> len(bought.said) <= 80, bool((posteriors.argmax(axis=1) == stream.truth).mean() > 0.9)
    (True, True)
    """
    loop = _Loop(replay, labels, np.random.default_rng([seed, 3]))
    return loop.run(mode)


class _Loop:
    """What is believed of labelers and items, and which labels are bought."""

    def __init__(self, replay: Replay, labels: int, rng: np.random.Generator) -> None:
        self.replay, self.table, self.labels, self.rng = replay, replay.table, labels, rng
        items, M, K = (len(x) for x in (self.table.items, self.table.labelers, self.table.classes))
        self.taken = np.zeros(len(self.table.said), np.bool_)
        self.rows, self.shares = one_coin(np.full(M, UNKNOWN), K), np.full(K, 1 / K)
        self.scores = np.tile(np.log(self.shares), (items, 1))
        self.doubt = np.ones(items)
        self.left = np.diff(self.table.start)
        self.spent = self.fitted = 0
        self._doubt(np.arange(items))

    def run(self, mode: Mode) -> tuple[LabelTable, Floats]:
        each = self.labels / len(self.table.items)
        gone, final = 0, np.zeros_like(self.scores)
        for slot, visitors in enumerate(self.replay.visits(each)):
            here = int(np.searchsorted(self.replay.arrival, slot, "right"))
            budget = int(each * here + 1e-9)
            if mode == "come":
                self._receive(visitors, gone, here, budget)
            else:
                self._choose(gone, here, budget)
            last = int(np.searchsorted(self.replay.arrival, slot - DEADLINE + 1, "right"))
            final[gone:last] = self._posteriors(np.arange(gone, last))
            gone = last
        bought = take(self.table, self.taken)
        final[np.diff(bought.start) == 0] = 1 / len(self.shares)
        return bought, final

    def _receive(self, visitors: Ints, gone: int, here: int, budget: int) -> None:
        """Each visitor gets the most doubtful open item that it may label."""
        item = self.table.item
        for m in visitors.tolist():
            if self.spent >= budget:
                return
            own = self.replay.entries(m)
            rows = item[own]
            able = own[~self.taken[own] & (gone <= rows) & (rows < here)]
            if len(able):
                self._buy(int(able[self.doubt[item[able]].argmax()]))

    def _choose(self, gone: int, here: int, budget: int) -> None:
        """The best labeler of the most doubtful open item is asked, and so on."""
        while self.spent < budget and self.left[gone:here].any():
            open_items = np.where(self.left[gone:here] > 0, self.doubt[gone:here], -1.0)
            i = gone + int(open_items.argmax())
            own = np.arange(self.table.start[i], self.table.start[i + 1])
            own = self.rng.permutation(own[~self.taken[own]])
            skills = np.einsum("mkk,k->m", self.rows, self.shares)
            self._buy(int(own[skills[self.table.labeler[own]].argmax()]))

    def _buy(self, entry: int) -> None:
        i, m, said = (int(x[entry]) for x in (self.table.item, self.table.labeler, self.table.said))
        self.taken[entry] = True
        self.spent += 1
        self.left[i] -= 1
        self.scores[i] += np.log(self.rows[m, :, said])
        self._doubt(np.array([i]))
        if self.spent - self.fitted >= OFTEN * self.labels:
            self._fit()

    def _fit(self) -> None:
        bought = take(self.table, self.taken)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few labels, few steps
            found = DawidSkene(max_iter=STEPS, prior=2.0).fit(bought)
        self.rows, self.shares, self.fitted = found.confusions_, found.priors_, self.spent
        self.scores[:] = np.log(self.shares)
        np.add.at(self.scores, bought.item, np.log(self.rows[bought.labeler, :, bought.said]))
        self._doubt(np.arange(len(self.scores)))

    def _doubt(self, rows: Ints) -> None:
        """How doubtful these items are; those of equal doubt come in a random order."""
        chance = 1e-6 * self.rng.random(len(rows))
        self.doubt[rows] = 1 - self._posteriors(rows).max(axis=1) + chance

    def _posteriors(self, rows: Ints) -> Floats:
        logs = self.scores[rows]
        q = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(q / q.sum(axis=1, keepdims=True))
