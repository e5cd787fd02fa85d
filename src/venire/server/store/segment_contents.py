"""Which rows of an item are in its segment, and which came since."""

from __future__ import annotations

from venire.model import LeaseStatus
from venire.server.store.rows import LabelRow, LeaseRow, NoteRow, SegmentRow

__all__ = ["is_in"]


def is_in(segment: SegmentRow, row: LabelRow | LeaseRow | NoteRow) -> bool:
    """Whether a segment has this row of one of its items: what came since is not in it.

    Numbers and slots grow, and only late labels come once an item has left, so that nothing can
    come later that looks as if it had been there.

    >>> segment = SegmentRow("posts", 1, 9.0, 0, 4, 2.0, 6, 1, 0, 3, "1", "abc")
    >>> label = LabelRow("posts", "a", "ann", "ok", 1.0, 6, False, None, "bulk")
    >>> is_in(segment, label), is_in(segment, label._replace(late=True))
    (True, False)
    """
    match row:
        case LabelRow():
            return not row.late or row.slot < segment.slot
        case NoteRow():
            return row.n <= segment.notes
        case _:
            ended = row.ended_at is not None and row.ended_at <= segment.at
            return row.status != LeaseStatus.OPEN and ended
