"""`venire aggregate` as a user meets it: in a folder of their own, with good files and bad."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import venire
from tests.forked import started
from tests.marks import nightly
from tests.unit.labels.bad import BAD_LABELS, BAD_TRUTH, BadFile
from venire.cli import main
from venire.cli.aggregate import METHOD
from venire.estimators.base import method_named, methods
from venire.estimators.metrics import error_rate
from venire.labels.sources import as_table, as_truth

METHODS = ("auto", "majority", "weighted-majority", "one-coin", "dawid-skene", "ordinal")
KEYS = ["method", "chosen", "items", "labelers", "labels", "classes", "iterations"]
KEYS += ["converged", "log_likelihood", "alpha", "entropy", "error", "ece", "seconds"]
TRUTH = {f"t{i}": ("yes", "no")[i % 2] for i in range(40)}
WORKERS = {"ann": 0.95, "bob": 0.9, "cat": 0.85, "dan": 0.7, "eve": 0.55}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(venire.__file__).parents[1])}
OUT = ["--out", "v.csv", "--skills", "s.csv"]


def made_labels() -> list[tuple[str, str, str]]:
    rng = np.random.default_rng(1)
    other = {"yes": "no", "no": "yes"}
    return [
        (task, worker, right if rng.random() < skill else other[right])
        for task, right in TRUTH.items()
        for worker, skill in WORKERS.items()
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    labels = "".join(f"{t},{w},{said}\n" for t, w, said in made_labels())
    Path("labels.csv").write_text("task,worker,label\n" + labels)
    Path("truth.csv").write_text("task,label\n" + "".join(f"{t},{c}\n" for t, c in TRUTH.items()))
    return tmp_path


@pytest.fixture
def record(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `venire aggregate --json` and return what it printed."""

    def run(*args: str) -> dict[str, Any]:
        assert main(["aggregate", *args, "--json"]) == 0
        read: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
        return read

    return run


