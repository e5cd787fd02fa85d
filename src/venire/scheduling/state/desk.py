"""The state of a schedule as flat record arrays, and what every policy does to them.

A `Desk` is what the kernels read and write. One engine call and one compiled run of a million
slots work on the same records:

    rows      one per item, in order of arrival, so that a lower row is an earlier arrival
    touches   one per label given or in flight, linked per row, newest first
    shelves   groups of rows that compete on one key; each is a pairing heap (see shelves.py)
    panel     one per labeler
    groups    sets of labelers who may label an item; group 0 is everyone
    edges     group members, linked per labeler and per group
    wheel     rows by the slot in which they leave (see wheel.py)
    pool      rows in no order, for policies that draw at random
    gone      the rows that left when the slot was last settled
    votes     how much a label of a labeler speaks for each class: [labeler, said, class]
    pairs     how well a labeler tells two classes apart: [labeler, class, class]
    lean      how much speaks for each class before any label
    scores    one sum of votes per class, to work out a verdict
    bounds    the largest key filed so far; the evidence of everybody, and of all who are here;
              the confidence that a row is to have; how far log-odds are believed
    gauges    what the policy at work remembers from slot to slot (see memory.py)
    cases     one per row: what its labels leave to gain, for `Realised` (see cases.py)
    held      evidence by pair of classes: of one label of everybody who is not away, of one
              label on average, and of all labels of a slot
    bins      how many rows want how much evidence at which price (see queue_price.py)
    stalls    rows that buy evidence, in no order; bids: those that may in this slot (market.py)
    chosen    rows picked for this slot (the second half: for sorting); ahead: forecasts
    meta      counters and the settings of the policy
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.model import ExitReason
from venire.scheduling.state.policy_memory import N_GAUGES
from venire.scheduling.state.records import CASE, EDGE, GROUP, LABELER, ROW, SHELF, STALL, TOUCH
from venire.tools.compiling import inlined

__all__ = [
    "Desk",
    "add_edge",
    "add_group",
    "allocate",
    "bar",
    "clear_files",
    "forget",
    "grow_touches",
    "link",
]

Records = NDArray[Any]

# meta
ROWS: Final = 0  # rows that have arrived
TOUCHES: Final = 1
SERVING: Final = 2  # first touch of the serving under way
FREE_SHELF: Final = 3
STAMP: Final = 4
POOLED: Final = 5
TURN: Final = 6
BELIEVED: Final = 7  # 0: competences unknown, every vote counts the same
SETTING: Final = 8  # first of the settings of the policy
N_SETTINGS: Final = 4
GROUPS: Final = 12  # groups in use, group 0 among them
EDGES: Final = 13
COUNTER: Final = 14  # first of the counters of the policy
N_COUNTERS: Final = 8
LEAST: Final = 22  # labels without which a row does not leave for want of gain
STALLS: Final = 23  # stalls in use
MOST: Final = 24  # labels with which a row must leave; 0: any number
KEEPS: Final = 25  # 1: a row does not leave below the confidence, 0: it may
N_META: Final = 26

FLOOR: Final = 3  # of `bounds`: the confidence that a row is to have; 0: any
CERTAINTY: Final = 4  # of `bounds`: what log-odds are multiplied by to say how sure a verdict is

N_BINS: Final = 384

# row states
OUTSIDE: Final = 0
OUTSTANDING: Final = 1
GONE: Final = 2

# what a touch says when it holds no label
PENDING: Final = -1
BARRED: Final = -2  # not a label: this labeler may not have the row

REASONS: Final = tuple(ExitReason)  # why a row left, by its code
NO_GAIN: Final = REASONS.index(ExitReason.NO_GAIN)
EXHAUSTED: Final = REASONS.index(ExitReason.EXHAUSTED)
OVERLAP: Final = REASONS.index(ExitReason.OVERLAP)
LEARNING: Final = REASONS.index(ExitReason.LEARNING)
DROPPED: Final = REASONS.index(ExitReason.DROPPED)
HORIZON: Final = REASONS.index(ExitReason.HORIZON)
MAX_LABELS: Final = REASONS.index(ExitReason.MAX_LABELS)
CONFIDENT: Final = REASONS.index(ExitReason.CONFIDENT)  # from here on: no wait for labels in flight
DEADLINE: Final = REASONS.index(ExitReason.DEADLINE)
BUDGET: Final = REASONS.index(ExitReason.BUDGET)
UNDECIDED: Final = REASONS.index(ExitReason.UNDECIDED)  # below the confidence that it is to have

# where a row stands with the bounds (see stands.py)
SHORT: Final = 1  # it needs labels: whoever gets nothing from the policy is given it
HELD: Final = 2  # it is below the confidence it must have, and somebody is left
SURE: Final = 4  # it has the confidence, and the fewest labels

WHEEL: Final = 4096
SPARE: Final = 1024  # bids that stand for several rows, or for some to come


class Desk(NamedTuple):
    """See the head of this module."""

    rows: Records
    touches: Records
    shelves: Records
    panel: Records
    order: NDArray[np.int32]
    groups: Records
    edges: Records
    wheel: NDArray[np.int32]
    pool: NDArray[np.int32]
    gone: NDArray[np.int32]
    votes: NDArray[np.float64]
    pairs: NDArray[np.float64]
    lean: NDArray[np.float64]
    scores: NDArray[np.float64]
    bounds: NDArray[np.float64]
    gauges: NDArray[np.float64]
    cases: Records
    held: NDArray[np.float64]
    bins: NDArray[np.float64]
    stalls: Records
    bids: Records
    chosen: NDArray[np.int32]
    ahead: NDArray[np.float64]
    meta: NDArray[np.int64]


def allocate(
    rows: int, touches: int, labelers: int, classes: int = 2, groups: int = 1, edges: int = 0
) -> Desk:
    """A desk with room for this much, and nothing on it."""
    desk = Desk(
        rows=np.zeros(rows, ROW),
        touches=np.zeros(touches, TOUCH),
        shelves=np.zeros(rows + 1, SHELF),
        panel=np.zeros(labelers, LABELER),
        order=np.arange(labelers, dtype=np.int32),
        groups=np.zeros(groups, GROUP),
        edges=np.zeros(edges, EDGE),
        wheel=np.full(WHEEL, -1, np.int32),
        pool=np.zeros(rows, np.int32),
        gone=np.zeros(rows, np.int32),
        votes=np.zeros((labelers, classes, classes)),
        pairs=np.zeros((labelers, classes, classes)),
        lean=np.zeros(classes),
        scores=np.zeros(classes),
        bounds=np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
        gauges=np.zeros(N_GAUGES),
        cases=np.zeros(rows, CASE),
        held=np.zeros((3, classes, classes)),
        bins=np.zeros((N_BINS, 6)),
        stalls=np.zeros(rows, STALL),
        bids=np.zeros(rows + SPARE, STALL),
        chosen=np.zeros(2 * rows, np.int32),
        ahead=np.zeros(2 * 256),
        meta=np.zeros(N_META, np.int64),
    )
    desk.rows["head"] = desk.rows["shelf"] = -1
    for name in ("due", "verdict", "place", "paid"):
        desk.rows[name] = -1
    desk.panel["edge"] = -1
    desk.groups["shelf"] = desk.groups["edge"] = -1
    desk.meta[GROUPS] = 1
    clear_files(desk)
    return desk


def grow_touches(desk: Desk, touches: int) -> Desk:
    """The same desk with room for this many touches."""
    fresh = np.zeros(touches, TOUCH)
    fresh[: len(desk.touches)] = desk.touches
    return desk._replace(touches=fresh)


def add_group(desk: Desk, members: Iterable[int]) -> int:
    """A new group of labelers; the desk must have room for it and its edges."""
    group = int(desk.meta[GROUPS])
    desk.meta[GROUPS] += 1
    for m in members:
        add_edge(desk, group, m)
    return group


def add_edge(desk: Desk, group: int, labeler: int) -> None:
    """One more member of a group; the desk must have room for the edge."""
    e = int(desk.meta[EDGES])
    desk.meta[EDGES] += 1
    desk.edges[e] = (group, labeler, desk.panel["edge"][labeler], desk.groups["edge"][group])
    desk.panel["edge"][labeler] = desk.groups["edge"][group] = e


def bar(desk: Desk, row: int, labeler: int, slot: int = 0) -> None:
    """Note that this labeler may not have the row; the desk must have room for the touch."""
    link(desk, row, labeler, slot, BARRED)


def link(desk: Desk, row: int, labeler: int, slot: int, said: int) -> None:
    """Hang a touch on a row that no policy gave; the desk must have room for it."""
    k = int(desk.meta[TOUCHES])
    desk.meta[TOUCHES] += 1
    desk.touches[k] = (np.nan, slot, row, labeler, desk.rows["head"][row], said)
    desk.rows["head"][row] = k


def clear_files(desk: Desk, first: int | None = None) -> None:
    """Take every row off its shelf and off the wheel; what is on the rows stays.

    `first` says that the rows before it had left when this was last done. No more shelves are
    in use than rows were outstanding since, and the free ones of lowest number go first.
    """
    rows, shelves = desk.rows, desk.shelves
    if first is not None:
        rows = desk.rows[first : desk.meta[ROWS]]
        shelves = desk.shelves[: len(rows) + 2]
    shelves["root"] = -1
    shelves["size"] = 0
    shelves["next"] = np.arange(1, len(shelves) + 1)
    desk.shelves["next"][-1:] = -1
    desk.groups["shelf"] = -1
    desk.wheel[:] = -1
    rows["shelf"] = -1
    rows["due"] = rows["place"] = -1
    desk.panel["pointer"] = 0
    desk.meta[FREE_SHELF] = 0
    desk.meta[POOLED] = desk.meta[STALLS] = 0
    desk.bounds[0] = 0.0


def forget(desk: Desk) -> None:
    """Make the memory of the policy a fresh one (see memory.py); file everything anew after it."""
    desk.gauges[:] = 0.0
    desk.meta[COUNTER : COUNTER + N_COUNTERS] = 0
    desk.meta[TURN] = desk.meta[POOLED] = 0
    desk.rows["key"] = 0.0


@inlined
def touch(desk: Desk, row: int, labeler: int, slot: int, gain: float) -> None:
    """Give the row to the labeler: valued from now on as if the label will come."""
    k = desk.meta[TOUCHES]
    desk.meta[TOUCHES] = k + 1
    head = desk.rows[row].head
    if head < desk.meta[SERVING]:
        desk.rows[row].settled = head
    desk.touches[k].gain = gain
    desk.touches[k].slot = slot
    desk.touches[k].row = row
    desk.touches[k].labeler = labeler
    desk.touches[k].next = head
    desk.touches[k].said = PENDING
    desk.rows[row].head = k
    desk.rows[row].last = slot
    desk.rows[row].labels += 1
    desk.rows[row].pending += 1
    desk.rows[row].evidence += desk.panel[labeler].evidence
    desk.panel[labeler].load += 1
    desk.panel[labeler].inflight += 1


@inlined
def room(desk: Desk, labeler: int) -> int:
    """How many more labels this labeler can give in this slot."""
    return desk.panel[labeler].capacity - desk.panel[labeler].load
