r"""Dawid and Skene's model: a full confusion matrix for each labeler, learned by EM.

**Pseudo-counts for confusion matrices, learned from the panel itself (empirical Bayes).**

A labeler with few labels says little about its own K x K confusion matrix; the panel says more.
The row of labeler m for items whose class is k is drawn from a Dirichlet distribution,

    P_mk ~ Dirichlet(1 + s C_mk),

so s C_mk are pseudo-labels that every M step adds to the labeler's own (MAP). The centre C_mk
starts from the pooled row of the panel for that class. Where labelers differ in skill more than in
type of error, the labeler's labels on the *other* classes say how good it is, and its chance of
being right moves with them on the logit scale; errors are distributed like the panel's. A row never
contributes to its own centre, so nothing is counted twice.

How much to trust the centre (s), and how much the other rows (t pseudo-labels of the panel
against them; infinite means not at all), is what makes the counts most probable: the
Dirichlet-multinomial likelihood, with a flat log-normal hyper-prior around s = 2.

**Matching fitted classes to their names: EM may find the classes with their names exchanged.**

The likelihood does not depend on the names; only the labels identify the classes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError, UnknownName
from venire.estimators.base import TINY, BaseEstimator, Monitor
from venire.estimators.blocks import Model, model_of
from venire.estimators.gold import (
    ClassPrior,
    Gold,
    History,
    Soft,
    check_class_prior,
    class_shares,
    fixed_counts,
    known_classes,
    settled,
    without_gold,
)
from venire.estimators.passes import count_pass, full_pass, pair_pass, share_pass, weigh_pass
from venire.labels import LabelTable
from venire.labels.partitions import Spread
from venire.labels.sources import as_labels
from venire.tools.arrays import Floats


def best_names(joint: Floats) -> NDArray[np.intp]:
    """The name of each class under which most labels are right; `joint` counts truth x said.

    >>> best_names(np.array([[1.0, 9.0], [8.0, 2.0]])).tolist()
    [1, 0]
    >>> best_names(np.eye(3)).tolist()
    [0, 1, 2]
    """
    K = len(joint)
    if (joint.argmax(axis=1) == np.arange(K)).all():
        return np.arange(K)
    from scipy.optimize import linear_sum_assignment

    names: NDArray[np.intp] = linear_sum_assignment(joint, maximize=True)[1]
    gained = joint[np.arange(K), names].sum() - np.trace(joint)
    return names if gained > 1e-9 * joint.sum() else np.arange(K)


def margin(joint: Floats) -> float:
    """How far two names are from being swapped: 1 if no label supports it, below 0 if most do.

    For the two classes that are closest to it, the share of right labels less that of labels that
    would be right if the two swapped names. Pairs with less than 1 % of the labels between them do
    not count.

    >>> margin(np.array([[50.0, 30.0], [0.0, 20.0]]))
    0.4
    """
    right = np.diag(joint)
    straight, swapped = right[:, None] + right, joint + joint.T
    mass = straight + swapped
    pairs = np.triu(mass > 0.01 * joint.sum(), 1)
    return float(((straight - swapped)[pairs] / mass[pairs]).min(initial=1.0))


#: The pseudo-labels of a row before the panel is known. On 28 kinds of synthetic panel 2, 5 and K
#: end up the same (mean error 5.15, 5.14 and 5.15 %, four worlds each).
START_STRENGTH: Final = 2.0

#: Pseudo-labels of the panel against a labeler's own other rows.
_TRUST: Final = (np.inf, 80.0, 20.0, 5.0)

#: Strengths that are tried, and the width of the hyper-prior in factors of e.
_STEP, _LEAST, _MOST, _WIDTH = 2**0.25, 2**-3, 2.0**12, 2.0

#: The other rows are used only if that makes the counts this many times more probable.
_EVIDENCE: Final = np.log(10.0)

#: The most cells of counts that are used; a larger panel is sampled evenly.
_CELLS: Final = 200_000


def pooled_prior(counts: Floats, strength: float = START_STRENGTH) -> Floats:
    """Pseudo-labels, `strength` per row, distributed like the panel's; [labeler, said, truth].

    >>> counts = np.array([[[8.0, 1.0], [0.0, 9.0]], [[2.0, 0.0], [0.0, 0.0]]])
    >>> pooled_prior(counts)[1].round(2).tolist()
    [[1.98, 0.2], [0.02, 1.8]]
    """
    return strength * centre(counts, np.inf)


def fitted_prior(counts: Floats) -> Floats:
    """The pseudo-labels that make the panel's counts most probable; [labeler, said, truth].

    >>> same = np.tile([[[80.0, 10.0], [20.0, 90.0]]], (30, 1, 1))
    >>> fitted_prior(same)[0].sum(axis=0).round().tolist()  # all alike: the centre counts for much
    [1722.0, 1722.0]
    """
    thin = slice(None, None, 1 + counts.size // _CELLS)
    best, found = -np.inf, (np.inf, START_STRENGTH)
    strength = START_STRENGTH
    for trust in _TRUST:
        strength, value = _strength(counts[thin], centre(counts, trust)[thin], strength)
        value -= _EVIDENCE if np.isfinite(trust) else 0.0
        if value > best:
            best, found = value, (trust, strength)
    return found[1] * centre(counts, found[0])


def centre(counts: Floats, trust: float) -> Floats:
    """The centre of each row, [labeler, said, truth]; columns of truth sum to 1.

    >>> counts = np.array([[[8.0, 1.0], [2.0, 9.0]], [[50.0, 0.0], [50.0, 0.0]]])
    >>> centre(counts, np.inf)[1].round(2).tolist()
    [[0.53, 0.1], [0.47, 0.9]]
    >>> centre(counts, 5.0)[1].round(2).tolist()  # wrong on the first class, so also on the other
    [[0.53, 0.11], [0.47, 0.89]]
    """
    K = counts.shape[1]
    pooled = counts.sum(axis=0) + 0.1 + np.eye(K)
    pooled /= pooled.sum(axis=0)
    if not np.isfinite(trust) or K < 2:
        return np.broadcast_to(pooled, counts.shape)
    right = np.diag(pooled)
    wrong = pooled * (1 - np.eye(K)) / (1 - right)
    own = _expit(np.log(right / (1 - right)) + _shift(counts, right, trust))
    return np.asarray(wrong * (1 - own)[:, None, :] + np.eye(K) * own[:, None, :])


def _shift(counts: Floats, right: Floats, trust: float) -> Floats:
    """By how much a labeler is better, in logits, judged by its other rows; [labeler, truth].

    The root in z of  sum_j (n_j + trust w_j) sigmoid(logit_j + z) = sum_j right_j + trust w_j p_j
    over the other classes j, by Newton's method.
    """
    other = 1 - np.eye(len(right))
    given, hits = counts.sum(axis=1), np.einsum("mkk->mk", counts)
    share = (given.sum(axis=0) + 1e-9) * other
    share /= share.sum(axis=1, keepdims=True)
    weight = given[:, None, :] * other + trust * share
    wanted = hits @ other + trust * (share @ right)
    logit = np.log(right / (1 - right))
    z = np.zeros_like(given)
    for _ in range(12):
        p = _expit(logit + z[:, :, None])
        step = (wanted - (weight * p).sum(axis=2)) / (weight * p * (1 - p)).sum(axis=2)
        z = (z + step.clip(-2.0, 2.0)).clip(-6.0, 6.0)
    return np.asarray(z)


def _strength(counts: Floats, centres: Floats, start: float) -> tuple[float, float]:
    """The most probable strength and its log-likelihood: uphill on a geometric grid."""
    from scipy.special import gammaln

    given = counts.sum(axis=1)

    def value(s: float) -> float:
        a = s * centres
        rows = gammaln(s) - gammaln(given + s) + (gammaln(counts + a) - gammaln(a)).sum(axis=1)
        return float(rows.sum() - (np.log(s / START_STRENGTH) / _WIDTH) ** 2 / 2)

    s, best = start, value(start)
    for factor in (_STEP**4, 1 / _STEP**4, _STEP, 1 / _STEP):
        while _LEAST <= s * factor <= _MOST and (tried := value(s * factor)) > best:
            s, best = s * factor, tried
    return s, best


def _expit(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


class FullModel(Model):
    """Passes over a table; confusions are [labeler, said, truth], columns of truth sum to 1.

    Items without labels do not count. `given` are the labels of each labeler by what was said,
    `items` is how many items have labels, `rows` how many there are.

    >>> with FullModel(LabelTable.from_matrix([[0, 0], [1, 0]])) as model:
    ...     soft = model.shares()
    >>> soft.items.tolist(), soft.labels[1].tolist()
    ([1.5, 0.5], [[1.5, 0.5], [0.0, 0.0]])
    """

    def __init__(self, table: LabelTable, threads: int | None = None) -> None:
        labelers, classes = len(table.labelers), len(table.classes)
        self._room = classes + labelers * classes**2
        super().__init__(table, self._room, threads)
        codes = self.labelers * self.classes
        self.items, given = self._blocks.run(count_pass, codes)
        self.given: Floats = given.reshape(self.labelers, self.classes)

    def shares(self) -> Soft:
        """Soft counts with the vote shares as posteriors."""
        return self._soft(
            self._blocks.run(share_pass, self._room, self._blocks.said_of, self.classes)[1]
        )

    def weigh(self, posteriors: Any) -> Soft:
        """Soft counts with given posteriors."""
        run = self._blocks.run(weigh_pass, self._room, self.classes, posteriors=posteriors)
        return self._soft(run[1])

    def expect(
        self, confusions: Floats, priors: Floats, posteriors: Floats | None = None
    ) -> tuple[float, Soft]:
        """Log-likelihood and soft counts; `posteriors` receives those of items with labels."""
        if self.classes == 2:
            return self._pairs(np.log(confusions), np.log(priors), posteriors)
        said = np.ascontiguousarray(confusions.reshape(-1, self.classes))
        given = np.log(said), said, np.log(priors)
        total, sums = self._blocks.run(full_pass, self._room, *given, posteriors=posteriors)
        return total, self._soft(sums)

    def _pairs(
        self, log_said: Floats, log_prior: Floats, posteriors: Floats | None
    ) -> tuple[float, Soft]:
        weight = (log_said[..., 1] - log_said[..., 0]).ravel()
        odds = float(log_prior[1] - log_prior[0])
        room = weight.size + 1
        given = weight, np.exp(weight), odds
        total, sums = self._blocks.run(pair_pass, room, *given, posteriors=posteriors)
        total += float((self.given * log_said[..., 0]).sum() + self.items * log_prior[0])
        second = sums[:-1].reshape(self.given.shape)
        labels = np.stack([np.maximum(self.given - second, 0.0), second], axis=-1)
        return total, Soft(np.array([self.items - sums[-1], sums[-1]]).clip(0.0), labels)

    def _soft(self, sums: Floats) -> Soft:
        K = self.classes
        return Soft(sums[:K], sums[K:].reshape(self.labelers, K, K))


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

    By default the prior is learned from the panel (`venire.estimators.dawid_skene`): a
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

        `history`, a mapping of labeler to K x K counts (truth by said), are labels of earlier work
        that count like those of this table.
        """
        table = as_labels(labels)
        known = known_classes(table, gold)
        open_items = without_gold(table, known)
        fixed = fixed_counts(table, known, history)
        with model_of(FullModel, open_items, self.threads) as model:
            climb = _Climb(self, model, fixed)
            climb.run(self._first(model))
            log_likelihood, posteriors = climb.conclude()
        posteriors = settled(table, posteriors, known)
        self._open, self._fixed = open_items, fixed
        self.pseudo_labels_ = np.ascontiguousarray(climb.pseudo.transpose(0, 2, 1))
        found = np.ascontiguousarray(climb.confusions.transpose(0, 2, 1)), climb.priors
        skills, how = np.einsum("mkk,k->m", *found), climb.monitor
        return self._settle(
            table, skills, posteriors, *found, log_likelihood=log_likelihood, monitor=how
        )

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
        soft = soft.plus(self.fixed)
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
        total, soft = self.model.expect(self.confusions, self.priors)
        return total + self._of_fixed(), soft.plus(self.fixed)

    def conclude(self) -> tuple[float, Any]:
        total, _, posteriors = self.model.conclude(self.confusions, self.priors)
        return total + self._of_fixed(), posteriors

    def _of_fixed(self) -> float:
        labels = float((self.fixed.labels * np.log(self.confusions)).sum())
        return labels + float((self.fixed.items * np.log(self.priors)).sum())

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
        priors = class_shares(soft.items, self.item_pseudo, self._given_priors)
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
            warnings.warn(f"{found}: renamed the classes so that more are", stacklevel=4)
            self._rename(names, soft)
        elif margin(joint) < NEAR_SWAP:
            said = "two classes were nearly called by each other's names: check the verdicts"
            warnings.warn(f"{said}, or give some gold labels", stacklevel=4)

    def _rename(self, names: NDArray[np.intp], soft: Soft) -> None:
        """Rename class k to names[k], and continue EM from there."""
        old = np.argsort(names)
        self.confusions = self.confusions[:, :, old]
        if self._given_priors is None:
            self.priors = self.priors[old]
        self.monitor = Monitor(self.how.tol, self.how.max_iter)
        self._climb(self.monitor, soft)
