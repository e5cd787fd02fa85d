"""Single labels with servers that share a PostgreSQL: sh scripts/bench shared.

For each number of servers: a new database, a dozen streams, `next` and `label` one by one. They go
to the owner of each stream and to any server, which passes them on, over plain connections; and by
`venire.AsyncClient` with the addresses of all servers, which finds the owner itself. Beside the
rates stands the processor time per pair of servers, of PostgreSQL and of this program, which other
work on the machine changes less; what servers and PostgreSQL use while nothing is asked is measured
first and taken off. One server that owns the store alone is the rival: everything is also told as a
ratio to it. Without --storage a PostgreSQL is started for the time of the run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.postgres import database_processes, new_database, postgres, processor
from benchmarks.wires import Wire, expect, spread, stream
from venire import AsyncClient
from venire.client import Work
from venire.server.store import open_storage

PEOPLE, STREAMS, CONNECTIONS, TASKS = 10, 12, 60, 16
OWNER, ANY, CLIENT = "the owner", "any", "the owner, by the client itself"

Job = tuple[str, str]  # the stream, and a labeler or a token


class Cost(NamedTuple):
    """Pairs of `next` and `label` a second, and milliseconds of processor time for a pair."""

    rate: float
    servers: float
    postgres: float
    load: float


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
        command = [sys.executable, "-m", "venire", "serve", "--storage", self.storage]
        process = subprocess.Popen(
            [*command, "--port", "0", *options], env=env, stdout=subprocess.PIPE, text=True
        )
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

    def used(self) -> tuple[float, ...]:
        """Seconds of processor time of servers, PostgreSQL and this program so far, and now."""
        pids = [process.pid for process in self.processes]
        database = processor(database_processes(self.storage))
        return processor(pids), database, processor([os.getpid()]), time.perf_counter()

    def stop(self) -> None:
        """End them."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()


