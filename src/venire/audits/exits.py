r"""A guarantee for verdicts that leave one by one: at most a stated share of the marked is wrong.

Verdicts leave in some order, and each is drawn to be audited with the same probability p, by a coin
that nobody can foresee. Take the verdicts that are at least so sure, and of these the wrong ones,
in the order in which they left. **Each error is drawn with probability p, whatever came before**:
that is all that is assumed. Labelers may be of any kind, change, or know how the test stands.

After n errors of which W were drawn, somebody who bets that errors are drawn less often than p has
the capital K(p; W, n) of `venire.audits.intervals`, a martingale that starts at 1. By Ville's
inequality it ever reaches 1/a with probability a at most. K rises with n and falls with W. So if a
set of N verdicts is marked only when

    K(p; W', floor(e N) + 1) >= 1/a,      W' = drawn ones that are wrong, or have no answer yet,

and more than e N of them were wrong after all, K(p; W, n) would have reached 1/a at their true
number n > e N, as W' >= W: an event of probability a. That holds for all times together.

It is done for a few thresholds that are fixed beforehand, `thresholds`, each with its part of a.
What passed stays proven: the verdicts that had left by then are marked, whatever comes later. Of
the thresholds, the one with most verdicts so marked is in force.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from venire.audits.intervals import SLACK, check_level, log_capital
from venire.errors import InputError
from venire.tools.arrays import Bools, Floats

#: The thresholds are one minus these multiples of the share that may be wrong; the last is all.
MULTIPLES: Final = (0.5, 1.0, 2.0, 4.0, math.inf)

#: Numbers of further audits of which it is said what they would buy.
MORE: Final = (50, 100, 200, 400, 800)


def thresholds(right: float) -> Floats:
    """The confidences from which on verdicts are tested, the surest first.

    >>> thresholds(0.95).tolist()
    [0.975, 0.95, 0.9, 0.8, 0.0]
    """
    return np.maximum(0.0, 1 - np.array(MULTIPLES) * round(1 - right, 12)).round(12)


class ExitThreshold(NamedTuple):
    """The verdicts that are at least so sure.

    Attributes
    ----------
    confidence
        The least.
    verdicts, coverage
        How many there are, and their share of all verdicts.
    audited, wrong, due
        How many of them were audited, how many of these are wrong, and how many more were drawn.
    bound
        At most this share of them is wrong, with the audits that are due counted as wrong; all
        thresholds hold together at the level of the guarantee.
    through
        The number of the last verdict up to which those above the threshold are proven to be good
        enough; 0 if never.
    """

    confidence: float
    verdicts: int
    coverage: float
    audited: int
    wrong: int
    due: int
    bound: float
    through: int


class ExitGuarantee(NamedTuple):
    """Which verdicts are guaranteed.

    Attributes
    ----------
    right, level, share
        With probability `level` at least the share `right` of the marked verdicts is right, at all
        times; each was drawn to be audited with probability `share`.
    first
        The number of the exit before the first that counts.
    confidence, through
        Marked are the verdicts at least so sure, up to the exit of this number; None and 0 if none.
    marked, verdicts
        How many are marked, of how many.
    curve
        What is known at each threshold, the surest first.
    more
        The share of verdicts that would be marked after that many more audits, if the verdicts stay
        as they are.
    """

    right: float
    level: float
    share: float
    first: int
    confidence: float | None
    through: int
    marked: int
    verdicts: int
    curve: tuple[ExitThreshold, ...]
    more: dict[int, float]

    @property
    def coverage(self) -> float:
        """The share of verdicts that is marked."""
        return self.marked / self.verdicts if self.verdicts else 0.0

    def marks(self, number: int, confidence: float) -> bool:
        """Whether the verdict of this number and confidence is marked, if it counts at all."""
        enough = self.confidence is not None and confidence >= self.confidence
        return enough and self.first < number <= self.through


def most_wrong(drawn: int, share: float, level: float) -> int:
    """At most this many verdicts are wrong, if of those that are wrong as many were drawn.

    >>> most_wrong(0, 0.1, 0.95), most_wrong(5, 0.1, 0.95), most_wrong(5, 1.0, 0.95)
    (42, 136, 5)
    """
    if share >= 1:
        return drawn
    low, high = drawn, drawn + 1
    while not _shown(share, drawn, high, level):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _shown(share, drawn, middle, level) else (middle, high)
    return low


def _shown(share: float, drawn: int, errors: int, level: float) -> bool:
    """Whether it is shown that fewer verdicts than these are wrong."""
    return bool(log_capital(share, drawn, errors) >= SLACK - math.log1p(-level))


def exit_guarantee(
    numbers: ArrayLike,
    confidences: ArrayLike,
    drawn: ArrayLike,
    wrong: Sequence[bool | None],
    share: float,
    right: float = 0.95,
    level: float = 0.95,
    first: int = 0,
) -> ExitGuarantee:
    """Which verdicts are guaranteed, in the order in which they left.

    Parameters
    ----------
    numbers, confidences
        The number of each exit, which rises, and how sure its verdict was.
    drawn
        Which of them were drawn to be audited, as places in `numbers`.
    wrong
        Of each drawn one whether it is wrong; None if it has no answer yet.
    share
        The probability with which each was drawn.
    right, level
        With probability `level` the share `right` of the marked verdicts is right.
    first
        The number of the exit before the first that counts.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sure = rng.random(10_000)
    >>> wrong = rng.random(10_000) > 0.8 + 0.2 * sure
    >>> drawn = np.flatnonzero(rng.random(10_000) < 0.1)
    >>> found = exit_guarantee(np.arange(1, 10_001), sure, drawn, wrong[drawn], 0.1, right=0.9)
    >>> found.confidence, found.through, round(found.coverage, 2), found.marks(9000, 0.85)
    (0.6, 10000, 0.4, True)
    >>> marked = sure >= 0.6
    >>> bool(wrong[marked].mean() <= 0.1)
    True
    """
    check_level(level)
    if not 0 < right < 1 or not 0 < share <= 1:
        raise InputError(
            f"got right={right:g} and share={share:g}, expected the share of right verdicts "
            "between 0 and 1, and audits that are drawn with a probability above 0"
        )
    number, sure = np.asarray(numbers, np.int64), np.asarray(confidences, np.float64)
    place = np.asarray(drawn, np.int64)
    counts = np.zeros((2, len(number)))  # audits that count as wrong; drawn ones without an answer
    for k, said in zip(place.tolist(), wrong, strict=True):
        counts[:, k] = said is None or said, said is None
    was_drawn = np.zeros(len(number))
    was_drawn[place] = 1
    cuts, own = thresholds(right), 1 - (1 - level) / len(MULTIPLES)
    rows, marked = [], []
    for cut in cuts.tolist():
        above = sure >= cut
        size, caught = above.cumsum(), (above * counts[0]).cumsum()
        good = _passes(size, caught, share, right, own)
        last = int(good.nonzero()[0][-1]) if good.any() else -1
        total, due = int(above.sum()), int((above * counts[1]).sum())
        failed = int((above * counts[0]).sum())
        bound = min(1.0, most_wrong(failed, share, own) / total) if total else 1.0
        rows.append(
            ExitThreshold(
                cut,
                total,
                total / max(1, len(number)),
                int((above * was_drawn).sum()) - due,
                failed - due,
                due,
                bound,
                int(number[last]) if last >= 0 else 0,
            )
        )
        marked.append(int(size[last]) if last >= 0 else 0)
    best = int(np.argmax(marked))
    confidence, through = (float(cuts[best]), rows[best].through) if marked[best] else (None, 0)
    more = {k: _bought(rows, share, right, own, k) for k in MORE} if rows[-1].verdicts else {}
    return ExitGuarantee(
        right=right,
        level=level,
        share=share,
        first=first,
        confidence=confidence,
        through=through,
        marked=marked[best],
        verdicts=len(number),
        curve=tuple(rows),
        more=more,
    )


def _passes(size: ArrayLike, caught: ArrayLike, share: float, right: float, level: float) -> Bools:
    """Whether at most the allowed share of that many verdicts is wrong, as far as it is shown."""
    N, W = np.asarray(size, np.float64), np.asarray(caught, np.float64)
    most = np.floor((1 - right) * N + 1e-9)
    if share >= 1:
        return np.asarray((most >= W) & (N > 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        capital = log_capital(share, np.minimum(W, most + 1), most + 1)
    return np.asarray((most >= W) & (N > 0) & (capital >= SLACK - math.log1p(-level)))


def _bought(
    rows: Sequence[ExitThreshold], share: float, right: float, level: float, more: int
) -> float:
    """The share that would be marked after more audits, of verdicts like those before."""
    total = rows[-1].verdicts
    new, best = more / share, 0.0
    for row in rows:
        size = row.verdicts + new * row.coverage
        rate = (row.wrong + 0.5) / (row.audited + 1)
        caught = row.wrong + math.ceil(rate * (more * row.coverage + row.due) - 0.5)
        if row.audited and _passes(size, caught, share, right, level):
            best = max(best, size / (total + new))
    return best
