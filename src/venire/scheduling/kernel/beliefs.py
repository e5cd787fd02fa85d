"""What is believed of the labelers, written onto the desk in the form that the kernels use.

The order in which labelers go (Algorithm 1, line 8) is part of it: by decreasing competence
(`Belief.order`) or, where labels cost money, by increasing price of evidence (`by_merit`).
"""

from __future__ import annotations

import math

import numpy as np

from venire.errors import InputError
from venire.paper import utility
from venire.paper.accuracy import RHO, on_grid
from venire.scheduling.base import Belief, Floats, Ints
from venire.scheduling.kernel.desk import BELIEVED, CERTAINTY, COSTLY, PRICED, Desk

__all__ = ["believe", "charged", "check_c", "leaning"]


def check_c(c: float) -> None:
    """Validate the constant c of the accuracy proxy."""
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
        desk.votes[:] = np.eye(classes)
        return
    panel["evidence"] = on_grid(c * belief.evidence(classes))
    panel["reach"] = [utility.reach(e) for e in panel["evidence"]]
    desk.bounds[1] = panel["evidence"].sum()
    desk.bounds[2] = panel["evidence"][panel["capacity"] > 0].sum()
    desk.votes[:] = belief.votes(classes)
    desk.pairs[:] = belief.pairs(classes)
    desk.order[:] = belief.order(classes)
    if desk.meta[PRICED]:
        desk.order[:] = by_merit(desk)


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
