import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.marks import examples
from venire.errors import InputError
from venire.labels import LabelTable
from venire.labels.sorting import is_sorted, offsets, sort_labels
from venire.labels.table import _in_order

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 2)), min_size=1)


@given(rows)
def test_repeats_keep_the_first_or_the_last(given_rows: list[tuple[int, int, int]]) -> None:
    item, labeler, said = np.array(given_rows).T
    names = range(6), range(5), range(3)
    for repeats, order in (("first", given_rows[::-1]), ("last", given_rows)):
        table = LabelTable.from_codes(item, labeler, said, *names, repeats=repeats)  # type: ignore[arg-type]
        expected = {(i, m): k for i, m, k in order}
        found = zip(table.item.tolist(), table.labeler.tolist(), strict=True)
        assert dict(zip(found, table.said.tolist(), strict=True)) == expected
        again = LabelTable.from_codes(
            np.tile(item, 2),
            np.tile(labeler, 2),
            np.tile(said, 2),
            *names,
            repeats=repeats,  # type: ignore[arg-type]
        )
        assert again.labeler.tolist() == table.labeler.tolist()
    if len({r[:2] for r in given_rows}) < len(given_rows):
        with pytest.raises(InputError, match="more than once"):
            LabelTable.from_codes(item, labeler, said, *names)


@examples(night=200, day=20)
@given(rows)
def test_the_compiled_sort_equals_the_plain_one(given_rows: list[tuple[int, int, int]]) -> None:
    item, labeler, said = np.array(given_rows).T
    start, m, s = _in_order(6, item, labeler, said)
    assert offsets(item, 6).tolist() == start.tolist()
    fast = sort_labels(item, labeler, said, start)
    assert [a.tolist() for a in fast] == [m.tolist(), s.tolist()]
    assert is_sorted(np.repeat(np.arange(6), np.diff(start)), m)
    assert is_sorted(item, labeler) == (given_rows == sorted(given_rows, key=lambda r: r[:2]))


def test_many_labels_in_any_order() -> None:
    rng = np.random.default_rng(0)
    cells = rng.choice(300 * 400, 80_000, replace=False)
    item, labeler, said = cells // 400, cells % 400, cells % 3
    shuffled = LabelTable.from_codes(item, labeler, said, range(300), range(400), range(3))
    cells.sort()
    ordered = LabelTable.from_codes(
        cells // 400, cells % 400, cells % 3, range(300), range(400), range(3)
    )
    for part in ("start", "labeler", "said"):
        assert (getattr(shuffled, part) == getattr(ordered, part)).all()
    assert (shuffled.labeler.dtype.name, shuffled.said.dtype.name) == ("uint16", "uint8")


def test_arrays_in_order_are_not_copied_and_names_take_no_room() -> None:
    item = np.repeat(np.arange(20_000, dtype=np.uint32), 5)
    labeler = np.tile(np.arange(5, dtype=np.uint16), 20_000)
    said = np.zeros(100_000, np.uint8)
    table = LabelTable.from_codes(item, labeler, said, range(20_000), range(5), range(2))
    assert np.shares_memory(table.labeler, labeler)
    assert np.shares_memory(table.said, said)
    assert table.items == range(20_000)


@pytest.mark.parametrize(
    ("codes", "match"),
    [(([0, 2], [0, 0], [0, 0]), "codes from 0 to 2"), (([0], [0, 0], [0, 1]), "equal numbers")],
)
def test_refuses(codes: tuple[list[int], list[int], list[int]], match: str) -> None:
    with pytest.raises(InputError, match=match):
        LabelTable.from_codes(*codes, range(2), range(2), range(2))
    with pytest.raises(InputError, match="repeats"):
        LabelTable.from_codes([0], [0], [0], [0], [0], [0, 1], repeats="all")  # type: ignore[arg-type]
