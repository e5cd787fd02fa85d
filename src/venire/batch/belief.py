r"""What the labels so far say: what each verdict may cost, and what a label would tell.

Items and labelers are learned by `Auto`, the same as for verdicts: what is bought next follows from
what would be said now. With q the posterior of an item, and C[k, l] what the verdict l costs where
k is right (1 for any error without costs),

    verdict  l = argmin_l sum_k q_k C[k, l],    risk = the minimum.

The two classes that contend are the verdict and the class that adds most to its risk. A label of
labeler m that tells them apart with evidence e_m (`pair_evidence`) lowers the risk by about

    risk * (1 - exp(-e_m)):

the mean of sqrt(q (1 - q)) over what m may say falls by exactly exp(-e_m), and risk falls with
it. Unlike the gain of the very next label, which is 0 wherever one label cannot turn the verdict,
it is positive as long as there is doubt.

Labelers who share errors tell less together than alone. `kinship` is the correlation of the errors
of two labelers (`shared_errors`), shrunk while it rests on few items: a label of m on an item that
n has labelled counts for 1 - kinship of its evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.auto import Auto
from venire.estimators.families import Families
from venire.estimators.given import Gold
from venire.estimators.screening.shared_errors import fit_panel, panel_pairs
from venire.labels import LabelTable
from venire.paper.accuracy import pair_evidence

__all__ = ["Belief", "believe", "decide"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Two labelers are compared on at least this number of items; at SEEN items, half of what is seen
#: is believed.
FEWEST_SHARED: Final = 8
SEEN: Final = 20.0

#: With more labelers than this their kinship is not looked for: pairs share too few items.
MOST_LABELERS: Final = 200


class Belief(NamedTuple):
    """Of each item: posterior, verdict, its risk and who contends; of each labeler: evidence.

    `evidence` is labelers x classes x classes, `kinship` labelers x labelers, or 1 x 1 if nobody
    is akin; `known` counts the labels of each labeler on items that others have labelled too.
    """

    fitted: Auto
    posterior: Floats
    verdict: Ints
    risk: Floats
    rival: Ints
    evidence: Floats
    kinship: Floats
    known: Ints

    @property
    def learned(self) -> bool:
        """Whether labelers could be compared; no target is reached before."""
        return self.fitted.learned_ or self.fitted.independence_.refuted

    def confidence(self, verdict: Ints) -> Floats:
        """How sure each verdict is."""
        return np.asarray(self.posterior[np.arange(len(verdict)), verdict])


def believe(
    table: LabelTable,
    costs: Floats | None = None,
    families: Families | None = None,
    seed: int = 0,
    gold: Gold | None = None,
    asked: Collection[Hashable] = (),
) -> Belief:
    """Learn the labelers from the labels, and read off what each item's verdict may cost.

    The verdict on an item with `gold` is known. Its risk is what it would be without: labels of
    such items tell who is right, so they are bought like any other. `asked` are gold items that
    were chosen, and not drawn at random.

    >>> said = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 1], [0, -1, -1]])
    >>> belief = believe(LabelTable.from_matrix(said))
    >>> belief.verdict.tolist(), bool(belief.risk[2] > belief.risk[1])
    ([0, 1, 1, 0], True)
    """
    fitted = Auto(families, seed=seed).fit(table, gold, asked)
    q = fitted.posteriors_
    verdict, risk, rival = decide(q, costs)
    if fitted.checked_ is not None:
        _, risk, rival = decide(fitted.unsettled_, costs)
    risk[np.diff(table.start) == 0] = 1.0  # without a label there is no verdict
    shared = np.repeat(np.diff(table.start) > 1, np.diff(table.start))
    known = np.bincount(table.labeler[shared], minlength=len(table.labelers))
    told = pair_evidence(fitted.rows_), _kinship(table, fitted)
    return Belief(fitted, q, verdict, risk, rival, *told, known)


def decide(posterior: Floats, costs: Floats | None = None) -> tuple[Ints, Floats, Ints]:
    """The verdict of least expected cost, that cost, and the class that adds most to it.

    >>> q = np.array([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    >>> [a.round(3).tolist() for a in decide(q)]
    [[0, 2], [0.4, 0.2], [1, 0]]
    >>> dear = np.array([[0, 1, 1], [10, 0, 1], [1, 1, 0.0]])  # the second class must not be missed
    >>> [a.round(3).tolist() for a in decide(q, dear)]
    [[1, 2], [0.7, 0.2], [0, 0]]
    """
    K = posterior.shape[1]
    C = 1.0 - np.eye(K) if costs is None else costs
    expected = posterior @ C
    verdict = np.argmin(expected, axis=1)
    here = np.arange(len(posterior))
    parts = posterior * C.T[verdict]
    parts[here, verdict] = -1.0
    return verdict, np.maximum(expected[here, verdict], 0.0), np.argmax(parts, axis=1)


def _kinship(table: LabelTable, fitted: Auto) -> Floats:
    """How alike the errors of two labelers are, 0 where they share too few items.

    In a family it is what the verdicts are weighed by.
    """
    M = len(table.labelers)
    if M > MOST_LABELERS:
        return np.zeros((1, 1))
    counts = panel_pairs(table)
    panel = fit_panel(counts, FEWEST_SHARED)
    if not panel.first.size:
        return np.zeros((1, 1))
    seen = counts.shared[panel.first, panel.second]
    alike = np.maximum(panel.correlation, 0.0) * seen / (seen + SEEN)
    kinship = np.zeros((M, M))
    kinship[panel.first, panel.second] = kinship[panel.second, panel.first] = alike
    code = {name: m for m, name in enumerate(table.labelers)}
    for group in fitted.families_:
        members = np.array([code[name] for name in group.members])
        kinship[np.ix_(members, members)] = group.correlation
    return kinship
