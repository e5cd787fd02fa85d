"""A plain loop that buys labels, the simplest rival of `venire label`, with lists and NumPy.

One label for each item, then thirty rounds: fit Dawid-Skene, and ask the best labelers of the items
that are most doubtful.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from venire.labels import LabelTable

Floats = NDArray[np.float64]

ROUNDS = 30
STEPS = 12


def buy_plainly(table: LabelTable, labels: int, seed: int) -> NDArray[np.int64]:
    """The places in the table of the labels that were bought."""
    rng = np.random.default_rng(seed)
    n, M, K = len(table.items), len(table.labelers), len(table.classes)
    left = [list(range(int(table.start[i]), int(table.start[i + 1]))) for i in range(n)]
    for row in left:
        rng.shuffle(row)
    got = [row.pop() for row in left if row][:labels]
    step = max(1, (labels - len(got)) // ROUNDS + 1)
    item = table.item
    while len(got) < labels:
        where = np.array(got)
        q, skill = _fit(item[where], table.labeler[where], table.said[where], n, M, K)
        doubt = 1 - q.max(axis=1) + rng.random(n) * 1e-6
        doubt[[not row for row in left]] = -1
        chosen = np.argsort(-doubt)[: min(step, labels - len(got))]
        chosen = chosen[doubt[chosen] >= 0]
        if not chosen.size:
            break
        for i in chosen.tolist():
            best = max(left[i], key=lambda e: float(skill[table.labeler[e]]))
            left[i].remove(best)
            got.append(best)
    return np.array(got, np.int64)


def _fit(
    item: NDArray[np.integer], who: NDArray[np.integer], said: NDArray[np.integer],
    n: int, M: int, K: int,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Dawid-Skene with pseudo-labels of the panel: posteriors, and the mean diagonal of each."""
    q = np.full((n, K), 1e-9)
    np.add.at(q, (item, said), 1.0)
    q /= q.sum(axis=1, keepdims=True)
    for _ in range(STEPS):
        counts = np.zeros((M, K, K))
        for k in range(K):
            np.add.at(counts[:, k], (who, said), q[item, k])
        pooled = counts.sum(axis=0) + np.eye(K) * 3 + 1
        rows = counts + 2.0 * K * pooled / pooled.sum(axis=1, keepdims=True)
        rows /= rows.sum(axis=2, keepdims=True)
        shares = q.sum(axis=0) + 1
        scores = np.tile(np.log(shares / shares.sum()), (n, 1))
        np.add.at(scores, item, np.log(rows[who, :, said]))
        q = np.exp(scores - scores.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
    return q, np.einsum("mkk->m", rows) / K
