"""Online Learn, the paper's Algorithm 3: a spectral start, then EM on the one-coin model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from venire.errors import InputError, UnknownName
from venire.estimators.base import TINY, BaseEstimator, Monitor
from venire.estimators.blocks import Model, model_of
from venire.estimators.gold import (
    ClassPrior,
    Gold,
    Soft,
    check_class_prior,
    fixed_counts,
    known_classes,
    settled,
    without_gold,
)
from venire.estimators.passes import count_pass, one_coin_pass, pair_pass, share_pass
from venire.estimators.spectral import MIN_OVERLAP, SignRule, rank_one_start, spectral_start
from venire.labels import LabelTable
from venire.labels.partitions import Table
from venire.labels.sources import as_labels
from venire.tools.arrays import Floats


class Hits(NamedTuple):
    """Expected counts: of the items of each class, and of each labeler's right labels."""

    items: Floats
    right: Floats


class CoinModel(Model):
    """Passes over a table with one competence per labeler; items without labels do not count.

    >>> with CoinModel(LabelTable.from_matrix([[0, 0], [1, 0]])) as model:
    ...     total, hits = model.expect(np.array([0.8, 0.6]), np.array([0.5, 0.5]))
    >>> round(total, 4), hits.right.round(4).tolist()
    (-2.7871, [1.5844, 1.1299])
    """

    def __init__(self, table: LabelTable, threads: int | None = None) -> None:
        codes = len(table.labelers) * len(table.classes)
        super().__init__(table, codes + len(table.classes), threads)
        self.items, given = self._blocks.run(count_pass, codes)
        self._said: Floats = given.reshape(self.labelers, self.classes)
        self.given: Floats = self._said.sum(axis=1)

    def shares(self) -> Hits:
        """Expected counts with the vote shares as posteriors."""
        K = self.classes
        room = K + self.labelers * K * K
        sums = self._blocks.run(share_pass, room, self._blocks.said_of, K)[1]
        return Hits(sums[:K], np.einsum("mkk->m", sums[K:].reshape(self.labelers, K, K)))

    def expect(
        self, p: Floats, priors: Floats, posteriors: Floats | None = None
    ) -> tuple[float, Hits]:
        """Log-likelihood and expected counts; `posteriors` receives those of items with labels."""
        log_right = np.log(p)
        log_wrong = np.log1p(-p) - np.log(self.classes - 1)
        if self.classes == 2:
            return self._pairs(log_right, log_wrong, np.log(priors), posteriors)
        K = self.classes
        weight = np.repeat(log_right - log_wrong, K)
        given = weight, np.exp(weight), self._blocks.said_of, priors
        run = self._blocks.run
        total, sums = run(one_coin_pass, weight.size + K, *given, posteriors=posteriors)
        right = sums[:-K].reshape(self._said.shape).sum(axis=1)
        return total + float(self.given @ log_wrong), Hits(sums[-K:], right)

    def _pairs(
        self, log_right: Floats, log_wrong: Floats, log_prior: Floats, posteriors: Floats | None
    ) -> tuple[float, Hits]:
        weight = np.stack([log_wrong - log_right, log_right - log_wrong], axis=1).ravel()
        odds = float(log_prior[1] - log_prior[0])
        room = weight.size + 1
        given = weight, np.exp(weight), odds
        total, sums = self._blocks.run(pair_pass, room, *given, posteriors=posteriors)
        zeros, ones = self._said[:, 0], self._said[:, 1]
        total += float(zeros @ log_right + ones @ log_wrong + self.items * log_prior[0])
        right = sums[1:-1:2] + np.maximum(zeros - sums[:-1:2], 0.0)
        return total, Hits(np.array([self.items - sums[-1], sums[-1]]).clip(0.0), right)


#: Two pseudo-labels right, one wrong.
CAUTIOUS: Final = (2.0, 1.0)

#: A mean competence less than this above chance causes a warning.
NEAR_CHANCE: Final = 0.02

Start = Literal["spectral", "rank-one", "majority", "votes", "best"]


