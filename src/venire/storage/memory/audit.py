"""What a store in memory does about keys, the audit trail, erasure and deletion."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from venire.errors import StoreError
from venire.storage import changes as c
from venire.storage.base import Storage
from venire.storage.rows import ERASED, AuditRow, KeyRow, StreamRow

__all__ = ["MemoryTrail"]

R = TypeVar("R")


class MemoryTrail(Storage):
    """A part of `MemoryStorage`."""

    _lock: threading.RLock
    _streams: dict[str, StreamRow]
    _keys: dict[str, KeyRow]
    _items: dict[str, dict[str, Any]]
    _leases: dict[str, Any]
    _audit: dict[int, AuditRow]
    _ends: dict[str, int]

    def _put(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        raise NotImplementedError

    def _drop(self, table: dict[Any, Any], key: Any) -> None:
        raise NotImplementedError

    def _new(self, table: dict[Any, Any], key: Any, row: Any) -> None:
        raise NotImplementedError

    def _sorted(self, table: dict[Any, R], wanted: Callable[[R], bool]) -> list[R]:
        """The wanted rows, by their keys."""
        raise NotImplementedError

    def _rows_of(self, stream: str) -> Iterator[tuple[dict[Any, Any], Any]]:
        """Every row of a stream: its table and its key."""
        raise NotImplementedError

    # to write

    def _add_key(self, change: c.AddKey) -> None:
        if any(key.hash == change.row.hash for key in self._keys.values()):
            raise StoreError(f"key {change.row.id!r} has the hash of another")
        self._new(self._keys, change.row.id, change.row)

    def _revoke_key(self, change: c.RevokeKey) -> None:
        old = self._keys.get(change.id)
        if old is not None and old.revoked_at is None:
            self._put(self._keys, change.id, old._replace(revoked_at=change.at))

    def _touch_key(self, change: c.TouchKey) -> None:
        if change.id in self._keys:
            self._put(self._keys, change.id, self._keys[change.id]._replace(last_used_at=change.at))

    def _expire_key(self, change: c.ExpireKey) -> None:
        old = self._keys.get(change.id)
        if old is not None and (old.expires_at is None or old.expires_at > change.at):
            self._put(self._keys, change.id, old._replace(expires_at=change.at))

    def _add_audit(self, change: c.AddAudit) -> None:
        for row in change.rows:
            n = len(self._audit) + 1
            self._put(self._audit, n, row._replace(n=n))

    def _erase_payload(self, change: c.ErasePayload) -> None:
        items = self._items.get(change.stream, {})
        if change.item not in items:
            raise StoreError(f"an item to erase is unknown: {change.item!r}")
        erased = items[change.item]._replace(payload="null", digest=ERASED)
        self._put(items, change.item, erased)

    def _mark_deleted(self, change: c.MarkDeleted) -> None:
        row = self._streams.get(change.stream)
        if row is None:
            raise StoreError(f"a stream to delete is unknown: {change.stream!r}")
        self._put(self._streams, change.stream, row._replace(deleted_at=change.at))

    def _purge_stream(self, change: c.PurgeStream) -> None:
        for table, key in list(islice(self._rows_of(change.stream), change.limit)):
            self._drop(table, key)

    def _delete_stream(self, change: c.DeleteStream) -> None:
        if self.remains(change.stream):
            raise StoreError(f"rows of stream {change.stream!r} are left")
        for table in (self._streams, self._ends):
            if change.stream in table:
                self._drop(table, change.stream)

    # to read

    def scrub(self) -> bool | None:
        """There are no files."""
        return True

    def keys(self) -> list[KeyRow]:
        """All keys."""
        found = self._sorted(self._keys, lambda row: True)
        return sorted(found, key=lambda row: (row.created_at, row.id))

    def deleted_streams(self) -> list[StreamRow]:
        """Streams that are being deleted."""
        with self._lock:
            return sorted(row for row in self._streams.values() if row.deleted_at is not None)

    def remains(self, stream: str) -> bool:
        """Whether anything of a stream is left."""
        with self._lock:
            return any(True for _ in self._rows_of(stream))

    def given(self, stream: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Which pairs have or had a lease."""
        with self._lock:
            rows = [row for row in self._leases.values() if row.stream == stream]
        return {(row.item, row.labeler) for row in rows} & set(pairs)

    def audit(
        self, after: int = 0, limit: int | None = None, stream: str | None = None
    ) -> list[AuditRow]:
        """The audit trail."""
        with self._lock:
            rows = [self._audit[n] for n in sorted(self._audit) if n > after]
        return [row for row in rows if stream in (None, row.stream)][:limit]
