"""inspect_ai: the votes of a panel as a score, and logs as tables."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.judge_server import judging
from venire.cli import main
from venire.connectors.inspect import PanelScore, panel_score, panel_scorer, read_logs
from venire.connectors.judges.panel import open_judges
from venire.errors import FileError, InputError, MissingExtra
from venire.labels.sources import as_table

JUDGES = """
classes: [spam, ok]
prompt: "{{ question }} {{ answer }} {{ reference }}"
base_url: %s
num_retries: 0
judges:
  - {id: a, model: m, rationale: true}
  - {id: b, model: m, temperature: 1}
  - {id: c, model: m, temperature: 2}
"""

ITEM = {"question": "What is it?", "answer": "BUY now", "reference": "an advertisement"}


def scored(folder: Path, *script: str) -> PanelScore:
    path = folder / "judges.yaml"

    async def ask(url: str) -> PanelScore:
        path.write_text(JUDGES % url)
        async with open_judges(path) as judges:
            return await panel_score(list(judges.values()), ITEM)

    with judging(*script) as server:
        return asyncio.run(ask(server.url))


def test_the_majority_is_the_score_and_everybody_is_named(tmp_path: Path) -> None:
    found = scored(tmp_path)
    assert found.label == "spam"
    assert found.labels == {"a": "spam", "b": "spam", "c": "spam"}
    assert "a: spam, It reads" in found.why


def test_a_judge_that_fails_does_not_vote(tmp_path: Path) -> None:
    found = scored(tmp_path, "500")
    assert (found.label, len(found.labels)) == ("spam", 2)
    assert "no label" in found.why
    assert scored(tmp_path, "500", "500", "500").label is None


@pytest.mark.skipif(find_spec("inspect_ai") is not None, reason="inspect_ai is installed")
def test_without_inspect_the_extra_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"venire\[inspect\]"):
        panel_scorer(tmp_path / "judges.yaml", "ok")


@pytest.mark.skipif(find_spec("inspect_ai") is None, reason="inspect_ai is not installed")
def test_the_scorer_is_one_of_inspect(tmp_path: Path) -> None:
    from types import SimpleNamespace

    path = tmp_path / "judges.yaml"
    state = SimpleNamespace(input_text="q", output=SimpleNamespace(completion="BUY now"))
    with judging() as server:
        path.write_text(JUDGES % server.url)
        score = asyncio.run(panel_scorer(path, "spam")(state, SimpleNamespace(text="t")))
        with pytest.raises(InputError, match="expected one of the classes"):
            panel_scorer(path, "nothing")
    assert (score.value, score.answer) == ("C", "spam")
    assert set(score.metadata["venire_labels"]) == {"a", "b", "c"}


def log(model: str, samples: list[dict[str, Any]]) -> str:
    return json.dumps(
        {"version": 2, "status": "success", "eval": {"model": model}, "samples": samples}
    )


def sample(id: int | str, epoch: int = 1, **scores: Any) -> dict[str, Any]:
    given = {name: one if isinstance(one, dict) else {"value": one} for name, one in scores.items()}
    return {"id": id, "epoch": epoch, "scores": given}


def test_scorers_and_judges_are_workers(tmp_path: Path) -> None:
    ours = {"value": "C", "metadata": {"venire_labels": {"a": "right", "b": "wrong"}}}
    path = tmp_path / "log.json"
    path.write_text(
        log("m", [sample(1, match="C", venire_panel=ours), sample(2, match=0.5, f1=[1])])
    )
    found = read_logs(path)
    assert found.labels == [
        ("1", "match", "C"),
        ("1", "a", "right"),
        ("1", "b", "wrong"),
        ("2", "match", "0.5"),
    ]
    assert found.left_out == {"scores that are not a class": 1}
    assert [row[1] for row in read_logs(path, "venire_panel").labels] == ["a", "b"]
    to = tmp_path / "labels.csv"
    assert main(["import", "inspect", str(path), "--name", "match", "--to", str(to)]) == 0
    assert len(as_table(to).items) == 2
    assert main(["import", "inspect", str(path), "--name", "f1", "--to", str(to)]) == 2


def test_models_and_epochs_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(log("m1", [sample("q", 1, s="C"), sample("q", 2, s="I")]))
    (tmp_path / "2.json").write_text(log("m2", [sample("q", 1, s="I")]))
    assert [row[0] for row in read_logs(tmp_path).labels] == ["m1/q#1", "m1/q#2", "m2/q#1"]
    (tmp_path / "3.json").write_text(log("m2", [sample("q", 1, s="C")]))
    found = read_logs(tmp_path)
    assert len(found.labels) == 3
    assert found.left_out == {"scored again in another log": 1}


@pytest.mark.parametrize("text", ["{}", "not JSON", "[1]"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    with pytest.raises(FileError, match="not a log of inspect_ai"):
        read_logs(path)
    with pytest.raises(FileError, match="cannot be read"):
        read_logs(tmp_path / "gone.json")
