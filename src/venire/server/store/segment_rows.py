"""The rows about what has left the store: segments of history, and the items in them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ArchivedRow", "SegmentRow"]


class SegmentRow(NamedTuple):
    """A part of a stream's history that has left the store; see `history`.

    Segment `n` (the first is 1) holds the events from `first_event` to before `next_event`, the
    last of them written at `ended_at`; the items up to exit number `exits` that are in no segment
    before it, with their labels from before `slot` and their notes up to number `notes`; and the
    revisions up to number `revisions`. It is in the folder `name`, or was deleted if that is empty.
    `digest` is its SHA-256, which depends on that of the segment before.
    """

    stream: str
    n: int
    at: float
    first_event: int
    next_event: int
    ended_at: float
    slot: int
    exits: int
    revisions: int
    notes: int
    name: str
    digest: str


class ArchivedRow(NamedTuple):
    """An item that is in a segment of the archive: its id is not free, nor is its content."""

    stream: str
    id: str
    digest: str
    segment: int
