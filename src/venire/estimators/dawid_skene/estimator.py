r"""Dawid and Skene's model: a full confusion matrix for each labeler, learned by EM."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError, UnknownName
from venire.estimators.base import TINY, BaseEstimator, Floats
from venire.estimators.convergence import Monitor
from venire.estimators.dawid_skene.class_matching import best_names, margin
from venire.estimators.dawid_skene.e_step import FullModel, full_model
from venire.estimators.dawid_skene.shrinkage import fitted_prior, pooled_prior
from venire.estimators.given import (
    ClassPrior,
    Gold,
    History,
    Soft,
    check_class_prior,
    fixed_counts,
    known_classes,
    settled,
    without_gold,
)
from venire.labels.partitions import Spread
from venire.labels.sources import as_labels

__all__ = ["DawidSkene"]

#: Classes closer than this to being swapped cause a warning: see `margin`.
NEAR_SWAP: Final = 0.05

#: Limits of the first, rough run of EM: iterations, and the change at which it stops.
_LOOK, _ROUGHLY = 20, 1e-3

Start = Literal["majority"]


@dataclass(eq=False)
class DawidSkene(BaseEstimator):
    r"""Confusion matrices and classes from labels alone (Dawid and Skene, 1979).

    Labeler m says l of an item of class k with probability P_mkl; class k has probability
    pi_k. From the shares of the votes EM repeats, until no probability moves by more than
    `tol`,

        q_sk  ~ pi_k  prod of P_mkl over the labels l that labelers m gave s          (E step)
        P_mkl ~ a_mkl + sum of q_sk over the items s of which m said l                (M step)
        pi_k  ~ 1 + sum_s q_sk

    in log space, one pass over the labels per iteration. The pseudo-labels a_mkl are a
    Dirichlet prior that is added in every M step, so that a handful of labels makes nobody
    infallible; what never falls is

        log-likelihood + sum a_mkl log P_mkl + sum log pi_k.

    By default the prior is learned from the panel (`venire.estimators.dawid_skene.shrinkage`): a
    first, short run of EM with two pseudo-labels per row, distributed like the whole panel's
    labels, shows how similar the labelers are; the second run, the one in `history_`, uses the
    prior with the highest likelihood.

    The likelihood does not depend on the names of the classes. If more labels would be right with
    the classes renamed, they are renamed, with a warning; a close call causes a warning too.

    Parameters
    ----------
    max_iter : int
        The maximum number of iterations; 0 returns the start.
    tol : float
        Stop when the largest change of a probability is at most this.
    prior : "panel", number, array or None
        Pseudo-labels: learned from the panel; this many per row, distributed like the panel's; an
        array of K x K (truth by said) for everyone, or one for each labeler; or None, which is
        maximum likelihood (then the class prior has none either).
    class_prior : "learned", "uniform" or K probabilities
        How frequent the classes are.
    start : "majority" or array
        The shares of the votes; or posteriors (items x K); or confusions (labelers x K x K,
        truth by said), from an earlier fit.
    threads : int, optional
        By default as many as there are processors. The result does not depend on it.

    Attributes
    ----------
    confusions_ : array, labelers x K (truth) x K (said)
    priors_ : array of K
    competences_ : array
        The chance that a labeler is right about an item, sum_k pi_k P_mkk.
    pseudo_labels_ : array, labelers x K x K
        The prior that was used.

    Examples
    --------
    >>> from venire import LabelTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> careful, eager = [[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.05, 0.95]]
    >>> panel = np.array([careful, careful, careful, eager, eager])
    >>> said = (rng.random((500, 5)) < panel[np.arange(5), truth, 1]).astype(int)
    >>> learned = DawidSkene().fit(LabelTable.from_matrix(said))
    >>> learned.confusions_[[0, 4]].round(2).tolist()
    [[[0.88, 0.12], [0.21, 0.79]], [[0.51, 0.49], [0.05, 0.95]]]
    >>> right = [learned.labels_[s] == truth[s, 0] for s in range(500)]
    >>> round(float(np.mean(right)), 3), learned.converged_
    (0.946, True)
    """

    name: ClassVar[str] = "dawid-skene"

    max_iter: int = 100
    tol: float = 1e-6
    prior: Literal["panel"] | float | ArrayLike | None = "panel"
    class_prior: ClassPrior | ArrayLike = "learned"
    start: Start | ArrayLike | Spread = "majority"
    threads: int | None = None

    def fit(self, labels: Any, gold: Gold | None = None, history: History | None = None) -> Self:
        """Learn the confusion matrices and the posteriors of the items.

        Parameters
        ----------
        labels
            Complete or partial labels of any K: anything that `venire.as_table` takes.
        gold : mapping of item to class, optional
            Items whose class is known: their posterior is 1 for it.
        history : mapping of labeler to K x K counts, optional
            Labels of earlier work, truth by said, that count like labels of this table.
        """
        table = as_labels(labels)
        known = known_classes(table, gold)
        open_items = without_gold(table, known)
        fixed = fixed_counts(table, known, history)
        with full_model(open_items, self.threads) as model:
            climb = _Climb(self, model, fixed)
            climb.run(self._first(model))
            log_likelihood, posteriors = climb.conclude()
        posteriors = settled(table, posteriors, known)
        self._open, self._fixed = open_items, fixed
        self.pseudo_labels_ = np.ascontiguousarray(climb.pseudo.transpose(0, 2, 1))
        found = np.ascontiguousarray(climb.confusions.transpose(0, 2, 1)), climb.priors
        skills = np.einsum("mkk,k->m", *found)
        return self._settle(table, skills, posteriors, log_likelihood, climb.monitor, *found)

    def learns_priors(self) -> bool:
        """Whether the class frequencies are learned."""
        return isinstance(self.class_prior, str) and self.class_prior == "learned"

    def _first(self, model: FullModel) -> Soft:
        """The soft counts of the first M step."""
        if isinstance(self.start, Spread):
            return model.weigh(self.start)
        if isinstance(self.start, str):
            if self.start not in get_args(Start):
                raise UnknownName("start", self.start, get_args(Start))
            return model.shares()
        given = np.asarray(self.start, dtype=np.float64)
        M, K = model.labelers, model.classes
        if given.shape == (M, K, K):
            confusions = given.transpose(0, 2, 1).clip(TINY)
            return model.expect(
                confusions / confusions.sum(axis=1, keepdims=True), np.full(K, 1 / K)
            )[1]
        if given.shape == (model.rows, K):
            return model.weigh(given)
        raise InputError(
            f"got a start of shape {given.shape}, expected posteriors {(model.rows, K)} or "
            f"confusions {(M, K, K)}"
        )


class _Climb:
    """EM with a prior: the parameters and their updates."""

    def __init__(self, how: DawidSkene, model: FullModel, fixed: Soft) -> None:
        self.how, self.model, self.fixed = how, model, fixed
        self.monitor = Monitor(how.tol, how.max_iter)
        self.pseudo = np.zeros(fixed.labels.shape)
        self._given_priors = check_class_prior(how.class_prior, model.classes)
        self.item_pseudo = 0.0 if how.prior is None else 1.0

    def run(self, soft: Soft) -> None:
        """Choose the prior, run EM, and make sure that the classes have the right names."""
        soft = self._with_fixed(soft)
        self.pseudo = self._prior(soft)
        K = self.model.classes
        self.priors, self.confusions = np.full(K, 1 / K), np.full(self.pseudo.shape, 1 / K)
        self._maximise(soft)
        if isinstance(self.how.prior, str) and self.how.max_iter > 0:
            look = Monitor(max(self.how.tol, _ROUGHLY), min(self.how.max_iter, _LOOK))
            soft = self._climb(look, soft)
            self.pseudo = fitted_prior(soft.labels)
            self._maximise(soft)
        self._check_names(self._climb(self.monitor, soft))

    def expect(self) -> tuple[float, Soft]:
        """Log-likelihood, gold and history included, and all soft counts."""
        total, soft = self.model.expect(self.confusions, self.priors)
        return total + self._of_fixed(), self._with_fixed(soft)

    def conclude(self) -> tuple[float, Any]:
        """Log-likelihood, and the posteriors of all items."""
        total, _, posteriors = self.model.conclude(self.confusions, self.priors)
        return total + self._of_fixed(), posteriors

    def _of_fixed(self) -> float:
        labels = float((self.fixed.labels * np.log(self.confusions)).sum())
        return labels + float((self.fixed.items * np.log(self.priors)).sum())

    def _with_fixed(self, soft: Soft) -> Soft:
        return Soft(soft.items + self.fixed.items, soft.labels + self.fixed.labels)

    def _climb(self, monitor: Monitor, soft: Soft) -> Soft:
        """Run EM to convergence; returns the soft counts of the last E step."""
        while not monitor.done:
            total, soft = self.expect()
            height = total + self._penalty()
            monitor.report(height, self._maximise(soft))
        return soft

    def _penalty(self) -> float:
        return float(
            (self.pseudo * np.log(self.confusions)).sum()
            + self.item_pseudo * np.log(self.priors).sum()
        )

    def _maximise(self, soft: Soft) -> float:
        """The M step; returns the largest change."""
        counts = soft.labels + self.pseudo
        total = counts.sum(axis=1, keepdims=True)
        better = self.confusions.copy()
        np.divide(counts, total, out=better, where=total > 0)
        better = better.clip(TINY, 1.0)
        priors = self._given_priors
        if priors is None:
            items = soft.items + self.item_pseudo
            priors = (items / items.sum()).clip(TINY, 1.0)
        change = max(np.abs(better - self.confusions).max(), np.abs(priors - self.priors).max())
        self.confusions, self.priors = better, priors
        return float(change)

    def _prior(self, soft: Soft) -> Floats:
        prior, shape = self.how.prior, soft.labels.shape
        if prior is None:
            return np.zeros(shape)
        if isinstance(prior, str):
            if prior != "panel":
                raise UnknownName("prior", prior, ["panel"])
            return pooled_prior(soft.labels)
        given = np.asarray(prior, dtype=np.float64)
        if given.ndim not in (0, 2, 3) or not (np.isfinite(given) & (given >= 0)).all():
            raise InputError(f"got the prior {prior!r}, expected finite counts, 0 or more")
        if given.ndim == 0:
            return pooled_prior(soft.labels, float(given))
        if given.shape[-2:] != shape[1:] or (given.ndim == 3 and len(given) != shape[0]):
            raise InputError(f"got a prior of shape {given.shape}, expected {shape} or {shape[1:]}")
        return np.broadcast_to(np.swapaxes(given, -1, -2), shape)

    def _check_names(self, soft: Soft) -> None:
        joint = soft.labels.sum(axis=0).T
        if not joint.any():
            return
        names = best_names(joint)
        right = np.trace(joint) / joint.sum()
        if (names != np.arange(len(names))).any():
            found = f"EM ended with only {right:.0%} of the labels right"
            if self.fixed.items.any():
                warnings.warn(
                    f"{found}, but gold labels name the classes: check them", stacklevel=4
                )
                return
            warnings.warn(f"{found}: renamed the classes, under which more are", stacklevel=4)
            self._rename(names, soft)
        elif margin(joint) < NEAR_SWAP:
            warnings.warn(
                "two classes were nearly called by each other's names: check the verdicts, or "
                "give some gold labels",
                stacklevel=4,
            )

    def _rename(self, names: NDArray[np.intp], soft: Soft) -> None:
        """Rename class k to names[k], and continue EM from there."""
        old = np.argsort(names)
        self.confusions = self.confusions[:, :, old]
        if self._given_priors is None:
            self.priors = self.priors[old]
        self.monitor = Monitor(self.how.tol, self.how.max_iter)
        self._climb(self.monitor, soft)
