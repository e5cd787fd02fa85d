"""Several servers on one PostgreSQL: each owns a share of the streams, and passes on the rest."""

from __future__ import annotations

import json
import signal
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import new_database
from tests.integration.server.harness import STREAM, Process, until
from venire.client import ServerError, Work
from venire.server.store import open_storage

NAMES = ("a", "b", "c", "d")


def member(storage: str, folder: Path, key: str = "", **env: str) -> Process:
    folder.mkdir()
    server = Process(storage, folder, key=key, env=env, options=("--shared",))
    server.start()
    return server


@contextmanager
def several(storage: str, folder: Path, count: int, **env: str) -> Iterator[list[Process]]:
    servers: list[Process] = []
    try:
        for n in range(count):
            servers.append(member(storage, folder / str(n), servers[0].key if n else "", **env))
        yield servers
    finally:
        for server in servers:
            server.kill()


def health(server: Process) -> Any:
    with urllib.request.urlopen(f"{server.url}/health", timeout=30) as answer:
        return json.load(answer)


def owned(*servers: Process) -> list[int]:
    return [health(server)["streams"] for server in servers]


def owner(storage: str, stream: str, servers: list[Process]) -> Process | None:
    """Who owns a stream, by the store."""
    with open_storage(storage, owner=False) as store:
        members = store.members()
    address = members.addresses.get(members.owner(stream) or -1)
    return next((server for server in servers if server.url == address), None)


def get(server: Process, path: str, key: str | None = None, **headers: str) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key or server.key}", **headers}
    request = urllib.request.Request(f"{server.url}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


@contextmanager
def sharing(postgres: str, database: str, folder: Path) -> Iterator[tuple[str, list[Process]]]:
    """Two servers that share four streams in a new database."""
    storage = new_database(postgres, database)
    with several(storage, folder, 2) as servers:
        with servers[0].client() as client:
            for name in NAMES:
                client.create_stream(name, **STREAM)
        until(lambda: owned(*servers) == [2, 2])
        yield storage, servers


@pytest.fixture(scope="module")
def pair(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[Process]]]:
    with sharing(postgres, "shared_pair", tmp_path_factory.mktemp("pair")) as made:
        yield made


def test_any_server_serves_any_stream(pair: tuple[str, list[Process]]) -> None:
    _, servers = pair
    with servers[0].client() as one, servers[1].client() as two:
        for name in NAMES:
            one.add_items(name, [{"id": "x", "payload": "text"}])
            work = two.next(name, "ann")
            assert isinstance(work, Work)
            assert one.label(work.token, "ok")["item"] == "x", "found by its token"
            assert two.label(work.token, "ok")["item"] == "x", "and the answer by anybody"
            assert [x["labeler"] for x in two.item(name, "x")["labels"]] == ["ann"]
        assert {row["name"] for row in one.streams()} >= set(NAMES)
        assert one.streams() == two.streams()
        with pytest.raises(ServerError, match="no stream 'nowhere'"):
            two.stream("nowhere")
        with pytest.raises(ServerError, match="no such assignment"):
            two.label("vt_unknown", "ok")
        assert one.create_stream("a", **STREAM) == two.create_stream("a", **STREAM)


def test_what_a_caller_may_not_do_is_refused_by_all(pair: tuple[str, list[Process]]) -> None:
    _, servers = pair
    with servers[0].client() as client:
        made = client.create_key("ann", "labeler", "ann")
        for server in servers:
            assert get(server, "/v1/me", made["token"])[0] == 200, "a new key is known at once"
            for name in NAMES:
                assert get(server, f"/v1/streams/{name}/insights", made["token"])[0] == 403
        client.revoke_key(made["key"]["id"])
        assert get(servers[0], "/v1/me", made["token"])[0] == 401
        until(lambda: get(servers[1], "/v1/me", made["token"])[0] == 401)


def test_a_request_is_passed_on_once(pair: tuple[str, list[Process]]) -> None:
    storage, servers = pair
    at = owner(storage, "a", servers)
    other = next(server for server in servers if server is not at)
    status, told = get(other, "/v1/streams/a", **{"venire-passed-on": "1"})
    assert (status, told["error"]["code"]) == (503, "elsewhere")
    assert get(other, "/v1/streams/a")[0] == 200


