"""The reads of a store that history needs; see `Storage`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from venire.server.store.rows import ArchivedRow, ItemRow, LeaseRow, NoteRow, SegmentRow

__all__ = ["HistoryReads", "Said"]

#: Item, labeler, label, slot, whether it was late, and time.
Said: TypeAlias = tuple[str, str, str, int, bool, float]


class HistoryReads(ABC):
    """What is archived, and what belongs to items that may be."""

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
        self, stream: str, after: str | None = None, limit: int | None = None
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
