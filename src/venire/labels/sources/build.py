"""From columns to a `LabelTable`, with errors that say which row is wrong and what to do.

Labels that look alike and are different values: 1, 1.0 and True; Yes and "yes ".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from venire.errors import InputError
from venire.labels import Codes, LabelTable, Names, Repeats, sort_key
from venire.labels.partitions import Partitions, Table
from venire.labels.sources.columns import Coded, Fault, NoRows, as_text, as_whole, coded, first_row
from venire.labels.sources.files import is_path
from venire.labels.sources.sheets import COLUMNS, Blame, Sheet, listed, read_sheet
from venire.tools.addresses import located
from venire.tools.csv_rows import number

#: How booleans are written, and the numbers that they may stand for.
_TRUTHS = {"true": 1.0, "false": 0.0}


def alike(names: Iterable[Any]) -> list[list[Any]]:
    """The groups of names that look alike, each in the order of the names.

    >>> alike(["1", "1.0", "True", "no", " NO", "maybe"])
    [['1', '1.0', 'True'], ['no', ' NO']]
    >>> alike(["yes", "no", "true"])
    []
    """
    listed = list(names)
    numeric = any(isinstance(_key(name), float) and not _is_truth(name) for name in listed)
    groups: dict[Hashable, list[Any]] = {}
    for name in listed:
        key = _key(name)
        if _is_truth(name):
            key = _TRUTHS[str(name).strip().casefold()] if numeric else str(name).strip().casefold()
        groups.setdefault(key, []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def alike_words(groups: Sequence[Sequence[Any]], column: str) -> str:
    """The warning about groups of names that look alike."""
    shown = "; ".join(", ".join(map(repr, group)) for group in groups[:3])
    more = f"; and {len(groups) - 3} more" if len(groups) > 3 else ""
    return (
        f"values of {column} look alike and count as different classes: {shown}{more}. If they are "
        "the same, merge them with --merge (in Python as_table(..., merge=True))"
    )


def merged(label: Coded, keep: Collection[Any] = ()) -> Coded:
    """Labels with one name for what looks alike: one of `keep`, or else the commonest.

    >>> made = merged(Coded(np.array([0, 1, 2, 2]), ("yes", "no", "Yes ")))
    >>> made.names, made.codes.tolist()
    (('Yes ', 'no'), [0, 1, 0, 0])
    """
    counts = np.bincount(label.codes, minlength=len(label.names))
    listed = list(label.names)
    instead = list(range(len(listed)))
    by_id = {id(name): place for place, name in enumerate(listed)}
    for group in alike(listed):
        places = [by_id[id(name)] for name in group]
        chosen = next((p for p in places if listed[p] in keep), None)
        best = max(places, key=lambda p: int(counts[p])) if chosen is None else chosen
        for place in places:
            instead[place] = best
    kept = list(dict.fromkeys(instead))
    new = {old: code for code, old in enumerate(kept)}
    codes = np.array([new[place] for place in instead], label.codes.dtype)[label.codes]
    names = [listed[place] for place in kept]
    return Coded(codes, tuple(names))


def merged_values(values: Iterable[Any]) -> list[Any]:
    """Values of more than one type as values of one, where they stand for the same.

    >>> merged_values([1, True, "1.0", 0, 1])
    [1, 1, 1, 0, 1]
    """
    listed = list(values)
    kinds = {type(value) for value in listed}
    if len(kinds) < 2:
        return listed
    if any(issubclass(kind, int | float | np.number) and kind is not bool for kind in kinds):
        return [_number_of(value) for value in listed]
    return [str(value) if isinstance(value, bool | np.bool_) else value for value in listed]


def _number_of(value: Any) -> Any:
    """What stands for a number, as one; other text as it is."""
    if _is_truth(value):
        return int(_TRUTHS[str(value).strip().casefold()])
    key = _key(value)
    if not isinstance(key, float):
        return value
    return int(key) if key.is_integer() else key


def _key(name: Any) -> Hashable:
    """The same for names that look alike, but for booleans."""
    if isinstance(name, str):
        value = number(name.strip())
        return " ".join(name.split()).casefold() if value is None or value != value else value
    if isinstance(name, bool | np.bool_):
        return str(name).casefold()
    return float(name) if isinstance(name, int | float | np.number) else name


def _is_truth(name: Any) -> bool:
    if isinstance(name, bool | np.bool_):
        return True
    return isinstance(name, str) and name.strip().casefold() in _TRUTHS


#: How programs and people write that there is no value, without spaces and in small letters.
_BLANKS: Final = frozenset({"n/a", "#n/a", "na", "<na>", "null", "nil", "-", "--", "?"})

#: More distinct labels than this are measurements, and not compared.
_MANY_CLASSES: Final = 1000

#: Classes are kept in 16 bits.
MOST_CLASSES: Final = 2**15 - 1

_REPEATS: Final = (
    "drop all rows but one, or keep the first or the last of them (--repeats first or last, in "
    'Python as_table(..., repeats="first"))'
)

_ALL: Final = "all of the classes (--classes no,yes, in Python as_table(..., classes=[...]))"

#: Told what was taken for what.
Tell = Callable[[str], object]


def as_table(
    labels: Any,
    classes: Sequence[Hashable] | None = None,
    repeats: Repeats = "error",
    columns: Sequence[str] = COLUMNS,
    *,
    wide: bool = False,
    merge: bool = False,
    tell: Tell | None = None,
    blank: Collection[Hashable] = (),
) -> LabelTable:
    r"""Labels of any form as a `LabelTable`.

    Parameters
    ----------
    labels
        A `LabelTable` (returned as it is); a dataframe of pandas, polars or pyarrow, a dataset of
        Hugging Face, a dict of columns or a list of dicts; a tuple of three arrays; an iterable of
        (task, worker, label) rows; or the path, or the address (s3://bucket/labels.parquet), of a
        CSV, Parquet, JSON, JSON Lines or .xlsx file, or of an export of Prodigy, Argilla,
        promptfoo or Inspect. Other columns are ignored.
    classes
        What a label may say, in this order. By default the labels that occur, sorted: numbers
        by size, before text.
    repeats : "error", "first" or "last"
        What to do with a worker who labels a task more than once: raise an error, or keep the first
        or the last of the rows.
    columns
        What the columns of task, worker and label are called, in a dataframe or a file. By default
        those names, or else the usual ones (item, example_id; annotator, judge; rating, answer;
        ...), or a column for each judge, are recognised.
    wide
        Whether there is a column for each judge; `columns` are then that of the items and those of
        the judges.
    merge
        Whether labels that look alike (1, 1.0 and True; Yes and "yes ") are one. By default they
        are different, with a warning.
    tell
        Called with what was taken for what, where that was found out.
    blank
        Labels that stand for none, such as "N/A": rows with them are left out.

    Returns
    -------
    LabelTable
        Tasks and workers keep their order of first appearance.

    Raises
    ------
    InputError
        If a column is missing, a value is missing or of another type than the rest of its
        column, a label is outside the classes, there is one class only, or (task, worker)
        repeats. `FileError`, with the line, if it came from a file.
    MissingExtra
        Where a dataframe or a Parquet file needs `pip install 'venire[data]'`.

    Notes
    -----
    In a CSV file a column is whole numbers if every value is written as Python writes a whole
    number; else it is text, so that 007 and 7 stay two names. NaN and nan are missing values.

    Examples
    --------
    >>> table = as_table([("a", "ann", "yes"), ("b", "ann", "no"), ("a", "bob", "no")])
    >>> table.items, table.labelers, table.classes
    (('a', 'b'), ('ann', 'bob'), ('no', 'yes'))
    >>> columns = {"task": [7, 7, 9], "worker": ["ann", "bob", "ann"], "label": [1, 0, 1]}
    >>> as_table(columns).said.tolist()
    [1, 0, 1]
    >>> wide = [{"id": 1, "gpt": "no", "llama": "yes"}, {"id": 2, "gpt": "no", "llama": "no"}]
    >>> as_table(wide, tell=print).labelers
    read 2 items (id) in rows, 2 judges in columns gpt and llama
    ('gpt', 'llama')
    >>> rows = [("a", "ann", "yes"), ("a", "bob", "N/A"), ("b", "ann", "no")]
    >>> as_table(rows, blank=["N/A"]).classes
    ('no', 'yes')
    >>> as_table([("a", "ann", 1), ("a", "bob", "1")])
    Traceback (most recent call last):
    venire.errors.InputError: row 1 (the first is 0): label is '1', text, and 1 in the ...
    """
    if isinstance(labels, LabelTable):
        return _same(labels, classes)
    return _table(labels, classes, repeats, columns, 2, wide, merge, tell, blank)


def as_labels(labels: Any) -> Table:
    """Labels of any form as a table, in one piece or in partitions.

    >>> as_labels([("a", "ann", "yes"), ("b", "ann", "no")]).classes
    ('no', 'yes')
    """
    return labels if isinstance(labels, Partitions) else as_table(labels)


def as_batch(
    labels: Any, classes: Sequence[Hashable] | None = None, repeats: Repeats = "error"
) -> LabelTable:
    """The same for a batch of labels, which may have one class only, or no labels at all.

    >>> as_batch([("a", "ann", "yes")]).classes, as_batch([]).said.size
    (('yes',), 0)
    """
    try:
        return _table(labels, classes, repeats, COLUMNS, 1, False, False, None)
    except NoRows:
        none = np.zeros(0, np.uint8)
        return LabelTable((), (), (), np.zeros(1, np.int64), none, none)


def _table(
    labels: Any,
    classes: Sequence[Hashable] | None,
    repeats: Repeats,
    columns: Sequence[str],
    fewest: int,
    wide: bool,
    merge: bool,
    tell: Tell | None,
    blank: Collection[Hashable] = (),
) -> LabelTable:
    made = coded_sheet(labels, columns, "labels", wide, merge, tell)
    (task, worker, label), columns, blame = made
    if blank:
        (task, worker, label), blame = _without((task, worker, label), blank, blame)
    try:
        _tell_blanks(label, classes, columns[2])
        label = _alike_labels(label, classes, columns[2], is_path(labels), merge)
        label = _by_class(label, classes, columns[2], is_path(labels), fewest)
    except Fault as fault:
        raise blame(fault.row, fault.message) from None
    return once_each(task, worker, label.codes, label.names, repeats, columns, blame, fewest)


def once_each(
    task: Coded,
    worker: Coded,
    said: Codes,
    classes: Names,
    repeats: Repeats,
    columns: Sequence[str],
    blame: Blame,
    fewest: int,
) -> LabelTable:
    """The table of these labels; the error about a repeated one names its row."""
    codes, names = (task.codes, worker.codes, said), (task.names, worker.names, classes)
    try:
        return LabelTable.from_codes(*codes, *names, repeats=repeats, fewest=fewest)
    except InputError:
        row = _repeated_row(task, worker)
        if row is None or repeats != "error":
            raise
        who, what = worker.names[worker.codes[row]], task.names[task.codes[row]]
        message = f"{columns[1]} {who!r} labels {columns[0]} {what!r} again, expected one label"
        raise blame(row, f"{message} of each for it: {_REPEATS}") from None


def coded_columns(source: Any, columns: Sequence[str], what: str) -> tuple[list[Coded], Blame]:
    """The columns of a source, coded, and what makes the error about one of its rows."""
    values, _, blame = coded_sheet(source, columns, what)
    return values, blame


def coded_sheet(
    source: Any,
    columns: Sequence[str],
    what: str,
    wide: bool = False,
    merge: bool = False,
    tell: Tell | None = None,
) -> tuple[list[Coded], tuple[str, ...], Blame]:
    """The same with the names of the columns, which are recognised if they are not as given."""
    if isinstance(source, Partitions):
        raise InputError(
            "got labels in partitions, expected them in one piece: this needs all labels in one "
            "process (what partitions are for: docs/cluster.md); gather() makes one table of them"
        )
    given = located(source) if is_path(source) else source
    sheet: Sheet = read_sheet(given, columns, what, wide)
    if tell is not None:
        for said in sheet.said:
            tell(said)
    values = sheet.values
    try:
        if merge and not isinstance(values[-1], Coded):
            values[-1] = merged_values(listed(values[-1]))
        return (
            [
                value if isinstance(value, Coded) else coded(value, column)
                for value, column in zip(values, sheet.columns, strict=True)
            ],
            sheet.columns,
            sheet.blame,
        )
    except Fault as fault:
        raise sheet.blame(fault.row, fault.message) from None


def _without(
    sheet: tuple[Coded, Coded, Coded], blank: Collection[Hashable], blame: Blame
) -> tuple[list[Coded], Blame]:
    """The rows whose label is none of these; the error about a row names that of the source."""
    label, names = sheet[2], {str(name).strip() for name in blank}
    stay = np.array([str(name).strip() not in names for name in label.names])[label.codes]
    kept = np.flatnonzero(stay)
    if not kept.size:
        raise blame(None, f"every label is one of {sorted(names)}: no label is left")
    found = []
    for column in sheet:
        used, codes = np.unique(column.codes[kept], return_inverse=True)
        made = codes.astype(np.int32), tuple(column.names[code] for code in used.tolist())
        found.append(Coded(*made))
    return found, lambda row, message: blame(None if row is None else int(kept[row]), message)


def _tell_blanks(label: Coded, classes: Sequence[Hashable] | None, column: str) -> None:
    """Warn of a class that looks as if it stood for a missing label."""
    if len(label.names) > _MANY_CLASSES or isinstance(label.names, range):
        return
    for code, name in enumerate(label.names):
        looks = isinstance(name, str) and name.strip().casefold() in _BLANKS
        if looks and name not in set(classes or ()):
            count = int((label.codes == code).sum())
            warnings.warn(
                f"{count:,} values of {column} are {name!r}, which looks like a missing label and "
                f"counts as a class: to leave them out, --blank {name.strip()!r} (in Python "
                f"as_table(..., blank=[{name!r}]))",
                stacklevel=5,
            )


def _alike_labels(
    label: Coded,
    classes: Sequence[Hashable] | None,
    column: str,
    from_file: bool,
    merge: bool,
) -> Coded:
    """Labels with one name for what looks alike, if they are to be merged; else with a warning."""
    if len(label.names) > _MANY_CLASSES or isinstance(label.names, range):
        return label
    if merge:
        made = merged(label, classes or ())
        return Coded(made.codes, as_whole(made.names) or made.names) if from_file else made
    known = set(classes or ())
    groups = [g for g in alike(label.names) if not all(name in known for name in g)]
    if groups:
        warnings.warn(alike_words(groups, column), stacklevel=5)
    return label


def ordered_classes(
    said: Iterable[Any], classes: Sequence[Hashable] | None, column: str
) -> tuple[tuple[Hashable, ...], Codes]:
    """The classes of labels of files in order, and the code of each of those that were said.

    >>> ordered_classes(["yes", "no"], None, "label")
    (('no', 'yes'), array([1, 0], dtype=int16))
    """
    names = tuple(said)
    try:
        found = _by_class(Coded(np.arange(len(names)), names), classes, column, True, fewest=2)
    except Fault as fault:
        raise InputError(fault.message) from None
    return tuple(found.names), found.codes


def _same(table: LabelTable, classes: Sequence[Hashable] | None) -> LabelTable:
    if classes is not None and list(classes) != list(table.classes):
        raise InputError(
            f"got the classes {list(classes)}, and a table whose classes are "
            f"{list(table.classes)}: build the table with those classes"
        )
    return table


def _by_class(
    label: Coded,
    classes: Sequence[Hashable] | None,
    column: str,
    from_file: bool,
    fewest: int,
) -> Coded:
    names: Names = label.names
    if len(names) > MOST_CLASSES:
        message = f"{column} has {len(names)} distinct values, expected at most {MOST_CLASSES}"
        raise Fault(
            None, f"{message}: is it the right column? For numbers use --numeric (RobustMean)"
        )
    if classes is None:
        ordered = tuple(sorted(names, key=sort_key))
        _check_count(ordered, column, fewest)
    else:
        ordered = _declared(classes)
        if from_file:
            names, ordered = _alike(names, ordered)
    index = {name: i for i, name in enumerate(ordered)}
    for code, name in enumerate(names):
        if name not in index:
            raise Fault(
                first_row(label, code),
                f"{column} is {name!r}, expected one of the classes {list(ordered)}: correct the "
                "row, or declare the class",
            )
    moved = np.array([index[name] for name in names], np.int16)
    return Coded(moved[label.codes], ordered)


def _declared(classes: Sequence[Hashable]) -> tuple[Hashable, ...]:
    ordered = tuple(classes)
    if len(ordered) < 2 or len(set(ordered)) < len(ordered):
        raise InputError(f"got the classes {list(ordered)}, expected two or more, each once")
    return ordered


def _alike(names: Names, classes: tuple[Hashable, ...]) -> tuple[Names, tuple[Hashable, ...]]:
    """Labels of a file and classes as typed by the user: both numbers if possible, else text."""
    if all(isinstance(name, str) for name in classes):
        typed = as_whole(classes)
        if typed is None:
            return as_text(names), classes
        if all(isinstance(name, int) for name in names):
            return names, typed
    return names, classes


def _check_count(classes: tuple[Hashable, ...], column: str, fewest: int) -> None:
    if len(classes) < fewest:
        message = f"every {column} is {classes[0]!r}: one class only, expected at least two"
        raise Fault(None, f"{message}: declare {_ALL} if the others did not occur")


def _repeated_row(task: Coded, worker: Coded) -> int | None:
    pair = task.codes.astype(np.int64) * len(worker.names) + worker.codes
    order = np.argsort(pair, kind="stable")
    again = order[1:][pair[order][1:] == pair[order][:-1]]
    return int(again.min()) if again.size else None
