r"""Rates of a file by the judges' verdicts on all items and the trusted labels of a few.

Judges err, so the share of a class among their verdicts is not the share in truth; trusted labels
alone are right on average and few. Prediction-powered inference takes both: with a trusted label
y on n of N items, drawn at random, and what the judges say, f, on all,

    theta = lambda mean(f) + mean over gold of (y - lambda f),

is right on average whatever the judges do, and varies the less the more f tells about y, if lambda
is the slope of y on f (Angelopoulos, Duchi, Zrnic, "PPI++: Efficient Prediction-Powered Inference",
2023; there lambda = Cov / ((1 + n/N) Var), which is the same with f averaged over the N - n items
without gold). With verdicts that say yes or no, that is to count the gold of each verdict by
itself and to weight the two shares by how many verdicts there are of each: a stratified sample.
So cells are counted here (`venire.audits.audit`; Fisch and others, "Stratified
prediction-powered inference", 2024), each share has its exact interval, and the intervals are added
up; it holds where a normal interval fails, with twenty labels, with rates near 0 or 1, and without
any error seen. Gold alone has its exact interval too, and where that would not be wider, at the
same estimate, it is taken: where judges tell nothing it is gold alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venire.audits.audit import ErrorBound, cells_of, check_verdicts, halvings, merged
from venire.audits.intervals import (
    Interval,
    added,
    check_level,
    exact_interval,
    mean_interval,
    sequence_interval,
)
from venire.errors import InputError
from venire.tools.arrays import Bools, Floats, Ints

#: The value of a tie.
HALF = 0.5


@dataclass(frozen=True)
class Rate:
    """A rate with its interval.

    Attributes
    ----------
    estimate, low, high
        The rate, and the interval that holds it with probability `level`; nan if there is no
        item or no trusted label that it could rest on.
    level
        The probability with which the interval holds, whatever the judges do.
    gold_only
        The same three by the trusted labels alone.
    worth
        How many trusted labels, drawn at random, would give as narrow an interval by themselves.
    gold, items
        How many trusted labels there are, of how many items.
    """

    estimate: float
    low: float
    high: float
    level: float
    gold_only: Interval
    worth: float
    gold: int
    items: int

    @property
    def interval(self) -> Interval:
        """The estimate and its ends."""
        return Interval(self.estimate, self.low, self.high)

    def record(self) -> dict[str, Any]:
        """For JSON: what is not known is None."""
        return {
            **_numbers(self.interval),
            "level": self.level,
            "gold_only": _numbers(self.gold_only),
            "worth": _number(self.worth),
            "gold": self.gold,
            "items": self.items,
        }


@dataclass(frozen=True, eq=False)
class Sample:
    """What judges say about the value of every item, and the true values of some.

    `said` is the value of each verdict, `score` the one that is expected of each item, both from 0
    to 1. `place` has the items with trusted labels as indices in the order drawn, `value` their
    true values (0, 1 or a half), `weight` one over the probability with which each was drawn, None
    if all are the same. `cells` are those of the items, where they are cut already.
    """

    said: Floats
    score: Floats
    place: Ints
    value: Floats
    weight: Floats | None = None
    cells: Ints | None = None

    def only(self, which: Bools) -> Sample:
        """The sample of some of the items."""
        new = np.cumsum(which) - 1
        kept = which[self.place]
        weight = None if self.weight is None else self.weight[kept]
        place = new[self.place[kept]].astype(np.int64)
        return Sample(self.said[which], self.score[which], place, self.value[kept], weight)

    def rate(self, level: float = 0.95, ongoing: bool = False, anytime: bool = False) -> Rate:
        """The mean value of all items (`ongoing`: of the process that they come from).

        >>> said = np.array([1.0, 0, 0, 0] * 50)
        >>> drawn = np.arange(40)
        >>> got = Sample(said, said, drawn, said[drawn]).rate()
        >>> got.estimate, round(got.low, 3), round(got.high, 3), round(got.worth)
        (0.25, 0.185, 0.325, 91)
        """
        with_judges, alone = self.intervals(level, ongoing, anytime)
        return _rate(with_judges, alone, level, self, ongoing)

    def intervals(
        self, level: float, ongoing: bool = False, anytime: bool = False
    ) -> tuple[Interval, Interval]:
        """With the judges' help, and by the trusted labels alone."""
        _check(level, ongoing, anytime, self.weight is not None)
        size = len(self.said)
        if not size or not len(self.place):
            nothing = Interval(math.nan, 0.0, 1.0)
            return nothing, nothing
        if anytime:
            given = self.score, self.place, self.value, level
            return sequence_interval(*given), sequence_interval(*given, alone=True)
        alone = mean_interval(self.value, level, None if ongoing else size, self.weight)
        cells = self.cells
        if cells is None:
            cells = cells_of(self.said, self.score, halvings(len(self.place)))
        cells = merged(cells, self.place)
        found = [self._cell(cells == k, level) for k in range(int(cells.max()) + 1)]
        best = _within(added(found)) if len(found) > 1 else alone
        if ongoing and len(found) > 1:
            best = _process(best, size, level)
        return (best if best.width < _alike(alone, best, len(self.place), level) else alone), alone

    def _cell(self, which: Bools, level: float) -> Interval:
        inside, part = which[self.place], int(which.sum())
        weight = None if self.weight is None else self.weight[inside]
        return mean_interval(self.value[inside], level, part, weight).scaled(part / len(which))


