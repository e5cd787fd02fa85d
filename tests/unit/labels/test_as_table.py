"""Every form gives the same table, and the same as the plain reference, `from_rows`."""

from __future__ import annotations

import builtins
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labels.forms import FORMS, Rows, csv_file
from venire import InputError, LabelTable, MissingExtra
from venire.labels.sources import as_table
from venire.labels.sources.columns import MANY, as_whole, coded

TEXT: Rows = [
    ("t2", "zoe", "spam"),
    ("t1", "zoe", "ok"),
    ("t2", "ann", "ok"),
    ("t10", "ann", "spam"),
    ("t1", "bob é", "ok"),
]
WHOLE: Rows = [(30, 7, 10), (-4, 7, 9), (30, 1, 9), (5, 1, 10), (-4, 900, 100)]
MIXED: Rows = [(30, "zoe", True), (-4, "zoe", False), (30, "ann", False)]


def shape(table: LabelTable) -> tuple[Any, ...]:
    names = [list(n) for n in (table.items, table.labelers, table.classes)]
    arrays = [a.tolist() for a in (table.start, table.labeler, table.said)]
    types = [{type(name) for name in group} for group in names]
    return (*names, *arrays, *types)


@pytest.mark.parametrize("rows", [TEXT, WHOLE], ids=["text", "whole numbers"])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_table(form: str, rows: Rows, tmp_path: Path) -> None:
    table = as_table(FORMS[form](rows, tmp_path))
    assert shape(table) == shape(LabelTable.from_rows(rows))


@pytest.mark.parametrize("form", [form for form in FORMS if "csv" not in form])
def test_true_and_false(form: str, tmp_path: Path) -> None:
    table = as_table(FORMS[form](MIXED, tmp_path))
    assert shape(table) == shape(LabelTable.from_rows(MIXED))


@pytest.mark.parametrize("form", FORMS)
def test_declared_classes_and_repeats(form: str, tmp_path: Path) -> None:
    rows = [*TEXT, ("t2", "zoe", "ok")]
    for repeats in ("first", "last"):
        made = as_table(FORMS[form](rows, tmp_path), ["spam", "ok", "eggs"], repeats)
        expected = LabelTable.from_rows(rows, ["spam", "ok", "eggs"], repeats)
        assert shape(made) == shape(expected)


def test_names_of_columns() -> None:
    frame = pd.DataFrame({"item": [1, 2], "who": ["a", "a"], "said": ["x", "y"]})
    table = as_table(frame, columns=("item", "who", "said"))
    assert (list(table.items), table.labelers, table.classes) == ([1, 2], ("a",), ("x", "y"))


def test_a_label_table_is_returned_as_it_is() -> None:
    table = LabelTable.from_rows(TEXT)
    assert as_table(table) is table
    assert as_table(table, ["ok", "spam"]) is table
    with pytest.raises(InputError, match="build the table with those classes"):
        as_table(table, ["spam", "ok"])


def test_a_matrix_of_rows() -> None:
    assert shape(as_table(np.array(WHOLE))) == shape(LabelTable.from_rows(WHOLE))


NAMES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1),
    st.lists(st.integers(-50, 50), min_size=1),
    st.lists(st.integers(0, 2**64 - 1), min_size=1),
    st.lists(st.text(st.characters(categories=("L", "N")), min_size=1), min_size=1),
    st.lists(st.floats(allow_nan=False), min_size=1),
    st.lists(st.booleans(), min_size=1),
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1),
)


@given(NAMES)
def test_codes_count_names_in_order_of_appearance(values: list[Any]) -> None:
    made = coded(values, "task")
    assert list(made.names) == list(dict.fromkeys(values))
    assert [made.names[c] for c in made.codes] == values


@given(st.lists(st.integers(-128, 127), min_size=1), st.sampled_from([np.int8, np.int16, np.int64]))
def test_narrow_numbers_do_not_overflow(values: list[int], kind: type) -> None:
    made = coded(np.array(values, kind), "task")
    assert list(made.names) == list(dict.fromkeys(values))
    assert [made.names[c] for c in made.codes] == values


def test_unsigned_numbers_beyond_63_bits() -> None:
    values = [2**64 - 1, 2**64 - 3, 2**64 - 1]
    made = coded(np.array(values, np.uint64), "task")
    assert (list(made.names), made.codes.tolist()) == (values[:2], [0, 1, 0])


def test_many_names_take_little_room() -> None:
    n = MANY + 10
    assert coded(np.arange(n) + 5, "task").names == range(5, n + 5)
    assert isinstance(coded(np.arange(n)[::-1], "task").names, np.ndarray)


@pytest.mark.parametrize("written", ["007", "+7", "7.0", " 7", "-0", "1_0", "9" * 19, "7e0", "٧"])
def test_what_python_would_write_otherwise_stays_text(written: str, tmp_path: Path) -> None:
    rows: Rows = [(written, "ann", "x"), ("7", "bob", "y")]
    table = as_table(csv_file(rows, tmp_path))
    assert list(table.items) == [written.strip(), "7"] or list(table.items) == [7]
    assert as_whole([written]) is None


