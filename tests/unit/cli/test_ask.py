"""`venire ask`, and gold and bought labels of `venire label`."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from venire.cli import command_of, main
from venire.errors import FileError, InputError

aggregate = command_of("aggregate")
ask = command_of("ask")
label = command_of("label")


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
    ask(str(labels), 6, out)
    assert "more answers would pay" in capsys.readouterr().out
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["drawn"] for row in rows] == ["asked"] * 6
    with pytest.raises(FileError, match="may hold answers"):
        ask(str(labels), 6, out)
    for row in rows[:5]:  # one is left open
        row |= {"label": truth[row["task"]], "date": "2026-11-16"}
    with out.open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ask(str(labels), 3, gold=out, as_json=True)
    assert json.loads(capsys.readouterr().out)["gold"] == 5
    aggregate(str(labels), gold=str(out))
    said = capsys.readouterr().out
    assert "by labels and 5 gold labels that were asked, not checked, of 16 November 2026" in said
    aggregate(str(labels), gold=str(out), as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["checked"]["day"] == "2026-11-16"
    with pytest.raises(InputError, match="give --out"):
        ask(str(labels))


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


def answered(path: Path, truth: dict[str, str]) -> None:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    with path.open("w") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"label": truth[row["task"]]} for row in rows)


def run(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main(list(command)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_commands_that_it_names_work_for_a_table_with_names_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, truth = written(tmp_path)
    text = labels.read_text().replace("task,worker,label", "pair_id,judge,winner_of_pair")
    labels.write_text(text)
    named = ["--columns", "pair_id,judge,winner_of_pair"]
    out = tmp_path / "my answers.csv"
    said = run(capsys, "ask", str(labels), *named, "--n", "5", "--out", str(out))
    answered(out, truth)
    told = [line.split("  ")[1] for line in said.splitlines() if line.startswith("  venire ")]
    assert len(told) == 2
    for command in told:
        words = shlex.split(command)[1:]
        assert words[2:4] == named
        assert "gold" in run(capsys, *words) or words[0] == "ask"
    assert "right on gold" in run(capsys, "panel", str(labels), *named, "--gold", str(out))
    run(capsys, "label", "--recorded", str(labels), *named, "--gold", str(out), "--labels", "200")
    known = tmp_path / "truth.csv"
    known.write_text("\n".join(["pair_id,gold", *(f"{k},{v}" for k, v in truth.items())]))
    assert "known of 80 of 80" in run(
        capsys, "aggregate", str(labels), *named, "--truth", str(known)
    )


def test_labels_that_look_alike_and_columns_of_judges_can_be_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, _ = written(tmp_path)
    with labels.open() as file:
        rows = list(csv.DictReader(file))
    table: dict[str, dict[str, str]] = {}
    for row in rows:
        said = row["label"].title() if (row["task"], row["worker"]) == ("p3", "d") else row["label"]
        table.setdefault(row["task"], {})[row["worker"]] = said
    wide = tmp_path / "wide.csv"
    lines = [",".join([task, *(one[m] for m in "abcd")]) for task, one in table.items()]
    wide.write_text("\n".join(["name,a,b,c,d", *lines]))
    form = ["--columns", "name,a,b,c,d", "--wide", "--merge"]
    said = run(capsys, "ask", str(wide), *form, "--n", "4", "--out", str(tmp_path / "ask.csv"))
    assert f"venire ask {wide} --columns name,a,b,c,d --wide --merge --gold" in said
    with (tmp_path / "ask.csv").open() as file:
        assert {row["verdict"] for row in csv.DictReader(file)} <= {"no", "yes"}


def test_what_was_asked_and_then_drawn_teaches_and_does_not_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, truth = written(tmp_path)
    asked, drawn = tmp_path / "ask.csv", tmp_path / "drawn.csv"
    run(capsys, "ask", str(labels), "--n", "5", "--out", str(asked))
    answered(asked, truth)
    with asked.open() as file:
        both = next(csv.DictReader(file))["task"]
    tasks = [both, *(task for task in truth if task != both)][:40]
    lines = [f"{task},{truth[task]},sample" for task in tasks]
    drawn.write_text("\n".join(["task,label,drawn", *lines]))
    with asked.open() as file:
        others = {row["task"] for row in csv.DictReader(file)} & set(tasks)
    promise = ["--guarantee", "0.7", "--guarantee-gold", str(drawn), "--json"]
    teach = ["--gold", str(asked)]
    found = json.loads(run(capsys, "aggregate", str(labels), *teach, *promise))["guarantee"]
    assert found["curve"][-1]["audited"] == 40 - len(others)
    assert found["verdicts"] == 80 - 5
    run(capsys, "label", "--recorded", str(labels), *teach, *promise, "--labels", "200")
    random = tmp_path / "random.csv"
    random.write_text(f"task,label\n{both},{truth[both]}\n")
    assert main(["aggregate", str(labels), "--gold", str(random), *promise]) == 2
    assert "expected gold that teaches or tests" in capsys.readouterr().err
    drawn.write_text(f"task,label,drawn\n{both},{truth[both]},sample\n")
    assert main(["aggregate", str(labels), *teach, *promise]) == 2
    assert "has all of its tasks" in capsys.readouterr().err
