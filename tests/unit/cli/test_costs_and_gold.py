"""`venire aggregate --gold` and `--costs`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from venire.cli import command_of
from venire.errors import InputError

aggregate = command_of("aggregate")


def written(folder: Path) -> tuple[Path, Path, Path]:
    """Of ten posts three say toxic with one label in three; the truth; gold of one."""
    labels, truth, gold = (folder / f"{name}.csv" for name in ("labels", "truth", "gold"))
    rows = [
        f"p{i},w{k},{'toxic' if k == 0 and i < 3 else 'ok'}" for i in range(10) for k in range(3)
    ]
    labels.write_text("\n".join(["task,worker,label", *rows]))
    known = [f"p{i},{'toxic' if i < 2 else 'ok'}" for i in range(10)]
    truth.write_text("\n".join(["task,label", *known]))
    gold.write_text("task,label\np9,toxic\n")
    return labels, truth, gold


def read(path: Path) -> dict[str, dict[str, str]]:
    with path.open() as file:
        return {row["task"]: row for row in csv.DictReader(file)}


def test_costs_turn_verdicts_and_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, truth, _ = written(tmp_path)
    out = tmp_path / "verdicts.csv"
    aggregate(str(labels), str(truth), "majority", costs="toxic:ok=10", out=out, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["cost_per_task"] == pytest.approx(0.1)  # one false alarm
    assert said["cost_of_the_most_probable"] == pytest.approx(2.0)  # two missed
    rows = read(out)
    assert rows["p0"]["label"] == "toxic"
    assert float(rows["p0"]["confidence"]) == pytest.approx(1 / 3)
    assert rows["p5"]["label"] == "ok"


def test_gold_is_learned_from_and_bad_options_say_what_to_do(tmp_path: Path) -> None:
    labels, _, gold = written(tmp_path)
    out = tmp_path / "verdicts.csv"
    aggregate(str(labels), method="weighted-majority", gold=str(gold), out=out)
    assert read(out)["p9"]["label"] == "toxic"
    with pytest.raises(InputError, match="does not learn from gold"):
        aggregate(str(labels), method="majority", gold=str(gold))
    with pytest.raises(InputError, match="expected truth:verdict=cost"):
        aggregate(str(labels), method="majority", costs="toxic=10")
    with pytest.raises(InputError, match="expected a true class and a verdict"):
        aggregate(str(labels), method="majority", costs="toxic:eggs=10")
    gold.write_text("task,label\np9,eggs\n")
    with pytest.raises(InputError, match="not one of the classes"):
        aggregate(str(labels), method="weighted-majority", gold=str(gold))
