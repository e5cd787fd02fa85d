"""A server to talk to: in this process for the routes, in a process of its own for the rest."""

from __future__ import annotations

import functools
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from starlette.testclient import TestClient

import venire
from tests.forked import FORKS, Forked
from venire import Client
from venire.server import Clock, ServerSettings, Service, create_app
from venire.server.store import open_storage

SOURCE = str(Path(venire.__file__).parent.parent)
CLASSES = ["spam", "ok"]
PANEL = [{"id": name, "competence": 0.8, "capacity": 2} for name in ("ann", "bob", "cat", "dan")]
STREAM: dict[str, Any] = {"classes": CLASSES, "panel": PANEL, "learning": "known"}
ROLES = ("admin", "producer", "labeler", "viewer", "reviewer")


def until(true: Callable[[], bool], seconds: float = 280.0) -> None:
    """Wait for something to be so; the limit catches a hang, on any machine."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def unused_port() -> int:
    """A port for a server that may be killed and started again.

    Not one of those that the system gives to connections and to listeners that take any: while the
    server is down, another program could get it.
    """
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(15_000, 30_000)
        with socket.socket() as tried, suppress(OSError):
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return port


@dataclass
class InProcess:
    """A server on a store in memory, and a key of each role."""

    http: TestClient
    service: Service
    keys: dict[str, str]

    def call(self, method: str, path: str, role: str | None = "admin", **more: Any) -> Any:
        headers = dict(more.pop("headers", {}))
        if role is not None:
            headers["authorization"] = f"Bearer {self.keys[role]}"
        return self.http.request(method, path, headers=headers, **more)

    def make_stream(self, name: str = "posts", **settings: Any) -> None:
        answer = self.call("POST", "/v1/streams", json={"name": name, **STREAM, **settings})
        assert answer.status_code == 201, answer.text

    def add(self, *items: str, stream: str = "posts") -> None:
        rows = [{"id": item, "payload": f"text of {item}"} for item in items]
        assert self.call("POST", f"/v1/streams/{stream}/items", json=rows).status_code == 200

    def take(self, labeler: str = "ann", stream: str = "posts") -> Any:
        answer = self.call("GET", f"/v1/streams/{stream}/next?labeler={labeler}")
        assert answer.status_code == 200, answer.headers
        return answer.json()


@contextmanager
def in_process(
    clock: Clock | None = None, around: Callable[[Any], Any] | None = None, **settings: Any
) -> Iterator[InProcess]:
    with open_storage("memory:") as storage:
        service = Service(storage, clock)
        app = create_app(service, ServerSettings(**{"rate": 0, **settings}))
        served = app if around is None else around(app)
        with TestClient(served, raise_server_exceptions=False) as http:
            assert http.portal is not None
            admin = http.portal.call(service.start)
            assert admin is not None
            keys = {"admin": admin}
            for role in ROLES[1:]:
                labeler = "ann" if role == "labeler" else None
                make = functools.partial(service.keys.create, role, role, labeler)
                keys[role] = http.portal.call(make).token
            yield InProcess(http, service, keys)
            http.portal.call(service.stop)


@dataclass
class Process:
    """`venire serve` in a process of its own; `kill` and `start` may follow each other.

    It is forked from one that has imported venire (see `tests.forked`), unless it is `fresh`, that
    is, started by `python -m venire` as a user would.
    """

    storage: str
    folder: Path
    port: int = 0
    env: dict[str, str] = field(default_factory=dict)
    key: str = ""
    url: str = ""
    options: tuple[str, ...] = ()
    said: list[str] = field(default_factory=list)
    fresh: bool = FORKS is None
    process: subprocess.Popen[str] | Forked | None = None
    reader: threading.Thread | None = None

    def start(self, patience: float = 280.0, standby: bool = False) -> None:
        self.port = self.port or unused_port()
        env = {**os.environ, "VENIRE_RATE": "0", "PYTHONPATH": SOURCE, **self.env}
        command = ["serve", "--storage", self.storage, "--port", str(self.port)]
        command += ["--log-level", "warning", *(["--standby"] if standby else []), *self.options]
        with (self.folder / "server.log").open("a") as log:
            self.process = self._run(command, env, log)
        listening = threading.Event()
        self.reader = threading.Thread(
            target=self._read, args=(self.process, listening), daemon=True
        )
        self.reader.start()
        end = time.monotonic() + patience
        while not listening.wait(0.02):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                told = (self.folder / "server.log").read_text()[-2000:]
                raise AssertionError(f"the server did not start: {self.said} {told}")

    def _run(
        self, command: list[str], env: dict[str, str], log: IO[str]
    ) -> subprocess.Popen[str] | Forked:
        if not self.fresh:
            return Forked(command, self.folder, env, log.fileno())
        command = [sys.executable, "-m", "venire", *command]
        return subprocess.Popen(
            command, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=log, text=True
        )

    def _read(self, process: subprocess.Popen[str] | Forked, listening: threading.Event) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self.said.append(line.rstrip())
                if found := re.search(r"admin key.*: (vk_\S+)", line):
                    self.key = found[1]
                if found := re.search(r"(?:listening|standing by) on (http://\S+:(\d+))", line):
                    self.url, self.port = found[1], int(found[2])
                    listening.set()

    def client(self, key: str | None = None, **more: Any) -> Client:
        patient = {"timeout": 100.0, "retry_seconds": 280.0}  # on any machine
        return Client(self.url, key or self.key, **{**patient, **more})

    def metrics(self) -> dict[str, float]:
        """What Prometheus is told, by name with labels."""
        headers = {"authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}/metrics", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def waiting(self) -> int:
        """How many requests wait for something, or follow it."""
        return int(self.metrics()["venire_waiting"])

    def kill(self) -> None:
        """As a power cut would: no time for anything."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, patience: float = 280.0) -> int:
        """As an operator would."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(patience)
        if self.reader is not None:
            self.reader.join(patience)  # what it said last may not have been read yet
        return code


@contextmanager
def serving(storage: str, folder: Path, **env: str) -> Iterator[Process]:
    with running(Process(storage, folder, env=env)) as server:
        yield server


@contextmanager
def running(server: Process) -> Iterator[Process]:
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()
