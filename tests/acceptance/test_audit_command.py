"""`venire audit` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import venire as vn
from venire.cli import main

DRAW = ["audit", "draw", "verdicts.csv", "--share", "0.1", "--seed", "1", "--out", "to-audit.csv"]


def truth(task: str) -> str:
    return "spam" if int(task) % 5 == 0 else "ok"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three labelers, right on 85 %, on 600 posts; their verdicts by `venire aggregate`."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["task,worker,label"]
    for task in range(600):
        for worker in ("ann", "bob", "cat"):
            right = rng.random() < 0.85
            said = truth(str(task)) if right else {"ok": "spam", "spam": "ok"}[truth(str(task))]
            lines.append(f"{task},{worker},{said}")
    Path("labels.csv").write_text("\n".join(lines) + "\n")
    for name in ("verdicts.csv", "verdicts.jsonl"):
        assert main(["aggregate", "labels.csv", "--method", "majority", "--out", name]) == 0
    return tmp_path


def read(name: str) -> list[dict[str, str]]:
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fill(name: str, count: int | None = None) -> None:
    """What the auditor does: the labels of the first so many."""
    rows = read(name)
    for row in rows[:count]:
        row["label"] = truth(row["task"])
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["task", "label", "drawn"])
        writer.writeheader()
        writer.writerows(rows)


def verdicts() -> dict[str, str]:
    return {row["task"]: row["label"] for row in read("verdicts.csv")}


def test_from_labels_to_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(DRAW) == 0
    said = capsys.readouterr()
    assert "60 of 600 verdicts, seed 1\n" in said.out
    assert "venire audit bound verdicts.csv to-audit.csv" in said.out
    rows = read("to-audit.csv")
    assert [row["task"] for row in rows] == [t for t, _ in vn.draw_audit(verdicts(), 0.1, 1)]
    assert {row["label"] for row in rows} == {""}  # the auditor does not see the verdict

    fill("to-audit.csv", 40)
    assert main(["audit", "bound", "verdicts.csv", "to-audit.csv", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    got = json.loads(said.out)
    gold = {row["task"]: truth(row["task"]) for row in rows[:40]}
    wanted = vn.audit_bounds(verdicts(), gold)
    assert [got[k] for k in ("level", "verdicts", "audited", "skipped")] == [0.95, 600, 40, 0]
    assert got["wrong"] == sum(verdicts()[task] != gold[task] for task in gold)
    assert (got["low"], got["high"]) == wanted.overall.interval
    assert got["upper"] == wanted.overall.upper
    assert {c["label"]: c["upper"] for c in got["classes"]} == {
        label: bound.upper for label, bound in wanted.classes.items()
    }
    errors = sum(label != truth(task) for task, label in verdicts().items()) / 600
    assert got["low"] <= errors <= got["upper"]


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(DRAW) == 0
    fill("to-audit.csv")
    capsys.readouterr()
    assert main(["audit", "bound", "verdicts.jsonl", "to-audit.csv", "--level", "0.9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("with probability 90 % at most ")
    assert lines[0].endswith(" of verdicts are wrong, of these 600")
    heads = ["verdict", "verdicts", "audited", "wrong", "estimate", "at", "most", "interval"]
    assert lines[2].split() == heads
    assert lines[3].split()[:3] == ["all", "600", "60"]
    assert {line.split()[0] for line in lines[4:6]} == {"ok", "spam"}
    assert lines[-1] == "each row holds at 90 % by itself, however often you have looked"


def test_rare_classes_and_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*DRAW, "--at-least", "40"]) == 0
    assert "more of rare classes, seed 1" in capsys.readouterr().out
    drawn = read("to-audit.csv")
    assert sum(row["drawn"] == "extra" for row in drawn) > 10
    fill("to-audit.csv")
    capsys.readouterr()
    assert main(["audit", "bound", "verdicts.csv", "to-audit.csv", "--ongoing", "--json"]) == 0
    got = json.loads(capsys.readouterr().out)
    assert got["audited"] == 60
    assert got["ongoing"]
    assert "verdicts" not in got
    assert next(c for c in got["classes"] if c["label"] == "spam")["audited"] == 40


def test_a_seed_is_drawn_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = []
    for name in ("a.jsonl", "b.jsonl"):
        capsys.readouterr()
        assert main(["audit", "draw", "verdicts.csv", "--out", name, "--json"]) == 0
        got = json.loads(capsys.readouterr().out)
        assert (got["sample"], got["extra"]) == (30, 0)
        seeds.append(got["seed"])
        again = [t for t, _ in vn.draw_audit(verdicts(), 0.05, got["seed"])]
        lines = Path(name).read_text().splitlines()
        assert [json.loads(line)["task"] for line in lines] == again
    assert seeds[0] != seeds[1]


def test_trusted_labels_in_a_file_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(DRAW) == 0
    rows = read("to-audit.csv")
    lines = [f"{row['task']},{truth(row['task'])}" for row in rows]
    Path("gold.csv").write_text("\n".join(["task,label", *lines[1:10]]) + "\n")
    capsys.readouterr()
    bound = ["audit", "bound", "verdicts.csv", "gold.csv"]
    assert main([*bound, "--drawn", "to-audit.csv"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "skipped tasks, which came before audited ones, count as wrong above" in said.out
    assert main(bound) == 0
    assert "hold if the tasks were drawn at random" in capsys.readouterr().err

    other = next(task for task in verdicts() if task not in {row["task"] for row in rows})
    Path("gold.csv").write_text(f"task,label\n{other},ok\n")
    assert main([*bound, "--drawn", "to-audit.csv"]) == 2
    message = f"gold.csv: task '{other}' has gold and was not drawn, expected gold of drawn tasks"
    assert message in capsys.readouterr().err


def test_a_label_that_no_verdict_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(DRAW) == 0
    fill("to-audit.csv")
    text = Path("to-audit.csv").read_text().replace(",ok,", ",eggs,", 1)
    Path("to-audit.csv").write_text(text)
    capsys.readouterr()
    assert main(["audit", "bound", "verdicts.csv", "to-audit.csv"]) == 0
    warning = "warning: the trusted label of 1 task is not one of the verdicts', such as 'eggs'"
    assert warning in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["drew", "verdicts.csv"], "unknown action 'drew': did you mean 'draw'?"),
        (["draw", "verdicts.csv"], "audit draw needs --out: give a file for the list"),
        (["bound", "verdicts.csv"], "audit bound needs GOLD: give the file of the trusted labels"),
        (
            ["bound", "verdicts.csv", "g.csv", "--seed", "1"],
            "--seed is an option of audit draw, not",
        ),
        (
            ["draw", "verdicts.csv", "--out", "x.csv", "--ongoing"],
            "--ongoing is an option of",
        ),
        (["draw", "verdicts.csv", "--out", "x.txt"], "expected .csv, .parquet"),
        (["draw", "verdicts.csv", "--out", "labels.csv"], "it exists and may hold"),
        (["draw", "verdicts.csv", "--out", "x.csv", "--share", "5"], "got the share 5, expected"),
        (["draw", "nothing.csv", "--out", "x.csv"], "nothing.csv: cannot be read"),
        (["bound", "verdicts.csv", "nothing.csv"], "nothing.csv: cannot be read"),
        (["bound", "verdicts.csv", "verdicts.csv", "--level", "95"], "got the level 95, expected"),
        (["bound", "labels.csv", "verdicts.csv"], "line 3: task '0' has a verdict above"),
        (["draw", "labels.csv", "--columns", "task", "--out", "x.csv"], "expected 2 names"),
    ],
)
def test_errors(args: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["audit", *args]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err
    assert not Path("x.csv").exists()


def test_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(DRAW) == 0
    assert main(["audit", "bound", "verdicts.csv", "to-audit.csv"]) == 2
    assert "to-audit.csv: no label is filled in" in capsys.readouterr().err
    assert main(DRAW) == 2  # it would be lost if it were filled in
