"""`venire simulate` as a user meets it: in a folder of their own, with good files and bad."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import venire
from tests.forked import started
from tests.unit.files.malformed import BAD_ITEMS, BAD_PANELS, Malformed
from venire import LearnThenServe, LearnWhileServing, Poisson, Random, World, simulate
from venire.cli import main

KEYS = [
    "policy",
    "learning",
    "slots",
    "seed",
    "items",
    "labels",
    "utility",
    "realised_utility",
    "true_utility",
    "genie_utility",
    "regret",
    "normalised_regret",
    "ratio",
    "labels_per_item",
    "money",
    "mean_delay",
    "mean_response",
    "seconds",
]
PANEL = "labeler,competence,capacity\nann,0.9,1\nbob,0.8,1\ncat,0.7,2\n"
ITEMS = "item,arrival,weight,truth,excluded\na,0,8,spam,\nb,0,3,ok,ann|bob\nc,2,4,ok,\n"
OUT = ["--assignments", "a.csv", "--exits", "e.csv"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(venire.__file__).parents[1])}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("panel.csv").write_text(PANEL)
    Path("items.csv").write_text(ITEMS)
    return tmp_path


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `venire simulate --json` and return what it printed."""

    def run(*args: str) -> dict[str, Any]:
        assert main(["simulate", "--json", *args]) == 0
        read: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
        return read

    return run


def rows(name: str) -> list[dict[str, str]]:
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_paper_s_stream(record: Any) -> None:
    got = record("--slots", "500", "--seed", "3")
    assert list(got) == KEYS
    run = simulate(World.synthetic(seed=3), slots=500)
    assert {k: got[k] for k in KEYS[:-1]} == run.summary()
    assert got["seconds"] > 0


def test_policy_learning_arrivals_weights_and_c(record: Any) -> None:
    got = record(
        *("--policy", "random:2", "--learning", "then-serve:20", "--slots", "300", "--seed", "5"),
        *("--arrivals", "poisson:3", "--weights", "4,8", "--c", "0.5"),
    )
    world = World.synthetic(5, arrivals=Poisson(3), weights=[4, 8])
    run = simulate(world, Random(2, seed=5), LearnThenServe(20, seed=5), 300, c=0.5)
    assert {k: got[k] for k in KEYS[:-1]} == run.summary()
    assert (got["policy"], got["learning"]) == ("random:2", "then-serve:20")


def test_a_trace_and_its_files(record: Any) -> None:
    got = record("--items", "items.csv", "--panel", "panel.csv", "--slots", "20", *OUT)
    assert (got["items"], got["slots"]) == (3, 20)
    assert got["true_utility"] is not None
    exits, assignments = rows("e.csv"), rows("a.csv")
    assert sorted(row["item"] for row in exits) == ["a", "b", "c"]
    assert len(assignments) == got["labels"] == sum(int(row["labels"]) for row in exits)
    assert {row["labeler"] for row in assignments if row["item"] == "b"} <= {"cat"}
    assert {row["verdict"] for row in exits} <= {"ok", "spam", ""}
    assert sum(row["item"] == "a" for row in assignments if row["slot"] == "0") > 0


def test_files_agree_with_the_library(record: Any) -> None:
    record("--policy", "random", "--slots", "200", "--learning", "then-serve:9", *OUT)
    run = simulate(World.synthetic(0), Random(), LearnThenServe(9), 200)
    written = [(int(r["slot"]), r["item"], r["labeler"], r["gain"]) for r in rows("a.csv")]
    given = [
        (a.slot, a.item, a.labeler, "" if math.isnan(a.gain) else repr(a.gain))
        for a in run.assignments()
    ]
    assert written == given
    assert any(gain == "" for *_, gain in written)
    ends = [
        (e.item, e.arrival, e.slot, e.labels, e.verdict.label or "", e.verdict.confidence, e.reason)
        for e in run.exits()
    ]
    assert [list(row.values()) for row in rows("e.csv")] == [list(map(str, e)) for e in ends]


