"""A store in dictionaries: for tests, for trying things out, and as the plain reference.

It keeps what a database keeps and refuses what a database refuses, but nothing is on disk. A
failed `write` is undone step by step.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from tests.store.applying import apply
from tests.store.history import MemoryHistory
from tests.store.searching import arrivals, doubtful, find_items
from tests.store.tables import Tables
from venire.errors import StoreDown
from venire.model import DeliveryStatus, ItemStatus, LeaseStatus, NoteKind
from venire.server.store import changes as c
from venire.server.store.records import (
    ERASED,
    AlarmRow,
    AuditRow,
    CheckRow,
    Counts,
    DeliveryRow,
    EngineRow,
    EventRow,
    Exited,
    FollowRow,
    GoldRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    RoutedRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.server.store.search import Doubt, Found, ItemSearch, Place

__all__ = ["MemoryStorage"]


class MemoryStorage(MemoryHistory):
    """A store that lives as long as its process.

    >>> from venire.server.store import Insert, KeyRow
    >>> storage = MemoryStorage()
    >>> key = KeyRow.load(["k1", "5e88...", "admin", None, "first", 0.0])
    >>> storage.write([Insert([key])])
    >>> [key.role for key in storage.keys()]
    ['admin']
    """

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        #: What it holds; a test may damage it.
        self.tables = Tables()
        self._lock = threading.RLock()
        self._closed = False

    def write(self, changes: Sequence[c.Change]) -> None:
        """Make the changes as one transaction."""
        with self._lock:
            self.ping()
            with self.tables.transaction():
                for change in changes:
                    apply(self.tables, change)

    def ping(self) -> None:
        """Return unless it is closed."""
        if self._closed:
            raise StoreDown("the store is closed")

    def close(self) -> None:
        """Nothing can be written from here on; what is there can still be read."""
        self._closed = True

    def scrub(self) -> bool | None:
        """There are no files."""
        return True

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Hold the lock."""
        with self._lock:
            yield

    def streams(self) -> list[StreamRow]:
        """All streams."""
        with self._lock:
            return sorted(row for row in self.tables.streams.values() if row.deleted_at is None)

    def deleted_streams(self) -> list[StreamRow]:
        """Streams that are being deleted."""
        with self._lock:
            return sorted(row for row in self.tables.streams.values() if row.deleted_at is not None)

    def remains(self, stream: str) -> bool:
        """Whether anything of a stream is left."""
        with self._lock:
            return any(True for _ in self.tables.rows_of(stream))

    def settings(self, stream: str) -> list[SettingsRow]:
        """All versions of the settings."""
        return self._sorted(self.tables.settings, lambda row: row.stream == stream)

    def events(self, stream: str, after: int = -1, limit: int | None = None) -> list[EventRow]:
        """A part of the log."""
        log = self.tables.logs.get(stream, {})
        return self._sorted(log, lambda row: row.n + row.size - 1 > after)[:limit]

    def engines(self, stream: str) -> list[EngineRow]:
        """Versions of the engine."""
        return self._sorted(self.tables.engines, lambda row: row.stream == stream)

    def snapshot_numbers(self, stream: str) -> list[int]:
        """The numbers of all snapshots."""
        with self._lock:
            return sorted(n for name, n in self.tables.snapshots if name == stream)

    def snapshot(self, stream: str, n: int) -> SnapshotRow | None:
        """One snapshot."""
        return self.tables.snapshots.get((stream, n))

    def item(self, stream: str, id: str) -> ItemRow | None:
        """One item."""
        return self.tables.items.get(stream, {}).get(id)

    def items(
        self,
        stream: str,
        status: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[ItemRow]:
        """Items by id."""

        def wanted(row: ItemRow) -> bool:
            return (status is None or row.status == status) and (after is None or row.id > after)

        return self._sorted(self.tables.items.get(stream, {}), wanted)[:limit]

    def known_ids(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """Which of the ids are there."""
        items = self.tables.items.get(stream, {})
        return {id: items[id].digest for id in ids if id in items}

    def payloads(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """The payloads of some items."""
        items = self.tables.items.get(stream, {})
        return {id: items[id].payload for id in ids if id in items}

    def exits(
        self, stream: str, after: int = 0, limit: int | None = None, payloads: bool = False
    ) -> list[ItemRow]:
        """Items that left, in that order."""
        with self._lock:
            numbers = self.tables.exits.get(stream, {})
            wanted = sorted(n for n in numbers if n > after)[:limit]
            rows = [self.tables.items[stream][numbers[n]] for n in wanted]
            return rows if payloads else [row._replace(payload="") for row in rows]

    def recent_exits(self, stream: str, limit: int) -> list[Exited]:
        """Items that left, the latest first."""
        with self._lock:
            left = [row for row in reversed(self.exits(stream)) if row.status == ItemStatus.LEFT]
            said: dict[str, list[str]] = {row.id: [] for row in left[:limit]}
            for label in self.tables.labels.get(stream, {}).values():
                if label.item in said and not label.late:
                    said[label.item].append(label.said)
            return [_exited(row, said[row.id]) for row in left[:limit]]

    def arrivals(self, stream: str, edges: Sequence[float]) -> list[int]:
        """How many items arrived between each two edges."""
        with self._lock:
            return arrivals(self.tables, stream, edges)

    def find_items(
        self,
        stream: str,
        search: ItemSearch,
        before: Place | None = None,
        limit: int = 50,
        scan: int = 5000,
    ) -> Found:
        """Items that match, the latest arrival first."""
        with self._lock:
            return find_items(self.tables, stream, search, before, limit, scan)

    def doubtful(self, stream: str, after: Doubt | None = None, limit: int = 50) -> list[ItemRow]:
        """Items without gold, the least confident verdict first."""
        with self._lock:
            return doubtful(self.tables, stream, after, limit)

    def labels_among(self, stream: str, items: Iterable[str]) -> list[LabelRow]:
        """The labels of some items."""
        wanted = set(items)
        return self._sorted(self.tables.labels.get(stream, {}), lambda row: row.item in wanted)

    def revisions(self, stream: str, after: int = 0, limit: int | None = None) -> list[RevisionRow]:
        """Revisions, in that order."""
        return self._sorted(self.tables.revisions.get(stream, {}), lambda row: row.n > after)[
            :limit
        ]

    def revisions_of(self, stream: str, item: str) -> list[RevisionRow]:
        """The revisions of an item."""
        return self._sorted(self.tables.revisions.get(stream, {}), lambda row: row.item == item)

    def revised(self, stream: str, items: Iterable[str]) -> dict[str, str | None]:
        """The last revision of each item."""
        wanted, table = set(items), self.tables.revisions.get(stream, {})
        return {row.item: row.verdict for row in self._sorted(table, lambda r: r.item in wanted)}

    def checks(self, stream: str, after: int = 0, limit: int | None = None) -> list[CheckRow]:
        """Drawn verdicts, in that order."""
        return self._sorted(self.tables.checks.get(stream, {}), lambda row: row.n > after)[:limit]

    def gold(
        self, stream: str, after: str | None = None, limit: int | None = None
    ) -> list[GoldRow]:
        """Gold by item."""
        table = self.tables.gold.get(stream, {})
        return self._sorted(table, lambda row: after is None or row.item > after)[:limit]

    def gold_among(self, stream: str, items: Iterable[str]) -> list[GoldRow]:
        """The gold of some items."""
        table = self.tables.gold.get(stream, {})
        return [table[item] for item in items if item in table]

    def alarms(self, stream: str, after: int = 0, limit: int | None = None) -> list[AlarmRow]:
        """Alarms, in that order."""
        return self._sorted(self.tables.alarms.get(stream, {}), lambda row: row.n > after)[:limit]

    def last_alarms(self, stream: str) -> list[AlarmRow]:
        """The last alarm of each rule and subject."""
        rows = self._sorted(self.tables.alarms.get(stream, {}), lambda _: True)
        return sorted({(row.rule, row.subject): row for row in rows}.values())

    def follows(self, stream: str) -> list[FollowRow]:
        """Items that were sent back."""
        return self._sorted(self.tables.follows.get(stream, {}), lambda _: True)

    def routed(self, stream: str, item: str | None = None) -> list[RoutedRow]:
        """Where verdicts send items."""
        rows = self.tables.routed.get(stream, {})
        return self._sorted(rows, lambda row: item in (None, row.item))

    def routed_to(self, stream: str, item: str) -> list[RoutedRow]:
        """From where an item was sent."""
        with self._lock:
            every = [row for rows in self.tables.routed.values() for row in rows.values()]
            wanted = stream, item, "stream"
            return sorted(row for row in every if (row.target, row.item, row.kind) == wanted)

    def routed_waiting(
        self, limit: int, without: Iterable[tuple[str, str]] = ()
    ) -> list[RoutedRow]:
        """What is not settled."""
        left_out = set(without)
        with self._lock:
            there = {row.name for row in self.streams()}
            every = [row for name in there for row in self.tables.routed.get(name, {}).values()]
            waiting = [row for row in every if row.settled_at is None]
            waiting = [row for row in waiting if (row.stream, row.target) not in left_out]
            return sorted(waiting, key=lambda row: (row.at, row))[:limit]

    def labels_of(self, stream: str, item: str) -> list[LabelRow]:
        """The labels of an item."""
        return self._sorted(self.tables.labels.get(stream, {}), lambda row: row.item == item)

    def said(self, stream: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """What was said, where anything was."""
        labels = self.tables.labels.get(stream, {})
        return {pair: labels[pair].said for pair in pairs if pair in labels}

    def labels(
        self, stream: str, after: tuple[str, str] | None = None, limit: int | None = None
    ) -> list[LabelRow]:
        """Labels by item and labeler."""
        found = self._sorted(
            self.tables.labels.get(stream, {}),
            lambda row: after is None or (row.item, row.labeler) > after,
        )
        return found[:limit]

    def recent_labels(
        self, stream: str, since: float, labeler: str | None = None, limit: int | None = None
    ) -> list[LabelRow]:
        """Labels by time."""
        found = self._sorted(
            self.tables.labels.get(stream, {}),
            lambda row: row.at >= since and labeler in (None, row.labeler),
        )
        return sorted(found, key=lambda row: row.at, reverse=True)[:limit]

    def repeats(self, stream: str, item: str | None = None) -> list[RepeatRow]:
        """What was said again."""
        rows = self.tables.repeats.get(stream, {})
        return self._sorted(rows, lambda row: item in (None, row.item))

    def repeat_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """How often, and how often the same."""
        found: dict[str, tuple[int, int]] = {}
        for row in self.repeats(stream):
            number, same = found.get(row.labeler, (0, 0))
            found[row.labeler] = number + 1, same + (row.said == row.before)
        return found

    def repeatable(self, stream: str, labeler: str, slot: int, limit: int) -> list[LabelRow]:
        """Labels that may be repeated."""
        items, done = self.tables.items.get(stream, {}), self.tables.repeats.get(stream, {})
        mine = self.recent_labels(stream, 0.0, labeler)
        return [
            row
            for row in mine
            if row.slot <= slot
            and (row.item, labeler) not in done
            and row.item in items
            and items[row.item].status == ItemStatus.LEFT
            and items[row.item].digest != ERASED
        ][:limit]

    def labels_since(self, stream: str, since: float, labeler: str) -> int:
        """How many labels of a labeler came."""
        return len(self.recent_labels(stream, since, labeler))

    def notes(
        self, stream: str, after: int = 0, limit: int | None = None, item: str | None = None
    ) -> list[NoteRow]:
        """Notes, in that order."""
        return self._sorted(
            self.tables.notes.get(stream, {}),
            lambda row: row.n > after and item in (None, row.item),
        )[:limit]

    def note_counts(self, stream: str) -> dict[str, dict[str, int]]:
        """Notes by kind and labeler."""
        rows = self.notes(stream)
        found = {kind: self._dropped(stream, kind) for kind in NoteKind}
        for row in rows:
            found[NoteKind(row.kind)][row.labeler] += 1
        return {kind: dict(sorted(counted.items())) for kind, counted in found.items()}

    def labeler_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """Labels, and late labels, by labeler."""
        rows = self._sorted(self.tables.labels.get(stream, {}), lambda row: True)
        total, late = self._dropped(stream, "labels"), self._dropped(stream, "late")
        total.update(row.labeler for row in rows)
        late.update(row.labeler for row in rows if row.late)
        return {name: (total[name], late[name]) for name in sorted(total)}

    def given(self, stream: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Which pairs have or had a lease."""
        with self._lock:
            rows = [row for row in self.tables.leases.values() if row.stream == stream]
        return {(row.item, row.labeler) for row in rows} & set(pairs)

    def lease(self, token_hash: str) -> LeaseRow | None:
        """One lease."""
        return self.tables.leases.get(token_hash)

    def leases(
        self, stream: str, status: str | None = LeaseStatus.OPEN, since: float | None = None
    ) -> list[LeaseRow]:
        """Leases by time."""

        def wanted(row: LeaseRow) -> bool:
            mine = row.stream == stream and status in (None, row.status)
            return mine and (since is None or row.given_at >= since)

        found = self._sorted(self.tables.leases, wanted)
        return sorted(found, key=lambda row: (row.given_at, row.token_hash))

    def counts(self, stream: str) -> Counts:
        """How many rows of each kind a stream has."""
        with self._lock:
            items = self._dropped(stream, "items")
            items.update(row.status for row in self.tables.items.get(stream, {}).values())
            labels = self.labeler_counts(stream).values()
            leases, gone = len(self.leases(stream)), self.segments(stream)
            return Counts(
                open=items[ItemStatus.OPEN],
                left=items[ItemStatus.LEFT],
                withdrawn=items[ItemStatus.WITHDRAWN],
                labels=sum(number for number, _ in labels),
                late=sum(number for _, number in labels),
                leases=leases,
                events=max([self.tables.ends.get(stream, 0), *(x.next_event for x in gone)]),
                exits=max([0, *self.tables.exits.get(stream, {}), *(x.exits for x in gone)]),
                revisions=max(
                    [0, *self.tables.revisions.get(stream, {}), *(x.revisions for x in gone)]
                ),
                notes=max([0, *self.tables.notes.get(stream, {}), *(x.notes for x in gone)]),
            )

    def open_counts(self) -> dict[str, int]:
        """How many items are open, by stream."""
        with self._lock:
            return {name: self.counts(name).open for name in self.tables.items}

    def keys(self) -> list[KeyRow]:
        """All keys."""
        found = self._sorted(self.tables.keys, lambda row: True)
        return sorted(found, key=lambda row: (row.created_at, row.id))

    def audit(
        self, after: int = 0, limit: int | None = None, stream: str | None = None
    ) -> list[AuditRow]:
        """The audit trail."""
        with self._lock:
            rows = [self.tables.audit[n] for n in sorted(self.tables.audit) if n > after]
        return [row for row in rows if stream in (None, row.stream)][:limit]

    def recent_audit(
        self,
        before: int | None = None,
        limit: int | None = None,
        stream: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        """The audit trail, newest first."""
        rows = [row for row in self.audit(0, None, stream) if action in (None, row.action)]
        return [row for row in reversed(rows) if before is None or row.n < before][:limit]

    def webhooks(self, stream: str | None = None) -> list[WebhookRow]:
        """Webhooks."""
        found = self._sorted(self.tables.webhooks, lambda row: stream in (None, row.stream))
        return sorted(found, key=lambda row: (row.created_at, row.id))

    def pending_deliveries(self, webhook: str, limit: int | None = None) -> list[DeliveryRow]:
        """Deliveries that are not done, nor given up."""
        found = self.deliveries(webhook, DeliveryStatus.PENDING)
        return sorted(found, key=lambda row: (row.next_at, row.exit_n, row.kind))[:limit]

    def deliveries(self, webhook: str, status: str | None = None) -> list[DeliveryRow]:
        """Deliveries to a webhook."""

        def wanted(row: DeliveryRow) -> bool:
            return row.webhook == webhook and status in (None, row.status)

        return self._sorted(self.tables.deliveries, wanted)

    def meta(self, key: str) -> str | None:
        """A named value."""
        return self.tables.meta.get(key)

    def metas(self, prefix: str) -> dict[str, str]:
        """Named values by a prefix."""
        with self._lock:
            return {key: value for key, value in self.tables.meta.items() if key.startswith(prefix)}


def _exited(row: ItemRow, said: list[str]) -> Exited:
    return Exited(
        item=row.id,
        arrived_slot=row.arrived_slot,
        arrived_at=row.arrived_at,
        exit_slot=row.exit_slot or 0,
        left_at=row.left_at or 0.0,
        verdict=row.verdict,
        confidence=row.confidence or 0.0,
        labels=row.labels or 0,
        reason=row.reason or "",
        said=len(said),
        agreed=sum(label == row.verdict for label in said),
    )
