"""What one more label gains (paper, section 2, the incremental utility).

    gain = a * x - d - c,   a = w exp(-E) the residual,  x = 1 - exp(-evidence) the labeler's
                            reach, d = slots since the last label, c = the price of the label

It is a line in x, and d depends on the slot of the last label alone. So rows wait in queues by
that slot (their rank), each in order of a (their key), and only the first of each queue competes
for a labeler. A rank later than the slot counts as no delay. The price of a labeler is the same for
all rows: it changes none of this, only how much a row must gain by them (the floor of a turn).
"""

from __future__ import annotations

from venire.paper import utility
from venire.scheduling.algorithm1.labeler_turn import enqueue, move
from venire.scheduling.state.desk import Desk, touch
from venire.tools.compiling import inlined

__all__ = ["bound", "file_row", "refile_at", "score", "take"]

residual = inlined(utility.residual)
gain = inlined(utility.gain)


@inlined
def score(desk: Desk, labeler: int, row: int, rank: int, slot: int) -> float:
    """The gain of giving this labeler a row of this rank, before its price."""
    return gain(desk.rows[row].key, desk.panel[labeler].reach, max(slot - rank, 0))


@inlined
def bound(desk: Desk, labeler: int, rank: int, slot: int) -> float:
    """No row of this rank, or of a lower one, gains more by this labeler, before its price."""
    return gain(desk.bounds[0], desk.panel[labeler].reach, max(slot - rank, 0))


@inlined
def take(desk: Desk, labeler: int, row: int, slot: int) -> None:
    """Give the row to the labeler, and record the gain."""
    gained = score(desk, labeler, row, desk.rows[row].last, slot)
    touch(desk, row, labeler, slot, gained - desk.panel[labeler].price)


@inlined
def refile_at(desk: Desk, row: int, rank: int) -> None:
    """Put a row that is out of its heap into the queue of this rank, by what is left to gain."""
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    move(desk, row, rank)


@inlined
def file_row(desk: Desk, row: int) -> None:
    """Put a row that is in no queue where it belongs."""
    desk.rows[row].key = residual(desk.rows[row].weight, desk.rows[row].evidence)
    desk.bounds[0] = max(desk.bounds[0], desk.rows[row].key)
    enqueue(desk, row, desk.rows[row].last)
