from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from venire.audits import Drawn
from venire.errors import FileError
from venire.files import drawn_output, read_gold, read_verdicts, write_outputs
from venire.files.results import columns_output

VERDICTS = {"7": "1", "8": "2", "9": "1"}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_verdicts_and_lists_of_every_form(tmp_path: Path, ending: str) -> None:
    verdicts, drawn = tmp_path / f"verdicts.{ending}", tmp_path / f"drawn.{ending}"
    columns: dict[str, list[Any]] = {
        "task": [7, 8, 9],
        "label": [1, 2, 1],
        "confidence": [0.9, 0.8, 1.0],
    }
    write_outputs([columns_output(verdicts, columns)])
    assert read_verdicts(verdicts) == VERDICTS
    write_outputs([drawn_output(drawn, [Drawn("9"), Drawn("7", extra=True)])])
    gold = read_gold(drawn, VERDICTS)
    assert gold.labels == {"9": None, "7": None}
    assert gold.drawn == [Drawn("9"), Drawn("7", extra=True)]
    assert gold.marked


def test_trusted_labels_that_a_dataframe_has_made_floats_of(tmp_path: Path) -> None:
    path = tmp_path / "gold.csv"
    path.write_text("task,label\n9.0,1.0\n7,\n8,nan\n")
    gold = read_gold(path, VERDICTS)
    assert gold.labels == {"9": "1", "7": None, "8": None}
    assert not gold.marked


def test_columns_of_other_names(tmp_path: Path) -> None:
    path = tmp_path / "exits.jsonl"
    path.write_text('{"item": "a", "verdict": "ok", "reason": "no_gain"}\n')
    assert read_verdicts(path, ("item", "verdict")) == {"a": "ok"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,label\n", "line 1: no verdicts below the header"),
        ("task,label\na,\n", "line 2: label is empty, expected one in every row"),
        ("task,label\n,ok\n", "line 2: task is empty"),
        ("task,label\na,ok\nb,ok\na,no\n", "line 4: task 'a' has a verdict above, expected one"),
        ("task,a,b\nx,y,z\n", "line 1: the columns are task, a, b: cannot tell which columns are"),
    ],
)
def test_bad_verdicts(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "verdicts.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_verdicts(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,label\n10,1\n", "line 2: there is no verdict on task '10', expected one on every"),
        ("task,label\n7,1\n\n7,1\n", "line 4: task '7' is above already: keep one of the rows"),
        ("task,label,drawn\n7,1,chosen\n", "line 2: drawn is 'chosen', expected sample or extra"),
    ],
)
def test_bad_trusted_labels(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "gold.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_gold(path, VERDICTS)


def test_errors_name_the_line_or_the_row(tmp_path: Path) -> None:
    lines, table = tmp_path / "gold.jsonl", tmp_path / "gold.parquet"
    lines.write_text('\n{"task": 7, "label": null}\n{"task": 70, "label": 1}\n')
    with pytest.raises(FileError, match="line 3: there is no verdict on task '70'"):
        read_gold(lines, VERDICTS)
    write_outputs([columns_output(table, {"task": [7, 70], "label": [1, 1]})])
    with pytest.raises(FileError, match="row 2: there is no verdict on task '70'"):
        read_gold(table, VERDICTS)
    lines.write_text("\n")
    with pytest.raises(FileError, match="the verdicts have no rows, expected at least one"):
        read_verdicts(lines)
