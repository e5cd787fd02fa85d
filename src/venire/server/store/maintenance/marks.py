"""Up to where the log of a stream was checked, kept with the store."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from venire.errors import StoreError
from venire.server.store.base import Storage
from venire.server.store.changes import VERIFIED, SetMeta
from venire.server.store.records import SegmentRow, SnapshotRow


def read_marks(storage: Storage, stream: str) -> list[Mark]:
    """The marks of earlier verifications.

    >>> from venire.server.store import open_storage
    >>> storage = open_storage("memory:")
    >>> save_marks(storage, "posts", [Mark(7, 2, 0, 5.5, "abc")])
    >>> read_marks(storage, "posts")
    [Mark(n=7, exits=2, revisions=0, at=5.5, digest='abc')]
    """
    with suppress(ValueError, TypeError):
        return [Mark(*row) for row in json.loads(storage.meta(f"{VERIFIED}{stream}") or "[]")]
    return []


def save_marks(storage: Storage, stream: str, marks: Sequence[Mark]) -> None:
    """Keep those marks that have a snapshot; beside earlier ones whose snapshots are still there.

    A store that cannot be written to is checked from the same place the next time.
    """
    there = set(storage.snapshot_numbers(stream))
    known = {mark.n: mark for mark in read_marks(storage, stream) if mark.n in there}
    known.update((mark.n, mark) for mark in marks if mark.digest)
    if marks:
        kept = json.dumps([known[n] for n in sorted(known)])
        with suppress(StoreError):
            storage.write([SetMeta(f"{VERIFIED}{stream}", kept)])


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
