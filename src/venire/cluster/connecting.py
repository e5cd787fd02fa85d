"""A client of a Dask cluster: one that runs, or one that is started on this machine."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from venire.errors import InputError, MissingExtra

__all__ = ["LOCAL", "connected"]

#: The address that stands for a cluster of this machine.
LOCAL = "local"

#: Seconds to wait for a scheduler.
PATIENCE = 10


@contextmanager
def connected(
    address: str, workers: int | None = None, memory: str | float = "auto"
) -> Iterator[Any]:
    """A client of the scheduler at this address, such as tcp://10.0.0.1:8786.

    "local" starts a cluster on this machine: a worker process for each processor, or as many as
    `workers` says, each with a share of the memory, or `memory` of it ("2GB"). A worker that dies
    is started again. At the end it is stopped.

    Partitions stay where they were read: work stealing, which moves them about, is off.
    """
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtra("dask", "distributed") from None
    from venire.estimators.passes.blocks import usable_processors

    with ExitStack() as stack:
        if address == LOCAL:
            stack.enter_context(dask.config.set({"distributed.scheduler.work-stealing": False}))
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