@pytest.mark.parametrize("policy", ["greedy", "random"])
def test_same_seed_same_rows(policy: str, record: Any) -> None:
    args = ["--policy", policy, "--slots", "200", "--seed", "8", "--learning", "then-serve:5"]
    first, second = (
        record(*args, "--assignments", f"a{k}.csv", "--exits", f"e{k}.csv") for k in (1, 2)
    )
    other = record(*args[:-3], "9", *args[-2:], "--exits", "e3.csv")
    assert Path("a1.csv").read_bytes() == Path("a2.csv").read_bytes()
    assert Path("e1.csv").read_bytes() == Path("e2.csv").read_bytes()
    assert Path("e1.csv").read_bytes() != Path("e3.csv").read_bytes()
    assert first | {"seconds": 0} == second | {"seconds": 0}
    assert other["utility"] != first["utility"]


def test_without_truth_nobody_is_judged(record: Any) -> None:
    Path("items.csv").write_text("item,arrival,weight\na,0,8\nb,1,3\n")
    got = record("--items", "items.csv", "--panel", "panel.csv", *OUT)
    assert got["true_utility"] is None
    assert {row["verdict"] for row in rows("e.csv")} <= {"1", "2", ""}


def test_named_classes(record: Any) -> None:
    args = ["--items", "items.csv", "--panel", "panel.csv", "--classes", "ok,spam,eggs", *OUT]
    assert record(*args)["items"] == 3
    assert {row["verdict"] for row in rows("e.csv")} <= {"ok", "spam", "eggs", ""}


def test_the_synthetic_stream_with_your_panel(record: Any) -> None:
    got = record("--panel", "panel.csv", "--slots", "100", "--classes", "x,y", *OUT)
    assert got["items"] == len(World.synthetic(0).items(100))
    assert {row["labeler"] for row in rows("a.csv")} == {"ann", "bob", "cat"}
    assert {row["verdict"] for row in rows("e.csv")} == {"x", "y", ""}


