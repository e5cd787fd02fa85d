"""The labels of a simulated world.

The label does not depend on the schedule, so that schedules are compared on the same labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.tools.compiling import inlined, kernel
from venire.tools.draws import uniform
from venire.tools.references import by_reference

__all__ = ["Stream", "answer", "ask"]


@by_reference
class Stream(NamedTuple):
    """A simulated world for the kernels: arrivals, truth, and everybody's labels.

    `first[t]` is the first row that arrives in slot t. The label of an item by a labeler is a
    function of `seed`, `truth` and the competence at the time (`competence[i]` from slot
    `since[i]` on); or it is looked up: item `source[row]` of a recorded table with entries
    `start[i]:start[i + 1]`, sorted by labeler.
    """

    first: NDArray[np.int64]
    truth: NDArray[np.int16]
    since: NDArray[np.int64]
    competence: NDArray[np.float64]
    classes: int
    seed: np.uint64
    source: NDArray[np.int32]
    start: NDArray[np.int64]
    labeler: NDArray[np.int32]
    said: NDArray[np.int16]


@inlined
def ask(stream: Stream, row: int, labeler: int, slot: int) -> int:
    """The label of the row by the labeler in this slot; -1 where a recorded table has none."""
    if len(stream.start) > 0:
        k, stop = stream.start[stream.source[row]], stream.start[stream.source[row] + 1]
        end = stop
        while k < stop:
            middle = (k + stop) // 2
            if stream.labeler[middle] < labeler:
                k = middle + 1
            else:
                stop = middle
        return int(stream.said[k]) if k < end and stream.labeler[k] == labeler else -1
    truth = int(stream.truth[row])
    phase = len(stream.since) - 1
    while stream.since[phase] > slot:
        phase -= 1
    p = stream.competence[phase, labeler]
    z = uniform(stream.seed, row, labeler)
    if z < p:
        return truth
    wrong = min(int((z - p) / (1.0 - p) * (stream.classes - 1)), stream.classes - 2)
    return wrong if wrong < truth else wrong + 1


@kernel
def answer(stream: Stream, row: int, labeler: int, slot: int) -> int:
    """`ask` for callers outside the kernels."""
    said: int = ask(stream, row, labeler, slot)
    return said