def rows(name: str) -> list[dict[str, str]]:
    with open(name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_help_names_every_method() -> None:
    assert set(METHODS) <= set(methods())
    assert all(name in METHOD for name in METHODS)


@pytest.mark.parametrize("method", METHODS[:-1])
def test_every_method(method: str, record: Any) -> None:
    got = record("labels.csv", "--truth", "truth.csv", "--method", method, *OUT)
    related = ["relations", "families", "undecided", "confidence", "checked"]
    related = related if method == "auto" else []
    assert list(got) == [*KEYS[:-1], *related, "seconds"]
    assert got["method"] == method
    assert got["chosen"] in METHODS if method == "auto" else got["chosen"] == method
    assert [got[key] for key in KEYS[2:6]] == [40, 5, 200, 2]
    assert 0 <= got["error"] <= 0.25
    assert 0 <= got["ece"] <= 0.5
    assert isinstance(got["converged"], bool)
    verdicts, skills = rows("v.csv"), rows("s.csv")
    assert [row["task"] for row in verdicts] == list(TRUTH)
    assert list(verdicts[0]) == ["task", "label", "confidence", "entropy"]
    assert all(0 <= float(row["entropy"]) <= 1 for row in verdicts)
    assert -1 <= got["alpha"] <= 1
    assert 0 <= got["entropy"] <= 1
    assert {row["label"] for row in verdicts} == {"yes", "no"}
    assert all(0.5 <= float(row["confidence"]) <= 1 for row in verdicts)
    assert [row["worker"] for row in skills] == list(WORKERS)
    assert list(skills[0]) == ["worker", "labels", "skill", "low", "high"]
    assert {row["labels"] for row in skills} == {"40"}
    for row in skills:
        if row["low"]:
            assert 0 <= float(row["low"]) <= float(row["skill"]) <= float(row["high"]) <= 1


def test_the_default_is_auto(record: Any) -> None:
    assert record("labels.csv")["method"] == "auto"


def test_without_truth_nothing_is_judged(record: Any) -> None:
    got = record("labels.csv", "--method", "one-coin")
    assert list(got) == [key for key in KEYS if key not in ("error", "ece")]


def test_truth_of_some_tasks_and_a_tie(record: Any) -> None:
    Path("labels.csv").write_text("task,worker,label\na,1,x\na,2,y\nb,1,x\nb,2,x\n")
    Path("truth.csv").write_text("task,label\na,y\nz,x\n")
    got = record("labels.csv", "--truth", "truth.csv", "--method", "majority")
    assert got["error"] == 0.5


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_truth_that_nobody_names(more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("labels.csv").write_text("task,worker,label\n7,1,x\n7,2,x\n8,1,y\n8,2,y\n9,1,x\n")
    Path("truth.csv").write_text("task,label\n7,x\n8,Y\n9,z\nother,z\n")
    args = ["labels.csv", "--truth", "truth.csv", "--method", "majority", *more]
    assert main(["aggregate", *args]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "warning: the truth of 2 tasks is not one of the classes, such as 'Y' for task 8: "
        "verdicts on them count as wrong\n"
    )
    assert json.loads(out)["error"] == pytest.approx(2 / 3) if more else "66.67%" in out


def test_the_library_says_the_same(record: Any) -> None:
    got = record("labels.csv", "--truth", "truth.csv", "--method", "one-coin", *OUT)
    table = as_table(made_labels())
    fitted = method_named("one-coin").fit(table)
    assert got["error"] == error_rate(fitted.posteriors_, as_truth(TRUTH, table))
    assert {row["task"]: row["label"] for row in rows("v.csv")} == fitted.labels_
    written = {row["worker"]: float(row["skill"]) for row in rows("s.csv")}
    assert written == pytest.approx(fitted.skills_)


def test_parquet_in_and_out(record: Any) -> None:
    names = ("task", "worker", "label")
    columns = dict(zip(names, zip(*made_labels(), strict=True), strict=True))
    parquet.write_table(pa.table({k: list(v) for k, v in columns.items()}), "labels.parquet")
    args = ["--truth", "truth.csv", "--method", "one-coin", "--probabilities"]
    one = record("labels.csv", *args, *OUT)
    two = record("labels.parquet", *args, "--out", "v.parquet", "--skills", "s.parquet")
    assert one | {"seconds": 0} == two | {"seconds": 0}
    for name in ("v", "s"):
        read = parquet.read_table(f"{name}.parquet").to_pylist()
        text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in read]
        assert text == rows(f"{name}.csv")
    expected = {"task", "label", "confidence", "entropy", "p(no)", "p(yes)"}
    assert set(rows("v.csv")[0]) == expected


def test_json_lines_in_and_out(record: Any) -> None:
    names = ("task", "worker", "label")
    lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in made_labels()]
    Path("labels.ndjson").write_text("".join(lines) + "\n")
    truth = [json.dumps({"label": c, "task": t}) + "\n" for t, c in TRUTH.items()]
    Path("truth.jsonl").write_text("".join(truth))
    one = record("labels.csv", "--truth", "truth.csv", "--method", "one-coin", *OUT)
    args = ["--truth", "truth.jsonl", "--method", "one-coin"]
    two = record("labels.ndjson", *args, "--out", "v.jsonl", "--skills", "s.ndjson")
    assert one | {"seconds": 0} == two | {"seconds": 0}
    for name, read in (("v", "v.jsonl"), ("s", "s.ndjson")):
        found = [json.loads(line) for line in Path(read).read_text().splitlines()]
        text = [{k: "" if v is None else str(v) for k, v in row.items()} for row in found]
        assert text == rows(f"{name}.csv")


def test_names_of_columns(record: Any) -> None:
    text = Path("labels.csv").read_text()
    Path("judged.csv").write_text(text.replace("task,worker,label", "Item,Judge,Verdict", 1))
    lines = [{"item": t, "judge": w, "verdict": said} for t, w, said in made_labels()]
    Path("judged.jsonl").write_text("\n".join(map(json.dumps, lines)))
    truth = Path("truth.csv").read_text()
    Path("right.csv").write_text(truth.replace("task,label", "item,verdict", 1))
    expected = record("labels.csv", "--truth", "truth.csv", "--method", "majority")
    for name in ("judged.csv", "judged.jsonl"):
        args = ["--columns", "item,judge,verdict", "--truth", "right.csv", "--method", "majority"]
        got = record(name, *args)
        assert got | {"seconds": 0} == expected | {"seconds": 0}


