"""The labels of the items that a stream still remembers, as flat arrays with compiled loops.

An item has a place, the row `place` of the arrays below, and its labels lie side by side in
the pool, sorted by labeler, in a block of 4, 8, 16, ... entries. A block that gets too small is
left for one of twice the size; blocks left behind are linked by size and used again, so that
the pool never needs more than about twice the largest number of labels held at once.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.compiling import inlined, kernel

__all__ = [
    "Window",
    "already",
    "empty_window",
    "entries_needed",
    "find",
    "grow_places",
    "grow_pool",
    "release",
    "store",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Where `meta` keeps the end of the used part of the pool, of the places, and the next to revisit.
POOL, PLACES, CURSOR = 0, 1, 2

_SIZES: Final = 40


class Window(NamedTuple):
    """What is kept of the items: arrays by place, then by entry of the pool, then counters."""

    first: Ints
    length: NDArray[np.int32]
    room: NDArray[np.int32]
    touched: Ints
    posterior: Floats
    labeler: NDArray[np.int32]
    said: NDArray[np.int16]
    clock: Ints
    scored: NDArray[np.bool_]
    free: Ints
    meta: Ints


def empty_window(classes: int) -> Window:
    """A window without items.

    >>> empty_window(3).posterior.shape
    (0, 3)
    """
    none: Any = np.empty
    return Window(
        first=none(0, np.int64),
        length=none(0, np.int32),
        room=none(0, np.int32),
        touched=none(0, np.int64),
        posterior=none((0, classes)),
        labeler=none(0, np.int32),
        said=none(0, np.int16),
        clock=none(0, np.int64),
        scored=none(0, np.bool_),
        free=np.full(_SIZES, -1, np.int64),
        meta=np.zeros(3, np.int64),
    )


def grow_places(window: Window, places: int) -> Window:
    """The same with room for so many items."""
    return window._replace(**{n: _longer(getattr(window, n), places) for n in Window._fields[:5]})


def grow_pool(window: Window, entries: int) -> Window:
    """The same with room for so many labels."""
    return window._replace(**{n: _longer(getattr(window, n), entries) for n in Window._fields[5:9]})


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    grown = np.zeros((length, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


@inlined
def find(window: Window, place: int, labeler: int) -> int:
    """The entry of a labeler among those of an item, or where it belongs: -1 - entry."""
    low = window.first[place]
    high = low + window.length[place]
    end = high
    while low < high:
        middle = (low + high) // 2
        if window.labeler[middle] < labeler:
            low = middle + 1
        else:
            high = middle
    return int(low if low < end and window.labeler[low] == labeler else -1 - low)


@kernel
def already(window: Window, place: Ints, labeler: Ints, said: Ints) -> None:
    """What each labeler has said of each item before, -1 where nothing; place -1 is a new item."""
    for j in range(place.size):
        said[j] = -1
        if place[j] >= 0:
            e = find(window, place[j], labeler[j])
            if e >= 0:
                said[j] = window.said[e]


@inlined
def _size(labels: int) -> int:
    """The block that holds so many labels: 2**size entries."""
    size = 2
    while (1 << size) < labels:
        size += 1
    return size


@kernel
def entries_needed(window: Window, places: Ints, added: Ints) -> int:
    """How long the pool must be before `store`, at most.

    An item gets its labels one by one, and on its way leaves a block of each size behind.
    """
    total = window.meta[POOL]
    for j in range(places.size):
        room, labels = window.room[places[j]], window.length[places[j]] + added[j]
        while room < labels:
            room = 1 << _size(room + 1)
            total += room
    return int(total)


@inlined
def _leave_block(window: Window, place: int) -> None:
    if window.room[place] > 0:
        size = _size(window.room[place])
        window.labeler[window.first[place]] = window.free[size]
        window.free[size] = window.first[place]
        window.room[place] = 0


@inlined
def _widen(window: Window, place: int, labels: int) -> None:
    """Move an item to a block that holds so many labels."""
    size = _size(labels)
    new = window.free[size]
    if new >= 0:
        window.free[size] = window.labeler[new]
    else:
        new = window.meta[POOL]
        window.meta[POOL] += 1 << size
    old = window.first[place]
    for j in range(window.length[place]):
        window.labeler[new + j] = window.labeler[old + j]
        window.said[new + j] = window.said[old + j]
        window.clock[new + j] = window.clock[old + j]
        window.scored[new + j] = window.scored[old + j]
    _leave_block(window, place)
    window.first[place] = new
    window.room[place] = 1 << size


@inlined
def store(window: Window, place: int, labeler: int, said: int, clock: int) -> None:
    """Put one new label in its place; the pool must be long enough."""
    if window.length[place] == window.room[place]:
        _widen(window, place, window.length[place] + 1)
    at = -1 - find(window, place, labeler)
    last = window.first[place] + window.length[place]
    for j in range(last, at, -1):
        window.labeler[j] = window.labeler[j - 1]
        window.said[j] = window.said[j - 1]
        window.clock[j] = window.clock[j - 1]
        window.scored[j] = window.scored[j - 1]
    window.labeler[at], window.said[at] = labeler, said
    window.clock[at], window.scored[at] = clock, False
    window.length[place] += 1


@inlined
def release(window: Window, place: int) -> None:
    """Forget the labels of an item."""
    _leave_block(window, place)
    window.length[place] = 0
    for k in range(window.posterior.shape[1]):
        window.posterior[place, k] = 0.0
