r"""Verdicts of which, with a stated probability, at most a stated share is wrong.

The surer half of the verdicts errs less than all of them. For each of a few thresholds on the
confidence somebody bets, with every trusted label of a verdict above it, that the verdicts above
are good enough; "more than the allowed share of these are wrong" is disproved when the capital
(`venire.audits.intervals`, without replacement) has reached 1/alpha. Nothing is assumed about the
confidences: where they say nothing, nothing or everything is guaranteed.

Many thresholds are tested with one alpha in a fixed order, from the surest verdicts to all of
them (the fallback procedure: Wiens and Dmitrienko, "The fallback procedure for evaluating a single
family of hypotheses", 2005). A few thresholds have a part of alpha of their own, and one that is
passed hands its alpha on to the next. It is a closed test by weighted Bonferroni tests: a set of
thresholds that are all bad is passed only if one of them is at its part, and the parts add up to
alpha. The capital against each bad threshold ever reaches one over its part with that probability
at most, so the guarantee holds at all times together: one may look after each label, and stop when
enough is guaranteed.

The idea is that of Candes, Ilyas and Zrnic, "Probably approximately correct labels" (2025), and of
Angelopoulos and others, "Learn then test" (2021), both for one look. As there, the trusted labels
are drawn at random, and must not have taught the verdicts that they test.

**Verdicts that leave one by one** (`exit_guarantee`). They leave in some order, and each is drawn
to be audited with the same probability p, by a coin that nobody can foresee. Take the verdicts that
are at least so sure, and of these the wrong ones, in the order in which they left. *Each error is
drawn with probability p, whatever came before*: that is all that is assumed. Labelers may be of any
kind, change, or know how the test stands.

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
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from venire.audits.audit import check_verdicts
from venire.audits.intervals import SLACK, check_level, log_capital, log_factorials, upper_count
from venire.errors import InputError
from venire.tools.arrays import Bools, Floats, Ints

#: Verdicts that pass err seldom, so more is bet on few errors: on Q of them in proportion to
#: 1 / (Q + 1/2) ** POWER (Jeffreys' prior near 0).
POWER: Final = 0.5

#: The thresholds are at these shares of the verdicts, the surest first.
SHARES: Final = tuple(k / 20 for k in range(1, 21))

#: The thresholds with a part of alpha of their own: from this share on, and the part.
STARTS: Final = {0.25: 0.25, 0.5: 0.25, 0.75: 0.25, 1.0: 0.25}


def log_evidence(wrong: ArrayLike, audited: ArrayLike, size: int, most: int) -> Floats:
    """The logarithm of the capital against "more than `most` of `size` verdicts are wrong".

    It is that of `venire.audits.intervals.log_capitals` against most + 1, the least of those.

    >>> from venire.audits.intervals import log_capitals
    >>> here = log_capitals(1, 2, 10, POWER)[4 - 1].item()
    >>> abs(float(log_evidence(1, 2, 10, 3)) - here) < 1e-9
    True
    """
    S, n = np.broadcast_arrays(np.asarray(wrong, np.int64), np.asarray(audited, np.int64))
    F, M = n - S, most + 1
    found = np.full(S.shape, -np.inf)
    found[size - F < M] = np.inf  # as many wrong ones do not remain
    bet = (S < M) & (size - F >= M)
    if bet.any():
        s, f, Q = S[bet][:, None], F[bet][:, None], np.arange(M + 1)[None, :]
        log = log_factorials(size)
        fits = log[Q] - log[np.maximum(Q - s, 0)] + log[size - Q] - log[size - Q - f]
        gains = np.where(s <= Q, np.exp(fits - fits[:, -1:]), 0.0)[:, :-1]
        share = (np.arange(M) + 0.5) ** -POWER
        with np.errstate(divide="ignore"):  # all is lost
            found[bet] = np.log(gains @ share / share.sum())
    return found


class Cuts(NamedTuple):
    """The thresholds that part the surest verdicts from the others, at most the given number."""

    confidence: Floats
    size: Ints
    part: Floats


def cuts_of(confidence: Floats) -> Cuts:
    """The thresholds for these confidences, and the part of alpha that each has of its own.

    Verdicts of equal confidence stay together.

    >>> cuts = cuts_of(np.array([0.9, 0.8, 0.8, 0.6]))
    >>> cuts.confidence.tolist(), cuts.size.tolist(), cuts.part.round(2).tolist()
    ([0.9, 0.8, 0.6], [1, 3, 4], [0.25, 0.5, 0.25])
    """
    ordered = np.sort(confidence)[::-1]
    ranks = np.ceil(np.array(SHARES) * len(ordered) - 1e-9).astype(np.int64) - 1
    cuts = np.unique(ordered[ranks])[::-1]
    sizes = (len(ordered) - np.searchsorted(ordered[::-1], cuts)).astype(np.int64)
    part = np.zeros(len(cuts))
    for share, own in STARTS.items():
        part[int(np.argmax(sizes >= share * len(ordered) - 1e-9))] += own
    return Cuts(cuts, sizes, part)


def passed(evidence: Floats, part: Floats, level: float) -> Bools:
    """Which thresholds are passed, the last axis from the surest verdicts to all.

    One that is passed hands its alpha on to the next, which adds it to its own.

    >>> passed(np.log([70.0, 45, 15, 30]), np.array([0.5, 0, 0, 0.5]), 0.95).tolist()
    [True, True, False, False]
    """
    alpha, found = 1 - level, np.zeros(evidence.shape, np.bool_)
    carried: Any = np.zeros(evidence.shape[:-1])
    for k, own in enumerate(part.tolist()):
        mine = carried + own * alpha
        with np.errstate(divide="ignore"):
            found[..., k] = evidence[..., k] >= SLACK - np.log(mine)
        carried = np.where(found[..., k], mine, 0.0)
    return found


class Threshold(NamedTuple):
    """The verdicts that are at least so sure: their share of all is the `coverage`.

    `audited` of them have a trusted label, and `wrong` of these are wrong. At most the share
    `bound` of them is wrong, at the level of the guarantee, by each threshold alone; more is needed
    for all thresholds together.
    """

    confidence: float
    coverage: float
    audited: int
    wrong: int
    bound: float
    passed: bool


@dataclass(frozen=True)
class Guarantee:
    """Which verdicts are guaranteed.

    Attributes
    ----------
    right, level
        With probability `level` at least the share `right` of the guaranteed verdicts is right, as
        they were made: before trusted labels corrected some.
    confidence
        The least confidence of guaranteed verdicts; None if there are none.
    coverage
        The share of verdicts that is guaranteed.
    curve
        What is known at each threshold, the surest verdicts first.
    more
        How much would be guaranteed with that number of further trusted labels, if errors stay as
        frequent.
    verdicts
        How many there are.
    tasks
        Those that are guaranteed.
    """

    right: float
    level: float
    confidence: float | None
    coverage: float
    curve: tuple[Threshold, ...]
    more: dict[int, float]
    verdicts: int
    tasks: frozenset[Any]

    def record(self) -> dict[str, Any]:
        """For JSON, without the tasks."""
        return {
            "right": self.right,
            "level": self.level,
            "verdicts": self.verdicts,
            "guaranteed": len(self.tasks),
            "coverage": self.coverage,
            "confidence": self.confidence,
            "gold": self.curve[-1].audited,
            "curve": [row._asdict() for row in self.curve],
            "more": [{"gold": gold, "coverage": share} for gold, share in self.more.items()],
        }


class Curve(NamedTuple):
    """Trusted labels at each threshold: how many, how many wrong."""

    audited: Ints
    wrong: Ints


def guarantee(
    verdicts: Mapping[Any, Hashable],
    confidences: Mapping[Any, float],
    gold: Mapping[Any, Hashable],
    right: float = 0.95,
    level: float = 0.95,
    more: Sequence[int] = (50, 100, 200, 400, 800),
) -> Guarantee:
    """Mark as many verdicts as can be guaranteed to be right in a stated share.

    With probability `level` at most 1 - right of the guaranteed verdicts is wrong, whatever the
    labelers do, and after every trusted label at once: one may look as often as one likes.

    Parameters
    ----------
    verdicts
        The verdict on each item.
    confidences
        How sure each is; any number that tends to be larger for verdicts that are right. Verdicts
        and confidences must not have been learned from `gold`.
    gold
        The trusted labels of some, drawn at random.
    right
        The share of the guaranteed verdicts that is to be right at least.
    level
        The probability with which the guarantee holds.
    more
        Numbers of further trusted labels of which to say what they would buy.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sure = dict(enumerate(rng.random(2000)))
    >>> verdicts = {i: bool(rng.random() < 0.8 + 0.2 * x) for i, x in sure.items()}  # True: right
    >>> gold = {i: True for i in rng.permutation(2000)[:300].tolist()}
    >>> found = guarantee(verdicts, sure, gold, right=0.9)
    >>> found.coverage, round(found.confidence, 2), found.curve[-1].wrong
    (0.5, 0.5, 31)
    >>> wrong = [task for task in found.tasks if not verdicts[task]]
    >>> len(wrong) / len(found.tasks) <= 0.1
    True
    """
    _check(verdicts, confidences, gold, right, level)
    tasks = list(verdicts)
    sure = np.array([confidences[task] for task in tasks], np.float64)
    if not np.isfinite(sure).all():
        raise InputError("got confidences that are not numbers, expected a number for each verdict")
    place = {task: i for i, task in enumerate(tasks)}
    drawn = sure[[place[task] for task in gold]]
    wrong = np.array([verdicts[task] != label for task, label in gold.items()], np.bool_)
    cuts = cuts_of(sure)
    above = drawn[None, :] >= cuts.confidence[:, None]
    seen = Curve(above.sum(axis=1), (above & wrong).sum(axis=1))
    through = _through(cuts, seen, right, level)
    last = int(through.nonzero()[0][-1]) if through.any() else None
    rows = [
        Threshold(
            float(cuts.confidence[k]),
            float(cuts.size[k] / len(tasks)),
            int(seen.audited[k]),
            int(seen.wrong[k]),
            _bound(seen, cuts, k, level),
            bool(through[k]),
        )
        for k in range(len(cuts.size))
    ]
    least = None if last is None else float(cuts.confidence[last])
    chosen = np.flatnonzero(sure >= (math.inf if least is None else least))
    return Guarantee(
        right,
        level,
        least,
        0.0 if last is None else rows[last].coverage,
        tuple(rows),
        {k: _bought(cuts, seen, right, level, k) for k in more if k + len(gold) <= len(tasks)},
        len(tasks),
        frozenset(tasks[i] for i in chosen.tolist()),
    )


def _bound(seen: Curve, cuts: Cuts, k: int, level: float) -> float:
    size = int(cuts.size[k])
    return upper_count(int(seen.wrong[k]), int(seen.audited[k]), size, level, POWER) / size


def _through(cuts: Cuts, seen: Curve, right: float, level: float) -> Bools:
    most = allowed(cuts.size, right)
    rows = zip(seen.wrong.tolist(), seen.audited.tolist(), cuts.size.tolist(), most, strict=True)
    return passed(np.array([float(log_evidence(*row)) for row in rows]), cuts.part, level)


def allowed(size: Ints, right: float) -> list[int]:
    """The number of verdicts, out of a given number, that may be wrong.

    >>> allowed(np.array([10, 100]), 0.95)
    [0, 5]
    """
    return [math.floor((1 - right) * n + 1e-9) for n in size.tolist()]


def _bought(cuts: Cuts, seen: Curve, right: float, level: float, more: int) -> float:
    """The share that would be guaranteed with more labels, that err as often as these did."""
    total = cuts.size[-1]
    new = np.round(more * cuts.size / total).astype(np.int64)
    new = np.minimum(new, cuts.size - seen.audited)
    rate = (seen.wrong + 0.5) / (seen.audited + 1)
    wrong = seen.wrong + np.ceil(rate * new - 0.5).astype(np.int64)
    through = _through(cuts, Curve(seen.audited + new, wrong), right, level)
    return float(cuts.size[through.nonzero()[0][-1]] / total) if through.any() else 0.0


def _check(
    verdicts: Mapping[Any, Hashable],
    confidences: Mapping[Any, float],
    gold: Mapping[Any, Hashable],
    right: float,
    level: float,
) -> None:
    check_level(level)
    if not 0 < right < 1:
        raise InputError(
            f"got the share {right:g} of right verdicts, expected more than 0 and less than 1: "
            "0.95 for at most 5 % that are wrong"
        )
    check_verdicts(verdicts, gold)
    unsure = next((task for task in verdicts if task not in confidences), None)
    if unsure is not None:
        raise InputError(f"there is no confidence for {unsure!r}, expected one for every verdict")


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
    """The verdicts that are at least so sure, and how many they are.

    `audited` of them were audited, `wrong` of these are wrong, and `due` more were drawn. At most
    the share `bound` of them is wrong, with the audits that are due counted as wrong; all
    thresholds hold together at the level of the guarantee. They are proven to be good enough up to
    the verdict of the number `through`; 0 if never.
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
    """Which verdicts are guaranteed: `marked` of `verdicts`.

    With probability `level` at least the share `right` of the marked ones is right, at all times;
    each was drawn to be audited with probability `share`. Marked are those at least as sure as
    `confidence`, after the exit of the number `first` up to that of the number `through`; None and
    0 if none. `curve` is what is known at each threshold, the surest first, and `more` the share
    that would be marked after that many more audits, if the verdicts stay as they are.
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

    `numbers` of exits rise; `drawn` are those to be audited, as places in `numbers`, and `wrong`
    says of each whether it is, None if it has no answer yet. The others are those of
    `ExitGuarantee`.

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
    more = {k: _exits_bought(rows, share, right, own, k) for k in MORE} if rows[-1].verdicts else {}
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


def _exits_bought(
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
