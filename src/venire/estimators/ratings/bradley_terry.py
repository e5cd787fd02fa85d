"""Pairwise comparisons: the Bradley-Terry model with labelers of unequal quality."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError
from venire.estimators.base import Monitor
from venire.estimators.frames import Columns, Valued
from venire.labels.sources.sheets import COMPARISON_COLUMNS
from venire.labels.sources.truth import Comparisons, as_comparisons
from venire.tools.arrays import Floats

#: The start, the bounds and the tolerance of learning the spread.
_FIRST_SPREAD, _SPREADS, _SETTLED = 2.0, (0.1, 10.0), 0.01

#: The rounding error allowed in sums.
_ROUNDING: Final = 1e-9

#: The most rounds of learning it, and the steps of each.
_ROUNDS, _STEPS = 30, 5

#: Standard errors are solved for this many things at a time.
_BLOCK: Final = 256


@dataclass(eq=False)
class BradleyTerry(Valued):
    r"""Scores of things from pairwise preferences of labelers of unequal quality.

    The crowd's Bradley-Terry model (Chen, Bennett, Collins-Thompson and Horvitz, *Pairwise ranking
    aggregation in a crowdsourced setting*, 2013): labeler m prefers i to j with probability

        eta_m sigma(t_i - t_j) + (1 - eta_m) sigma(t_j - t_i),    sigma(x) = 1 / (1 + exp(-x))

    so eta_m = 1 is an honest labeler, 1/2 one who tosses a coin, and 0 one who says the opposite. A
    tie counts as half a win of either side. EM repeats, until no score moves by more than `tol`:
    how probable it is that each answer was meant as it was given; then scores by a Newton step and
    reliabilities by their mean. What never falls is the log-likelihood with

        t_i ~ N(0, spread^2),    eta_m ~ Beta(1 + right, 1 + wrong)

    The first prior keeps scores finite for a thing that won or lost every comparison, and places
    groups of things that were never compared with each other around the same level; such groups
    cause a warning, because only the prior relates them.

    Parameters
    ----------
    spread : float, optional
        The prior spread of the scores, in logits. By default it is learned: with that of five
        steps, spread^2 = mean of t_i^2 + variance of t_i, until it settles.
    prior : (right, wrong) or None
        Pseudo-answers of each labeler; None assumes that everyone is honest, which is the plain
        Bradley-Terry model.
    max_iter, tol
        When to stop.

    Attributes
    ----------
    scores_, standard_errors_ : dict of thing to number
        In logits, with mean 0: sigma(score_i - score_j) is the chance that an honest labeler
        prefers i to j. The errors are those of the scores given the reliabilities.
    reliabilities_ : dict of labeler to eta
    ranking_ : tuple of things, the best first
    spread_ : float
    groups_ : dict of thing to number
        Which things are connected by comparisons, directly or not; all 0 if all are.
    log_likelihood_, n_iter_, converged_, history_

    Examples
    --------
    >>> rows = [("a", "b", "ann", "a"), ("b", "c", "ann", "b"), ("a", "c", "ann", "a"),
    ...         ("a", "b", "bob", "a"), ("c", "b", "bob", "b"), ("c", "a", "bob", "a"),
    ...         ("a", "b", "eve", "b"), ("b", "c", "eve", "c"), ("a", "c", "eve", "tie")]
    >>> found = BradleyTerry().fit(rows)
    >>> found.ranking_
    ('a', 'b', 'c')
    >>> {who: round(eta, 1) for who, eta in found.reliabilities_.items()}
    {'ann': 0.8, 'bob': 0.8, 'eve': 0.8}
    """

    name: ClassVar[str] = "bradley-terry"

    spread: float | None = None
    prior: tuple[float, float] | None = (4.0, 1.0)
    max_iter: int = 500
    tol: float = 1e-5

    def fit(self, comparisons: Any, columns: Sequence[str] = COMPARISON_COLUMNS) -> Self:
        """Learn scores and reliabilities from (left, right, labeler, winner) rows.

        `winner` is the name of one of the two, or "tie" or "draw" for neither.
        `comparisons` is anything that `as_table` takes, with these columns.
        """
        self._check()
        data = as_comparisons(comparisons, columns)
        climb = _Climb(data, self.spread or _FIRST_SPREAD, self.prior)
        if self.spread is None:
            climb.settle_spread()
        monitor = Monitor(self.tol, self.max_iter)
        while not monitor.done:
            monitor.report(*climb.step())
        self.data_ = data
        self._score, self._error = climb.scores(), climb.errors()
        self._groups = _groups(data)
        self.spread_, self.log_likelihood_ = climb.spread, climb.log_likelihood()
        self.n_iter_, self.converged_ = monitor.n_iter, monitor.converged
        self.history_ = tuple(monitor.history)
        self.scores_: dict[Hashable, float]
        self.groups_: dict[Hashable, int]
        self.scores_, self.standard_errors_, self.groups_ = (
            dict(zip(data.things, values.tolist(), strict=True))
            for values in (self._score, self._error, self._groups)
        )
        self.reliabilities_ = dict(zip(data.labelers, climb.eta.tolist(), strict=True))
        best = np.argsort(-self._score, kind="stable")
        self.ranking_ = tuple(data.things[i] for i in best)
        if self._groups.max() > 0:
            warnings.warn(
                f"the comparisons fall into {self._groups.max() + 1} groups that are never "
                "compared with each other: scores of different groups cannot be compared, only "
                "the prior holds them together (see groups_)",
                stacklevel=2,
            )
        return self

    def _check(self) -> None:
        if self.spread is not None and not 0 < self.spread < np.inf:
            raise InputError(f"got spread={self.spread!r}, expected a finite number above 0")
        if self.prior is not None and not (len(self.prior) == 2 and min(self.prior) > 0):
            raise InputError(f"got the prior {self.prior!r}, expected two numbers above 0, or None")

    def _size(self) -> str | None:
        data: Comparisons | None = self.__dict__.get("data_")
        if data is None:
            return None
        return f"{len(data.labeler):,} comparisons of {len(data.things):,} things"

    def value_columns(self) -> Columns:
        """The scores, the best first."""
        data, order = self.data_, np.argsort(-self._score, kind="stable")
        met, won = data.met_and_won()
        return {
            "thing": list(self.ranking_),
            "score": self._score[order].tolist(),
            "standard_error": self._error[order].tolist(),
            "comparisons": met[order].tolist(),
            "wins": won[order].tolist(),
            "group": self._groups[order].tolist(),
        }

    #: As `value_columns` was called here at first.
    score_columns = value_columns

    def labeler_columns(self) -> Columns:
        given = np.bincount(self.data_.labeler, minlength=len(self.data_.labelers))
        return {
            "worker": list(self.reliabilities_),
            "comparisons": given.tolist(),
            "reliability": list(self.reliabilities_.values()),
        }


class _Climb:
    """EM: the scores t and the reliabilities eta."""

    def __init__(self, data: Comparisons, spread: float, prior: tuple[float, float] | None) -> None:
        self.data, self.prior, self.spread = data, prior, spread
        self.t = np.zeros(len(data.things))
        right, wrong = prior or (1.0, 0.0)
        self.eta = np.full(len(data.labelers), right / (right + wrong))

    @property
    def _hold(self) -> float:
        return float(self.spread**-2)

    def settle_spread(self) -> None:
        """Some steps, then the spread that the scores have, allowing for their errors; again."""
        for _ in range(_ROUNDS):
            for _ in range(_STEPS):
                self.step()
            before = self.spread
            spread = np.sqrt((self.t**2 + self.variances()).mean())
            self.spread = float(np.clip(spread, *_SPREADS))
            if abs(self.spread / before - 1) < _SETTLED:
                return

    def step(self) -> tuple[float, float]:
        """One round: the objective before it, and the largest change of a score."""
        height = self._height(self.t)
        meant_left, meant = self._meant()
        if self.prior is not None:
            right, wrong = self.prior
            sums = np.bincount(self.data.labeler, meant, minlength=self.eta.size)
            given = np.bincount(self.data.labeler, minlength=self.eta.size)
            self.eta = (sums + right) / (given + right + wrong)
        before = self._height(self.t)
        move = self._newton(meant_left)
        while self._height(self.t + move) < before - _ROUNDING and np.abs(move).max() > _ROUNDING:
            move /= 2
        self.t = self.t + move
        return height, float(np.abs(move).max())

    def _sees_left(self) -> Floats:
        gap = self.t[self.data.left] - self.t[self.data.right]
        return np.asarray(1 / (1 + np.exp(-gap)))

    def _meant(self) -> tuple[Floats, Floats]:
        """For each answer, the probability that left was seen ahead, and that it was honest."""
        p, eta, left = self._sees_left(), self.eta[self.data.labeler], self.data.won_left
        if self.prior is None:
            return left, np.ones_like(left)
        honest_left = eta * p / (eta * p + (1 - eta) * (1 - p))
        honest_right = eta * (1 - p) / (eta * (1 - p) + (1 - eta) * p)
        meant = left * honest_left + (1 - left) * honest_right
        return left * honest_left + (1 - left) * (1 - honest_right), meant

    def _newton(self, meant_left: Floats) -> Floats:
        p = self._sees_left()
        slope = np.bincount(self.data.left, meant_left - p, minlength=self.t.size)
        slope -= np.bincount(self.data.right, meant_left - p, minlength=self.t.size)
        return np.asarray(self._solver(p * (1 - p)).solve(slope - self._hold * self.t))

    def _solver(self, weight: Floats) -> Any:
        """The factors of sum of weight (e_l - e_r)(e_l - e_r)' + I / spread^2."""
        from scipy.sparse import coo_array
        from scipy.sparse.linalg import splu

        n, l, r = self.t.size, self.data.left, self.data.right
        rows, columns = np.concatenate([l, r, l, r]), np.concatenate([l, r, r, l])
        values = np.concatenate([weight, weight, -weight, -weight])
        diagonal = np.arange(n)
        rows, columns = np.append(rows, diagonal), np.append(columns, diagonal)
        values = np.append(values, np.full(n, self._hold))
        return splu(coo_array((values, (rows, columns)), shape=(n, n)).tocsc())

    def log_likelihood(self, t: Floats | None = None) -> float:
        t = self.t if t is None else t
        gap = t[self.data.left] - t[self.data.right]
        eta, left = self.eta[self.data.labeler], self.data.won_left
        ahead, behind = 1 / (1 + np.exp(-gap)), 1 / (1 + np.exp(gap))
        says_left = eta * ahead + (1 - eta) * behind
        says_right = eta * behind + (1 - eta) * ahead
        return float((left * np.log(says_left) + (1 - left) * np.log(says_right)).sum())

    def _height(self, t: Floats) -> float:
        height = self.log_likelihood(t) - self._hold * float(t @ t) / 2
        if self.prior is not None:
            right, wrong = self.prior
            height += float((right * np.log(self.eta) + wrong * np.log1p(-self.eta)).sum())
        return height

    def scores(self) -> Floats:
        return np.asarray(self.t - self.t.mean())

    def errors(self) -> Floats:
        """The common level of all scores is not counted as an error."""
        return np.sqrt(np.maximum(self.variances() - self.spread**2 / self.t.size, 0.0))

    def variances(self) -> Floats:
        """From the expected information, given the reliabilities."""
        p, eta = self._sees_left(), self.eta[self.data.labeler]
        says_left = eta * p + (1 - eta) * (1 - p)
        slope = (2 * eta - 1) * p * (1 - p)
        solver, n = self._solver(slope**2 / (says_left * (1 - says_left))), self.t.size
        variance = np.empty(n)
        for first in range(0, n, _BLOCK):
            which = np.arange(first, min(first + _BLOCK, n))
            unit = np.zeros((n, which.size))
            unit[which, which - first] = 1.0
            variance[which] = solver.solve(unit)[which, which - first]
        return variance


def _groups(data: Comparisons) -> NDArray[np.int64]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(data.things)
    met = coo_array((np.ones(data.left.size), (data.left, data.right)), shape=(n, n))
    return np.asarray(connected_components(met, directed=False)[1], np.int64)
