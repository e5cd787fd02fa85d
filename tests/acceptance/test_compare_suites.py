"""`venire compare --equal-labels` and `--suite trust-2`, as a user runs them."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import venire
from tests import forked
from tests.unit.research.test_equal_labels import write_set
from tests.unit.simulation.points import count
from venire_research.equal_labels.measures import COLUMNS, measure
from venire_research.trust import WORLDS

VENIRE = [sys.executable, "-m", "venire", "compare"]
ROOT = Path(__file__).parent.parent.parent
TRUST = ("--suite", "trust-2", "--regime", "panel-3", "--policy", "fixed-overlap:3", "--quick")


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(venire.__file__).parents[1])}


def run(folder: Path, *options: str, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    return forked.run(folder, "compare", *options, timeout=timeout)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("suites")
    (made / "data").mkdir()
    write_set(made / "data" / "four", each=4)
    write_set(made / "data" / "two", each=2)
    return made


@pytest.fixture(scope="module")
def equal(folder: Path) -> subprocess.CompletedProcess[str]:
    done = run(folder, "--equal-labels", "--data", "data", "--seeds", "2", "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    return done


def test_equal_labels_shows_both_modes_and_says_whether_the_goals_are_met(
    equal: subprocess.CompletedProcess[str],
) -> None:
    text = equal.stdout
    assert "Labelers can be chosen: points above the best rival, streamed / revised" in text
    assert "Labelers come as they did: points above the best rival" in text
    for line in ("four", "two", "mean"):
        assert sum(row.startswith(line) for row in text.splitlines()) == 2
    assert re.search(r"Goal: never more than 1 point below the best rival: (yes|no)\.", text)
    assert "where labelers can be chosen: " in text
    assert "wrong among verdicts at least 95 % sure" in text
    assert "Left out, since the set does not have enough labels: four at 5; two at 3 and 5" in text
    assert "\x1b" not in text


def test_equal_labels_writes_what_one_cell_measures(
    equal: subprocess.CompletedProcess[str], folder: Path
) -> None:
    out = folder / "venire-compare"
    rows = rows_of(out / "equal-labels.csv")
    assert tuple(rows[0]) == COLUMNS
    cells = {(row["set"], row["mode"], row["point"], row["seed"]) for row in rows}
    assert len(cells) == (4 + 3) * 2 * 2
    found = measure("four", "come", 1.5, 1, folder / "data")
    written = [
        row for row in rows
        if (row["set"], row["mode"], row["point"], row["seed"]) == ("four", "come", "1.5", "1")
    ]  # fmt: skip
    assert [float(row["accuracy"]) for row in written] == [row["accuracy"] for row in found]
    assert len(rows_of(out / "equal-labels-summary.csv")) == (4 + 3) * 2
    text = (out / "equal-labels.md").read_text()
    assert text.startswith("Made by `venire compare --equal-labels --seeds 2 --data data")
    assert "| set | point | labels | streamed | revised | majority |" in text


def test_equal_labels_runs_nothing_twice(
    equal: subprocess.CompletedProcess[str], folder: Path
) -> None:
    out = folder / "venire-compare"
    kept = count(out / "points.sqlite")
    before = (out / "equal-labels.csv").read_bytes()
    again = run(folder, "--equal-labels", "--data", "data", "--seeds", "2", "--json")
    record: dict[str, Any] = json.loads(again.stdout)
    assert count(out / "points.sqlite") == kept == 5 * 2 * 2 * 2
    assert (out / "equal-labels.csv").read_bytes() == before
    assert record["suite"] == "equal-labels-3"
    assert {line["set"] for line in record["summary"]} == {"four", "two"}
    assert len(record["rows"]) == before.decode().count("\n") - 1
    assert any(line.startswith("Goal: never") for line in record["conclusions"])


@pytest.mark.slow  # as that of the other suites, in test_compare_command.py
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(
    folder: Path, tmp_path: Path
) -> None:
    options = ["--equal-labels", "--data", str(folder / "data"), "--seeds", "3", "--jobs", "2"]
    store = tmp_path / "venire-compare" / "points.sqlite"
    with forked.started(
        [*VENIRE, *options],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        end = time.monotonic() + 280
        while count(store) < 3:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=280)
    kept = count(store)
    assert process.returncode == 130
    assert "the same command resumes" in said
    assert 3 <= kept < 60
    assert not (store.parent / "equal-labels.csv").exists()
    done = run(tmp_path, *options)
    assert done.returncode == 0
    assert count(store) == 60


def test_trust_shows_who_passes(folder: Path) -> None:
    done = run(folder, *TRUST, "--seeds", "1", "--out", "trust", "--jobs", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "while-serving: right verdicts, %, points above majority / best" in done.stdout
    assert "then-serve:45: right verdicts" in done.stdout
    assert re.search(r"^[012] of 2 pass: at most 1 point below", done.stdout, flags=re.MULTILINE)
    lines = rows_of(folder / "trust" / "trust-summary.csv")
    assert [(line["world"], line["policy"]) for line in lines] == [
        ("panel-3", "fixed-overlap:3")
    ] * 2
    assert {line["passed"] for line in lines} <= {"True", "False"}
    assert {row["suite"] for row in rows_of(folder / "trust" / "trust.csv")} == {"trust-2-quick"}
    again = run(folder, *TRUST, "--seeds", "1", "--out", "trust", "--json")
    record = json.loads(again.stdout)
    assert (record["suite"], len(record["rows"]), record["quick"]) == ("trust-2", 2, True)
    assert count(folder / "trust" / "points.sqlite") == 2


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--suite", "trust"), "unknown suite 'trust': did you mean 'trust-2'"),
        (("--suite", "trust-2", "--equal-labels"), "expected one of them"),
        (("--suite", "trust-2", "--measure", "accuracy"), "which are for the suite regimes-1"),
        (("--equal-labels", "--no-certificate"), "which are for the suite regimes-1"),
        (("--suite", "trust-2", "--regime", "panel-2"), "unknown world 'panel-2'"),
        (("--suite", "trust-2", "--learning", "known"), "expected a learning method"),
        (("--equal-labels", "--data", "."), "there is no label set in ."),
        (("--equal-labels", "--data", ".", "--regime", "rte"), "unknown label set 'rte'"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    complaint: str,
) -> None:
    from venire.cli import main

    monkeypatch.chdir(tmp_path)
    assert main(["compare", *options]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert complaint in said.err
    assert list(tmp_path.iterdir()) == []


def test_two_policies_or_known_competences_are_refused_for_equal_labels(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from venire.cli import main

    data = ("compare", "--equal-labels", "--data", str(folder / "data"))
    assert main([*data, "--policy", "greedy", "--policy", "realised"]) == 2
    assert "got 2 policies, expected one" in capsys.readouterr().err
    assert main([*data, "--learning", "known"]) == 2
    assert "expected a learning method" in capsys.readouterr().err


def test_the_documentation_names_every_world_and_its_examples_run() -> None:
    text = (ROOT / "docs" / "regimes.md").read_text().partition("## The worlds of `trust-2`")[2]
    rows = re.findall(r"^\| `([\w-]+)` \|", text, flags=re.MULTILINE)
    assert [name for name in rows if name in {world.name for world in WORLDS}] == [
        world.name for world in WORLDS
    ]
    for example in re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "equal-labels.md").read_text(), flags=re.DOTALL
    ):
        code = compile(example, "docs/equal-labels.md", "exec", dont_inherit=True)
        exec(code, {"__name__": "example"})


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_equal_labels_on_a_real_set(tmp_path: Path, data: Path) -> None:
    options = ("--equal-labels", "--quick", "--regime", "temp", "--data", str(data))
    done = run(tmp_path, *options, timeout=1700)
    assert done.returncode == 0, done.stderr
    lines = rows_of(tmp_path / "venire-compare" / "equal-labels-summary.csv")
    assert {(line["mode"], line["point"]) for line in lines} == {
        (mode, point) for mode in ("chosen", "come") for point in ("1.5", "2", "3", "5", "2+1")
    }
