r"""Confidence as a finer answer: what "sure" means is learned, not believed.

An estimator knows K classes and as many answers. A labeler that says how sure it is gets two voices
instead, as labelers of their own: one for the half of its answers with the higher confidence, one
for the others. Each has a competence and a confusion matrix, learned from the labels like
anybody's; only the order of the confidences counts, so a model that is always "99 % sure" and often
wrong deceives nobody.

A table is split once all of it is there (`voices_of`). In a stream an answer has its tone when it
comes (`Tones`): the edge between sure and unsure is that of the first answers, and stays.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from venire.labels import Names
from venire.tools.arrays import Floats, Ints

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


#: The tones of an answer in a stream: none, as of a labeler with one voice; sure; unsure.
N_TONES: Final = 3
NONE, SURE, UNSURE = range(N_TONES)


class Tones:
    """The tone of each answer in a stream, as it comes.

    A labeler has one voice until `FEWEST` answers in a row had confidences that were not all equal;
    their edge is its edge from then on.

    >>> tones = Tones()
    >>> for k in range(20):
    ...     tones.note(7, [0.6, 0.9][k % 2])
    >>> tones.of(7, 0.95), tones.of(7, 0.7), tones.of(7, None), tones.of(8, 0.9)
    (1, 2, 0, 0)
    """

    def __init__(self) -> None:
        self.edges: dict[int, float] = {}
        self._recent: dict[int, list[float]] = {}

    def __bool__(self) -> bool:
        return bool(self.edges or self._recent)

    def of(self, labeler: int, confidence: float | None) -> int:
        """The tone of an answer."""
        border = self.edges.get(labeler)
        if border is None or confidence is None:
            return NONE
        return SURE if confidence >= border else UNSURE

    def note(self, labeler: int, confidence: float | None) -> None:
        """An answer came."""
        if confidence is None or labeler in self.edges:
            return
        recent = self._recent.setdefault(labeler, [])
        recent.append(float(confidence))
        del recent[:-FEWEST]
        border = edge(recent) if len(recent) == FEWEST and min(recent) < max(recent) else None
        if border is not None:
            self.edges[labeler] = border
            del self._recent[labeler]

    # state

    def copy(self) -> Tones:
        return Tones.restored(self.state())

    def state(self) -> list[list[Any]]:
        recent = [[m, list(values)] for m, values in self._recent.items()]
        return [[list(pair) for pair in self.edges.items()], recent]

    @classmethod
    def restored(cls, state: Iterable[Iterable[Any]]) -> Tones:
        """What gave this `state`."""
        tones, (edges, recent) = cls(), state
        tones.edges = {int(m): float(border) for m, border in edges}
        tones._recent = {int(m): list(values) for m, values in recent}
        return tones