def test_a_long_poll_and_events_are_passed_on(pair: tuple[str, list[Process]]) -> None:
    storage, servers = pair
    at = owner(storage, "b", servers)
    assert at is not None
    other = next(server for server in servers if server is not at)
    got: list[Any] = []
    with at.client() as client:
        while isinstance(client.next("b", "bob", wait=0), Work):
            pass  # so that nothing is left for bob

    def wait() -> None:
        with other.client() as client:
            got.append(client.next("b", "bob", wait=60))

    def follow() -> None:
        request = urllib.request.Request(
            f"{other.url}/v1/streams/b/events", headers={"authorization": f"Bearer {other.key}"}
        )
        with urllib.request.urlopen(request, timeout=60) as events:
            while b"event: arrived" not in (chunk := events.read1(65536)):
                assert chunk, "it ended"
            got.append(chunk)

    threads = [threading.Thread(target=job, daemon=True) for job in (wait, follow)]
    for thread in threads:
        thread.start()
    until(lambda: at.waiting() == 2)
    with at.client() as client:
        client.add_items("b", [{"id": "polled"}])
    for thread in threads:
        thread.join(280)
    assert sorted(type(one).__name__ for one in got) == ["Work", "bytes"]


def test_a_caller_who_is_gone_leaves_no_lease_behind(pair: tuple[str, list[Process]]) -> None:
    storage, servers = pair
    at = owner(storage, "c", servers)
    assert at is not None
    other = next(server for server in servers if server is not at)
    with at.client() as client:
        while isinstance(client.next("c", "cat", wait=0), Work):
            pass
    request = urllib.request.Request(
        f"{other.url}/v1/streams/c/next?labeler=cat&wait=60",
        headers={"authorization": f"Bearer {other.key}"},
    )
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(request, timeout=2)
    until(lambda: at.waiting() == 0, 50)  # not for its own time


def test_a_page_shows_the_streams_of_all(pair: tuple[str, list[Process]]) -> None:
    _, servers = pair
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(
        f"{servers[0].url}/sign-in", data=f"key={servers[0].key}".encode(), timeout=60
    ) as page:
        assert page.status == 200
    for server in servers:  # cookies of one host are of all its ports
        with opener.open(server.url, timeout=60) as page:
            text = page.read().decode()
        assert all(f'href="/streams/{name}"' in text for name in NAMES)
        with opener.open(f"{server.url}/streams/d", timeout=60) as page:
            assert page.status == 200


def test_streams_are_created_and_deleted_anywhere(pair: tuple[str, list[Process]]) -> None:
    _, servers = pair
    with servers[0].client() as one, servers[1].client() as two:
        for n in range(2):
            two.create_stream("short", **{**STREAM, "max_overlap": n + 2})
            assert one.stream("short")["settings"]["max_overlap"] == n + 2
            one.close_stream("short")
            one.delete_stream("short")
            for client in (one, two):
                with pytest.raises(ServerError, match="no stream 'short'"):
                    client.stream("short")
    until(lambda: owned(*servers) == [2, 2])


def test_a_shared_store_has_no_single_owner(
    pair: tuple[str, list[Process]], tmp_path: Path
) -> None:
    alone = Process(pair[0], tmp_path)
    with pytest.raises(AssertionError, match="did not start"):
        alone.start()
    assert "in use by another server" in (tmp_path / "server.log").read_text() + str(alone.said)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_who_joins_gets_a_share_and_who_leaves_is_replaced(
    end: signal.Signals, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    storage = new_url("postgres")
    with several(storage, tmp_path, 1) as servers:
        first = servers[0]
        with first.client() as client:
            for name in NAMES:
                client.create_stream(name, **STREAM)
                client.add_items(name, [{"id": "x"}])
            held = {name: client.next(name, "ann") for name in NAMES}
        assert owned(first) == [4]
        second = member(storage, tmp_path / "second", first.key)
        servers.append(second)
        until(lambda: owned(first, second) == [2, 2])
        assert first.process is not None
        first.process.send_signal(end)
        with second.client() as client:
            for work in held.values():
                assert isinstance(work, Work)
                assert client.label(work.token, "ok")["item"] == "x"
        until(lambda: owned(second) == [4])


def test_a_server_that_was_stopped_loses_its_streams_and_writes_nothing_when_it_wakes(
    new_url: Callable[[str], str], tmp_path: Path
) -> None:
    storage = new_url("postgres")
    with several(storage, tmp_path, 2) as servers:
        with servers[0].client() as client:
            for name in NAMES:
                client.create_stream(name, **STREAM)
        until(lambda: owned(*servers) == [2, 2])
        stopped = owner(storage, "a", servers)
        assert stopped is not None
        assert stopped.process is not None
        other = next(server for server in servers if server is not stopped)
        stopped.process.send_signal(signal.SIGSTOP)
        try:
            with other.client() as client:
                client.add_items("a", [{"id": "x"}])  # waits until the stream is taken over
            assert owned(other) == [4]
            assert owner(storage, "a", servers) is other
        finally:
            stopped.process.send_signal(signal.SIGCONT)
        with stopped.client() as client:
            client.add_items("a", [{"id": "y"}])  # passed on, or by the stream's return
            assert client.item("a", "x")["status"] == "open"
        until(lambda: owned(*servers) == [2, 2])
