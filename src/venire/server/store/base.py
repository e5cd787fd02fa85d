"""What a store can do: one way to write, many to read.

A store is an append-only log of events for each stream, beside the tables that people query.
`write` is the only verb that changes it: all of its changes are on disk when it returns, or none
of them are. All methods block and may be called from any thread; a store has one writer at a
time, which is what `writer.Writer` is for.

Errors: `StoreDown` where trying again may help (disk full, database gone, locked), `StoreError`
where it will not (a second verdict for an item, a damaged file, a newer schema).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Self, TypeAlias

from venire.model import ItemStatus, LeaseStatus
from venire.server.store.changes import Change
from venire.server.store.ownership import Ownership
from venire.server.store.records import (
    UNSETTLED,
    AlarmRow,
    ArchivedRow,
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
    SegmentRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.server.store.search import Doubt, Found, ItemSearch, Place

#: At most how many rows; None for all.
Limit: TypeAlias = int | None

#: Item, labeler, label, slot, whether it was late, and time.
Said: TypeAlias = tuple[str, str, str, int, bool, float, float | None]


#: What a label may have beside the class: how sure its labeler was, and why.
SAID_BESIDE: Final = ("confidence", "rationale")


class Storage(Ownership, ABC):
    """A store; see `open_storage`.

    >>> from venire.server.store import Insert, StreamRow, open_storage
    >>> with open_storage("memory:") as storage:
    ...     storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    ...     [row.name for row in storage.streams()]
    ['posts']
    """

    #: The address it was opened by, without a password.
    url: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # to write

    @abstractmethod
    def write(self, changes: Sequence[Change]) -> None:
        """Make the changes, in order, as one transaction; durable when it returns."""

    @abstractmethod
    def ping(self) -> None:
        """Return if the store can be written to, reconnecting if need be; else `StoreDown`."""

    def sizes(self) -> dict[str, int]:
        """Bytes, by name: of the store (`bytes`), of its journal, and free for it, if known."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; closing twice is fine."""

    # to read

    def scrub(self) -> bool | None:
        """Remove what was erased from the files; False if a reader prevents that for now.

        None: a database server decides by itself when it overwrites what was freed.
        """
        return None

    @abstractmethod
    def frozen(self) -> AbstractContextManager[None]:
        """Inside, all reads see one state, whatever is written meanwhile.

        For a tool with one thread that reads a store in use.
        """

    @abstractmethod
    def streams(self) -> list[StreamRow]:
        """All streams that are not deleted, by name."""

    def stream(self, name: str) -> StreamRow | None:
        """A stream; None if there is none, or it is deleted."""
        return next((row for row in self.streams() if row.name == name), None)

    @abstractmethod
    def deleted_streams(self) -> list[StreamRow]:
        """Deleted streams of which rows are left, by name."""

    @abstractmethod
    def remains(self, stream: str) -> bool:
        """Whether there is any row of a stream, beside the stream itself."""

    @abstractmethod
    def settings(self, stream: str) -> list[SettingsRow]:
        """All versions of a stream's settings, oldest first."""

    @abstractmethod
    def events(self, stream: str, after: int = -1, limit: Limit = None) -> list[EventRow]:
        """Rows with an event above number `after`, oldest first, at most `limit` rows.

        A row holds `size` events, so the first row may begin at or before `after`.
        """

    @abstractmethod
    def engines(self, stream: str) -> list[EngineRow]:
        """Which versions of the engine wrote the log, oldest first; none in an old store."""

    @abstractmethod
    def snapshot_numbers(self, stream: str) -> list[int]:
        """After how many events each snapshot was taken, ascending."""

    @abstractmethod
    def snapshot(self, stream: str, n: int) -> SnapshotRow | None:
        """The snapshot that was taken after `n` events."""

    @abstractmethod
    def item(self, stream: str, id: str) -> ItemRow | None:
        """One item."""

    @abstractmethod
    def items(
        self, stream: str, status: str | None = None, after: str | None = None, limit: Limit = None
    ) -> list[ItemRow]:
        """Items in the order of their ids, from the one behind `after`."""

    @abstractmethod
    def known_ids(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """Those of the ids that exist, with the digest of their content."""

    @abstractmethod
    def payloads(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """The payloads of those of the ids that exist."""

    @abstractmethod
    def exits(
        self, stream: str, after: int = 0, limit: Limit = None, payloads: bool = False
    ) -> list[ItemRow]:
        """Items that left with an `exit_n` above `after`, in that order.

        Unless `payloads` are asked for, an empty text stands in their place.
        """

    @abstractmethod
    def recent_exits(self, stream: str, limit: int) -> list[Exited]:
        """The items that left last, the latest first, without those that were withdrawn."""

    @abstractmethod
    def arrivals(self, stream: str, edges: Sequence[float]) -> list[int]:
        """How many items arrived between each two edges, times in order; the later one is out."""

    @abstractmethod
    def find_items(
        self,
        stream: str,
        search: ItemSearch,
        before: Place | None = None,
        limit: int = 50,
        scan: int = 5000,
    ) -> Found:
        """Items that match, the latest arrival first, among the next `scan` rows of an index."""

    @abstractmethod
    def doubtful(self, stream: str, after: Doubt | None = None, limit: int = 50) -> list[ItemRow]:
        """Items that left with a verdict and have no gold, the least confident first.

        They come with the beginnings of their payloads, as those of `find_items` do.
        """

    @abstractmethod
    def labels_among(self, stream: str, items: Iterable[str]) -> list[LabelRow]:
        """The labels of these items, in no particular order."""

    @abstractmethod
    def revisions(self, stream: str, after: int = 0, limit: Limit = None) -> list[RevisionRow]:
        """Revisions with an `n` above `after`, in that order."""

    @abstractmethod
    def revisions_of(self, stream: str, item: str) -> list[RevisionRow]:
        """The revisions of an item, the earliest first."""

    @abstractmethod
    def revised(self, stream: str, items: Iterable[str]) -> dict[str, str | None]:
        """Those of the items whose verdict was revised, and the verdict of the last revision."""

    @abstractmethod
    def checks(self, stream: str, after: int = 0, limit: Limit = None) -> list[CheckRow]:
        """Verdicts drawn to be audited with an `n` above `after`, in that order."""

    @abstractmethod
    def gold(self, stream: str, after: str | None = None, limit: Limit = None) -> list[GoldRow]:
        """Gold by item, from the one behind `after`."""

    @abstractmethod
    def gold_among(self, stream: str, items: Iterable[str]) -> list[GoldRow]:
        """The gold of some items."""

    def gold_of(self, stream: str, items: Iterable[str]) -> dict[str, str]:
        """Those of the items that have gold, and what it is."""
        return {row.item: row.label for row in self.gold_among(stream, items)}

    @abstractmethod
    def alarms(self, stream: str, after: int = 0, limit: Limit = None) -> list[AlarmRow]:
        """Alarms raised and cleared with an `n` above `after`, in that order."""

    @abstractmethod
    def last_alarms(self, stream: str) -> list[AlarmRow]:
        """The last alarm of each rule and subject, in the order of `n`."""

    @abstractmethod
    def follows(self, stream: str) -> list[FollowRow]:
        """The items that follow others, which were sent back, by their ids."""

    @abstractmethod
    def routed(self, stream: str, item: str | None = None) -> list[RoutedRow]:
        """Where verdicts of a stream, or of one item, send items; by item, kind and target."""

    @abstractmethod
    def routed_to(self, stream: str, item: str) -> list[RoutedRow]:
        """From where verdicts sent an item to this stream, by the stream."""

    @abstractmethod
    def routed_waiting(
        self, limit: int, without: Iterable[tuple[str, str]] = ()
    ) -> list[RoutedRow]:
        """What is not settled yet of all streams that are not being deleted, the earliest first.

        What goes from one stream to one target is left out for each pair of `without`.
        """

    @abstractmethod
    def labels_of(self, stream: str, item: str) -> list[LabelRow]:
        """The labels of an item, in the order of the labelers' names."""

    @abstractmethod
    def said(self, stream: str, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Those of the pairs (item, labeler) that have a label, and the label."""

    @abstractmethod
    def labels(
        self, stream: str, after: tuple[str, str] | None = None, limit: Limit = None
    ) -> list[LabelRow]:
        """Labels by item and labeler, from the one behind the pair `after`."""

    @abstractmethod
    def recent_labels(
        self, stream: str, since: float, labeler: str | None = None, limit: Limit = None
    ) -> list[LabelRow]:
        """Labels that came at `since` or later, newest first."""

    @abstractmethod
    def repeats(self, stream: str, item: str | None = None) -> list[RepeatRow]:
        """What labelers said who were asked again, of all items or one; by item and labeler."""

    @abstractmethod
    def repeat_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """How often each labeler was asked again and answered, and how often it said the same."""

    @abstractmethod
    def repeatable(self, stream: str, labeler: str, slot: int, limit: int) -> list[LabelRow]:
        """Labels that the labeler gave up to a slot, the latest first, which it may repeat.

        Their items have left with a verdict and were not erased, and it did not repeat them yet.
        """

    @abstractmethod
    def labels_since(self, stream: str, since: float, labeler: str) -> int:
        """How many labels of a labeler came at `since` or later."""

    @abstractmethod
    def notes(
        self, stream: str, after: int = 0, limit: Limit = None, item: str | None = None
    ) -> list[NoteRow]:
        """Notes of labelers with an `n` above `after`, in that order; of one item, or all."""

    @abstractmethod
    def note_counts(self, stream: str) -> dict[str, dict[str, int]]:
        """For each kind of note, how many there are of each labeler who made one."""

    @abstractmethod
    def labeler_counts(self, stream: str) -> dict[str, tuple[int, int]]:
        """For each labeler with a label: how many there are, and how many of them were late."""

    @abstractmethod
    def given(self, stream: str, pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of the pairs (item, labeler) that have or had a lease."""

    @abstractmethod
    def lease(self, token_hash: str) -> LeaseRow | None:
        """One lease."""

    @abstractmethod
    def leases(
        self, stream: str, status: str | None = LeaseStatus.OPEN, since: float | None = None
    ) -> list[LeaseRow]:
        """Leases by the time they were given, from `since` on."""

    @abstractmethod
    def counts(self, stream: str) -> Counts:
        """How many rows of each kind a stream has."""

    @abstractmethod
    def open_counts(self) -> dict[str, int]:
        """How many items are open, by stream; streams without any may be left out."""

    @abstractmethod
    def keys(self) -> list[KeyRow]:
        """All keys, revoked ones too, oldest first."""

    @abstractmethod
    def audit(
        self, after: int = 0, limit: Limit = None, stream: str | None = None
    ) -> list[AuditRow]:
        """The audit trail after line `after`, oldest first; of one stream, or all."""

    @abstractmethod
    def recent_audit(
        self,
        before: int | None = None,
        limit: Limit = None,
        stream: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        """The audit trail before line `before`, newest first; of one stream, one action, or all."""

    @abstractmethod
    def webhooks(self, stream: str | None = None) -> list[WebhookRow]:
        """The webhooks of a stream, or all, oldest first."""

    @abstractmethod
    def due_deliveries(self, webhook: str, now: float, limit: Limit = None) -> list[DeliveryRow]:
        """Pending deliveries to a webhook that are due, longest overdue first."""

    @abstractmethod
    def deliveries(self, webhook: str, status: str | None = None) -> list[DeliveryRow]:
        """Deliveries to a webhook, exits and then revisions; `dead` is the dead-letter list."""

    def delivery_counts(self, webhook: str) -> dict[str, int]:
        """How many deliveries to a webhook are pending, and how many are dead."""
        return {status: len(self.deliveries(webhook, status)) for status in UNSETTLED}

    @abstractmethod
    def meta(self, key: str) -> str | None:
        """A named value of the store itself."""

    @abstractmethod
    def metas(self, prefix: str) -> dict[str, str]:
        """The named values whose name begins with a prefix."""

    # the same for all

    def snapshots(self, stream: str) -> list[SnapshotRow]:
        found = [self.snapshot(stream, n) for n in self.snapshot_numbers(stream)]
        return [row for row in found if row is not None]

    def open_items(self, stream: str, most: int, chunk: int = 10_000) -> Iterator[ItemRow]:
        """All items that are open, by id, read in chunks.

        In the place of a payload of more than `most` characters stands an empty text.
        """
        rows = self.items(stream, ItemStatus.OPEN, None, chunk)
        while rows:
            for row in rows:
                yield row if len(row.payload) <= most else row._replace(payload="")
            rows = self.items(stream, ItemStatus.OPEN, rows[-1].id, chunk)

    def open_said(self, stream: str) -> Iterator[tuple[str, str, str]]:
        for item in self.open_items(stream, 0):
            for row in self.labels_of(stream, item.id):
                yield row.item, row.labeler, row.said

    def all_labels(self, stream: str, chunk: int = 10_000) -> Iterator[LabelRow]:
        """Every label of a stream, read in chunks."""
        rows = self.labels(stream, None, chunk)
        while rows:
            yield from rows
            rows = self.labels(stream, (rows[-1].item, rows[-1].labeler), chunk)

    @abstractmethod
    def said_beside(self, stream: str) -> tuple[str, ...]:
        """Which of `SAID_BESIDE` a label of the stream has."""

    def all_audit(self, stream: str | None = None, chunk: int = 10_000) -> Iterator[AuditRow]:
        """Every line of the audit trail, or those about a stream, read in chunks."""
        rows = self.audit(0, chunk, stream)
        while rows:
            yield from rows
            rows = self.audit(rows[-1].n, chunk, stream)

    def all_items(self, stream: str, chunk: int = 10_000) -> Iterator[ItemRow]:
        """Every item of a stream, read in chunks."""
        rows = self.items(stream, None, None, chunk)
        while rows:
            yield from rows
            rows = self.items(stream, None, rows[-1].id, chunk)

    def all_gold(self, stream: str, chunk: int = 10_000) -> Iterator[GoldRow]:
        """All gold of a stream, read in chunks."""
        rows = self.gold(stream, None, chunk)
        while rows:
            yield from rows
            rows = self.gold(stream, rows[-1].item, chunk)

    def all_notes(self, stream: str, chunk: int = 10_000) -> Iterator[NoteRow]:
        """Every note on a stream's items, read in chunks."""
        rows = self.notes(stream, 0, chunk)
        while rows:
            yield from rows
            rows = self.notes(stream, rows[-1].n, chunk)

    def all_revisions(
        self, stream: str, after: int = 0, chunk: int = 10_000
    ) -> Iterator[RevisionRow]:
        """Every revision of a stream above number `after`, read in chunks."""
        rows = self.revisions(stream, after, chunk)
        while rows:
            yield from rows
            rows = self.revisions(stream, rows[-1].n, chunk)

    def all_events(self, stream: str, after: int = -1, chunk: int = 1_000) -> Iterator[EventRow]:
        """Every row of a stream's log from the event behind `after`, read in chunks."""
        rows = self.events(stream, after, chunk)
        while rows:
            yield from rows
            rows = self.events(stream, rows[-1].n + rows[-1].size - 1, chunk)

    # what is archived, and what belongs to items that may be

    @abstractmethod
    def leases_among(self, stream: str, items: Iterable[str]) -> list[LeaseRow]:
        """The leases of these items, in no particular order."""

    @abstractmethod
    def notes_among(self, stream: str, items: Iterable[str]) -> list[NoteRow]:
        """The notes on these items, in no particular order."""

    @abstractmethod
    def segments(self, stream: str) -> list[SegmentRow]:
        """The parts of the history that are archived or deleted, oldest first."""

    @abstractmethod
    def archived(self, stream: str, ids: Iterable[str]) -> dict[str, ArchivedRow]:
        """Those of the ids whose items are in a segment, and no longer in the store."""

    @abstractmethod
    def archived_after(
        self, stream: str, after: str | None = None, limit: Limit = None
    ) -> list[ArchivedRow]:
        """Archived items in the order of their ids, from the one behind `after`."""

    @abstractmethod
    def first_pending(self, stream: str, kind: str = "exit") -> int | None:
        """The lowest number of an exit (or revision) that is still to be sent to a webhook."""

    @abstractmethod
    def said_in_time(self, stream: str, since: float | None = None) -> Iterator[Said]:
        """What was said, in the order of time, from `since` on; read as it is asked for."""

    @abstractmethod
    def leases_in_time(self, stream: str, since: float | None = None) -> Iterator[LeaseRow]:
        """All leases by the time they were given, from `since` on; read as they are asked for."""

    @abstractmethod
    def stray_items(self, stream: str) -> list[ItemRow]:
        """Items that are not open and have no `exit_n`: there should be none."""

    def all_archived(self, stream: str, chunk: int = 10_000) -> Iterator[ArchivedRow]:
        """Every archived item of a stream, read in chunks."""
        rows = self.archived_after(stream, None, chunk)
        while rows:
            yield from rows
            rows = self.archived_after(stream, rows[-1].id, chunk)
