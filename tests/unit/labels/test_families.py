"""The family of labelers, out of a column of the labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from venire.errors import FileError, InputError
from venire.labels.sources import as_families, as_table

ROWS = ["1,a,x,llama", "1,b,y,llama", "1,c,x,", "2,a,y,llama", "2,b,y,llama", "2,c,x,"]


def written(folder: Path, rows: list[str], header: str = "task,worker,label,family") -> Path:
    path = folder / "labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_column_of_families_is_read_and_does_not_disturb_the_table(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS)
    table = as_table(path)
    assert table.labelers == ("a", "b", "c")
    assert as_families(path, table) == {"a": "llama", "b": "llama"}


def test_json_lines_and_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    lines, packed = tmp_path / "labels.jsonl", tmp_path / "labels.parquet"
    values = [("a", "llama"), ("b", "llama"), ("c", None)]
    lines.write_text(
        '{"task": 1, "worker": "a", "label": "x", "family": "llama"}\n'
        '{"task": 1, "worker": "b", "label": "y", "family": "llama"}\n'
        '{"task": 1, "worker": "c", "label": "y"}\n'
    )
    names, families = zip(*values, strict=True)
    columns = {"task": [1] * 3, "worker": names, "label": ["x", "y", "y"], "family": families}
    parquet.write_table(pa.table({k: list(v) for k, v in columns.items()}), packed)
    for path in (lines, packed):
        assert as_families(path, as_table(path)) == {"a": "llama", "b": "llama"}


def test_without_the_column_there_are_none(tmp_path: Path) -> None:
    rows = [row.rpartition(",")[0] for row in ROWS]
    path = written(tmp_path, rows, "task,worker,label")
    assert as_families(path, as_table(path)) is None


def test_a_labeler_of_two_families_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, [*ROWS, "3,a,x,qwen"])
    with pytest.raises(FileError, match=r"8.*'a' is of family 'qwen', and of 'llama' in a row"):
        as_families(path, as_table(path))


def test_somebody_who_gave_no_label_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    table = as_table(written(tmp_path, ROWS))
    other = tmp_path / "families.csv"
    other.write_text("labeler,family\na,llama\nzoe,llama\n")
    with pytest.raises(FileError, match=r"family of 'zoe', .*expected labelers such as 'a': corr"):
        as_families(other, table, ("labeler", "family"))
    with pytest.raises(InputError, match="family of 'zoe'"):
        as_families({"worker": ["a", "zoe"], "family": ["llama", "llama"]}, table)


def test_frames_columns_of_other_names_and_whole_numbers(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    path = tmp_path / "labels.csv"
    path.write_text("item,judge,said,kin\n1,7,x,llama\n1,8,y,llama\n2,9,x,\n")
    table = as_table(path, columns=("item", "judge", "said"))
    assert table.labelers == (7, 8, 9)
    expected = {7: "llama", 8: "llama"}
    assert as_families(path, table, ("judge", "kin")) == expected
    assert as_families(pd.read_csv(path), table, ("judge", "kin")) == expected
    assert as_families(pd.read_csv(path), table) is None
    lines = tmp_path / "labels.jsonl"
    lines.write_text('{"worker": 7, "note": "of a family"}\n')
    assert as_families(lines, table) is None
