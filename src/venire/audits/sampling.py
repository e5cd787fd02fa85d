"""Which items somebody trusted should label for a rate: more of those that judges doubt.

Active inference (Zrnic and Candes, "Active statistical inference", 2024): a trusted label narrows
the interval the more, the less the judges know the item's value. Items are drawn with known
probabilities, and each counts for one over its own, so that nothing is assumed about the judges.
Here the probabilities are those of cells (see below): in each cell a number of items
is drawn at random, in proportion to its size times its expected spread (Neyman, 1934).

Which verdicts are audited: drawn by a seed, so that nobody chooses.

**Cells of items whose judges say alike, in which trusted labels are counted.**

Cells are nested: first by the verdict, then by halves and quarters of what the judges say, as many
as the number of trusted labels carries. Who draws and who estimates cut the same cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from venire.errors import InputError
from venire.tools.arrays import Floats, Ints

#: Trusted labels from which cells are halved once more.
HALVING_GOLD = (80, 240)

#: A cell with fewer trusted labels is joined with its neighbour.
CELL_GOLD = 2


def halvings(gold: int) -> int:
    """How often the cells of a verdict are halved, given the number of trusted labels.

    >>> halvings(50), halvings(100), halvings(500)
    (0, 1, 2)
    """
    return sum(gold >= enough for enough in HALVING_GOLD)


def cells_of(said: Floats, score: Floats, times: int) -> Ints:
    """The cell of each item, numbered by what the judges say.

    `said` is the value of its verdict, `score` what its value is expected to be. Those of equal
    score are never parted.

    >>> said, score = np.array([0, 0, 1, 1, 1, 1.0]), np.array([0, 0.2, 0.6, 0.7, 0.7, 0.9])
    >>> cells_of(said, score, 0).tolist(), cells_of(said, score, 1).tolist()
    ([0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 3, 3])
    """
    cells = np.unique(said, return_inverse=True)[1].astype(np.int64)
    for _ in range(times):
        upper = np.zeros(len(cells), np.int64)
        for cell in range(int(cells.max(initial=-1)) + 1):
            inside = np.flatnonzero(cells == cell)
            values = np.sort(score[inside])
            middle = values[len(values) // 2]
            if middle > values[0]:  # the side of ties is the upper one
                upper[inside] = score[inside] >= middle
            elif values[-1] > middle:
                upper[inside] = score[inside] > middle
        cells = np.unique(2 * cells + upper, return_inverse=True)[1].astype(np.int64)
    return cells


def merged(cells: Ints, place: Ints, least: int = CELL_GOLD) -> Ints:
    """The cells, those with too few trusted labels joined with a neighbour.

    >>> merged(np.array([0, 0, 1, 2, 2]), np.array([0, 1, 3, 4])).tolist()
    [0, 0, 1, 1, 1]
    """
    counts = np.bincount(cells[place], minlength=int(cells.max()) + 1)
    new, cell, seen = np.zeros(len(counts), np.int64), 0, 0
    for k, count in enumerate(counts.tolist()):
        new[k], seen = cell, seen + count
        if seen >= least and k + 1 < len(counts):
            cell, seen = cell + 1, 0
    if seen < least:
        new[new == cell] = max(cell - 1, 0)
    return np.asarray(new[cells])


class Drawn(NamedTuple):
    """A task to be audited; `extra` if it was drawn for its class, not at random from all."""

    task: Any
    extra: bool = False


def draw_audit(
    verdicts: Mapping[Any, Hashable], share: float, seed: int, at_least: int = 0
) -> list[Drawn]:
    """Draw a share of the verdicts at random, and more of the classes of which these are few.

    All tasks are shuffled by the seed. The first of them are the sample; those of a rare class
    that come after it are extra, until there are `at_least` of that class. Both are to be audited
    in the order of the list: who stops early has still audited a random part. With a larger share
    and the same seed the sample goes on where it ended.

    Parameters
    ----------
    verdicts
        The verdict on each task, such as `labels_` of an estimator. The order does not matter.
    share
        Of the verdicts: above 0, at most 1; one is drawn in any case.
    seed
        Another seed, another draw. Keep it from those who label, as long as they label.
    at_least
        So many audits of every class of verdicts, or all that there are.

    Examples
    --------
    >>> verdicts = {f"post-{i}": "spam" if i % 10 == 0 else "ok" for i in range(100)}
    >>> [task for task, _ in draw_audit(verdicts, 0.04, seed=1)]
    ['post-52', 'post-16', 'post-23', 'post-82']
    >>> [task for task, extra in draw_audit(verdicts, 0.04, seed=1, at_least=2) if extra]
    ['post-80', 'post-70']
    """
    if not 0 < share <= 1:
        raise InputError(f"got the share {share:g}, expected more than 0, at most 1: 0.05 for 5 %")
    if at_least < 0 or seed < 0:
        raise InputError(f"got at_least {at_least} and seed {seed}, expected numbers from 0")
    if not verdicts:
        raise InputError("there are no verdicts, expected at least one to draw from")
    tasks = sorted(verdicts, key=str)
    sampled = max(1, round(share * len(tasks)))
    drawn: list[Drawn] = []
    counts: Counter[Hashable] = Counter()
    for place, i in enumerate(np.random.default_rng(seed).permutation(len(tasks)).tolist()):
        label = verdicts[tasks[i]]
        if place < sampled or counts[label] < at_least:
            counts[label] += 1
            drawn.append(Drawn(tasks[i], extra=place >= sampled))
    return drawn


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
    least = CELL_GOLD if n >= 2 * CELL_GOLD * len(sizes) else 0
    counts = np.maximum(counts, np.minimum(sizes, least))
    while counts.sum() > n:
        counts[int(np.argmax(counts - wanted))] -= 1
    while counts.sum() < n:
        short = np.where(counts < sizes, wanted - counts, -np.inf)
        counts[int(np.argmax(short))] += 1
    return np.asarray(counts, np.int64)
