"""An audit: which items somebody trusted should label, and the error rate that follows.

Which verdicts are audited is drawn by a seed, so that nobody chooses (`draw_audit`); audits come
one by one, and bound the error rate overall and for each class (`audit_bounds`).

For a rate (`draw_for_rate`, `venire.audits.rates`) more is asked of what judges doubt. Active
inference (Zrnic and Candes, "Active statistical inference", 2024): a trusted label narrows the
interval the more, the less the judges know the item's value. Items are drawn with known
probabilities, and each counts for one over its own, so that nothing is assumed about the judges.
Here the probabilities are those of cells: in each cell a number of items is drawn at random, in
proportion to its size times its expected spread (Neyman, 1934).

Cells are nested: first by the verdict, then by halves and quarters of what the judges say, as many
as the number of trusted labels carries. Who draws and who estimates cut the same cells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from venire.audits.intervals import check_level, upper_count, upper_rate
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


def check_verdicts(verdicts: Mapping[Any, Hashable], gold: Mapping[Any, Hashable]) -> None:
    """Refuse trusted labels of items without a verdict."""
    if not verdicts:
        raise InputError("there are no verdicts, expected at least one")
    strange = next((task for task in gold if task not in verdicts), None)
    if strange is not None:
        raise InputError(
            f"there is no verdict on {strange!r}, expected one on every item with a trusted label: "
            "give the verdicts that these were drawn from"
        )


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


@dataclass
class ErrorBound:
    """What audits drawn at random say about an error rate, at all times.

    With probability `level` the rate is below `upper` after every audit at once, so that one may
    look whenever one likes and stop when the bound is good enough. The same holds of `interval`,
    which is bounded on both sides and therefore a little wider above.

    Parameters
    ----------
    level
        The probability with which a bound holds.
    size
        Of how many verdicts the audits are drawn without replacement: the bound is then on the
        share of these that are wrong, and there is nothing left to doubt when all are audited.
        None for verdicts of a process that goes on, whose rate of errors does not change.

    Attributes
    ----------
    audited, wrong, skipped
        How many were drawn and looked at; how many of them are wrong; of how many the auditor
        could not say. These count as wrong in upper bounds and as right in lower ones.

    Examples
    --------
    >>> bound = ErrorBound(size=2000)
    >>> for wrong in [False] * 95 + [True] * 5:
    ...     bound.update(wrong)
    >>> bound.audited, bound.wrong, bound.estimate, round(bound.upper, 4)
    (100, 5, 0.05, 0.132)
    >>> bound.update_many([False] * 100)
    >>> round(bound.upper, 4), [round(end, 4) for end in bound.interval]
    (0.066, [0.0035, 0.0715])

    See Also
    --------
    venire.audits.intervals : the method
    """

    level: float = 0.95
    size: int | None = None
    audited: int = 0
    wrong: int = 0
    skipped: int = 0

    def __post_init__(self) -> None:
        check_level(self.level)
        if self.size is not None and self.size < 1:
            raise InputError(f"got size {self.size}, expected a number of verdicts from 1, or None")
        counts = self.audited, self.wrong, self.skipped
        if min(counts) < 0 or self.wrong + self.skipped > self.audited:
            raise InputError(
                f"got {self.wrong} wrong and {self.skipped} skipped of {self.audited} audited, "
                "expected counts from 0 of which the first two are parts of the third"
            )
        self._check_size(0)

    def update(self, wrong: bool | None) -> None:
        """Count one audit: whether the verdict was wrong, None if the auditor could not say."""
        self.update_many([wrong])

    def update_many(self, wrong: Iterable[bool | None]) -> None:
        """Count several audits."""
        new = list(wrong)
        self._check_size(len(new))
        self.audited += len(new)
        self.skipped += sum(x is None for x in new)
        self.wrong += sum(bool(x) for x in new)

    @property
    def estimate(self) -> float | None:
        """The share that is wrong of those audited; None before the first."""
        said = self.audited - self.skipped
        return self.wrong / said if said else None

    @property
    def upper(self) -> float:
        """The rate is at most this, with probability `level`, at all times."""
        return self._upper(self.wrong + self.skipped, self.level)

    @property
    def interval(self) -> tuple[float, float]:
        """The rate is between these, with probability `level`, at all times.

        Half of what may go wrong is given to either side; the lower end is the upper bound on
        the share of right verdicts, seen from the other side.
        """
        half = (1 + self.level) / 2
        return self._lower(half), self._upper(self.wrong + self.skipped, half)

    def _lower(self, level: float) -> float:
        right = self.audited - self.wrong
        if self.size is None:
            return 1 - float(upper_rate(right, self.audited, level))
        return (self.size - upper_count(right, self.audited, self.size, level)) / self.size

    def _upper(self, count: int, level: float) -> float:
        if self.size is None:
            return float(upper_rate(count, self.audited, level))
        return upper_count(count, self.audited, self.size, level) / self.size

    def _check_size(self, more: int) -> None:
        if self.size is not None and self.audited + more > self.size:
            raise InputError(
                f"got {self.audited + more} audits of {self.size} verdicts, expected each once: "
                "raise size, or leave it out for verdicts of a process that goes on"
            )


@dataclass(frozen=True)
class AuditReport:
    """The error rate of all verdicts, and of those that say each class.

    Every bound holds at its level by itself. For all of them together, divide what may go wrong
    by their number: with four classes and all of them, level 0.99 each for 0.95 together.
    """

    overall: ErrorBound
    classes: dict[Hashable, ErrorBound]


def audit_bounds(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable | None],
    drawn: Iterable[Drawn] | None = None,
    level: float = 0.95,
    ongoing: bool = False,
) -> AuditReport:
    """Compare verdicts with the trusted labels of those that were drawn.

    Parameters
    ----------
    verdicts
        The verdict on each task, all of those that were drawn from.
    gold
        The trusted label of each audited task; None where it could not be said.
    drawn
        The tasks in the order in which they were drawn (`draw_audit`); by default those of `gold`.
        Extra ones count for their class only. Tasks without gold at the end were not yet audited;
        any before are skipped: they count as wrong in upper bounds, as right in lower ones.
    level
        The probability with which each bound holds.
    ongoing
        Whether verdicts to come are meant too, not only these.

    Examples
    --------
    >>> from venire.audits import draw_audit
    >>> verdicts = {i: "spam" if i % 10 == 0 else "ok" for i in range(1000)}
    >>> drawn = draw_audit(verdicts, 0.1, seed=1)
    >>> gold = {task: "eggs" if task % 13 == 0 else verdicts[task] for task, _ in drawn}
    >>> report = audit_bounds(verdicts, gold, drawn)
    >>> report.overall.audited, report.overall.wrong, round(report.overall.upper, 3)
    (100, 8, 0.172)
    >>> {label: round(bound.upper, 3) for label, bound in report.classes.items()}
    {'spam': 0.36, 'ok': 0.183}
    """
    listed = [Drawn(task) for task in gold] if drawn is None else list(drawn)
    _check(verdicts, gold, listed)
    sizes = Counter(verdicts.values())
    overall = ErrorBound(level, None if ongoing else len(verdicts))
    classes = {label: ErrorBound(level, None if ongoing else size) for label, size in sizes.items()}
    for task, extra in _audited(gold, listed):
        truth, label = gold.get(task), verdicts[task]
        wrong = None if truth is None else truth != label
        classes[label].update(wrong)
        if not extra:
            overall.update(wrong)
    return AuditReport(overall, classes)


def _audited(gold: Mapping[Any, Hashable | None], listed: list[Drawn]) -> list[Drawn]:
    known = [i for i, (task, _) in enumerate(listed) if gold.get(task) is not None]
    return listed[: known[-1] + 1] if known else []


def _check(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable | None],
    listed: list[Drawn],
) -> None:
    tasks = [task for task, _ in listed]
    strange = next((task for task in tasks if task not in verdicts), None)
    if strange is not None:
        raise InputError(
            f"there is no verdict on {strange!r}, expected one on every audited task: give the "
            "verdicts that the audit was drawn from"
        )
    if len(set(tasks)) < len(tasks):
        twice = Counter(tasks).most_common(1)[0][0]
        raise InputError(f"task {twice!r} was drawn twice, expected each once: drop one of them")
    chosen = next(iter(gold.keys() - set(tasks)), None)
    if chosen is not None:
        raise InputError(
            f"task {chosen!r} has gold and was not drawn, expected gold of drawn tasks only: one "
            "that somebody chose says nothing about the others, so leave it out"
        )
