"""Memory and processor of a server by its streams: scripts/bench footprint [--streams 1 10 100].

Each stream has twenty labelers, 300 open items of 200 characters and default settings but for
slots of ten seconds. The server does nothing for a while; then labelers ask for work and label it,
so many pairs a second over all streams. `--access-log` measures what a line of that log costs.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.postgres import processor
from benchmarks.wires import Target, Wire, expect

PEOPLE, ITEMS = 20, 300


async def make(wire: Wire, count: int) -> list[str]:
    """The streams, with their items."""
    names = [f"s{n}" for n in range(count)]
    rows = [{"id": f"i{n}", "payload": "x" * 200} for n in range(ITEMS)]
    for name in names:
        panel = [{"id": f"m{n}"} for n in range(PEOPLE)]
        settings = {"name": name, "classes": ["spam", "ok"], "slot_seconds": 10, "panel": panel}
        await expect(wire, "POST", "/v1/streams", settings)
        await expect(wire, "POST", f"/v1/streams/{name}/items", rows)
    return names


async def pair(wire: Wire, job: tuple[str, int]) -> None:
    """One labeler asks for work, and labels it if there is some."""
    name, who = job
    status, answer = await wire.ask("GET", f"/v1/streams/{name}/next?labeler=m{who}")
    if status == 200:
        token = answer.split(b'"token":"', 1)[1].split(b'"', 1)[0].decode()
        said = {"said": "spam" if hash((token, who)) % 4 else "ok"}
        await expect(wire, "POST", f"/v1/assignments/{token}/label", said)


async def load(target: Target, names: list[str], rate: float, seconds: float) -> None:
    """So many pairs a second, each at its time."""
    wires = target.wires(8)
    turns = itertools.cycle([(name, who) for who in range(PEOPLE) for name in names])
    begun = time.perf_counter()
    for n in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, begun + n / rate - time.perf_counter()))
        await pair(wires[n % 8], next(turns))
    for wire in wires:
        wire.close()


async def measure(count: int, rate: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = Target(f"sqlite:///{folder}/venire.db", Path(folder))
        try:
            (wire,) = target.wires(1)
            names = await make(wire, count)
            await asyncio.sleep(15)
            begun = processor([target.process.pid])
            await asyncio.sleep(seconds)
            idle, still = processor([target.process.pid]) - begun, target.memory()
            begun = processor([target.process.pid])
            await load(target, names, rate, seconds)
            busy, then = processor([target.process.pid]) - begun, target.memory()
            used = f"{idle / seconds:.1%} | {then:.0f} MB | {busy / seconds:.1%}"
            print(f"| {count} | {still:.0f} MB | {used} |", flush=True)
        finally:
            target.stop()


async def access_log(rounds: int, size: int) -> None:
    """What a line costs: on the loop that serves, and in the thread that writes."""
    from starlette.types import Message, Receive, Scope, Send

    from venire.model import Role
    from venire.server.edge.guard import Caller
    from venire.server.edge.monitoring import RequestLines, RequestLog

    async def empty(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 100})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        del message

    lines = RequestLines(io.StringIO(), as_json=True, most=size)
    state = {"caller": Caller("k_1", "ann", Role.LABELER, "ann")}
    scope = {"type": "http", "method": "GET", "venire.route": "/v1/me", "state": state}
    for _ in range(rounds):
        took = []
        for app in (empty, RequestLog(empty, lines)):
            begun = time.process_time()
            for _ in range(size):
                await app(scope, receive, send)
            took.append((time.process_time() - begun) / size * 1e6)
        begun = time.process_time()
        lines.write()
        written = (time.process_time() - begun) / size * 1e6
        print(f"a request: {took[1] - took[0]:.1f} us on the loop, {written:.1f} us in the thread")


def main(words: Sequence[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="footprint")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rate", type=float, default=20.0, help="pairs a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--access-log", action="store_true")
    given = parser.parse_args(words)
    if given.access_log:
        asyncio.run(access_log(5, 20_000))
        return
    print(
        "| streams | memory, idle | processor, idle | memory, busy | processor, busy |\n|-|-|-|-|-|"
    )
    for count in given.streams:
        asyncio.run(measure(count, given.rate, given.seconds))
