from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from venire import InputError, LabelTable
from venire.labels.sources import as_truth

TABLE = LabelTable.from_rows([("a", 1, "yes"), ("b", 1, "no"), ("c", 1, "no"), ("d", 1, "no")])
COLUMNS = {"task": ["c", "z", "a", "d"], "label": ["no", "yes", "yes", "never"]}


@pytest.mark.parametrize(
    "form",
    [
        lambda c: dict(zip(*c.values(), strict=True)),
        lambda c: c,
        lambda c: list(zip(*c.values(), strict=True)),
        lambda c: tuple(c.values()),
        pd.DataFrame,
        pl.DataFrame,
        pa.table,
    ],
)
def test_every_form(form: Any) -> None:
    assert as_truth(form(COLUMNS), TABLE).tolist() == [1, -1, 0, 2]


def test_files(tmp_path: Path) -> None:
    frame = pd.DataFrame(COLUMNS)
    frame.to_csv(tmp_path / "t.csv")
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        assert as_truth(tmp_path / name, TABLE).tolist() == [1, -1, 0, 2]


def test_the_same_row_twice_is_no_contradiction() -> None:
    assert as_truth([("a", "no"), ("a", "no")], TABLE).tolist() == [0, -1, -1, -1]
    with pytest.raises(InputError, match=r"row 1 .*task 'a' has another label above"):
        as_truth([("a", "no"), ("a", "yes")], TABLE)


def test_files_may_disagree_on_the_type_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_text("task,label\n1,5\n2,6\n")
    text = LabelTable.from_rows([("1", "ann", "5"), ("x", "ann", "y")])
    assert as_truth(path, text).tolist() == [0, -1]
    path.write_text("task,label\n1,5\nx,y\n")
    whole = LabelTable.from_rows([(1, "ann", 5), (2, "ann", 6)])
    assert as_truth(path, whole).tolist() == [0, -1]
