"""Files of labels as partitions: each is read where it will stay, and coded by names of all."""

from __future__ import annotations

import glob
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from venire.cluster.placing import Here, OnDask, Place
from venire.cluster.table import Part, PartitionedTable, compact, divided_item, plain, shuffled
from venire.errors import FileError, InputError
from venire.labels import LabelTable, Names, Repeats
from venire.labels.sources.build import COLUMNS, coded_columns, once_each, ordered_classes
from venire.labels.sources.columns import as_text
from venire.labels.sources.files import is_json_lines, is_parquet
from venire.labels.sources.truth import by_size
from venire.tools.addresses import Address, PathOrAddress, located

__all__ = ["files_of", "partitioned"]

#: Told what is being done, how many partitions are done, and of how many.
Watch = Callable[[str, int, int], None]

#: The endings of the files that are taken from a folder.
ENDINGS: Final = (".parquet", ".pq", ".csv", ".jsonl", ".ndjson")


def partitioned(
    files: str | PathOrAddress | Iterable[str | PathOrAddress],
    client: Any = None,
    *,
    classes: Sequence[Hashable] | None = None,
    repeats: Repeats = "error",
    columns: Sequence[str] = COLUMNS,
    ordered: bool = False,
    repartition: bool = False,
    progress: Watch | None = None,
) -> PartitionedTable:
    r"""Load files of labels as the partitions of a table, on the workers of a Dask cluster.

    Parameters
    ----------
    files
        A pattern such as ``labels/*.parquet`` or ``s3://bucket/labels/*.parquet``, a folder, or
        paths and addresses: CSV, Parquet or JSON Lines with task, worker and label. Workers read
        them, so they must find them under these names, and may read them.
    client : distributed.Client, optional
        The cluster; without it everything stays in this process.
    classes, repeats, columns
        As for `as_table`.
    ordered : bool
        Whether classes that are numbers, or text of numbers, are to be in order, for `Ordinal`.
    repartition : bool
        What to do with tasks that have labels in more than one file: raise an error, or, if true,
        move labels among the partitions until no task has.
    progress
        Called with what is being done, how many partitions are done, and of how many.

    Examples
    --------
    >>> import tempfile
    >>> from venire import MajorityVote
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, rows in {"a": "1,ann,no", "b": "2,ann,yes"}.items():
    ...         _ = Path(folder, f"{name}.csv").write_text(f"task,worker,label\n{rows}\n")
    ...     table = partitioned(f"{folder}/*.csv")
    >>> table
    PartitionedTable(2 partitions, 2 items, 1 labelers, 2 classes)
    >>> MajorityVote().fit(table).labels_
    {1: 'no', 2: 'yes'}
    """
    paths = files_of(files)
    place: Place = Here() if client is None else OnDask(client)
    watch = _watch(progress)
    raw = [place.submit(_read, path, tuple(columns), repeats) for path in paths]
    place.finish(raw, watch("reading"))
    found = place.results([place.submit(_names, own) for own in raw])
    _, labelers, said = merged = [
        _merged([own[n] for own in found], paths, column) for n, column in enumerate(columns)
    ]
    wanted = by_size(tuple(said)) if ordered and classes is None else classes
    named, moved = ordered_classes(said, wanted, columns[2])
    names = tuple(labelers), named
    of_class = dict(zip(said, moved.tolist(), strict=True))
    coding = labelers, of_class, names, isinstance(next(iter(merged[0])), str)
    shared = place.submit(_same, coding)
    parts = [place.submit(_recoded, own, shared) for own in raw]
    place.finish(parts, watch("coding"))
    counts = [own[3] for own in found]
    divided = divided_item(place, parts, sum(counts), watch("comparing tasks"))
    if divided is not None:
        if not repartition:
            item, one, other = divided
            raise InputError(
                f"{columns[0]} {item!r} has labels in {paths[one]} and in {paths[other]}, expected "
                "all labels of one in the same file: write them so, or move labels to where the "
                "others are with repartition=True (--repartition)"
            )
        parts = shuffled(place, parts, repeats, watch("moving labels"))
        counts = place.results([place.submit(_count, part) for part in parts])
    return PartitionedTable(place, parts, counts, names, paths)


