"""The simplest rivals with what venire has spent: as many labels, and as much money.

`FixedOverlap` in the other table buys what it buys, and its queue may grow. Here the labels that
venire bought for a stream, or the money, are spread evenly over the same images, on labelers drawn
at random, however long that takes; then a vote or Dawid-Skene decides. Both decide when everything
is there, so beside them stand venire's verdicts as it has revised them by the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from venire.estimators import DawidSkene, MajorityVote
from venire.labels import LabelTable
from venire_research.common.sheets import spread
from venire_research.digits.comparison import Trial
from venire_research.digits.panel import DIGITS, PRICES, DigitJob

__all__ = ["TITLES", "Row", "equal_rows", "summary"]

Ints = NDArray[np.int64]
Fits = DawidSkene | MajorityVote

#: The rows of the table, in order.
TITLES = {
    "venire-student": "venire with a student, at once",
    "venire": "venire, at once",
    "venire-student-revised": "venire with a student, revised",
    "venire-revised": "venire, revised",
    "labels-ds": "as many labels, Dawid-Skene",
    "labels-majority": "as many labels, majority",
    "money-ds": "as much money, Dawid-Skene",
    "money-majority": "as much money, majority",
    "three-majority": "3 labels each, majority",
    "judge": "the best of 5 judges alone",
    "any-judge": "one of 5 judges alone, mean",
}


@dataclass(frozen=True)
class Row:
    """What one way got right on one stream, of all images, and what it spent on each."""

    key: str
    seed: int
    right: float
    labels: float
    money: float


def equal_rows(job: DigitJob, trials: Sequence[Trial]) -> list[Row]:
    """Venire and its rivals on every stream that venire has labelled.

    >>> from venire_research.digits import METHODS, compare, load_job
    >>> ours = [method for method in METHODS if method.key == "venire"]
    >>> rows = equal_rows(load_job(), list(compare(load_job(), [0], slots=60, methods=ours)))
    >>> spent = {row.key: row.labels for row in rows}
    >>> spent["venire"] == spent["venire-revised"] == spent["labels-majority"]
    True
    """
    rows = []
    for trial in trials:
        key, seed, score = trial.method.key, trial.seed, trial.score
        if trial.revised is not None:
            spent = score.labels_per_item, score.money_per_item
            rows.append(Row(key, seed, score.right_of_all, *spent))
            rows.append(Row(f"{key}-revised", seed, trial.revised.score.right_of_all, *spent))
        if trial.method.key == "venire":
            rows += _rivals(job, trial)
    return rows


def _rivals(job: DigitJob, trial: Trial) -> list[Row]:
    """The rivals of one run of venire."""
    outcome, prices = trial.outcome, np.asarray(job.prices)
    items = job.world(trial.seed).items(outcome.slots)
    images = np.array([job.row[str(items.name(n))] for n in range(len(items))])
    count = len(images)
    rng = np.random.default_rng([1197, trial.seed])
    order = np.argsort(rng.random((count, len(job.labelers))), axis=1).T
    turns = np.tile(rng.permutation(count), len(order))  # every image once, then once more, ...
    labelers = order[np.repeat(np.arange(len(order)), count), turns]
    most = int(outcome.labels.sum())
    paid = int(np.searchsorted(np.cumsum(prices[labelers]), outcome.money.sum() + 1e-9, "right"))
    chosen: dict[str, tuple[tuple[Ints, Ints], Fits]] = {
        "labels-ds": ((turns[:most], labelers[:most]), DawidSkene()),
        "labels-majority": ((turns[:most], labelers[:most]), MajorityVote()),
        "money-ds": ((turns[:paid], labelers[:paid]), DawidSkene()),
        "money-majority": ((turns[:paid], labelers[:paid]), MajorityVote()),
        "three-majority": ((turns[: 3 * count], labelers[: 3 * count]), MajorityVote()),
    }
    rows = []
    for key, ((item, labeler), method) in chosen.items():
        right = _right(job, images, item, labeler, method)
        spent = len(item) / count, float(prices[labeler].sum()) / count
        rows.append(Row(key, trial.seed, right, *spent))
    judges = [m for m, kind in enumerate(job.kinds) if kind == "judge"]
    alone = (job.said[images][:, judges] == job.truth[images, None]).mean(axis=0)
    for key, share in (("judge", alone.max()), ("any-judge", alone.mean())):
        rows.append(Row(key, trial.seed, float(share), 1.0, PRICES["judge"]))
    return rows


def _right(job: DigitJob, images: Ints, item: Ints, labeler: Ints, method: Fits) -> float:
    """The share of all images for which a method is right by these labels."""
    said = job.said[images[item], labeler]
    names = range(len(images)), range(len(job.labelers)), DIGITS
    table = LabelTable.from_codes(item, labeler, said, *names)
    verdict = method.fit(table).posteriors_.argmax(axis=1)
    labelled = np.bincount(item, minlength=len(images)) > 0
    return float((labelled & (verdict == job.truth[images])).mean())


def summary(rows: Sequence[Row]) -> list[dict[str, float | str]]:
    """Of each way the means over the streams, and the standard deviation of what is right."""
    made: list[dict[str, float | str]] = []
    for key, title in TITLES.items():
        some = [row for row in rows if row.key == key]
        if some:
            right = [row.right for row in some]
            means = {"right": fmean(right), "right_spread": spread(right)}
            means |= {
                name: fmean(getattr(row, name) for row in some) for name in ("labels", "money")
            }
            made.append({"key": key, "title": title, **means})
    return made
