"""Policies on the command line: ours, and those of a module."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from venire import Greedy, InputError, UnknownName
from venire.cli import main
from venire.cli.shared.callables import policy_of

MINE = """
from dataclasses import dataclass
from venire import PythonPolicy

@dataclass(frozen=True)
class Mine(PythonPolicy):
    most: int = 2

    def choose(self, labeler, items, slot):
        return next((item for item in items if item.labels < self.most), None)

    def leaves(self, item, slot):
        return item.labels >= self.most
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policies_of_mine.py").write_text(MINE)
    (tmp_path / "broken_of_mine.py").write_text("import there_is_no_such_module\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_policy_of_a_module(folder: Path) -> None:
    assert repr(policy_of("policies_of_mine:Mine")) == "Mine(most=2)"
    assert repr(policy_of("policies_of_mine:Mine:5")) == "Mine(most=5)"
    assert policy_of("greedy") == Greedy()


def test_errors_say_what_is_wrong(folder: Path) -> None:
    with pytest.raises(
        UnknownName, match=r"policy of policies_of_mine 'Mind': did you mean 'Mine'"
    ):
        policy_of("policies_of_mine:Mind")
    with pytest.raises(InputError, match="there is no module 'nowhere'"):
        policy_of("nowhere:Mine")
    with pytest.raises(ModuleNotFoundError, match="there_is_no_such_module"):
        policy_of("broken_of_mine:Mine")
    with pytest.raises(UnknownName, match="unknown policy 'gredy': did you mean 'greedy'"):
        policy_of("gredy")
    with pytest.raises(InputError, match="has 2 settings, expected 0 to 1"):
        policy_of("policies_of_mine:Mine:1:2")


def test_it_can_be_simulated(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--policy", "policies_of_mine:Mine:3", "--slots", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["policy"], found["labels_per_item"]) == ("mine:3", 3.0)


def test_it_can_be_compared_in_processes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--policy", "policies_of_mine:Mine", "--policy", "fixed-overlap:2"]
    words += ["--regime", "paper", "--quick", "--seeds", "1", "--no-certificate", "--jobs", "2"]
    assert main([*words, "--json", "--out", str(folder / "out")]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["policy"] for row in rows] == ["mine:2", "fixed-overlap:2"]
