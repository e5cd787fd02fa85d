"""Single labels with servers that share a PostgreSQL: sh scripts/bench shared --storage URL.

For each number of servers: a new database, a dozen streams, `next` and `label` one by one over
plain connections, to the owner of each stream and to any server, which passes them on. Beside the
rates stands the processor time per label of servers, of PostgreSQL and of this program, which other
work on the machine changes less. One server that owns the store alone is the rival.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.wires import Wire, expect, spread, stream
from venire.storage import open_storage

PEOPLE, STREAMS, CONNECTIONS = 10, 12, 60
TICKS = os.sysconf("SC_CLK_TCK")


class Servers:
    """Servers on one store."""

    def __init__(self, storage: str, count: int) -> None:
        """Start `count` of them; 0 for one that owns the store alone."""
        self.storage, self.key = storage, ""
        self.processes: list[subprocess.Popen[str]] = []
        self.ports: list[int] = []
        for _ in range(max(1, count)):
            self._start(["--shared"] if count else [])

    def _start(self, options: list[str]) -> None:
        env = {**os.environ, "VENIRE_RATE": "0", "VENIRE_LOG_LEVEL": "warning"}
        command = [
            sys.executable,
            "-m",
            "venire",
            "serve",
            "--storage",
            self.storage,
            "--port",
            "0",
        ]
        process = subprocess.Popen([*command, *options], env=env, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"(vk_\S+)", line):
                self.key = found[1]
            if found := re.search(r"listening on .*:(\d+)", line):
                self.ports.append(int(found[1]))
                return
        raise RuntimeError("a server did not start")

    def port_of(self, name: str) -> int:
        """The port of the server that owns a stream."""
        with open_storage(self.storage, owner=False) as store:
            members = store.members()
        address = members.addresses.get(members.owner(name) or -1, "")
        return int(address.rpartition(":")[2]) if address else self.ports[0]

    def stop(self) -> None:
        """End them."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


def processor(pids: Sequence[int]) -> float:
    """Seconds of processor time that processes have used."""
    used = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            fields = _stat(pid)
            used += int(fields[11]) + int(fields[12])
    return used / TICKS


def _stat(pid: int) -> list[str]:
    """What Linux says about a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


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


def new_database(server: str, name: str) -> str:
    """An empty database beside the one of an address."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    return re.sub(r"(//[^/]*)/[^?]*", rf"\1/{name}", server)


async def measure(servers: Servers, size: int) -> None:
    first = Wire(servers.ports[0], servers.key)
    names = [f"s{n}" for n in range(STREAMS)]
    for name in names:
        settings = stream(name, PEOPLE, 10_000, policy=f"fixed-overlap:{PEOPLE}")
        await expect(first, "POST", "/v1/streams", settings)
    await asyncio.sleep(3 if len(servers.ports) == 1 else 8)  # until they are shared out
    draw = random.Random(15)
    ways = ("owner",) if len(servers.ports) == 1 else ("owner", "any")
    for turn, way in enumerate(("warm-up", *ways)):
        for name in names:
            rows = [{"id": f"{turn}-{n}"} for n in range(size // PEOPLE // STREAMS)]
            await expect(first, "POST", f"/v1/streams/{name}/items", rows)
        at = {name: servers.port_of(name) for name in names}
        await _round(servers, names, at if way != "any" else {}, size, way, draw)
    first.close()


async def _round(
    servers: Servers,
    names: list[str],
    at: dict[str, int],
    size: int,
    way: str,
    draw: random.Random,
) -> None:
    each = max(1, CONNECTIONS // len(servers.ports))
    wires = {port: [Wire(port, servers.key) for _ in range(each)] for port in servers.ports}
    turns = [(name, who) for who in range(PEOPLE) for name in names] * (size // PEOPLE // STREAMS)
    tokens: list[tuple[str, str]] = []

    def wire(name: str) -> int:
        return at.get(name) or draw.choice(servers.ports)

    async def take(wire: Wire, job: tuple[str, int]) -> None:
        got = await expect(wire, "GET", f"/v1/streams/{job[0]}/next?labeler=m{job[1]}")
        tokens.append((job[0], got["token"]))

    async def label(wire: Wire, job: tuple[str, str]) -> None:
        await expect(wire, "POST", f"/v1/assignments/{job[1]}/label", {"said": "ok"})

    async def through(jobs: Sequence[Any], do: Any) -> tuple[float, int]:
        parts: dict[int, list[Any]] = {port: [] for port in servers.ports}
        for job in jobs:
            parts[wire(job[0])].append(job)
        start = asyncio.get_running_loop().time()
        await asyncio.gather(*(spread(wires[port], part, do) for port, part in parts.items()))
        return asyncio.get_running_loop().time() - start, len(jobs)

    pids = [process.pid for process in servers.processes]

    def used() -> tuple[float, ...]:
        database = database_processes(servers.storage)
        return processor(pids), processor(database), processor([os.getpid()])

    before = used()
    asked, count = await through(turns, take)
    labelled, _ = await through(tokens, label)
    after = used()
    cost = [1000 * (b - a) / count for a, b in zip(before, after, strict=True)]
    if way != "warm-up":
        print(
            f"{len(pids)} server(s), to {way}: {count / (asked + labelled):,.0f} next and label a "
            f"second; a label {count / labelled:,.0f}/s; ms of processor time for both: servers "
            f"{cost[0]:.2f}, PostgreSQL {cost[1]:.2f}, load {cost[2]:.2f}",
            flush=True,
        )
    for wired in wires.values():
        for one in wired:
            one.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure each number of servers in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", required=True, help="a PostgreSQL, where databases are made")
    parser.add_argument("--servers", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--size", type=int, default=6000, help="labels in a round")
    options = parser.parse_args(argv)
    for count in options.servers:
        storage = new_database(options.storage, f"venire_shared_{count}")
        servers = Servers(storage, count)
        try:
            print(f"{'shared' if count else 'alone'}:", flush=True)
            asyncio.run(measure(servers, options.size))
        finally:
            servers.stop()


if __name__ == "__main__":
    main()
