"""What the stores in SQLite and PostgreSQL share: writing.

There is one connection that writes, held by this object, and a pool of others that read. A
backend says how to open a transaction, how to run one statement with many rows, and which errors
of its driver are worth a retry.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar, cast

from venire.errors import StoreError
from venire.server.store import changes as c
from venire.server.store.ownership import streams_of
from venire.server.store.record import Record
from venire.server.store.records import AuditRow, EngineRow, KeyRow, SegmentRow, SnapshotRow
from venire.server.store.snapshot_retention import superfluous
from venire.server.store.sql.searching import SqlSearching
from venire.server.store.sql.statements import Step, dropping, plan

R = TypeVar("R", bound=Record)

#: What a process that does not own the store may write.
_FOR_ALL = (c.RevokeKey, c.ExpireKey, c.TouchKey)


def _is_for_all(change: c.Change) -> bool:
    if isinstance(change, c.Insert):
        return all(isinstance(row, KeyRow | AuditRow) for row in change.rows)
    checked = isinstance(change, c.SetMeta) and change.key.startswith(c.VERIFIED)
    return checked or isinstance(change, _FOR_ALL)


def _inserted(changes: Sequence[c.Change], kind: type[R]) -> Iterator[R]:
    """The rows of a record that are inserted."""
    for change in changes:
        if isinstance(change, c.Insert) and change.rows and isinstance(change.rows[0], kind):
            yield from cast(Sequence[R], change.rows)


class SqlStorage(SqlSearching):
    """A store in a database; see `sqlite` and `postgres`."""

    owner: bool
    _write_lock: threading.RLock
    _ends: dict[str, int]  # the number of the next event of a stream

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """A cursor whose statements are committed, durably, when the block ends."""

    @abstractmethod
    def _many(self, cursor: Any, step: Step) -> int:
        """Run a statement with all of its rows; how many rows of the table it touched."""

    def write(self, changes: Sequence[c.Change]) -> None:
        """Make the changes as one transaction."""
        if not self.owner:
            refused = next((x for x in changes if not _is_for_all(x)), None)
            if refused is not None:
                rows = refused.rows if isinstance(refused, c.Insert) else ()
                what = rows[0].TABLE.name if rows else type(refused).__name__
                raise StoreError(f"only the server that owns the store {self.url} may write {what}")
        with self._write_lock, self._errors():
            self._check_claims(changes)
            try:
                old = self._old_snapshots(changes)
                with self._transaction() as cursor:
                    for step in (*plan(changes), *old):
                        if step.statement.table == "events":
                            self._check_numbers(step.rows)
                        self._run(cursor, step)
            except BaseException:
                self._ends.clear()
                raise
            for change in changes:
                if isinstance(change, c.DeleteStream):
                    self._ends.pop(change.stream, None)  # a new one may have its name

    def _check_claims(self, changes: Sequence[c.Change]) -> None:
        """Streams that are not claimed belong to another server."""
        if not self.shared:
            return
        other = next((name for name in streams_of(changes) if not self.holds(name)), None)
        if other is not None:
            raise StoreError(f"got rows of stream {other!r}, which this server has not claimed")

    def _old_snapshots(self, changes: Sequence[c.Change]) -> list[Step]:
        """Delete the snapshots that new ones make superfluous."""
        steps = []
        for snapshot in _inserted(changes, SnapshotRow):
            stream = snapshot.stream
            began = {row.n for row in self.engines(stream)}
            began |= {row.next_event for row in self.segments(stream)}
            began |= {row.n for row in _inserted(changes, EngineRow)}
            began |= {row.next_event for row in _inserted(changes, SegmentRow)}
            gone = superfluous([*self.snapshot_numbers(stream), snapshot.n], began)
            steps += [dropping(stream, gone)] if gone else []
        return steps

    def _run(self, cursor: Any, step: Step) -> None:
        touched = self._many(cursor, step)
        if step.statement.exact is not None and touched != len(step.rows):
            raise StoreError(f"{step.statement.exact}: {len(step.rows) - touched} of them")

    def _check_numbers(self, rows: Sequence[Any]) -> None:
        """Events follow each other without a gap."""
        for row in rows:
            end = self._ends.get(row.stream)
            if end is None:
                end = self._end_of_log(row.stream)
            if row.n != end:
                raise StoreError(f"got event {row.n} of stream {row.stream!r}, expected {end}")
            self._ends[row.stream] = row.n + row.size