LINES = st.lists(
    st.tuples(
        st.one_of(st.integers(-1200, 1200).map(str), st.sampled_from(["a b", "007", "x,y", 'q"q'])),
        st.sampled_from(["1", "2", "30", " 4", "-5", "é"]),
        st.sampled_from(["0", "1", "+1", "1.0"]),
    ),
    min_size=2,
    max_size=30,
)


@given(LINES)
def test_both_readers_of_csv_agree(tmp_path_factory: Any, lines: list[tuple[str, ...]]) -> None:
    from venire.labels.sources import files

    path = csv_file(lines, tmp_path_factory.mktemp("csv"))  # type: ignore[arg-type]
    slow = files._csv_by_lines(path, ("task", "worker", "label"))
    fast = files._csv_by_pyarrow(path, ("task", "worker", "label"))
    for one, other in zip(slow, fast or slow, strict=True):
        assert list(one.names) == list(other.names)
        assert one.codes.tolist() == other.codes.tolist()


def test_the_fast_reader_is_the_one_in_use(tmp_path: Path) -> None:
    from venire.labels.sources import files

    assert files._csv_by_pyarrow(csv_file(WHOLE, tmp_path), ("task", "worker", "label"))


@pytest.mark.parametrize(
    "text",
    [
        "\ufefftask,worker,label\na,b,1\na,c,2\n",
        "Task , WORKER,Label\r\na,b,1\r\na,c,2\r\n",
        'label,x,"worker",task\n1,,b,a\n\n2,"1,5",c,a\n',
        '\n\ntask, worker, label\na, b, 1\n a,"c",2 \n',
        'task,worker,label,note\na,b,1,"two\nlines"\na,c,2,\n',
    ],
)
def test_csv_as_people_write_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode())
    expected = LabelTable.from_rows([("a", "b", 1), ("a", "c", 2)])
    assert shape(as_table(path)) == shape(expected)


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make packages look as if they were not installed."""
    real = builtins.__import__

    def without(*packages: str) -> None:
        def importing(name: str, *args: Any, **kwargs: Any) -> Any:
            if name.partition(".")[0] in packages:
                raise ImportError(name)
            return real(name, *args, **kwargs)

        for name in [m for m in sys.modules if m.partition(".")[0] in packages]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(builtins, "__import__", importing)

    return without


@pytest.mark.parametrize("rows", [TEXT, WHOLE], ids=["text", "whole numbers"])
def test_a_file_is_read_without_pandas_where_it_is_installed(rows: Rows, tmp_path: Path) -> None:
    code = (
        "import sys; from venire.labels.sources import as_table;"
        f"as_table({str(csv_file(rows, tmp_path))!r});"
        "print([m for m in ('pandas', 'pyarrow') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['pyarrow']"


def test_without_pyarrow(hide: Any, tmp_path: Path) -> None:
    forms = {name: make(WHOLE, tmp_path) for name, make in FORMS.items() if "pyarrow" not in name}
    path = forms.pop("parquet")
    hide("pyarrow")
    scattered: Rows = [(10**15, "a", "x"), (5, "a", "y"), (10**15, "b", "y")]
    assert shape(as_table(scattered)) == shape(LabelTable.from_rows(scattered))
    for name in ("rows", "arrays", "csv", "lists"):
        assert shape(as_table(forms[name])) == shape(LabelTable.from_rows(WHOLE))
    with pytest.raises(MissingExtra, match=r"pyarrow is not installed.*venire\[data\]"):
        as_table(path)


def test_without_narwhals(hide: Any) -> None:
    hide("narwhals")
    assert len(as_table(WHOLE).items) == 3
    with pytest.raises(MissingExtra, match="narwhals"):
        as_table(pd.DataFrame({"task": [1], "worker": [1], "label": [1]}))


@pytest.mark.parametrize("dtype", [None, "string", "category", "object"])
def test_arrays_of_pandas(dtype: Any) -> None:
    columns = {"task": ["b", "a", "b"], "worker": ["u", "u", "v"], "label": ["y", "x", "y"]}
    frame = pd.DataFrame(columns, dtype=dtype)
    made = as_table((frame.task.values, pd.Index(frame.worker), frame.label.array))
    assert (made.items, made.labelers, made.classes) == (("b", "a"), ("u", "v"), ("x", "y"))
    assert made.said.tolist() == [1, 1, 0]


def test_text_views_of_arrow() -> None:
    label = pa.array(["y", "x"], pa.string_view())
    made = as_table(pa.table({"task": [1, 2], "worker": [1, 1], "label": label}))
    assert made.classes == ("x", "y")


def test_the_index_of_a_dataframe_is_a_column_if_it_has_a_name() -> None:
    """A pivot has its items in the index: once they were numbered from 1 instead."""
    rows = [
        (f"post-{i}", who, "no" if i % 3 else "yes") for i in range(9) for who in ("ann", "bob")
    ]
    long = pd.DataFrame(rows, columns=["task", "worker", "label"])
    wide = long.pivot(index="task", columns="worker", values="label")
    expected = as_table(rows)
    for frame in (
        wide,
        long.set_index("task"),
        long.set_index(["task", "worker"]),
        long.set_index(["task", "worker"]).label,
        long.rename_axis(index="row"),
    ):
        table = as_table(frame)
        assert (table.items, table.labelers) == (expected.items, expected.labelers)
        assert table.said.tolist() == expected.said.tolist()
