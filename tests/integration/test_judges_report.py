"""`venire judge`: endpoints are checked first, a dry run costs nothing, and judges are reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.judge_server import CLASSES, judging
from venire.cli import main

TEXTS = {f"i{n}": f"{'BUY' if n % 2 else 'see'} {n}" for n in range(20)}
PAIRS = {f"p{n}": {"x": f"BUY {n}" if n % 4 else f"see {n}", "y": f"see {n}"} for n in range(16)}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(urls: dict[str, str], more: str = "") -> None:
    judges = "".join(
        f"  - {{id: {id}, model: {id}, base_url: '{url}'}}\n" for id, url in urls.items()
    )
    Path("judges.yaml").write_text(
        f"classes: {CLASSES}\nprompt: '{{{{ text }}}}'\nprice: {{input: 1, output: 1}}\n{more}"
        f"judges:\n{judges}"
    )
    rows = (json.dumps({"id": name, "text": text}) for name, text in TEXTS.items())
    Path("items.jsonl").write_text("\n".join(rows) + "\n")


def judge(*more: str) -> int:
    command = ["judge", "items.jsonl", "--config", "judges.yaml", "--out", "verdicts.jsonl"]
    return main([*command, "--labels-per-item", "2", *more])


def test_a_wrong_address_is_said_before_anything_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with judging() as server:
        write({"good": server.url, "typo": "http://127.0.0.1:9/v1"}, "num_retries: 50\n")
        assert judge() == 2
        assert len(server.bodies) == 1  # one question to the judge that answers
    said = capsys.readouterr().err
    assert "judge typo: no response from http://127.0.0.1:9/v1" in said
    assert "Check base_url (up to and with /v1), model and key" in said
    assert "1 other can be asked" in said
    assert not Path("verdicts.jsonl").exists()


@pytest.mark.parametrize(
    ("fault", "says"), [("model", "there is no such model"), ("key", "key was refused")]
)
def test_a_wrong_model_or_key_is_said_too(
    fault: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with judging(always=fault) as server:
        write({"one": server.url, "two": server.url})
        assert judge() == 2
    said = capsys.readouterr().err
    assert said.count(says) == 1  # once for all judges
    assert "judges one, two: 40" in said


def test_a_busy_server_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with judging("500") as server:
        write({"one": server.url, "two": server.url})
        assert judge("--json") == 0
    said = capsys.readouterr()
    assert "is busy (500" in said.err
    judges = {row["id"]: row for row in json.loads(said.out)["judges"]}
    assert sum(row["faults"].get("server error", 0) for row in judges.values()) == 1
    assert all(row["cost"] > 0 for row in judges.values())
    assert all(row["agreement"] == 1 for row in judges.values())


def test_the_first_questions_are_a_part_of_what_is_spent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with judging() as server:
        write({"one": server.url, "two": server.url})
        assert judge("--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert sum(row["cached"] for row in found["judges"]) > 0
    assert found["spent"] == pytest.approx(sum(row["cost"] for row in found["judges"]))


def test_a_dry_run_asks_nothing_and_says_the_cost(capsys: pytest.CaptureFixture[str]) -> None:
    with judging() as server:
        write({"one": server.url, "two": server.url})
        assert judge("--dry-run", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert judge("--dry-run") == 0
        said = capsys.readouterr().out
        assert judge("--dry-run", "--batch") == 0
        assert "at the discount of batches, nothing was asked" in capsys.readouterr().out
        assert not server.bodies
        assert judge() == 0
        capsys.readouterr()
        assert judge("--dry-run", "--json") == 0
    after = json.loads(capsys.readouterr().out)
    assert [row["questions"] for row in found["judges"]] == [20, 20]
    assert found["cost"] > 0
    assert found["cost"] == pytest.approx(sum(row["cost"] for row in found["judges"]))
    assert "all judges on all 20 items" in said
    assert "40 labels of 40: about" in said
    assert after["cost"] < found["cost"]
    assert sum(row["cached"] for row in after["judges"]) > 0


def test_pairs_have_a_win_rate_and_a_position_bias(capsys: pytest.CaptureFixture[str]) -> None:
    with judging() as server:
        Path("judges.yaml").write_text(
            "classes: [first, second, tie]\npair: [x, y]\n"
            "prompt: '{{ x }} or {{ y }}'\nprice: {input: 1, output: 1}\n"
            f"base_url: '{server.url}'\njudges:\n  - {{id: one, model: a}}\n"
        )
        rows = (json.dumps({"id": name, **pair}) for name, pair in PAIRS.items())
        Path("items.jsonl").write_text("\n".join(rows) + "\n")
        server.says = {"or": "first"}
        assert judge("--json", "--report", "report.html") == 0
        found = json.loads(capsys.readouterr().out)
        assert judge("--report", "report.html") == 0
    wins = {row["by"]: row for row in found["wins"]}
    assert wins["verdicts"]["of"] == "x"
    assert wins["verdicts"]["pairs"] == wins["verdicts"]["ties"] == 16  # the order decides
    assert wins["verdicts"]["low"] < 0.5 < wins["verdicts"]["high"]
    position = found["judges"][0]["position"]
    assert position["bias"] == 1.0
    assert position["pairs"] == 16
    resumed = capsys.readouterr()
    assert "continues verdicts.jsonl.journal: 16 answers, " in resumed.err
    said = resumed.out
    assert "judge     one: in this run 0 requests" in said
    assert "position bias +1.00 (+1.00 to +1.00) over 16 pairs" in said  # of both runs
    assert "raw rates: errors of judges are not corrected" in said
    assert "x against y by verdicts: 50.0 % (28.0 to 72.0 %) of 16 pairs" in said
    page = Path("report.html").read_text()
    assert "<h2>Judges</h2>" in page
    assert "x against y by verdicts" in page


def test_other_commands_read_the_labels_that_were_bought(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with judging() as server:
        write({"one": server.url, "two": server.url}, "family: alike\n")
        assert judge("--labels-out", "bought.csv") == 0
    assert Path("bought.csv").read_text().startswith("task,worker,label,family\n")
    assert main(["aggregate", "bought.csv"]) == 0
    assert "one and two hardly share errors: together" in capsys.readouterr().out
    for command in ("aggregate", "panel"):
        assert main([command, "bought.csv", "--json"]) == 0
    assert main(["aggregate", "verdicts.jsonl.journal"]) == 2  # not a table of labels
    assert "verdicts.jsonl.journal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "more", "says"),
    [
        ("i1,Z", "", "'Z', which is not one of the classes ['spam', 'ok']: correct it, or add"),
        ("i1,x", "pair: [x, y]\n", "spam says that x wins, ok that y does; write these in it"),
        ("Q999,ok", "", "none of its tasks is among the items, such as 'i0'"),
    ],
)
def test_gold_that_would_teach_nothing_is_refused(
    row: str, more: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write({"one": "http://127.0.0.1:9/v1"}, more)
    Path("gold.csv").write_text(f"task,label\n{row}\n")
    assert judge("--gold", "gold.csv") == 2
    assert says in capsys.readouterr().err