def files_of(files: str | PathOrAddress | Iterable[str | PathOrAddress]) -> list[str]:
    """The files of a pattern, in order, of a folder, or as they are listed.

    >>> files_of(["b.csv", "a.csv", "file:///data/c.csv"])
    ['b.csv', 'a.csv', '/data/c.csv']
    """
    if not isinstance(files, str | Path | Address):
        listed = [str(located(path)) for path in files]
    elif isinstance(place := located(files), Address):
        listed = place.files(ENDINGS)
    elif place.is_dir():
        listed = sorted(str(p) for p in place.iterdir() if p.suffix.lower() in ENDINGS)
    elif place.is_file():
        listed = [str(place)]
    else:
        listed = sorted(glob.glob(str(place)))
    if not listed:
        raise InputError(
            f"there is no file of labels {str(files)!r}: give a pattern such as labels/*.parquet, "
            "in quotes, or a folder"
        )
    return listed


def _watch(progress: Watch | None) -> Callable[[str], Any]:
    def of(what: str) -> Any:
        return None if progress is None else lambda done, total: progress(what, done, total)

    return of


def _read(path: str, columns: tuple[str, ...], repeats: Repeats) -> LabelTable:
    """The labels of a file, coded by its own names."""
    try:
        (task, worker, label), blame = coded_columns(path, columns, "labels")
        names = label.codes, label.names
        table = once_each(task, worker, *names, repeats, columns, blame, fewest=1)
    except FileError as error:
        raise InputError(str(error)) from None  # which can be sent to the client
    items = compact(table.items)
    return LabelTable(items, table.labelers, table.classes, table.start, table.labeler, table.said)


def _names(table: LabelTable) -> tuple[list[Any], list[Any], list[Any], int]:
    """An item to tell their type by, labelers, classes, and how many items there are."""
    some = plain(table.items[:1])
    return some, plain(table.labelers), plain(table.classes), len(table.items)


def _merged(found: Sequence[list[Any]], paths: Sequence[str], column: str) -> dict[Any, int]:
    """All names in the order in which they appear: all text, or none.

    Numbers of one CSV file are text if those of another are: so they would be in one file.
    """
    text = [isinstance(names[0], str) for names in found]
    if any(text) and not all(text):
        typed = [n for n, is_text in enumerate(text) if not is_text and not _is_csv(paths[n])]
        if typed:
            one, other = typed[0], text.index(True)
            raise InputError(
                f"{column} is {found[one][0]!r} in {paths[one]} and {found[other][0]!r}, text, in "
                f"{paths[other]}: mixed types, expected all of one: convert the column"
            )
        found = [list(as_text(names)) for names in found]
    every = dict.fromkeys(name for names in found for name in names)
    return {name: code for code, name in enumerate(every)}


def _is_csv(path: str) -> bool:
    return not is_parquet(located(path)) and not is_json_lines(located(path))


Coding = tuple[dict[Any, int], dict[Any, int], tuple[Names, Names], bool]


def _same(coding: Coding) -> Coding:
    return coding


def _recoded(table: LabelTable, coding: Coding) -> Part:
    """The same labels, coded by the names of all."""
    of_labeler, of_class, names, text = coding
    labeler, said = (
        np.array([code[name] if name in code else code[str(name)] for name in plain(own)], np.int64)
        for code, own in ((of_labeler, table.labelers), (of_class, table.classes))
    )
    items = table.items
    if text and not isinstance(plain(items[:1])[0], str):
        items = compact(as_text(plain(items)))
    codes = table.item, labeler[table.labeler], said[table.said]
    return Part(LabelTable.from_codes(*codes, items, *names, fewest=1))


def _count(part: Part) -> int:
    return len(part.table.items)