class Wires:
    """Plain connections to all servers."""

    def __init__(self, servers: Servers, at: dict[str, int], draw: random.Random) -> None:
        """`at` says where a stream is; requests of others go anywhere."""
        self._at, self._draw = at, draw
        each = max(1, CONNECTIONS // len(servers.ports))
        self._wires = {
            port: [Wire(port, servers.key) for _ in range(each)] for port in servers.ports
        }

    async def next(self, jobs: Sequence[Job]) -> list[Job]:
        """Take work."""
        tokens: list[Job] = []

        async def take(wire: Wire, job: Job) -> None:
            got = await expect(wire, "GET", f"/v1/streams/{job[0]}/next?labeler={job[1]}")
            tokens.append((job[0], got["token"]))

        await self._through(jobs, take)
        return tokens

    async def label(self, jobs: Sequence[Job]) -> list[Job]:
        """Label it."""

        async def label(wire: Wire, job: Job) -> None:
            await expect(wire, "POST", f"/v1/assignments/{job[1]}/label", {"said": "ok"})

        await self._through(jobs, label)
        return []

    async def _through(self, jobs: Sequence[Job], do: Any) -> None:
        ports = list(self._wires)
        parts: dict[int, list[Job]] = {port: [] for port in ports}
        for job in jobs:
            parts[self._at.get(job[0]) or self._draw.choice(ports)].append(job)
        await asyncio.gather(*(spread(self._wires[port], part, do) for port, part in parts.items()))

    async def close(self) -> None:
        """Close them."""
        for wires in self._wires.values():
            for wire in wires:
                wire.close()


class Clients:
    """`AsyncClient` with the addresses of all servers, in a few tasks."""

    def __init__(self, servers: Servers) -> None:
        urls = [f"http://127.0.0.1:{port}" for port in servers.ports]
        self._client = AsyncClient(urls, servers.key)

    async def next(self, jobs: Sequence[Job]) -> list[Job]:
        """Take work."""
        tokens: list[Job] = []

        async def take(job: Job) -> None:
            got = await self._client.next(job[0], job[1], wait=0)
            assert isinstance(got, Work), got
            tokens.append((job[0], got.token))

        await self._through(jobs, take)
        return tokens

    async def label(self, jobs: Sequence[Job]) -> list[Job]:
        """Label it."""
        await self._through(jobs, lambda job: self._client.label(job[1], "ok"))
        return []

    async def _through(self, jobs: Sequence[Job], do: Callable[[Job], Awaitable[Any]]) -> None:
        left = list(reversed(jobs))

        async def run() -> None:
            while left:
                await do(left.pop())

        await asyncio.gather(*(run() for _ in range(TASKS)))

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()


async def measure(servers: Servers, size: int, rounds: int) -> dict[str, Cost]:
    """What a pair costs in each way: the median of some rounds, one way after the other."""
    first, names = Wire(servers.ports[0], servers.key), [f"s{n}" for n in range(STREAMS)]
    for name in names:
        settings = stream(name, PEOPLE, 10_000, policy=f"fixed-overlap:{PEOPLE}")
        await expect(first, "POST", "/v1/streams", settings)
    await asyncio.sleep(3 if len(servers.ports) == 1 else 8)  # until they are shared out
    before = servers.used()
    await asyncio.sleep(3)
    idle = [(b - a) / 3 for a, b in zip(before, servers.used(), strict=True)]
    at = {name: servers.port_of(name) for name in names}
    ways: dict[str, Callable[[], Wires | Clients]] = {
        OWNER: lambda: Wires(servers, at, random.Random(15)),
        ANY: lambda: Wires(servers, {}, random.Random(15)),
        CLIENT: lambda: Clients(servers),
    }
    if len(servers.ports) == 1:
        del ways[ANY]
    found: dict[str, list[Cost]] = {way: [] for way in ways}
    each = size // PEOPLE // STREAMS
    for turn in range(rounds + 1):
        for way, make in ways.items():
            rows = [{"id": f"{way}-{turn}-{n}"} for n in range(each)]
            for name in names:
                await expect(first, "POST", f"/v1/streams/{name}/items", rows)
            jobs = [(name, f"m{n}") for n in range(PEOPLE) for name in names] * each
            asked, before = make(), servers.used()
            await asked.label(await asked.next(jobs))
            if turn:  # the first is to warm up
                found[way].append(_cost(before, servers.used(), idle, len(jobs)))
            await asked.close()
    first.close()
    return {way: _median(costs) for way, costs in found.items()}


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(*map(statistics.median, zip(*costs, strict=True)))


def _cost(
    before: Sequence[float], after: Sequence[float], idle: Sequence[float], pairs: int
) -> Cost:
    seconds = after[3] - before[3]
    net = [after[k] - before[k] - idle[k] * seconds for k in range(2)]
    return Cost(pairs / seconds, *(1000 * used / pairs for used in (*net, after[2] - before[2])))


def told(count: int, way: str, cost: Cost, one: Cost) -> str:
    """A line of the table."""
    who = f"{count}, `--shared`" if count else "1, alone"
    whole = cost.servers + cost.postgres
    return (
        f"| {who} | {way if max(1, count) > 1 or way == CLIENT else 'it'} | {cost.rate:,.0f} "
        f"| {cost.rate / one.rate:.2f} | {cost.servers:.2f} | {cost.servers / one.servers:.2f} "
        f"| {cost.postgres:.2f} | {cost.postgres / one.postgres:.2f} "
        f"| {cost.postgres / whole:.0%} | {cost.load:.2f} | {os.getloadavg()[0]:.1f} |"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure each number of servers in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", help="a PostgreSQL, where databases are made")
    parser.add_argument("--servers", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--size", type=int, default=6000, help="labels in a round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of which to take the median")
    options = parser.parse_args(argv)
    rivals: dict[str, Cost] = {}
    print(
        f"load average before: {os.getloadavg()[0]:.1f}. x: as a ratio to the first line, or the "
        "client there. ms: processor time for a pair, without what is used while nothing is asked."
        "\n\n"
        "| servers | requests go to | pairs/s | x | servers ms | x | PostgreSQL ms | x | its share "
        "| load ms | load average |\n|-|-|-|-|-|-|-|-|-|-|-|",
        flush=True,
    )
    with postgres(options.storage) as server:
        for count in options.servers:
            servers = Servers(new_database(server, f"venire_shared_{count}"), count)
            try:
                costs = asyncio.run(measure(servers, options.size, options.rounds))
            finally:
                servers.stop()
            rivals = rivals or costs
            for way, cost in costs.items():
                one = rivals.get(way) or rivals[OWNER]
                print(told(count, way, cost, one), flush=True)


if __name__ == "__main__":
    main()