def share_of(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable],
    of: Hashable,
    scores: Mapping[Any, float] | None = None,
    probabilities: Mapping[Any, float] | None = None,
    level: float = 0.95,
    ongoing: bool = False,
    anytime: bool = False,
) -> Rate:
    """The share of a class among all items, with an interval that is valid whatever the judges do.

    Parameters
    ----------
    verdicts
        The verdict on every item.
    gold
        The trusted labels of some, drawn at random, in the order drawn.
    of
        The class.
    scores
        How probable the class is for each item, by the judges; the better, the narrower the
        interval. By default the verdicts: 1 for the class, else 0.
    probabilities
        With what probability each item of `gold` was drawn (`draw_for_rate`); by default all the
        same.
    level
        The probability with which the interval holds.
    ongoing
        Whether the process is meant that these items come from, and not only these items.
    anytime
        Whether the interval holds at all times together, so that one may look after each label.

    Examples
    --------
    >>> truth = {i: "toxic" if i % 5 == 0 else "ok" for i in range(1000)}
    >>> verdicts = {i: "ok" if i % 25 == 0 else label for i, label in truth.items()}
    >>> drawn = np.random.default_rng(1).permutation(1000)[:100].tolist()
    >>> rate = share_of(verdicts, {i: truth[i] for i in drawn}, "toxic")
    >>> round(rate.estimate, 3), round(rate.low, 3), round(rate.high, 3)
    (0.241, 0.189, 0.308)
    >>> [round(x, 3) for x in rate.gold_only], round(rate.worth)
    ([0.25, 0.173, 0.341], 182)
    """
    sample, _ = _class_sample(verdicts, gold, of, scores, probabilities)
    return sample.rate(level, ongoing, anytime)


def win_rate(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable],
    wins: Sequence[Hashable],
    sides: Mapping[Any, tuple[Hashable, Hashable]] | None = None,
    of: Hashable | None = None,
    scores: Mapping[Any, float] | None = None,
    probabilities: Mapping[Any, float] | None = None,
    level: float = 0.95,
    ongoing: bool = False,
    anytime: bool = False,
) -> Rate:
    """The share of pairs that a contestant wins; a tie is half a win.

    Parameters
    ----------
    verdicts, gold
        Which side wins each pair, by the judges, and by somebody trusted for some of them.
    wins
        The labels: the first side wins, the second does, and (if there may be ties) neither.
    sides, of
        Who is on the two sides of each pair, and whose rate is meant: that of the pairs it
        takes part in. By default the rate of the first side.
    scores
        What the first side is expected to score on each pair, from 0 to 1; by default the verdicts.
    probabilities, level, ongoing, anytime
        As for `share_of`.

    Examples
    --------
    >>> verdicts = {1: "left", 2: "right", 3: "tie", 4: "left"}
    >>> rate = win_rate(verdicts, verdicts, ["left", "right", "tie"])
    >>> rate.estimate, rate.low, rate.high
    (0.625, 0.625, 0.625)
    >>> sides = {1: ("a", "b"), 2: ("a", "c"), 3: ("b", "a"), 4: ("b", "c")}
    >>> win_rate(verdicts, verdicts, ["left", "right", "tie"], sides, of="b").estimate
    0.5
    """
    if len(wins) not in (2, 3) or len(set(wins)) < len(wins):
        raise InputError(
            f"got the labels {list(wins)}, expected two or three: the first side wins, the second "
            "does, neither"
        )
    worth = dict(zip(wins, (1.0, 0.0, HALF), strict=False))
    check_verdicts(verdicts, gold)
    strange = next((x for x in (*verdicts.values(), *gold.values()) if x not in worth), None)
    if strange is not None:
        raise InputError(f"got the label {strange!r}, expected one of {list(wins)}: name them all")
    tasks = [t for t in verdicts if sides is None or of in sides[t]]
    turned = {t: sides is not None and sides[t][0] != of for t in tasks}

    def value(task: Any, x: float) -> float:
        return 1 - x if turned[task] else x

    said = {t: value(t, worth[verdicts[t]]) for t in tasks}
    told = said if scores is None else {t: value(t, scores[t]) for t in tasks}
    true = {t: value(t, worth[x]) for t, x in gold.items() if t in said}
    return _sample(said, told, true, probabilities).rate(level, ongoing, anytime)


