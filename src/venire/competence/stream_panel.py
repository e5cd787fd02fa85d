"""Who is on the panel of a stream: newcomers of whom something is known, and those who changed.

Both work on what `Streaming` keeps of a labeler: its pseudo-labels, and its clock.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.accuracy import clamp_competence
from venire.competence import stream_em as em
from venire.competence.streaming import Streaming
from venire.errors import InputError

__all__ = ["NEVER", "forget", "welcome"]

#: A half-life that nothing outlives: labels do not age by themselves, and `forget` works.
NEVER: Final = 2.0**40


def welcome(stream: Streaming, labeler: Hashable, competence: float | None = None) -> None:
    """Put a labeler on the panel, and begin with this competence instead of the usual one.

    Its pseudo-labels are as many as everybody's. A competence below chance is taken for
    chance: the priors are what keeps the names of the classes.

    >>> stream = Streaming(classes=(0, 1), model="one-coin")
    >>> welcome(stream, "ann", 0.9), welcome(stream, "bob")
    (None, None)
    >>> {name: round(p, 3) for name, p in stream.skills_.items()}
    {'ann': 0.9, 'bob': 0.7}
    """
    core = stream._core
    if labeler not in stream._labeler:
        stream._meet([], [labeler])
        core.counts.prior[stream._labeler[labeler]] = core.first_prior
    m, classes = stream._labeler[labeler], core.classes
    if competence is not None:
        p = clamp_competence(competence, classes, 0.01)
        right = np.eye(classes, dtype=np.bool_)
        a_column = core.counts.prior[m].sum(axis=0)
        core.counts.prior[m] = a_column * np.where(right, p, (1.0 - p) / (classes - 1))
    core.counts.dirty[m] = True
    em.maximise(core.counts, core.rules)


def forget(stream: Streaming, labelers: NDArray[np.bool_], keep: float = 1 / 32) -> None:
    """Let all labels that these labelers gave so far count only `keep` of what they did.

    The clock of a labeler is moved on by so many half-lives; a stream without one cannot.

    >>> stream = Streaming((0, 1), ("ann", "bob", "cat"), "one-coin", half_life=NEVER)
    >>> said = np.tile([1, 0, 0], 40)  # ann contradicts the others
    >>> _ = stream.update(np.repeat(np.arange(40), 3), np.tile([0, 1, 2], 40), said)
    >>> before = stream.skill_of("ann")
    >>> forget(stream, np.array([True, False, False]))
    >>> round(before, 1), round(stream.skill_of("ann"), 1)
    (0.1, 0.6)
    """
    core = stream._core
    if core.setting.half_life is None:
        raise InputError("the stream has no half-life, expected one: half_life=NEVER will do")
    core.counts.clock[labelers] += math.ceil(-math.log2(keep) * core.setting.half_life)
    core.counts.dirty[labelers] = True
    em.maximise(core.counts, core.rules)
