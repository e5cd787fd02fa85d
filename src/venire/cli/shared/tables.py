"""What commands about a table of labels share: columns, repeats, prices, families, the truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from venire.errors import FileError, InputError, UnknownName
from venire.tools.addresses import located

if TYPE_CHECKING:
    from collections.abc import Hashable

    from venire.files.audits import KnownLabels
    from venire.labels import LabelTable, Repeats
    from venire.labels.partitions import Table
    from venire.tools.addresses import PathOrAddress

__all__ = [
    "FAMILIES",
    "MERGE",
    "WIDE",
    "columns_of",
    "families_of",
    "gold_of",
    "prices_of",
    "related_lines",
    "repeats_of",
    "true_labels",
]

FAMILIES = (
    "Who may share errors: a file with labeler,family, or a YAML, TOML or JSON mapping of labeler "
    "to family. [default: a column family of the labels]"
)

#: Files that map labelers to their families; others are tables.
_MAPPINGS = (".json", ".toml", ".yaml", ".yml")


WIDE = "Each judge has a column, and each item a row. [default: found out]"
MERGE = "Merge labels that look alike: 1, 1.0 and True; Yes and yes."


def columns_of(text: str | None, default: Sequence[str], wide: bool = False) -> tuple[str, ...]:
    """The names in `item,judge,verdict`; the default for None.

    In a wide table they are the column of the items and those of the judges.
    """
    if text is None:
        return tuple(default)
    names = tuple(name.strip() for name in text.split(","))
    if wide and len(set(names)) == len(names) > 2 and "" not in names:
        return names
    if wide:
        raise InputError(
            f"got --wide --columns {text!r}, expected the column of the items and those of two or "
            "more judges, as in id,gpt,llama"
        )
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


def families_of(
    file: Path | None, labels: PathOrAddress, table: Table, columns: Sequence[str]
) -> dict[Hashable, Hashable] | None:
    """The families that a file declares, else a column `family` of the labels; None: neither."""
    from venire.cli.shared.clusters import is_several
    from venire.cluster.loading import files_of
    from venire.labels.sources import as_families

    if file is not None:
        return _declared(file, table)
    if isinstance(labels, Path) and labels.exists() and not (labels.is_file() or labels.is_dir()):
        return None  # a pipe can be read once
    found: dict[Hashable, Hashable] = {}
    paths = [located(path) for path in files_of(labels)] if is_several(labels) else [labels]
    for path in paths:
        for name, family in (as_families(path, table, (columns[1], "family")) or {}).items():
            if found.setdefault(name, family) != family:
                message = (
                    f"labeler {name!r} is of family {family!r}, and of {found[name]!r} in a file "
                    "before: expected one family for each, correct one of them"
                )
                raise FileError(path, None, message)
    return found or None


def gold_of(path: Path, table: LabelTable, columns: Sequence[str]) -> KnownLabels:
    """The known labels in a file, by the names of items and classes in the table.

    Rows without a label are skipped, as in a list that is not yet filled in.
    """
    from venire.files import read_known
    from venire.files.audits import KnownLabels
    from venire.labels.sources.columns import like

    read, day, asked = read_known(path, (columns[0], columns[2]))
    names, labels = like(list(read), table.items), like(list(read.values()), table.classes)
    odd = next((said for said in labels if said not in set(table.classes)), None)
    if odd is not None:
        raise InputError(
            f"{path} has the label {odd!r}, which is not one of the classes "
            f"{list(table.classes)}: name all of them with --classes, or correct it"
        )
    there = set(table.items)
    if read and not there.intersection(names):
        message = f"none of its tasks is among the labels', such as {table.items[0]!r}"
        raise FileError(path, None, message)
    known = {name: k for name, k in zip(names, labels, strict=True) if name in there}
    chosen = frozenset(name for name, text in zip(names, read, strict=True) if text in asked)
    return KnownLabels(known, day, chosen)


def related_lines(relations: Sequence[str]) -> Sequence[str]:
    """Who shares errors, a sentence each; one that says so if nobody does."""
    return relations or ("nobody is known to share errors",)


def _declared(path: Path, table: Table) -> dict[Hashable, Hashable]:
    """The families of a file: a table, or a mapping of labeler to family."""
    from venire.files.trees import read_tree
    from venire.labels.sources import as_families
    from venire.labels.sources.columns import like

    columns = "labeler", "family"
    if path.suffix.lower() not in _MAPPINGS:
        found = as_families(path, table, columns)
        if found is None:
            message = "there is no column 'family': expected labeler,family, a row for each labeler"
            raise FileError(path, None, message)
        return found
    tree = read_tree(path)
    named = tree.content if isinstance(tree.content, dict) else {}
    odd = next((who for who, family in named.items() if isinstance(family, dict | list)), None)
    if not named or odd is not None:
        got = type(tree.content).__name__ if odd is None else f"{odd!r}: {named[odd]!r}"
        message = (
            f"got {got}, expected a mapping of labeler to family: write llama-a: llama for each"
        )
        raise FileError(path, None if odd is None else tree.line((odd,)), message)
    source = dict(zip(columns, (like(named, table.labelers), list(named.values())), strict=True))
    try:
        return as_families(source, table, columns) or {}
    except InputError as error:
        raise FileError(path, None, str(error)) from None


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
