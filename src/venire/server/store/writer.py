"""One thread that commits what many requests hand it: group commit.

A commit that waits for the disk takes as long for a hundred changes as for one. So the thread
takes all that is queued, commits it as one transaction, and answers all requests in it; meanwhile
the next group gathers. Nothing is ever reordered.

When a commit fails, its group fails, and so does all that is queued behind it, since that was
decided on a state which the disk does not have. From then on the writer is down: it refuses
everything until the owner of the state in memory calls `recover`, and then loads that state again.
It never comes up by itself, so that nothing decided on the lost state can slip in.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from venire.errors import StoreDown, StoreError
from venire.server.store.changes import Change

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage


class Ticket(Protocol):
    """What is resolved after the commit: a future of `asyncio` or `concurrent.futures`."""

    def done(self) -> bool:
        """Whether it is resolved or cancelled already."""

    def set_result(self, result: Any, /) -> None:
        """The changes are on disk."""

    def set_exception(self, exception: Any, /) -> None:
        """They are not on disk, or it is not known."""


T = TypeVar("T", bound=Ticket)


@dataclass(frozen=True, slots=True)
class WriterStats:
    """What a writer has done: `requests` / `commits` is how many share a commit."""

    commits: int = 0
    requests: int = 0
    changes: int = 0
    failures: int = 0
    largest: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0


class Writer:
    """Commits changes in the order in which they are submitted.

    Parameters
    ----------
    storage
        Where to write. From here on nobody else should write to its streams.
    call
        How to run a function in the thread that waits for the answers, such as
        `loop.call_soon_threadsafe`: it is called once for each group. By default answers are
        given in the writer's own thread.
    seconds
        A clock to time the commits by, such as `time.perf_counter`; without one the statistics
        have no times.
    tell
        Called with the cause when it goes down and each time that it cannot come up, and with
        None when it is up again; in the thread where that happens.

    Examples
    --------
    >>> from venire.server.store import Insert, StreamRow, open_storage
    >>> storage = open_storage("memory:")
    >>> with Writer(storage) as writer:
    ...     writer.submit([Insert([StreamRow(name="posts", created_at=0.0)])]).result()
    ...     writer.stats.commits, [stream.name for stream in storage.streams()]
    (1, ['posts'])
    """

    def __init__(
        self,
        storage: Storage,
        call: Callable[[Callable[[], None]], object] | None = None,
        seconds: Callable[[], float] | None = None,
        tell: Callable[[str | None], None] | None = None,
    ) -> None:
        self.storage = storage
        self.stats = WriterStats()
        self._call, self._seconds = call, seconds or (lambda: 0.0)
        self._told = tell or (lambda fault: None)
        self._queue: list[tuple[Sequence[Change], Ticket]] = []
        self._wake = threading.Condition()
        self._error: str | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="venire-writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def up(self) -> bool:
        return self._error is None and not self._closing

    @property
    def waiting(self) -> int:
        """How many requests are queued behind the group that is being committed."""
        return len(self._queue)

    def submit(self, changes: Sequence[Change]) -> Future[None]:
        """Hand in changes; the future is resolved when they are on disk, or fails.

        Without changes it is a barrier: all that was submitted before is on disk.
        """
        return self.submit_to(changes, Future[None]())

    def submit_to(self, changes: Sequence[Change], ticket: T) -> T:
        """The same with a future of the caller's, such as `loop.create_future()`."""
        with self._wake:
            if self.up:
                self._queue.append((changes, ticket))
                self._wake.notify()
                return ticket
        why = self._error or "the writer is closed"
        ticket.set_exception(StoreDown(f"the store cannot be written to for now: {why}"))
        return ticket

    def refuse(self, why: str) -> None:
        """Go down as after a failed commit: the caller knows that the store is lost.

        >>> from venire.server.store import open_storage
        >>> with Writer(open_storage("memory:")) as writer:
        ...     writer.refuse("somebody else has it")
        ...     writer.up
        False
        """
        self._fail([], StoreDown(why))

    def recover(self) -> bool:
        """Come up again if the store can be written to; the caller then loads its state again."""
        if self._error is None:
            return not self._closing
        try:
            self.storage.ping()
        except StoreError as error:
            self._error = str(error)
            self._told(self._error)
            return False
        self._error = None
        self._told(None)
        return not self._closing

    def close(self) -> None:
        """Commit what is queued, and end the thread; the store stays open."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing:
                    self._wake.wait()
                group, self._queue = self._queue, []
            if not group:
                return
            self._commit(group)

    def _commit(self, group: list[tuple[Sequence[Change], Ticket]]) -> None:
        changes = [change for part, _ in group for change in part]
        begun = self._seconds()
        try:
            if changes:
                self.storage.write(changes)
        except Exception as error:
            self._fail(group, error)
            return
        if changes:
            self._count(len(group), len(changes), self._seconds() - begun)
        self._answer([ticket for _, ticket in group], None)

    def _count(self, requests: int, changes: int, seconds: float) -> None:
        old = self.stats
        self.stats = replace(
            old,
            commits=old.commits + 1,
            requests=old.requests + requests,
            changes=old.changes + changes,
            largest=max(old.largest, requests),
            seconds=old.seconds + seconds,
            last_seconds=seconds,
        )

    def _fail(self, group: list[tuple[Sequence[Change], Ticket]], error: Exception) -> None:
        why = str(error) or type(error).__name__
        self._told(why if isinstance(error, StoreError) else f"{type(error).__name__}: {why}")
        with self._wake:
            self._error = why
            group, self._queue = group + self._queue, []
        self.stats = replace(self.stats, failures=self.stats.failures + 1)
        self._answer([ticket for _, ticket in group], error)

    def _answer(self, tickets: list[Ticket], error: Exception | None) -> None:
        def resolve() -> None:
            for ticket in tickets:
                if ticket.done():
                    continue
                if error is None:
                    ticket.set_result(None)
                else:
                    down = StoreDown(f"the store could not write it: {error}")
                    down.__cause__ = error
                    ticket.set_exception(down)

        if self._call is None:
            resolve()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
                self._call(resolve)
