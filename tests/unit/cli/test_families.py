"""Families of labelers on the command line: a column of the labels, or a file of their own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from venire.cli import command_of
from venire.errors import FileError, InputError

aggregate = command_of("aggregate")
panel = command_of("panel")

LLAMAS = ("llama-a", "llama-b", "llama-c")
SENTENCE = "llama-a, llama-b and llama-c share errors: together 1.0 votes."


def written(folder: Path, family: bool) -> Path:
    """Twelve posts: three judges on one model say the same, and two others differ on three."""
    path = folder / "labels.csv"
    rows = []
    for i in range(12):
        others = "ok" if i % 2 else "spam"
        ours = "spam" if i in (1, 3, 5) else others
        rows += [f"p{i},{who},{ours},llama" for who in LLAMAS]
        rows += [f"p{i},{who},{others}," for who in ("ann", "bob")]
    if not family:
        rows = [row.rpartition(",")[0] for row in rows]
    header = "task,worker,label,family" if family else "task,worker,label"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def verdicts(path: Path) -> dict[str, str]:
    with path.open() as file:
        return {row["task"]: row["label"] for row in csv.DictReader(file)}


def test_a_family_column_changes_the_verdicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "verdicts.csv"
    for family, expected in ((False, "spam"), (True, "ok")):
        aggregate(str(written(tmp_path, family)), out=out)
        assert verdicts(out)["p1"] == expected
        assert verdicts(out)["p2"] == "spam"
    assert f"related  {SENTENCE}" in capsys.readouterr().out


FILES = {
    "families.csv": "labeler,family\nllama-a,llama\nllama-b,llama\nllama-c,llama\nann,\n",
    "families.yaml": "llama-a: llama\nllama-b: llama\nllama-c: llama\n",
    "families.json": json.dumps(dict.fromkeys(LLAMAS, "llama")),
    "families.toml": "\n".join(f'{who} = "llama"' for who in LLAMAS),
    "families.jsonl": "\n".join(json.dumps({"labeler": w, "family": "llama"}) for w in LLAMAS),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_families_does_the_same(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text(FILES[name])
    aggregate(str(written(tmp_path, family=False)), families=file, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["relations"][0] == SENTENCE
    [group] = said["families"]
    assert group["members"] == list(LLAMAS)
    assert group["worth"] == pytest.approx(3 / (1 + 2 * group["correlation"]))


def test_several_files_have_one_family_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    text = written(tmp_path, family=True).read_text().splitlines(keepends=True)
    (folder / "1.csv").write_text("".join(text[:31]))
    (folder / "2.csv").write_text("".join([text[0], *text[31:]]))
    aggregate(str(folder), as_json=True)
    assert json.loads(capsys.readouterr().out)["relations"][0] == SENTENCE
    (folder / "2.csv").write_text("".join([text[0], *text[31:]]).replace(",llama\n", ",qwen\n"))
    with pytest.raises(FileError, match=r"2\.csv: labeler .* 'qwen', and of 'llama' in a file bef"):
        aggregate(str(folder))


def test_the_panel_says_the_same_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = written(tmp_path, family=True)
    panel(str(labels))
    assert SENTENCE in capsys.readouterr().out.splitlines()
    panel(str(labels), as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["relations"][0] == SENTENCE
    assert said["families"][0]["members"] == list(LLAMAS)
    members = {member["labeler"]: member for member in said["members"]}
    assert members["llama-b"]["family"] == ["llama-a", "llama-c"]
    assert members["ann"]["family"] == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.csv", "labeler,family\nllama-d,llama\n", "family of 'llama-d', who gave none of the"),
        ("f.json", '{"llama-d": "llama"}', r"f\.json: got a family of 'llama-d'.*expected labele"),
        ("f.csv", "labeler,price\nllama-a,1\n", "no column 'family': expected labeler,family"),
        ("f.yaml", "- llama-a\n", "got list, expected a mapping of labeler to family: write"),
        ("f.yaml", "llama:\n- llama-a\n", r"f\.yaml, line 1: got 'llama': \['llama-a'\], expected"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    name: str, text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(FileError, match=message):
        aggregate(str(written(tmp_path, family=False)), families=file)
    with pytest.raises(FileError, match=message):
        panel(str(written(tmp_path, family=False)), families=file)


def test_methods_without_families_refuse_the_option(tmp_path: Path) -> None:
    file = tmp_path / "families.json"
    file.write_text(FILES[file.name])
    labels = str(written(tmp_path, family=True))
    with pytest.raises(InputError, match="does not use families: take --method auto, or drop"):
        aggregate(labels, method="majority", families=file)
    with pytest.raises(InputError, match="--numeric and --families exclude each other"):
        aggregate(labels, numeric=True, families=file)
    aggregate(labels, method="majority")
