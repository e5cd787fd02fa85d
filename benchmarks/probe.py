"""Requests of a small stream, timed, from a process of their own: python -m benchmarks.probe.

The arguments are the port of a server, a key, the port of an empty endpoint, and a folder. The
empty endpoint is asked just as often, and a file in the folder is appended to and synchronised
twenty times a second: what these two take in the same moment is the machine's doing. Ends when
nothing more comes on stdin, and then prints every request as [begun, seconds, of what].
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.wires import Wire, expect

SMALL = {
    "name": "small",
    "classes": ["spam", "ok"],
    "panel": [{"id": f"m{n}", "capacity": 1000} for n in range(5)],
    "slot_seconds": 1.0,
    "max_overlap": 1,
    "default_weight": 1e6,
}
PAUSE, DISK_PAUSE = 0.005, 0.05


class Probe:
    """Asks and asks, until told to end."""

    def __init__(self, port: int, key: str, empty: int, folder: Path) -> None:
        self._port, self._key, self._empty, self._folder = port, key, empty, folder
        self.samples: list[tuple[float, float, str]] = []
        self.going = True

    async def ask(self, wire: Wire, what: str, method: str, path: str, body: Any = None) -> Any:
        """One request, timed; then a pause."""
        begun = time.monotonic()
        answer = await expect(wire, method, path, body)
        self.samples.append((begun, time.monotonic() - begun, what))
        await asyncio.sleep(PAUSE)
        return answer

    async def small(self) -> None:
        """An item comes, is given to somebody and labelled, over and over."""
        wire, n = Wire(self._port, self._key), 0
        while self.going:
            n += 1
            await self.ask(wire, "items", "POST", "/v1/streams/small/items", [{"id": f"s{n}"}])
            path = f"/v1/streams/small/next?labeler=m{n % 5}"
            token = (await self.ask(wire, "next", "GET", path))["token"]
            path = f"/v1/assignments/{token}/label"
            await self.ask(wire, "label", "POST", path, {"said": "ok"})

    async def watch(self, port: int, what: str, method: str, path: str, body: Any = None) -> None:
        """The same request over and over."""
        wire = Wire(port, self._key)
        while self.going:
            await self.ask(wire, what, method, path, body)

    async def disk(self) -> None:
        """What any program waits for that keeps a page on this disk: an append and an fsync."""
        with (self._folder / "disk").open("wb", buffering=0) as file:

            def append() -> None:
                file.write(bytes(4096))
                os.fsync(file.fileno())

            while self.going:
                begun = time.monotonic()
                await asyncio.to_thread(append)
                self.samples.append((begun, time.monotonic() - begun, "disk"))
                await asyncio.sleep(DISK_PAUSE)

    async def run(self) -> None:
        """All of them at once."""
        ending = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        ending.add_done_callback(lambda _: setattr(self, "going", False))
        said = {"said": "ok"}
        await asyncio.gather(
            self.small(),
            self.watch(self._port, "health", "GET", "/health"),
            self.disk(),
            self.watch(self._empty, "empty", "POST", "/v1/assignments/none/label", said),
        )


def main() -> None:
    port, key, empty, folder = sys.argv[1:]
    gc.disable()
    probe = Probe(int(port), key, int(empty), Path(folder))
    asyncio.run(probe.run())
    json.dump(probe.samples, sys.stdout)


if __name__ == "__main__":
    main()
