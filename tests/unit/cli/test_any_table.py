"""Commands about labels take tables as people have them, and say what they took for what."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from tests.unit.labels.people import wide
from venire.cli import main

WIDE = "id;ann;bob;cem;gold\n" + "".join(
    f"{n};{'ok' if n % 3 else 'spam'};{'ok' if n % 2 else 'spam'};ok;ok\n" for n in range(30)
)
SAID = "read 30 items (id) in rows, 3 judges in columns ann to cem; not read: gold"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judged.csv").write_text(WIDE)


@pytest.mark.parametrize(
    "command",
    [
        ["aggregate", "judged.csv", "--method", "majority"],
        ["panel", "judged.csv"],
        ["label", "--recorded", "judged.csv", "--labels-per-item", "2"],
    ],
    ids=lambda command: command[0],
)
def test_a_wide_table(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--json"]) == 0
    said = capsys.readouterr()
    assert SAID in said.err
    assert "judged.csv is separated by semicolons" in said.err
    assert json.loads(said.out)["items"] == 30
    assert main([*command, "--wide", "--columns", "id,ann,bob", "--json"]) == 0
    assert "2 judges in columns ann and bob" in capsys.readouterr().err
    assert main([*command, "--wide", "--columns", "id,ann"]) == 2
    assert "expected the column of the items and those of two or more" in capsys.readouterr().err


def test_gold_of_the_same_table_is_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--method", "majority", "--truth", "judged.csv", "--json"]
    for more in ([], ["--wide", "--columns", "id,ann,bob,cem"]):
        assert main(["aggregate", "judged.csv", *options, *more]) == 0
        assert json.loads(capsys.readouterr().out)["error"] == pytest.approx(5 / 30)
    assert main(["aggregate", "judged.csv", *options, "--wide", "--columns", "id,ann,bob"]) == 0


def test_stdin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WIDE.encode())))
    assert main(["aggregate", "-", "--method", "majority", "--json"]) == 0
    assert SAID in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_labels_that_look_alike(capsys: pytest.CaptureFixture[str]) -> None:
    Path("labels.csv").write_text("item,rater,label\n1,a,Yes\n1,b,yes\n2,a,no\n2,b,Yes\n")
    command = ["aggregate", "labels.csv", "--method", "majority", "--json"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "warning: values of label look alike" in said.err
    assert "--merge" in said.err
    assert json.loads(said.out)["classes"] == 3
    assert main([*command, "--merge"]) == 0
    said = capsys.readouterr()
    assert "look alike" not in said.err
    assert json.loads(said.out)["classes"] == 2


def test_the_usual_table_needs_no_words(capsys: pytest.CaptureFixture[str]) -> None:
    Path("labels.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,x\n")
    assert main(["aggregate", "labels.csv", "--method", "majority", "--json"]) == 0
    assert capsys.readouterr().err == ""


def test_numbers_in_a_wide_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{n},{n * 1.5},{n * 1.5 + 0.1}\n" for n in range(50))
    Path("sizes.csv").write_text(f"id,ann,bob\n{rows}")
    assert main(["aggregate", "sizes.csv", "--numeric", "--wide", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["labels"] == 100
    assert "2 judges in columns ann and bob" in said.err


def test_an_audit_of_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    Path("verdicts.csv").write_text("question;verdict\n1;ok\n2;spam\n3;ok\n4;ok\n")
    assert main(["audit", "draw", "verdicts.csv", "--share", "1", "--out", "list.csv"]) == 0
    Path("gold.csv").write_text("example_id,gold\n1,ok\n2,ok\n3,ok\n4,ok\n")
    capsys.readouterr()
    command = ["audit", "bound", "verdicts.csv", "gold.csv", "--drawn", "list.csv", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["wrong"] == 1


def test_several_files_are_recognised_each(capsys: pytest.CaptureFixture[str]) -> None:
    Path("parts").mkdir()
    Path("parts/a.csv").write_text("item,rater,label\n1,a,x\n1,b,y\n")
    Path("parts/b.csv").write_text(wide("id,a,b,c").replace("\n1,", "\n11,"))
    command = ["aggregate", "parts", "--method", "majority", "--json"]
    assert main([*command, "--wide"]) == 2
    assert "--wide is for one file" in capsys.readouterr().err
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["items"] == 4


@pytest.mark.filterwarnings("default")
def test_cells_that_stand_for_no_label(capsys: pytest.CaptureFixture[str]) -> None:
    Path("holes.csv").write_text(WIDE.replace("1;ok;ok;", "1;N/A;ok;", 1))
    command = ["aggregate", "holes.csv", "--method", "majority", "--json"]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "1 values of label are 'N/A', which looks like a missing label" in said.err
    assert json.loads(said.out)["classes"] == 3
    assert main([*command, "--blank", "N/A,-"]) == 0
    said = capsys.readouterr()
    assert "looks like" not in said.err
    record = json.loads(said.out)
    assert (record["classes"], record["labels"]) == (2, 89)
