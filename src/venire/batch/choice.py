r"""The most valuable label of each item, for its price.

The value of a label of labeler m on item i is

    weight_i * risk_i * (1 - exp(-(1 - kinship) e_m)) / price_m

(below is what these are). Values are multiplied by a draw between 1 - NOISE and 1 + NOISE, so
that labelers of about the same worth share the work, and meet each other. Buying the highest values
until the budget is gone spends it at one price for all items: the value of the last label bought.

**Confidence.** A labeler that says how sure it is has two voices (`venire.estimators.voices`).
Which one will answer is not known before: what a label of the labeler tells is the mean over its
voices, by how often each spoke.

**What the labels so far say: what each verdict may cost, and what a label would tell.**

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

**Trusted alone: one labeler who is about as good as the whole panel labels the rest.**

Only truth can tell who that is. Everybody labels the items with gold and as many others, if that
takes at most a third of the budget. The mixture that gold makes of all their labels
(`venire.estimators.mixture`) has a posterior q of each of these items, and what the label of
one labeler costs, in the place of the panel's verdict, is

    the mean over these items of  sum_k q_k C[k, said] - min_l sum_k q_k C[k, l]

(C: 1 for any error, without costs). It is what the panel's own belief expects to lose, with all
that it is unsure of. Whoever has the least of it, and no more than a margin that is stated, labels
the other items alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.batch.labelers import FREE, Work
from venire.errors import InputError
from venire.estimators.auto import Auto
from venire.estimators.clones import CloneGroup, fit_panel, panel_pairs
from venire.estimators.dependence import Families
from venire.estimators.gold import Gold
from venire.estimators.voices import Voices
from venire.labels import LabelTable, Names
from venire.paper.accuracy import pair_evidence
from venire.tools.arrays import Bools, Floats, Ints
from venire.tools.compiling import threaded

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


def heard(belief: Belief, voices: Voices) -> Belief:
    """What is believed of labelers, from what is believed of their voices.

    Whoever comes after the voices, such as a student, is left out.
    """
    V, M = len(voices.labeler), int(voices.labeler.max()) + 1
    spoken = np.bincount(voices.voice, minlength=V).astype(np.float64)
    total = np.bincount(voices.labeler, spoken, minlength=M)[voices.labeler]
    share = np.zeros((M, V))
    share[voices.labeler, np.arange(V)] = np.where(total > 0, spoken / np.maximum(total, 1), 1.0)
    kinship = belief.kinship
    if kinship.shape[0] > 1:
        kinship = np.ascontiguousarray(share @ kinship[:V, :V] @ share.T)
    return belief._replace(
        evidence=np.ascontiguousarray(np.tensordot(share, belief.evidence[:V], axes=1)),
        kinship=kinship,
        known=np.bincount(voices.labeler, belief.known[:V], minlength=M).astype(np.int64),
    )


def owned(
    groups: Sequence[CloneGroup], voices: Voices | None, labelers: Names
) -> tuple[CloneGroup, ...]:
    """Groups of voices as groups of those who spoke, each with the mean of the correlations.

    >>> voices = Voices(np.zeros(0, np.int64), ("a (sure)", "b", "a (unsure)"), np.array([0, 1, 0]))
    >>> owned([CloneGroup(("a (sure)", "b", "a (unsure)"), 0.5)], voices, ["a", "b"])
    (CloneGroup(members=('a', 'b'), correlation=0.5),)
    """
    if voices is None:
        return tuple(groups)
    owners = zip(voices.names, voices.labeler.tolist(), strict=True)
    owner = {name: labelers[m] for name, m in owners}
    found: dict[tuple[Hashable, ...], list[float]] = {}
    for group in groups:
        theirs = {owner.get(name, name): None for name in group.members}
        known = [name for name in labelers if name in theirs]
        members = (*known, *(name for name in theirs if name not in known))
        if len(members) > 1:
            found.setdefault(members, []).append(group.correlation)
    return tuple(CloneGroup(names, float(np.mean(r))) for names, r in found.items())


#: Half the width of the draw that a value is multiplied by.
NOISE: Final = 0.08


def first_entries(work: Work, free: Bools, price: Floats, seed: int) -> Ints:
    """The labeler of the first label of each item, drawn with odds 1 / `price`; -1 for none.

    >>> from venire.batch.labelers import as_items
    >>> work = Work.of(as_items({str(i): "" for i in range(1000)}), ["dear", "cheap"])
    >>> entry = first_entries(work, np.ones(2000, bool), np.array([3.0, 1.0]), seed=0)
    >>> np.bincount(work.labeler[entry]).tolist()
    [240, 760]
    """
    best = np.empty(len(work.items), np.int64)
    _first(work.start, work.labeler, free, price, np.uint64(seed), best)
    return best


def best_entries(
    work: Work, said: NDArray[np.int32], belief: Belief, worth: Floats, price: Floats, seed: int
) -> tuple[Ints, Floats]:
    """The best free entry of each item and its value; value 0 where there is none.

    `said` is FREE, or 0 and more for labels; `worth` is what a verdict without risk is worth, 0 for
    items that are done; `price` is infinite for labelers who cannot be asked.
    """
    n = len(work.items)
    best, value = np.zeros(n, np.int64), np.zeros(n)
    left = worth * belief.risk
    _best(
        work.start,
        work.labeler,
        said,
        left,
        belief.verdict,
        belief.rival,
        belief.evidence,
        belief.kinship,
        price,
        np.uint64(seed),
        best,
        value,
    )
    return best, value


@threaded()
def _draw(seed: np.uint64, a: int, b: int) -> float:
    """A number in [0, 1) from a seed and two numbers (SplitMix64)."""
    z = seed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(a) * np.uint64(0xD1B54A32D192ED03)
    z = z + np.uint64(b) * np.uint64(0x8CB92BA72F3D8DD7)
    for _ in range(2):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@threaded()
def _first(
    start: Ints, labeler: Ints, free: Bools, price: Floats, seed: np.uint64, best: Ints
) -> None:
    for i in range(start.size - 1):
        best[i] = -1
        soonest = np.inf
        for e in range(start[i], start[i + 1]):
            if free[e]:
                waits = -math.log1p(-_draw(seed, i, labeler[e])) * price[labeler[e]]
                if waits < soonest:
                    soonest, best[i] = waits, e


@threaded()
def _best(
    start: Ints,
    labeler: Ints,
    said: NDArray[np.int32],
    left: Floats,
    verdict: Ints,
    rival: Ints,
    evidence: Floats,
    kinship: Floats,
    price: Floats,
    seed: np.uint64,
    best: Ints,
    value: Floats,
) -> None:
    here = np.empty(price.size if kinship.shape[0] > 1 else 0, np.int64)
    for i in range(start.size - 1):
        value[i] = 0.0
        if left[i] <= 0.0:
            continue
        asked = 0
        if here.size:
            for e in range(start[i], start[i + 1]):
                if said[e] >= 0:
                    here[asked] = labeler[e]
                    asked += 1
        for e in range(start[i], start[i + 1]):
            m = labeler[e]
            if said[e] != FREE or not price[m] < np.inf:
                continue
            akin = 0.0
            for n in here[:asked]:
                akin = max(akin, kinship[n, m])
            told = (1.0 - akin) * evidence[m, verdict[i], rival[i]]
            drawn = 1.0 + NOISE * (2.0 * _draw(seed, i, m) - 1.0)
            worth = left[i] * -math.expm1(-told) / price[m] * drawn
            if worth > value[i]:
                value[i], best[i] = worth, e


#: Gold items, drawn at random, that somebody must have labelled to be trusted alone.
FEWEST: Final = 50


class Alone(NamedTuple):
    """Who was trusted alone, what is expected to be lost by that, and on how many items it rests.

    >>> Alone("claude", 0.004, 100).words
    'claude labels the rest alone: expected to lose 0.4 points, by 100 items that all labelled'
    """

    id: Hashable
    loss: float
    items: int

    @property
    def words(self) -> str:
        return (
            f"{self.id} labels the rest alone: expected to lose {100 * self.loss:.1f} points, "
            f"by {self.items:,} items that all labelled"
        )

    def record(self) -> dict[str, Any]:
        return {"id": str(self.id), "loss": self.loss, "items": self.items}


def check_margin(margin: float | None, gold: Gold | None) -> None:
    """Refuse a margin that is none, and one without gold.

    >>> check_margin(0.01, None)
    Traceback (most recent call last):
    venire.errors.InputError: got alone=0.01 without gold, ...
    """
    if margin is None:
        return
    if not (isinstance(margin, int | float) and 0 < margin < 1):
        raise InputError(
            f"got alone={margin!r}, expected the share of right verdicts that may be lost, such as "
            "0.01"
        )
    if not gold:
        raise InputError(
            f"got alone={margin!r} without gold, expected some: labels alone cannot tell who is "
            "good enough to be asked alone"
        )


def trial(work: Work, gold: Gold, seed: int) -> Ints:
    """All entries of the items with gold that was drawn, and of as many others."""
    known = _drawn(work, gold)
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~known))
    chosen = known.copy()
    chosen[others[: int(known.sum())]] = True
    return np.flatnonzero(chosen[work.item])


def good_enough(
    work: Work, said: Ints, belief: Belief, costs: Floats | None, gold: Gold, margin: float
) -> tuple[int, Alone] | None:
    """Who is good enough to label the rest alone, and what that is expected to lose; or nobody.

    Only those who may label at least half of the rest.
    """
    if belief.fitted.checked_ is None:
        return None
    q = belief.fitted.unsettled_
    C = 1 - np.eye(q.shape[1]) if costs is None else costs
    lost = q @ C
    lost -= lost.min(axis=1, keepdims=True)
    there, M = said >= 0, len(work.labelers)
    known = _drawn(work, gold)[work.item]
    who, rest = work.labeler[there], said == FREE
    given = np.bincount(who, minlength=M)
    loss = np.bincount(who, lost[work.item[there], said[there]], minlength=M)
    able = np.bincount(work.labeler[there & known], minlength=M) >= FEWEST
    left = len(np.unique(work.item[rest]))
    able &= np.bincount(work.labeler[rest], minlength=M) >= max(1, left) / 2
    mean = np.where(able, loss / np.maximum(given, 1), np.inf)
    m = int(mean.argmin())
    if mean[m] > margin:
        return None
    return m, Alone(work.labelers[m], float(mean[m]), int(given[m]))


def _drawn(work: Work, gold: Gold) -> NDArray[np.bool_]:
    """Which items have gold that was drawn at random."""
    return np.array([name in gold and name not in work.asked for name in work.items])
