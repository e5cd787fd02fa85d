"""Accuracy and calibration of verdicts, where the truth is known.

A tie counts in part: where the right class is one of t most probable classes, the item counts as
1/t right, as a random choice among them would on average.

How far labelers agree: Krippendorff's alpha of a table, the entropy of the votes on an item.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError, UnknownName
from venire.estimators.base import right_shares
from venire.labels import LabelTable
from venire.labels.partitions import Table, total, vote_counts, vote_entropies
from venire.labels.sources import as_table
from venire.labels.sources.truth import as_ordered, numbers_of
from venire.tools.arrays import Floats


def error_rate(posteriors: ArrayLike, truth: ArrayLike) -> float:
    """The share of items whose most probable class is wrong, over items of known truth.

    `truth` is the index of the right class of each item, -1 where it is not known.

    >>> error_rate([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [0, 0, -1])
    0.25
    """
    q, right = np.asarray(posteriors, dtype=np.float64), np.asarray(truth, dtype=np.int64)
    known = right >= 0
    if not known.any():
        raise InputError("no item has a known truth, expected at least one")
    return float(1.0 - right_shares(q[known], right[known]).mean())


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 10) -> float:
    r"""The expected calibration error (ECE): the mean gap between confidence and accuracy.

        ECE = sum_b  n_b / n  * | mean of right in b  -  mean of confidence in b |

    over `bins` bins of equal width on [0, 1], as in Guo, Pleiss, Sun and Weinberger, *On
    Calibration of Modern Neural Networks* (2017), section 2; a bin holds its upper end.
    `right` is 1 or 0 for each verdict, or its share in a tie (`right_shares`).

    >>> round(expected_calibration_error([0.9, 0.9, 0.6, 0.6], [1, 1, 1, 0]), 3)
    0.1
    """
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sure.ndim != 1 or sure.shape != hit.shape or not sure.size:
        raise InputError(
            f"got {sure.shape} confidences and {hit.shape} results, expected equal numbers, at "
            f"least one"
        )
    which = np.clip(np.ceil(sure * bins).astype(np.int64) - 1, 0, bins - 1)
    gaps = np.bincount(which, hit - sure, minlength=bins)
    return float(np.abs(gaps).sum() / sure.size)


Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    labels: Any, level: Level = "nominal", order: Sequence[Hashable] | None = None
) -> float:
    r"""Krippendorff's alpha: the agreement of the labelers beyond chance; labels may be missing.

        alpha = 1 - D_o / D_e

    with D_o the mean squared distance of two labels of the same item and D_e that of any two
    labels (Krippendorff, *Computing Krippendorff's Alpha-Reliability*, 2011). 1 is perfect
    agreement, 0 what chance gives, below 0 systematic disagreement. Items with one label do
    not count. Where no item has two labels, or only one class was ever said, it is nan.

    Parameters
    ----------
    labels
        Anything that `as_table` takes.
    level : "nominal", "ordinal" or "interval"
        How far two classes are apart: all alike; by how many labels lie between them, in
        order; or by the difference of the numbers that they are.
    order : sequence of classes, optional
        For "ordinal": the classes in order. Those that are numbers need none.

    Examples
    --------
    >>> rows = [("a", "ann", 1), ("a", "bob", 1), ("b", "ann", 2), ("b", "bob", 2),
    ...         ("c", "ann", 3), ("c", "bob", 3), ("d", "ann", 3), ("d", "bob", 2)]
    >>> [round(krippendorff_alpha(rows, x), 3) for x in ("nominal", "ordinal", "interval")]
    [0.667, 0.79, 0.821]
    """
    if level not in get_args(Level):
        raise UnknownName("level", level, get_args(Level))
    return alpha_of(as_table(labels) if level == "nominal" else as_ordered(labels, order), level)


def alpha_of(table: Table, level: Level = "nominal") -> float:
    """The same for a table whose classes are in order."""
    pairs, said = total(table, coincidences)
    if not said.any():
        return float("nan")
    distance = _distances(table, level, said)
    by_chance = (np.outer(said, said) * distance).sum() / (said.sum() - 1)
    return float(1 - (pairs * distance).sum() / by_chance) if by_chance > 0 else float("nan")


def coincidences(table: LabelTable) -> tuple[Floats, Floats]:
    """Pairs of labels of the same item, K x K, an item of n labels n times; labels of each class.

    >>> coincidences(LabelTable.from_matrix([[0, 0], [0, 1], [1, -1]]))[0].tolist()
    [[2.0, 1.0], [1.0, 0.0]]
    """
    counts = vote_counts(table).astype(np.float64)
    counts = counts[counts.sum(axis=1) >= 2]
    weighted = counts / (counts.sum(axis=1, keepdims=True) - 1)
    return weighted.T @ counts - np.diag(weighted.sum(axis=0)), counts.sum(axis=0)


def _distances(table: Table, level: Level, said: Floats) -> Floats:
    """The squared distance of any two classes."""
    if level == "nominal":
        return 1 - np.eye(said.size)
    if level == "ordinal":
        place = np.cumsum(said) - said / 2
    else:
        numbers = numbers_of(table.classes)
        if numbers is None:
            raise InputError(
                f"got the classes {list(table.classes)[:5]}, expected numbers: "
                'level="interval" needs them; level="ordinal" takes an order'
            )
        place = numbers
    return np.asarray((place[:, None] - place) ** 2)


def vote_entropy(labels: Any) -> dict[Hashable, float]:
    """The entropy of the votes on each item in bits: 0 where all agree.

    >>> vote_entropy([("a", "ann", 1), ("a", "bob", 0), ("b", "ann", 1), ("b", "bob", 1)])
    {'a': 1.0, 'b': 0.0}
    """
    table = as_table(labels)
    return dict(zip(table.items, vote_entropies(table).tolist(), strict=True))
