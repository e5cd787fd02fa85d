"""`venire import label-studio`, the export back, and what `venire connect` needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from venire.cli import main
from venire.files.label_config import Control

CONFIG = (
    '<View><Image name="img" value="$image"/><Choices name="kind" toName="img">'
    '<Choice value="cat"/><Choice value="dog"/></Choices></View>'
)
KIND = Control("kind", "img")


def write_export(folder: Path) -> Path:
    said = {1: "ccc", 2: "ddc", 3: "ddd", 4: "ccd"}
    tasks = [
        {
            "id": task,
            "data": {"image": f"{task}.png"},
            "annotations": [
                {
                    "id": 10 * task + place,
                    "completed_by": {"id": place, "email": f"w{place}@example.org"},
                    "result": KIND.result("cat" if letter == "c" else "dog"),
                }
                for place, letter in enumerate(letters)
            ],
        }
        for task, letters in said.items()
    ]
    path = folder / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def fails(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert main([str(arg) for arg in args]) == 2
    return capsys.readouterr().err


def test_from_an_export_to_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export = write_export(tmp_path)
    assert main(["import", "label-studio", "export.json"]) == 0
    assert capsys.readouterr().out == "12 labels of kind in labels.csv\n"
    lines = Path("labels.csv").read_text().splitlines()
    assert lines[:2] == ["task,worker,label", "1,w0@example.org,cat"]
    aggregate = ["aggregate", "labels.csv", "--method", "majority", "--out", "verdicts.csv"]
    assert main(aggregate) == 0
    back = ["export", "--what", "label-studio", "--verdicts", "verdicts.csv"]
    back += ["--tasks", "export.json", "--to", "tasks.json"]
    capsys.readouterr()
    assert main(back) == 0
    assert capsys.readouterr().out == "4 tasks of verdicts in tasks.json\n"
    tasks = json.loads(Path("tasks.json").read_text())
    said = [task["predictions"][0]["result"] for task in tasks]
    assert said == [KIND.result(label) for label in ("cat", "dog", "dog", "cat")]
    assert "name another file" in fails(capsys, *back[:-1], "export.json")
    assert main(["import", "label-studio", str(export), "--to", "labels.jsonl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["labels"], found["control"]) == (12, "kind")
    assert json.loads(Path("labels.jsonl").read_text().splitlines()[0])["task"] == "1"


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export, to = write_export(tmp_path), tmp_path / "x.csv"
    assert "unknown program 'prodigy'" in fails(capsys, "import", "prodigy", export)
    assert "nowhere" in fails(capsys, "import", "label-studio", export, "--to", "nowhere/x.csv")
    config = tmp_path / "config.xml"
    config.write_text(CONFIG)
    told = fails(capsys, "export", "--to", to, "--label-config", config)
    assert "--label-config is for --what label-studio" in told
    assert "give both" in fails(capsys, "export", "--to", to, "--control", "kind")
    assert "go together" in fails(capsys, "export", "--to", to, "--verdicts", to)
    studio = ["export", "--what", "label-studio", "--to", to]
    assert "cannot be read" in fails(capsys, *studio, "--label-config", tmp_path / "no.xml")


def test_connecting_needs_a_key_and_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VENIRE_KEY", raising=False)
    monkeypatch.delenv("MY_TOKEN", raising=False)
    options = ["--project", "7", "--stream", "photos", "--token-env", "MY_TOKEN"]
    assert "unknown program 'prodigy'" in fails(capsys, "connect", "prodigy", *options)
    assert "set VENIRE_KEY" in fails(capsys, "connect", "label-studio", *options)
    told = fails(capsys, "connect", "label-studio", *options, "--key", "vk_x")
    assert "the environment variable MY_TOKEN is empty" in told
    monkeypatch.setenv("MY_TOKEN", "secret-token")
    told = fails(
        capsys, "connect", "label-studio", *options, "--key", "vk_x", "--url", "http://127.0.0.1:9"
    )
    assert "Label Studio at http://127.0.0.1:9 cannot be reached" in told
    assert "secret-token" not in told
