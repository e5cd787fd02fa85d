"""Files as partitions: names of all, whole items, errors that say which file is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venire import DawidSkene, MajorityVote, as_table, partitioned
from venire.cluster import table as cluster_table
from venire.cluster.partitions import Here, files_of
from venire.cluster.table import Part, divided_item, shuffled
from venire.errors import InputError
from venire.labels import LabelTable

Row = tuple[Any, Any, Any]


def write(folder: Path, *files: list[Row], ending: str = "csv") -> str:
    """A file for each list of rows; returns the pattern of all."""
    for n, rows in enumerate(files):
        columns = dict(zip(("task", "worker", "label"), zip(*rows, strict=True), strict=True))
        path = folder / f"{n}.{ending}"
        if ending == "parquet":
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.table({k: list(v) for k, v in columns.items()}), path)
        else:
            lines = ["task,worker,label", *(",".join(map(str, row)) for row in rows)]
            path.write_text("\n".join(lines) + "\n")
    return str(folder / f"*.{ending}")


A = [("a", "ann", "yes"), ("a", "bob", "no"), ("b", "cec", "yes")]
B = [("c", "dan", "no"), ("c", "ann", "maybe"), ("d", "bob", "no")]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_the_table_of_all_rows(tmp_path: Path, ending: str) -> None:
    table, whole = partitioned(write(tmp_path, A, B, ending=ending)), as_table(A + B)
    gathered = table.gather()
    for name in ("items", "labelers", "classes"):
        assert tuple(getattr(gathered, name)) == tuple(getattr(whole, name))
    for name in ("start", "labeler", "said"):
        np.testing.assert_array_equal(getattr(gathered, name), getattr(whole, name))
    assert table.rows == 4
    assert repr(table) == "PartitionedTable(2 partitions, 4 items, 4 labelers, 3 classes)"
    assert MajorityVote().fit(table).labels_ == MajorityVote().fit(whole).labels_


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    rows = [(i, w, (i + w) % 2) for i in range(6) for w in range(3)]
    table = partitioned(write(tmp_path, rows[:9], rows[9:]))
    fitted = DawidSkene().fit(table)
    assert fitted.labels_ == DawidSkene().fit(rows).labels_
    assert {type(name) for name in fitted.labels_} == {int}


def test_a_task_in_two_files_is_named_or_moved(tmp_path: Path) -> None:
    pattern = write(tmp_path, A, [*B, ("a", "dan", "yes")])
    with pytest.raises(InputError, match=r"task 'a' has labels in .*0\.csv and in .*1\.csv"):
        partitioned(pattern)
    told: list[str] = []
    table = partitioned(pattern, repartition=True, progress=lambda what, *_: told.append(what))
    fitted, whole = DawidSkene().fit(table), DawidSkene().fit([*A, *B, ("a", "dan", "yes")])
    assert fitted.labels_ == whole.labels_
    for item, row in whole.probas_.items():
        assert fitted.probas_[item] == pytest.approx(row, abs=1e-9)


@pytest.mark.parametrize(("repeats", "said"), [("first", "no"), ("last", "yes")])
def test_repeats_across_files(tmp_path: Path, repeats: Any, said: str) -> None:
    pattern = write(tmp_path, [("a", "ann", "no")], [("a", "ann", "yes"), ("b", "ann", "no")])
    with pytest.raises(InputError, match="'ann' labels item 'a' more than once"):
        partitioned(pattern, repartition=True)
    table = partitioned(pattern, repeats=repeats, repartition=True)
    assert MajorityVote().fit(table).labels_["a"] == said


def test_repeats_in_a_file(tmp_path: Path) -> None:
    pattern = write(tmp_path, B, [*A, A[0]])
    with pytest.raises(InputError, match=r"1\.csv, line 5: worker 'ann' labels task 'a' again"):
        partitioned(pattern)


def test_mixed_types_are_refused(tmp_path: Path) -> None:
    pattern = write(tmp_path, [(1, "ann", "no")], [("x", "ann", "yes")], ending="parquet")
    with pytest.raises(InputError, match=r"task is 1 in .*0\.parq.* and 'x', text, in .*1\.parq"):
        partitioned(pattern)


def test_csv_files_have_one_type_together(tmp_path: Path) -> None:
    """As if they were one file: whole numbers are text if other names of the column are."""
    one, other = [(1, 7, 0), (2, "ann", 1)], [("x", 8, 1), ("y", 9, 0)]
    table = partitioned(write(tmp_path, one, other))
    assert table.gather().items == ("1", "2", "x", "y")
    assert tuple(table.labelers) == ("7", "ann", "8", "9")
    assert table.classes == (0, 1)
    assert MajorityVote().fit(table).labels_ == {"1": 0, "2": 1, "x": 1, "y": 0}


def test_classes(tmp_path: Path) -> None:
    pattern = write(tmp_path, A, B)
    assert partitioned(pattern, classes=["yes", "no", "maybe"]).classes == ("yes", "no", "maybe")
    with pytest.raises(InputError, match="label is 'maybe', expected one of the classes"):
        partitioned(pattern, classes=["yes", "no"])
    (tmp_path / "1.csv").unlink()
    (tmp_path / "0.csv").write_text("task,worker,label\na,ann,yes\n")
    with pytest.raises(InputError, match="one class only"):
        partitioned(pattern)


def test_text_of_numbers_in_order(tmp_path: Path) -> None:
    pattern = write(tmp_path, [("a", "ann", "9.5")], [("b", "ann", "10"), ("b", "bob", "2")])
    assert partitioned(pattern, ordered=True).classes == ("2", "9.5", "10")


def test_no_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file of labels"):
        partitioned(str(tmp_path / "*.parquet"))
    write(tmp_path, A, B)
    assert [Path(p).name for p in files_of(tmp_path)] == ["0.csv", "1.csv"]


pieces = st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=8, unique=True), max_size=5)


@given(pieces.filter(bool), st.sampled_from([1, 1 << 22]))
@settings(deadline=None)
def test_divided_items_are_found_and_made_whole(drawn: list[list[int]], bucket: int) -> None:
    """Against a plain reference: sets of names."""
    workers = [f"w{n}" for n in range(len(drawn))]
    tables = [
        LabelTable.from_codes(
            range(len(own)), [n] * len(own), [k % 2 for k in own], own, workers, ("no", "yes")
        )
        for n, own in enumerate(drawn)
    ]
    parts = [Part(table) for table in tables]
    seen = [name for own in drawn for name in own]
    before, cluster_table.BUCKET = cluster_table.BUCKET, bucket  # type: ignore[misc]
    try:
        found = divided_item(Here(), parts, len(seen))
    finally:
        cluster_table.BUCKET = before  # type: ignore[misc]
    assert (found is None) == (len(seen) == len(set(seen)))
    if found is not None:
        name, one, other = found
        assert name in drawn[one]
        assert name in drawn[other]
        assert one != other
    made = [part.table for part in shuffled(Here(), parts, "error")]
    assert sorted(str(name) for table in made for name in table.items) == sorted(
        str(name) for name in set(seen)
    )
    rows = {
        (int(table.items[i]), workers[m], int(k))
        for table in made
        for i, m, k in zip(table.item, table.labeler, table.said, strict=True)
    }
    assert rows == {(name, workers[n], name % 2) for n, own in enumerate(drawn) for name in own}
