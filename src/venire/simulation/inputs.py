"""A simulated world in the forms in which others read it: kernels, and the offline problem.

**The labels of a simulated world.**

The label does not depend on the schedule, so that schedules are compared on the same labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.paper.accuracy import evidence, on_grid
from venire.scheduling.kernel.desk import Desk, add_group, allocate, bar
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
    """The world in the form that the kernels read."""
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
