"""What goes wrong in the world: a full disk, a database that is away, too much at once.

A wall clock that jumps, and a store that fails at every moment, are tested on the service itself,
where time can be moved.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.server.harness import STREAM, Process, serving, until
from tests.marks import nightly
from venire.cli import main
from venire.client import Nothing, ServerError, Work


def refused(server: Process, item: str) -> ServerError:
    with server.client(retry_seconds=0) as client, pytest.raises(ServerError) as caught:
        client.add_items("posts", [{"id": item, "payload": "x" * 50_000}])
    return caught.value


def goes_on(server: Process, *items: str) -> None:
    """The same requests go through, and nothing was lost."""
    with server.client() as client:
        for item in items:
            client.add_items("posts", [{"id": item, "payload": "x" * 50_000}])
            assert client.item("posts", item)["status"] == "open"
        work = client.next("posts", "ann", wait=0)
        assert isinstance(work, Work)
        client.label(work.token, "ok")


def logged(server: Process) -> list[str]:
    return (server.folder / "server.log").read_text().splitlines()


def test_a_full_disk_is_told_and_gone_on_from(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/venire.db"
    with serving(storage, tmp_path) as server:
        assert server.process is not None
        with server.client(timeout=200) as client:
            client.create_stream("posts", **STREAM)
            client.add_items("posts", [{"id": "before"}])
        pid = server.process.pid
        usual = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in tmp_path.glob("venire.db*"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, usual[1]))
        for _ in range(3):
            fault = refused(server, "during")
            assert (fault.status, fault.code) == (503, "store_down")
        with server.client(retry_seconds=0) as client:
            with pytest.raises(ServerError) as caught:
                client.next("posts", "ann", wait=0)
            assert caught.value.status == 503
        [down] = logged(server)
        cause = r"error.* the store does not accept writes: .*(full|disk I/O error)"
        assert re.search(cause, down), down
        told = server.metrics()
        assert told["venire_store_up"] == 0
        assert told['venire_down_seconds{part="writes"}'] > 0
        assert told["venire_store_failures_total"] == 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)
        goes_on(server, "during", "after")
        [_, up] = logged(server)
        assert re.search(r"recovered after \d+\.\d s: the store does not accept writes", up), up
        told = server.metrics()
        assert told["venire_store_up"] == 1
        assert told['venire_down_seconds{part="writes"}'] == 0
        assert told["venire_store_commits_total"] > 3
        assert min(told[f"venire_store_{name}"] for name in ("bytes", "free_bytes")) > 0
        assert server.stop() == 0
    assert main(["verify", "--storage", storage]) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process is set")
def test_a_server_without_file_descriptors_says_so_and_goes_on(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/venire.db", tmp_path) as server:
        assert server.process is not None
        with server.client(timeout=200) as client:
            client.create_stream("posts", **STREAM)
        pid = server.process.pid
        usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (taken + 2, usual[1]))
        there = ("127.0.0.1", server.port)
        with contextlib.ExitStack() as stack:
            for _ in range(10):
                stack.enter_context(socket.create_connection(there))
            until(lambda: any("no file can be opened" in line for line in logged(server)))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
        goes_on(server, "after")
        until(lambda: any("recovered after" in line for line in logged(server)))
        assert "Too many open files" in logged(server)[0]
        told = server.metrics()
        assert told["process_open_fds"] < told["process_max_fds"]


@pytest.mark.parametrize("seconds", [5, nightly(30)])
def test_a_database_that_is_away_for_seconds_is_waited_for(
    seconds: int, new_url: Callable[[str], str], postgres: str, tmp_path: Path
) -> None:
    """The nightly script waits for half a minute; five seconds show the same within a test."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    storage = new_url("postgres")
    name = conninfo_to_dict(storage)["dbname"]
    with serving(storage, tmp_path) as server, psycopg.connect(postgres, autocommit=True) as root:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **STREAM)
            client.add_items("posts", [{"id": "before"}])
        root.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        root.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            fault = refused(server, "during")
            assert fault.status == 503
            time.sleep(0.5)
        cause = ": PostgreSQL cannot be used for now: "
        assert all("[error" in line and cause in line for line in logged(server))
        assert 1 <= len(logged(server)) <= 2  # that it does not answer, and that it takes nothing
        root.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())
        goes_on(server, "during", "after")
        until(lambda: sum("recovered after" in line for line in logged(server)) >= 1)
        assert server.stop() == 0
    assert main(["verify", "--storage", storage]) == 0


def test_ten_megabytes_are_refused_and_the_next_request_is_served(process: Process) -> None:
    with process.client(timeout=60) as client:
        client.create_stream("large", **STREAM)
        with pytest.raises(ServerError) as caught:
            client.add_items("large", [{"id": "a", "payload": "x" * 10_000_000}])
        assert (caught.value.status, caught.value.code) == (413, "body_too_large")
        assert client.add_items("large", [{"id": "a", "payload": "short"}])["created"] == 1


@pytest.mark.parametrize("chunked", [False, True])
def test_one_that_reads_only_after_it_has_sent_everything_sees_the_refusal(
    process: Process, chunked: bool
) -> None:
    body = b"x" * 9_000_000
    pieces = (body[at : at + 100_000] for at in range(0, len(body), 100_000))
    request = urllib.request.Request(
        f"{process.url}/v1/streams/large/items",
        data=pieces if chunked else body,
        headers={"authorization": f"Bearer {process.key}", "content-type": "application/json"},
        method="POST",
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=60)
    with caught.value:
        assert caught.value.code == 413
        assert json.load(caught.value)["error"]["code"] == "body_too_large"


def test_one_that_never_answers_costs_its_lease_and_one_that_answers_twice_nothing(
    process: Process,
) -> None:
    with process.client(timeout=200) as client:
        short = {"lease_floor_seconds": 0.5, "lease_ceiling_seconds": 0.5}
        few = {"panel": STREAM["panel"][:2], "policy": "fixed-overlap:2", "slot_seconds": 0.2}
        client.create_stream("silent", **{**STREAM, **short, **few})
        client.add_items("silent", [{"id": "a"}])
        silent = client.next("silent", "ann", wait=0)
        assert isinstance(silent, Work)
        again = client.next("silent", "ann", wait=60)
        assert isinstance(again, Work)
        assert again.item == "a"
        first = client.label(again.token, "ok")
        assert client.label(again.token, "ok") == first
        with pytest.raises(ServerError, match="conflict"):
            client.label(again.token, "spam")
        late = client.label(silent.token, "ok")
        assert (late["item"], late["expired"]) == ("a", True)
        assert client.insights("silent")["labels"] == 1
        assert isinstance(client.next("silent", "ann", wait=0), Nothing)
