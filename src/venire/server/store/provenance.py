"""Which version of the engine wrote which part of a log, and what is taken from it unchecked.

A log is replayed, and every decision must come out the same. Where it does not, and another
version of the engine wrote that part, the decisions are taken from the log from that event to the
end of the part. Where this version wrote it, the log is damaged. In a store from before versions
were recorded, nobody knows which one wrote the first part: a server assumes another, and `verify`,
which is to trust nothing, assumes its own, unless the snapshot with which the part begins has the
format of an earlier version.
"""

from __future__ import annotations

import math

from venire.engine import engine_version
from venire.errors import ReplayError
from venire.server.store.base import Storage
from venire.server.store.records import EngineRow


class Writers:
    """The parts of a stream's log, by the version that wrote them.

    >>> engines = [("posts", 0, "other", 0.0), ("posts", 9, "this", 0.0)]
    >>> writers = Writers([EngineRow.load(engine) for engine in engines])
    >>> writers.blame(4, ValueError("it came out otherwise"))
    >>> [writers.obeys(n) for n in (3, 4, 8, 9)]
    [False, True, True, False]
    """

    def __init__(self, engines: list[EngineRow], strict: bool = False) -> None:
        self._engines, self._own = engines, set[str | None]((engine_version(),))
        if strict:
            self._own.add(None)
        self._taken: list[tuple[int, float]] = []

    @classmethod
    def of(cls, storage: Storage, stream: str, strict: bool = False) -> Writers:
        """Those of a stream; with `strict`, parts of unknown origin count as this version's."""
        return cls(storage.engines(stream), strict)

    def version(self, n: int) -> str | None:
        """Which version wrote an event; None if that is not known."""
        return next((row.version for row in reversed(self._engines) if row.n <= n), None)

    def obeys(self, n: int) -> bool:
        """Whether the decisions of an event are taken from the log."""
        return any(first <= n < end for first, end in self._taken)

    def edges(self) -> set[float]:
        """Where it begins or ends that decisions are taken from the log."""
        return {edge for part in self._taken for edge in part}

    def begins(self, n: int) -> bool:
        """Whether another version begins at this event."""
        return any(row.n == n for row in self._engines)

    def blame(self, n: int, error: Exception) -> None:
        """An event does not replay: take it from the log, or raise `ReplayError`."""
        if self.version(n) in self._own or self.obeys(n):
            raise ReplayError(f"event {n} does not replay: {error}") from error
        end = min((row.n for row in self._engines if row.n > n), default=math.inf)
        self._taken.append((n, end))
