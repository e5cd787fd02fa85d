"""`venire reproduce`, as a user runs it."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import venire
from tests import forked
from tests.unit.simulation.points import count
from venire_research.figures import ORDER
from venire_research.sweeps.store import Store

VENIRE = [sys.executable, "-m", "venire", "reproduce"]
REAL = {"bird-regret", "bird-learning", "dog-regret", "dog-learning"}


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(venire.__file__).parents[1])}


def run(folder: Path, *options: str, timeout: float = 280) -> subprocess.CompletedProcess[str]:
    return forked.run(folder, "reproduce", *options, timeout=timeout)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Links(HTMLParser):
    """Everything that a page would load or link to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [v for k, v in attrs if k in {"src", "href", "srcset", "data"} and v]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def finished(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(folder, "--quick", "--seeds", "2", "--figure", "errata", "--figure", "bounds")


@pytest.fixture(scope="module")
def saved(finished: subprocess.CompletedProcess[str], folder: Path) -> Path:
    assert finished.returncode == 0, finished.stderr
    return folder / "venire-reproduce"


def test_says_nothing_on_stderr_and_names_the_report(
    finished: subprocess.CompletedProcess[str],
) -> None:
    assert finished.stderr == ""
    assert "Saved venire-reproduce/report.html" in finished.stdout
    assert "\x1b" not in finished.stdout


@pytest.mark.parametrize("name", ["errata", "bounds"])
def test_a_figure_is_a_table_two_pictures_and_its_runs(saved: Path, name: str) -> None:
    assert (saved / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert "<svg" in (saved / f"{name}.svg").read_text()
    assert len(rows_of(saved / f"{name}.csv")) > 10
    assert {row["seed"] for row in rows_of(saved / f"{name}-runs.csv")} == {"0", "1"}


def claims_in(saved: Path) -> list[dict[str, Any]]:
    return list(json.loads((saved / "claims.json").read_text())["claims"])


def test_every_claim_carries_value_tolerance_and_a_computed_verdict(saved: Path) -> None:
    claims = claims_in(saved)
    assert {claim["figure"] for claim in claims} == {"errata", "bounds"}
    for claim in claims:
        relation, _, target = claim["expected"].rpartition(" ")
        above = claim["value"] - float(target)
        off = {"at least": -above, "at most": above, "about": abs(above)}[relation]
        assert claim["holds"] is (off <= claim["tolerance"])
        assert claim["verdict"].split(",")[0] == ("holds" if claim["holds"] else "fails")
        assert claim["source"] in {"paper", "our reading", "venire"}
        if claim["source"] == "venire":
            assert claim["holds"], claim


def test_the_reports_have_a_row_for_every_claim(saved: Path) -> None:
    page, text = (saved / "report.html").read_text(), (saved / "report.md").read_text()
    claims = claims_in(saved)
    assert len(re.findall('<td class="(?:holds|fails)">', page)) == len(claims)
    table = [line.split(" | ") for line in text.splitlines() if line.startswith(("| hol", "| fai"))]
    assert [row[1] for row in table] == [claim["claim"] for claim in claims]
    for row, claim in zip(table, claims, strict=True):
        assert row[0].startswith("| " + claim["verdict"])
        assert float(row[4]) == pytest.approx(claim["tolerance"], rel=0.01)
        assert float(row[5]) == pytest.approx(claim["value"], rel=1e-3)


def test_the_page_is_whole_by_itself(saved: Path) -> None:
    links = Links()
    links.feed((saved / "report.html").read_text())
    assert links.found
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in links.found)
    assert "url(" not in (saved / "report.html").read_text()


def test_the_reports_say_how_to_make_them_again(saved: Path) -> None:
    for name in ("report.html", "report.md"):
        text = (saved / name).read_text()
        assert "venire reproduce --figure errata --figure bounds --quick --seeds 2" in text
        assert "0 to 1 (2 streams)" in text


def test_nothing_is_run_twice_and_the_same_comes_out(
    finished: subprocess.CompletedProcess[str], saved: Path, folder: Path
) -> None:
    before = {p.name: p.read_bytes() for p in saved.iterdir() if ".sqlite" not in p.name}
    with Store(saved / "points.sqlite") as store:
        count = len(store)
    options = ("--quick", "--seeds", "2", "--figure", "errata", "--figure", "bounds", "--json")
    again = run(folder, *options)
    assert json.loads(again.stdout)["claims"] == claims_in(saved)
    with Store(saved / "points.sqlite") as store:
        assert len(store) == count
    after = {p.name: p.read_bytes() for p in saved.iterdir() if ".sqlite" not in p.name}
    assert [name for name in before if before[name] != after[name]] == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--figure", "erata"), "did you mean 'errata'"),
        (("--seeds", "1"), "got --seeds 1"),
        (("--jobs", "0"), "got --jobs 0"),
        (("--data", "nowhere"), "got --data nowhere"),
        (("--figure", "dog-regret"), "dog-regret needs a label set"),
        (("--out", "taken"), "cannot make the folder taken"),
    ],
)
def test_errors_are_one_line(tmp_path: Path, options: tuple[str, ...], complaint: str) -> None:
    (tmp_path / "taken").write_text("a file")
    done = run(tmp_path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert complaint in done.stderr


def test_without_matplotlib_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from venire.cli import main

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["reproduce", "--quick", "--out", str(tmp_path / "out")]) == 2
    assert "pip install 'venire[plot]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path: Path) -> None:
    options = ["--quick", "--seeds", "6", "--figure", "synthetic-learning", "--jobs", "2"]
    store = tmp_path / "venire-reproduce" / "points.sqlite"
    with forked.started(
        [*VENIRE, *options],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        end = time.monotonic() + 150
        while count(store) < 3:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=60)
    kept = count(store)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "the same command resumes" in said
    assert 3 <= kept < 78
    done = run(tmp_path, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert count(store) == 78


@pytest.mark.slow
def test_one_real_figure(tmp_path: Path, data: Path) -> None:
    options = ("--quick", "--seeds", "2", "--figure", "bird-learning", "--data", str(data))
    done = run(tmp_path, *options)
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_of(tmp_path / "venire-reproduce" / "bird-learning.csv")
    assert [int(row["T_L"]) for row in rows][:4] == [5, 15, 25, 45]
    assert all(0.5 < float(row["right"]) < 1 for row in rows)
    assert "majority of all labels in the set 75.9%" in (
        tmp_path / "venire-reproduce" / "report.md"
    ).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_quick_shows_everything_within_two_minutes(tmp_path: Path, data: Path) -> None:
    run(tmp_path, "--quick", "--seeds", "2", "--figure", "errata", "--out", "warm")
    start = time.monotonic()
    done = run(tmp_path, "--quick", "--data", str(data), timeout=600)
    seconds = time.monotonic() - start
    assert (done.returncode, done.stderr) == (0, "")
    saved = tmp_path / "venire-reproduce"
    assert {claim["figure"] for claim in claims_in(saved)} == set(ORDER)
    assert all((saved / f"{name}.png").exists() for name in ORDER)
    assert seconds < 120


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_without_data_the_synthetic_figures_are_made_all_the_same(tmp_path: Path) -> None:
    done = run(tmp_path, "--quick", "--seeds", "2", timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    saved = tmp_path / "venire-reproduce"
    assert {claim["figure"] for claim in claims_in(saved)} == set(ORDER) - REAL
    assert "left out: bluebird" in done.stdout
    for name in ("report.md", "report.html"):
        assert "--data DIR" in (saved / name).read_text()
