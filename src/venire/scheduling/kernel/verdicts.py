"""The verdict on an item: the weighted majority of its labels (paper, eq. 1) and its confidence.

**What is believed of the labelers, written onto the desk in the form that the kernels use.**

The order in which labelers go (Algorithm 1, line 8) is part of it: by decreasing competence
(`Belief.order`) or, where labels cost money, by increasing price of evidence (`by_merit`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from venire.errors import InputError
from venire.estimators.voices import N_TONES
from venire.paper import utility
from venire.paper.accuracy import RHO, on_grid
from venire.scheduling.base import Belief
from venire.scheduling.kernel.desk import (
    BARRED,
    BELIEVED,
    CERTAINTY,
    COSTLY,
    PENDING,
    PRICED,
    Desk,
)
from venire.tools.arrays import Floats, Ints
from venire.tools.compiling import inlined, kernel


def check_c(c: float) -> None:
    if not (math.isfinite(c) and c > 0):
        raise InputError(f"got c = {c}, expected a finite number above 0")


def believe(desk: Desk, belief: Belief | None, c: float = 1.0, costs: Floats | None = None) -> None:
    """Use this belief from now on; None: nothing is known, all votes are equal.

    `costs` are what errors cost, truth by verdict; None: every error costs 1. The prices of the
    labelers are on the desk already.
    """
    panel, classes = desk.panel, len(desk.scores)
    costs = charged(belief, costs)
    desk.meta[COSTLY] = costs is not None
    desk.costs[:] = 1.0 - np.eye(classes) if costs is None else costs
    desk.meta[PRICED] = panel["price"].any()
    desk.meta[BELIEVED] = belief is not None
    desk.lean[:] = leaning(belief, classes)
    desk.bounds[CERTAINTY] = 1.0 if belief is None else belief.certainty
    if belief is None:
        panel["evidence"] = panel["reach"] = 0.0
        desk.bounds[1:3] = 0.0
        desk.pairs[:] = 0.0
        desk.votes[:] = with_tones(np.eye(classes), desk.votes.shape[1])
        return
    panel["evidence"] = on_grid(c * belief.evidence(classes))
    panel["reach"] = [utility.reach(e) for e in panel["evidence"]]
    desk.bounds[1] = panel["evidence"].sum()
    desk.bounds[2] = panel["evidence"][panel["capacity"] > 0].sum()
    desk.votes[:] = with_tones(belief.votes(classes), desk.votes.shape[1])
    desk.pairs[:] = belief.pairs(classes)
    desk.order[:] = belief.order(classes)
    if desk.meta[PRICED]:
        desk.order[:] = by_merit(desk)


def with_tones(votes: Floats, answers: int) -> Floats:
    """Votes for so many answers: those without a tone are repeated for each tone."""
    times = answers // votes.shape[-2]
    return votes if times <= 1 else np.concatenate([votes] * times, axis=-2)


def by_merit(desk: Desk) -> Ints:
    """The labelers by what a unit of their evidence costs; among equals the best first.

    The cheapest set of labelers that gives some evidence takes them in this order, but for what
    the last label is too much. Those who tell nothing are last.
    """
    panel = desk.panel[desk.order]
    tells = panel["evidence"] > 0.0
    merit = np.divide(panel["price"], panel["evidence"], np.full(len(panel), np.inf), where=tells)
    return np.asarray(desk.order[np.argsort(merit, kind="stable")], np.int64)


def charged(belief: Belief | None, costs: Floats | None) -> Floats | None:
    """What errors cost, as far as the probabilities of both classes can be believed.

    An expected cost is as good as the probability in it. While nothing is believed, and between
    classes of which one is not `distinct`, every error costs 1; None: everywhere.

    >>> costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    >>> charged(Belief(np.array([0.9])), costs).tolist()
    [[0.0, 1.0], [20.0, 0.0]]
    >>> charged(Belief(np.array([0.9]), distinct=np.array([True, False])), costs) is None
    True
    """
    if costs is None or belief is None:
        return None
    if belief.distinct is None:
        return costs
    both = np.logical_and.outer(belief.distinct, belief.distinct)
    usual = 1.0 - np.eye(len(costs))
    found = np.where(both, costs, usual)
    return None if (found == usual).all() else found


def leaning(belief: Belief | None, classes: int) -> Floats:
    """The log prior of each class, 0 for all where classes are equally likely."""
    if belief is None or belief.prior is None:
        return np.zeros(classes)
    share = np.clip(belief.prior, RHO, 1.0)
    return np.asarray(on_grid(np.log(share / share.sum())), np.float64)


def decide_apart(
    belief: Belief | None,
    classes: int,
    start: Ints,
    labelers: Ints,
    said: Ints,
    costs: Floats | None = None,
) -> tuple[Ints, Floats]:
    """The verdicts on items that are on no desk: classes (-1: no label) and confidences.

    Item i has the labels start[i] to start[i + 1] - 1, the newest first, as on a desk; the result
    is that of `decide`, to the bit.

    >>> import numpy as np
    >>> start, who, said = np.array([0, 2, 2]), np.array([0, 1]), np.array([1, 0])
    >>> found, sure = decide_apart(Belief(np.array([0.9, 0.6])), 2, start, who, said)
    >>> found.tolist(), sure.round(2).tolist()
    ([1, -1], [0.86, 0.0])
    """
    found, sure = np.empty(len(start) - 1, np.int64), np.empty(len(start) - 1)
    votes = np.zeros((1, classes, classes)) if belief is None else belief.votes(classes)
    if said.size and said.max() >= classes:
        votes = with_tones(votes, N_TONES * classes)
    lean, scores = leaning(belief, classes), np.zeros(classes)
    certain = 1.0 if belief is None else belief.certainty
    costs = charged(belief, costs)
    rows = start, labelers, said, found, sure
    square = 1.0 - np.eye(classes) if costs is None else costs
    _decide_all(belief is not None, certain, votes, lean, scores, costs is not None, square, *rows)
    return found, sure


@kernel
def _decide_all(
    believed: bool,
    certain: float,
    votes: Floats,
    lean: Floats,
    scores: Floats,
    costly: bool,
    costs: Floats,
    start: Ints,
    labelers: Ints,
    said: Ints,
    found: Ints,
    sure: Floats,
) -> None:
    for i in range(len(found)):
        for j in range(len(scores)):
            scores[j] = lean[j]
        for k in range(start[i], start[i + 1]):
            if believed:
                for j in range(len(scores)):
                    scores[j] += votes[labelers[k], said[k], j]
            else:
                scores[said[k] % len(scores)] += 1.0
        best, count = verdict_by(scores, lean, certain, costly, costs), start[i + 1] - start[i]
        found[i] = best if count > 0 else -1
        sure[i] = confidence_in(scores, lean, believed, certain, costly, best, count)


@inlined
def let_go(desk: Desk, row: int) -> None:
    """Cancel the labels in flight of a row that has left."""
    k = desk.rows[row].head
    while k >= 0 and desk.rows[row].pending > 0:
        if desk.touches[k].said == PENDING:
            desk.touches[k].said = BARRED
            desk.panel[desk.touches[k].labeler].inflight -= 1
            desk.panel[desk.touches[k].labeler].load -= 1
            desk.rows[row].pending -= 1
            desk.rows[row].labels -= 1
        k = desk.touches[k].next


@inlined
def add_votes(desk: Desk, row: int, coming: int = -1) -> int:
    """Add the votes of the labels of a row to the scores; returns how many labels there are.

    With `coming`, of the labels in flight instead, as if they will say that class.
    """
    scores, votes = desk.scores, 0
    k = desk.rows[row].head
    while k >= 0:
        said = desk.touches[k].said
        if coming >= 0:
            said = coming if said == PENDING else BARRED
        if said >= 0:
            m = desk.touches[k].labeler
            for j in range(len(scores)):
                scores[j] += desk.votes[m, said, j]
            votes += 1
        k = desk.touches[k].next
    return votes


@inlined
def best_of(scores: Floats) -> int:
    """The class of the highest score; a tie goes to the later one."""
    best = len(scores) - 1
    for j in range(len(scores) - 2, -1, -1):
        if scores[j] > scores[best]:
            best = j
    return best


@inlined
def verdict_by(scores: Floats, lean: Floats, certain: float, costly: bool, costs: Floats) -> int:
    """The class of the highest score or, where errors do not cost the same, of least cost.

    Costs are expected under the class shares, `lean`, times what the labels say to the power of
    `certain`: that labels share errors makes them worth less, and no class more frequent. Of two
    verdicts that cost the same, the more probable counts; a tie goes to the later class.
    """
    best = best_of(scores)
    if not costly:
        return best
    top = -math.inf
    for j in range(len(scores)):
        top = max(top, lean[j] + certain * (scores[j] - lean[j]))
    chosen, least = -1, math.inf
    for v in range(len(scores) - 1, -1, -1):
        cost = 0.0
        for j in range(len(scores)):
            cost += math.exp(lean[j] + certain * (scores[j] - lean[j]) - top) * costs[j, v]
        if chosen < 0 or cost < least or (cost == least and scores[v] > scores[chosen]):
            chosen, least = v, cost
    return chosen


@inlined
def add_up(desk: Desk, row: int) -> tuple[int, int]:
    """Score the classes by the labels of a row: the verdict, and how many labels there are."""
    for j in range(len(desk.scores)):
        desk.scores[j] = desk.lean[j]
    votes = add_votes(desk, row)
    certain, costly = desk.bounds[CERTAINTY], desk.meta[COSTLY] != 0
    best = verdict_by(desk.scores, desk.lean, certain, costly, desk.costs)
    return best, votes


@inlined
def confidence_in(
    scores: Floats,
    lean: Floats,
    believed: bool,
    certain: float,
    costly: bool,
    best: int,
    votes: int,
) -> float:
    """The posterior of a class by the scores; its share of votes while nothing is known.

    The log-odds are multiplied by `certain` (see `Belief.certainty`); where errors do not cost the
    same, those of the labels alone: the probability is the one that costs are expected by.
    """
    total = 1.0
    if votes == 0:
        return 0.0
    rest = 1.0 - certain if costly else 0.0
    for j in range(len(scores)):
        if j != best:
            odds = certain * (scores[j] - scores[best]) + rest * (lean[j] - lean[best])
            total += math.exp(odds)
    return 1.0 / total if believed else scores[best] / votes


def probabilities(desk: Desk, row: int) -> Floats:
    """How probable each class is by the labels of a row; shares of the votes if nothing is known.

    That of the verdict is its confidence, and costs are expected by them.
    """
    decide_row(desk, row)
    odds = desk.scores.copy()
    if desk.meta[BELIEVED]:
        certain = desk.bounds[CERTAINTY]
        rest = 1.0 - certain if desk.meta[COSTLY] else 0.0
        odds = np.exp(certain * (odds - odds.max()) + rest * desk.lean)
    total = float(odds.sum())
    return np.asarray(odds / total if total else np.full_like(odds, 1 / len(odds)))


@inlined
def decide(desk: Desk, row: int) -> None:
    """Write the verdict of a row and its confidence; a tie goes to the later class.

    The confidence is the posterior of the verdict; while nothing is known of the labelers it
    is the share of the votes.
    """
    best, votes = add_up(desk, row)
    desk.rows[row].verdict = best if votes > 0 else -1
    believed, certain = desk.meta[BELIEVED] != 0, desk.bounds[CERTAINTY]
    how = desk.lean, believed, certain, desk.meta[COSTLY] != 0
    desk.rows[row].confidence = confidence_in(desk.scores, *how, best, votes)


@inlined
def decide_gone(desk: Desk, count: int) -> None:
    for i in range(count):
        decide(desk, desk.gone[i])


@kernel
def decide_row(desk: Desk, row: int) -> None:
    """Write the verdict of one row by what is believed now."""
    decide(desk, row)


@kernel
def let_go_row(desk: Desk, row: int) -> None:
    """Cancel the labels in flight of one row."""
    let_go(desk, row)


@kernel
def depart(desk: Desk, rows: Any) -> None:
    """Write the verdicts of rows that leave, and cancel their labels in flight."""
    for i in range(len(rows)):
        decide(desk, rows[i])
        let_go(desk, rows[i])
