"""`venire panel` and `venire replay` as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.stored import play
from venire.cli import main
from venire.server.store import open_storage

SKILLS = {"gpt": 0.9, "llama": 0.8, "palm": 0.78, "copy": 0.8, "coin": 0.52}
PRICES = {"gpt": 30, "llama": 1, "palm": 1, "copy": 5, "coin": 2}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five judges on 250 tasks; one copies another, one tosses a coin."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines, truths = ["task,worker,label"], ["task,label"]
    for task in range(250):
        truth = int(rng.integers(2))
        truths.append(f"t{task},{truth}")
        said = {name: truth if rng.random() < p else 1 - truth for name, p in SKILLS.items()}
        said["copy"] = said["llama"]
        lines += [f"t{task},{name},{label}" for name, label in said.items()]
    Path("labels.csv").write_text("\n".join(lines) + "\n")
    Path("truth.csv").write_text("\n".join(truths) + "\n")
    rows = [f"{name},{price}" for name, price in PRICES.items()]
    Path("prices.csv").write_text("\n".join(["labeler,price", *rows]) + "\n")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert main(list(args)) == code
    said = capsys.readouterr()
    if code:
        return said.err
    return json.loads(said.out) if "--json" in args else said.out


def test_the_report_names_who_can_go(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "panel", "labels.csv", "--prices", "prices.csv", "--json")
    assert found["cost"] == 250 * sum(PRICES.values())
    assert {"copy", "coin"} <= set(found["can_go"])
    members = {member["labeler"]: member for member in found["members"]}
    assert members["copy"]["copies"] == ["llama"]
    assert members["gpt"]["without"]["value"] < members["coin"]["without"]["value"]
    assert found["cheapest"] < found["cost"]
    assert not found["measured"]


def test_the_best_panel_at_a_price(capsys: pytest.CaptureFixture[str]) -> None:
    files = "labels.csv", "--prices", "prices.csv", "--gold", "truth.csv"
    cheap = run(capsys, "panel", *files, "--most", "600", "--json")
    assert cheap["cheapest"] <= 600  # llama or palm, or both
    stay = {member["labeler"] for member in cheap["members"] if member["stays"]}
    assert stay <= {"llama", "palm", "coin"}
    dear = run(capsys, "panel", *files, "--most", "8000", "--json")
    stay = {member["labeler"] for member in dear["members"] if member["stays"]}
    assert "gpt" in stay
    assert dear["expected"]["value"] >= cheap["expected"]["value"]
    assert "at most 8,000: " in run(capsys, "panel", *files, "--most", "8000")
    both = run(capsys, "panel", *files, "--most", "8000", "--want", "0.9", code=2)
    assert "got both want and most" in both
    assert "at least the cost of one" in run(capsys, "panel", *files, "--most", "3", code=2)


def test_the_report_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    files = "labels.csv", "--prices", "prices.csv", "--truth", "truth.csv"
    said = run(capsys, "panel", *files, "--want", "0.8")
    assert "5 labelers, 250 tasks, 1,250 labels, cost 9,750; accuracy" in said
    assert "(by the truth)" in said
    assert "can go, copy of llama" in said
    assert "accuracy 80.00 %:" in said
    assert "if its errors were independent of the first" in said
    assert "is not reached" in run(capsys, "panel", "labels.csv", "--want", "0.9999")
    assert "(1 a label)" in run(capsys, "panel", "labels.csv")


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.csv").write_text("labeler,price\ngpt,30\n")
    error = run(capsys, "panel", "labels.csv", "--prices", "prices.csv", code=2)
    assert "labeler 'llama' has labels and no price: add a line" in error
    Path("prices.csv").write_text("labeler,price\ngpt,dear\n")
    error = run(capsys, "panel", "labels.csv", "--prices", "prices.csv", code=2)
    assert "prices.csv, line 2: price is 'dear'" in error
    assert "got a wanted accuracy of 95" in run(
        capsys, "panel", "labels.csv", "--want", "95", code=2
    )
    assert "got --budget 'fifty'" in run(capsys, "replay", "--budget", "fifty", code=2)


def test_a_stream_is_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/venire.db"
    with open_storage(url) as storage:
        play(storage)
    same = run(capsys, "replay", "--storage", url, "--json")
    assert same["stream"] == "posts"
    assert same["items"] == 23
    assert same["held"] == 1
    assert same["repeated"] == same["recorded"] > 0
    plan = ["--policy", "fixed-overlap:1", "--panel-without", "eve", "--seeds", "2"]
    fewer = run(capsys, "replay", "--storage", url, *plan, "--json")
    assert fewer["measures"]["labels"]["would_be"]["value"] <= 1
    said = run(capsys, "replay", "--storage", url, *plan)
    n = same["recorded"]
    assert f"with nothing changed it repeats {n} of {n} verdicts" in said
    assert "of the items left because nobody was left to ask" in said
    drawn = run(capsys, "replay", "--storage", url, "--policy", "everyone", "--simulate-missing")
    assert "not in the log and were drawn from the learned confusion matrices" in drawn
    error = run(capsys, "replay", "--storage", url, "--panel-without", "ev", code=2)
    assert "unknown labeler 'ev': did you mean 'eve'?" in error
    Path("gold.csv").write_text("task,label\nitem-0-0,spam\nitem-0-1,ok\n")
    taught = run(capsys, "replay", "--storage", url, "--gold", "gold.csv")
    assert "gold labels teach, each from when its item leaves" in taught
    Path("gold.csv").write_text("task,label\nnot-there,ok\n")
    error = run(capsys, "replay", "--storage", url, "--gold", "gold.csv", code=2)
    assert "none of its tasks is among the labels'" in error


def test_known_labels_that_were_asked_teach_and_measure_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = Path("truth.csv").read_text().splitlines()[1:21]
    rows = ["task,label,drawn", *(f"{row},asked" for row in known)]
    Path("asked.csv").write_text("\n".join(rows) + "\n")
    found = run(capsys, "panel", "labels.csv", "--gold", "asked.csv", "--json")
    assert (found["asked"], found["measured"], found["against"]) == (20, False, None)
    assert all(member["known"] == 20 for member in found["members"])
    words = run(capsys, "panel", "labels.csv", "--gold", "asked.csv")
    assert "20 of the known labels were asked for" in words
    assert "(expected, by" in words
    assert " of 20" in words  # right on gold


def test_a_second_label_is_never_advised_of_who_can_go(capsys: pytest.CaptureFixture[str]) -> None:
    found = run(capsys, "panel", "labels.csv", "--prices", "prices.csv", "--json")
    assert found["best_again"] not in found["can_go"]


def test_half_of_the_gold_may_be_too_little_to_choose_by(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(2)
    right = rng.random(300) < 0.67
    herd = np.where(rng.random(300) < 0.72, right, ~right)
    panel = {"big": (herd, 0.96), "small": (herd, 0.9), "claude": (right, 0.9)}
    panel |= {"qwen": (right, 0.7), "llama": (right, 0.68)}
    said = {m: np.where(rng.random(300) < p, x, ~x) for m, (x, p) in panel.items()}
    rows = [f"t{i},{m},{said[m][i]}" for i in range(300) for m in panel]
    Path("labels.csv").write_text("\n".join(["task,worker,label", *rows]))
    drawn = np.random.default_rng(3).permutation(300)[:40]
    gold = [f"t{i},{right[i]}" for i in drawn]
    Path("gold.csv").write_text("\n".join(["task,label", *gold]))
    found = run(capsys, "panel", "labels.csv", "--gold", "gold.csv", "--json")
    assert found["expected"]["value"] > 0
    assert found["change"] == {"value": 0.0, "error": 0.0}
    words = run(capsys, "panel", "labels.csv", "--gold", "gold.csv")
    assert "on other tasks not known: by half of the known labels no verdict would change" in words
