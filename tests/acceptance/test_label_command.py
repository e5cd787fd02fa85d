"""`venire label` as a user meets it: on old data, and with a panel that is killed and resumed."""

from __future__ import annotations

import json
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import forked
from venire.cli import main

MINE = """
import asyncio, hashlib, os, signal, time
from contextlib import suppress

def draw(name, item):
    return int(hashlib.sha256(f"{name} {item}".encode()).hexdigest()[:8], 16) / 2**32

def judge(name, skill, pause=0.0):
    def call(item):
        with open("calls.log", "a") as file:  # what a provider would bill
            file.write(f"{name} {item['id']}\\n")
        with open("calls.log") as file:
            count = sum(1 for _ in file)
        if count >= int(os.environ.get("KILLED_AT", "1000000")):
            os.kill(os.getpid(), signal.SIGKILL)
        if count >= int(os.environ.get("STOPPED_AT", "1000000")):
            with suppress(FileExistsError), open("stopped", "x"):  # once
                os.kill(os.getpid(), signal.SIGINT)
        time.sleep(pause)
        right = "spam" if item["n"] % 3 == 0 else "ok"
        wrong = "ok" if right == "spam" else "spam"
        return right if draw(name, item["n"]) < skill else wrong
    return call

small, medium, large = judge("small", 0.65), judge("medium", 0.75, 0.002), judge("large", 0.92)

async def later(item):
    await asyncio.sleep(0.001)
    return judge("later", 0.8)(item)
"""

PANEL = """
labelers:
  - {id: small, price: 0.01, call: "mine:small"}
  - {id: medium, price: 0.02, call: "mine:medium", parallel: 2}
  - {id: large, price: 0.05, call: "mine:large"}
  - {id: later, price: 0.03, call: "mine:later", parallel: 4}
"""

LIVE = ["label", "items.jsonl", "--panel", "panel.yaml", "--budget", "9", "--out", "v.jsonl"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE)
    Path("panel.yaml").write_text(PANEL)
    rows = (json.dumps({"id": f"p{n}", "n": n}) for n in range(120))
    Path("items.jsonl").write_text("\n".join(rows) + "\n")
    rng = np.random.default_rng(0)
    lines, truth = ["task,worker,label"], ["task,label"]
    for task in range(200):
        right = rng.integers(2)
        truth.append(f"t{task},{right}")
        for worker, skill in enumerate((0.6, 0.7, 0.7, 0.8, 0.9)):
            lines.append(f"t{task},w{worker},{right if rng.random() < skill else 1 - right}")
    Path("labels.csv").write_text("\n".join(lines) + "\n")
    Path("truth.csv").write_text("\n".join(truth) + "\n")
    return tmp_path


def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    variables: Any = more
    return forked.run(Path.cwd(), *arguments, **variables)


def calls() -> list[str]:
    return Path("calls.log").read_text().splitlines()