def precision_of(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable],
    of: Hashable,
    scores: Mapping[Any, float] | None = None,
    probabilities: Mapping[Any, float] | None = None,
    level: float = 0.95,
    ongoing: bool = False,
    anytime: bool = False,
) -> Rate:
    """Of the verdicts that say a class, the share that is right; arguments as for `share_of`.

    >>> truth = {i: "toxic" if i % 5 == 0 else "ok" for i in range(100)}
    >>> verdicts = {i: "toxic" if i % 4 == 0 else "ok" for i in range(100)}
    >>> precision_of(verdicts, truth, "toxic").estimate
    0.2
    """
    sample, said = _class_sample(verdicts, gold, of, scores, probabilities)
    return sample.only(said).rate(level, ongoing, anytime)


def recall_of(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable],
    of: Hashable,
    scores: Mapping[Any, float] | None = None,
    probabilities: Mapping[Any, float] | None = None,
    level: float = 0.95,
    ongoing: bool = False,
    anytime: bool = False,
) -> Rate:
    """Of the items of a class, the share that the verdicts find; arguments as for `share_of`.

    It is A / (A + B), with A the share of items of the class that are found, B of those that are
    not: both are estimated among their verdicts, and rho is in the interval if (1 - rho) A - rho B
    may be 0. By the trusted labels alone it is their share among those of the class.

    >>> truth = {i: "toxic" if i % 5 == 0 else "ok" for i in range(100)}
    >>> verdicts = {i: "toxic" if i % 4 == 0 else "ok" for i in range(100)}
    >>> recall_of(verdicts, truth, "toxic").estimate
    0.25
    """
    sample, said = _class_sample(verdicts, gold, of, scores, probabilities)
    _check(level, ongoing, anytime, sample.weight is not None)
    each = (1 + level) / 2 if anytime else level
    parts = []
    for which in (said, ~said):
        share = float(which.mean()) if len(which) else 0.0
        found = sample.only(which).intervals(each, False, anytime)[0].scaled(share)
        if not which.any():
            found = Interval(0.0, 0.0, 0.0)
        parts.append(_process(found, len(said), level) if ongoing else found)
    best = _ratio(parts[0], parts[1], box=anytime)
    alone = _recalled(sample, said, level, anytime)
    true = int((sample.value == 1).sum())
    if not anytime and (not true or _alike(alone, best, true, level) <= best.width):
        best = alone
    return _rate(best, alone, level, sample, ongoing)


def rate_difference(one: Rate, other: Rate, anytime: bool = False) -> Rate:
    """One rate minus another, of other items.

    With `anytime` both must have been made at level (1 + level) / 2, and hold together.

    >>> a = Rate(0.6, 0.5, 0.7, 0.95, Interval(0.6, 0.4, 0.8), 80, 20, 100)
    >>> b = Rate(0.3, 0.2, 0.4, 0.95, Interval(0.3, 0.1, 0.5), 80, 20, 100)
    >>> got = rate_difference(a, b)
    >>> round(got.estimate, 2), round(got.low, 3), round(got.high, 3), round(got.worth)
    (0.3, 0.159, 0.441, 160)
    """
    best = _minus(one.interval, other.interval, anytime)
    alone = _minus(one.gold_only, other.gold_only, anytime)
    level = 2 * one.level - 1 if anytime else one.level
    n, size = one.gold + other.gold, one.items + other.items
    worth = one.worth + other.worth
    return Rate(best.estimate, best.low, best.high, level, alone, worth, n, size)


def _minus(one: Interval, other: Interval, box: bool) -> Interval:
    if math.isnan(one.estimate + other.estimate):
        return Interval(math.nan, -1.0, 1.0)
    if box:
        return Interval(one.estimate - other.estimate, one.low - other.high, one.high - other.low)
    return added([one, other.scaled(-1)])


def _ratio(found: Interval, missed: Interval, box: bool) -> Interval:
    """Of found / (found + missed)."""
    total = found.estimate + missed.estimate
    if math.isnan(total) or total <= 0:
        return Interval(math.nan, 0.0, 1.0)
    if box:
        low, high = _part(found.low, missed.high), _part(found.high, missed.low)
        return Interval(found.estimate / total, low, high)
    low = _crossing(found.estimate, found.low, missed.estimate, missed.high)
    high = 1 - _crossing(missed.estimate, missed.low, found.estimate, found.high)
    return Interval(found.estimate / total, low, high)


def _part(a: float, b: float) -> float:
    return a / (a + b) if a + b > 0 else 0.0


