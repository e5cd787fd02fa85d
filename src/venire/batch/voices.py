"""Confidence as a finer answer: what "sure" means is learned, not believed.

An estimator knows K classes and as many answers. A labeler that says how sure it is gets two voices
instead, as labelers of their own: one for the half of its answers with the higher confidence, one
for the others. Each has a competence and a confusion matrix, learned from the labels like
anybody's; only the order of the confidences counts, so a model that is always "99 % sure" and often
wrong deceives nobody. Which voice will answer is not known before: what a label of the labeler
tells is the mean over its voices, by how often each spoke.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.batch.belief import Belief
from venire.estimators.screening.clones import CloneGroup
from venire.labels import Names

__all__ = ["Voices", "edge", "heard", "owned", "voices_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A labeler has one voice until this number of its answers had a confidence.
FEWEST: Final = 20


class Voices(NamedTuple):
    """The voice of each answer, the names of the voices, and the labeler of each voice."""

    voice: Ints
    names: tuple[Hashable, ...]
    labeler: Ints


def edge(values: Sequence[float] | Floats) -> float | None:
    """From where on an answer is a sure one: the median, such that both sides have some.

    >>> edge([0.6, 0.9, 0.7]), edge([0.9, 0.5, 0.5, 0.5]), edge([0.5, 0.5])
    (0.7, 0.9, None)
    """
    if not len(values):
        return None
    middle, known = float(np.median(values)), np.asarray(values)
    if middle > known.min():
        return middle
    above = known[known > middle]
    return float(above.min()) if above.size else None


def voices_of(labeler: Ints, confidence: Floats, names: Names) -> Voices | None:
    """Two voices of those who say how sure they are (NaN: not said); None if nobody does.

    >>> sure = np.tile([0.9, 0.6], 10)
    >>> found = voices_of(np.zeros(20, np.int64), sure, ["net", "ann"])
    >>> found.names, found.voice[:4].tolist(), found.labeler.tolist()
    (('net (sure)', 'ann', 'net (unsure)'), [0, 2, 0, 2], [0, 1, 0])
    """
    voice, owner, called = labeler.astype(np.int64), list(range(len(names))), list(names)
    said = ~np.isnan(confidence)
    for m in np.flatnonzero(np.bincount(labeler[said], minlength=len(names)) >= FEWEST).tolist():
        mine = said & (labeler == m)
        border = edge(confidence[mine])
        if border is not None:
            voice[mine & (confidence < border)] = len(called)
            called[m] = f"{names[m]} (sure)"
            called.append(f"{names[m]} (unsure)")
            owner.append(m)
    if len(called) == len(names):
        return None
    return Voices(voice, tuple(called), np.array(owner, np.int64))


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
