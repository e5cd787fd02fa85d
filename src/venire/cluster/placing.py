"""Where functions of partitions run: on the workers of a Dask cluster, or in this process.

Nothing is put on a worker by hand. Everything there is what a function returned, of files or of
other such results, so that whatever a dead worker held is computed again by others.

A client of a Dask cluster: one that runs, or one that is started on this machine.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Protocol

from venire.errors import InputError, MissingExtra, StateError

__all__ = ["LOCAL", "Here", "OnDask", "Place", "Progress", "connected"]

#: The address that stands for a cluster of this machine.
LOCAL = "local"

#: Seconds to wait for a scheduler.
PATIENCE = 10

#: What a cluster of ours does otherwise than Dask's default. Partitions stay where they were read.
#: They are all needed in every iteration, so that spilling some of them to disk, which is slow,
#: is put off until a worker has hardly any memory left.
CONFIG = {
    "distributed.scheduler.work-stealing": False,
    "distributed.worker.memory.target": 0.85,
    "distributed.worker.memory.spill": 0.9,
    "distributed.worker.memory.pause": 0.93,
    "distributed.worker.memory.terminate": 0.97,
}


@contextmanager
def connected(
    address: str, workers: int | None = None, memory: str | float = "auto"
) -> Iterator[Any]:
    """A client of the scheduler at this address, such as tcp://10.0.0.1:8786.

    "local" starts a cluster on this machine: a worker process for each processor, or as many as
    `workers` says, each with a share of the memory, or `memory` of it ("2GB"). A worker that dies
    is started again. At the end it is stopped.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtra("dask", "distributed") from None
    from venire.estimators.passes.blocks import usable_processors

    with ExitStack() as stack:
        if address == LOCAL:
            stack.enter_context(dask.config.set(CONFIG))
            cluster = LocalCluster(
                n_workers=workers or usable_processors(),
                threads_per_worker=1,
                memory_limit=memory,
                dashboard_address="127.0.0.1:0",  # any free port, and of this machine alone
                silence_logs=logging.CRITICAL,
            )
            stack.enter_context(cluster)
            yield stack.enter_context(Client(cluster))
            return
        try:
            client = Client(address, timeout=PATIENCE)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(
                f"there is no Dask scheduler at {address!r} ({error}): give the address that "
                f"`dask scheduler` prints, such as tcp://10.0.0.1:8786, or {LOCAL!r}"
            ) from None
        yield stack.enter_context(client)


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
