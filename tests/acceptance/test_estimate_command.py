"""`venire estimate` and `--guarantee` as a user meets them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venire.cli import main


def truth(task: str) -> str:
    return "toxic" if int(task) % 5 == 0 else "ok"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Verdicts on 600 posts by two models, right on nine in ten, and their items."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows, items = ["task,label,confidence"], ["id,model"]
    for task in map(str, range(600)):
        right, other = rng.random() < 0.9, {"ok": "toxic", "toxic": "ok"}
        label = truth(task) if right else other[truth(task)]
        sure = 0.9 + 0.1 * rng.random() if right else 0.6 + 0.4 * rng.random()
        rows.append(f"{task},{label},{sure:.3f}")
        items.append(f"{task},{'ab'[int(task) % 2]}")
    Path("verdicts.csv").write_text("\n".join(rows) + "\n")
    Path("items.csv").write_text("\n".join(items) + "\n")
    return tmp_path


def fill(name: str, much: int | None = None) -> None:
    with open(name, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[:much]:
        row["label"] = truth(row["task"])
    with open(name, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def drawn(share: str = "0.2") -> str:
    name = "to-audit.csv"
    draw = ["audit", "draw", "verdicts.csv", "--share", share, "--seed", "2"]
    assert main([*draw, "--out", name]) == 0
    fill(name)
    return name


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_share_with_its_interval(capsys: pytest.CaptureFixture[str]) -> None:
    gold = drawn()
    got = run(capsys, "estimate", "verdicts.csv", "--gold", gold, "--of", "toxic")
    alone = got["gold_only"]
    assert got["low"] <= 0.2 <= got["high"]
    assert got["level"] == 0.95
    assert got["gold"] == 120
    assert got["high"] - got["low"] < alone["high"] - alone["low"]
    assert got["worth"] > 150
    assert got["precision"]["estimate"] < got["recall"]["estimate"]
    assert main(["estimate", "verdicts.csv", "--gold", gold, "--of", "toxic"]) == 0
    shown = capsys.readouterr().out
    assert "share of toxic" in shown
    assert "each row holds at 95 % by itself, if you look once" in shown


@pytest.mark.parametrize("how", ["--anytime", "--ongoing"])
def test_other_intervals_are_wider(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    gold = drawn()
    asked = "estimate", "verdicts.csv", "--gold", gold, "--of", "toxic"
    once, other = run(capsys, *asked), run(capsys, *asked, how)
    assert other["high"] - other["low"] > once["high"] - once["low"]
    assert other[how.strip("-")] is True


def test_groups_and_their_difference(capsys: pytest.CaptureFixture[str]) -> None:
    gold = drawn()
    by = "--items", "items.csv", "--by", "model"
    got = run(capsys, "estimate", "verdicts.csv", "--gold", gold, "--of", "toxic", *by)
    assert [row["group"] for row in got["groups"]] == ["a", "b"]
    (only,) = got["differences"]
    assert (only["group"], only["against"]) == ("a", "b")
    assert only["low"] < 0 < only["high"]
    turned = run(
        capsys, "estimate", "verdicts.csv", "--gold", gold, "--of", "toxic", *by, "--against", "a"
    )
    assert turned["differences"][0]["estimate"] == pytest.approx(-only["estimate"])


def test_items_are_drawn_and_estimated(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["estimate", "verdicts.csv", "--of", "toxic", "--draw", "100", "--seed", "1"]
    assert main([*asked, "--out", "ask.csv"]) == 0
    assert "venire estimate verdicts.csv --gold ask.csv --of toxic" in capsys.readouterr().out
    fill("ask.csv")
    got = run(capsys, "estimate", "verdicts.csv", "--gold", "ask.csv", "--of", "toxic")
    assert got["low"] <= 0.2 <= got["high"]
    assert got["gold"] == 100
    assert main([*asked, "--out", "ask.csv"]) == 2
    assert "may hold trusted labels" in capsys.readouterr().err


def test_win_rates_of_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["first", "second", "tie"]
    rows = [f"{i},{names[i % 3]}" for i in range(90)]
    Path("pairs.csv").write_text("task,label\n" + "\n".join(rows) + "\n")
    Path("gold.csv").write_text("task,label\n" + "\n".join(rows[:45]) + "\n")
    sides = "\n".join(f"{i},{'gpt' if i % 2 else 'llama'},claude" for i in range(90))
    Path("sides.csv").write_text(f"task,model_a,model_b\n{sides}\n")
    wins = "estimate", "pairs.csv", "--gold", "gold.csv", "--wins", "first,second,tie"
    assert run(capsys, *wins)["estimate"] == pytest.approx(0.5)
    drawing = ["estimate", "pairs.csv", "--wins", "first,second,tie", "--draw", "9", "--seed", "1"]
    assert main([*drawing, "--out", "ask.csv"]) == 0
    assert "--gold ask.csv --wins first,second,tie" in capsys.readouterr().out
    Path("asked.csv").write_text("task,label,drawn\n1,first,asked\n")
    assert main(["estimate", "pairs.csv", "--gold", "asked.csv", "--of", "first"]) == 2
    assert "was asked for (drawn is asked)" in capsys.readouterr().err
    got = run(capsys, *wins, "--items", "sides.csv", "--by", "model_a,model_b")
    assert [row["group"] for row in got["groups"]] == ["claude", "gpt", "llama"]
    assert [row["items"] for row in got["groups"]] == [90, 45, 45]
    kinds = "\n".join(f"{i};{'code' if i % 2 else 'math'}" for i in range(90))
    Path("kinds.csv").write_text(f"Prompt No.;Topic\n{kinds}\n")
    got = run(capsys, *wins, "--items", "kinds.csv", "--by", "Topic")
    assert [row["items"] for row in got["groups"]] == [45, 45]


def test_warnings_say_what_is_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    gold = drawn()
    text = Path(gold).read_text().replace(",sample", ",").splitlines()
    Path("gold.csv").write_text("\n".join([text[0], text[1].replace("ok", ""), *text[2:]]))
    assert main(["estimate", "verdicts.csv", "--gold", "gold.csv", "--of", "ok"]) == 0
    assert "if the tasks were drawn at random" in capsys.readouterr().err
    assert main(["estimate", "verdicts.csv", "--gold", "gold.csv", "--of", "spam"]) == 2
    assert "no verdict and no trusted label is 'spam'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--of", "toxic"], "--gold FILE, or draw items"),
        (["--gold", "g.csv"], "give either --of CLASS or --wins"),
        (["--gold", "g.csv", "--of", "a", "--wins", "a,b"], "give either --of CLASS or --wins"),
        (["--gold", "g.csv", "--wins", "a"], "expected two or three labels"),
        (["--gold", "g.csv", "--of", "a", "--by", "model"], "need each other"),
        (["--gold", "g.csv", "--of", "a", "--against", "b"], "--against needs --by"),
        (["--gold", "g.csv", "--of", "a", "--seed", "1"], "--seed needs --draw"),
        (["--draw", "5", "--of", "a"], "--draw needs --out"),
        (["--draw", "5", "--of", "a", "--out", "x.csv", "--anytime"], "exclude each other"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["estimate", "verdicts.csv", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_guarantee_for_verdicts_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    gold = drawn("0.5")
    asked = "audit", "guarantee", "verdicts.csv", gold, "--right", "0.9"
    got = run(capsys, *asked, "--out", "marked.csv")
    assert 0.3 < got["coverage"] < 1
    with open("marked.csv", encoding="utf-8", newline="") as file:
        marked = [row for row in csv.DictReader(file) if row["guaranteed"] == "yes"]
    assert len(marked) == got["guaranteed"]
    wrong = sum(row["label"] != truth(row["task"]) for row in marked)
    assert wrong <= 0.1 * len(marked)
    assert got["curve"][-1]["audited"] == 300
    assert main(list(asked)) == 0
    assert "with probability 95 % at most 10 % of them are wrong" in capsys.readouterr().out


def test_a_guarantee_of_aggregate(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    other = {"ok": "toxic", "toxic": "ok"}
    lines = [
        f"{task},{who},{truth(str(task)) if rng.random() < 0.9 else other[truth(str(task))]}"
        for task in range(600)
        for who in ("ann", "bob", "cat")
    ]
    Path("labels.csv").write_text("\n".join(["task,worker,label", *lines]) + "\n")
    gold = drawn("0.3")
    asked = ["aggregate", "labels.csv", "--method", "majority", "--out", "out.csv"]
    promise = ["--guarantee", "0.9", "--guarantee-gold", gold]
    got = run(capsys, *asked, *promise)["guarantee"]
    assert got["guaranteed"] > 300
    with open("out.csv", encoding="utf-8", newline="") as file:
        marked = sum(row["guaranteed"] == "yes" for row in csv.DictReader(file))
    assert marked == got["guaranteed"]
    assert run(capsys, *asked, "--guarantee", "0.9", "--gold", gold)["guarantee"] == got
    Path("teach.csv").write_text(Path(gold).read_text())
    learned = ["aggregate", "labels.csv", "--gold", "teach.csv", *promise]
    for wrong, message in [
        ([*asked, "--guarantee", "0.9"], "needs --gold or --guarantee-gold"),
        ([*asked, "--guarantee-level", "0.9"], "needs --guarantee"),
        ([*asked, *promise[:1], "9", *promise[2:]], "share 9"),
        (learned, "expected gold that teaches or tests"),
    ]:
        assert main(wrong) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_guarantee_needs_confidences_and_equal_draws(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bare.csv").write_text("task,label\n1,ok\n")
    Path("gold.csv").write_text("task,label\n1,ok\n")
    assert main(["audit", "guarantee", "bare.csv", "gold.csv"]) == 2
    assert "no column 'confidence'" in capsys.readouterr().err
    Path("gold.csv").write_text("task,label,probability\n1,ok,0.5\n2,ok,0.25\n")
    assert main(["audit", "guarantee", "verdicts.csv", "gold.csv"]) == 2
    assert "unequal probabilities" in capsys.readouterr().err
    Path("gold.csv").write_text("task,label,probability\n1,ok,7\n")
    assert main(["estimate", "verdicts.csv", "--gold", "gold.csv", "--of", "ok"]) == 2
    assert "line 2: probability is '7'" in capsys.readouterr().err
