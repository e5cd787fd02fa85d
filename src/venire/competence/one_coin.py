r"""Online Learn, the paper's Algorithm 3: a spectral start, then EM on the one-coin model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from venire.competence.base import BaseEstimator, Floats
from venire.competence.kernels import em_pass
from venire.competence.monitor import Monitor
from venire.competence.spectral import MIN_OVERLAP, SignRule, spectral_start
from venire.errors import InputError, UnknownName
from venire.labels import LabelTable

__all__ = ["TINY", "OneCoin"]

#: Competences stay this far from 0 and 1, so that no logarithm is infinite.
TINY: Final = 1e-10


Start = Literal["spectral", "majority", "best"]


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
    Competences are kept within [1e-10, 1 - 1e-10]. A labeler below chance is read backwards,
    as in the paper.

    The labels cannot tell a two-class panel from its mirror image, in which everyone who is
    right is wrong. If EM ends with a mean competence below chance, it has found the mirror
    image: all p become 1 - p, with a warning. With more classes there is no exact mirror
    image, and there is only the warning.

    Parameters
    ----------
    max_iter : int
        At most so many iterations; 0 stops at the start.
    tol : float
        Stop when the largest change of a competence is at most this.
    start : "spectral", "majority", "best" or array
        Where EM starts: "spectral" is Algorithm 3; "majority" takes everybody for equally
        good, (1 + 1/K) / 2; "best" climbs from both and keeps the likelier end, which costs
        twice the time and saves the few short learning phases (3 % of those with five items)
        that the spectral start leads astray; an array of competences in the order of
        `table.labelers` is a warm start.
    prior : (right, wrong), optional
        Pseudo-labels that each labeler is credited with beforehand, kept in every M step:
        p_m = (right + sum) / (right + wrong + n_m). What never falls is then the
        log-likelihood + sum_m right * log(p_m) + wrong * log(1 - p_m). Without it (the
        default, Algorithm 3) a labeler who agreed with everyone on five items has
        competence 1, and one such label outvotes all others for ever; (7, 3) is a prior
        that says "better than chance".
    min_overlap : int
        See `agreement_moments`; it matters for partial labels only.
    sign_rule : "fixed" or "literal"
        "literal" reads line 3 as printed and lets the mirror image stand: see `spectral_start`.

    Notes
    -----
    Little data is no error. With one labeler nothing can be learned and it stays at the start,
    (1 + 1/K) / 2. Two who label the same items get the same competence, that of their
    agreement. On a single item everybody ends near 1 or near 0, as they agree with the
    majority or not (two who disagree: at chance). A labeler without labels stays at its
    start, or at right / (right + wrong) with a prior.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(500, 1))
    >>> said = np.where(rng.random((500, 4)) < [0.9, 0.8, 0.7, 0.6], truth, 1 - truth)
    >>> learned = OneCoin().fit(LabelTable.from_matrix(said))
    >>> learned.competences_.round(2).tolist()
    [0.93, 0.78, 0.72, 0.63]
    >>> right = [learned.labels_[s] == truth[s, 0] for s in range(500)]
    >>> round(float(np.mean(right)), 3), learned.converged_
    (0.924, True)
    """

    max_iter: int = 1000
    tol: float = 1e-6
    start: Start | ArrayLike = "spectral"
    prior: tuple[float, float] | None = None
    min_overlap: int = MIN_OVERLAP
    sign_rule: SignRule = "fixed"

    def fit(self, table: LabelTable) -> Self:
        """Learn the competences and the posteriors of the items."""
        model = _Likelihood(table, _check_prior(self.prior))
        p, monitor = self._highest(model, self._starts(table))
        if self.sign_rule == "fixed" and p[model.given > 0].mean() < 1 / model.classes:
            p = self._mirror(model, p, monitor)
        posteriors = np.empty((len(table.items), model.classes))
        log_likelihood, _ = model.expect(p, posteriors)
        return self._settle(table, p, posteriors, log_likelihood, monitor)

    def _starts(self, table: LabelTable) -> list[Floats]:
        """Where to start from; of equally good ends the first start is taken."""
        n, chance = len(table.labelers), 1 / len(table.classes)
        if not isinstance(self.start, str):
            return [_check_start(self.start, n)]
        if self.start not in get_args(Start):
            raise UnknownName("start", self.start, get_args(Start))
        starts = []
        if self.start != "majority":
            overlap, rule = self.min_overlap, self.sign_rule
            starts.append(spectral_start(table, min_overlap=overlap, sign_rule=rule))
        if self.start != "spectral":
            starts.append(np.full(n, (1 + chance) / 2))
        return starts

    def _highest(self, model: _Likelihood, starts: list[Floats]) -> tuple[Floats, Monitor]:
        """Climb from every start; the highest end and the record of its climb."""
        ends = []
        for start in starts:
            monitor = Monitor(self.tol, self.max_iter)
            ends.append((self._climb(model, start.clip(TINY, 1 - TINY), monitor), monitor))
        return max(ends, key=lambda end: model.objective(end[0])) if len(ends) > 1 else ends[0]

    def _climb(self, model: _Likelihood, p: Floats, monitor: Monitor) -> Floats:
        while not monitor.done:
            log_likelihood, right = model.expect(p)
            better = model.maximise(p, right)
            change = np.abs(better - p).max()
            monitor.report(log_likelihood + model.penalty(p), float(change))
            p = better
        return p

    def _mirror(self, model: _Likelihood, p: Floats, monitor: Monitor) -> Floats:
        """Leave the mirror image, where there is one and the prior has nothing against it."""
        found = f"EM ended with a mean competence of {p[model.given > 0].mean():.3f}, below chance"
        if model.classes > 2 or model.penalty(1 - p) < model.penalty(p):
            warnings.warn(f"{found}: check the labels before using them", stacklevel=3)
            return p
        warnings.warn(f"{found}: took its mirror image, all p -> 1 - p", stacklevel=3)
        if not any(model.prior):
            return 1 - p
        monitor.resume()
        return self._climb(model, 1 - p, monitor)


class _Likelihood:
    """The one-coin likelihood of a table: its E step and its M step."""

    def __init__(self, table: LabelTable, prior: tuple[float, float]) -> None:
        self.prior, self.classes = prior, len(table.classes)
        self.given = np.bincount(table.labeler, minlength=len(table.labelers)).astype(np.float64)
        self._pass: Callable[..., float] = em_pass
        self._labels = table.start, table.labeler, table.said
        self._odds = np.empty(self.classes)
        self._nothing = np.empty((0, self.classes))

    def expect(self, p: Floats, posteriors: Floats | None = None) -> tuple[float, Floats]:
        """Log-likelihood, and the expected number of right labels of each labeler."""
        right = np.empty_like(p)
        log_wrong = np.log1p(-p) - np.log(self.classes - 1)
        weight = np.log(p) - log_wrong
        out = self._nothing if posteriors is None else posteriors
        return self._pass(*self._labels, log_wrong, weight, right, self._odds, out), right

    def maximise(self, p: Floats, right: Floats) -> Floats:
        """The competences that explain the expected counts best; p where there are none."""
        a, b = self.prior
        total = self.given + (a + b)
        better = p.copy()
        np.divide(right + a, total, out=better, where=total > 0)
        return better.clip(TINY, 1 - TINY)

    def objective(self, p: Floats) -> float:
        """What EM climbs."""
        return self.expect(p)[0] + self.penalty(p)

    def penalty(self, p: Floats) -> float:
        """What the prior adds to the log-likelihood."""
        a, b = self.prior
        return float((a * np.log(p) + b * np.log1p(-p)).sum()) if a or b else 0.0


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
