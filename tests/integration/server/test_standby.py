"""A standby takes over when the leader is gone; a leader that wakes writes nothing."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import STREAM, Process, serving, until
from venire import VenireError
from venire.client import Work


def ask(url: str, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"{url}{path}", timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@contextmanager
def standing_by(storage: str, folder: Path, key: str) -> Iterator[Process]:
    folder.mkdir()
    server = Process(storage, folder, key=key)
    server.start(standby=True)
    try:
        yield server
    finally:
        server.kill()


def leads(server: Process) -> Callable[[], bool]:
    return lambda: (
        ask(server.url, "/health")[1]["role"] == "leader" and (ask(server.url, "/ready")[0] == 200)
    )


@pytest.mark.parametrize(
    ("kind", "end"),
    [
        ("sqlite", signal.SIGKILL),
        ("postgres", signal.SIGKILL),
        ("postgres", signal.SIGTERM),
    ],
)
def test_a_standby_takes_over(
    kind: str, end: signal.Signals, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    storage = new_url(kind)
    with serving(storage, tmp_path) as leader, leader.client() as client:
        client.create_stream("posts", **STREAM)
        client.add_items("posts", [{"id": "a"}, {"id": "b"}])
        work = client.next("posts", "ann")
        assert isinstance(work, Work)
        with standing_by(storage, tmp_path / "second", leader.key) as second:
            assert ask(second.url, "/health") == (200, {"status": "ok", "role": "standby"})
            status, told = ask(second.url, "/ready")
            assert (status, told["error"]["code"]) == (503, "standby")
            assert ask(leader.url, "/health") == (200, {"status": "ok", "role": "leader"})
            assert leader.process is not None
            leader.process.send_signal(end)
            until(leads(second))
            with second.client() as again:
                again.label(work.token, "ok")  # a lease of the other is good here
                assert {label["labeler"] for label in again.item("posts", work.item)["labels"]} == {
                    "ann"
                }


def test_a_leader_that_was_stopped_loses_the_store_and_writes_nothing_when_it_wakes(
    new_url: Callable[[str], str], tmp_path: Path
) -> None:
    storage = new_url("postgres")
    with serving(storage, tmp_path) as leader, leader.client(retry_seconds=0.1) as client:
        client.create_stream("posts", **STREAM)
        client.add_items("posts", [{"id": "a"}])
        with standing_by(storage, tmp_path / "second", leader.key) as second:
            assert leader.process is not None
            leader.process.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            until(leads(second))
            assert time.monotonic() - begun > 5
            with second.client() as now:
                now.add_items("posts", [{"id": "b"}])
            leader.process.send_signal(signal.SIGCONT)
            with pytest.raises(VenireError):
                client.add_items("posts", [{"id": "c"}])
            assert ask(leader.url, "/ready")[0] == 503
            assert ask(leader.url, "/health")[1]["role"] == "standby"
            with second.client() as now:
                assert now.item("posts", "b")["status"] == "open"
                with pytest.raises(VenireError, match="c"):
                    now.item("posts", "c")


@pytest.mark.slow
def test_an_idle_leader_keeps_the_store(new_url: Callable[[str], str], tmp_path: Path) -> None:
    storage = new_url("postgres")
    with serving(storage, tmp_path) as leader:
        time.sleep(14)
        with leader.client(retry_seconds=0.1) as client:
            client.create_stream("posts", **STREAM)
            assert [stream["name"] for stream in client.streams()] == ["posts"]
        assert ask(leader.url, "/health")[1]["role"] == "leader"
