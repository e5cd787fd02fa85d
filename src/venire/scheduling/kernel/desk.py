"""The state of a schedule as flat record arrays, and what every policy does with them.

A `Desk` holds what the kernels read and write. One engine call and one compiled run of a million
slots work on the same records:

    rows      one per item, in order of arrival, so that a lower row is an earlier arrival
    touches   one per assignment: a label, or one in flight; linked per row, newest first
    shelves   the queues: rows of one group and rank, each a pairing heap (see queues.py)
    panel     one per labeler
    groups    sets of labelers who may label an item; group 0 is everyone
    edges     group members, linked per labeler and per group
    wheel     rows by the slot in which they leave (see rows.py)
    pool      outstanding rows, for policies that go through all of them
    gone      the rows that left at the end of the last slot
    votes     how much a label of a labeler speaks for each class: [labeler, said, class]; with
              tones (see estimators/voices.py) what was said is the class plus K times the tone
    pairs     how well a labeler tells two classes apart: [labeler, class, class]
    lean      the log prior of each class
    scores    one sum of votes per class, to work out a verdict
    costs     what an error costs, truth by verdict (where `meta` says that they differ)
    bounds    the largest key so far; the evidence of the whole panel, and of those present; the
              confidence that a row must reach; the factor on the log-odds of a verdict
    gauges    what the active policy remembers from slot to slot (see `PolicyMemory`)
    cases     one per row: what its labels leave to gain, for `Realised` (see item_value.py)
    held      evidence by pair of classes: one label of everybody present, one average label,
              and all labels of a slot
    bins      how many rows want how much evidence at which price (see queue_price.py)
    stalls    rows that buy evidence, in no order; bids: those that may in this slot (waterfill.py)
    chosen    rows picked for this slot (the second half: for sorting); ahead: forecasts
    meta      counters and the settings of the policy

Names of arrays and of the fields of records are part of the snapshot format.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.model import ExitReason
from venire.scheduling.base import N_GAUGES, PER_ROW
from venire.tools.compiling import inlined
from venire.tools.references import by_reference

Records = NDArray[Any]

# meta
ROWS: Final = 0  # rows that have arrived
TOUCHES: Final = 1
SERVING: Final = 2  # first touch of the serving under way
FREE_SHELF: Final = 3
STAMP: Final = 4
POOLED: Final = 5
TURN: Final = 6
BELIEVED: Final = 7  # 0: competences unknown, all votes are equal
SETTING: Final = 8  # first of the settings of the policy
N_SETTINGS: Final = 4
GROUPS: Final = 12  # groups in use, group 0 among them
EDGES: Final = 13
COUNTER: Final = 14  # first of the counters of the policy
N_COUNTERS: Final = 8
LEAST: Final = 22  # fewest labels with which a row may leave when nothing gains
STALLS: Final = 23  # stalls in use
MOST: Final = 24  # labels with which a row must leave; 0: no limit
KEEPS: Final = 25  # 1: a row below the confidence stays, 0: it may leave
COSTLY: Final = 26  # 1: errors cost what `costs` says; 0: all the same
PRICED: Final = 27  # 1: some labels cost money
N_META: Final = 28

FLOOR: Final = 3  # of `bounds`: the confidence that a row must reach; 0: none
CERTAINTY: Final = 4  # of `bounds`: the factor on the log-odds of a verdict

N_BINS: Final = 384

# row states
OUTSIDE: Final = 0
OUTSTANDING: Final = 1
GONE: Final = 2

# what a touch says when it holds no label
PENDING: Final = -1
BARRED: Final = -2  # not a label: this labeler is not eligible

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
UNDECIDED: Final = REASONS.index(ExitReason.UNDECIDED)  # below the confidence that it must reach
LEAVE_ON: Final = REASONS.index(ExitReason.LEAVE_ON)

# where a row stands with its limits
SHORT: Final = 1  # it needs labels: offered to labelers to whom the policy gives nothing
HELD: Final = 2  # below the confidence it must reach, and an eligible labeler is left
SURE: Final = 4  # it has the confidence and the fewest labels

WHEEL: Final = 4096
SPARE: Final = 1024  # bids that stand for several rows, or for some to come


@by_reference
class Desk(NamedTuple):
    """The state of a schedule; the module docstring describes each array."""

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
    costs: NDArray[np.float64]
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
    rows: int,
    touches: int,
    labelers: int,
    classes: int = 2,
    groups: int = 1,
    edges: int = 0,
    *,
    per_row: Collection[str] = PER_ROW,
) -> Desk:
    """An empty desk of these sizes; of the arrays in `PER_ROW`, those not named are empty."""
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
        costs=1.0 - np.eye(classes),
        bounds=np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
        gauges=np.zeros(N_GAUGES),
        **_policy_rows(rows, per_row),
        held=np.zeros((3, classes, classes)),
        bins=np.zeros((N_BINS, 9)),
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


def _policy_rows(rows: int, named: Collection[str]) -> dict[str, Records]:
    """The arrays of `PER_ROW`, for as many rows."""
    sizes = {"cases": (rows, CASE), "stalls": (rows, STALL), "bids": (rows + SPARE, STALL)}
    return {
        name: np.zeros(size if name in named else 0, kind) for name, (size, kind) in sizes.items()
    }


def with_rows_of(desk: Desk, per_row: Collection[str]) -> Desk:
    """The same desk with these arrays of `PER_ROW` and no others; those that it had are kept."""
    fresh = _policy_rows(len(desk.rows), per_row)
    other = {k: v for k, v in fresh.items() if len(getattr(desk, k)) != len(v)}
    return desk._replace(**other) if other else desk


def grow_touches(desk: Desk, touches: int) -> Desk:
    """The same desk with a larger array of touches."""
    fresh = np.zeros(touches, TOUCH)
    fresh[: len(desk.touches)] = desk.touches
    return desk._replace(touches=fresh)


def add_group(desk: Desk, members: Iterable[int]) -> int:
    """Add a group of labelers and return its number; there must be room for it and its edges."""
    group = int(desk.meta[GROUPS])
    desk.meta[GROUPS] += 1
    for m in members:
        add_edge(desk, group, m)
    return group


def add_edge(desk: Desk, group: int, labeler: int) -> None:
    """Add a member to a group; there must be room for the edge."""
    e = int(desk.meta[EDGES])
    desk.meta[EDGES] += 1
    desk.edges[e] = (group, labeler, desk.panel["edge"][labeler], desk.groups["edge"][group])
    desk.panel["edge"][labeler] = desk.groups["edge"][group] = e


def bar(desk: Desk, row: int, labeler: int, slot: int = 0) -> None:
    """Exclude a labeler from a row; there must be room for the touch."""
    link(desk, row, labeler, slot, BARRED)


def link(desk: Desk, row: int, labeler: int, slot: int, said: int) -> None:
    """Add a touch that no policy made; there must be room for it."""
    k = int(desk.meta[TOUCHES])
    desk.meta[TOUCHES] += 1
    desk.touches[k] = (np.nan, slot, row, labeler, desk.rows["head"][row], said)
    desk.rows["head"][row] = k


def clear_files(desk: Desk, first: int | None = None) -> None:
    """Take every row out of its queue and off the wheel; the rows themselves do not change.

    `first` says that the rows before it had left when this was last done. No more queues are in
    use than rows were outstanding since, and free queues are used from the lowest number up.
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
    """Reset the memory of the policy (see `PolicyMemory`); refile all rows after it."""
    desk.gauges[:] = 0.0
    desk.meta[COUNTER : COUNTER + N_COUNTERS] = 0
    desk.meta[TURN] = desk.meta[POOLED] = 0
    desk.rows["key"] = 0.0


