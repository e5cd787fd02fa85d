from pathlib import Path

import pytest

from tests.unit.files.malformed import BAD_ITEMS, Malformed
from venire import FileError, Item
from venire.files import read_items
from venire.files.items import classes_of

PANEL = ("ann", "bob", "cat")


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "items.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "item;arrival;weight\ncafé;0;3\n",
        "item\tarrival\tweight\ncafé\t0\t3\n",
        "item,arrival,weight\ncafé,0,3\n".encode("latin-1"),
        "item,arrival,weight\ncafé,0,3\n".encode("utf-16"),
    ],
    ids=["semicolons", "tabs", "latin-1", "utf-16"],
)
def test_other_separators_and_encodings(content: str | bytes, tmp_path: Path) -> None:
    assert read_items(written(tmp_path, content), PANEL).ids == ("café",)


@pytest.mark.parametrize("bad", BAD_ITEMS, ids=lambda bad: bad.name)
def test_a_malformed_file_names_the_line_and_the_remedy(bad: Malformed, tmp_path: Path) -> None:
    path = written(tmp_path, bad.content)
    with pytest.raises(FileError) as caught:
        read_items(path, PANEL, slots=10)
    message = str(caught.value)
    where = f"{path}: " if bad.line is None else f"{path}, line {bad.line}: "
    assert message.startswith(where)
    assert bad.says in message
    assert "\n" not in message


def test_columns_in_any_order_with_extra_ones(tmp_path: Path) -> None:
    path = written(tmp_path, "note, Weight ,item,ARRIVAL\nhi,3,b,2\nho,0.5,a,0\n")
    table = read_items(path, PANEL)
    assert table.ids == ("b", "a")
    assert table.arrival.tolist() == [2, 0]
    assert table.weight.tolist() == [3.0, 0.5]
    assert (table.truth, table.allowed, table.classes) == (None, None, ("1", "2"))


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfitem,arrival,weight\na,0,3\n",
        b"item,arrival,weight\r\na,0,3\r\n",
        b"item,arrival,weight\na,0,3",
        b"\n\nitem,arrival,weight\n\na,0,3\n\n",
        b"item, arrival, weight\n a , 0.0 , 3.0 \n",
        b'"item","arrival","weight"\n"a","0","3"\n',
    ],
    ids=["bom", "crlf", "no last newline", "blank lines", "spaces", "quotes"],
)
def test_the_same_table_in_other_clothes(content: bytes, tmp_path: Path) -> None:
    table = read_items(written(tmp_path, content), PANEL)
    assert (table.ids, table.arrival.tolist(), table.weight.tolist()) == (("a",), [0], [3.0])


def test_who_may_label_what(tmp_path: Path) -> None:
    rows = ["a,0,3,,", "b,0,3,ann|bob,", "c,0,3,,ann", "d,0,3,ann | cat,cat", "e,0,3,ann,ann"]
    text = "item,arrival,weight,eligible,excluded\n" + "\n".join(rows)
    table = read_items(written(tmp_path, text), PANEL)
    assert table.allowed == (
        None,
        frozenset({"ann", "bob"}),
        frozenset({"bob", "cat"}),
        frozenset({"ann"}),
        frozenset(),
    )
    assert list(table.items())[3] == Item("d", 3, eligible=frozenset({"ann"}))


def test_an_empty_truth_column_is_no_truth(tmp_path: Path) -> None:
    table = read_items(written(tmp_path, "item,arrival,weight,truth\na,0,3,\nb,0,3,\n"), PANEL)
    assert table.truth is None


def test_given_classes_keep_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, "item,arrival,weight,truth\na,0,3,x\n")
    assert read_items(path, PANEL, classes=["y", "x"]).classes == ("y", "x")
    with pytest.raises(FileError, match=r"line 2: truth is 'x'.*'y,z': add it to --classes"):
        read_items(path, PANEL, classes=["y", "z"])


@pytest.mark.parametrize(
    ("truth", "classes"),
    [
        (["b", "a", "b"], ("a", "b")),
        (["10", "9"], ("9", "10")),
        (["-1", "0.5", "1e1"], ("-1", "0.5", "1e1")),
        (["10", "9", "x"], ("10", "9", "x")),
        (["nan", "1"], ("1", "nan")),
        (["cat"], ("cat", "not cat")),
    ],
)
def test_classes_of(truth: list[str], classes: tuple[str, ...]) -> None:
    assert classes_of(truth) == classes


def test_too_many_classes_are_a_mistaken_column(tmp_path: Path) -> None:
    rows = "".join(f"{i},0,3,t{i}\n" for i in range(2**15))
    with pytest.raises(FileError, match=r"32768 distinct values.*right column"):
        read_items(written(tmp_path, "item,arrival,weight,truth\n" + rows), PANEL)


@pytest.mark.parametrize(
    ("path", "reason"), [("nowhere.csv", "no such file"), (".", "is a directory")]
)
def test_a_file_that_cannot_be_read(path: str, reason: str) -> None:
    with pytest.raises(FileError, match=reason):
        read_items(path, PANEL)
