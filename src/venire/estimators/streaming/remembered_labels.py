"""The labels that a stream remembers: which are dropped, and the check for drift.

Labels are rows of integers in order of time: item, labeler, said, and whether the drift test has
used them. Both `LearnWhileServing` and `Streaming` store them this way.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.estimators.base import TINY
from venire.estimators.streaming.drift import DriftMonitor

__all__ = ["ITEM", "LABELER", "SAID", "WATCHED", "latest", "opinions", "posteriors", "watch"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Columns of a remembered label.
ITEM, LABELER, SAID, WATCHED = range(4)

#: Items with fewer labels are not tested: when two labels differ, nobody knows who has changed, and
#: whether there is a second label depends on the first.
COMPANY: Final = 3

#: The witness of a label without other labels.
_NOBODY: Final = 0


def latest(labels: Ints, half_life: float) -> NDArray[np.bool_]:
    """The latest `half_life` / ln 2 labels of each labeler, as many as a half-life weighs.

    >>> latest(np.array([[0, 0, 1, 0], [1, 0, 1, 0], [1, 7, 0, 0], [2, 0, 0, 0]]), 1.0).tolist()
    [False, True, True, True]
    """
    most, who = math.ceil(half_life / math.log(2)), labels[:, LABELER]
    order = np.argsort(who, kind="stable")
    ranked = who[order]
    left = np.searchsorted(ranked, ranked, side="right") - np.arange(len(who))
    kept = np.empty(len(who), np.bool_)
    kept[order] = left <= most
    return kept


def watch(monitor: DriftMonitor, labels: Ints, confusions: Floats, prior: Floats) -> Ints:
    """Test the labels of items that now have three or more, and mark them; returns who has changed.

    `confusions` and `prior` are the beliefs about the labelers and the classes.

    >>> monitor = DriftMonitor(classes=2)
    >>> monitor.expand(3)
    >>> labels = np.array([[0, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 2, 1, 0]])
    >>> watch(monitor, labels, np.full((3, 2, 2), 0.5), np.full(2, 0.5)).tolist()
    []
    >>> labels[:, WATCHED].tolist(), monitor.seen.tolist()
    ([1, 1, 0, 1], [1, 1, 1])
    """
    company = np.bincount(labels[:, ITEM] - labels[:, ITEM].min(initial=0))
    several = company[labels[:, ITEM] - labels[:, ITEM].min(initial=0)] >= COMPANY
    fresh = several & (labels[:, WATCHED] == 0)
    if not fresh.any():
        return np.zeros(0, np.int64)
    before = monitor.alarms.copy()
    used = labels[:, WATCHED] == 1
    used |= fresh
    rest = _others(labels, confusions, prior)[used]
    witness = _witness(labels, _order(confusions, prior))[used]
    heard = labels[used]
    monitor.follow(heard[:, LABELER], heard[:, SAID], rest, witness, fresh[used])
    labels[fresh, WATCHED] = 1
    return np.flatnonzero(monitor.alarms > before)


def opinions(labels: Ints, confusions: Floats, prior: Floats) -> tuple[Ints, Floats]:
    """The item numbers, and the log of each class's share and of what was said, for each item."""
    items, item = np.unique(labels[:, ITEM], return_inverse=True)
    logs = np.tile(np.log(prior.clip(TINY)), (len(items), 1))  # an estimator may say 0
    np.add.at(logs, item, _told(labels, confusions))
    return items, logs


def posteriors(logs: Floats) -> Floats:
    """Logs as probabilities that sum to 1, row by row.

    >>> posteriors(np.log([[1.0, 3.0]])).tolist()
    [[0.25, 0.75]]
    """
    q = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def _told(labels: Ints, confusions: Floats) -> Floats:
    return np.log(confusions[labels[:, LABELER], :, labels[:, SAID]])


def _others(labels: Ints, confusions: Floats, prior: Floats) -> Floats:
    """For each label, the posterior of its item from the other labels."""
    items, logs = opinions(labels, confusions, prior)
    return posteriors(logs[np.searchsorted(items, labels[:, ITEM])] - _told(labels, confusions))


def _order(confusions: Floats, prior: Floats) -> Ints:
    """The rank of each labeler, the best is 1."""
    best = np.argsort(-np.einsum("mkk,k->m", confusions, prior), kind="stable")
    place = np.empty(len(best), np.int64)
    place[best] = np.arange(1, len(best) + 1)
    return place


def _witness(labels: Ints, place: Ints) -> Ints:
    """For each label, the rank of the best other labeler of the item."""
    _, item = np.unique(labels[:, ITEM], return_inverse=True)
    own, last = place[labels[:, LABELER]], len(place) + 1
    first, second = (np.full(item.max(initial=-1) + 1, last) for _ in range(2))
    np.minimum.at(first, item, own)
    later = own != first[item]
    np.minimum.at(second, item[later], own[later])
    best = np.where(later, first[item], second[item])
    return np.where(best == last, _NOBODY, best)
