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
