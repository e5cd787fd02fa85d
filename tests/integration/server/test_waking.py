"""A server that was suspended does not begin with the requests of callers who are gone."""

from __future__ import annotations

import json
import signal
import socket
import time
from pathlib import Path

from tests.integration.server.harness import STREAM, Process, serving
from tests.integration.server.test_sharing import health

GONE = 600


def send(server: Process, method: str, path: str, body: bytes = b"") -> socket.socket:
    """Send a request, without waiting for the answer."""
    head = f"{method} {path} HTTP/1.1\r\nhost: venire\r\nauthorization: Bearer {server.key}\r\n"
    caller = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    caller.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    return caller


def test_requests_of_callers_who_are_gone_are_not_begun(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/venire.db", tmp_path) as server:
        with server.client() as client:
            client.create_stream("posts", **STREAM)
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        for n in range(GONE):
            row = json.dumps([{"id": f"gone-{n}"}]).encode()
            send(server, "POST", "/v1/streams/posts/items", row).close()
        waiting = send(server, "POST", "/v1/streams/posts/items", b'[{"id": "there"}]')
        server.process.send_signal(signal.SIGCONT)
        begun = time.monotonic()
        assert health(server)["status"] == "ok"
        answered = time.monotonic() - begun
        with waiting:
            assert waiting.recv(1000).startswith(b"HTTP/1.1 200")
        with server.client() as client:
            found = [item["id"] for item in client.find_items("posts", limit=GONE)["items"]]
        assert found == ["there"], f"{len(found)} were begun; /health took {answered:.1f} s"
        assert (server.folder / "server.log").read_text() == ""
