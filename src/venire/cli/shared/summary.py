"""The report of an aggregation: model, verdicts, labelers, error rate; means of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from venire.cli.shared import screen
from venire.cli.shared.guarantees import guarantee_lines
from venire.cli.shared.tables import related_lines
from venire.costs import Costs, cost_matrix
from venire.estimators import RobustMean
from venire.estimators.auto import Auto
from venire.estimators.base import TIE, right_shares, winners
from venire.estimators.frames import part_columns
from venire.estimators.intervals import implied_intervals, why_wide
from venire.estimators.metrics import alpha_of
from venire.estimators.ratings.ordinal import Ordinal
from venire.labels import LabelTable
from venire.labels.partitions import Spread, labels_given, sizes, total, vote_entropies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from venire.audits import Guarantee
    from venire.estimators.base import BaseEstimator


#: How many labelers to list.
NAMED = 3


def numbers_record(fitted: RobustMean, right: NDArray[np.float64] | None) -> dict[str, Any]:
    """What is known of the robust means of numbers, and how far they are off."""
    table = fitted.table_
    record = {
        "method": fitted.name,
        "items": len(table.items),
        "labelers": len(table.labelers),
        "labels": len(table.said),
        "iterations": fitted.n_iter_,
        "converged": fitted.converged_,
        "freedom": fitted.freedom_,
        "alpha_interval": screen.finite(alpha_of(table, "interval")),
        "standard_error": float(np.mean(list(fitted.standard_errors_.values()))),
    }
    if right is not None:
        known = ~np.isnan(right)
        off = np.array(list(fitted.values_.values()))[known] - right[known]
        record["rmse"] = float(np.sqrt((off**2).mean()))
        record["mean_absolute_error"] = float(np.abs(off).mean())
    return record


def number_lines(fitted: RobustMean, record: dict[str, Any]) -> Iterator[str]:
    """The same in lines."""
    yield (
        f"robust mean: {record['labels']:,} numbers for {record['items']:,} tasks by "
        f"{record['labelers']:,} labelers"
    )
    yield ""
    ended = "converged" if record["converged"] else "stopped before it converged"
    yield f"fit      {record['iterations']} iterations, {ended}; {_outliers(record['freedom'])}"
    yield f"values   mean standard error {record['standard_error']:.4g}"
    alpha = record["alpha_interval"]
    yield f"agreed   Krippendorff's alpha {'-' if alpha is None else f'{alpha:.3f}'} interval"
    ranked = sorted(fitted.spreads_, key=fitted.spreads_.__getitem__)
    best, worst = ranked[:NAMED], ranked[NAMED:][-NAMED:][::-1]
    for word, who in (("precise", best), ("rough", worst)):
        parts = (
            f"{m} (bias {fitted.biases_[m]:+.3g}, spread {fitted.spreads_[m]:.3g})" for m in who
        )
        if who:
            yield f"{word:8} {', '.join(parts)}"
    if "rmse" in record:
        off = f"RMSE {record['rmse']:.4g}, mean absolute error {record['mean_absolute_error']:.4g}"
        yield f"truth    {off}"
    yield ""
    yield f"fitted in {record['seconds']:.2f} s"


def _outliers(freedom: float) -> str:
    shown = f"t with {freedom:g} degrees of freedom"
    return f"{shown}: {'outliers are down-weighted' if freedom < 10 else 'hardly any outliers'}"


#: Of the calibration error.
BINS = 10


def scores(fitted: BaseEstimator, right: NDArray[np.int64] | Spread | None) -> dict[str, float]:
    """Error and expected calibration error over the tasks of known truth.

    For ordered classes also the mean absolute error, in classes.
    """
    if right is None:
        return {}
    (known, hits, judged, away), gaps = total(
        fitted.table_, _scored, fitted.posterior_rows(), right, fitted.seed
    )
    found = {"error": float(1 - hits / known), "ece": float(np.abs(gaps).sum() / known)}
    if isinstance(fitted, Ordinal) and judged:
        found["mean_absolute_error"] = float(away / judged)
    return found


def _scored(
    table: LabelTable, posteriors: NDArray[np.float64], right: NDArray[np.int64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What `error_rate` and `expected_calibration_error` add up; classes by which verdicts err."""
    q, truth = posteriors[right >= 0], right[right >= 0]
    shares, sure = right_shares(q, truth), q.max(axis=1)
    bins = np.clip(np.ceil(sure * BINS).astype(np.int64) - 1, 0, BINS - 1)
    judged = (right >= 0) & (right < q.shape[1])
    away = np.abs(winners(posteriors, table.items, table.classes, seed) - right)[judged].sum()
    sums = np.array([len(truth), shares.sum(), judged.sum(), away], np.float64)
    return sums, np.bincount(bins, shares - sure, minlength=BINS).astype(np.float64)


