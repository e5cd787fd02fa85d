"""What has left the stream, and with which verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venire.connectors.label_studio.board import Verdict
from venire.connectors.label_studio.desk import Desk

__all__ = ["Leaving"]


class Leaving:
    """Follows exits and revisions; `verdicts` has what tasks left with, the last revision of it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._exit, self._revision = 0, 0
        self.verdicts: dict[int, Verdict] = {}

    async def read(self) -> None:
        """Note what is new; the tasks are marked as dirty."""
        for row in await self._all(self._desk.panel.exits, self._exit):
            self._note(row)
            self._exit = row.n
        for row in await self._all(self._desk.panel.revisions, self._revision):
            self._note(row)
            self._revision = row.n

    def _note(self, row: Any) -> None:
        task = self._desk.task(row.item)
        if task is not None:
            self.verdicts[task] = Verdict(row.verdict, row.confidence)
            self._desk.dirty.add(task)

    async def _all(self, read: Callable[..., Any], after: int) -> list[Any]:
        """All rows after a cursor."""
        rows: list[Any] = []
        while page := await read(self._desk.stream, after, limit=1000):
            rows += page
            after = page[-1].n
        return rows
