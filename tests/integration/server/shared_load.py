"""Producers, labelers and readers who use several servers, as behind a load balancer."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from tests.integration.server.harness import Process
from tests.integration.server.test_crash import Load
from venire.client import Client, ServerError, Unreachable


class Anywhere:
    """A client that goes to another server whenever one does not answer, as a balancer would."""

    def __init__(self, servers: list[Process], timeout: float = 4.0) -> None:
        self._clients = [server.client(retry_seconds=0.0, timeout=timeout) for server in servers]
        self._draw = random.Random()

    def __enter__(self) -> Anywhere:
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            end = time.monotonic() + 300
            while True:
                try:
                    return getattr(self._draw.choice(self._clients), name)(*args, **more)
                except (ServerError, Unreachable) as fault:
                    lost = not isinstance(fault, ServerError) or fault.status in (502, 503, 504)
                    if not lost or time.monotonic() > end:
                        raise
                    time.sleep(0.05)

        return call


@dataclass
class SharedLoad(Load):
    """A load on one stream, through any of the servers; its events are followed, too.

    With `knows_all`, by a client that is given the addresses of all servers.
    """

    servers: list[Process] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    knows_all: bool = False

    def client(self) -> Client:
        if self.knows_all:
            urls = [server.url for server in self.servers]
            return Client(urls, self.servers[0].key, timeout=4.0, retry_seconds=300)
        return cast(Client, Anywhere(self.servers))

    def start(self) -> None:
        super().start()
        follower = threading.Thread(target=self.run, args=(self.follow,), daemon=True)
        self.threads.append(follower)
        follower.start()

    def follow(self, client: Client) -> None:
        """Follow the log as server-sent events, after the last one whenever they end."""
        draw = random.Random(self.stream)
        while not self.done.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                for number in self._numbers(draw.choice(self.servers)):
                    self.events.append(number)
                    if self.done.is_set():
                        return
            time.sleep(0.05)

    def _numbers(self, server: Process) -> Iterator[int]:
        last = self.events[-1] if self.events else 0
        headers = {"authorization": f"Bearer {server.key}", "last-event-id": str(last)}
        request = urllib.request.Request(
            f"{server.url}/v1/streams/{self.stream}/events", headers=headers
        )
        number = None
        with urllib.request.urlopen(request, timeout=5) as events:
            for line in events:
                if line.startswith(b"id: "):
                    number = int(line[4:])
                elif line == b"\n" and number is not None:  # an event is whole
                    yield number
                    number = None


class Receiver:
    """Where webhooks go: notes the exits that it is told, or does not answer while it hangs."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.answers = threading.Event()
        self.answers.set()
        self.hanging = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                receiver.hanging += 1
                receiver.answers.wait(280)
                receiver.hanging -= 1
                receiver.told.append(body["data"]["n"])
                with contextlib.suppress(OSError):  # who sent it may be gone
                    self.send_response(204)
                    self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/"


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver._server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.answers.set()
        receiver._server.shutdown()
        receiver._server.server_close()
