"""Where functions of partitions run: on the workers of a Dask cluster, or in this process.

Nothing is put on a worker by hand. Everything there is what a function returned, of files or of
other such results, so that whatever a dead worker held is computed again by others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

from venire.errors import StateError

__all__ = ["Here", "OnDask", "Place", "Progress"]

#: Told how many partitions are done, and of how many.
Progress = Callable[[int, int], None]

#: Bytes of arguments that are sent along with every task; more of them choke a scheduler.
SMALL: Final = 1 << 14


class Place(Protocol):
    """Somewhere to run functions; what they return is there, behind a handle."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A handle of what the function will return; arguments may be handles, or lists of them."""
        ...

    def share(self, value: Any) -> Any:
        """The value, or a handle of it, to be an argument many times."""
        ...

    def results(self, handles: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """What is behind the handles, brought here."""
        ...

    def finish(self, handles: Sequence[Any], progress: Progress | None = None) -> None:
        """Wait until all is there."""
        ...


class Here:
    """In this process: a handle is the result itself.

    >>> here = Here()
    >>> here.results([here.submit(sum, [1, 2])])
    [3]
    """

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result."""
        return function(*arguments)

    def share(self, value: Any) -> Any:
        """The value."""
        return value

    def results(self, handles: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """The same."""
        return list(handles)

    def finish(self, handles: Sequence[Any], progress: Progress | None = None) -> None:
        """Nothing to wait for."""


class OnDask:
    """A cluster, by its client: a handle is a future."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The future of a result."""
        return self._client.submit(function, *arguments, pure=False)

    def share(self, value: Any) -> Any:
        """The value, if it is small; else a task that holds it, so that no other need to."""
        from dask.sizeof import sizeof

        return value if sizeof(value) < SMALL else self.submit(_same, value)

    def results(self, handles: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """What the futures hold; the error of the first that failed."""
        self.finish(handles, progress)
        with _explained():
            return list(self._client.gather(list(handles)))

    def finish(self, handles: Sequence[Any], progress: Progress | None = None) -> None:
        """Wait until all are done."""
        from distributed import as_completed

        with _explained():
            for done, future in enumerate(as_completed(list(handles)), 1):
                if future.status == "error":
                    future.result()
                if progress is not None:
                    progress(done, len(handles))


def _same(value: Any) -> Any:
    return value


@contextmanager
def _explained() -> Iterator[None]:
    """A cluster that is lost, or keeps dying, in words."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    try:
        yield
    except KilledWorker as error:
        raise StateError(
            "workers of the cluster died again and again on the same partition, perhaps out of "
            f"memory: give them more, or write smaller files ({error})"
        ) from None
    except FutureCancelledError as error:
        raise StateError(
            f"the cluster was lost: check its scheduler and start again ({error})"
        ) from None
