"""`venire serve` as an operator sees it: start, stop, restart, refuse."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from tests.integration.web.harness import STREAM, Process, serving
from venire import AsyncClient
from venire.cli import main
from venire.client import ServerError, Work


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/venire.db"


def test_stop_and_restart_lose_nothing(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path) as server:
        assert server.key.startswith("vk_")
        with server.client() as client:
            client.create_stream("posts", **STREAM)
            client.add_items("posts", [{"id": "a"}, {"id": "b"}])
            work = client.next("posts", "ann", wait=0)
            assert isinstance(work, Work)
        assert server.stop() == 0
        assert server.said[-1] == "stopped"
        said = len(server.said)
        server.start()
        assert not any("admin key" in line for line in server.said[said:])
        with server.client() as client:
            assert client.stream("posts")["open_items"] == 2
            assert client.label(work.token, "ok")["item"] == work.item
            assert client.insights("posts")["labels"] == 1


def test_those_who_wait_are_let_go_when_the_server_stops(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path) as server:
        faults: list[BaseException | object] = []
        with server.client() as client:
            client.create_stream("posts", **STREAM)

        def wait() -> None:
            with server.client(retry_seconds=0) as client:
                try:
                    faults.append(client.next("posts", "ann", wait=30))
                except ServerError as fault:
                    faults.append(fault)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.5)
        start = time.monotonic()
        assert server.stop() == 0
        waiting.join(10)
        assert time.monotonic() - start < 8
        assert isinstance(faults[0], ServerError)
        assert (faults[0].status, faults[0].code) == (503, "stopping")


def test_a_client_rides_over_a_restart(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path) as server:
        with server.client() as client:
            client.create_stream("posts", **STREAM)
        answers = []

        async def send() -> None:
            async with AsyncClient(server.url, server.key, retry_seconds=120) as client:
                answers.append(await client.add_items("posts", [{"id": "a"}]))

        server.kill()
        sending = threading.Thread(target=lambda: asyncio.run(send()))
        sending.start()
        server.start()
        sending.join(60)
        assert answers[0]["created"] == 1


def test_a_second_server_on_the_same_store_is_refused(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path):
        second = Process(storage, tmp_path)
        with pytest.raises(AssertionError, match="did not start"):
            second.start()
        assert second.process is not None
        assert second.process.returncode != 0


def test_wrong_settings_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "99999"]) == 2
    assert "the setting port is 99999" in capsys.readouterr().err
    assert main(["serve", "--storage", "nonsense", "--port", "0"]) == 2
    assert "expected sqlite:///FILE" in capsys.readouterr().err
    assert main(["work", "--stream", "s", "--call", "x:y"]) == 2
    assert "no key was given" in capsys.readouterr().err
    assert main(["work", "--stream", "s", "--call", "nowhere:y", "--key", "k"]) == 2
    assert "cannot find the callable" in capsys.readouterr().err