def _crossing(a: float, a_low: float, b: float, b_high: float) -> float:
    """The largest rho for which (1 - rho) A - rho B is surely not below 0."""
    low, high = 0.0, a / (a + b)
    for _ in range(50):
        rho = (low + high) / 2
        down = math.hypot((1 - rho) * (a - a_low), rho * (b_high - b))
        stays = (1 - rho) * a - rho * b >= down
        low, high = (rho, high) if stays else (low, rho)
    return low


def _recalled(sample: Sample, said: Bools, level: float, anytime: bool) -> Interval:
    """Recall by the trusted labels alone."""
    true = sample.value == 1
    hits = said[sample.place[true]].astype(np.float64)
    if not len(hits):
        return Interval(math.nan, 0.0, 1.0)
    if anytime:
        bound = ErrorBound(level, None, len(hits), int(hits.sum()))
        return Interval(float(hits.mean()), *bound.interval)
    weight = None if sample.weight is None else sample.weight[true]
    return mean_interval(hits, level, None, weight)


def _within(interval: Interval) -> Interval:
    return Interval(interval.estimate, max(0.0, interval.low), min(1.0, interval.high))


def _alike(alone: Interval, best: Interval, n: int, level: float) -> float:
    """How wide the interval by gold alone would be at the other estimate.

    A share that happens to be near 0 or 1 in the gold has a narrow interval: that is chance, and
    no reason to prefer it.
    """
    first, second = (
        Interval(x, *exact_interval(x * n, n, level)).width
        for x in (min(1.0, max(0.0, alone.estimate)), min(1.0, max(0.0, best.estimate)))
    )
    return alone.width * second / first


def _process(interval: Interval, size: int, level: float) -> Interval:
    """The rate of the process of which these items are a sample."""
    share = min(1.0, max(0.0, interval.estimate))
    low, high = exact_interval(share * size, size, level)
    noise = Interval(0.0, low - share, high - share)
    return _within(added([interval, noise]))


def _rate(best: Interval, alone: Interval, level: float, sample: Sample, ongoing: bool) -> Rate:
    n, size = len(sample.place), len(sample.said)
    width = alone.width
    if sample.weight is not None and n:  # as many drawn at random
        low, high = exact_interval(best.estimate * n, n, level)
        width = (high - low) * (1.0 if ongoing else math.sqrt(max(0.0, 1 - n / size)))
    return Rate(
        *best, level, alone, _worth(best.width, width, n, None if ongoing else size), n, size
    )


def _worth(width: float, alone: float, n: int, size: int | None) -> float:
    """How many labels would by themselves give the width, if n give the width `alone`."""
    if n == 0 or not width < alone:
        return float(n)
    square = (width / alone) ** 2
    if size is None:
        return n / max(square, 1e-12)
    return 1 / (1 / size + square * (1 / n - 1 / size))


def _class_sample(
    verdicts: Mapping[Any, Hashable],
    gold: Mapping[Any, Hashable],
    of: Hashable,
    scores: Mapping[Any, float] | None,
    probabilities: Mapping[Any, float] | None,
) -> tuple[Sample, Bools]:
    check_verdicts(verdicts, gold)
    said = {task: float(label == of) for task, label in verdicts.items()}
    true = {task: float(label == of) for task, label in gold.items()}
    told = said if scores is None else {task: scores[task] for task in said}
    sample = _sample(said, told, true, probabilities)
    return sample, sample.said == 1


def _sample(
    said: Mapping[Any, float],
    told: Mapping[Any, float],
    true: Mapping[Any, float],
    probabilities: Mapping[Any, float] | None,
) -> Sample:
    places = {task: i for i, task in enumerate(said)}
    score = _floats(told[task] for task in said)
    if score.size and not (score.min() >= 0 and score.max() <= 1):
        raise InputError("got scores outside 0 to 1, expected values between 0 and 1")
    weight = None
    if probabilities is not None:
        drawn = _floats(probabilities[task] for task in true)
        if drawn.size and not (drawn.min() > 0 and drawn.max() <= 1):
            raise InputError("got probabilities outside 0 to 1, expected more than 0, at most 1")
        weight = 1 / drawn
    place = np.array([places[task] for task in true], np.int64)
    return Sample(_floats(said.values()), score, place, _floats(true.values()), weight)


def _floats(values: Iterable[float]) -> Floats:
    return np.array(list(values), np.float64)


def _check(level: float, ongoing: bool, anytime: bool, weighted: bool) -> None:
    check_level(level)
    if anytime and ongoing:
        raise InputError(
            "anytime and ongoing exclude each other: intervals for all times are of these items "
            "only; leave anytime out for the process"
        )
    if anytime and weighted:
        raise InputError(
            "anytime needs trusted labels drawn at random from all: leave it out if some were "
            "drawn more often than others"
        )


def _numbers(interval: Interval) -> dict[str, float | None]:
    return {name: _number(x) for name, x in interval._asdict().items()}


def _number(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
