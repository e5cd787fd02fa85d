"""What the loads stand on: connections over plain sockets, and the servers that they go to."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

__all__ = ["CONNECTIONS", "Target", "Wire", "expect", "p99", "spread", "stream"]

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
        sent = body if isinstance(body, bytes) else b""
        if body is not None and not sent:
            sent = json.dumps(body).encode()
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
        self.storage, self.folder, self.key, self.port = storage, folder, "", 0
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
