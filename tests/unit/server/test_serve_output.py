"""What `venire serve` says: JSON throughout with --json, and unknown variables are reported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from venire.cli import main
from venire.server import process as server
from venire.server.edge.settings import ServerSettings

DOCS = Path(__file__).parents[3] / "docs"


def test_every_line_is_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(settings: ServerSettings, tell: server.Tell) -> None:
        tell("admin key (shown only once): vk_1")
        tell("listening on http://127.0.0.1:1")

    monkeypatch.setattr(server, "_serve", serve)
    monkeypatch.setenv("VENIRE_PROT", "8500")
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--json"]) == 0
    said = capsys.readouterr()
    out = [json.loads(line) for line in said.out.splitlines()]
    log = [json.loads(line) for line in said.err.splitlines()]
    assert [line["event"] for line in out] == [
        "admin key (shown only once): vk_1",
        "listening on http://127.0.0.1:1",
    ]
    odd = [line for line in log if "VENIRE_PROT" in line["event"]]
    assert odd[0]["event"] == "the variable VENIRE_PROT is not a setting: did you mean VENIRE_PORT?"
    assert odd[0]["level"] == "warning"


def test_an_error_is_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--json", "--host", "256.0.0.1"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert json.loads(last)["level"] == "error"
    assert "256.0.0.1" in json.loads(last)["event"]


def test_without_json_lines_are_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(settings: ServerSettings, tell: server.Tell) -> None:
        tell("stopped")

    monkeypatch.setattr(server, "_serve", serve)
    monkeypatch.chdir(tmp_path)
    assert main(["serve"]) == 0
    assert capsys.readouterr().out == "stopped\n"


@pytest.mark.parametrize("page", ["install.md", "serve.md", "formats.md", "library.md"])
def test_no_table_has_a_row_twice(page: str) -> None:
    text = (DOCS / page).read_text()
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        cells = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
        names = [cell for cell in cells if cell.startswith("`")]
        assert len(names) == len(set(names)), [n for n in names if names.count(n) > 1]
