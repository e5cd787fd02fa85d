"""`venire compare`, as a user runs it."""

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
from tests.unit.simulation.points import count
from venire import FixedOverlap, Greedy, simulate
from venire_research.regimes import COLUMNS, REGIMES, regimes_named

VENIRE = [sys.executable, "-m", "venire", "compare"]
SMALL = ("--regime", "bursts", "--regime", "overload", "--quick", "--no-certificate")
TWO = ("--policy", "greedy", "--policy", "fixed-overlap:3")
ROOT = Path(__file__).parent.parent.parent


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(venire.__file__).parents[1])}


def run(folder: Path, *options: str, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    return forked.run(folder, "compare", *options, timeout=timeout)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def finished(folder: Path) -> subprocess.CompletedProcess[str]:
    done = run(folder, *SMALL, *TWO, "--measure", "true_share")
    assert (done.returncode, done.stderr) == (0, "")
    return done


def test_the_table_has_regimes_policies_mean_and_worst(
    finished: subprocess.CompletedProcess[str],
) -> None:
    assert finished.stdout.startswith("true utility, % of the weight, ± standard deviation")
    first = [line.split()[0] for line in finished.stdout.splitlines() if line.strip()]
    start = first.index("overload")
    assert first[start : start + 6] == ["overload", "bursts", "mean", "worst", "...", "ratio"]
    assert "greedy" in finished.stdout
    assert "Saved venire-compare/index.html" in finished.stdout
    assert "\x1b" not in finished.stdout


def test_the_csv_is_what_simulate_says(
    finished: subprocess.CompletedProcess[str], folder: Path
) -> None:
    rows = rows_of(folder / "venire-compare" / "regimes.csv")
    assert (len(rows), tuple(rows[0])) == (8, COLUMNS)
    for row in rows:
        slots, seed = int(row["slots"]), int(row["seed"])
        policy = Greedy() if row["policy"] == "greedy" else FixedOverlap(3)
        made = simulate(regimes_named([row["regime"]])[0].world(seed, slots), policy, slots=slots)
        assert float(row["utility"]) == made.utility
        assert float(row["true_utility"]) == made.true_utility
        assert row["certificate"] == row["share"] == ""
    summary = rows_of(folder / "venire-compare" / "summary.csv")
    assert {row["policy"] for row in summary} == {"greedy", "fixed-overlap:3"}


def test_the_same_command_runs_nothing_twice(
    finished: subprocess.CompletedProcess[str], folder: Path
) -> None:
    out = folder / "venire-compare"
    before = {path.name: path.read_bytes() for path in out.iterdir() if ".sqlite" not in path.name}
    kept = count(out / "points.sqlite")
    again = run(folder, *SMALL, *TWO, "--measure", "true_share", "--json")
    record: dict[str, Any] = json.loads(again.stdout)
    assert count(out / "points.sqlite") == kept == 8
    after = {path.name: path.read_bytes() for path in out.iterdir() if ".sqlite" not in path.name}
    assert before == after
    assert set(before) == {"regimes.csv", "summary.csv", "regimes.png", "index.html"}
    assert (record["suite"], record["quick"], len(record["rows"])) == ("regimes-1", True, 8)
    assert {line["suite"] for line in record["rows"] + record["summary"]} == {"regimes-1-quick"}
    assert {line["policy"] for line in record["summary"]} == {"greedy", "fixed-overlap:3"}
    assert record["left_out"] == {}
    page = (out / "index.html").read_text()
    assert record["command"] in page
    assert "http" not in page


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--regime", "burst"), "did you mean 'bursts'? Known: adversarial, bluebird"),
        (("--policy", "gredy"), "did you mean 'greedy'? Known: everyone, fixed-overlap"),
        (("--policy", "greedy:3"), "expected none: write greedy"),
        (("--measure", "acuracy"), "did you mean 'accuracy'"),
        (("--learning", "nothing"), "unknown learning"),
        (("--seeds", "0"), "got --seeds 0"),
        (("--jobs", "0"), "got --jobs 0"),
        (("--data", "nowhere"), "got --data nowhere"),
        (("--regime", "dog", "--data", "."), "dog needs a label set"),
        (("--out", "taken"), "cannot make the folder taken"),
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
    (tmp_path / "taken").write_text("a file")
    assert main(["compare", *options]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert complaint in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_without_label_sets_it_says_what_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from venire_research.commands import compare
    from venire_research.regimes import suite

    some = tuple(regime for regime in REGIMES if regime.name in {"paper", "dog"})
    monkeypatch.setattr(suite, "REGIMES", some)
    compare.compare(
        policy=["greedy"], quick=True, seeds=1, data=tmp_path, out=tmp_path / "out",
        certificate=False, jobs=1,
    )  # fmt: skip
    said = capsys.readouterr()
    assert "left out: dog: dog (the DOG set" in said.out
    assert "there is no certificate, and so no share" in said.err
    assert "<b>dog</b> was left out" in (tmp_path / "out" / "index.html").read_text()


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path: Path) -> None:
    options = [*SMALL, *TWO, "--seeds", "40"]
    store = tmp_path / "venire-compare" / "points.sqlite"
    with forked.started(
        [*VENIRE, *options, "--jobs", "2"],
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
    assert said.splitlines()[-1] == "interrupted"
    assert "the same command resumes" in said
    assert 3 <= kept < 160
    assert [path.name for path in store.parent.iterdir() if path.suffix == ".csv"] == []
    done = run(tmp_path, *options, "--jobs", "1")
    assert done.returncode == 0
    assert count(store) == 160


def test_the_documentation_names_every_regime_and_its_example_runs() -> None:
    text = (ROOT / "docs" / "regimes.md").read_text()
    worlds = text.partition("## The worlds")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| `([\w-]+)` \|", worlds, flags=re.MULTILINE)
    assert rows == [regime.name for regime in REGIMES]
    for example in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        code = compile(example, "docs/regimes.md", "exec", dont_inherit=True)
        exec(code, {"__name__": "example"})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_suite_at_a_quick_look(tmp_path: Path, data: Path) -> None:
    done = run(tmp_path, "--quick", "--data", str(data), timeout=800)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "venire-compare" / "regimes.csv")
    assert {row["regime"] for row in rows} == {regime.name for regime in REGIMES}
