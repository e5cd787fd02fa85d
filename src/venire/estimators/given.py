"""What is known in advance: gold labels of items, and counts of labelers from earlier work."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError, UnknownName
from venire.labels import LabelTable
from venire.labels.partitions import Table, each, kept, total
from venire.labels.table import keep_items

__all__ = [
    "ClassPrior",
    "Gold",
    "History",
    "Soft",
    "check_class_prior",
    "check_counts",
    "fixed_counts",
    "gold_classes",
    "history_counts",
    "known_classes",
    "settled",
    "without_gold",
]

Gold = Mapping[Any, Hashable]
History = Mapping[Any, ArrayLike]
ClassPrior = Literal["learned", "uniform"]


class Soft(NamedTuple):
    """Expected counts: of the items of each class, and of the labels [labeler, said, truth]."""

    items: NDArray[np.float64]
    labels: NDArray[np.float64]


def gold_classes(table: LabelTable, gold: Gold | None) -> NDArray[np.int64] | None:
    """The class of each item by its index, -1 where it is not known; None without gold.

    Items that are not in the table are ignored.

    >>> table = LabelTable.from_rows([("a", "ann", "x"), ("b", "ann", "y")])
    >>> gold_classes(table, {"b": "x", "z": "y"}).tolist()
    [-1, 0]
    """
    if not gold:
        return None
    code = {name: k for k, name in enumerate(table.classes)}
    _check_gold(gold, table)
    known = ((code[gold[item]] if item in gold else -1) for item in table.items)
    return np.fromiter(known, dtype=np.int64, count=len(table.items))


def known_classes(table: Table, gold: Gold | None) -> Any:
    """The same for a table that may be in partitions."""
    if not gold:
        return None
    _check_gold(gold, table)
    return each(table, gold_classes, gold)


def without_gold(table: Table, known: Any) -> Any:
    """The table without the labels of items whose class is known."""
    return table if known is None else kept(table, _unknown, known)


def settled(table: Table, posteriors: Any, known: Any) -> Any:
    """Posteriors with the known classes written into them."""
    return posteriors if known is None else each(table, _written, posteriors, known)


def _unknown(table: LabelTable, known: NDArray[np.int64]) -> LabelTable:
    return keep_items(table, known < 0)


def _written(
    table: LabelTable, posteriors: NDArray[np.float64], known: NDArray[np.int64]
) -> NDArray[np.float64]:
    written, gold = posteriors.copy(), known >= 0
    written[gold] = np.eye(posteriors.shape[1])[known[gold]]
    return written


def _check_gold(gold: Gold, table: Table) -> None:
    if not isinstance(gold, Mapping):
        raise InputError(
            f"got gold as {type(gold).__name__}, expected a mapping of item to class, such as "
            "{'post-1': 'spam'}; `venire aggregate --gold` reads files"
        )
    classes = set(table.classes)
    for item, name in gold.items():
        if name not in classes:
            raise InputError(
                f"item {item!r} has the gold label {name!r}, "
                f"expected one of the classes {list(table.classes)}"
            )


def history_counts(table: Table, history: History | None) -> NDArray[np.float64] | None:
    """Counts [labeler, said, truth] from K x K tables of truth x said; None without history.

    Labelers who are not in the table are ignored.

    >>> table = LabelTable.from_rows([("a", "ann", "x"), ("b", "bob", "y")])
    >>> history_counts(table, {"bob": [[9, 1], [0, 5]]})[1].tolist()
    [[9.0, 0.0], [1.0, 5.0]]
    """
    if not history:
        return None
    K = len(table.classes)
    counts = np.zeros((len(table.labelers), K, K))
    place = {name: m for m, name in enumerate(table.labelers)}
    for name, given in history.items():
        known = check_counts(given, K, f"a history of labeler {name!r}")
        if name in place:
            counts[place[name]] = known.T
    return counts


def check_counts(given: ArrayLike, classes: int, what: str) -> NDArray[np.float64]:
    """A K x K table of counts, truth by said; `what` is its name in the error.

    >>> check_counts([[9, 1], [0, 5]], 2, "a history").tolist()
    [[9.0, 1.0], [0.0, 5.0]]
    """
    counts = np.asarray(given, dtype=np.float64)
    if counts.shape != (classes, classes) or not (np.isfinite(counts) & (counts >= 0)).all():
        raise InputError(
            f"got {what} of shape {counts.shape}, expected a {classes} x {classes} table of "
            "counts, truth by said, none of them below 0"
        )
    return counts


def check_class_prior(given: ClassPrior | ArrayLike, classes: int) -> NDArray[np.float64] | None:
    """The class prior that is given, or None if it is to be learned.

    >>> check_class_prior("uniform", 4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    if isinstance(given, str):
        if given not in get_args(ClassPrior):
            raise UnknownName("class prior", given, get_args(ClassPrior))
        return None if given == "learned" else np.full(classes, 1 / classes)
    priors = np.asarray(given, dtype=np.float64)
    if priors.shape != (classes,) or not (priors > 0).all() or abs(priors.sum() - 1) > 1e-6:
        raise InputError(f"got the class prior {given!r}, expected {classes} probabilities")
    return priors


def fixed_counts(table: Table, known: Any = None, history: History | None = None) -> Soft:
    """The counts of gold items and of history.

    >>> table = LabelTable.from_rows([("a", "ann", "x"), ("b", "ann", "y")])
    >>> fixed_counts(table, np.array([0, -1])).labels.tolist()
    [[[1.0, 0.0], [0.0, 0.0]]]
    """
    K = len(table.classes)
    items, labels = np.zeros(K), np.zeros((len(table.labelers), K, K))
    past = history_counts(table, history)
    if past is not None:
        labels += past
    if known is not None:
        counted = total(table, _gold_counts, known)
        items, labels = items + counted[0], labels + counted[1]
    return Soft(items, labels)


def _gold_counts(
    table: LabelTable, known: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    K = len(table.classes)
    labels = np.zeros((len(table.labelers), K, K))
    truth = np.repeat(known, np.diff(table.start))
    gold = truth >= 0
    np.add.at(labels, (table.labeler[gold], table.said[gold], truth[gold]), 1.0)
    return np.bincount(known[known >= 0], minlength=K).astype(np.float64), labels
