"""A start with many streams: scripts/bench starts [--small N] [--huge N] [--storage URL].

A store is filled with small streams (300 items and 450 labels each, 20 labelers) and, if wanted,
one with many open items, and left as by a kill. Then `venire serve` is started on it, and from its
start on clients ask for /health, /ready, and to add an item to the large stream, to the first and
to the last of the small ones. With `--takeover` (PostgreSQL) two servers share the store, one of
them is killed, and clients send an item to each of its streams, through the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.postgres import processor
from benchmarks.restart import LONG, PEOPLE
from benchmarks.shared import Servers

ITEMS, LABELLED, POLL = 300, 150, 0.1


async def fill(url: str, small: int, huge: int) -> None:
    """Make the streams, print a key, and end as if killed."""
    from venire.server import ItemIn, Service, ServiceSettings, StreamSettings
    from venire.server.settings import Member
    from venire.server.store import open_storage

    service = Service(open_storage(url), settings=ServiceSettings(max_batch=100_000))
    await service.start()
    panel = tuple(Member(id=f"m{n}") for n in range(PEOPLE))
    usual = StreamSettings(classes=("spam", "ok"), panel=panel)
    for name in small_names(small):
        await service.create_stream(name, usual, actor="benchmark")
        await service.add_items(name, [ItemIn(f"i{n}", "x" * 200) for n in range(ITEMS)])
        said = [(f"i{n}", f"m{(n + k) % PEOPLE}", "ok") for n in range(LABELLED) for k in range(3)]
        await service.add_labels(name, said)
    if huge:
        large = usual.model_copy(update={"slot_seconds": LONG})
        await service.create_stream("huge", large, actor="benchmark")
        for start in range(0, huge, 5000):
            some = range(start, min(huge, start + 5000))
            await service.add_items("huge", [ItemIn(f"i{n}", "x" * 200) for n in some])
        await service.runtime.snapshot(await service.runtime.live_stream("huge"))
        await service.runtime.flush()
    print((await service.keys.create("benchmark", "admin", None)).token, flush=True)
    os._exit(0)


def small_names(count: int) -> list[str]:
    """The names of the small streams; the large one comes before them."""
    return [f"small-{n:04d}" for n in range(count)]


def call(port: int, key: str, path: str, body: Any = None) -> bytes:
    """A request, and its answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return bytes(answer.read())


def until(ask: Callable[[], object], found: dict[str, float], name: str, begun: float) -> None:
    """Ask until there is an answer, and note when that was."""
    while name not in found:
        try:
            ask()
            found[name] = time.monotonic() - begun
        except OSError:  # not yet: an HTTP error is one too
            time.sleep(POLL)


def asked(port: int, key: str, streams: Sequence[str], paths: Sequence[str]) -> dict[str, float]:
    """Seconds until paths and streams answer, asked beside each other; and all are loaded."""
    found: dict[str, float] = {}
    begun = time.monotonic()

    def add(stream: str) -> None:
        call(port, key, f"/v1/streams/{stream}/items", [{"id": f"new-{begun}", "payload": "x"}])

    def loaded() -> None:
        if json.loads(call(port, key, "/ready")).get("loading"):
            raise OSError("not all are loaded")

    asks: dict[str, Callable[[], object]] = {name: partial(add, name) for name in streams}
    asks |= {path: partial(call, port, key, path) for path in paths}
    asks["all loaded"] = loaded
    threads = [
        threading.Thread(target=until, args=(ask, found, name, begun), daemon=True)
        for name, ask in asks.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def started(url: str, key: str, streams: Sequence[str]) -> dict[str, float]:
    """Start a server on a store, ask, and end it as by a kill."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "venire", "serve", "--storage", url, "--port", str(port)]
    env = {**os.environ, "VENIRE_RATE": "0", "VENIRE_LOG_LEVEL": "warning"}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    found = asked(port, key, streams, ("/health", "/ready"))
    found["CPU"] = processor([process.pid])
    process.kill()
    process.wait()
    return found


def takeover(url: str, key: str, names: Sequence[str]) -> dict[str, float]:
    """Two servers share the streams and one is killed: seconds until its streams are served."""
    servers = Servers(url, 2)
    try:
        time.sleep(10.0)  # until they have shared them out
        mine = [name for name in names if servers.port_of(name) == servers.ports[1]]
        for name in mine:  # all of them are loaded
            call(servers.ports[0], key, f"/v1/streams/{name}")
        servers.processes[1].kill()
        found = asked(servers.ports[0], key, mine, ())
        took = sorted(found[name] for name in mine)
    finally:
        servers.stop()
    return {
        "streams": len(mine),
        "first": took[0],
        "median": took[len(took) // 2],
        "last": took[-1],
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--small", type=int, default=100, help="small streams")
    parser.add_argument("--huge", type=int, default=0, help="open items of a large stream")
    parser.add_argument("--storage", help="an empty store; default: SQLite in a temporary folder")
    parser.add_argument("--key", help="an admin key, if the store is filled already")
    parser.add_argument("--runs", type=int, default=2, help="starts")
    parser.add_argument("--takeover", action="store_true", help="let one of two servers die")
    options = parser.parse_args(argv)
    if options.fill:
        asyncio.run(fill(options.fill[0], int(options.fill[1]), int(options.fill[2])))
    with tempfile.TemporaryDirectory() as folder:
        url = options.storage or f"sqlite:///{Path(folder)}/venire.db"
        command = [sys.executable, "-m", "benchmarks.starts", "--fill", url]
        command += [str(options.small), str(options.huge)]
        key = options.key or subprocess.check_output(command, text=True).split()[-1]
        names = small_names(options.small)
        for _ in range(options.runs):
            load = os.getloadavg()[0]
            if options.takeover:
                found = takeover(url, key, names)
            else:
                found = started(url, key, [*["huge"][: options.huge], names[0], names[-1]])
            figures = ", ".join(f"{name} {value:.1f}" for name, value in found.items())
            print(f"load average {load:.0f}: {figures}", flush=True)


if __name__ == "__main__":
    main()
