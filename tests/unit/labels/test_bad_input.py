"""Bad input gets an error that says where it is and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.unit.labels.bad import BAD_LABELS, BAD_ROWS, BAD_TRUTH, HEADER, BadFile, BadRows
from tests.unit.labels.forms import by_column
from venire import FileError, InputError, LabelTable, UnknownName
from venire.labels.sources import as_table, as_truth


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "labels.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("bad", BAD_ROWS, ids=lambda bad: bad.name)
@pytest.mark.parametrize(
    "form",
    [list, by_column, lambda rows: pd.DataFrame(by_column(rows), dtype=object)],
    ids=["rows", "dict", "pandas"],
)
def test_bad_rows(form: Any, bad: BadRows) -> None:
    with pytest.raises(InputError) as caught:
        as_table(form(bad.rows))
    message = str(caught.value)
    assert bad.says.partition(" is ")[0] in message
    assert (f"row {bad.row} (the first is 0)" in message) == (bad.row is not None)
    assert "\n" not in message


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_missing_values_in_frames(frame: Any) -> None:
    made = frame({"task": [1, 2, None], "worker": ["a", "b", "c"], "label": ["x", "y", "x"]})
    with pytest.raises(InputError, match=r"row 2 \(the first is 0\): task is (NaN|missing)"):
        as_table(made)
    made = frame({"task": [1, 2, 3], "worker": ["a", None, "c"], "label": ["x", "y", "x"]})
    with pytest.raises(InputError, match=r"row 1 .*: worker is missing"):
        as_table(made)


@pytest.mark.parametrize("dtype", ["string", "category", "Int64"])
def test_missing_values_in_arrays_of_pandas(dtype: str) -> None:
    task, worker = pd.Series(["a", "b"]).values, pd.Index(["ann", "bob"])
    label = pd.Series([1, None] if dtype == "Int64" else ["x", None], dtype=dtype).values
    with pytest.raises(InputError, match=r"row 1 .*label is missing"):
        as_table((task, worker, label))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (pa.array([["x"], ["y"]]), "label is a list"),
        (pa.array([["x"], ["y"]], pa.large_list(pa.string())), "label is a list"),
        (pa.array([{"a": 1}, {"a": 2}]), "label is a dict"),
        (pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())), "label is a list"),
    ],
    ids=["list", "large list", "struct", "map"],
)
def test_nested_columns(values: Any, says: str, tmp_path: Path) -> None:
    table = pa.table({"task": [1, 2], "worker": [1, 1], "label": values})
    with pytest.raises(InputError, match=says):
        as_table(table)
    parquet.write_table(table, tmp_path / "labels.parquet")
    with pytest.raises(FileError, match=f"row 1: {says}, expected a number, text"):
        as_table(tmp_path / "labels.parquet")


def test_missing_categories() -> None:
    frame = pd.DataFrame({"task": [1, 2], "worker": 1, "label": pd.Categorical(["x", None])})
    with pytest.raises(InputError, match=r"row 1 .*label is missing"):
        as_table(frame)


@pytest.mark.parametrize("bad", BAD_LABELS, ids=lambda bad: bad.name)
def test_bad_files(bad: BadFile, tmp_path: Path) -> None:
    path = written(tmp_path, bad.content)
    classes = bad.options[1].split(",") if bad.options else None
    with pytest.raises(FileError) as caught:
        as_table(path, classes)
    where = f"{path}: " if bad.line is None else f"{path}, line {bad.line}: "
    assert str(caught.value).startswith(where)
    assert bad.says in str(caught.value)


@pytest.mark.parametrize("bad", BAD_TRUTH, ids=lambda bad: bad.name)
def test_bad_truth(bad: BadFile, tmp_path: Path) -> None:
    table = LabelTable.from_rows([("a", "ann", "yes"), ("b", "ann", "no")])
    path = written(tmp_path, bad.content)
    with pytest.raises(FileError) as caught:
        as_truth(path, table)
    where = f"{path}: " if bad.line is None else f"{path}, line {bad.line}: "
    assert str(caught.value).startswith(where)
    assert bad.says in str(caught.value)


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    with pytest.raises(FileError, match=r"cannot be read .*check the path"):
        as_table(path)
    path.write_text(HEADER)
    with pytest.raises(FileError, match="not a Parquet file"):
        as_table(path)
    parquet.write_table(pa.table({"task": [1], "label": [1]}), path)
    with pytest.raises(FileError, match="no column says who gave the label; add 'worker'"):
        as_table(path)
    parquet.write_table(pa.table({"task": [1, 2], "worker": [1, 1], "label": ["x", None]}), path)
    with pytest.raises(FileError, match="row 2: label is missing"):
        as_table(path)
    empty = pa.table({name: pa.array([], pa.int64()) for name in ("task", "worker", "label")})
    parquet.write_table(empty, path)
    with pytest.raises(FileError, match="no rows"):
        as_table(path)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (5, "cannot read labels from a int"),
        ([1, 2], "got 1 for a row"),
        ([("a", "b")], "has 2 values, expected"),
        ({"task": [1], "worker": [1]}, "no column says what the label is; add 'label'"),
        ({"task": [1], "worker": [1, 2], "label": [1]}, "differ in length"),
        (pd.DataFrame({"task": [1], "Worker": [1], "label": [1]}), "did you mean it by 'Worker'"),
        ([("a", ["x"], 1), ("b", ["y"], 2)], "worker is a list"),
        ((np.zeros((2, 2)), np.zeros(2), np.zeros(2)), "2 dimensions"),
        (pd.Series([1, 2]), "cannot read labels"),
    ],
)
def test_what_is_no_table(labels: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        as_table(labels)


def test_bad_options() -> None:
    rows = [("a", 1, "x"), ("b", 1, "y")]
    with pytest.raises(InputError, match="each once"):
        as_table(rows, ["x", "x"])
    with pytest.raises(InputError, match=r"row 1 .*label is 'y', expected one of"):
        as_table(rows, ["x", "z"])
    with pytest.raises(UnknownName, match="frist"):
        as_table(rows, repeats="frist")  # type: ignore[arg-type]


def test_too_many_classes() -> None:
    n = 40_000
    with pytest.raises(InputError, match="is it the right column"):
        as_table((np.arange(n), np.zeros(n, int), np.arange(n)))
