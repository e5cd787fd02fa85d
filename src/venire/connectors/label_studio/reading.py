"""Which tasks a round looks at: what has changed, and all of them over and over."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any, Final

from venire.connectors.label_studio.studio import LabelStudio

__all__ = ["Reader"]

#: How far back a look for changes goes: requests of others may be under way.
MARGIN: Final = timedelta(seconds=15)

#: Pages of all tasks that a round reads in the first pass.
FIRST_PAGES: Final = 10


class Reader:
    """Reads tasks that changed since the last round that was completed, by Label Studio's clock.

    Not every change has a date: after the first pass over all tasks, a page of them is read again
    every `sweep` seconds.
    """

    def __init__(self, studio: LabelStudio, sweep: float) -> None:
        self._studio, self._sweep, self._swept = studio, sweep, 0.0
        self._since: datetime | None = None
        self._next_since: datetime | None = None
        self._cursor, self._next_cursor, self._first_pass = 0, 0, True

    def begin(self) -> None:
        """Look for changes from now on."""
        self._since = self._studio.now - MARGIN

    async def read(self) -> dict[int, dict[str, Any]]:
        """The tasks to look at, by id."""
        self._next_since = self._studio.now - MARGIN
        since = self._next_since if self._since is None else self._since
        found = {task["id"]: task for task in await self._studio.changed(since)}
        self._next_cursor = self._cursor
        for _ in range(self._pages()):
            page = await self._studio.after(self._next_cursor)
            found |= {task["id"]: task for task in page}
            self._next_cursor = page[-1]["id"] if page else 0
            if not page:
                self._first_pass = False
                break
        return found

    def _pages(self) -> int:
        """How many pages of all tasks to read in this round."""
        if self._first_pass:
            return FIRST_PAGES
        due = time.monotonic() - self._swept >= self._sweep
        self._swept = time.monotonic() if due else self._swept
        return int(due)

    def done(self) -> None:
        """What was read has been dealt with; else the next round reads it again."""
        self._since, self._cursor = self._next_since, self._next_cursor
