"""A server whose PostgreSQL says nothing: it tells so, answers what it can, stops, and recovers."""

from __future__ import annotations

import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.conftest import new_database
from tests.integration.server.harness import STREAM, Process, serving, until
from tests.marks import nightly
from tests.wire import LASTING, Fault, Wire, wire_to

#: A server that gives up after a second when it is told to stop.
HASTY = {"VENIRE_GRACE": "1"}


def status(server: Process, path: str) -> int:
    """The status of an answer; it must come soon."""
    headers = {"authorization": f"Bearer {server.key}"}
    request = urllib.request.Request(f"{server.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def took(what: str, true: Callable[[], bool]) -> None:
    """Wait for something, and say how long it took."""
    begun = time.monotonic()
    until(true)
    print(f"{what} after {time.monotonic() - begun:.1f} s")  # noqa: T201


def check_silence(server: Process) -> None:
    """What a server does whose store is silent."""
    took("503", lambda: status(server, "/ready") == 503)
    for path in ("/health", "/metrics"):
        took(path, lambda path=path: status(server, path) == 200)  # type: ignore[misc]
    took("a write is refused", lambda: _refused(server))


def _refused(server: Process) -> bool:
    body = b'[{"id": "refused"}]'
    headers = {"authorization": f"Bearer {server.key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{server.url}/v1/streams/posts/items", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60):
            return False
    except urllib.error.HTTPError as error:
        with error:
            return error.code == 503
    except OSError:
        return False  # the server has stopped


def check_recovery(server: Process) -> None:
    took("200", lambda: status(server, "/ready") == 200)
    with server.client() as client:
        took("a write", lambda: bool(client.add_items("posts", [{"id": "later"}])))
        assert client.item("posts", "before")["status"] == "open"


@pytest.fixture(scope="module")
def wired(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Wire, Process]]:
    """One server for all that it lives through, and its wire to PostgreSQL."""
    folder = tmp_path_factory.mktemp("serve")
    with wire_to(new_database(postgres, "silent")) as wire, serving(wire.url, folder) as server:
        fill(server)
        yield wire, server


def fill(server: Process) -> None:
    with server.client(timeout=200) as client:
        client.create_stream("posts", **STREAM)
        client.add_items("posts", [{"id": "before"}])


@pytest.mark.parametrize("how", ["halfopen", nightly("stall"), nightly("halfdrop")])
def test_a_server_with_a_silent_connection_tells_so_and_recovers_by_itself(
    how: Fault, wired: tuple[Wire, Process]
) -> None:
    wire, server = wired
    wire.fail(how)
    if how in LASTING:
        check_silence(server)
    else:
        took("503", lambda: status(server, "/ready") == 503)
    wire.mend()
    check_recovery(server)


@contextmanager
def suspended(server: str) -> Iterator[None]:
    """All processes of a PostgreSQL, suspended: first the one that would start others."""
    with psycopg.connect(server) as connection:
        found = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert found is not None
    postmaster = int(found[0].split()[0])
    _signal(postmaster, signal.SIGSTOP)
    children: list[str] = []
    try:
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in map(int, children):
            _signal(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in map(int, children):  # who has ended is not buried before its parent goes on
            _signal(pid, signal.SIGCONT)
        _signal(postmaster, signal.SIGCONT)


def _signal(pid: int, what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, what)


def test_a_server_whose_database_is_suspended_tells_so_and_recovers_by_itself(
    wired: tuple[Wire, Process], postgres: str
) -> None:
    _, server = wired
    with suspended(postgres):
        check_silence(server)
    check_recovery(server)


@contextmanager
def unconfirmed(server: str) -> Iterator[None]:
    """Commits wait for a replica that is not there: PostgreSQL is at work, and never done."""
    with psycopg.connect(server, autocommit=True) as root:
        root.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        root.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            root.execute("ALTER SYSTEM RESET synchronous_standby_names")
            root.execute("SELECT pg_reload_conf()")


def test_a_server_whose_commits_hang_tells_so_and_obeys_sigterm(
    new_url: Callable[[str], str], postgres: str, tmp_path: Path
) -> None:
    with serving(new_url("postgres"), tmp_path, **HASTY) as server:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **STREAM)
        with unconfirmed(postgres):
            sending = threading.Thread(target=_refused, args=(server,), daemon=True)
            sending.start()
            took("503", lambda: status(server, "/ready") == 503)
            for path in ("/health", "/metrics"):
                took(path, lambda path=path: status(server, path) == 200)  # type: ignore[misc]
            took("stopped", lambda: server.stop() == 0)
        sending.join(280)


@pytest.mark.parametrize("known", [nightly(False), True])
def test_a_server_obeys_sigterm_while_its_database_is_silent(
    known: bool, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    with wire_to(new_url("postgres")) as wire, serving(wire.url, tmp_path, **HASTY) as server:
        wire.fail("stall")
        if known:
            until(lambda: status(server, "/ready") == 503)
        begun = time.monotonic()
        assert server.stop() == 0
        print(f"stopped after {time.monotonic() - begun:.1f} s")  # noqa: T201
