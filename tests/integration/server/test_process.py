"""`venire serve` as an operator sees it: start, stop, restart, refuse."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.integration.server.harness import SOURCE, STREAM, Process, running, serving, until
from venire import AsyncClient
from venire.cli import main
from venire.client import ServerError, Work


@pytest.fixture(autouse=True)
def log_of_its_own() -> Iterator[None]:
    """What a command sets of the log ends with its test: the file that it wrote to is closed."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/venire.db"


def test_stop_and_restart_lose_nothing(storage: str, tmp_path: Path) -> None:
    with running(Process(storage, tmp_path, fresh=True)) as server:
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


def test_the_first_key_goes_into_a_file(storage: str, tmp_path: Path) -> None:
    path = tmp_path / "admin.key"
    with serving(storage, tmp_path, VENIRE_ADMIN_KEY_FILE=str(path)) as server:
        said = "\n".join(server.said)
        assert f"the admin key is in {path}" in said
        assert "vk_" not in said
        assert path.stat().st_mode & 0o777 == 0o600
        with server.client(path.read_text().strip()) as client:
            client.create_stream("posts", **STREAM)
        path.unlink()
        assert server.stop() == 0
        server.start()
        assert not path.exists()


def test_a_file_that_exists_is_not_taken_for_the_first_key(storage: str, tmp_path: Path) -> None:
    path = tmp_path / "admin.key"
    path.write_text("old")
    with (
        pytest.raises(AssertionError, match="exists already"),
        serving(storage, tmp_path, VENIRE_ADMIN_KEY_FILE=str(path)),
    ):
        pass
    assert path.read_text() == "old"


FIRST_STREAM = """
import gc, logging
from numba.core.dispatcher import Dispatcher
from tests.integration.server.harness import in_process
from venire.server.edge.monitoring import configure_log
from venire.server.process import prepare
from venire.server.edge.settings import ServerSettings

configure_log(ServerSettings())
for name in ("alembic.runtime.migration", "httpx2"):
    assert not logging.getLogger(name).isEnabledFor(logging.INFO), name

def compiled():
    found = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {f"{one.__module__}.{one.__name__}": len(one.signatures) for one in found}

prepare()
before = compiled()
with in_process() as served:
    for stream in ("ab", "abc"):
        made = served.call("POST", "/v1/streams", json={"name": stream, "classes": list(stream)})
        assert made.status_code == 201
        served.add(*(f"item {n}" for n in range(12)), stream=stream)
        for labeler in ("ann", "bob", "cat") * 3:
            token = served.take(labeler, stream)["token"]
            said = served.call("POST", f"/v1/assignments/{token}/label", json={"said": "a"})
            assert said.status_code == 200
        rows = [
            {"item": f"item {n}", "labeler": who, "said": "ab"[n % 2]}
            for n in range(6, 12)
            for who in ("dan", "eve", "fay")
        ]
        assert served.call("POST", f"/v1/streams/{stream}/labels", json=rows).status_code == 200
        for path in ("labelers", "insights", "items/item%200", "items/item%200/explain"):
            answer = served.call("GET", f"/v1/streams/{stream}/{path}")
            assert answer.status_code == 200, path
after = compiled()
print({name: count for name, count in after.items() if count > before.get(name, 0)})
"""


def test_the_first_stream_need_not_wait_for_the_compiler() -> None:
    root = str(Path(__file__).parents[3])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, root])}
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_STREAM], env=env, capture_output=True, text=True, timeout=400
    )
    assert ran.stdout.strip() == "{}", ran.stdout + ran.stderr


