"""Which items somebody trusted should label for a rate: more of those that judges doubt.

Active inference (Zrnic and Candes, "Active statistical inference", 2024): a trusted label narrows
the interval the more, the less the judges know the item's value. Items are drawn with known
probabilities, and each counts for one over its own, so that nothing is assumed about the judges.
Here the probabilities are those of cells (`venire.audits.strata`): in each cell a number of items
is drawn at random, in proportion to its size times its expected spread (Neyman, 1934).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.audits.strata import LEAST, cells_of, halvings
from venire.errors import InputError

__all__ = ["Asked", "allotted", "draw_for_rate"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Judges are taken to be wrong on this share of items at least, however sure they are.
DOUBT: Final = 0.1


class Asked(NamedTuple):
    """An item to be labelled, and the probability with which it was drawn."""

    task: Any
    probability: float


def draw_for_rate(
    verdicts: Mapping[Any, Hashable],
    of: Hashable,
    n: int,
    seed: int,
    scores: Mapping[Any, float] | None = None,
) -> list[Asked]:
    """Draw n items for the share of a class, its precision and its recall.

    They are in random order: who stops early has labelled a random part of each cell.

    Parameters
    ----------
    verdicts
        The verdict on every item.
    of
        The class whose share is to be known.
    n
        How many to draw.
    seed
        Another seed, another draw.
    scores
        How probable the class is for each item, by the judges. Without them every verdict is
        taken to be equally doubtful, and the draw only balances the verdicts.

    Examples
    --------
    >>> verdicts = {i: "toxic" if i < 100 else "ok" for i in range(1000)}
    >>> doubtful = {i: 0.6 if i < 100 else 0.0 for i in range(1000)}
    >>> drawn = draw_for_rate(verdicts, "toxic", 50, seed=1, scores=doubtful)
    >>> sorted({round(one.probability, 3) for one in drawn}), len(drawn)
    ([0.047, 0.08], 50)
    """
    size = len(verdicts)
    if not 0 < n <= size:
        raise InputError(f"got {n} items to draw, expected from 1 to the {size} that there are")
    if seed < 0:
        raise InputError(f"got seed {seed}, expected a number from 0")
    tasks = sorted(verdicts, key=str)
    said = np.array([float(verdicts[task] == of) for task in tasks])
    score = said if scores is None else np.array([scores[task] for task in tasks], np.float64)
    cells = cells_of(said, score, halvings(n))
    counts = allotted(cells, score, n)
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(np.flatnonzero(cells == k), count, replace=False)
        for k, count in enumerate(counts.tolist())
    ]
    shares = counts / np.bincount(cells)
    order = rng.permutation(np.concatenate(chosen))
    return [Asked(tasks[i], float(shares[cells[i]])) for i in order.tolist()]


def allotted(cells: Ints, score: Floats, n: int) -> Ints:
    """How many of the n go to each cell.

    >>> allotted(np.array([0] * 90 + [1] * 10), np.array([0.0] * 90 + [0.5] * 10), 20).tolist()
    [17, 3]
    """
    sizes = np.bincount(cells)
    true = DOUBT + (1 - 2 * DOUBT) * score
    spread = np.bincount(cells, np.sqrt(true * (1 - true)))
    wanted = n * spread / spread.sum()
    counts = np.minimum(np.floor(wanted).astype(np.int64), sizes)
    counts = np.maximum(counts, np.minimum(sizes, LEAST if n >= 2 * LEAST * len(sizes) else 0))
    while counts.sum() > n:
        counts[int(np.argmax(counts - wanted))] -= 1
    while counts.sum() < n:
        short = np.where(counts < sizes, wanted - counts, -np.inf)
        counts[int(np.argmax(short))] += 1
    return np.asarray(counts, np.int64)