def test_a_trusted_labeler_of_the_panel_gets_its_share(
    capsys: pytest.CaptureFixture[str],
) -> None:
    trusted = PANEL.replace('"mine:large"', '"mine:large", trusted: true')
    Path("panel.yaml").write_text(trusted)
    assert main([*LIVE, "--expert-share", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["expert"]
    assert found["id"] == "large"
    assert found["labels"] == len(found["answers"]) == 36  # 1.8 of 9, at 0.05 each
    rows = map(json.loads, Path("v.jsonl").read_text().splitlines())
    settled = {row["task"]: row["label"] for row in rows if row["task"] in found["answers"]}
    assert settled == found["answers"]


def test_an_expert_on_recorded_labels(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["label", "--recorded", "labels.csv", "--expert", "truth.csv", "--budget", "400"]
    assert main([*command, "--expert-price", "8"]) == 0
    assert "expert    5 labels of expert for 40, on the least sure items" in capsys.readouterr().out
    assert main([*command[:-2], "--labels", "400", "--expert-price", "8"]) == 2
    assert "no budget in money" in capsys.readouterr().err


def test_on_recorded_labels(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["label", "--recorded", "labels.csv", "--truth", "truth.csv"]
    assert main([*command, "--labels-per-item", "3", "--out", "v.jsonl"]) == 0
    printed = capsys.readouterr().out
    assert "labels    600 of 600, 3.00 an item" in printed
    assert "w4" in printed
    verdicts = [json.loads(line) for line in Path("v.jsonl").read_text().splitlines()]
    assert len(verdicts) == 200
    assert set(verdicts[0]) == {"task", "label", "confidence", "labels", "cost", "reason"}
    assert sum(row["labels"] for row in verdicts) == 600


def test_json_and_page(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.csv").write_text("labeler,price\nw0,1\nw1,1\nw2,2\nw3,2\nw4,6\n")
    command = ["label", "--recorded", "labels.csv", "--truth", "truth.csv", "--budget", "900"]
    assert main([*command, "--prices", "prices.csv", "--report", "r.html", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["spent"] <= 900
    assert 0.7 < record["accuracy"] <= 1
    assert [point["labels"] for point in record["curve"]][-1] == record["labels"]
    assert {one["id"] for one in record["labelers"]} == {"w0", "w1", "w2", "w3", "w4"}
    assert sum(one["spent"] for one in record["labelers"]) == pytest.approx(record["spent"])
    page = Path("r.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<svg" in page
    assert "http" not in page  # it opens offline


def test_targets_and_costs(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["label", "--recorded", "labels.csv", "--json"]
    assert main([*command, "--target", "0.9", "--costs", "1:0=10"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record["reasons"]) <= {"confident", "undecided"}
    assert record["budget"] is None


def test_a_guarantee_by_gold_that_tests_and_not_teaches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = Path("truth.csv").read_text().splitlines()
    drawn = random.Random(3).sample(rows[1:], 100)
    Path("gold.csv").write_text("\n".join(["task,label,drawn", *(f"{x},sample" for x in drawn)]))
    teach = [row for row in rows[1:] if row not in drawn][:30]
    dated = [f"{row},2026-11-16,{'asked' if n < 5 else ''}" for n, row in enumerate(teach)]
    Path("teach.csv").write_text("\n".join(["task,label,date,drawn", *dated]))
    command = ["label", "--recorded", "labels.csv", "--labels-per-item", "4", "--out", "v.jsonl"]
    promise = ["--guarantee", "0.7", "--guarantee-gold", "gold.csv"]
    more = ["--gold", "teach.csv", "--report", "r.html", "--target", "0.99"]
    assert main([*command, *promise, *more, "--json"]) == 0
    said = capsys.readouterr()
    assert "25 gold labels can show at most 96.7 %" in " ".join(said.err.split())
    record = json.loads(said.out)
    held = record["guarantee"]
    assert held["verdicts"] == 170
    assert record["confidence"] == (
        "checked on 25 gold labels (5 more were asked), of 16 November 2026"
    )
    verdicts = [json.loads(line) for line in Path("v.jsonl").read_text().splitlines()]
    right = dict(row.split(",") for row in rows[1:])
    marked = [row for row in verdicts if row["guaranteed"] == "yes"]
    assert len(marked) == held["guaranteed"] > 50
    assert sum(str(row["label"]) != right[str(row["task"])] for row in marked) <= 0.3 * len(marked)
    assert "<h2>Guarantee</h2>" in Path("r.html").read_text()
    assert main([*command, "--guarantee", "0.7", "--gold", "gold.csv"]) == 0
    assert "however often you look" in capsys.readouterr().out
    assert main([*command, *promise, "--gold", "gold.csv"]) == 2
    assert "gold that teaches or tests" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["label"], "give ITEMS and --panel, or --recorded"),
        (["label", "--recorded", "labels.csv"], "neither a budget nor a target"),
        (["label", "items.jsonl", "--panel", "panel.yaml", "--budget", "3"], "give --out"),
        (["label", "items.jsonl", "--recorded", "labels.csv"], "exclude each other"),
        (["label", "--recorded", "labels.csv", "--budget", "-3"], "expected 0 or more"),
        (["label", "--recorded", "labels.csv", "--labels", "3", "--labels-per-item", "3"], "drop"),
        (["label", "--recorded", "labels.csv", "--target", "95"], "expected a confidence"),
        (["label", "--recorded", "labels.csv", "--costs", "1-0"], "expected truth:verdict=cost"),
        (["label", "--recorded", "none.csv", "--budget", "3"], "cannot be read"),
        (["label", "--recorded", "labels.csv", "--labels", "9", "--report", "r.txt"], ".html"),
        ([*LIVE, "--prices", "prices.csv"], "--prices is an option of --recorded"),
    ],
)
def test_bad_options(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.timeout(600)
def test_killed_and_resumed_it_pays_for_nothing_twice() -> None:
    """SIGKILL at random places: the verdicts are those of a run that was never killed."""
    whole = run(*LIVE, "--journal", "whole.journal")
    assert whole.returncode == 0, whole.stderr
    wanted, bill = Path("v.jsonl").read_bytes(), len(calls())
    assert len(set(calls())) == bill
    for name in ("v.jsonl", "calls.log"):
        Path(name).unlink()
    kills, draw = 2, random.Random(1)
    for n in range(kills):
        place = draw.randint(n * bill // 3 + 10, (n + 1) * bill // 3)
        one = run(*LIVE, "--journal", "j", KILLED_AT=str(place))
        assert one.returncode == -signal.SIGKILL
    last = run(*LIVE, "--journal", "j")
    assert last.returncode == 0, last.stderr
    assert Path("v.jsonl").read_bytes() == wanted
    # in flight when it was killed: at most one question of each of the eight workers
    assert len(calls()) - len(set(calls())) <= 8 * kills
    assert len(set(calls())) == bill


def test_after_ctrl_c_what_was_paid_is_kept() -> None:
    one = run(*LIVE, STOPPED_AT="60")
    assert one.returncode == 130, one.stderr
    journal = Path("v.jsonl.journal").read_text().splitlines()
    assert len(journal) - 1 == len(calls())
    again = run(*LIVE)
    assert again.returncode == 0, again.stderr
    assert len(set(calls())) == len(calls())


def test_a_student_reads_the_items(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (
        json.dumps({"id": f"p{n}", "n": n, "text": "buy now" if n % 3 == 0 else f"dear {n % 7}"})
        for n in range(200)
    )
    Path("items.jsonl").write_text("\n".join(rows) + "\n")
    command = ["label", "items.jsonl", "--panel", "panel.yaml", "--out", "v.csv"]
    command += ["--labels", "600"]
    assert main([*command, "--student", "text", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["student"]["ready"]
    assert record["labels"] <= 600
    assert main(["label", "--recorded", "labels.csv", "--labels", "9", "--student", "text"]) == 2
    assert "--recorded and --student exclude each other" in capsys.readouterr().err
