r"""What the labels so far say: what each verdict may cost, and what a label would tell.

The labelers are learned twice: by `Anchored`, which stays near the vote (docs/real-data.md says why
that is safe), and by three steps of Dawid-Skene's EM, which tells good labelers from bad ones
sooner; the mean of the two is used. This decides only which labels are bought: verdicts are given
by `Auto`. With q the posterior of an item, and C[k, l] what the verdict l costs where k is right (1
for any error without costs),

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

import warnings
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.estimators.auto import Auto
from venire.estimators.calibration import discounted
from venire.estimators.dawid_skene.estimator import DawidSkene
from venire.estimators.screening.shared_errors import fit_panel, panel_pairs
from venire.estimators.votes.anchored import Anchored
from venire.labels import LabelTable
from venire.paper.accuracy import log_likelihoods, pair_evidence

__all__ = ["Assessment", "Belief", "assess", "believe", "decide", "posteriors"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Steps of EM.
STEPS: Final = 3

#: Two labelers are compared on so many items or more, and half of what is seen is believed at SEEN.
FEWEST_SHARED: Final = 8
SEEN: Final = 20.0

#: With more labelers than this their kinship is not looked for: pairs share too few items.
MOST_LABELERS: Final = 200


class Belief(NamedTuple):
    """Of each item: posterior, verdict, its risk and who contends; of each labeler: evidence.

    `evidence` is labelers x classes x classes, `kinship` labelers x labelers, or 1 x 1 if nobody
    is akin; `known` counts the labels of each labeler on items that others have labelled too.
    """

    posterior: Floats
    verdict: Ints
    risk: Floats
    rival: Ints
    evidence: Floats
    kinship: Floats
    known: Ints


def believe(table: LabelTable, costs: Floats | None = None) -> Belief:
    """Learn the labelers from the labels, and read off what each item's verdict may cost.

    >>> said = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 1], [0, -1, -1]])
    >>> belief = believe(LabelTable.from_matrix(said))
    >>> belief.verdict.tolist(), bool(belief.risk[2] > belief.risk[1])
    ([0, 1, 1, 0], True)
    """
    rows, shares = _learned(table)
    q = posteriors(table, rows, shares)
    verdict, risk, rival = decide(q, costs)
    risk[np.diff(table.start) == 0] = 1.0  # without a label there is no verdict
    shared = np.repeat(np.diff(table.start) > 1, np.diff(table.start))
    known = np.bincount(table.labeler[shared], minlength=len(table.labelers))
    return Belief(q, verdict, risk, rival, pair_evidence(rows), _kinship(table), known)


class Assessment(NamedTuple):
    """What is reported of the items: posteriors by `Auto`, and by the model of the choice.

    `learned` is False where nothing could be learned about the labelers: no target is reached then.
    """

    posterior: Floats
    other: Floats
    learned: bool

    def confidence(self, verdict: Ints) -> Floats:
        """The lower of what the two say of each verdict.

        A vote that weighs a lone label as 1 makes `Auto` overconfident about items of one label,
        and a model that takes errors for independent is overconfident about those of many.
        """
        here = np.arange(len(verdict))
        return np.minimum(self.posterior[here, verdict], self.other[here, verdict])


def assess(table: LabelTable, belief: Belief, seed: int = 0) -> Assessment:
    """The verdicts' posteriors, and how far to trust them."""
    fitted = Auto(seed=seed).fit(table)
    return Assessment(fitted.posteriors_, discounted(table, belief.posterior), fitted.learned_)


def _learned(table: LabelTable) -> tuple[Floats, Floats]:
    """Confusion matrices and class shares: near the vote, and after some steps of EM."""
    near, steps = Anchored().fit(table), DawidSkene(max_iter=STEPS)
    if not near.learned_:
        return near.confusions_, near.priors_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not meant to converge
        steps.fit(table)
    return (near.confusions_ + steps.confusions_) / 2, (near.priors_ + steps.priors_) / 2


def posteriors(table: LabelTable, confusions: Floats, shares: Floats) -> Floats:
    """The probability of each class of each item, for labelers who err independently.

    >>> from venire.paper.accuracy import one_coin
    >>> table = LabelTable.from_matrix([[0, 0], [0, 1]])
    >>> posteriors(table, one_coin([0.8, 0.8]), np.array([0.5, 0.5])).round(3).tolist()
    [[0.941, 0.059], [0.5, 0.5]]
    """
    votes, item = log_likelihoods(confusions), table.item
    n, K = len(table.items), len(shares)
    scores = np.empty((n, K))
    for k in range(K):
        told = votes[:, :, k][table.labeler, table.said]
        scores[:, k] = np.bincount(item, told, minlength=n) + np.log(shares[k])
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


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


def _kinship(table: LabelTable) -> Floats:
    """How alike the errors of two labelers are, 0 where they share too few items."""
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
    return kinship
