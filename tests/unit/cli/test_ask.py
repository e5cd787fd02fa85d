"""`venire ask`, and gold and bought labels of `venire label`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from venire.cli.aggregate import aggregate
from venire.cli.ask import ask
from venire.cli.label import label
from venire.errors import FileError, InputError


def written(folder: Path) -> tuple[Path, dict[str, str]]:
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=80)
    herd = np.where(rng.random(80) < 0.6, truth, 1 - truth)
    expert = np.where(rng.random(80) < 0.95, truth, 1 - truth)
    rows = [
        f"p{i},{name},{['no', 'yes'][said[i]]}"
        for i in range(80)
        for name, said in (("a", herd), ("b", herd), ("c", herd), ("d", expert))
    ]
    (folder / "labels.csv").write_text("\n".join(["task,worker,label", *rows]))
    return folder / "labels.csv", {f"p{i}": ["no", "yes"][k] for i, k in enumerate(truth)}


def test_a_list_is_asked_answered_and_learned_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, truth = written(tmp_path)
    out = tmp_path / "ask.csv"
    ask(labels, 6, out)
    assert "more answers would pay" in capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["drawn"] for row in rows] == ["asked"] * 6
    with pytest.raises(FileError, match="may hold answers"):
        ask(labels, 6, out)
    for row in rows[:5]:  # one is left open
        row |= {"label": truth[row["task"]], "date": "2026-11-16"}
    with out.open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ask(labels, 3, gold=out, as_json=True)
    assert json.loads(capsys.readouterr().out)["gold"] == 5
    aggregate(str(labels), gold=str(out))
    said = capsys.readouterr().out
    assert "by labels and 5 gold labels that were asked, not checked, of 16 November 2026" in said
    aggregate(str(labels), gold=str(out), as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["checked"]["day"] == "2026-11-16"
    with pytest.raises(InputError, match="give --out"):
        ask(labels)


def test_label_learns_from_gold_and_writes_what_it_bought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, truth = written(tmp_path)
    gold, bought = tmp_path / "gold.csv", tmp_path / "bought.csv"
    known = [f"p{i},{truth[f'p{i}']}" for i in range(10)]
    gold.write_text("\n".join(["task,label", *known]))
    label(recorded=str(labels), labels=200, gold=gold, labels_out=bought, as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["confidence"] == "checked on 10 gold labels"
    with bought.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == record["labels"]
    assert list(rows[0]) == ["task", "worker", "label"]
    aggregate(str(bought), gold=str(gold), as_json=True)
    assert json.loads(capsys.readouterr().out)["labels"] == len(rows)


def test_skills_follow_gold_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, truth = written(tmp_path)
    gold, skills = tmp_path / "gold.csv", tmp_path / "skills.csv"
    gold.write_text("\n".join(["task,label", *(f"p{i},{truth[f'p{i}']}" for i in range(40))]))
    aggregate(str(labels), gold=str(gold), skills=skills)
    said = capsys.readouterr().out
    assert " of 40 gold" in said
    with skills.open() as file:
        rows = {row["worker"]: row for row in csv.DictReader(file)}
    assert rows["d"]["gold"] == "40"
    assert float(rows["d"]["skill"]) > 0.85 > 0.75 > float(rows["a"]["skill"])
    assert float(rows["a"]["high"]) < float(rows["d"]["skill"])
    label(recorded=str(labels), labels=320, gold=gold, as_json=True)
    found = {one["id"]: one for one in json.loads(capsys.readouterr().out)["labelers"]}
    assert found["d"]["skill"] > 0.8 > 0.75 > found["a"]["skill"]
    assert found["d"]["known"] >= found["d"]["right"] > 0.8 * found["d"]["known"]
    label(recorded=str(labels), labels=320, gold=gold)
    assert "right on gold" in capsys.readouterr().out