@dataclass(eq=False)
class OneCoin(BaseEstimator):
    r"""Competences and classes from labels alone (paper, Algorithm 3, Online Learn).

    A labeler of competence p is right with probability p and else says any wrong class with
    equal probability; every class is equally likely beforehand. From the spectral start
    EM repeats, until no competence moves by more than `tol`,

        q_sk ~ prod_m  p_m  if m said k of s,  else (1 - p_m) / (K - 1)         (lines 5-7)
        p_m  = mean of q_sk over the labels k that m gave                      (line 8)

    in log space, one pass over the labels per iteration; the log-likelihood

        sum_s log( 1/K sum_k prod_m ... )

    never falls. Labels may be complete or partial: a labeler's mean runs over its own labels.
    Competences are kept within [1e-10, 1 - 1e-10]. The labels of a labeler below chance are
    inverted, as in the paper.

    The labels cannot distinguish a two-class panel from its mirror image, in which right
    and wrong are exchanged. If EM ends with a mean competence, over labels, below chance, that is
    taken as the mirror image: all p become 1 - p, with a warning. With more classes there is no
    exact mirror image, so there is only the warning; a panel is not flipped against gold labels
    either. A mean less than 0.02 above chance causes a warning too.

    Parameters
    ----------
    max_iter : int
        The maximum number of iterations; 0 returns the start.
    tol : float
        Stop when the largest change of a competence is at most this.
    start : "spectral", "rank-one", "majority", "votes", "best" or array
        Where EM starts: "spectral" is Algorithm 3; "rank-one" uses the agreement of all pairs
        of labelers instead of one triple for each; "majority" assumes that everyone is equally
        good, (1 + 1/K) / 2; "votes" uses the vote shares as posteriors; "best" starts from
        "spectral" and "majority" and keeps the more likely result, which takes twice the time and
        rescues the few short learning phases (3 % of those with five items) where the spectral
        start fails; an array of competences in the order of `table.labelers` is a warm start.
    prior : (right, wrong) or None
        Pseudo-labels of each labeler, added in every M step:
        p_m = (right + sum) / (right + wrong + n_m). What never falls is then the
        log-likelihood + sum_m right * log(p_m) + wrong * log(1 - p_m). The default, two right
        and one wrong, keeps a labeler with one label from being considered perfect. None is
        Algorithm 3, except for the limited start and the check for the mirror image (see Notes):
        there a labeler who agreed with everyone on five items has competence 1, and one such
        label outvotes all others forever.
    class_prior : "uniform", "learned" or K probabilities
        How frequent the classes are. Learning it from one competence per labeler is risky:
        labelers who are better at one class than at another look like a frequent class, and
        on some sets nearly all items end in it.
    threads : int, optional
        By default as many as there are processors. The result does not depend on it.
    min_overlap : int
        See `agreement_moments`; it matters for partial labels only.
    sign_rule : "fixed" or "literal"
        "literal" applies line 3 as printed and keeps the mirror image: see `spectral_start`.

    Notes
    -----
    Algorithm 3 as printed cannot be run: its start may lie outside [0, 1], where there is no
    logarithm. Closest to it, with line 3 corrected, is
    `OneCoin(prior=None, start=spectral_start(table, reach=1.0), sign_rule="literal")`: the start
    is only clipped to [0, 1], and the mirror image is kept (docs/errata.md, 9).

    Little data is not an error. With one labeler nothing can be learned, and it keeps the start,
    (1 + 1/K) / 2. Two who label the same items get the same competence, that of their agreement. On
    a single item everybody ends near 1 or near 0, as they agree with the majority or not (two who
    disagree: at chance). A labeler without labels stays at its start, or at right / (right + wrong)
    with a prior.

    Examples
    --------
    >>> from venire import LabelTable
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> said = np.where(rng.random((500, 4)) < [0.9, 0.8, 0.7, 0.6], truth, 1 - truth)
    >>> learned = OneCoin().fit(LabelTable.from_matrix(said))
    >>> learned.competences_.round(2).tolist()
    [0.92, 0.79, 0.72, 0.64]
    >>> right = [learned.labels_[s] == truth[s, 0] for s in range(500)]
    >>> round(float(np.mean(right)), 3), learned.converged_
    (0.924, True)
    """

    name: ClassVar[str] = "one-coin"

    max_iter: int = 1000
    tol: float = 1e-6
    start: Start | ArrayLike = "spectral"
    prior: tuple[float, float] | None = CAUTIOUS
    min_overlap: int = MIN_OVERLAP
    sign_rule: SignRule = "fixed"
    class_prior: ClassPrior | ArrayLike = "uniform"
    threads: int | None = None

    def fit(self, labels: Any, gold: Gold | None = None) -> Self:
        """Learn the competences and the posteriors of the items.

        Parameters
        ----------
        labels
            Complete or partial labels of any K: anything that `venire.as_table` takes.
        gold : mapping of item to class, optional
            Items whose class is known: their posterior is 1 for it.
        """
        table = as_labels(labels)
        known = known_classes(table, gold)
        open_items = without_gold(table, known)
        fixed = fixed_counts(table, known)
        with model_of(CoinModel, open_items, self.threads) as model:
            what = _Likelihood(model, self, _gold_hits(fixed))
            found, monitor = self._highest(what, self._starts(what, table))
            found = self._check_mirror(what, found, monitor)
            log_likelihood, posteriors = what.conclude(found)
        posteriors = settled(table, posteriors, known)
        self._open, self._fixed = open_items, fixed
        return self._settle(
            table,
            found.competences,
            posteriors,
            priors=found.priors.copy(),
            log_likelihood=log_likelihood,
            monitor=monitor,
        )

    def learns_priors(self) -> bool:
        return isinstance(self.class_prior, str) and self.class_prior == "learned"

    def coin_prior(self) -> tuple[float, float] | None:
        """The pseudo-labels that intervals use, right and wrong."""
        # the default prior stabilises the fit; intervals have their own
        return _check_prior(None if self.prior == CAUTIOUS else self.prior)

    def _starts(self, what: _Likelihood, table: Table) -> list[Floats]:
        """The starts to try; of equally good results the first is kept."""
        n, chance = len(table.labelers), 1 / len(table.classes)
        if not isinstance(self.start, str):
            return [_check_start(self.start, n)]
        if self.start not in get_args(Start):
            raise UnknownName("start", self.start, get_args(Start))
        if self.start == "votes":
            return [what.maximise(what.at(np.full(n, (1 + chance) / 2)), what.shares()).competences]
        if self.start == "rank-one":
            return [rank_one_start(table)]
        starts = []
        if self.start != "majority":
            overlap, rule = self.min_overlap, self.sign_rule
            starts.append(spectral_start(table, min_overlap=overlap, sign_rule=rule))
        if self.start != "spectral":
            starts.append(np.full(n, (1 + chance) / 2))
        return starts

    def _highest(self, what: _Likelihood, starts: list[Floats]) -> tuple[_Found, Monitor]:
        """Run EM from every start; the best result and the history of its iterations."""
        ends = []
        for start in starts:
            monitor = Monitor(self.tol, self.max_iter)
            found = what.at(start.clip(TINY, 1 - TINY), votes=_is(self.start, "votes"))
            ends.append((self._climb(what, found, monitor), monitor))
        return max(ends, key=lambda end: what.objective(end[0])) if len(ends) > 1 else ends[0]

    def _climb(self, what: _Likelihood, found: _Found, monitor: Monitor) -> _Found:
        while not monitor.done:
            log_likelihood, hits = what.expect(found)
            better = what.maximise(found, hits)
            monitor.report(log_likelihood + what.penalty(found), better.change(found))
            found = better
        return found

    def _check_mirror(self, what: _Likelihood, found: _Found, monitor: Monitor) -> _Found:
        """Flip a mirror image, if there is one and nothing contradicts it."""
        p, chance = found.competences, 1 / what.classes
        # weighted by labels: a few wrong labels of many newcomers do not flip a panel
        mean = float(np.average(p, weights=what.given)) if what.given.any() else chance
        if self.sign_rule != "fixed" or mean == chance or mean >= chance + NEAR_CHANCE:
            return found
        said = f"EM ended with a mean competence of {mean:.3f}"
        if mean > chance:
            warnings.warn(f"{said}, near chance: check the labels before using them", stacklevel=3)
            return found
        mirror = found.mirror()
        if what.classes > 2 or what.gold.right.any() or what.penalty(mirror) < what.penalty(found):
            warnings.warn(f"{said}, below chance: check the labels before using them", stacklevel=3)
            return found
        warnings.warn(f"{said}, below chance: took its mirror image, all p -> 1 - p", stacklevel=3)
        if not any(what.prior) and what.item_pseudo == 0:
            return mirror
        monitor.resume()
        return self._climb(what, mirror, monitor)


