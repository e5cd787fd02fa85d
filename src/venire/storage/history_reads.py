"""The reads of a store that history needs; see `Storage`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from venire.storage.rows import ArchivedRow, LeaseRow, NoteRow, SegmentRow

__all__ = ["HistoryReads"]


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

    def all_archived(self, stream: str, chunk: int = 10_000) -> Iterator[ArchivedRow]:
        """Every archived item of a stream, read in chunks."""
        rows = self.archived_after(stream, None, chunk)
        while rows:
            yield from rows
            rows = self.archived_after(stream, rows[-1].id, chunk)
