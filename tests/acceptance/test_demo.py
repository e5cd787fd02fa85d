"""`venire demo`, as a user runs it."""

import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

import venire
from tests import forked
from tests.integration.server.harness import until
from venire.cli import main
from venire_research.commands.demo import demo
from venire_research.digits import LEARNING_SLOTS, METHODS
from venire_research.digits.equal import TITLES

VENIRE = [sys.executable, "-c", "from venire.cli import main; raise SystemExit(main())"]


def run_demo(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return forked.run(folder, "demo", *options, timeout=600)


def plain() -> dict[str, str]:
    """An environment in which the same venire is found, and nothing forces colours."""
    kept = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "TTY_COMPATIBLE"}}
    return kept | {"PYTHONPATH": str(Path(venire.__file__).parents[1])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def finished(folder: Path) -> subprocess.CompletedProcess[str]:
    return run_demo(folder, "--seeds", "2")


def test_runs_in_an_empty_folder_and_says_nothing_on_stderr(
    finished: subprocess.CompletedProcess[str],
) -> None:
    assert finished.returncode == 0
    assert finished.stderr == ""


def test_prints_plain_lines_and_a_table_of_all_methods(
    finished: subprocess.CompletedProcess[str],
) -> None:
    assert "\x1b" not in finished.stdout
    assert re.search(r"^slot 400: 1,197 arrived, .* right$", finished.stdout, re.MULTILINE)
    first, _, table = finished.stdout.partition("Mean over 2 streams")
    assert all(title in first for title in TITLES.values())  # equal labels and money come first
    for method in METHODS:
        assert all(part in table for part in method.title.split(", "))


def test_saves_picture_table_and_record(
    finished: subprocess.CompletedProcess[str], folder: Path
) -> None:
    saved = folder / "venire-demo"
    names = ["demo.csv", "demo.json", "demo.png", "equal.png"]
    assert sorted(p.name for p in saved.iterdir()) == names
    for name in names[2:]:
        assert (saved / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert json.loads((saved / "demo.json").read_text())["seeds"] == [0, 1]


@pytest.mark.slow
def test_json_is_one_object_and_the_same_numbers(
    finished: subprocess.CompletedProcess[str], folder: Path
) -> None:
    again = run_demo(folder, "--seeds", "1", "--json", "--out", "other")
    assert json.loads(again.stdout) == json.loads((folder / "other" / "demo.json").read_text())
    first, second = folder / "venire-demo" / "demo.csv", folder / "other" / "demo.csv"
    head, *rows = first.read_text().splitlines()
    assert second.read_text().splitlines() == [head, *(r for r in rows if r.split(",")[1] == "0")]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--seeds", "0"), "got --seeds 0"),
        (("--seed", "-1"), "got --seed -1"),
        (("--learning-slots", "400"), "got --learning-slots 400"),
        (("--out", "taken"), "cannot make the folder taken"),
        (("--serve", "--json"), "got --serve and --json"),
        (("--serve", "--port", "70000"), "got --port 70000"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path,
    options: tuple[str, ...],
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "taken").write_text("a file")
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert complaint in said.err
    assert not (tmp_path / "venire-demo").exists()


def test_ctrl_c_stops_with_one_line(tmp_path: Path) -> None:
    command = [*VENIRE, "demo", "--seeds", "1000"]
    pipe = subprocess.PIPE
    with forked.started(
        command, cwd=tmp_path, env=plain(), stdout=pipe, stderr=pipe, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it is on its way
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=280)
    assert process.returncode == 130
    assert complaint == "interrupted\n"


def page(url: str, key: str) -> str:
    asked = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return str(answer.read().decode())


def test_serve_is_a_console_that_fills_while_one_watches(tmp_path: Path) -> None:
    env = plain() | {"TMPDIR": str(tmp_path)}
    command = [*VENIRE, "demo", "--serve", "--no-browser"]
    pipe = subprocess.PIPE
    with forked.started(
        command, cwd=tmp_path, env=env, stdout=pipe, stderr=pipe, encoding="utf-8"
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while "Ctrl-C" not in said:
                line = process.stdout.readline()
                assert line, process.communicate()
                said += line
            link = re.search(
                r"^The console: ((http://127.0.0.1:\d+)/sign-in\?link=\S+)$", said, re.M
            )
            told = re.search(r"^Admin key: +(vk_\S+)$", said, re.M)
            assert link is not None
            assert told is not None
            url, key = link[2], told[1]
            visitor = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            assert "digits" in visitor.open(link[1], timeout=60).read().decode()
            with venire.Client(url, key) as client:
                before = client.insights("digits")
                assert before["exits"] > 200
                until(lambda: client.stream("digits")["student"]["ready"])
                until(lambda: client.insights("digits")["exits"] > before["exits"] + 10)
                item = client.find_items("digits", status="left", limit=1)["items"][0]["id"]
            stream = page(f"{url}/streams/digits", key)
            assert all(part in stream for part in ("bayes", "0.1000", "student (5 of 5)"))
            assert item in page(f"{url}/streams/digits/items", key)
            shown = page(f"{url}/streams/digits/items/{item}?story=whole", key)
            assert all(part in shown for part in ("data:image/png;base64,", "It arrived in slot"))
            assert "data:image/png" in page(f"{url}/streams/digits/reviews", key)
        finally:
            process.send_signal(signal.SIGINT)
            rest, complaint = process.communicate(timeout=280)
    assert (process.returncode, complaint) == (0, "")
    assert rest.endswith("The demo has ended.\n")
    assert list(tmp_path.iterdir()) == []


def test_serve_keeps_the_store_if_asked_and_does_not_overwrite_it(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "venire.db").write_text("an earlier one")
    done = run_demo(tmp_path, "--serve", "--keep", "--out", "kept", "--no-browser")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "venire.db exists" in done.stderr


def test_serve_says_at_once_that_the_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_demo(tmp_path, "--serve", "--no-browser", "--port", str(port))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: cannot listen: ")


def test_default_length_of_the_learning_phase_is_the_documented_one() -> None:
    assert inspect.signature(demo).parameters["learning_slots"].default == LEARNING_SLOTS
