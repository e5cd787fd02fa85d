"""`venire aggregate` on ratings: classes that have an order, and numbers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
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


def rated(words: tuple[str, ...] = ("1", "2", "3", "4", "5")) -> None:
    """Ratings in order, by people of unequal bias and precision, one of whom does not look."""
    rng = np.random.default_rng(2)
    truth = rng.integers(5, size=120)
    who = {"high": (1.0, 0.5), "fair": (0.0, 0.6), "low": (-1.0, 0.7), "rough": (0.0, 1.2)}
    said = [
        (i, name, words[int(np.clip(np.rint(k + bias + spread * rng.normal()), 0, 4))])
        for i, k in enumerate(truth)
        for name, (bias, spread) in who.items()
    ]
    said += [(i, "idle", words[rng.integers(5)]) for i in range(120)]
    lines = "".join(f"{i},{name},{x}\n" for i, name, x in said)
    Path("ratings.csv").write_text("task,worker,label\n" + lines)
    lines = "".join(f"{i},{words[k]}\n" for i, k in enumerate(truth))
    Path("right.csv").write_text("task,label\n" + lines)


def test_ordered_classes(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    rated()
    args = ["ratings.csv", "--truth", "right.csv"]
    got = record(*args, "--ordinal")
    assert (got["method"], got["chosen"]) == ("ordinal", "ordinal")
    assert got["alpha_ordinal"] > got["alpha"]
    assert got["mean_absolute_error"] < 0.3
    assert got["error"] < record(*args, "--method", "majority")["error"] - 0.1
    assert record(*args, "--method", "ordinal") | {"seconds": 0} == got | {"seconds": 0}
    words = ("awful", "poor", "fair", "good", "great")
    rated(words)
    again = record(*args, "--ordinal", "--classes", ",".join(words))
    assert again | {"seconds": 0} == got | {"seconds": 0}
    assert main(["aggregate", *args, "--ordinal"]) == 2
    assert "--classes low,medium,high" in capsys.readouterr().err


def test_the_summary_of_ordered_classes(capsys: pytest.CaptureFixture[str]) -> None:
    rated()
    assert main(["aggregate", "ratings.csv", "--truth", "right.csv", "--ordinal"]) == 0
    out = capsys.readouterr().out
    assert "mistakes are near misses" in out
    assert re.search(r"agreed   Krippendorff's alpha 0\.\d+ nominal, 0\.\d+ ordinal; entropy", out)
    assert "mean absolute error 0." in out


def measured() -> None:
    rng = np.random.default_rng(4)
    truth = rng.normal(50, 10, 60)
    who = {"high": (5, 2), "fair": (0, 2), "low": (-5, 3), "rough": (0, 30)}
    lines = [
        f"{i},{name},{x + bias + spread * rng.normal():.3f}\n"
        for i, x in enumerate(truth)
        for name, (bias, spread) in who.items()
    ]
    Path("numbers.csv").write_text("task,worker,label\n" + "".join(lines))
    lines = [f"{i},{x}\n" for i, x in enumerate(truth)]
    Path("right.csv").write_text("task,label\n" + "".join(lines))


def test_numbers(record: Any, capsys: pytest.CaptureFixture[str]) -> None:
    measured()
    args = ["numbers.csv", "--truth", "right.csv", "--numeric"]
    got = record(*args, "--out", "v.csv", "--skills", "s.jsonl")
    assert got["method"] == "robust-mean"
    assert got["rmse"] < 2.5
    assert got["mean_absolute_error"] < got["rmse"]
    assert 0 < got["alpha_interval"] < 1
    values = rows("v.csv")
    assert list(values[0]) == ["task", "value", "standard_error", "labels"]
    assert len(values) == 60
    skills = [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()]
    assert [row["worker"] for row in skills] == ["high", "fair", "low", "rough"]
    assert skills[0]["bias"] > 3
    assert skills[3]["spread"] > 20
    assert main(["aggregate", *args]) == 0
    out = capsys.readouterr().out
    assert "rough    rough (bias" in out
    assert "RMSE" in out


def test_numbers_as_classes_get_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    measured()
    assert main(["aggregate", "numbers.csv", "--method", "majority"]) == 0
    err = capsys.readouterr().err
    assert err == (
        "warning: the labels are 238 different numbers, each treated as a class of its own: "
        "for measurements use --numeric, for ordered ratings --ordinal\n"
    )
