"""Who waits by which key: a revoked one gets nothing, and none takes all the places."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import STREAM, Process, serving, until
from venire.client import Work
from venire.server.store import RevokeKey, open_storage

http = pytest.importorskip("httpx2")

NUMBER = count()


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder: Path = tmp_path_factory.mktemp("serve")
    url = f"sqlite:///{folder}/venire.db"
    with serving(url, folder, VENIRE_MAX_WAITING_PER_KEY="2") as served:
        yield served


@pytest.fixture
def stream(process: Process) -> str:
    name = f"stream-{next(NUMBER)}"
    with process.client() as client:
        client.create_stream(name, **{**STREAM, "policy": "fixed-overlap:1"})
    return name


def ask(process: Process, path: str, token: str) -> Any:
    headers = {"authorization": f"Bearer {token}"}
    return http.get(f"{process.url}{path}", headers=headers, timeout=60)


@pytest.mark.parametrize("way", ["revoked", "by another process"])
def test_a_key_that_is_revoked_while_it_waits_gets_no_work(
    process: Process, stream: str, way: str
) -> None:
    with process.client() as client, ThreadPoolExecutor(1) as pool:
        made = client.create_key("ann's", "labeler", "ann")
        waiting = pool.submit(ask, process, f"/v1/streams/{stream}/next?wait=30", made["token"])
        until(lambda: process.waiting() == 1)
        if way == "revoked":
            client.revoke_key(made["key"]["id"])
        else:
            with open_storage(process.storage, owner=False) as guest:
                guest.write([RevokeKey(made["key"]["id"], 1.0)])
            until(lambda: ask(process, "/v1/me", made["token"]).status_code == 401)
        client.add_items(stream, [{"id": "secret", "payload": "for eyes that may see it"}])
        answer = waiting.result()
        assert answer.status_code == 401
        assert "eyes" not in answer.text
        work = client.next(stream, "bob", wait=20)
        assert isinstance(work, Work), "what was taken back goes to somebody else"
        assert work.item == "secret"


def test_a_viewer_whose_key_is_revoked_while_it_waits_sees_no_exits(
    process: Process, stream: str
) -> None:
    with process.client() as client, ThreadPoolExecutor(1) as pool:
        made = client.create_key("a screen", "viewer")
        waiting = pool.submit(ask, process, f"/v1/streams/{stream}/exits?wait=30", made["token"])
        until(lambda: process.waiting() == 1)
        client.revoke_key(made["key"]["id"])
        client.add_items(stream, [{"id": "a"}])
        client.withdraw(stream, "a")
        assert waiting.result().status_code == 401


def test_one_key_does_not_take_all_the_places(process: Process, stream: str) -> None:
    path = f"/v1/streams/{stream}/next?wait=30&labeler="
    with process.client() as client, ThreadPoolExecutor(3) as pool:
        greedy = [pool.submit(ask, process, f"{path}{who}", process.key) for who in ("ann", "bob")]
        until(lambda: process.waiting() == 2)
        for more in (f"{path}cat", f"/v1/streams/{stream}/events"):
            refused = ask(process, more, process.key)
            assert (refused.status_code, refused.json()["error"]["code"]) == (
                429,
                "too_many_waiting",
            )
            assert int(refused.headers["retry-after"]) >= 1
        other = client.create_key("dan's", "labeler", "dan")["token"]
        patient = pool.submit(ask, process, f"/v1/streams/{stream}/next?wait=30", other)
        until(lambda: process.waiting() == 3)
        client.add_items(stream, [{"id": f"i{n}"} for n in range(3)])
        assert [answer.result().status_code for answer in [*greedy, patient]] == [200] * 3
        until(lambda: process.waiting() == 0)
        soon = f"/v1/streams/{stream}/next?wait=0.1&labeler=cat"
        assert ask(process, soon, process.key).status_code == 204
