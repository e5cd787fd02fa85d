r"""Classes that have an order, such as ratings from 1 to 5.

**Types of rater: what one with a bias, a spread and a share of careless answers says.**

A rater of bias b and spread s sees an item of class k (0 to K - 1) at k + b + s * noise, and says
the class whose interval that falls into; in a share `lapse` of the answers it says anything:

    T(l | k) = (1 - lapse) * [ Phi((l + 1/2 - k - b) / s) - Phi((l - 1/2 - k - b) / s) ] + lapse / K

with the first and the last interval open. In addition there are types who never look: one who
answers at random, and for each class one who nearly always says it.

Whether labels show the declared order of their classes.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Final, Self

import numpy as np

from venire.errors import InputError
from venire.estimators.base import BaseEstimator, Monitor
from venire.estimators.blocks import model_of
from venire.estimators.dawid_skene import FullModel
from venire.estimators.gold import Soft
from venire.estimators.metrics import alpha_of, coincidences
from venire.labels.partitions import Partitions, Table, total
from venire.labels.sources.truth import as_ordered, numbers_of
from venire.tools.arrays import Floats, softmax

#: Pairs of classes that would meet less often than this by chance are ignored.
_FEWEST: Final = 10.0

#: Pseudo-pairs at each boundary, distributed as by chance.
_PSEUDO_LABELS: Final = 4.0


def order_strength(table: Table) -> float:
    r"""How much more often labels of an item are neighbours than further apart.

    The classes of the table stand in order.

    o_kl counts the pairs of labels of the same item that say k and l, e_kl those that chance would
    make of the same labels (both as in Krippendorff's alpha). At the boundary between k and k + 1

        ( o_k,k+1 / e_k,k+1 )  /  ( sum of o_ij / sum of e_ij  over the other i <= k < j )

    is above 1 where errors across it are small (four pairs are added as by chance). The strength is
    that of the weakest boundary: classes that are confused in pairs (1 and 2, 3 and 4) have no
    order. It is infinite where too little is known, and 0 with two classes.

    >>> from venire import LabelTable
    >>> order_strength(LabelTable.from_matrix([[0, 1], [1, 2], [1, 1], [2, 2]] * 30, classes=3))
    10.375
    >>> anything = [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]] * 30
    >>> order_strength(LabelTable.from_matrix(anything, classes=3))
    1.0
    """
    K = len(table.classes)
    if K == 2:
        return 0.0
    seen, said = total(table, coincidences)
    chance = np.outer(said, said) / max(said.sum(), 1.0)
    links = [np.inf]
    for k in range(K - 1):
        far = np.zeros((K, K), np.bool_)
        far[: k + 1, k + 1 :] = True
        far[k, k + 1] = False
        near_by_chance, far_by_chance = chance[k, k + 1], chance[far].sum()
        if min(near_by_chance, far_by_chance) >= _FEWEST:
            share = _PSEUDO_LABELS / (near_by_chance + far_by_chance)
            near = seen[k, k + 1] / near_by_chance + share
            links.append(near / (seen[far].sum() / far_by_chance + share))
    return float(min(links))


_BIASES: Final = np.linspace(-2.0, 2.0, 17)
_LAPSES: Final = (0.02, 0.1, 0.3, 0.6)

#: Spreads grow by this factor, from the first up to half of the classes, and at least to 2.
_FIRST, _FACTOR, _LEAST = 0.25, 4 / 3, 2.0

#: The share of other answers of a constant rater.
_CONSTANT: Final = 0.05


class RaterTypes:
    """The types: `tables` is types x K (truth) x K (said); `bias` and `spread` of each.

    For those who never look the bias is 0 and the spread infinite.
    """

    def __init__(self, tables: Floats, bias: Floats, spread: Floats) -> None:
        self.tables, self.bias, self.spread = tables, bias, spread


def rater_types(classes: int) -> RaterTypes:
    """All types of rater for this number of classes.

    >>> kinds = rater_types(5)
    >>> kinds.tables.shape, kinds.tables.sum(axis=2).round(9).min()
    ((686, 5, 5), np.float64(1.0))
    """
    from scipy.special import ndtr

    K, k = classes, np.arange(classes)
    steps = int(np.ceil(np.log(max(_LEAST, K / 2) / _FIRST) / np.log(_FACTOR))) + 1
    made = list(product(_BIASES, _FIRST * _FACTOR ** np.arange(steps), _LAPSES))
    bias, spread, lapse = np.array(made).T
    edge = np.concatenate([[-np.inf], k[:-1] + 0.5, [np.inf]])
    below = ndtr((edge - k[:, None] - bias[:, None, None]) / spread[:, None, None])
    careful = np.diff(below, axis=2)
    tables = careful + lapse[:, None, None] * (1 / K - careful)
    idle = (1 - _CONSTANT) * np.repeat(np.eye(K)[:, None], K, axis=1) + _CONSTANT / K
    idle = np.concatenate([idle, np.full((1, K, K), 1 / K)])
    return RaterTypes(
        np.concatenate([tables, idle]),
        np.concatenate([bias, np.zeros(K + 1)]),
        np.concatenate([spread, np.full(K + 1, np.inf)]),
    )


#: With more classes than this the labels are measurements: `RobustMean` is for them.
MOST_CLASSES: Final = 100

#: Pseudo-raters, distributed over all types.
_PSEUDO: Final = 5.0


@dataclass(eq=False)
class Ordinal(BaseEstimator):
    r"""Verdicts and raters for ordered classes: near misses are more likely than far ones.

    Dawid and Skene's model, but a rater's confusion matrix is one of several hundred tables T_c:
    those of a bias, a spread and a share of careless answers, and of raters who never look
    (`venire.estimators.ratings.ordinal`). How frequent each type is, rho_c, is learned from the
    panel. Mean-field EM, from the shares of the votes, repeats until nothing moves by more than
    `tol`

        r_mc ~ rho_c exp( sum over k, l of n_mkl log T_c(l | k) )     n_mkl: soft counts of labels
        q_sk ~ pi_k  exp( sum over labels l of s by m, sum_c r_mc log T_c(l | k) )

    with rho and pi the mean shares (plus pseudo-counts); `history_` holds the bound on the
    log-likelihood, which never falls.

    The order is used only if the labels show it: two different labels of an item must be in
    adjacent classes `least_order` times as often, relative to chance, as further apart, at every
    boundary between two classes (`venire.estimators.ratings.ordinal`). Where they are not, mistakes
    have little to do with the order, and the verdicts are those of `Auto`; with two classes this is
    always so.

    `labels_` is the most probable class, as everywhere: confidence then is the probability
    that the label is right. `medians_` has the class of least expected absolute error. They
    hardly differ: docs/tables.md has both.

    Parameters
    ----------
    order : sequence of classes, optional
        From the lowest to the highest. Classes that are numbers, or text of numbers, need none.
    max_iter, tol
        When to stop.
    least_order : float
        See above; 0 always uses the order.
    threads : int, optional
        By default as many as there are processors. The result does not depend on it.

    Attributes
    ----------
    ordered_ : bool
        Whether the order was used.
    strength_ : float
        How much more often labels are in adjacent classes, at the weakest boundary.
    alphas_ : dict
        Krippendorff's alpha, nominal and ordinal.
    chosen_, why_ : str
        "ordinal" or "auto", and why in words.
    biases_ : array
        By how many classes each labeler rates higher than the others; nan where `Auto` decided.
    idle_ : array
        The probability that a labeler never looks; nan where `Auto` decided.

    Examples
    --------
    >>> from venire import LabelTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(5, size=(300, 1))
    >>> bias, spread = np.array([0.8, 0.0, 0.0, -0.8]), np.array([0.5, 0.5, 1.0, 1.0])
    >>> seen = truth + bias + spread * rng.normal(size=(300, 4))
    >>> said = np.clip(np.rint(seen), 0, 4).astype(int)
    >>> ratings = Ordinal().fit(LabelTable.from_matrix(said, classes=5))
    >>> [round(b) for b in ratings.biases_.tolist()]
    [1, 0, 0, -1]
    >>> found, mean = list(ratings.labels_.values()), np.rint(said.mean(axis=1))
    >>> [round(float(np.mean(x == truth[:, 0])), 2) for x in (found, mean)]
    [0.84, 0.81]
    """

    name: ClassVar[str] = "ordinal"

    order: Sequence[Hashable] | None = None
    max_iter: int = 200
    tol: float = 1e-4
    least_order: float = 1.2
    threads: int | None = None

    def fit(self, labels: Any) -> Self:
        """Learn the types of the raters and the posteriors of the items."""
        table = self._table(labels)
        if len(table.classes) > MOST_CLASSES:
            raise InputError(
                f"got {len(table.classes)} classes, expected at most {MOST_CLASSES}: for "
                "measurements use RobustMean (--numeric)"
            )
        self.alphas_ = {
            "nominal": alpha_of(table, "nominal"),
            "ordinal": alpha_of(table, "ordinal"),
        }
        self.__dict__.pop("medians_", None)  # those of an earlier fit
        self.strength_ = order_strength(table)
        self.ordered_ = self.strength_ >= self.least_order
        self.why_ = _why(self.strength_, self.ordered_)
        self.chosen_ = "ordinal" if self.ordered_ else "auto"
        return self._climb(table) if self.ordered_ else self._without_order(table)

    def _table(self, labels: Any) -> Table:
        """The labels with the classes in order, as partitions must have them already."""
        if not isinstance(labels, Partitions):
            return as_ordered(labels, self.order)
        numbers = numbers_of(labels.classes)
        rising = numbers is not None and bool((np.diff(numbers) > 0).all())
        if tuple(labels.classes) != tuple(self.order or ()) and (self.order or not rising):
            raise InputError(
                f"got partitions with the classes {list(labels.classes)[:5]}, expected them in "
                "order: name the classes, from the lowest to the highest, when they are loaded"
            )
        return labels

    def _climb(self, table: Table) -> Self:
        kinds = rater_types(len(table.classes))
        with model_of(FullModel, table, self.threads) as model:
            raters = _Raters(kinds, model.labelers)
            monitor = Monitor(self.tol, self.max_iter)
            raters.learn(model.shares())
            while not monitor.done:
                total, soft = model.expect(raters.said, raters.priors)
                monitor.report(total + raters.penalty(), raters.learn(soft))
            posteriors = model.conclude(raters.said, raters.priors)[2]
        self.biases_, self.idle_ = raters.biases(), raters.idle()
        confusions = raters.confusions()
        skills = np.einsum("mkk,k->m", confusions, raters.priors)
        return self._settle(table, skills, posteriors, confusions, raters.priors, monitor=monitor)

    def _without_order(self, table: Table) -> Self:
        from venire.estimators.auto import Auto

        auto = Auto(seed=self.seed, threads=self.threads).fit(table)
        self.biases_ = self.idle_ = np.full(len(table.labelers), np.nan)
        found = auto.competences_, auto.posterior_rows(), auto.confusions_, auto.priors_
        return self._settle(table, *found)

    @cached_property
    def medians_(self) -> dict[Hashable, Hashable]:
        """The class of least expected absolute error of each item, None without any label."""
        below = (np.cumsum(self.posteriors_, axis=1) < 0.5 - 1e-9).sum(axis=1)
        labelled = np.diff(self.table_.start) > 0
        names = self.table_.classes
        said = (names[k] if has else None for k, has in zip(below, labelled, strict=True))
        return dict(zip(self.table_.items, said, strict=True))


class _Raters:
    """The type of each rater, and the frequencies of types and classes."""

    def __init__(self, kinds: RaterTypes, labelers: int) -> None:
        self.kinds, C = kinds, len(kinds.bias)
        self._logs = np.log(kinds.tables).transpose(0, 2, 1).reshape(C, -1)  # said x truth
        self._log_share = np.full(C, -np.log(C))
        self.said = np.zeros((labelers, *kinds.tables.shape[1:]))

    def learn(self, soft: Soft) -> float:
        """The M step; returns the largest change of a probability."""
        M, C = len(self.said), len(self._log_share)
        self.types = softmax(soft.labels.reshape(M, -1) @ self._logs.T + self._log_share)
        self._log_share = np.log((self.types.sum(axis=0) + _PSEUDO / C) / (M + _PSEUDO))
        priors = soft.items + 1
        self.priors = priors / priors.sum()
        before, self.said = self.said, np.exp(self.types @ self._logs).reshape(self.said.shape)
        return float(np.abs(self.said - before).max())

    def penalty(self) -> float:
        """The part of the bound that does not depend on the items: types and pseudo-counts."""
        kept = np.where(self.types > 0, self.types, 1.0)
        odd = (self.types * (self._log_share - np.log(kept))).sum()
        pseudo = _PSEUDO * self._log_share.mean() + np.log(self.priors).sum()
        return float(odd + pseudo)

    def confusions(self) -> Floats:
        C, K, _ = self.kinds.tables.shape
        return np.asarray(self.types @ self.kinds.tables.reshape(C, -1)).reshape(-1, K, K)

    def idle(self) -> Floats:
        return np.asarray(self.types[:, np.isinf(self.kinds.spread)].sum(axis=1))

    def biases(self) -> Floats:
        return np.asarray(self.types @ self.kinds.bias)


def _why(strength: float, ordered: bool) -> str:
    if np.isinf(strength):
        return "Too few labels to see whether the order of the classes matters: it is used."
    shown = (
        "At the weakest boundary between two classes, labels that differ are neighbours "
        f"{strength:.2f} times as often as further apart"
    )
    if ordered:
        return f"{shown}: mistakes are near misses, so the order of the classes is used."
    return f"{shown}: mistakes have little to do with the order, so it is not used (auto)."
