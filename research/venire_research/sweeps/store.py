"""Results on disk, one row each, so that finished points are not run again.

A SQLite file, by the standard library, in WAL mode: a row is committed as soon as its point has
finished, whatever happens to the process next. One process writes; others may read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from venire.errors import FileError

if TYPE_CHECKING:
    from venire_research.sweeps.sweep import Point

__all__ = ["Store"]

_TABLE = """
CREATE TABLE IF NOT EXISTS points (
    key TEXT PRIMARY KEY,
    function TEXT NOT NULL,
    version TEXT NOT NULL,
    settings TEXT NOT NULL,
    result TEXT NOT NULL
)
"""


class Store:
    """Finished points by their key; `path` may be ":memory:".

    >>> from venire_research.sweeps.sweep import Point
    >>> point = Point("statistics:fmean", {"data": [1, 2]})
    >>> with Store(":memory:") as store:
    ...     store.put(point, 1.5)
    ...     store.get([point.key, "unknown"]) == {point.key: 1.5}, len(store)
    (True, 1)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        try:
            self._db = sqlite3.connect(path, timeout=60.0, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.execute(_TABLE)
        except sqlite3.Error as error:
            raise FileError(
                path, None, f"is not a store of results ({error}): move it away and try again"
            ) from None

    def put(self, point: Point, result: Any) -> None:
        """Store the result of a point."""
        row = (
            point.key,
            point.function,
            point.version,
            json.dumps(point.settings, sort_keys=True),
            json.dumps(result, allow_nan=False),
        )
        self._db.execute("INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?)", row)

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """The stored results among these keys."""
        found = {}
        for key in keys:
            query = self._db.execute("SELECT result FROM points WHERE key = ?", (key,))
            for (result,) in query:
                found[key] = json.loads(result)
        return found

    def __len__(self) -> int:
        """How many points are stored."""
        (count,) = self._db.execute("SELECT COUNT(*) FROM points").fetchone()
        return int(count)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
