"""A client with the addresses of several servers: it goes to the owner, or to who answers."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import STREAM, Process, serving, until
from tests.integration.server.test_sharing import NAMES, owned, owner, several, sharing
from tests.integration.server.test_standby import standing_by
from venire import AsyncClient, Client
from venire.cli import main
from venire.client import ServerError, Unreachable, Work
from venire.server.tokens import hashed


@pytest.fixture(scope="module")
def pair(
    postgres: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[Process]]]:
    with sharing(postgres, "several_addresses", tmp_path_factory.mktemp("pair")) as made:
        with both(made[1]) as client:
            for name in NAMES:
                client.add_items(name, [{"id": f"i{n}"} for n in range(20)])
        yield made


def both(servers: list[Process], **more: Any) -> Client:
    return Client([server.url for server in servers], servers[0].key, **more)


def placed(pair: tuple[str, list[Process]], name: str) -> tuple[Process, Process]:
    """The owner of a stream, and the other server."""
    storage, servers = pair
    at = owner(storage, name, servers)
    assert at is not None
    return at, next(server for server in servers if server is not at)


def ask(
    server: Process, path: str, body: Any = None, key: str | None = None
) -> tuple[int, Any, str | None]:
    """The status, the body and the owner of an answer."""
    sent = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key or server.key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{server.url}{path}", sent, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            said, status, owner = answer.read(), answer.status, answer.headers["venire-owner"]
    except urllib.error.HTTPError as error:
        with error:
            said, status, owner = error.read(), error.code, error.headers["venire-owner"]
    return status, json.loads(said or b"null"), owner


def served(server: Process) -> float:
    """How many requests about streams and assignments a server has answered."""
    counts = server.metrics().items()
    about = "/v1/streams/", "/v1/assignments/"
    return sum(
        n
        for name, n in counts
        if name.startswith("venire_requests_total{") and any(path in name for path in about)
    )


def test_answers_about_a_stream_say_who_owns_it(pair: tuple[str, list[Process]]) -> None:
    at, other = placed(pair, "a")
    for server in (at, other):
        status, work, who = ask(server, "/v1/streams/a/next?labeler=dan")
        assert (status, who) == (200, at.url)
        path = f"/v1/assignments/{work['token']}/label"
        assert ask(server, path, {"said": "ok"})[::2] == (200, at.url)
        assert ask(server, path, {"said": "nonsense"})[::2] == (409, at.url)
        assert ask(server, "/v1/streams/a/items/none")[::2] == (404, at.url)
        assert ask(server, "/v1/streams/a/exits?limit=x")[::2] == (422, at.url)
        assert ask(server, "/v1/streams", {"name": "a", **STREAM})[::2] == (201, at.url)
        assert ask(server, "/v1/streams/nowhere")[::2] == (404, None)
        assert ask(server, "/v1/streams/a", key="vk_wrong")[::2] == (401, None)
        assert ask(server, "/v1/streams")[::2] == (200, None)


def test_a_token_of_an_older_version_is_found_by_the_store(pair: tuple[str, list[Process]]) -> None:
    import psycopg

    at, other = placed(pair, "b")
    with at.client() as client:
        work = client.next("b", "cat")
        assert isinstance(work, Work)
        client.release(work.token)
    with psycopg.connect(pair[0], autocommit=True) as connection:
        told = "UPDATE leases SET token_hash = %s WHERE token_hash = %s"
        assert connection.execute(told, (hashed("old"), hashed(work.token))).rowcount == 1
    with other.client() as client:
        assert client.label("old", "ok")["item"] == work.item


def test_requests_go_to_the_owner(pair: tuple[str, list[Process]]) -> None:
    _, servers = pair

    def work(client: Client, labeler: str) -> None:
        for _ in range(3):
            for name in NAMES:
                found = client.next(name, labeler)
                assert isinstance(found, Work)
                client.label(found.token, "ok")

    with both(servers) as client:
        work(client, "ann")  # and learns who owns what
        before = [served(server) for server in servers]
        work(client, "ann")
        assert [served(server) - n for server, n in zip(servers, before, strict=True)] == [12, 12]

    async def by_tasks() -> None:
        async with AsyncClient([server.url for server in servers], servers[0].key) as client:
            for _ in range(2):
                before = [served(server) for server in servers]
                await asyncio.gather(*(client.insights(name) for name in NAMES))
            after = [served(server) for server in servers]
            assert [y - x for x, y in zip(before, after, strict=True)] == [2, 2]

    asyncio.run(by_tasks())


def test_a_client_with_one_address_is_passed_on(pair: tuple[str, list[Process]]) -> None:
    at, other = placed(pair, "c")
    with other.client() as client:
        before = served(at)
        for _ in range(3):
            assert client.stream("c")["name"] == "c"
        assert served(at) == before + 3


def test_what_the_owner_does_not_answer_goes_to_the_next(
    new_url: Callable[[str], str], tmp_path: Path
) -> None:
    with several(new_url("postgres"), tmp_path, 2) as servers, both(servers) as client:
        for name in NAMES:
            client.create_stream(name, **STREAM)
            client.add_items(name, [{"id": "x"}])
        until(lambda: owned(*servers) == [2, 2])
        held = [client.next(name, "ann") for name in NAMES]
        lost, kept = servers
        lost.kill()
        for work in held:
            assert isinstance(work, Work)
            assert client.label(work.token, "ok")["item"] == "x"
        for name in NAMES:
            assert client.add_items(name, [{"id": "y"}])["created"] == 1
            assert [label["labeler"] for label in client.item(name, "x")["labels"]] == ["ann"]
        assert owned(kept) == [4]
        kept.kill()
        with both(servers, retry_seconds=0.5) as last, pytest.raises(Unreachable) as caught:
            last.streams()
        assert lost.url in str(caught.value)
        assert kept.url in str(caught.value)


def test_a_standby_is_passed_over_until_it_leads(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/venire.db"
    with (
        serving(storage, tmp_path) as leader,
        standing_by(storage, tmp_path / "second", leader.key) as second,
        both([second, leader], retry_seconds=280) as client,
    ):
        client.create_stream("posts", **STREAM)
        client.create_key("a screen", "viewer")
        names = [row["name"] for row in client.keys()]  # noqa: SIM118
        assert names.count("a screen") == 1, "the standby did not make one too"
        client.add_items("posts", [{"id": "x"}])
        work = client.next("posts", "ann")
        assert isinstance(work, Work)
        assert leader.process is not None
        leader.process.send_signal(signal.SIGKILL)
        client.label(work.token, "ok")  # waits until the other has taken over
        assert client.item("posts", "x")["labels"][0]["labeler"] == "ann"


def test_a_standby_alone_says_so(tmp_path: Path) -> None:
    storage, nobody = f"sqlite:///{tmp_path}/venire.db", free_address()
    with (
        serving(storage, tmp_path) as leader,
        standing_by(storage, tmp_path / "second", leader.key) as second,
        Client([nobody, second.url], leader.key, retry_seconds=0.5) as client,
        pytest.raises(ServerError) as caught,
    ):
        client.streams()
    assert caught.value.code == "standby"
    assert f"tried {nobody}: " in str(caught.value)
    assert f"{second.url}: 503 standby" in str(caught.value)


def test_commands_take_several_addresses(
    pair: tuple[str, list[Process]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, servers = pair
    monkeypatch.setenv("VENIRE_URL", f"{free_address()}, {servers[1].url}")
    monkeypatch.setenv("VENIRE_KEY", servers[0].key)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_model.py").write_text("def label(payload):\n    return 'ok'\n")
    (tmp_path / "e.toml").write_text('name = "e"\nclasses = ["spam", "ok"]\n')
    assert main(["stream", str(tmp_path / "e.toml")]) == 0
    assert "e: created" in capsys.readouterr().out
    with both(servers) as client:
        client.add_items("e", [{"id": "x"}])
        options = ["--labeler", "ann", "--until-idle", "1", "--json"]
        assert main(["work", "--stream", "e", "--call", "own_model:label", *options]) == 0
        assert json.loads(capsys.readouterr().out)["labelled"] == 1
        client.close_stream("e")


def free_address() -> str:
    """Where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{bound.getsockname()[1]}"
