"""The compiled run: many slots in one call, by the kernels that the engine calls one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.scheduling.algorithm1.verdicts import decide_gone
from venire.scheduling.state.desk import OUTSTANDING, ROWS, TOUCHES, Desk
from venire.tools.compiling import inlined
from venire.tools.splitmix import uniform

__all__ = ["Stream", "ask", "make_run"]


class Stream(NamedTuple):
    """What a simulated world brings: the arrivals, the truth, and what anyone would say.

    `first[t]` is the first row that arrives in slot t. A label is drawn once for an item and a
    labeler, from `seed`, `truth` and the competence at the time (`competence[i]` from slot
    `since[i]` on), whoever asks for it; or it is looked up: item `source[row]` of a recorded
    table with entries `start[i]:start[i + 1]`, sorted by labeler.
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
    """What the labeler says of the row in this slot; -1 where a recorded table lacks it."""
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


@inlined
def observe_all(desk: Desk, stream: Stream, first: int) -> None:
    """Every label asked for comes within its slot."""
    for k in range(first, desk.meta[TOUCHES]):
        row, m = desk.touches[k].row, desk.touches[k].labeler
        desk.touches[k].said = ask(stream, row, m, desk.touches[k].slot)
        desk.rows[row].pending = 0
        desk.panel[m].inflight = 0
        desk.panel[m].load = 0


@inlined
def most_in_a_slot(desk: Desk) -> int:
    """Labels that a slot may bring: nobody labels an item twice."""
    most = 0
    for m in range(len(desk.panel)):
        most += min(desk.panel[m].capacity, len(desk.rows))
    return most


def make_run(
    enter: Callable[..., Any], serve: Callable[..., Any], settle: Callable[..., Any]
) -> Callable[[Desk, Stream, int, int], int]:
    """Build `run(desk, stream, start, stop)`: slots start..stop-1 out of a policy's kernels.

    It returns the slot reached, which is short of `stop` where the desk has no room for the
    touches of one more slot.
    """

    @inlined
    def run_slots(desk: Desk, stream: Stream, start: int, stop: int) -> int:
        most = most_in_a_slot(desk)
        for slot in range(start, stop):
            if desk.meta[TOUCHES] + most > len(desk.touches):
                return slot
            for row in range(stream.first[slot], stream.first[slot + 1]):
                desk.rows[row].state = OUTSTANDING
                desk.meta[ROWS] = row + 1
                enter(desk, row, slot)
            first = desk.meta[TOUCHES]
            serve(desk, slot)
            observe_all(desk, stream, first)
            decide_gone(desk, settle(desk, slot))
        return stop

    run: Callable[[Desk, Stream, int, int], int] = run_slots
    return run
