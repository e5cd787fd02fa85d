from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from venire import FetchError
from venire.cli import main
from venire.datasets import data_sets


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VENIRE_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(data_sets())
    assert main(["datasets", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == list(data_sets())
    assert all(file["url"] for each in listed for file in each["files"])


def test_list_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "list", "dog"]) == 0
    out = capsys.readouterr().out
    assert "dog_crowd.txt  sha256 not recorded" in out
    assert "licence: not stated" in out


def test_fetch_from_a_folder_and_path(
    data: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["datasets", "fetch", "rte", "--from", str(data / "rte")]) == 0
    assert capsys.readouterr().out == f"{cache / 'rte'}\n"
    assert main(["datasets", "path", "rte"]) == 0
    assert capsys.readouterr().out == f"{cache / 'rte'}\n"
    assert main(["datasets", "path", "rte", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fetched"] is True
    shutil.rmtree(cache)
    assert main(["datasets", "path", "rte", "--data", str(data)]) == 0
    assert capsys.readouterr().out == f"{data / 'rte'}\n"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "ACTION"),
        (["fetch"], "fetch needs a name"),
        (["path"], "path needs a name"),
        (["lst"], "did you mean 'list'"),
        (["list", "rtee"], "did you mean 'rte'"),
        (["path", "rte"], "fetch it with: venire datasets fetch rte"),
        (["path", "rte", "--from", "x"], "--from is an option of fetch"),
        (["fetch", "rte", "--from", "no-such-folder"], "expected a folder"),
        (["fetch", "rte", "--from", "."], "has no file all_collected_data.tgz"),
    ],
)
def test_wrong_usage_is_one_line(
    args: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["datasets", *args]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


def test_offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*args: object) -> None:
        raise FetchError("cannot download it (connection refused)")

    monkeypatch.setattr("venire.datasets.download", refused)
    assert main(["datasets", "fetch", "medrelex_cause"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "download the 47 files that `venire datasets list medrelex_cause` names" in err


def test_the_list_needs_no_numpy() -> None:
    code = (
        "import sys; from venire.cli import main; main(['datasets', 'list']); "
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
