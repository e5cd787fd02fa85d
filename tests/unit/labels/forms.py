"""The same labels in every form that `as_table` takes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet

Rows = list[tuple[Any, Any, Any]]
COLUMNS = ("task", "worker", "label")


def by_column(rows: Rows) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)}


def csv_file(rows: Rows, folder: Path) -> Path:
    path = folder / "labels.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    return path


def parquet_file(rows: Rows, folder: Path) -> Path:
    path = folder / "labels.parquet"
    parquet.write_table(pa.table(by_column(rows)), path, row_group_size=3)
    return path


def json_lines(rows: Rows, folder: Path) -> Path:
    path = folder / "labels.jsonl"
    lines = [json.dumps(dict(zip(COLUMNS, row, strict=True)), ensure_ascii=False) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def categorical(rows: Rows, folder: Path) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Categorical(c) for name, c in by_column(rows).items()})


def shuffled_columns(rows: Rows, folder: Path) -> pd.DataFrame:
    frame = pd.DataFrame(by_column(rows)).assign(time=1.5)
    return frame[["label", "time", "worker", "task"]].set_index("time")


FORMS: dict[str, Callable[[Rows, Path], Any]] = {
    "rows": lambda rows, folder: iter(rows),
    "rows as lists": lambda rows, folder: [list(row) for row in rows],
    "dict of lists": lambda rows, folder: by_column(rows),
    "dict of series": lambda rows, folder: {k: pd.Series(v) for k, v in by_column(rows).items()},
    "arrays": lambda rows, folder: tuple(np.array(c) for c in by_column(rows).values()),
    "lists": lambda rows, folder: tuple(by_column(rows).values()),
    "arrays of objects": lambda rows, folder: tuple(
        np.array(c, dtype=object) for c in by_column(rows).values()
    ),
    "pandas": lambda rows, folder: pd.DataFrame(by_column(rows)),
    "pandas objects": lambda rows, folder: pd.DataFrame(by_column(rows), dtype=object),
    "pandas categories": categorical,
    "pandas, other order": shuffled_columns,
    "polars": lambda rows, folder: pl.DataFrame(by_column(rows)),
    "polars, lazy": lambda rows, folder: pl.LazyFrame(by_column(rows)),
    "pyarrow": lambda rows, folder: pa.table(by_column(rows)),
    "pyarrow, in chunks": lambda rows, folder: pa.concat_tables(
        [pa.table(by_column(rows[:2])), pa.table(by_column(rows[2:]))]
    ),
    "csv": csv_file,
    "csv, as text": lambda rows, folder: str(csv_file(rows, folder)),
    "parquet": parquet_file,
    "json lines": json_lines,
}