@inlined
def touch(desk: Desk, row: int, labeler: int, slot: int, gain: float) -> None:
    """Assign the row to the labeler: from now on it is valued as if the label will come."""
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


ROW: Final = np.dtype(
    [
        ("key", "f8"),  # order within a queue, largest first
        ("child", "i4"),
        ("sibling", "i4"),
        ("before", "i4"),
        ("shelf", "i4"),  # its queue; -1: none
        ("last", "i8"),  # slot of the latest label, or the arrival
        ("weight", "f8"),
        ("evidence", "f8"),
        ("head", "i4"),  # newest touch
        ("settled", "i4"),  # newest touch from before the current serving
        ("group", "i4"),
        ("labels", "i4"),  # labels given or in flight
        ("arrival", "i8"),
        ("due", "i8"),  # slot at whose end the row leaves
        ("later", "i4"),
        ("sooner", "i4"),
        ("pending", "i4"),  # labels in flight
        ("target", "i4"),  # labels wanted, for policies with a fixed overlap
        ("place", "i4"),  # of its stall; -1: none
        ("paid", "i8"),  # slot for which the delay counts as paid
        ("exit", "i8"),
        ("confidence", "f8"),
        ("floor", "f8"),  # the confidence that it must reach; 0: that of all rows
        ("verdict", "i2"),
        ("reason", "i1"),
        ("state", "i1"),
        ("stand", "i1"),  # where it stands with its limits: SHORT, HELD, SURE
    ],
    align=True,
)
TOUCH: Final = np.dtype(
    [
        ("gain", "f8"),
        ("slot", "i8"),
        ("row", "i4"),
        ("labeler", "i4"),
        ("next", "i4"),
        ("said", "i4"),
    ]
)
SHELF: Final = np.dtype(
    [
        ("rank", "i8"),
        ("root", "i4"),
        ("next", "i4"),
        ("prev", "i4"),
        ("group", "i4"),
        ("size", "i4"),
    ]
)
LABELER: Final = np.dtype(
    [
        ("evidence", "f8"),
        ("reach", "f8"),
        ("price", "f8"),  # what a label costs, in slots of delay
        ("mark", "i8"),
        ("capacity", "i4"),  # 0 while the labeler is away
        ("load", "i4"),  # in flight when the slot began, plus assigned since
        ("inflight", "i4"),
        ("pointer", "i4"),  # for the policy: its position, or how many rows it may label
        ("edge", "i4"),  # first edge
    ]
)
GROUP: Final = np.dtype([("shelf", "i4"), ("edge", "i4")])
EDGE: Final = np.dtype(
    [("group", "i4"), ("labeler", "i4"), ("of_labeler", "i4"), ("of_group", "i4")]
)
CASE: Final = np.dtype(
    [
        ("loss", "f8"),  # what is lost if the row leaves now
        ("left", "f8"),  # what is left to gain, which falls by exp(-evidence)
        ("log", "f8"),  # its logarithm
        ("cap", "f8"),  # evidence that it can still get
        ("rest", "f8"),  # what is lost if it leaves with all of that
        ("reserve", "f8"),  # the price of evidence up to which one more slot pays
        ("reserve_now", "f8"),  # the same in the current slot, which costs no delay
        ("least", "f8"),  # evidence of one label, on average
        ("rate", "f8"),  # what its labels would cost in money, for each unit of evidence
        ("limit", "f8"),  # the most that a label may cost it in money, for each unit of evidence
        ("want", "f8"),  # evidence wanted in the current slot
        ("stay", "i4"),  # the bin of `reserve`
        ("now", "i4"),  # the bin of `reserve_now`
        ("turn", "i4"),  # how early it is served in the current slot
        ("kind", "i4"),  # the two most probable classes, and whether there is no label yet
        ("scale", "f8"),  # what an error costs, where errors do not cost the same
        ("few", "i4"),  # 1: few labelers are eligible (see policies/realised)
    ]
)
STALL: Final = np.dtype(
    [
        ("value", "f8"),  # what is left to gain
        ("log", "f8"),  # its logarithm
        ("cap", "f8"),  # evidence that it can still get
        ("rate", "f8"),  # what this evidence costs in money, a unit
        ("most", "f8"),  # value * (1 - exp(-cap)), less that money
        ("charge", "f8"),  # in a bid: the delay that it pays for
        ("surplus", "f8"),  # in a bid: what it earns
        ("mass", "f8"),  # in a bid: how many rows it represents
        ("since", "i8"),  # slot from which it pays for the delay
        ("row", "i4"),
    ],
    align=True,
)


@inlined
def put_in_pool(desk: Desk, row: int) -> None:
    """Add a row that is not in the pool."""
    n = desk.meta[POOLED]
    desk.pool[n] = row
    desk.rows[row].shelf = n
    desk.meta[POOLED] = n + 1


@inlined
def drop_from_pool(desk: Desk, row: int) -> None:
    """Remove a row, if it is in the pool."""
    place = desk.rows[row].shelf
    if place < 0:
        return
    n = desk.meta[POOLED] - 1
    moved = desk.pool[n]
    desk.pool[place] = moved
    desk.rows[moved].shelf = place
    desk.rows[row].shelf = -1
    desk.meta[POOLED] = n
