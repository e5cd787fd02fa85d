r"""Confidence intervals of labelers' skills, with the coverage that they claim.

A skill is learned from labels whose truth is itself uncertain, together with everybody else's
skill. Counting the expected right labels as if they were seen makes intervals far too narrow.
Here the posterior of everything is sampled (data augmentation, Tanner and Wong, 1987), starting
from the fit. Each sweep draws

    the class of every item, given all confusion matrices     (one pass over the labels)
    every confusion matrix and the class prior, given these classes

and the interval of a skill lies between the quantiles of its draws.

Priors. One-coin: p_m ~ Beta(1 + right, 1 + wrong), flat unless the estimator has a prior of its
own. Full matrices: a labeler's chance of being right on class k ~ Beta(2 c_k, 2 (1 - c_k)) with
c_k that of the whole panel in the same sweep, and its errors spread as Dirichlet(4 e_k), with e_k
the panel's. The prior that `DawidSkene` learns is not used: it shares what it knows among the
rows of a labeler, which is good for verdicts and would make intervals too narrow.

Coverage of nominal 90 % intervals is tested: see tests/unit/estimators/test_intervals.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from venire.errors import InputError
from venire.estimators.base import TINY, BaseEstimator
from venire.estimators.blocks import Blocks
from venire.estimators.dependence import certainty, weighted_posteriors
from venire.estimators.passes import draw_pass
from venire.labels import LabelTable
from venire.labels.partitions import each, labels_given, total
from venire.tools.arrays import Floats

#: Sweeps that are kept, and burn-in sweeps before them.
SWEEPS: Final = 500
WARM_UP: Final = 100

#: The error that the whole panel may share, as a fraction of the mean doubt about an item.
SHARED_ERROR: Final = 0.75

#: At most this share of what the labels of a labeler tell is lost to doubt about their items.
MOST_LOST: Final = 0.95

#: Dependence up to this is not worth a word.
SLIGHT_DEPENDENCE: Final = 0.25

STAYS_WIDE: Final = "more labels do not narrow the intervals"

_RIGHT, _ERRORS = 2.0, 4.0


def skill_intervals(
    estimator: BaseEstimator,
    level: float = 0.9,
    *,
    sweeps: int = SWEEPS,
    seed: int = 0,
    threads: int | None = None,
) -> Floats:
    """An interval for the skill of each labeler, labelers x 2, in the order of `table.labelers`.

    Parameters
    ----------
    estimator : OneCoin, DawidSkene or another fitted estimator
        One-coin is sampled as such; anything else with full confusion matrices.
    level : float
        The share of intervals that should contain the true skill.
    sweeps : int
        How many samples the interval is made from.
    seed : int
        The same seed gives the same intervals, bit for bit.

    Examples
    --------
    >>> from venire import LabelTable, OneCoin
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(300, 1))
    >>> said = np.where(rng.random((300, 4)) < [0.9, 0.8, 0.7, 0.6], truth, 1 - truth)
    >>> said[20:, 3] = -1  # the last one gave twenty labels
    >>> skill_intervals(OneCoin().fit(LabelTable.from_matrix(said))).round(2).tolist()
    [[0.87, 0.99], [0.7, 0.8], [0.64, 0.74], [0.37, 0.77]]
    """
    _check_level(level)
    if sweeps < 2:
        raise InputError(f"got {sweeps!r} sweeps, expected at least 2")
    draws = skill_draws(estimator, sweeps, seed, threads)
    return np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0).T


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise InputError(f"got the level {level!r}, expected a share strictly between 0 and 1")


def implied_intervals(estimator: BaseEstimator, level: float = 0.9) -> Floats:
    r"""Intervals around the skills that posteriors imply, for votes and blends; labelers x 2.

    The variance of a skill p that rests on n labels is

        p (1 - p) / (n (1 - f))  +  (0.75 d u)^2,    f = sum of c (1 - c) / (n p (1 - p)).

    The first part falls with the number of labels: it is the sampling error, and f, with c the
    probability that a label is right, the share of the information that is missing because the
    truth is (Louis, 1982, for one skill while the others are known). The second is the error of
    the panel as a whole, which no number of labels removes: u is the mean doubt about an item, one
    less the largest posterior. It counts as far as labels may depend on each other: d is 1, unless
    labelers are shown to err independently (`Auto.independence_`) and no family is among them; then
    it is 1 - `certainty`, by the dependence that the model leaves, near 0 where that is none.
    `why_wide` says which. The factor 0.75 is what covers 90 % on average over 21 real label sets,
    for labelers with at least 20 labels, compared with the share of their labels that is right,
    where d is 1 (docs/real-data.md). The interval lies around the skill that is reported, and
    within [0, 1].

    Where gold was learned from they are those of `venire.estimators.teaching`.

    >>> from venire import LabelTable, MajorityVote
    >>> vote = MajorityVote().fit(LabelTable.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]] * 20))
    >>> implied_intervals(vote).round(2).tolist()
    [[0.7, 1.0], [0.7, 1.0], [0.6, 0.96]]

    With many labels of labelers who err on their own:

    >>> from venire import Auto
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(4000, 1))
    >>> said = np.where(rng.random((4000, 5)) < [0.9, 0.8, 0.8, 0.7, 0.6], truth, 1 - truth)
    >>> few, many = (Auto().fit(LabelTable.from_matrix(said[:n])) for n in (800, 4000))
    >>> implied_intervals(few)[0].round(2).tolist(), implied_intervals(many)[0].round(2).tolist()
    ([0.84, 0.95], [0.87, 0.92])
    """
    from scipy.special import ndtri

    _check_level(level)
    told: Any = getattr(estimator, "told_skills_", None)
    if told is not None:
        return np.asarray(told.intervals(level))
    table, p = estimator.table_, estimator.competences_
    given = np.maximum(labels_given(table), 1)
    doubts, labelled, unsure = total(table, _doubts, estimator.posterior_rows())
    spread = np.maximum(p * (1 - p), 1 / (4 * (given + 2)))  # also of one who was never wrong
    lost = np.minimum(doubts / (given * spread), MOST_LOST)
    shared = SHARED_ERROR * dependence(estimator) * float(unsure / labelled) if labelled else 1.0
    variance = spread / (given * (1 - lost)) + shared**2
    reach = ndtri((1 + level) / 2) * np.sqrt(variance)
    return np.stack([np.maximum(p - reach, 0.0), np.minimum(p + reach, 1.0)], axis=1)


def dependence(estimator: BaseEstimator) -> float:
    """How far labels may depend on each other, from 0 to 1: 1 where nothing shows that they do not.

    >>> from venire import LabelTable, MajorityVote
    >>> dependence(MajorityVote().fit(LabelTable.from_matrix([[0, 0, 1], [1, 1, 1]])))
    1.0
    """
    errors: Any = getattr(estimator, "independence_", None)
    families: Any = getattr(estimator, "families_", None)
    if errors is None or not errors.shown or families:
        return 1.0
    fitted: Any = estimator
    table, rows = estimator.table_, np.ascontiguousarray(fitted.rows_)
    posteriors = each(table, weighted_posteriors, rows, fitted.shares_, [])
    return 1 - certainty(table, posteriors, rows)


def why_wide(estimator: BaseEstimator) -> str | None:
    """Why more labels do not make `implied_intervals` narrower, in words; None: they do.

    >>> from venire import LabelTable, MajorityVote
    >>> why_wide(MajorityVote().fit(LabelTable.from_matrix([[0, 0, 1], [1, 1, 1]])))
    'more labels do not narrow the intervals: it is not known whether labelers err independently'
    """
    errors: Any = getattr(estimator, "independence_", None)
    families: Any = getattr(estimator, "families_", None)
    if getattr(estimator, "told_skills_", None) is not None:
        return None
    if errors is not None and errors.refuted:
        return f"{STAYS_WIDE}: labelers share errors, which pass for the truth"
    if errors is not None and families:
        return f"{STAYS_WIDE}: some labelers are of one family and share errors"
    if errors is None or not errors.shown:
        return f"{STAYS_WIDE}: it is not known whether labelers err independently"
    if dependence(estimator) > SLIGHT_DEPENDENCE:
        return f"{STAYS_WIDE} much: labels of an item agree more than independent ones would"
    return None


def _doubts(table: LabelTable, q: Floats) -> tuple[Floats, int, float]:
    """Doubt about the labels of each labeler; items with labels, and the doubt about them."""
    right = q[table.item, table.said]
    doubt: Floats = np.bincount(
        table.labeler, right * (1 - right), minlength=len(table.labelers)
    ).astype(np.float64)
    labelled = np.diff(table.start) > 0
    return doubt, int(labelled.sum()), float((1 - q[labelled].max(axis=1)).sum())


def skill_draws(
    estimator: BaseEstimator, sweeps: int = SWEEPS, seed: int = 0, threads: int | None = None
) -> Floats:
    """Samples from the posterior of all skills, sweeps x labelers."""
    sampler = _Sampler(estimator, np.random.default_rng(seed))
    draws = np.empty((sweeps, len(estimator.table_.labelers)))
    table = estimator.open_items()
    room = sampler.fixed.items.size + sampler.fixed.labels.size
    with Blocks(table, room, threads) as blocks:
        for sweep in range(-WARM_UP, sweeps):
            _, sums = blocks.run(draw_pass, room, *sampler.parameters(), numbered=True)
            skills = sampler.draw(sums)
            if sweep >= 0:
                draws[sweep] = skills
    return draws


class _Sampler:
    """The parameters, and how they are drawn; confusions are [labeler, said, truth]."""

    def __init__(self, estimator: BaseEstimator, rng: np.random.Generator) -> None:
        self.rng, self.fixed = rng, estimator.fixed_counts()
        self.coin: tuple[float, float] | None = estimator.coin_prior()
        self.learns_priors = estimator.learns_priors()
        self.priors = estimator.priors_
        self.confusions = np.ascontiguousarray(estimator.confusions_.transpose(0, 2, 1))
        self._eye = np.eye(len(self.priors), dtype=np.bool_)

    def parameters(self) -> tuple[Any, ...]:
        """The parameters of a pass."""
        said = self.confusions.clip(TINY).reshape(-1, len(self.priors))
        seed = np.uint64(self.rng.integers(2**63))
        return np.log(said), said, np.log(self.priors.clip(TINY)), seed

    def draw(self, sums: Floats) -> Floats:
        """Draw all parameters given the classes; returns the skills that they imply."""
        K = len(self.priors)
        items = sums[:K] + self.fixed.items
        labels = sums[K:].reshape(self.confusions.shape) + self.fixed.labels
        if self.learns_priors:
            self.priors = self.rng.dirichlet(items + 1.0)
        hits = np.einsum("mkk->mk", labels)
        misses = labels.sum(axis=1) - hits
        if self.coin is not None:
            a, b = self.coin
            p = self.rng.beta(hits.sum(axis=1) + 1 + a, misses.sum(axis=1) + 1 + b)
            self.confusions = np.where(
                self._eye, p[:, None, None], ((1 - p) / (K - 1))[:, None, None]
            )
            return np.asarray(p)
        panel = (hits.sum(axis=0) + 1) / (hits.sum(axis=0) + misses.sum(axis=0) + 2)
        right = self.rng.beta(hits + _RIGHT * panel, misses + _RIGHT * (1 - panel))
        self.confusions = np.where(
            self._eye, right[:, None], self._spread(labels) * (1 - right)[:, None]
        )
        return np.asarray(right @ self.priors)

    def _spread(self, labels: Floats) -> Floats:
        """How errors are spread over the wrong classes."""
        if len(self.priors) == 2:
            return np.where(self._eye, 0.0, np.ones_like(labels))
        errors = np.where(self._eye, 0.0, labels)
        panel = errors.sum(axis=0) + np.where(self._eye, 0.0, 0.5)
        panel /= panel.sum(axis=0)
        drawn = self.rng.standard_gamma(errors + _ERRORS * panel) + np.where(self._eye, 0.0, 1e-12)
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))
