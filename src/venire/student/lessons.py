"""What a student is taught: what the *other* labelers say, without its own votes.

Were its votes among them, it would be its own teacher: what it says becomes more probable because
it said so, it is taught that, says it again, and looks right. So its labels are taken out before
anything is learned: the skills of the others, how often each class comes, and the posteriors

    q_k  ~  share_k * product over the others' labels of P(label | class k)

are those of a panel on which it never sat. Items that nobody else has labelled teach nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.auto import Auto
from venire.estimators.families import weighted_posteriors
from venire.labels import LabelTable
from venire.labels.subset import keep_labels

__all__ = ["Lessons", "lessons"]


class Lessons(NamedTuple):
    """The posterior of each item without the student's votes, and of which items there is one."""

    posterior: NDArray[np.float64]
    known: NDArray[np.bool_]


def lessons(
    table: LabelTable,
    own: Set[Hashable] = frozenset(),
    gold: Mapping[Hashable, Hashable] | None = None,
) -> Lessons:
    """What the labels say without those of the labelers `own`; gold is what it is.

    >>> rows = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no"),
    ...         ("c", "ann", "yes"), ("c", "student", "no"), ("d", "student", "no")]
    >>> taught = lessons(LabelTable.from_rows(rows), {"student"})
    >>> taught.known.tolist(), bool(taught.posterior[2, 1] > 0.5)
    ([True, True, True, False], True)
    """
    mine = np.array([name in own for name in table.labelers], np.bool_)
    others = keep_labels(table, ~mine[table.labeler])
    known = np.diff(others.start) > 0
    if not known.any():
        return Lessons(np.zeros((len(table.items), len(table.classes))), known)
    told = dict(gold or {})
    fitted = Auto().fit(others, told or None)
    q = weighted_posteriors(others, fitted.rows_, fitted.shares_, [])
    if told:
        code = {name: k for k, name in enumerate(table.classes)}
        for i, item in enumerate(table.items):
            if item in told and told[item] in code:
                q[i], known[i] = np.eye(len(code))[code[told[item]]], True
    return Lessons(q, known)
