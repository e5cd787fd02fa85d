"""Forty files as people have them: each is read, or refused with the line to write."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.labels.people import FILES, PEOPLE, ROWS, SAID, File, table, wide
from venire.errors import FileError, InputError, VenireError
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.labels.sources.build import alike
from venire.tools.addresses import Piped, located


def test_there_are_forty() -> None:
    assert len(FILES) >= 40


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.title)
def test_read_or_refused(file: File, tmp_path: Path) -> None:
    path = tmp_path / file.name
    path.write_bytes(file.data)
    told: list[str] = []
    if file.refused:
        with pytest.raises(FileError) as caught:
            as_table(path)
        assert file.refused in str(caught.value)
        return
    found = as_table(path, tell=told.append)
    assert found.said.size == file.labels
    assert len(found.items) == len(SAID)
    assert file.said in " ".join(told)
    if file.title not in ("promptfoo",):  # which says pass and fail
        assert set(found.classes) == {"spam", "ok"}


@pytest.mark.parametrize(
    "rows",
    [
        [{"example_id": i, "annotator": p, "rating": c} for i, p, c in ROWS],
        iter([{"item": i, "judge": p, "said": c} for i, p, c in ROWS]),
        tuple(map(list, zip(*ROWS, strict=True))),
        {
            "item": [r[0] for r in ROWS],
            "rater": [r[1] for r in ROWS],
            "label": [r[2] for r in ROWS],
        },
        [{"id": i, **dict(zip(PEOPLE, row, strict=True))} for i, row in SAID.items()],
    ],
    ids=["list of dicts", "iterator of dicts", "three arrays", "dict of columns", "wide dicts"],
)
def test_what_is_in_memory(rows: Any) -> None:
    _same(as_table(rows), as_table(ROWS))


def test_dataframes_and_datasets() -> None:
    datasets, pandas, polars = map(pytest.importorskip, ("datasets", "pandas", "polars"))
    long = {"item": [r[0] for r in ROWS], "rater": [r[1] for r in ROWS]}
    long["vote"] = [r[2] for r in ROWS]
    for make in (pandas.DataFrame, polars.DataFrame, datasets.Dataset.from_dict):
        _same(as_table(make(long)), as_table(ROWS))
    _same(as_table(polars.LazyFrame(long)), as_table(ROWS))
    with pytest.raises(InputError, match=r"splits train: choose one, as in data\['train'\]"):
        as_table(datasets.DatasetDict(train=datasets.Dataset.from_dict(long)))
    across = pandas.DataFrame({"id": [1, 2, 3], "r1": [1, 2, np.nan], "r2": [1, 2, 2]})
    assert as_table(across).classes == (1, 2)  # whole, though a hole made floats of them


def test_a_spreadsheet(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (("item", "rater", "label"), *ROWS):
        book.active.append(row)
    book.save(tmp_path / "labels.xlsx")
    _same(as_table(tmp_path / "labels.xlsx"), as_table(ROWS))


def test_a_spreadsheet_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (tmp_path / "labels.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(FileError, match=r"save it as CSV, or run pip install 'venire\[data\]'"):
        as_table(tmp_path / "labels.xlsx")


@pytest.mark.parametrize("title", ["tabs", "wide", "JSON Lines", "JSON", "Parquet", "Inspect"])
def test_stdin(title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = next(f for f in FILES if f.title == title)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.data)))
    assert as_table(located("-")).said.size == file.labels


def test_what_stdin_says_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"item,rater,label\n1,a\n")))
    with pytest.raises(FileError, match=r"^stdin, line 2: the line has 2 fields, expected 3"):
        as_table(located("-"))


def test_wide_by_option(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    path.write_text(wide("a,b,c,d"))
    found = as_table(path, columns=("a", "b", "d"), wide=True)
    assert found.labelers == ("b", "d")
    assert found.said.size == 6
    with pytest.raises(FileError, match="there is no column 'z', got a, b, c, d"):
        as_table(path, columns=("a", "b", "z"), wide=True)


def test_a_row_twice_in_a_wide_table(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    path.write_text("id,ann,bob\n1,ok,ok\n2,spam,ok\n1,spam,ok\n")
    with pytest.raises(FileError, match="line 4: id 1 is there already, expected a row for each"):
        as_table(path)


def test_labelers_and_ratings_may_be_the_same_numbers() -> None:
    rows = [
        {"item": i, "rater": r, "rating": (i + r) % 5 + 1} for i in range(9) for r in range(1, 6)
    ]
    assert as_table(rows).labelers == (1, 2, 3, 4, 5)


def test_the_number_of_a_row_is_no_item() -> None:
    rows = [
        {"id": n, "sentence": f"text {n // 3}", "annotator": "abc"[n % 3], "label": n % 2}
        for n in range(30)
    ]
    with pytest.raises(InputError, match="cannot tell which columns are item, labeler and label"):
        as_table(rows)


def test_the_truth_may_be_in_the_same_table(tmp_path: Path) -> None:
    path = tmp_path / "judged.csv"
    path.write_text(wide("id,ann,bob,cem,gold", more=("ok",)))
    found = as_table(path)
    assert as_truth(path, found).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["1", "1.0", "True", "0", "False", "0", "1"], ("0", "1")),
        (["Yes", "yes ", "YES", "no", "Yes", "No", "no"], ("Yes", "no")),
        ([1, 1.0, True, 0, 1, 0, 0], (0, 1)),
        ([True, "True", "true ", False, "False", False, True], None),
    ],
)
def test_values_that_look_alike(labels: list[Any], classes: tuple[Any, ...] | None) -> None:
    rows = [(n, "ann", label) for n, label in enumerate(labels)]
    if len(set(map(type, labels))) == 1:
        with pytest.warns(UserWarning, match=r"look alike .* merge them with --merge"):
            as_table(rows)
    else:
        with pytest.raises(InputError, match="mixed types"):
            as_table(rows)
    merged = as_table(rows, merge=True)
    assert len(merged.classes) == 2
    assert classes is None or tuple(merged.classes) == classes


def test_merged_numbers_of_a_file_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n1,a,1\n1,b,1.0\n2,a,True\n2,b,0\n3,a,0\n")
    with pytest.warns(UserWarning, match="'1', '1.0', 'True'"):
        assert as_table(path).classes == ("0", "1", "1.0", "True")
    assert as_table(path, merge=True).classes == (0, 1)


@given(st.lists(st.sampled_from(["a", "A", " a", "1", "1.0", "01", "b", "2"]), unique=True))
def test_groups_are_those_of_a_plain_rule(names: list[str]) -> None:
    def plain(name: str) -> str:
        return {"01": "1", "1.0": "1"}.get(name, name.strip().lower())

    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(plain(name), []).append(name)
    assert alike(names) == [group for group in groups.values() if len(group) > 1]


@given(
    st.dictionaries(
        st.integers(0, 50),
        st.lists(st.sampled_from(["yes", "no", None]), min_size=3, max_size=3),
        min_size=2,
    )
)
def test_a_wide_table_is_the_long_one(said: dict[int, list[str | None]]) -> None:
    rows = [(i, p, c) for i, row in said.items() for p, c in zip(PEOPLE, row, strict=True) if c]
    if len({c for _, _, c in rows}) < 2:
        return
    across = [{"id": i, **dict(zip(PEOPLE, row, strict=True))} for i, row in said.items()]
    found = as_table(across, columns=("id", *PEOPLE), wide=True)
    expected = {(i, p): c for i, p, c in rows}
    assert {
        (found.items[i], found.labelers[m]): found.classes[k]
        for i, m, k in zip(found.item, found.labeler, found.said, strict=True)
    } == expected


def test_no_advice_makes_a_label_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(table("alpha,beta,gamma"))
    with pytest.raises(FileError) as caught:
        as_table(path)
    assert "above" not in str(caught.value)
    assert "--columns alpha,beta,gamma" in str(caught.value)


def _same(one: LabelTable, other: LabelTable) -> None:
    for name in ("items", "labelers", "classes"):
        assert tuple(getattr(one, name)) == tuple(getattr(other, name)), name
    for name in ("start", "labeler", "said"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist(), name


WORDS = st.sampled_from(["id", "item", "annotator", "label", "gold", "text", "q1", "q2", "ann", ""])
CELLS = st.sampled_from(["yes", "no", "1", "1.0", "True", "nan", "ü", "a b", "", " ", '"', "7"])


@pytest.mark.filterwarnings("ignore:values of")
@given(
    st.lists(WORDS, min_size=1, max_size=5),
    st.lists(st.lists(CELLS, min_size=1, max_size=5), max_size=8),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["utf-8", "latin-1", "utf-16"]),
    st.booleans(),
)
def test_whatever_a_file_says_is_read_or_refused(
    header: list[str], rows: list[list[str]], by: str, encoding: str, wide: bool
) -> None:
    text = "\n".join(by.join(cells) for cells in (header, *rows)).encode(encoding)
    with contextlib.suppress(VenireError):
        assert as_table(Piped.of(text, "stdin"), wide=wide).said.size


def test_a_guess_goes_by_words_in_names(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    rows = [f"1 November,q{n // 4},{'abcd'[n % 4]},{n % 5 + 1},{300 + n}" for n in range(40)]
    header = "run_id,sample_uuid,grader_model,score_1to5,latency_ms"
    file.write_text("\n".join([header, *rows]))
    with pytest.raises(InputError, match="--columns sample_uuid,grader_model,score_1to5"):
        as_table(file)