def test_ties_are_broken_by_the_seed(record: Any) -> None:
    votes = "".join(f"t{i},1,x\nt{i},2,y\n" for i in range(40))
    Path("labels.csv").write_text("task,worker,label\n" + votes)
    drawn = []
    for seed in ("0", "0", "1"):
        record("labels.csv", "--method", "majority", "--seed", seed, "--out", "v.csv")
        drawn.append([row["label"] for row in rows("v.csv")])
    assert drawn[0] == drawn[1] != drawn[2]
    assert 8 <= drawn[0].count("x") <= 32


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: not JSON"),
        ("[1, 2]", "line 2: a list, expected an object"),
        ('{"task": 1, "wroker": 1, "label": "x"}', "line 2: .*did you mean it by 'wroker'"),
        ('{"task": 1, "worker": 1, "label": null}', "line 2: label is missing"),
        ('{"task": 1, "worker": 1, "label": ["x"]}', r"line 2: label is \['x'\], a list"),
        ('{"task": 7, "worker": 1, "label": "y"}', "line 2: worker 1 labels task 7 again"),
    ],
)
def test_malformed_json_lines(line: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("labels.jsonl").write_text('{"task": 7, "worker": 1, "label": "x"}\n' + line + "\n")
    err = fails(["labels.jsonl", *OUT], capsys)
    assert re.search(says, err)
    Path("labels.jsonl").write_text("\n")
    assert "no rows" in fails(["labels.jsonl", *OUT], capsys)


def test_whole_numbers_and_declared_classes(record: Any) -> None:
    Path("labels.csv").write_text("task,worker,label\n7,1,10\n8,1,9\n7,2,10\n8,2,9\n")
    assert record("labels.csv", "--method", "majority")["classes"] == 2
    args = ["--method", "majority", "--classes", "10,9,8", "--out", "v.csv"]
    assert record("labels.csv", *args)["classes"] == 3
    assert [(row["task"], row["label"]) for row in rows("v.csv")] == [("7", "10"), ("8", "9")]


def test_repeats(record: Any) -> None:
    Path("labels.csv").write_text("task,worker,label\na,1,x\nb,1,y\na,1,y\n")
    for repeats, label in (("first", "x"), ("last", "y")):
        record("labels.csv", "--method", "majority", "--repeats", repeats, "--out", "v.csv")
        assert rows("v.csv")[0]["label"] == label


@pytest.mark.parametrize("method", METHODS[:-1])
def test_words(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["aggregate", "labels.csv", "--truth", "truth.csv", "--method", method]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{method}: 200 labels of 40 tasks by 5 labelers, 2 classes\n")
    assert "best     ann" in out or "best     bob" in out
    assert re.search(r"truth    known of 40 of 40 tasks: \d+\.\d\d% of the verdicts", out)
    assert "eve" in out
    assert "\nmodel    " in out or method != "auto"
    assert err == ""


def fails(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail in one line, and leave no file behind."""
    before = sorted(os.listdir())
    assert main(["aggregate", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before
    return err


def _write(name: str, content: str | bytes) -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("bad", BAD_LABELS, ids=lambda bad: bad.name)
def test_malformed_labels(bad: BadFile, capsys: pytest.CaptureFixture[str]) -> None:
    _write("labels.csv", bad.content)
    err = fails(["labels.csv", "--method", "one-coin", *bad.options, *OUT], capsys)
    assert err.startswith("error: labels.csv" + (f", line {bad.line}: " if bad.line else ": "))
    assert bad.says in err


@pytest.mark.parametrize("bad", BAD_TRUTH, ids=lambda bad: bad.name)
def test_malformed_truth(bad: BadFile, capsys: pytest.CaptureFixture[str]) -> None:
    _write("labels.csv", "task,worker,label\na,ann,yes\nb,ann,no\n")
    _write("truth.csv", bad.content)
    args = ["labels.csv", "--truth", "truth.csv", "--method", "one-coin", *OUT]
    err = fails(args, capsys)
    assert err.startswith("error: truth.csv" + (f", line {bad.line}: " if bad.line else ": "))
    assert bad.says in err


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"task": [1, 2], "worker": [1, 1], "label": ["x", None]}, "row 2: label is missing"),
        ({"task": [1, 2], "worker": [1, 1], "label": [0.5, float("nan")]}, "row 2: label is NaN"),
        ({"task": [1, 2], "worker": [1, 1], "label": ["x", "x"]}, "one class only"),
        ({"task": [1, 2], "label": ["x", "y"]}, "no column says who gave the label"),
        ({"task": [1, 1], "worker": [1, 1], "label": ["x", "y"]}, "row 2: worker 1 labels task 1"),
    ],
)
def test_malformed_parquet(
    table: dict[str, Any], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet.write_table(pa.table(table), "labels.parquet")
    err = fails(["labels.parquet", "--method", "one-coin", *OUT], capsys)
    assert err.startswith("error: labels.parquet: ")
    assert says in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nowhere.csv"], "no such file"),
        (["labels.csv", "--truth", "nowhere.csv"], "no such file"),
        (["labels.csv", "--method", "majorty"], "did you mean 'majority'?"),
        (["labels.csv", "--repeats", "frist"], "did you mean 'first'?"),
        (["labels.csv", "--classes", "a"], "expected two names or more"),
        (["labels.csv", "--probabilities"], "--probabilities needs --out"),
        (["labels.csv", "--columns", "a,b"], "expected 3 names, for task, worker, label"),
        (["labels.csv", "--columns", "a,b,a"], "expected 3 names"),
        (["labels.csv", "--columns", "item,worker,label"], "there is no column 'item'"),
        (["labels.csv", "--ordinal", "--method", "majority"], "exclude each other"),
        (["labels.csv", "--numeric", "--ordinal"], "--numeric and --ordinal exclude each other"),
        (["labels.csv", "--numeric", "--classes", "a,b"], "measurements have no classes"),
        (["labels.csv", "--numeric", "--seed", "0"], "--numeric and --seed exclude each other"),
        (["labels.csv", "--numeric"], "label is 'yes', expected a finite number"),
        (["nowhere.jsonl"], "no such file"),
        ([], "LABELS"),
    ],
)
def test_bad_options(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in fails(args, capsys)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--out", "no/v.csv"], "there is no folder"),
        (["--out", "."], "it is a folder"),
        (["--out", "z.xlsx"], "its ending is '.xlsx', expected .csv, .parquet"),
        (["--skills", "z"], "its ending is '', expected .csv, .parquet"),
        (["--out", "labels.csv"], "another file of this command"),
        (["--out", "x.csv", "--skills", "x.csv"], "another file of this command"),
        (["--truth", "truth.csv", "--skills", "truth.csv"], "another file of this command"),
    ],
)
def test_targets_are_checked_before_anything_runs(
    args: list[str],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("venire.labels.sources.as_table", pytest.fail)
    assert says in fails(["labels.csv", *args], capsys)


def test_a_parquet_target_without_pyarrow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venire.files.results.find_spec", lambda name: None)
    assert "venire[data]" in fails(["labels.csv", "--out", "v.parquet"], capsys)


def test_ctrl_c_leaves_nothing_half_written(folder: Path) -> None:
    code = (
        "import sys, time; from venire.cli import main; from venire.estimators import base\n"
        "class Slow:\n"
        "    def fit(self, table):\n"
        "        print('ready', flush=True)\n"
        "        while True: time.sleep(0.01)\n"
        "base.method_named = lambda name: Slow()\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "aggregate", "labels.csv", *OUT]
    with started(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert sorted(os.listdir(folder)) == ["labels.csv", "truth.csv"]


@pytest.fixture
def files() -> str:
    """The labels in three files of whole tasks; returns their pattern."""
    rows = made_labels()
    Path("many").mkdir()
    for n in range(3):
        own = [row for row in rows if int(row[0][1:]) % 3 == n]
        columns = dict(zip(("task", "worker", "label"), zip(*own, strict=True), strict=True))
        made = pa.table({name: list(values) for name, values in columns.items()})
        parquet.write_table(made, f"many/{n}.parquet")
    return "many/*.parquet"


def alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    for key in one.keys() - {"seconds"}:
        wanted = one[key]
        assert other[key] == (pytest.approx(wanted, abs=1e-9) if wanted is not None else None), key


@pytest.mark.parametrize("more", [nightly([]), ["--gold", "gold.csv", "--costs", "yes:no=5"]])
def test_files_on_a_cluster_are_the_same_as_one_file(
    record: Any, files: str, more: list[str]
) -> None:
    pytest.importorskip("distributed", reason="pip install 'venire[distributed]'")
    Path("gold.csv").write_text("task,label\nt1,no\nt2,yes\nt3,no\n")
    more = ["--truth", "truth.csv", "--probabilities", "--method", "dawid-skene", *more]
    outputs = [["--out", f"v{n}.csv", "--skills", f"s{n}.csv"] for n in range(3)]
    whole = record("labels.csv", *outputs[0], *more)
    alike(whole, record(files, *outputs[1], *more))
    alike(whole, record(files, *outputs[2], *more, "--cluster", "local"))
    texts = [Path(f"v{n}.csv").read_text().splitlines() for n in range(3)]
    read = [list(csv.DictReader(lines)) for lines in texts]
    for other in read[1:]:
        by_task = {row["task"]: row for row in other}
        assert len(by_task) == len(read[0])
        for row in read[0]:
            found = by_task[row["task"]]
            assert found["label"] == row["label"]
            for name in ("confidence", "entropy", "p(no)", "p(yes)"):
                assert float(found[name]) == pytest.approx(float(row[name]), abs=1e-9)


@pytest.mark.slow
def test_a_task_in_two_files_is_refused_on_a_cluster(
    files: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="pip install 'venire[distributed]'")
    extra = pa.table({"task": ["t1"], "worker": ["zoe"], "label": ["no"]})
    parquet.write_table(extra, "many/3.parquet")
    assert main(["aggregate", files, "--method", "majority", "--cluster", "local"]) == 2
    assert "--repartition" in capsys.readouterr().err
    words = ["aggregate", files, "--method", "majority", "--cluster", "local", "--repartition"]
    assert main(words) == 0
    assert "201 labels of 40 tasks" in capsys.readouterr().out


def test_numbers_are_not_for_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["aggregate", "labels.csv", "--numeric", "--cluster", "local"]) == 2
    assert "--cluster and --numeric exclude each other" in capsys.readouterr().err


def test_a_large_table_is_told_of_clusters(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, files: str
) -> None:
    monkeypatch.setattr("venire.cli.shared.tables._memory", lambda: 40_000)
    assert main(["aggregate", files, "--method", "majority"]) == 0
    told = capsys.readouterr().err
    assert "200 labels may take" in told
    assert "--cluster (docs/cluster.md)" in told


def test_one_large_text_is_told_to_be_divided(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The number of labels is judged by the length of the lines, and a container's limit counts."""
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    monkeypatch.setattr("venire.cli.shared.tables.LIMITS", (limit, tmp_path / "none"))
    monkeypatch.setattr("venire.cli.shared.tables.FIRST", 1000)
    rows = [f"a-rather-long-name-of-a-task-{i:06},{w},{'yes' if i % 2 else 'no'}"
            for i in range(1000) for w in ("ann", "bob")]  # fmt: skip
    large = tmp_path / "large.csv"
    large.write_text("\n".join(["task,worker,label", *rows]))
    assert main(["aggregate", str(large), "--method", "majority"]) == 0
    assert capsys.readouterr().err == ""
    limit.write_text("500000\n")
    assert main(["aggregate", str(large), "--method", "majority"]) == 0
    told = capsys.readouterr().err
    found = re.match(
        r"warning: about ([\d,]+) labels may take .* write them as several files", told
    )
    assert found is not None
    assert int(found[1].replace(",", "")) == pytest.approx(2000, rel=0.1)
    assert "with --cluster (docs/cluster.md)" in told
