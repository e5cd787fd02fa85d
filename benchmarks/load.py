"""A load on `venire serve`, on loopback and bounded: sh scripts/load [--seconds N] [--storage URL].

Single labels are measured against an endpoint of FastAPI that reads the same body and does
nothing, in rounds that take turns, in the same run. Both servers are processes of their own; the
load comes from this one, over plain sockets, since an HTTP library would be what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

EMPTY = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
class Said(BaseModel):
    said: str
app = FastAPI()
@app.post("/v1/assignments/{token}/label")
async def label(token: str, body: Said) -> dict[str, str]:
    return {}
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning", timeout_keep_alive=75)
"""
CONNECTIONS = 200
HOST = "127.0.0.1"


class Wire:
    """One connection that is kept, and the requests on it."""

    def __init__(self, port: int, key: str) -> None:
        self._port, self._key = port, key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection(HOST, self._port)
        reader, writer = self._streams
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {self._key}\r\n"
        if sent:
            head += "Content-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        answer = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"content-length: (\d+)", answer, re.I)
        length = int(found[1]) if found else 0
        return int(answer[9:12]), await reader.readexactly(length) if length else b""

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def spread(
    wires: Sequence[Wire], jobs: Sequence[Any], do: Callable[[Wire, Any], Awaitable[None]]
) -> tuple[float, list[float]]:
    """Do the jobs over the connections; jobs a second, and the seconds of each."""
    left, took = list(reversed(jobs)), []

    async def run(wire: Wire) -> None:
        while left:
            job, start = left.pop(), time.perf_counter()
            await do(wire, job)
            took.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(run(wire) for wire in wires))
    return len(jobs) / (time.perf_counter() - start), took


async def expect(wire: Wire, method: str, path: str, body: Any = None) -> Any:
    status, answer = await wire.ask(method, path, body)
    if status >= 300 or status == 204:
        raise RuntimeError(f"{method} {path}: {status} {answer[:200]!r}")
    return json.loads(answer) if answer.startswith((b"{", b"[")) else answer


