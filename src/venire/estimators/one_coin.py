r"""Online Learn, the paper's Algorithm 3: a spectral start, then EM on the one-coin model.

Under that model two labelers agree with probability 1/K + K/(K-1) (p_a - 1/K)(p_b - 1/K), for any
class frequencies, so the *agreement moment*

    N_ab = (K-1)/K * (share of co-labelled items on which a and b agree - 1/K)

estimates (p_a - 1/K)(p_b - 1/K), and any two partners m, m' of labeler i give

    p_i = 1/K ± sqrt( N_im * N_im' / N_mm' ),    by the items that both have labelled.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from venire.errors import InputError, UnknownName
from venire.estimators.base import TINY, BaseEstimator, Monitor
from venire.estimators.blocks import Model, model_of
from venire.estimators.gold import (
    ClassPrior,
    Gold,
    Soft,
    check_class_prior,
    class_shares,
    fixed_counts,
    known_classes,
    settled,
    without_gold,
)
from venire.estimators.passes import count_pass, one_coin_pass, pair_pass, share_pass
from venire.labels import Codes, LabelTable
from venire.labels.partitions import Table, total
from venire.labels.sources import as_labels
from venire.tools.arrays import Floats, Ints
from venire.tools.compiling import threaded


@threaded()
def best_triples(first: Ints, second: Ints, known: NDArray[np.bool_]) -> Ints:
    """The index of the first pair that each labeler completes to a triple; -1: there is none.

    `first` and `second` list the pairs, best first; `known[a, b]`: their moment is defined.
    """
    found = np.full(known.shape[0], -1, dtype=np.int64)
    for i in range(known.shape[0]):
        for j in range(first.size):
            a, b = first[j], second[j]
            if a != i and b != i and known[i, a] and known[i, b]:
                found[i] = j
                break
    return found


@threaded()
def count_pairs(start: Ints, labeler: Codes, said: Codes, agree: Floats, shared: Floats) -> None:
    """Add up, for a <= b, the items that labelers a and b both labelled, and alike."""
    for i in range(start.size - 1):
        for e in range(start[i], start[i + 1]):
            a, k = labeler[e], said[e]
            for f in range(e, start[i + 1]):
                shared[a, labeler[f]] += 1.0
                if said[f] == k:
                    agree[a, labeler[f]] += 1.0


SignRule = Literal["fixed", "literal"]

#: A start goes at most this share of the way from chance to never wrong, or never right. EM
#: cannot leave an exact 0 or 1, and one labeler considered infallible dominates the others: of 500
#: learning phases of five items (the paper's panel) it ended with wrong verdicts in 62 with a share
#: of 0.98, in 17 with 0.8.
REACH: Final = 0.8

#: Two labelers with fewer items in common say too little about each other.
MIN_OVERLAP: Final = 10


def agreement_moments(table: Table, min_overlap: int = MIN_OVERLAP) -> Floats:
    """The matrix N_ab of agreement moments, NaN for labelers with too few items in common.

    A moment is defined when the two share at least `min_overlap` items; where no pair of the table
    shares that many, when they share as many as the best pair does. In a complete table all pairs
    share all items, so all moments are defined.

    >>> N = agreement_moments(LabelTable.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]]))
    >>> N.tolist()
    [[0.25, 0.125, 0.125], [0.125, 0.25, 0.0], [0.125, 0.0, 0.25]]
    """
    if min_overlap < 1:
        raise InputError(f"got min_overlap={min_overlap!r}, expected a whole number above 0")
    K = len(table.classes)
    agree, shared = pair_counts(table)
    off_diagonal = shared[~np.eye(len(table.labelers), dtype=np.bool_)]
    enough = max(1, min(min_overlap, off_diagonal.max(initial=0)))
    share = np.full_like(agree, np.nan)
    np.divide(agree, shared, out=share, where=shared >= enough)
    moments: Floats = (K - 1) / K * (share - 1 / K)
    return moments


def pair_counts(table: Table) -> tuple[Floats, Floats]:
    """For all pairs of labelers, on how many items they agree, and how many both labelled.

    >>> agree, shared = pair_counts(LabelTable.from_matrix([[0, 0], [1, 0], [1, -1]]))
    >>> agree.tolist(), shared.tolist()
    ([[3.0, 1.0], [1.0, 2.0]], [[3.0, 2.0], [2.0, 2.0]])
    """
    agree, shared = total(table, _ordered_pairs)
    upper = np.triu_indices(len(table.labelers), 1)
    for counts in (agree, shared):
        counts.T[upper] = counts[upper]
    return agree, shared


def _ordered_pairs(table: LabelTable) -> tuple[Floats, Floats]:
    """The counts of the pairs a <= b."""
    n = len(table.labelers)
    agree, shared = np.zeros((n, n)), np.zeros((n, n))
    count_pairs(table.start, table.labeler, table.said, agree, shared)
    return agree, shared


def spectral_start(
    table: Table,
    *,
    min_overlap: int = MIN_OVERLAP,
    sign_rule: SignRule = "fixed",
    reach: float = REACH,
) -> Floats:
    r"""Competences from agreement alone (Algorithm 3, Online Learn, lines 2 and 3).

        p_i = 1/K + sign(N_{i m_1}) sqrt( N_{i m_i} N_{i m'_i} / N_{m_i m'_i} )

    where (m_i, m'_i) is the pair of largest abs(N) that leaves out i and whose three moments
    with i are defined; of equal pairs the one that comes first in the table. The sign is
    anchored on m_1, the partner of the first labeler that has a pair. Then, since the
    labels cannot distinguish a panel from its mirror image, all p become 2/K - p if their mean is
    *below* 1/K. What the paper leaves open:

    - a negative radicand, or N_{m_i m'_i} = 0, says nothing: chance, p = 1/K;
    - a labeler with too few items in common with the anchor takes its sign from its m_i;
    - a labeler without a pair gets the mean of the others;
    - if there is no pair at all (two labelers or fewer), or all others are at chance, from
      where EM could not move, everybody gets (1 + 1/K) / 2: EM then starts from majority.

    Parameters
    ----------
    table : LabelTable or Partitions
        Complete or partial labels of any K.
    min_overlap : int
        See `agreement_moments`.
    sign_rule : "fixed" or "literal"
        "literal" flips when the mean is *at least* 1/K, as printed in line 3. It inverts every
        good panel, and exists for the test that shows this.
    reach : float
        The result is brought into [1/K - reach * 1/K, 1/K + reach * (1 - 1/K)]: for two
        classes and the default of 0.8 that is [0.1, 0.9]. The paper has no such limit, and
        then a start may lie outside [0, 1] (docs/errata.md, 9).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(20_000, 1))
    >>> said = np.where(rng.random((20_000, 4)) < [0.9, 0.8, 0.7, 0.4], truth, 1 - truth)
    >>> spectral_start(LabelTable.from_matrix(said), reach=0.98).round(2).tolist()
    [0.89, 0.8, 0.7, 0.4]
    """
    if sign_rule not in ("fixed", "literal"):
        raise UnknownName("sign rule", sign_rule, ("fixed", "literal"))
    chance = 1 / len(table.classes)
    edge = _signed_edges(agreement_moments(table, min_overlap))
    known = ~np.isnan(edge)
    if not edge[known].any():
        return np.full(edge.size, (1 + chance) / 2)
    mean = edge[known].mean()
    if mean < 0 if sign_rule == "fixed" else mean >= 0:
        edge, mean = -edge, -mean
    edge[~known] = mean
    return chance + edge.clip(-reach * chance, reach * (1 - chance))


def _signed_edges(moments: Floats) -> Floats:
    """The estimate of p_i - 1/K of each labeler, up to one sign for all; NaN without a pair."""
    m, other = _partners(moments)
    paired = np.flatnonzero(m >= 0)
    edge = np.full(len(moments), np.nan)
    if not paired.size:
        return edge
    m, other = m[paired], other[paired]
    radicand = np.zeros(paired.size)
    between = moments[m, other]
    product = moments[paired, m] * moments[paired, other]
    np.divide(product, between, out=radicand, where=between != 0)
    to_anchor = np.sign(moments[:, m[0]])
    of_partner = np.nan_to_num(to_anchor[m], nan=1.0)
    sign = to_anchor[paired]
    sign = np.where(np.isnan(sign), np.sign(moments[paired, m]) * of_partner, sign)
    edge[paired] = sign * np.sqrt(np.maximum(radicand, 0.0))
    return edge


def _partners(moments: Floats) -> tuple[Ints, Ints]:
    """The pair (m_i, m'_i) of each labeler, -1 where there is none."""
    known = ~np.isnan(moments)
    first, second = np.nonzero(np.triu(known, 1))
    order = np.argsort(-np.abs(moments[first, second]), kind="stable")
    first, second = first[order], second[order]
    pair = best_triples(first, second, known)
    m, other = (np.append(side, -1)[pair] for side in (first, second))
    return m, other


#: Rounds of the fit; EM refines the result.
_ROUNDS: Final = 50

#: Pseudo-items for each labeler, with the agreement of an average labeler.
_SHRINK: Final = 5.0


def rank_one_start(table: Table, reach: float = REACH) -> Floats:
    r"""Competences from the agreement of all pairs; see `spectral_start` for `reach`.

    With r = (K p - 1) / (K - 1) the matrix of all pairs has rank one off its diagonal, and a pair
    is weighed by the number n_ab of items that both have labelled:

        minimise  sum over pairs a < b of n_ab (K/(K-1) (agreement of a and b - 1/K) - r_a r_b)**2

    Each round solves for every labeler's r with the others fixed, and goes half of the way, so the
    order of the labelers does not matter. A labeler who shares no item with anyone gets the mean of
    the others. If the mean is below chance, all signs are flipped.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(20_000, 1))
    >>> said = np.where(rng.random((20_000, 4)) < [0.9, 0.8, 0.7, 0.4], truth, 1 - truth)
    >>> rank_one_start(LabelTable.from_matrix(said), reach=0.98).round(2).tolist()
    [0.9, 0.8, 0.7, 0.39]
    """
    K = len(table.classes)
    agree, shared = pair_counts(table)
    np.fill_diagonal(agree, 0.0)
    np.fill_diagonal(shared, 0.0)
    excess = (K * agree - shared) / (K - 1)
    mean = np.sqrt(max(excess.sum() / max(shared.sum(), 1.0), 1e-4))
    r = np.full(len(agree), mean)
    for _ in range(_ROUNDS):
        better = (excess @ r + _SHRINK * mean**3) / (shared @ r**2 + _SHRINK * mean**2)
        r = (r + better.clip(-1.0, 1.0)) / 2
    if r[shared.any(axis=1)].sum() < 0:
        r = -r
    low = -1 / (K - 1)
    return np.asarray((1 + (K - 1) * r.clip(reach * low, reach)) / K)


class Hits(NamedTuple):
    """Expected counts: of the items of each class, and of each labeler's right labels."""

    items: Floats
    right: Floats

    def plus(self, other: Hits) -> Hits:
        return Hits(self.items + other.items, self.right + other.right)


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
        """Learn the competences, and the posteriors of items of unknown class."""
        table = as_labels(labels)
        known = known_classes(table, gold)
        open_items = without_gold(table, known)
        fixed = fixed_counts(table, known)
        with model_of(CoinModel, open_items, self.threads) as model:
            what = _Likelihood(model, self, fixed)
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

    def coin_prior(self) -> tuple[float, float] | None:
        """The pseudo-labels that intervals use, right and wrong."""
        # the default prior stabilises the fit; intervals have their own
        return _check_prior(None if self.prior == CAUTIOUS else self.prior)

    def _starts(self, what: _Likelihood, table: Table) -> list[_Found]:
        """The starts to try; of equally good results the first is kept."""
        n = len(table.labelers)
        if not isinstance(self.start, str):
            return [what.at(_check_start(self.start, n))]
        if self.start not in get_args(Start):
            raise UnknownName("start", self.start, get_args(Start))
        alike = what.at(np.full(n, (1 + 1 / len(table.classes)) / 2))
        if self.start == "votes":
            return [what.maximise(alike, what.shares())]
        if self.start == "rank-one":
            return [what.at(rank_one_start(table))]
        starts = []
        if self.start != "majority":
            overlap, rule = self.min_overlap, self.sign_rule
            starts.append(what.at(spectral_start(table, min_overlap=overlap, sign_rule=rule)))
        if self.start != "spectral":
            starts.append(alike)
        return starts

    def _highest(self, what: _Likelihood, starts: list[_Found]) -> tuple[_Found, Monitor]:
        """Run EM from every start; the best result and the history of its iterations."""
        ends = []
        for start in starts:
            monitor = Monitor(self.tol, self.max_iter)
            ends.append((self._climb(what, start, monitor), monitor))
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

    def __init__(self, model: CoinModel, how: OneCoin, fixed: Soft) -> None:
        self.model, self.classes = model, model.classes
        self.gold = Hits(fixed.items, np.einsum("mkk->m", fixed.labels))
        self.gold_given = fixed.labels.sum(axis=(1, 2))
        self.prior = _check_prior(how.prior)
        self.given = model.given + self.gold_given
        self.fixed_priors = check_class_prior(how.class_prior, model.classes)
        self.item_pseudo = 1.0 if how.prior is not None and self.fixed_priors is None else 0.0

    def at(self, p: Floats) -> _Found:
        """Competences with the class prior to start from."""
        uniform = np.full(self.classes, 1 / self.classes)
        priors = uniform if self.fixed_priors is None else self.fixed_priors
        return _Found(p.clip(TINY, 1 - TINY), priors)

    def shares(self) -> Hits:
        return self.model.shares().plus(self.gold)

    def expect(self, found: _Found) -> tuple[float, Hits]:
        total, hits = self.model.expect(*found)
        return total + self._of_gold(found), hits.plus(self.gold)

    def conclude(self, found: _Found) -> tuple[float, Any]:
        total, _, posteriors = self.model.conclude(*found)
        return total + self._of_gold(found), posteriors

    def _of_gold(self, found: _Found) -> float:
        p, gold = found.competences, self.gold
        if not self.gold_given.any():
            return 0.0
        log_wrong = np.log1p(-p) - np.log(self.classes - 1)
        labels = float(gold.right @ np.log(p) + (self.gold_given - gold.right) @ log_wrong)
        return labels + float(gold.items @ np.log(found.priors))

    def maximise(self, found: _Found, hits: Hits) -> _Found:
        """The parameters that explain the expected counts best; as before where there are none."""
        a, b = self.prior
        total = self.given + (a + b)
        better = found.competences.copy()
        np.divide(hits.right + a, total, out=better, where=total > 0)
        priors = class_shares(hits.items, self.item_pseudo, self.fixed_priors)
        return _Found(better.clip(TINY, 1 - TINY), priors)

    def objective(self, found: _Found) -> float:
        return self.expect(found)[0] + self.penalty(found)

    def penalty(self, found: _Found) -> float:
        """What the prior adds to the log-likelihood."""
        a, b = self.prior
        p = found.competences
        total = float((a * np.log(p) + b * np.log1p(-p)).sum()) if a or b else 0.0
        return total + self.item_pseudo * float(np.log(found.priors).sum())


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
