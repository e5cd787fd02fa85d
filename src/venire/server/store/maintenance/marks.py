"""Up to where the log of a stream was checked, kept with the store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from venire.errors import StoreError
from venire.server.store.base import Storage
from venire.server.store.changes import VERIFIED, SetMeta
from venire.server.store.maintenance.starting import Mark


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
