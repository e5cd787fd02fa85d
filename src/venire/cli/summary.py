"""The report of an aggregation: model, verdicts, labelers, and the error if the truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from venire.estimators.intervals import implied_intervals
from venire.estimators.ratings.agreement import alpha_of
from venire.estimators.ratings.ordinal import Ordinal
from venire.estimators.scoring import TIE, error_rate, expected_calibration_error, right_shares
from venire.estimators.ties import winners
from venire.labels.entropy import vote_entropies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from venire.estimators.base import BaseEstimator

__all__ = ["agreement", "print_summary", "scores"]

#: How many of the best and of the worst labelers to list.
NAMED = 3


def scores(fitted: BaseEstimator, right: NDArray[np.int64] | None) -> dict[str, float]:
    """Error and expected calibration error over the tasks of known truth.

    For ordered classes also the mean absolute error, in classes.
    """
    if right is None:
        return {}
    known = right >= 0
    q = fitted.posteriors_[known]
    shares = right_shares(q, right[known])
    ece = expected_calibration_error(q.max(axis=1), shares)
    found = {"error": error_rate(q, right[known]), "ece": ece}
    if isinstance(fitted, Ordinal) and (right[known] < q.shape[1]).any():
        said = winners(fitted.posteriors_, fitted.table_.items, fitted.classes_, fitted.seed)
        judged = known & (right < q.shape[1])
        found["mean_absolute_error"] = float(np.abs(said - right)[judged].mean())
    return found


def agreement(fitted: BaseEstimator) -> dict[str, float]:
    """Krippendorff's alpha, and the mean entropy of the votes on a task, in bits."""
    table = fitted.table_
    alphas = {"alpha": alpha_of(table)}
    if isinstance(fitted, Ordinal):
        alphas["alpha_ordinal"] = fitted.alphas_["ordinal"]
    return alphas | {"entropy": float(vote_entropies(table).mean())}


def print_summary(
    method: str, fitted: BaseEstimator, right: NDArray[np.int64] | None, seconds: float
) -> None:
    """Print the report of an aggregation."""
    table = fitted.table_
    print(
        f"{method}: {len(table.said):,} labels of {len(table.items):,} tasks by "
        f"{len(table.labelers):,} labelers, {len(table.classes)} classes"
    )
    print()
    for line in (
        *_model(method, fitted),
        *_verdicts(fitted),
        *_agreement(fitted),
        *_labelers(fitted),
        *_clones(fitted),
        *_truth(fitted, right),
    ):
        print(line)
    print()
    print(f"fitted in {seconds:.2f} s")


def _model(method: str, fitted: BaseEstimator) -> Iterator[str]:
    chosen, why = getattr(fitted, "chosen_", method), getattr(fitted, "why_", "")
    if chosen != method or why:
        yield f"model    {chosen}{': ' if why else ''}{' '.join(str(why).split())}"
    if fitted.n_iter_:
        ended = "converged" if fitted.converged_ else "stopped before it converged"
        likelihood = fitted.log_likelihood_
        words = "" if likelihood is None else f", log-likelihood {likelihood:,.1f}"
        yield f"fit      {fitted.n_iter_} iterations, {ended}{words}"


def _verdicts(fitted: BaseEstimator) -> Iterator[str]:
    q, classes = fitted.posteriors_, fitted.table_.classes
    best = q.max(axis=1)
    winner = winners(q, fitted.table_.items, classes, fitted.seed)
    counts = np.bincount(winner, minlength=len(classes))
    order = np.argsort(-counts, kind="stable")[:5]
    shares = ", ".join(f"{classes[k]} {counts[k] / len(q):.1%}" for k in order)
    more = ", ..." if len(classes) > len(order) else ""
    yield f"verdicts {shares}{more}; mean confidence {best.mean():.1%}"
    ties = int(((q >= best[:, None] - TIE).sum(axis=1) > 1).sum())
    if ties:
        yield f"         {ties:,} of the tasks end in a tie, broken by a seeded draw"


def _agreement(fitted: BaseEstimator) -> Iterator[str]:
    got = agreement(fitted)
    alpha = f"alpha {got['alpha']:.3f}"
    if "alpha_ordinal" in got:
        alpha += f" nominal, {got['alpha_ordinal']:.3f} ordinal"
    entropy = f"entropy of the votes on a task {got['entropy']:.2f} bits on average"
    yield f"agreed   Krippendorff's {alpha}; {entropy}"


def _labelers(fitted: BaseEstimator) -> Iterator[str]:
    table = fitted.table_
    given = np.bincount(table.labeler, minlength=len(table.labelers))
    intervals = implied_intervals(fitted)  # fast: no posterior draws
    low, high = intervals.T
    ranked = np.flatnonzero(given)
    best = ranked[np.argsort(-low[ranked], kind="stable")][:NAMED]
    rest = np.setdiff1d(ranked, best)
    worst = rest[np.argsort(high[rest], kind="stable")][:NAMED]
    for word, who in (("best", best), ("worst", worst)):
        if who.size:
            listed = ", ".join(_labeler(fitted, m, int(given[m]), intervals) for m in who)
            yield f"{word:8} {listed}"


def _labeler(fitted: BaseEstimator, m: int, given: int, intervals: NDArray[np.float64]) -> str:
    skill = f"{fitted.competences_[m]:.2f} ({intervals[m, 0]:.2f} to {intervals[m, 1]:.2f})"
    plural = "label" if given == 1 else "labels"
    return f"{fitted.table_.labelers[m]} {skill} on {given:,} {plural}"


def _clones(fitted: BaseEstimator) -> Iterator[str]:
    found: Any = getattr(fitted, "clones_", None)
    if found is None:
        return
    for group in found.groups:
        yield f"clones   {group}"
    if not found.groups:
        yield "clones   none suspected"


def _truth(fitted: BaseEstimator, right: NDArray[np.int64] | None) -> Iterator[str]:
    if right is None:
        return
    got, known = scores(fitted, right), int((right >= 0).sum())
    yield (
        f"truth    known of {known:,} of {right.size:,} tasks: {got['error']:.2%} of the verdicts "
        f"are wrong, calibration error (ECE) {got['ece']:.2%}"
    )
    if "mean_absolute_error" in got:
        yield f"         mean absolute error {got['mean_absolute_error']:.3f} classes"
    strange = int((right >= len(fitted.table_.classes)).sum())
    if strange:
        yield f"         (the truth of {strange:,} tasks is a class that no labeler ever used)"
