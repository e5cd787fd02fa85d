"""The default method: a blend of models, each weighted by how well it predicts unseen labels."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from venire.aggregation.calibration import discounted, residual_dependence
from venire.aggregation.clones import Clones, find_clones
from venire.aggregation.heldout import held_out_predictions, stacking_weights
from venire.aggregation.majority import VoteEstimator
from venire.aggregation.merging import merge_clones
from venire.aggregation.weighted import WeightedMajority
from venire.competence.base import BaseEstimator, Floats
from venire.competence.dawid_skene import DawidSkene
from venire.competence.monitor import Monitor
from venire.competence.one_coin import OneCoin
from venire.errors import InputError
from venire.labels import LabelTable
from venire.tables import as_table

__all__ = ["Auto"]

#: Labels of an item that are more dependent than this, given the classes that Dawid-Skene
#: finds, say that its classes are not those of the labels.
MOST_DEPENDENT: Final = 0.1

#: A warning of a model is passed on if the model has at least this weight.
HEARD: Final = 0.25

_LABEL_MODELS: Final = ("one-coin", "dawid-skene")


@dataclass(eq=False)
class Auto(VoteEstimator):
    r"""Blend weighted majority, one-coin and Dawid-Skene by what the labels themselves tell.

    No single model is safe: Dawid-Skene is best where labelers have habits of their own and
    falls below majority where they depend on each other; one-coin is wrong where classes are
    unlike; weighted majority leaves much unused. The truth is never used. In turn:

    1. *Copies.* Groups of labelers who are copies of each other (`find_clones`) get one voice.
    2. *Dependence.* Dawid-Skene is fitted, and left out if labels of an item remain correlated
       by more than `most_dependent` given its classes (`residual_dependence`). The classes are
       then only the two ends of something that the labelers share, such as how striking an item
       is, and where it draws the line between them has little to do with what they are called.
    3. *Held-out labels.* The models that remain get the weights under which their mixture
       predicts unseen labels best (`stacking_weights`).
    4. *Confidence.* The posteriors of one-coin and Dawid-Skene are divided down to the number
       of independent labels that the labels of an item are worth (`calibrated`); the blend is
       the weighted mean of the posteriors.

    Parameters
    ----------
    discount_clones : bool
        Whether to look for copies and give them one voice.
    calibrate : bool
        Whether to do step 4; without it, the blend is that of the models as they are.
    most_dependent : float
        See step 2.
    seed : int
        Which labels are held out.
    threads : int, optional
        For the models that use them.

    Attributes
    ----------
    chosen_ : str
        The model of the largest weight.
    why_ : str
        What was taken and why, in words.
    weights_ : dict of model name to weight
    clones_ : Clones
    dependence_ : float
        The correlation that Dawid-Skene leaves between two labels of an item.
    scores_ : dict of model name to the mean log-probability of held-out labels

    Notes
    -----
    The rule and its constant were chosen on synthetic worlds (benchmarks/zoo.py), not on real
    data; docs/real-data.md has both tables. Competences and confusion matrices are those that
    the blended posteriors imply; a blend has no likelihood.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> careful, eager = [[0.9, 0.1], [0.2, 0.8]], [[0.4, 0.6], [0.05, 0.95]]
    >>> panel = np.array([careful, careful, eager, eager, eager])
    >>> said = (rng.random((300, 5)) < panel[np.arange(5), truth, 1]).astype(int)
    >>> auto = Auto().fit(LabelTable.from_matrix(said))
    >>> auto.chosen_
    'dawid-skene'
    >>> right = [auto.labels_[s] == truth[s, 0] for s in range(300)]
    >>> round(float(np.mean(right)), 3)
    0.94
    """

    name: ClassVar[str] = "auto"

    discount_clones: bool = True
    calibrate: bool = True
    most_dependent: float = MOST_DEPENDENT
    seed: int = 0
    threads: int | None = None

    def fit(self, labels: Any) -> Self:
        """Compare the models on the labels, and blend them."""
        if not self.most_dependent >= 0:
            raise InputError(f"got most_dependent={self.most_dependent!r}, expected at least 0")
        if not isinstance(self.seed, int | np.integer) or self.seed < 0:
            raise InputError(f"got seed={self.seed!r}, expected a whole number from 0 on")
        table = as_table(labels)
        self.clones_ = find_clones(table, seed=self.seed) if self.discount_clones else _NOBODY
        merged = merge_clones(table, self.clones_.groups)
        fitted, heard = _fit(merged, _models(self.threads))
        self.dependence_ = residual_dependence(merged, fitted["dawid-skene"].posteriors_)
        if self.dependence_ > self.most_dependent:
            del fitted["dawid-skene"]
        self._weigh(merged, list(fitted))
        for name in (n for n in fitted if self.weights_[n] >= HEARD):
            for message in heard[name]:
                warnings.warn(f"{name}: {message}", stacklevel=2)
        monitor = _monitor(fitted.values())
        return self._judge(table, self._blend(merged, fitted), monitor)

    def _weigh(self, table: LabelTable, names: list[str]) -> None:
        models = {name: m for name, m in _models(self.threads, rough=True).items() if name in names}
        predictions = held_out_predictions(table, models, self.seed)
        weights = stacking_weights(predictions)
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        self.chosen_ = max(names, key=self.weights_.__getitem__)
        held = len(predictions)
        scores = np.log(predictions).mean(axis=0) if held else np.full(len(names), np.nan)
        self.scores_ = dict(zip(names, scores.tolist(), strict=True))
        self.why_ = " ".join([_blended(self.weights_, held), self._dependence(), *self._copies()])

    def _blend(self, table: LabelTable, fitted: dict[str, BaseEstimator]) -> Floats:
        blend = np.zeros((len(table.items), len(table.classes)))
        for name, model in fitted.items():
            q = model.posteriors_
            if self.calibrate and name in _LABEL_MODELS:
                q = discounted(table, q)
            blend += self.weights_[name] * q
        return np.asarray(blend / blend.sum(axis=1, keepdims=True))

    def _dependence(self) -> str:
        rho = f"{self.dependence_:.2f}"
        if self.dependence_ > self.most_dependent:
            return (
                f"Dawid-Skene is left out: given the classes it finds, two labels of an item still "
                f"have a correlation of {rho} (above {self.most_dependent:g}), so its classes may "
                "not be those of the labels."
            )
        return f"Given Dawid-Skene's classes, two labels of an item have a correlation of {rho}."

    def _copies(self) -> list[str]:
        return [
            f"{_listed(g.members)} are taken for copies (correlation of errors "
            f"{g.correlation:.2f}) and have one voice."
            for g in self.clones_.groups
        ]


_NOBODY: Final = Clones((), (), 0)


def _models(threads: int | None, rough: bool = False) -> dict[str, BaseEstimator]:
    """The models of the blend; rough fits are enough to compare them."""
    how: dict[str, Any] = {"max_iter": 50, "tol": 1e-3} if rough else {"max_iter": 200, "tol": 1e-5}
    coin = OneCoin(start="votes", threads=threads, **how)
    models = (WeightedMajority(**how), coin, DawidSkene(threads=threads, **how))
    return dict(zip(("weighted-majority", *_LABEL_MODELS), models, strict=True))


def _fit(
    table: LabelTable, models: dict[str, BaseEstimator]
) -> tuple[dict[str, BaseEstimator], dict[str, list[str]]]:
    """The models fitted, and the warnings of each."""
    heard = {}
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(table)
        heard[name] = [str(w.message) for w in caught]
    return models, heard


def _monitor(fitted: Any) -> Monitor:
    """The record of the blend: that of the model which took longest."""
    slowest = max(fitted, key=lambda model: model.n_iter_)
    monitor = Monitor(0.0, slowest.n_iter_)
    monitor.history = list(slowest.history_)
    monitor.reason = "converged" if all(m.converged_ for m in fitted) else "max_iter"
    return monitor


def _blended(weights: dict[str, float], held: int) -> str:
    if not held:
        return "All models have the same weight: no item has two labels to compare them on."
    parts = sorted(weights.items(), key=lambda part: -part[1])
    shares = ", ".join(f"{name} {100 * w:.0f} %" for name, w in parts)
    return f"Blend of {shares}: the weights that best predict {held} held-out labels."


def _listed(names: tuple[Hashable, ...]) -> str:
    shown = [str(n) for n in names[:5]] + ([f"{len(names) - 5} more"] if len(names) > 5 else [])
    return ", ".join(shown[:-1]) + " and " + shown[-1]