def test_nobody_on_the_panel_knows_anything(
    record: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("panel.csv").write_text("labeler,competence\nann,0.5\nbob,0.1\n")
    got = record("--panel", "panel.csv", "--slots", "10")
    assert (got["labels"], got["utility"], got["ratio"]) == (0, 0, None)


def test_an_enormous_capacity_needs_no_enormous_memory(record: Any) -> None:
    Path("panel.csv").write_text("labeler,competence,capacity\nann,0.9,2147483647\n")
    assert record("--panel", "panel.csv", "--slots", "10", "--policy", "everyone")["labels"] > 0


def test_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--slots", "300", "--learning", "then-serve:20"]) == 0
    out, err = capsys.readouterr()
    for words in ("then-serve:20", "per item", "right", "paper's", "realised", "true", "genie's"):
        assert words in out
    assert "of the genie's utility" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert err == ""


def test_below_chance_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("panel.csv").write_text(PANEL + "dan,0.5,1\neve,0.2,1\n")
    assert main(["simulate", "--panel", "panel.csv", "--slots", "50", "--json"]) == 0
    out, err = capsys.readouterr()
    json.loads(out)
    said = "at or below chance (0.5 with 2 classes): utility gives no credit for such labels"
    assert err == f"warning: dan, eve are {said}\n"


def test_what_the_learner_finds_odd_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("panel.csv").write_text(
        "labeler,competence\n" + "".join(f"m{i},0.5\n" for i in range(20)) + "a,0.1\nb,0.1\nc,0.1\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        args = ["--panel", "panel.csv", "--slots", "200", "--learning", "then-serve:150"]
        assert main(["simulate", *args]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("warning: ") for line in lines)
    assert "and 20 more are at or below chance" in lines[0]


def test_a_learning_phase_without_end_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--slots", "20", "--learning", "then-serve:20", "--certify"]) == 0
    out, err = capsys.readouterr()
    assert "warning: the learning phase takes all of the 20 slots" in err
    assert "no item counts, so there is nothing to certify" in out
    assert "nobody could have earned" not in out


def test_settings_are_no_pictograms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--slots", "110", "--learning", "then-serve:100"]) == 0
    assert "learning then-serve:100: 110 slots, 30 labelers," in capsys.readouterr().out


def test_one_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    Path("panel.csv").write_text("labeler,competence\nann,0.9\n")
    assert main(["simulate", "--panel", "panel.csv", "--slots", "1"]) == 0
    assert ": 1 slot, 1 labeler, seed 0" in capsys.readouterr().out


def test_a_certificate_bounds_what_was_earned(
    record: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    got = record("--slots", "60", "--learning", "then-serve:20", "--certify")
    added = [key for key in got if "certificate" in key]
    assert list(got) == [*KEYS[:-1], *added, "seconds"]
    assert got["share_of_certificate"] == got["utility"] / got["certificate"] <= 1
    assert got["realised_share_of_certificate"] <= got["share_of_certificate"]
    assert 0 <= got["certificate_gap"] < 0.05
    assert got["certificate_method"] == "prices"
    assert main(["simulate", "--items", "items.csv", "--panel", "panel.csv", "--certify"]) == 0
    out = capsys.readouterr().out
    assert "of what anyone could have earned, knowing the future" in out
    assert "the exact optimum" in out


def fails(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail in one line, and leave no file behind."""
    before = sorted(os.listdir())
    assert main(["simulate", *args, *OUT]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before
    return err


@pytest.mark.parametrize("bad", BAD_ITEMS, ids=lambda bad: bad.name)
def test_malformed_items(bad: Malformed, capsys: pytest.CaptureFixture[str]) -> None:
    _write("items.csv", bad.content)
    err = fails(["--items", "items.csv", "--panel", "panel.csv", "--slots", "10"], capsys)
    assert err.startswith("error: items.csv" + (f", line {bad.line}: " if bad.line else ": "))
    assert bad.says in err


@pytest.mark.parametrize("bad", BAD_PANELS, ids=lambda bad: bad.name)
def test_malformed_panel(bad: Malformed, capsys: pytest.CaptureFixture[str]) -> None:
    _write("panel.csv", bad.content)
    err = fails(["--items", "items.csv", "--panel", "panel.csv"], capsys)
    assert err.startswith("error: panel.csv" + (f", line {bad.line}: " if bad.line else ": "))
    assert bad.says in err


def _write(name: str, content: str | bytes) -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--items", "items.csv"], "--items needs --panel"),
        (["--items", "items.csv", "--panel", "panel.csv", "--weights", "3"], "has its own"),
        (["--items", "items.csv", "--panel", "panel.csv", "--arrivals", "fixed:1"], "has its own"),
        (["--items", "nowhere.csv", "--panel", "panel.csv"], "no such file"),
        (["--items", "items.csv", "--panel", "panel.csv", "--slots", "2"], "--slots 3"),
        (["--policy", "gredy"], "did you mean 'greedy'?"),
        (["--policy", "greedy:3"], "expected none"),
        (["--learning", "then-serv:3"], "did you mean 'then-serve'?"),
        (["--arrivals", "poison:5"], "did you mean 'poisson'?"),
        (["--slots", "0"], "got --slots 0"),
        (["--seed", "-1"], "got --seed -1"),
        (["--c", "nan"], "got --c nan"),
        (["--classes", "a,a"], "expected two names or more"),
    ],
)
def test_bad_options(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in fails(args, capsys)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--exits", "no/e.csv"], "there is no folder"),
        (["--exits", "."], "it is a folder"),
        (["--exits", "panel.csv"], "another file of this command"),
        (["--exits", "x.csv", "--assignments", "x.csv"], "another file of this command"),
    ],
)
def test_targets_are_checked_before_anything_runs(
    args: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("venire.simulation.simulate", pytest.fail)
    assert main(["simulate", "--panel", "panel.csv", *args]) == 2
    assert says in capsys.readouterr().err
    assert Path("panel.csv").read_text() == PANEL


def test_ctrl_c_leaves_nothing_half_written(folder: Path) -> None:
    code = (
        "import sys, venire.simulation as s; from venire.cli import main; run = s.simulate\n"
        "def slow(*args):\n"
        "    print('ready', flush=True)\n"
        "    while True: run(*args)\n"
        "s.simulate = slow; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "simulate", "--slots", "100", *OUT]
    with started(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert sorted(os.listdir(folder)) == ["items.csv", "panel.csv"]


def test_ctrl_c_that_comes_while_an_object_is_freed_is_not_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Freed:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def slow(*args: Any) -> None:
        Freed()
        for _ in range(12_000):
            time.sleep(0.01)
        pytest.fail("it goes on")

    monkeypatch.setattr("venire.simulation.simulate", slow)
    assert main(["simulate", *OUT]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_who_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m venire simulate --slots 50 | true"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert done.stderr == ""


def test_learning_while_serving(record: Any) -> None:
    got = record("--learning", "while-serving:one-coin", "--slots", "300", "--seed", "2")
    run = simulate(World.synthetic(2), learning=LearnWhileServing("one-coin"), slots=300)
    assert {k: got[k] for k in KEYS[:-1]} == run.summary()
    assert got["learning"] == "while-serving:one-coin"
