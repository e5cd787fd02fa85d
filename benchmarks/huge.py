"""What requests of other streams wait for while one stream is huge, and is made to work.

`sh scripts/load --only huge [--huge N]`: a stream of N open items, with the default policy and
learner, whose slots are closed every two seconds. One after the other it is sent items, labels and
labelers in large requests, asked for work, and made to explain. Beside it a process of its own
(`benchmarks.probe`) asks a small stream, `/health` and an empty endpoint of another server, every
five milliseconds; for each kind of work this prints the longest that a request waited, and the 99th
percentile. An empty endpoint waits for nothing but the processors, and an fsync of a page in the
folder of the store for nothing but the disk: what they show is no fault of the server. The bodies
are written out before they are needed, so that the load takes little itself.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks.probe import SMALL
from benchmarks.wires import Target, Wire, expect

__all__ = ["one_huge"]

PEOPLE, PIECE = 20, 20_000
HUGE = {
    "name": "huge",
    "classes": ["spam", "ok"],
    "panel": [{"id": f"m{n}", "capacity": 1000} for n in range(PEOPLE)],
    "slot_seconds": 2.0,
    "default_weight": 1e6,
}
_OK = {"said": "ok"}
OTHERS = ("items", "next", "label", "health")
MACHINE = ("empty", "disk")


class Disturbance:
    """The work that a huge stream is made to do, and when each kind of it was done."""

    def __init__(self, target: Target, items: int) -> None:
        self._target, self._items = target, items
        self.times: list[tuple[str, float, float]] = []

    @asynccontextmanager
    async def phase(self, name: str) -> AsyncIterator[None]:
        """Whatever is done meanwhile goes by this name; half a second of rest before and after."""
        await asyncio.sleep(0.5)
        begun = time.monotonic()
        yield
        self.times.append((name, begun, time.monotonic()))
        await asyncio.sleep(0.5)

    async def send(self, name: str, path: str, batches: Iterable[Any], wires: int = 1) -> None:
        """Send bodies, one after the other over each connection."""
        bodies = [json.dumps(batch).encode() for batch in batches]
        async with self.phase(name):
            await asyncio.gather(*(self._send(w, path, bodies) for w in self._target.wires(wires)))

    async def _send(self, wire: Wire, path: str, bodies: list[bytes]) -> None:
        while bodies:
            status, answer = await wire.ask("POST", f"/v1/streams/huge/{path}", bodies.pop(0))
            if status != 200:
                raise RuntimeError(f"{path}: {status} {answer[:200]!r}")
        wire.close()

    async def run(self) -> None:
        """Everything."""
        rows = [{"id": f"h{n}", "payload": "text " * 20} for n in range(self._items)]
        batches = [rows[k : k + PIECE] for k in range(0, len(rows), PIECE)]
        async with self.phase("at rest"):
            await asyncio.sleep(4)
        await self.send(f"{PIECE:,} items in a request", "items", batches)
        async with self.phase("slots are closed"):
            await asyncio.sleep(10)
        names = [f"h{n}" for n in range(min(self._items, 5 * PIECE))]
        said = [_said(name, f"m{n % PEOPLE}", n) for n, name in enumerate(names)]
        batches = [said[k : k + PIECE] for k in range(0, len(said), PIECE)]
        await self.send(f"{PIECE:,} labels in a request", "labels", batches)
        said = [_said(name, f"m{(n + 1) % PEOPLE}", n) for n, name in enumerate(names)]
        batches = [said[k : k + PIECE] for k in range(0, len(said), PIECE)]
        await self.send(f"{PIECE:,} labels in each of three requests", "labels", batches, 3)
        async with self.phase("slots are closed, and learned from"):
            await asyncio.sleep(20)
        crowds = [[_said(f"h{n}", f"new{k}-{n}", n) for n in range(2000)] for k in range(3)]
        await self.send("2,000 newcomers in a request", "labels", crowds)
        async with self.phase("work is asked for, and answered"):
            given = await self._pull()
        async with self.phase("items are explained"):
            await self._explain(["h0", f"h{self._items - 1}", *given[:2], *given[-2:]])
        async with self.phase("at rest again"):
            await asyncio.sleep(4)

    async def _pull(self) -> list[str]:
        """Ask for work and answer it; the items that were given."""
        (wire,) = self._target.wires(1)
        given = list[str]()
        for n in range(100):
            path = f"/v1/streams/huge/next?labeler=m{n % PEOPLE}"
            status, got = await wire.ask("GET", path)
            if status == 200:  # the policy may want nothing of this labeler
                lease = json.loads(got)
                given.append(lease["item"])
                await expect(wire, "POST", f"/v1/assignments/{lease['token']}/label", _OK)
        wire.close()
        return given

    async def _explain(self, items: list[str]) -> None:
        async def one(wire: Wire, item: str) -> None:
            found = await expect(wire, "GET", f"/v1/streams/huge/items/{item}/explain")
            how = "replayed" if found["complete"] else "as the log says"
            print(f"  {item}: {len(found['given'])} assignments, {how}")
            wire.close()

        await asyncio.gather(*map(one, self._target.wires(len(items)), items))


def _said(item: str, labeler: str, n: int) -> dict[str, str]:
    """A label; one in five says otherwise than most."""
    return {"item": item, "labeler": labeler, "said": "spam" if n % 5 else "ok"}


async def one_huge(target: Target, items: int) -> None:
    """Print what others wait while a stream of so many items works."""
    (wire,) = target.wires(1)
    for settings in (SMALL, HUGE):
        await expect(wire, "POST", "/v1/streams", settings)
    wire.close()
    command = [sys.executable, "-m", "benchmarks.probe"]
    probe = subprocess.Popen(
        [*command, str(target.port), target.key, str(target.empty_port), str(target.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    work = Disturbance(target, items)
    try:
        await work.run()
    finally:
        samples = json.loads(probe.communicate()[0])
    print(f"one stream of {items:,} items; others wait, p99 and most, in ms:")
    for name, begun, ended in work.times:
        seen = [(took, what) for at, took, what in samples if at < ended and at + took > begun]
        figures = ", ".join(_figures(what, seen) for what in (*OTHERS, *MACHINE))
        most = max(took for took, what in seen if what in OTHERS)
        print(f"  {name} ({ended - begun:.1f} s): most {1000 * most:.0f}; {figures}")


def _figures(what: str, seen: list[tuple[float, str]]) -> str:
    took = sorted(1000 * seconds for seconds, of in seen if of == what)
    return f"{what} {took[int(0.99 * (len(took) - 1))]:.0f} {took[-1]:.0f}"
