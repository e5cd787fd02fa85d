"""No file that a user can hand in ends in a traceback, or is quoted in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from venire.cli import main

DEEP = "[" * 100_000
BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)
LABEL_STUDIO = [
    DEEP,
    '[{"id": 1, "annotations": "x"}]',
    '[{"id": 1, "annotations": [7]}]',
    '[{"id": 1, "annotations": [{"result": [{"type": "choices"}]}]}]',
    '[{"id": 1, "annotations": [{"id": "a", "result": []}, {"id": 2}]}]',
    '[{"id": 1, "annotations": [{"result": "x", "completed_by": 1}]}]',
    '[{"id": 1, "annotation_id": "x"}, {"id": 2, "annotation_id": 3}]',
    '{"id": 1}',
    "9" * 5000,
]


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """The error of a command: one line, of no great length."""
    assert main(args) == 2, args
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert len(told) < 3000
    assert "Traceback" not in told
    return told


@pytest.mark.parametrize("text", LABEL_STUDIO, ids=range(len(LABEL_STUDIO)))
def test_an_export_of_label_studio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "export.json").write_text(text)
    to = str(tmp_path / "labels.csv")
    fails(capsys, "import", "label-studio", str(tmp_path / "export.json"), "--to", to)


@pytest.mark.parametrize(
    "text", [DEEP, '{"id": ' * 50_000, "9" * 5000, '{"id": "\\ud800"}', '{"id": "a", "weight": []}']
)
def test_items_and_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    items, panel = tmp_path / "items.jsonl", tmp_path / "panel.json"
    items.write_text(f"{text}\n")
    panel.write_text('[{"id": "old", "column": "by_hand"}, {"id": "new", "column": "x"}]')
    fails(capsys, "label", str(items), "--panel", str(panel), "--out", str(tmp_path / "v.jsonl"))
    if "ud800" not in text and "weight" not in text:
        fails(capsys, "aggregate", str(items))
        fails(
            capsys, "judge", str(items), "--judges", str(panel), "--out", str(tmp_path / "j.jsonl")
        )


@pytest.mark.parametrize("name", ["panel.yaml", "panel.json", "panel.toml"])
def test_panels_and_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    items, panel = tmp_path / "items.jsonl", tmp_path / name
    items.write_text('{"id": "a", "text": "b"}\n')
    texts = {"panel.yaml": [BOMB, "[" * 5_000, "labelers: *x", "judges: [" + "x" * 10**6 + "]"]}
    for text in texts.get(name, [DEEP, "x = " + DEEP, json.dumps({"judges": ["x" * 10**6]})]):
        panel.write_text(text)
        fails(
            capsys, "label", str(items), "--panel", str(panel), "--out", str(tmp_path / "v.jsonl")
        )
        fails(
            capsys, "judge", str(items), "--judges", str(panel), "--out", str(tmp_path / "j.jsonl")
        )


def test_an_alias_is_refused_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from venire.errors import FileError
    from venire.files.trees import read_tree

    path = tmp_path / "panel.yaml"
    path.write_text("labelers:\n- &a {id: ann}\n- *a\n")
    with pytest.raises(FileError, match=r"line 3.*\*a is an alias"):
        read_tree(path)


def test_no_table_that_is_written_has_a_formula(tmp_path: Path) -> None:
    labels, out, skills = (tmp_path / name for name in ("labels.csv", "out.csv", "skills.csv"))
    rows = [f"=cmd|{n},@{who},{'+1' if n % 2 else '-1'}" for n in range(4) for who in "abc"]
    labels.write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    assert main(["aggregate", str(labels), "--out", str(out), "--skills", str(skills)]) == 0
    assert "\n'=cmd|0,-1," in out.read_text()
    assert "\n'@a," in skills.read_text()
    export = [{"id": "=1+1", "kind": "cat", "annotator": "=x", "annotation_id": 1}]
    (tmp_path / "e.json").write_text(json.dumps(export))
    made = ["import", "label-studio", str(tmp_path / "e.json"), "--to", str(tmp_path / "i.csv")]
    assert main(made) == 0
    assert "\n'=1+1,'=x,cat" in (tmp_path / "i.csv").read_text()
