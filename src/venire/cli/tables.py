"""What commands about a table of labels share: columns, repeats, prices, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from venire.errors import FileError, InputError, UnknownName

if TYPE_CHECKING:
    from collections.abc import Hashable

    from venire.labels import LabelTable, Repeats
    from venire.tools.addresses import PathOrAddress

__all__ = ["columns_of", "prices_of", "repeats_of", "true_labels"]


def columns_of(text: str | None, default: Sequence[str]) -> tuple[str, ...]:
    """The names in `item,judge,verdict`; the default for None."""
    if text is None:
        return tuple(default)
    names = tuple(name.strip() for name in text.split(","))
    if len(set(names)) != len(default) or len(names) != len(default) or "" in names:
        raise InputError(
            f"got --columns {text!r}, expected {len(default)} names, for {', '.join(default)}"
        )
    return names


def repeats_of(text: str) -> Repeats:
    """What to do with repeated labels; other words are refused."""
    from venire.labels import Repeats

    if text not in get_args(Repeats):
        raise UnknownName("way with --repeats", text, get_args(Repeats))
    return cast(Repeats, text)


def prices_of(path: Path, table: LabelTable) -> dict[Hashable, float]:
    """The prices of a file, by the labelers' names in the table, which may be whole numbers."""
    from venire.files import read_prices

    read = read_prices(path)
    missing = next((name for name in table.labelers if str(name) not in read), None)
    if missing is not None:
        message = f"labeler {str(missing)!r} has labels and no price: add a line, 0 for free labels"
        raise FileError(path, None, message)
    return {name: read[str(name)] for name in table.labelers}


def true_labels(
    path: PathOrAddress, table: LabelTable, columns: Sequence[str]
) -> dict[Hashable, Hashable]:
    """The true classes in a file, by item; one that nobody ever said is never right."""
    from venire.labels.sources import as_truth

    codes = as_truth(path, table, (columns[0], columns[2]))
    outside = ("a class that nobody ever said",)
    names = (*table.classes, outside)
    pairs = zip(table.items, codes.tolist(), strict=True)
    return {item: names[k] for item, k in pairs if k >= 0}
