"""Where a verification begins: at the start of the log, or at a mark of an earlier one."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

from venire.server.store.base import Storage
from venire.server.store.records import SegmentRow, SnapshotRow


class Mark(NamedTuple):
    """A snapshot with which a log agreed: what was before it need not be done again.

    It is after `n` events, `exits` exits and `revisions` revisions, the last of them at `at`;
    `digest` is the SHA-256 of the snapshot.
    """

    n: int = 0
    exits: int = 0
    revisions: int = 0
    at: float = -math.inf
    digest: str = ""


def digest_of_snapshot(snapshot: SnapshotRow) -> str:
    """The SHA-256 of a snapshot."""
    return hashlib.sha256(snapshot.body).hexdigest()


def start_of(
    storage: Storage, stream: str, segments: list[SegmentRow], marks: Sequence[Mark]
) -> Mark:
    """Where to begin: after what is archived, at the last mark whose snapshot is the same."""
    start = Mark()
    if segments:
        last = segments[-1]
        start = Mark(last.next_event, last.exits, last.revisions, last.ended_at)
    for mark in sorted(marks, reverse=True):
        snapshot = storage.snapshot(stream, mark.n) if mark.n >= start.n else None
        if snapshot is not None and digest_of_snapshot(snapshot) == mark.digest:
            return max(start, mark)
    return start