class _Found(NamedTuple):
    """The parameters that EM optimises."""

    competences: Floats
    priors: Floats

    def mirror(self) -> _Found:
        """The parameters with right and wrong exchanged: the same likelihood, for two classes."""
        return _Found(1 - self.competences, self.priors[::-1])

    def change(self, before: _Found) -> float:
        return float(max(np.abs(a - b).max() for a, b in zip(self, before, strict=True)))


class _Likelihood:
    """The one-coin likelihood of a table, with prior and gold: its E step and its M step."""

    def __init__(self, model: CoinModel, how: OneCoin, gold: _Gold) -> None:
        self.model, self.classes, self.gold = model, model.classes, gold
        self.prior = _check_prior(how.prior)
        self.given = model.given + gold.given
        self.fixed_priors = check_class_prior(how.class_prior, model.classes)
        self.item_pseudo = 1.0 if how.prior is not None and self.fixed_priors is None else 0.0

    def at(self, p: Floats, votes: bool = False) -> _Found:
        """Competences with the class prior to start from."""
        if self.fixed_priors is not None:
            return _Found(p, self.fixed_priors)
        uniform = _Found(p, np.full(self.classes, 1 / self.classes))
        return _Found(p, self.maximise(uniform, self.shares()).priors) if votes else uniform

    def shares(self) -> Hits:
        items, right = self.model.shares()
        return Hits(items + self.gold.items, right + self.gold.right)

    def expect(self, found: _Found) -> tuple[float, Hits]:
        total, (items, right) = self.model.expect(*found)
        counts = Hits(items + self.gold.items, right + self.gold.right)
        return total + self._of_gold(found), counts

    def conclude(self, found: _Found) -> tuple[float, Any]:
        total, _, posteriors = self.model.conclude(*found)
        return total + self._of_gold(found), posteriors

    def _of_gold(self, found: _Found) -> float:
        p, gold = found.competences, self.gold
        if not gold.given.any():
            return 0.0
        log_wrong = np.log1p(-p) - np.log(self.classes - 1)
        labels = float(gold.right @ np.log(p) + (gold.given - gold.right) @ log_wrong)
        return labels + float(gold.items @ np.log(found.priors))

    def maximise(self, found: _Found, hits: Hits) -> _Found:
        """The parameters that explain the expected counts best; as before where there are none."""
        a, b = self.prior
        total = self.given + (a + b)
        better = found.competences.copy()
        np.divide(hits.right + a, total, out=better, where=total > 0)
        priors = self.fixed_priors
        if priors is None:
            items = hits.items + self.item_pseudo
            priors = (items / items.sum()).clip(TINY, 1.0)
        return _Found(better.clip(TINY, 1 - TINY), priors)

    def objective(self, found: _Found) -> float:
        return self.expect(found)[0] + self.penalty(found)

    def penalty(self, found: _Found) -> float:
        """What the prior adds to the log-likelihood."""
        a, b = self.prior
        p = found.competences
        total = float((a * np.log(p) + b * np.log1p(-p)).sum()) if a or b else 0.0
        return total + self.item_pseudo * float(np.log(found.priors).sum())


class _Gold(NamedTuple):
    """The counts of gold items."""

    items: Floats
    right: Floats
    given: Floats


def _gold_hits(fixed: Soft) -> _Gold:
    right = np.einsum("mkk->m", fixed.labels)
    return _Gold(fixed.items, right, fixed.labels.sum(axis=(1, 2)))


def _is(start: object, name: str) -> bool:
    return isinstance(start, str) and start == name


def _check_start(start: ArrayLike, labelers: int) -> Floats:
    p = np.asarray(start, dtype=np.float64)
    if p.shape != (labelers,) or not ((p >= 0) & (p <= 1)).all():
        raise InputError(
            f"got a start of shape {p.shape}, expected a probability for each of the "
            f"{labelers} labelers of the table"
        )
    return p


def _check_prior(prior: tuple[float, float] | None) -> tuple[float, float]:
    if prior is None:
        return 0.0, 0.0
    right, wrong = (float(x) for x in prior)
    if not (0 <= right < np.inf and 0 <= wrong < np.inf):
        raise InputError(f"got the prior {prior!r}, expected two finite counts, 0 or more")
    return right, wrong