def agreement(fitted: BaseEstimator) -> dict[str, float]:
    """Krippendorff's alpha, and the mean entropy of the votes on a task, in bits."""
    table = fitted.table_
    alphas = {"alpha": alpha_of(table)}
    if isinstance(fitted, Ordinal):
        alphas["alpha_ordinal"] = fitted.alphas_["ordinal"]
    return alphas | {"entropy": float(total(table, _entropy)) / sizes(table)[0]}


def _entropy(table: LabelTable) -> float:
    return float(vote_entropies(table).sum())


class Report(NamedTuple):
    """What came of an aggregation."""

    method: str
    fitted: BaseEstimator
    right: NDArray[np.int64] | Spread | None
    seconds: float
    costs: Costs
    held: Guarantee | None

    def record(self) -> dict[str, Any]:
        """As a JSON object."""
        fitted, table = self.fitted, self.fitted.table_
        items, labels = sizes(table)
        return {
            "method": self.method,
            "chosen": getattr(fitted, "chosen_", self.method),
            "items": items,
            "labelers": len(table.labelers),
            "labels": labels,
            "classes": len(table.classes),
            "iterations": int(fitted.n_iter_),
            "converged": bool(fitted.converged_),
            "log_likelihood": screen.finite(fitted.log_likelihood_),
            **{name: screen.finite(value) for name, value in agreement(fitted).items()},
            **scores(fitted, self.right),
            **related(fitted),
            "seconds": self.seconds,
            **mean_costs(fitted, self.right, self.costs),
            **({} if self.held is None else {"guarantee": self.held.record()}),
        }

    def lines(self) -> Iterator[str]:
        """In lines."""
        fitted, right = self.fitted, self.right
        items, labels = sizes(fitted.table_)
        yield (
            f"{self.method}: {labels:,} labels of {items:,} tasks by "
            f"{len(fitted.table_.labelers):,} labelers, {len(fitted.table_.classes)} classes"
        )
        yield ""
        yield from _model(self.method, fitted)
        yield from _verdicts(fitted)
        yield from _agreement(fitted)
        yield from _labelers(fitted)
        if isinstance(fitted, Auto):
            yield from (f"related  {line}" for line in related_lines(fitted.relations_))
        yield from _truth(fitted, right)
        yield ""
        yield f"fitted in {self.seconds:.2f} s"
        for name, value in mean_costs(fitted, right, self.costs).items():
            yield f"{name.replace('_', ' ')}: {value:.4g}"
        if self.held is not None:
            yield from ("", *guarantee_lines(self.held))


def _model(method: str, fitted: BaseEstimator) -> Iterator[str]:
    chosen, why = getattr(fitted, "chosen_", method), getattr(fitted, "why_", "")
    for line in getattr(fitted, "relations_", ()):  # which have lines of their own
        why = why.replace(line, "")
    if chosen != method or why:
        yield f"model    {chosen}{': ' if why else ''}{' '.join(str(why).split())}"
    if fitted.n_iter_:
        ended = "converged" if fitted.converged_ else "stopped before it converged"
        likelihood = fitted.log_likelihood_
        words = "" if likelihood is None else f", log-likelihood {likelihood:,.1f}"
        steps = f"{fitted.n_iter_} iteration{'' if fitted.n_iter_ == 1 else 's'}"
        yield f"fit      {steps}, {ended}{words}"


def _verdicts(fitted: BaseEstimator) -> Iterator[str]:
    classes, given = fitted.table_.classes, (fitted.posterior_rows(), fitted.seed)
    counts, sure, ties = total(fitted.table_, _decided, *given)
    items = int(counts.sum())
    order = np.argsort(-counts, kind="stable")[:5]
    shares = ", ".join(f"{classes[k]} {counts[k] / items:.1%}" for k in order)
    more = ", ..." if len(classes) > len(order) else ""
    rests = f", {fitted.rests_on_}" if isinstance(fitted, Auto) else ""
    yield f"verdicts {shares}{more}; mean confidence {sure / items:.1%}{rests}"
    if ties:
        yield f"         {ties:,} of the tasks end in a tie, broken by a seeded draw"


def _decided(
    table: LabelTable, q: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.int64], float, int]:
    """How many verdicts are of each class, the sum of their confidences, and ties."""
    best = q.max(axis=1, initial=0.0)
    said = winners(q, table.items, table.classes, seed)
    ties = int(((q >= best[:, None] - TIE).sum(axis=1) > 1).sum())
    return np.bincount(said, minlength=len(table.classes)), float(best.sum()), ties


