"""A role that may connect to the database, and nothing else, is no server and gets nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.integration.server.harness import STREAM, Process, until
from tests.integration.server.test_sharing import NAMES, get, owned, several
from venire.server.store import open_storage
from venire.server.store.ownership import lock_of


class Listener:
    """Notes what it is sent, and answers what an impostor would."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                listener.asked.append((self.path, headers))
                self.send_response(200)
                self.send_header("set-cookie", "forged=1")
                self.send_header("venire-proof", headers.get("venire-passed-on", ""))
                self.send_header("content-length", "8")
                self.end_headers()
                self.wfile.write(b'"forged"')

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()
    threading.Thread(target=listener._server.serve_forever, daemon=True).start()
    try:
        yield listener
    finally:
        listener._server.shutdown()
        listener._server.server_close()


@contextmanager
def stranger(server: str, storage: str, address: str) -> Iterator[None]:
    """A session of a role of its own that calls itself a server, and takes locks like one."""
    with psycopg.connect(server, autocommit=True) as root:
        if not root.execute("SELECT 1 FROM pg_roles WHERE rolname = 'stranger'").fetchall():
            root.execute("CREATE ROLE stranger LOGIN")
    url = storage.replace("//venire:", "//stranger:")
    with psycopg.connect(url, autocommit=True) as session:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("SELECT secret FROM servers")
        session.execute("SELECT set_config('application_name', %s, false)", (f"venire {address}",))
        for number in (b"venire", b"vnstart"):
            locked = int.from_bytes(number, "big")
            session.execute("SELECT pg_advisory_lock_shared(%s)", (locked,))
        for name in (*NAMES, "new"):
            session.execute("SELECT pg_advisory_lock(%s)", (lock_of(name),))
        yield


@pytest.fixture
def servers(new_url: Callable[[str], str], tmp_path: Path) -> Iterator[tuple[str, list[Process]]]:
    storage = new_url("postgres")
    with several(storage, tmp_path, 2) as members:
        with members[0].client() as client:
            for name in NAMES:
                client.create_stream(name, **STREAM)
        until(lambda: owned(*members) == [2, 2])
        yield storage, members


def test_a_stranger_is_no_member_gets_no_key_and_takes_no_stream_away(
    servers: tuple[str, list[Process]], postgres: str
) -> None:
    storage, (first, second) = servers
    with listening() as listener, stranger(postgres, storage, listener.url):
        with first.client() as client:
            for name in NAMES:
                client.add_items(name, [{"id": "x"}])
            client.create_stream("new", **STREAM)
            assert len(client.streams()) == 5
        with open_storage(storage, owner=False) as store:
            assert sorted(store.members().addresses.values()) == sorted([first.url, second.url])
        second.kill()
        until(lambda: owned(first) == [5])
        second.start()  # and a server joins beside it
        until(lambda: sorted(owned(first, second)) == [2, 3])
        with second.client() as client:
            for name in (*NAMES, "new"):
                client.add_items(name, [{"id": "y"}])
        assert listener.asked == []


def test_a_key_goes_to_no_address_that_does_not_prove_to_be_the_server(
    servers: tuple[str, list[Process]],
) -> None:
    """A member whose address leads to somebody else: the proof is asked for before anything."""
    storage, members = servers
    with listening() as listener, open_storage(storage, address=listener.url) as other:
        until(lambda: any(other.claim(name) for name in NAMES))  # the others give one up for it
        (name,) = other.claims()
        until(lambda: get(members[0], f"/v1/streams/{name}")[1]["error"]["code"] == "elsewhere")
        assert get(members[0], "/v1/streams")[0] == 200
        assert listener.asked, "it was asked who it is"
        assert {path for path, _ in listener.asked} == {"/health"}
        assert not any("authorization" in headers for _, headers in listener.asked)