class Target:
    """The servers under load."""

    def __init__(self, storage: str, folder: Path) -> None:
        self.storage, self.key, self.port = storage, "", 0
        self.start()
        script = folder / "empty.py"
        script.write_text(EMPTY)
        self.empty_port = self.port + 1 if self.port < 65000 else self.port - 1
        self.empty = subprocess.Popen([sys.executable, str(script), str(self.empty_port)])

    def start(self) -> None:
        """Start the server, on a port that is free."""
        env = {**os.environ, "VENIRE_RATE": "0", "VENIRE_MAX_WAITING": "2000"}
        command = [sys.executable, "-m", "venire", "serve", "--storage", self.storage]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--log-level", "warning"],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if found := re.search(r"(vk_\S+)", line):
                self.key = found[1]
            if found := re.search(r"listening on .*:(\d+)", line):
                self.port = int(found[1])
                break

    def restart(self) -> None:
        """End the server, and start it on the same store."""
        self.process.terminate()
        self.process.wait()
        self.start()

    def wires(self, count: int = CONNECTIONS, empty: bool = False) -> list[Wire]:
        return [Wire(self.empty_port if empty else self.port, self.key) for _ in range(count)]

    def memory(self) -> float:
        """Resident megabytes of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+)", status)
        return int(found[1]) / 1024 if found else 0.0

    def stop(self) -> None:
        for process in (self.process, self.empty):
            process.terminate()
            process.wait()


def stream(name: str, labelers: int, capacity: int, **more: Any) -> dict[str, Any]:
    panel = [
        {"id": f"m{n}", "competence": 0.7 + 0.2 * n / labelers, "capacity": capacity}
        for n in range(labelers)
    ]
    fixed = {"learning": "known", "slot_seconds": 1.0, "classes": ["spam", "ok"]}
    return {"name": name, "panel": panel, **fixed, **more}


def p99(values: Sequence[float]) -> str:
    ordered = sorted(values)
    middle, last = statistics.median(ordered), ordered[int(0.99 * (len(ordered) - 1))]
    return f"median {1000 * middle:.1f} ms, p99 {1000 * last:.1f} ms"


async def single_labels(target: Target, rounds: int, size: int) -> None:
    wires, blank = target.wires(), target.wires(empty=True)
    people = 20
    settings = stream("single", people, 10_000, policy=f"fixed-overlap:{people}")
    await expect(wires[0], "POST", "/v1/streams", settings)
    rates: list[tuple[float, float]] = []
    asked: list[float] = []
    labelled: list[float] = []
    for n in range(rounds):
        items = [{"id": f"{n}-{k}", "payload": "text"} for k in range(size // people)]
        await expect(wires[0], "POST", "/v1/streams/single/items", items)
        tokens: list[str] = []

        async def take(wire: Wire, who: int, tokens: list[str] = tokens) -> None:
            got = await expect(wire, "GET", f"/v1/streams/single/next?labeler=m{who}")
            tokens.append(got["token"])

        async def label(wire: Wire, token: str) -> None:
            await expect(wire, "POST", f"/v1/assignments/{token}/label", {"said": "ok"})

        turns = [who for _ in items for who in range(people)]
        nexts, took = await spread(wires, turns, take)
        asked += took
        empty, _ = await spread(blank, tokens, label)
        rate, took = await spread(wires, tokens, label)
        labelled += took
        rates.append((rate, empty))
        print(f"  round {n}: {rate:,.0f} labels/s, empty {empty:,.0f}/s, {nexts:,.0f} next/s")
    rates = rates[1:] or rates
    ratio = statistics.median(rate / empty for rate, empty in rates)
    print(f"single labels: {ratio:.0%} of an empty endpoint's rate (target 40 %)")
    print(f"next: {p99(asked)}; label: {p99(labelled)} at {CONNECTIONS} connections")
    for wire in (*wires, *blank):
        wire.close()


async def bulk_labels(target: Target, items: int, people: int, batch: int) -> None:
    (wire,) = target.wires(1)
    settings = stream("bulk", people, 1, policy=f"fixed-overlap:{people}")
    await expect(wire, "POST", "/v1/streams", settings)
    for start in range(0, items, 5000):
        rows = [{"id": f"i{n}"} for n in range(start, min(items, start + 5000))]
        await expect(wire, "POST", "/v1/streams/bulk/items", rows)
    rows = [
        {"item": f"i{n}", "labeler": f"m{m}", "said": "ok"}
        for m in range(people)
        for n in range(items)
    ]
    batches = [rows[k : k + batch] for k in range(0, len(rows), batch)]

    async def send(wire: Wire, sent: list[dict[str, str]]) -> None:
        answer = await expect(wire, "POST", "/v1/streams/bulk/labels", sent)
        if answer["accepted"] + answer["late"] != len(sent):
            raise RuntimeError(str(answer)[:300])

    await send(wire, batches.pop())
    half, several = len(batches) // 2, target.wires(3)
    alone, _ = await spread([wire], batches[:half], send)
    together, _ = await spread(several, batches[half:], send)
    print(
        f"bulk labels: {batch * together:,.0f} a second over {len(several)} connections, "
        f"{batch * alone:,.0f} over one, in batches of {batch:,} (target 50,000)"
    )
    for used in (wire, *several):
        used.close()


async def long_polls(target: Target, people: int, rounds: int) -> None:
    wires = target.wires(people)
    settings = stream("polls", people, 1, policy="fixed-overlap:1")
    await expect(wires[0], "POST", "/v1/streams", settings)
    (producer,) = target.wires(1)
    took: list[float] = []

    async def wait(wire: Wire, who: int) -> float:
        path = f"/v1/streams/polls/next?labeler=m{who}&wait=30"
        got = await expect(wire, "GET", path)
        arrived = time.perf_counter()
        await expect(wire, "POST", f"/v1/assignments/{got['token']}/label", {"said": "ok"})
        return arrived

    for n in range(rounds):
        waiting = [asyncio.ensure_future(wait(wire, who)) for who, wire in enumerate(wires)]
        await asyncio.sleep(0.5)
        rows = [{"id": f"{n}-{k}"} for k in range(people)]
        start = time.perf_counter()
        await expect(producer, "POST", "/v1/streams/polls/items", rows)
        took += [arrived - start for arrived in await asyncio.gather(*waiting)]
    print(f"long polls: {people} at a time, work reaches them after {p99(took)}")
    for wire in (*wires, producer):
        wire.close()


async def steady(target: Target, seconds: float) -> None:
    """A steady load of everything; what the server's memory does."""
    people = 32
    wires = target.wires(people)
    settings = stream("steady", people, 2, policy="fixed-overlap:3")
    await expect(wires[0], "POST", "/v1/streams", settings)
    (producer,) = target.wires(1)
    end, done, seen = time.monotonic() + seconds, 0, []

    async def labeler(wire: Wire, who: int) -> None:
        nonlocal done
        while time.monotonic() < end:
            status, answer = await wire.ask("GET", f"/v1/streams/steady/next?labeler=m{who}&wait=1")
            if status == 200:
                token = json.loads(answer)["token"]
                await wire.ask("POST", f"/v1/assignments/{token}/label", {"said": "ok"})
                done += 1

    async def produce() -> None:
        n = 0
        while time.monotonic() < end:
            rows = [{"id": f"{n}-{k}", "payload": "text"} for k in range(100)]
            await expect(producer, "POST", "/v1/streams/steady/items", rows)
            n += 1
            seen.append(target.memory())
            await asyncio.sleep(0.5)

    await asyncio.gather(produce(), *(labeler(wire, who) for who, wire in enumerate(wires)))
    tenth = max(1, len(seen) // 10)
    first, last = statistics.mean(seen[tenth : 2 * tenth]), statistics.mean(seen[-tenth:])
    print(
        f"memory: {first:.0f} MB early, {last:.0f} MB late, over {seconds:.0f} s, {done:,} labels"
    )
    for wire in (*wires, producer):
        wire.close()


async def defaults(target: Target, size: int) -> None:
    """`next` and `label` as a stream is by default, before and after a restart."""
    people = 20
    (wire,) = target.wires(1)
    panel = [{"id": f"m{n}", "capacity": 10_000} for n in range(people)]
    settings = {"name": "defaults", "classes": ["spam", "ok"], "panel": panel}
    await expect(wire, "POST", "/v1/streams", settings)
    for start in range(0, 4 * size // people, 5000):
        rows = [{"id": f"d{n}", "weight": 1e6} for n in range(start, start + 5000)]
        await expect(wire, "POST", "/v1/streams/defaults/items", rows[: 4 * size // people - start])
    wire.close()
    for when in ("before", "after"):
        if when == "after":
            target.restart()
        wires, tokens = target.wires(50), list[str]()

        async def take(wire: Wire, who: int, tokens: list[str] = tokens) -> None:
            got = await expect(wire, "GET", f"/v1/streams/defaults/next?labeler=m{who}")
            tokens.append(got["token"])

        async def label(wire: Wire, token: str) -> None:
            await expect(wire, "POST", f"/v1/assignments/{token}/label", {"said": "ok"})

        _, asked = await spread(wires, [n % people for n in range(size)], take)
        _, labelled = await spread(wires, tokens, label)
        print(f"defaults, {when} a restart: next {p99(asked)}; label {p99(labelled)}")
        for wire in wires:
            wire.close()


async def one_huge(target: Target, items: int) -> None:
    """What a request of a small stream waits while another is huge, and is made to work."""
    wire, other, health, slow = target.wires(4)
    small = stream("small", 5, 10_000, policy="fixed-overlap:5")
    await expect(wire, "POST", "/v1/streams", small)
    huge = {"name": "huge", "classes": ["spam", "ok"], "slot_seconds": 0.5, "default_weight": 1e6}
    await expect(wire, "POST", "/v1/streams", huge)
    took: dict[str, list[float]] = {}
    now, done = "at rest", False

    async def ask(wire: Wire, method: str, path: str, body: Any = None) -> Any:
        start = time.perf_counter()
        answer = await expect(wire, method, path, body)
        took.setdefault(now, []).append(time.perf_counter() - start)
        return answer

    async def look() -> None:
        n = 0
        while not done:
            n += 1
            await ask(other, "POST", "/v1/streams/small/items", [{"id": f"s{n}"}])
            path = f"/v1/streams/small/next?labeler=m{n % 5}"
            token = (await ask(other, "GET", path))["token"]
            await ask(other, "POST", f"/v1/assignments/{token}/label", {"said": "ok"})
            await ask(health, "GET", "/health")
            await asyncio.sleep(0.005)

    looking = asyncio.ensure_future(look())
    await asyncio.sleep(2)
    now = "20,000 items come"
    for start in range(0, items, 20_000):
        rows = [{"id": f"h{n}", "payload": "text"} for n in range(start, start + 20_000)]
        await expect(wire, "POST", "/v1/streams/huge/items", rows[: items - start])
    now = "slots are closed"
    await asyncio.sleep(6)
    now = "2,000 labelers come"
    rows = [{"item": f"h{n}", "labeler": f"new{n}", "said": "ok"} for n in range(2000)]
    await expect(wire, "POST", "/v1/streams/huge/labels", rows)
    now = "items are explained"
    await asyncio.gather(
        *(expect(w, "GET", "/v1/streams/huge/items/h1/explain") for w in (wire, slow))
    )
    done = True
    await looking
    for when, waited in took.items():
        print(f"one stream of {items:,} items, {when}: others wait {p99(waited)}, "
              f"at most {1000 * max(waited):.0f} ms")  # fmt: skip
    for used in (wire, other, health, slow):
        used.close()


async def everything(target: Target, options: argparse.Namespace) -> None:
    await asyncio.sleep(1.5)
    await defaults(target, options.size)
    await one_huge(target, options.huge)
    await single_labels(target, options.rounds, options.size)
    await bulk_labels(target, options.items, 10, 10_000)
    await long_polls(target, 200, 3)
    await steady(target, options.seconds)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--storage", default="", help="default: a new SQLite file")
    parser.add_argument("--seconds", type=float, default=20, help="of the steady load")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=2000, help="labels in a round")
    parser.add_argument("--items", type=int, default=10_000, help="of the bulk load")
    parser.add_argument("--huge", type=int, default=100_000, help="items of the huge stream")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        storage = options.storage or f"sqlite:///{folder}/load.db"
        target = Target(storage, Path(folder))
        try:
            asyncio.run(everything(target, options))
        finally:
            target.stop()


if __name__ == "__main__":
    main()
