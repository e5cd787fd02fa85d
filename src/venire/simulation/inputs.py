"""A simulated world in the forms in which others read it: kernels, and the offline problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from venire.paper.accuracy import evidence, on_grid
from venire.scheduling.kernel.desk import Desk, add_group, allocate, bar
from venire.simulation.items import Items
from venire.simulation.label_source import Stream
from venire.simulation.world import World

if TYPE_CHECKING:
    from venire.offline import Instance

__all__ = ["desk_of", "most_in_a_slot", "offline_of", "stream_of"]


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
