from pathlib import Path

import pytest

from tests.unit.files.malformed import BAD_PANELS, Malformed
from venire import FileError, Labeler
from venire.files import read_panel, read_prices


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "panel.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("bad", BAD_PANELS, ids=lambda bad: bad.name)
def test_a_malformed_file_names_the_line_and_the_remedy(bad: Malformed, tmp_path: Path) -> None:
    path = written(tmp_path, bad.content)
    with pytest.raises(FileError) as caught:
        read_panel(path)
    message = str(caught.value)
    where = f"{path}: " if bad.line is None else f"{path}, line {bad.line}: "
    assert message.startswith(where)
    assert bad.says in message
    assert "\n" not in message


def test_the_order_of_the_file_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path, "capacity,labeler,competence\n2,zoe,0.9\n1,ann,0.3\n")
    assert read_panel(path) == (Labeler("zoe", 0.9, 2), Labeler("ann", 0.3, 1))


def test_capacity_is_one_without_the_column(tmp_path: Path) -> None:
    assert read_panel(written(tmp_path, "labeler,competence\nann,.9\n")) == (Labeler("ann", 0.9),)


def test_the_price_of_a_label_is_read_and_is_nothing_without_one(tmp_path: Path) -> None:
    path = written(tmp_path, "labeler,competence,price\nann,.9,0.05\nbob,.8,\n")
    assert read_panel(path) == (Labeler("ann", 0.9, 1, 0.05), Labeler("bob", 0.8))


@pytest.mark.parametrize("price", ["-1", "free", "nan", "inf", "1e10"])
def test_a_price_that_is_none_is_refused(price: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"labeler,competence,price\nann,.9,{price}\n")
    with pytest.raises(FileError, match=r"line 2: price is .*give what one label of theirs costs"):
        read_panel(path)


def test_prices_with_a_labeler_twice_say_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path, "labeler,price\nann,0.1\nbob,0.2\nann,0.1\n")
    with pytest.raises(FileError, match=r"line 4: labeler 'ann' is there twice: drop one of them$"):
        read_prices(path)
