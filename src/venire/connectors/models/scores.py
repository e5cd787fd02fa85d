"""Probabilities and scores of a model as answers: the label, and how sure it is."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire.batch import Answer, NoAnswer
from venire.errors import InputError, UnknownName

__all__ = ["KINDS", "answers_of", "margins_of", "shares_of"]

Floats = NDArray[np.float64]

#: What the numbers of a model may be.
KINDS: Final = ("probabilities", "logits")

#: How far the sum of the probabilities of an item may be from 1.
LOOSE: Final = 0.01


def shares_of(scores: Any, kind: str = "probabilities") -> Floats:
    """A row of probabilities for each item; one column is the probability of the second class.

    >>> shares_of([[0.0, 0.0], [2.0, 0.0]], "logits").round(2).tolist()
    [[0.5, 0.5], [0.88, 0.12]]
    >>> shares_of([0.25, 0.75]).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    if kind not in KINDS:
        raise UnknownName("kind of scores", kind, KINDS)
    rows = np.asarray(scores, np.float64)
    rows = rows.reshape(len(rows), -1)
    if kind == "logits":
        if rows.shape[1] == 1:
            rows = np.hstack([np.zeros_like(rows), rows])
        with np.errstate(all="ignore"):  # a row that is not finite is no answer
            rows = np.exp(rows - rows.max(axis=1, keepdims=True))
            return np.asarray(rows / rows.sum(axis=1, keepdims=True))
    return np.hstack([1.0 - rows, rows]) if rows.shape[1] == 1 else rows


def answers_of(
    shares: Floats, classes: Sequence[Hashable] | None = None
) -> list[Answer | NoAnswer]:
    """The most probable class of each row and its probability; a row of NaN is no answer.

    Without `classes` a label is the number of its column.

    >>> found = answers_of(np.array([[0.9, 0.1], [np.nan, np.nan]]), ["ham", "spam"])
    >>> found[0], str(found[1])
    (Answer(label='ham', cost=None, confidence=0.9, rationale=None), 'the model gave no number')
    """
    names = range(shares.shape[1]) if classes is None else classes
    if shares.ndim != 2 or shares.shape[1] != len(names):
        raise InputError(
            f"the model gives {shares.shape[-1]} scores for an item, and there are {len(names)} "
            "classes: list as many classes, in the order of the scores"
        )
    whole = np.asarray(np.isfinite(shares).all(axis=1))
    _check(shares[whole])
    best = np.argmax(np.nan_to_num(shares, nan=-1.0), axis=1).tolist()
    return [
        Answer(names[k], confidence=float(row[k])) if good else NoAnswer("the model gave no number")
        for k, row, good in zip(best, shares, whole, strict=True)
    ]


def _check(shares: Floats) -> None:
    off = (shares < -LOOSE) | (shares > 1 + LOOSE) | (abs(shares.sum(1) - 1) > LOOSE)[:, None]
    if off.any():
        row = shares[np.flatnonzero(off.any(axis=1))[0]]
        raise InputError(
            f"the scores {[round(float(x), 4) for x in row[:8]]} are no probabilities: if they are "
            "logits, say scores: logits"
        )


def margins_of(decisions: Any) -> Floats:
    """How sure the decisions of a classifier without probabilities are: only the order counts.

    The logistic function of the distance from the border, or of the best class from the next.

    >>> margins_of([-2.0, 0.0]).round(2).tolist(), margins_of([[0.0, 3.0, 1.0]]).round(2).tolist()
    ([0.88, 0.5], [0.88])
    """
    scores = np.asarray(decisions, np.float64)
    scores = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
    if scores.ndim == 1:
        gap = np.abs(scores)
    else:
        top = np.sort(scores, axis=1)
        gap = top[:, -1] - top[:, -2]
    return np.asarray(1.0 / (1.0 + np.exp(-gap)))