def _agreement(fitted: BaseEstimator) -> Iterator[str]:
    got = agreement(fitted)
    alpha = f"alpha {got['alpha']:.3f}"
    if "alpha_ordinal" in got:
        alpha += f" nominal, {got['alpha_ordinal']:.3f} ordinal"
    entropy = f"entropy of the votes on a task {got['entropy']:.2f} bits on average"
    yield f"agreed   Krippendorff's {alpha}; {entropy}"


def _labelers(fitted: BaseEstimator) -> Iterator[str]:
    table = fitted.table_
    given = labels_given(table)
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
    wide = why_wide(fitted)
    if wide is not None and ranked.size:
        yield f"{'':8} ({wide})"


def _labeler(fitted: BaseEstimator, m: int, given: int, intervals: NDArray[np.float64]) -> str:
    skill = f"{fitted.competences_[m]:.2f} ({intervals[m, 0]:.2f} to {intervals[m, 1]:.2f})"
    plural, told = "label" if given == 1 else "labels", getattr(fitted, "told_skills_", None)
    gold = "" if told is None else f", right on {told.right[m]:,} of {told.known[m]:,} gold"
    return f"{fitted.table_.labelers[m]} {skill} on {given:,} {plural}{gold}"


def related(fitted: BaseEstimator) -> dict[str, Any]:
    """For JSON: who shares errors, in words and as groups, and what confidences rest on.

    Nothing of a method that does not say.

    >>> related(Auto().fit(LabelTable.from_matrix([[0, 1], [1, 1]])))
    {'relations': [], 'families': [], 'undecided': 0, 'confidence': 'by labels alone',
    'checked': None}
    """
    if not isinstance(fitted, Auto):
        return {}
    return {
        "relations": list(fitted.relations_),
        "families": [group.record() for group in fitted.families_],
        "undecided": fitted.undecided_,
        "confidence": fitted.rests_on_,
        "checked": fitted.checked_ and fitted.checked_.record(),
    }


def _truth(fitted: BaseEstimator, right: NDArray[np.int64] | Spread | None) -> Iterator[str]:
    if right is None:
        return
    got, classes = scores(fitted, right), len(fitted.table_.classes)
    known, strange, items = (int(n) for n in total(fitted.table_, count_truth, right, classes))
    yield (
        f"truth    known of {known:,} of {items:,} tasks: {got['error']:.2%} of the verdicts "
        f"are wrong, calibration error (ECE) {got['ece']:.2%}"
    )
    if "mean_absolute_error" in got:
        yield f"         mean absolute error {got['mean_absolute_error']:.3f} classes"
    if strange:
        yield f"         (the truth of {strange:,} tasks is a class that no labeler ever used)"


def count_truth(table: LabelTable, right: NDArray[np.int64], classes: int) -> tuple[int, int, int]:
    """Tasks of known truth, those whose truth is not one of the classes, and tasks.

    >>> count_truth(LabelTable.from_matrix([[0], [1], [0]]), np.array([0, -1, 2]), 2)
    (2, 1, 3)
    """
    return int((right >= 0).sum()), int((right >= classes).sum()), right.size


def mean_costs(
    fitted: BaseEstimator, right: NDArray[np.int64] | Spread | None, costs: Costs | None
) -> dict[str, float]:
    """The mean cost of the verdicts, and of the most probable classes, where the truth is known."""
    if right is None or not costs:
        return {}
    names = fitted.classes_
    matrix, code = cost_matrix(costs, names), {name: k for k, name in enumerate(names)}
    if matrix is None:
        return {}
    given = fitted.posterior_rows(), right, fitted.seed, costs, matrix, code
    mine, plain, judged = total(fitted.table_, _charged, *given)
    if not judged:
        return {}
    return {"cost_per_task": mine / judged, "cost_of_the_most_probable": plain / judged}


def _charged(
    table: LabelTable,
    posteriors: NDArray[np.float64],
    right: NDArray[np.int64],
    seed: int,
    costs: Costs,
    matrix: NDArray[np.float64],
    code: dict[Any, int],
) -> tuple[float, float, int]:
    """What the verdicts cost, what the most probable classes would, and how many are judged."""
    mine, plain = (part_columns(table, posteriors, seed, False, c)["label"] for c in (costs, None))
    pairs = [
        (int(t), code[a], code[b])
        for t, a, b in zip(right, mine, plain, strict=True)
        if 0 <= t < len(code) and a is not None and b is not None
    ]
    spent = [sum(float(matrix[pair[0], pair[k]]) for pair in pairs) for k in (1, 2)]
    return spent[0], spent[1], len(pairs)
