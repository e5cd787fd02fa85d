"""`venire rank` as a user meets it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from venire import BradleyTerry
from venire.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve models, the later the better, compared by four judges of whom one does not look."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["a,b,judge,better"]
    for judge in ("ann", "bob", "cat", "coin"):
        for _ in range(120):
            i, j = rng.choice(12, 2, replace=False)
            ahead = 0.5 if judge == "coin" else 1 / (1 + np.exp((j - i) / 2))
            draw = rng.random()
            won = "tie" if draw > 0.95 else f"m{i}" if draw < 0.95 * ahead else f"m{j}"
            lines.append(f"m{i},m{j},{judge},{won}")
    Path("judged.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


COLUMNS = ["--columns", "a,b,judge,better"]


def read(name: str) -> list[dict[str, str]]:
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_scores_and_labelers(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["rank", "judged.csv", *COLUMNS, "--out", "s.csv", "--skills", "j.jsonl", "--json"]
    assert main(args) == 0
    got = json.loads(capsys.readouterr().out)
    assert [got[k] for k in ("things", "labelers", "comparisons", "groups")] == [12, 4, 480, 1]
    assert got["ties"] > 0
    assert got["converged"]
    scores = read("s.csv")
    names = ["thing", "score", "standard_error", "comparisons", "wins", "group"]
    assert list(scores[0]) == names
    order = [int(row["thing"][1:]) for row in scores]
    assert np.corrcoef(order, range(12))[0, 1] < -0.95  # the best first
    lines = Path("j.jsonl").read_text().splitlines()
    judges = {r["worker"]: r["reliability"] for r in map(json.loads, lines)}
    assert judges["coin"] < 0.7 < min(judges[x] for x in ("ann", "bob", "cat"))
    library = BradleyTerry().fit("judged.csv", ("a", "b", "judge", "better"))
    assert [row["thing"] for row in scores] == list(library.ranking_)


def test_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rank", "judged.csv", *COLUMNS]) == 0
    out = capsys.readouterr().out
    assert "480 comparisons" in out
    assert "best     m" in out
    assert "relied" in out


def test_plain_model(capsys: pytest.CaptureFixture[str]) -> None:
    args = ["rank", "judged.csv", *COLUMNS, "--honest", "--spread", "3", "--skills", "j.csv"]
    assert main([*args, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spread"] == 3
    assert {row["reliability"] for row in read("j.csv")} == {"1.0"}


def test_groups_that_never_meet(capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.jsonl").write_text(
        '{"left": 1, "right": 2, "worker": "x", "winner": 1}\n'
        '{"left": 3, "right": 4, "worker": "x", "winner": 4}\n'
    )
    assert main(["rank", "c.jsonl", "--out", "s.jsonl"]) == 0
    assert capsys.readouterr().err.startswith("warning: the comparisons fall into 2 groups")
    rows = [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()]
    assert {row["thing"]: row["group"] for row in rows} == {1: 0, 2: 0, 3: 1, 4: 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "left,right,worker,winner\na,b,x,c\n",
            "line 2: winner is 'c', expected 'a', 'b' or 'tie'",
        ),
        ("left,right,worker,winner\na,b,x,a\na,a,x,a\n", "line 3: 'a' is compared with itself"),
        ("left,right,worker\na,b,x\n", "there is no column 'winner'"),
        ("left,right,worker,winner\n", "no comparisons below the header"),
    ],
)
def test_bad_files(text: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.csv").write_text(text)
    assert main(["rank", "bad.csv", "--out", "s.csv"]) == 2
    assert says in capsys.readouterr().err
    assert not Path("s.csv").exists()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--columns", "a,b"], "expected 4 names, for left, right, worker, winner"),
        (["--spread", "0"], "got spread=0.0"),
        (["--out", "s.txt"], "its ending is '.txt'"),
    ],
)
def test_bad_options(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = args if "--columns" in args else [*COLUMNS, *args]
    assert main(["rank", "judged.csv", *options]) == 2
    assert says in capsys.readouterr().err
