"""A simulated world as the kernels read it: its stream and its desk, and the loop over the slots.

The label of an item by a labeler does not depend on the schedule, so that schedules are compared
on the same labels. The offline problem is made of the same arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.paper.accuracy import evidence, on_grid
from venire.scheduling.base import Kernels
from venire.scheduling.kernel.desk import (
    OUTSTANDING,
    ROWS,
    TOUCHES,
    Desk,
    add_group,
    allocate,
    bar,
)
from venire.scheduling.kernel.verdicts import decide_gone
from venire.simulation.world import Items, World
from venire.tools.compiling import inlined, kernel
from venire.tools.draws import uniform
from venire.tools.references import by_reference

if TYPE_CHECKING:
    from venire.offline import Instance


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


def stream_of(world: World, items: Items, slots: int) -> Stream:
    table = world.recorded_labels
    since, competence = world.levels
    return Stream(
        first=items.first(slots),
        truth=items.truth,
        since=since,
        competence=competence,
        classes=len(world.classes),
        seed=world.label_seed(),
        source=items.source,
        start=np.zeros(0, np.int64) if table is None else table.start,
        labeler=np.zeros(0, np.int32) if table is None else table.labeler.astype(np.int32),
        said=np.zeros(0, np.int16) if table is None else table.said.astype(np.int16),
    )


def most_in_a_slot(capacity: NDArray[Any], items: int) -> int:
    """The most labels that a slot may bring: nobody labels an item twice."""
    return int(np.minimum(capacity, items).sum())


def desk_of(world: World, items: Items, slots: int) -> Desk:
    """A desk for the whole stream, before the first arrival and without a policy's own arrays."""
    capacity = np.array([labeler.capacity for labeler in world.panel])
    # zeros that are never written take no memory, so this may be generous
    likely = max(8 * len(items), 1_000_000)
    masks, a_slot = items.masks, most_in_a_slot(capacity, len(items))
    touches = len(masks.barred) + min(slots * a_slot, likely) + a_slot
    edges = sum(len(members) for members in masks.groups)
    shape = (len(world.panel), len(world.classes), len(masks.groups), edges)
    desk = allocate(len(items), touches, *shape, per_row=())
    desk.panel["capacity"] = capacity
    desk.panel["price"] = world.prices
    desk.rows["weight"] = items.weight
    desk.rows["arrival"] = desk.rows["last"] = items.arrival
    if masks.group is not None:
        desk.rows["group"] = masks.group
    for members in masks.groups[1:]:
        add_group(desk, members)
    for row, labeler in masks.barred.tolist():
        bar(desk, row, labeler)
    return desk


def offline_of(world: World, items: Items, slots: int, c: float, counts_from: int = 0) -> Instance:
    """The offline problem: items from slot `counts_from` on, with the true evidence."""
    from venire.offline import Instance

    since, competences = world.levels
    first = int(np.searchsorted(items.arrival, counts_from))
    masks = items.masks
    barred = masks.barred[masks.barred[:, 0] >= first] - np.array([first, 0], np.int32)
    return Instance(
        items.weight[first:],
        items.arrival[first:],
        slots,
        on_grid(c * evidence(competences, len(world.classes))),
        np.array([labeler.capacity for labeler in world.panel]),
        since,
        None if masks.group is None else masks.group[first:],
        masks.groups,
        barred,
        world.prices,
    )


@inlined
def observe_all(desk: Desk, stream: Stream, first: int) -> None:
    """Let every label asked for since touch `first` come within its slot."""
    for k in range(first, desk.meta[TOUCHES]):
        row, m = desk.touches[k].row, desk.touches[k].labeler
        desk.touches[k].said = ask(stream, row, m, desk.touches[k].slot)
        desk.rows[row].pending = 0
        desk.panel[m].inflight = 0
        desk.panel[m].load = 0


@inlined
def _most_in_a_slot(desk: Desk) -> int:
    """`most_in_a_slot` for kernels."""
    most = 0
    for m in range(len(desk.panel)):
        most += min(desk.panel[m].capacity, len(desk.rows))
    return most


@kernel
def hear_all(desk: Desk, stream: Stream, first: int) -> None:
    """`observe_all` for callers outside the kernels."""
    observe_all(desk, stream, first)


@kernel
def decide_all(desk: Desk, count: int) -> None:
    """`decide_gone` for callers outside the kernels."""
    decide_gone(desk, count)


Slots = Callable[[Desk, Stream, int, int], int]


def run_of(kernels: Kernels) -> Slots:
    """The `run(desk, stream, start, stop)` of a policy: slots start..stop-1.

    It returns the slot reached, which is before `stop` where the desk has no room for the
    touches of one more slot. It is compiled, unless a kernel of the policy is Python.
    """
    written = all(hasattr(part, "py_func") for part in (kernels.serve, kernels.settle))
    return compiled_run(kernels) if written else plain_run(kernels)


@cache
def compiled_run(kernels: Kernels) -> Slots:
    enter, serve, settle = kernels.enter, kernels.serve, kernels.settle

    @kernel
    def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
        most = _most_in_a_slot(desk)
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

    return run


def plain_run(kernels: Kernels) -> Slots:
    """The same, slot by slot from Python."""

    def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
        most = most_in_a_slot(desk.panel["capacity"], len(desk.rows))
        for slot in range(start, stop):
            first = int(desk.meta[TOUCHES])
            if first + most > len(desk.touches):
                return slot
            for row in range(stream.first[slot], stream.first[slot + 1]):
                desk.rows["state"][row] = OUTSTANDING
                desk.meta[ROWS] = row + 1
                kernels.enter(desk, row, slot)
            kernels.serve(desk, slot)
            hear_all(desk, stream, first)
            decide_all(desk, kernels.settle(desk, slot))
        return stop

    return run