def test_those_who_wait_are_let_go_when_the_server_stops(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path) as server:
        faults: list[BaseException | object] = []
        with server.client() as client:
            client.create_stream("posts", **STREAM)

        def wait() -> None:
            with server.client(retry_seconds=0) as client:
                try:
                    faults.append(client.next("posts", "ann", wait=60))
                except ServerError as fault:
                    faults.append(fault)

        waiting = threading.Thread(target=wait)
        waiting.start()
        until(lambda: server.waiting() == 1)
        assert server.stop(patience=50) == 0
        waiting.join(280)
        assert isinstance(faults[0], ServerError)
        assert (faults[0].status, faults[0].code) == (503, "stopping")


def test_a_client_rides_over_a_restart(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path) as server:
        with server.client() as client:
            client.create_stream("posts", **STREAM)
        answers = []

        async def send() -> None:
            async with AsyncClient(server.url, server.key, retry_seconds=280) as client:
                answers.append(await client.add_items("posts", [{"id": "a"}]))

        server.kill()
        sending = threading.Thread(target=lambda: asyncio.run(send()))
        sending.start()
        server.start()
        sending.join(300)
        assert answers[0]["created"] == 1


def test_a_second_server_on_the_same_store_is_refused(storage: str, tmp_path: Path) -> None:
    with serving(storage, tmp_path):
        second = Process(storage, tmp_path)
        with pytest.raises(AssertionError, match="did not start"):
            second.start()
        assert second.process is not None
        assert second.process.returncode != 0


def test_a_port_in_use_is_told_before_anything_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        store = tmp_path / "venire.db"
        assert main(["serve", "--storage", f"sqlite:///{store}", "--port", port]) == 2
    said = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1 port {port}" in said
    assert "Stop what listens there" in said
    assert not store.exists()


def test_an_address_of_another_machine_is_no_matter_of_the_port(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # An address for documentation, which no machine has; what fails is a line of the log.
    command = ["serve", "--storage", "memory:", "--host", "192.0.2.1", "--port", "0", "--json"]
    assert main(command) == 2
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert "Stop what listens" not in line["event"]
    assert line["event"].endswith("give another one with --host")
    assert (line["level"], line["timestamp"][-1]) == ("error", "Z")


def test_wrong_settings_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "99999"]) == 2
    assert "the setting port is 99999" in capsys.readouterr().err
    assert main(["serve", "--storage", "nonsense", "--port", "0"]) == 2
    assert "expected sqlite:///FILE" in capsys.readouterr().err
    assert main(["work", "--stream", "s", "--call", "x:y"]) == 2
    assert "no key was given" in capsys.readouterr().err
    assert main(["work", "--stream", "s", "--call", "nowhere:y", "--key", "k"]) == 2
    assert "cannot find the callable" in capsys.readouterr().err


LOGS = """
import logging
import structlog
from venire.server.edge.monitoring import configure_log
from venire.server.edge.settings import ServerSettings
from venire.tools.compiling import Notice

configure_log(ServerSettings(log_format="json"))
for _ in range(20):
    Notice.count()
structlog.get_logger("venire").info("a slot", stream="posts")
logging.getLogger("venire.service").warning("of %s", "the service")
logging.getLogger("alembic").info("not told")
try:
    1 / 0
except ZeroDivisionError as error:
    logging.getLogger("venire.service").exception("stumbled")
    structlog.get_logger("venire").error("failed", exc_info=error)
"""


def test_a_log_in_json_is_json_line_for_line() -> None:
    env = {**os.environ, "PYTHONPATH": SOURCE}
    ran = subprocess.run(
        [sys.executable, "-c", LOGS], env=env, capture_output=True, text=True, timeout=200
    )
    lines = [json.loads(line) for line in ran.stderr.splitlines()]
    assert lines[0]["event"].startswith("venire compiles, which takes up to half a minute")
    told = [(line["level"], line["event"]) for line in lines[1:]]
    assert told == [
        ("info", "a slot"),
        ("warning", "of the service"),
        ("error", "stumbled"),
        ("error", "failed"),
    ]
    assert all("timestamp" in line for line in lines)
    assert all("ZeroDivisionError" in line["exception"] for line in lines[3:])
