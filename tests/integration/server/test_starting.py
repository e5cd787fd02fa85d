"""A server that is not ready yet answers all the same, and one that cannot serve all says so."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.integration.server.harness import STREAM, Process, serving, until
from venire.server import Service, create_app
from venire.server.store import open_storage


def test_before_it_has_started_a_server_answers_503() -> None:
    http = TestClient(create_app(Service(open_storage("memory:"))))
    assert http.get("/health").status_code == 200
    for path in ("/ready", "/v1/streams", "/metrics"):
        answer = http.get(path)
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "starting"
        assert answer.headers["retry-after"] == "1"


def test_a_server_listens_before_it_has_loaded(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = Process(f"sqlite:///{tmp_path}/venire.db", tmp_path, port, fresh=True)
    starting = threading.Thread(target=server.start, kwargs={"patience": 280.0})
    starting.start()
    seen: list[int] = []
    while starting.is_alive() or not seen:
        seen.append(_status(f"http://127.0.0.1:{port}/ready"))
        time.sleep(0.05)
    starting.join()
    assert _status(f"http://127.0.0.1:{port}/ready") == 200
    assert server.stop() == 0
    assert 503 in seen


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def test_one_damaged_log_keeps_one_stream_down(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path}/venire.db", tmp_path) as server:
        with server.client() as client:
            for name in ("good", "bad"):
                client.create_stream(name, **STREAM)
                client.add_items(name, [{"id": "a"}, {"id": "b"}])
                assert client.next(name, "ann", wait=0)
        server.kill()
        with sqlite3.connect(tmp_path / "venire.db") as store:
            changed = store.execute(
                "UPDATE events SET body = replace(body, '\"ann\",', '\"ann\",9') "  # the gain
                "WHERE stream = 'bad' AND kind = 'assigned'"
            )
            assert changed.rowcount == 1
            store.execute("DELETE FROM snapshots WHERE n > 0")
        store.close()
        server.start()
        until(lambda: any("'bad' is set aside" in line for line in server.said))
        with server.client() as client:
            assert client.next("good", "bob", wait=0)
        headers = {"authorization": f"Bearer {server.key}"}
        bad = urllib.request.Request(f"{server.url}/v1/streams/bad", headers=headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(bad, timeout=60)
        assert refused.value.code == 503
        assert json.load(refused.value)["error"]["code"] == "stream_down"
        for path in ("/ready", "/health"):
            with urllib.request.urlopen(f"{server.url}{path}", timeout=60) as answer:
                said = json.load(answer)
            assert (said["set_aside"], said.get("loading")) == (1, None)
        assert server.metrics()["venire_streams_set_aside"] == 1
        assert server.metrics()["venire_streams_loading"] == 0
