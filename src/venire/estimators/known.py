"""What is known in advance: competences (the genie of section 3.1), gold, and earlier counts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError, UnknownName
from venire.estimators.base import BaseEstimator, Floats
from venire.estimators.convergence import Monitor
from venire.labels import LabelTable
from venire.labels.partitions import Table, each, kept, total
from venire.labels.sources import as_labels
from venire.labels.table import keep_items
from venire.model import Labeler
from venire.paper.accuracy import vote_weight

__all__ = [
    "ClassPrior",
    "Gold",
    "History",
    "Known",
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


@dataclass(eq=False)
class Known(BaseEstimator):
    r"""The competences are given; `fit` only computes the posteriors of the items.

    The posterior of an item is that of `venire.paper.accuracy.posterior`: every class equally
    likely beforehand, each label counted with its vote weight (paper, eq. 1),

        P(class k | labels) ~ exp( sum of vote_weight_m over the labelers m who said k )

    with competences brought into the paper's range, so that a labeler below chance is
    ignored rather than inverted.

    Parameters
    ----------
    competences : mapping of labeler to competence, or sequence of Labeler
        It may contain labelers who are not in the table.

    Examples
    --------
    >>> rows = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "bob", "no")]
    >>> known = Known({"ann": 0.9, "bob": 0.6}).fit(LabelTable.from_rows(rows))
    >>> known.labels_
    {'a': 'yes', 'b': 'no'}
    >>> known.posteriors_.round(3).tolist()
    [[0.143, 0.857], [0.6, 0.4]]
    """

    competences: Mapping[Hashable, float] | Sequence[Labeler]

    def fit(self, labels: Any) -> Self:
        """Look up the competences and compute the posteriors of the items."""
        table = as_labels(labels)
        given = self._by_name()
        missing = [name for name in table.labelers if name not in given]
        if missing:
            raise InputError(
                f"no competence is given for labeler {missing[0]!r} "
                f"({len(missing)} in all), expected one for each labeler of the table"
            )
        competences = np.array([given[name] for name in table.labelers], dtype=np.float64)
        settled = Monitor(reason="converged")
        posteriors = each(table, _posteriors, competences)
        height = float(total(table, _log_likelihood, competences))
        return self._settle(table, competences, posteriors, height, settled)

    def _by_name(self) -> dict[Hashable, float]:
        given: dict[Hashable, float] = {}
        pairs = (
            self.competences.items()
            if isinstance(self.competences, Mapping)
            else ((labeler.id, labeler.competence) for labeler in self.competences)
        )
        for name, p in pairs:
            if p is None or not 0 <= p <= 1:
                raise InputError(
                    f"labeler {name!r} has competence {p!r}, expected a known probability"
                )
            given[name] = float(p)
        return given


def _posteriors(table: LabelTable, competences: Floats) -> Floats:
    scores = _scores(table, competences)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _log_likelihood(table: LabelTable, competences: Floats) -> float:
    n, K = len(table.items), len(table.classes)
    scores = _scores(table, competences)
    top = scores.max(axis=1, keepdims=True)
    norm = np.exp(scores - top).sum(axis=1, keepdims=True)
    # p = exp(weight) * q and p + (K - 1) q = 1, so the chance of one wrong class is:
    log_wrong = -np.log(np.exp(vote_weight(competences, K)) + (K - 1))
    height = (top + np.log(norm)).sum() - n * np.log(K) + log_wrong[table.labeler].sum()
    return float(height)


def _scores(table: LabelTable, competences: Floats) -> Floats:
    """The sum of the weights of those who said each class, items x K."""
    n, K = len(table.items), len(table.classes)
    weight = vote_weight(competences, K)
    cell = table.item * K + table.said
    scores = np.bincount(cell, weight[table.labeler], minlength=n * K)
    return scores.reshape(n, K).astype(np.float64)
