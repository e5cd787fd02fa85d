"""The files of an audit: the verdicts, which of them were drawn, and the trusted labels.

Whoever audits gets a list with the columns task, label (empty, to be filled in) and drawn (sample
or extra), without the verdicts, and gives it back as the file of trusted labels. CSV, Parquet and
JSON Lines, by their ending. Names are compared as text, so that 7 and "7" are one task.

The files of rates: verdicts with what they are sure of, groups of items, the list to label.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

from venire.audits import Drawn
from venire.audits.audit import Asked
from venire.errors import FileError
from venire.files.results import Output
from venire.labels.sources.columns import Coded
from venire.labels.sources.files import (
    NAN,
    is_json_lines,
    is_parquet,
    line_of,
    read_columns,
    read_json_lines,
)
from venire.labels.sources.headers import ITEM, role_names
from venire.labels.sources.sheets import file_head, has_header, listed, read_sheet, resolved
from venire.tools.csv_rows import number, read_rows, shown, whole
from venire.tools.untrusted import parse_json

COLUMNS: Final = ("task", "label")

#: What the column `drawn` says of a task of the sample, and of one that was drawn for its class.
SAMPLE, EXTRA = "sample", "extra"

#: What it says of a task that `venire ask` chose: it teaches, and never counts in bounds.
ASKED: Final = "asked"

#: The fields of a row as text, and how to make the error about the row at a place.
Rows = tuple[list[list[str]], Callable[[int, str], FileError]]


class Gold(NamedTuple):
    """The trusted label of each task, None where there is none; the tasks in the order drawn.

    `marked` says whether the file has a column `drawn`, as a list of `venire audit draw` has;
    `probabilities` are those of a column `probability`, as lists of `venire estimate` have.
    """

    labels: dict[str, str | None]
    drawn: list[Drawn]
    marked: bool
    probabilities: dict[str, float] | None = None


class KnownLabels(NamedTuple):
    """Known labels by task, the last day in the column `date`, and the tasks that were asked.

    `day` is None without any; `asked` are those of which the column `drawn` says so.
    """

    labels: dict[Any, Any]
    day: date | None = None
    asked: frozenset[Any] = frozenset()


def drawn_output(path: str | Path, drawn: Iterable[Drawn]) -> Output:
    """The list for whoever audits, with the label to be filled in.

    >>> output = drawn_output("to-audit.csv", [Drawn("a"), Drawn("b", extra=True)])
    >>> output.columns, list(output.rows)
    (('task', 'label', 'drawn'), [('a', None, 'sample'), ('b', None, 'extra')])
    """
    rows = ((task, None, EXTRA if extra else SAMPLE) for task, extra in drawn)
    return Output(Path(path), (*COLUMNS, "drawn"), rows)


def read_verdicts(path: str | Path, columns: Sequence[str] = COLUMNS) -> dict[str, str]:
    r"""The verdict on each task, as `venire aggregate --out` writes them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "verdicts.csv")
    ...     _ = path.write_text("task,label,confidence\n1,spam,0.9\n2,ok,0.8\n")
    ...     read_verdicts(path)
    {'1': 'spam', '2': 'ok'}
    """
    verdicts: dict[str, str] = {}
    rows, blame = text_rows(Path(path), columns, "verdicts")
    for place, (task, label) in enumerate(rows):
        for name, value in zip(columns, (task, label), strict=True):
            if not value:
                raise blame(place, f"{name} is empty, expected one in every row: drop the row")
        if task in verdicts:
            message = f"task {shown(task)} has a verdict above, expected one: keep one of them"
            raise blame(place, message)
        verdicts[task] = label
    return verdicts


def read_known(path: str | Path, columns: Sequence[str] = COLUMNS) -> KnownLabels:
    r"""Known labels, to learn from; a row without a label is a question without an answer.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "gold.csv")
    ...     _ = path.write_text("task,label,date\n1,spam,2026-11-16\n2,,\n")
    ...     read_known(path)
    KnownLabels(labels={'1': 'spam'}, day=datetime.date(2026, 11, 16), asked=frozenset())
    """
    labels: dict[str, str] = {}
    days: list[date] = []
    asked: set[str] = set()
    rows, blame = text_rows(Path(path), columns, "known labels", "date", "drawn")
    for place, (task, label, day, how) in enumerate(rows):
        if labels.get(task, label) != label:
            raise blame(place, f"task {shown(task)} has another label above: keep one of them")
        if not label:
            continue
        if not task:
            raise blame(place, f"{columns[0]} is empty, expected one in every row: drop the row")
        labels[task] = label
        asked |= {task} if how == ASKED else set()
        try:
            days += [date.fromisoformat(day[:10])] if day else []
        except ValueError:
            message = f"date is {shown(day)}, expected a day such as 2026-11-16: correct or drop it"
            raise blame(place, message) from None
    return KnownLabels(labels, max(days, default=None), frozenset(asked))


def read_gold(
    path: str | Path, verdicts: Mapping[str, str], columns: Sequence[str] = COLUMNS
) -> Gold:
    r"""The trusted labels of tasks that have verdicts; an empty label is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "gold.csv")
    ...     _ = path.write_text("task,label,drawn\n2,ok,sample\n1,,extra\n")
    ...     read_gold(path, {"1": "spam", "2": "ok"}).labels
    {'2': 'ok', '1': None}
    """
    labels: dict[str, str | None] = {}
    drawn: list[Drawn] = []
    chances: dict[str, float] = {}
    rows, blame = text_rows(Path(path), columns, "trusted labels", "drawn", "probability")
    classes = set(verdicts.values())
    known = any(chance for *_, chance in rows)
    for place, (task, label, how, chance) in enumerate(rows):
        name = _alike(task, verdicts)
        if name not in verdicts:
            message = f"there is no verdict on task {shown(task)}, expected one on every audited"
            raise blame(place, f"{message} task: give the verdicts that the audit was drawn from")
        if name in labels:
            raise blame(place, f"task {shown(task)} is above already: keep one of the rows")
        if how == ASKED:
            message = f"task {shown(task)} was asked for (drawn is {ASKED}): such items are chosen"
            raise blame(
                place,
                f"{message} since they are contested, and can measure no rate; draw others by "
                "venire audit draw or venire estimate --draw, and leave these rows out",
            )
        if how not in ("", SAMPLE, EXTRA):
            message = f"drawn is {shown(how)}, expected {SAMPLE} or {EXTRA}"
            raise blame(place, f"{message}: leave it as venire audit draw wrote it")
        labels[name] = _alike(label, classes) or None
        drawn.append(Drawn(name, how == EXTRA))
        if known:
            chances[name] = _chance(chance, place, blame)
    marked = any(how for _, _, how, _ in rows)
    return Gold(labels, drawn, marked, chances if known else None)


def _chance(text: str, place: int, blame: Callable[[int, str], FileError]) -> float:
    value = number(text)
    if value is None or not 0 < value <= 1:
        message = f"probability is {shown(text)}, expected more than 0, at most 1"
        raise blame(place, f"{message}: leave it as venire estimate --draw wrote it")
    return value


def _alike(text: str, known: Collection[str]) -> str:
    """The name as the verdicts write it: spreadsheets and dataframes make 7.0 of 7."""
    number = None if text in known else whole(text)
    return str(number) if number is not None and str(number) in known else text


def text_rows(path: Path, columns: Sequence[str], what: str, *optional: str) -> Rows:
    """The columns, then the optional ones, of each row, as text; empty where there is nothing.

    Also how to make the error about the row at a place.
    """
    if not has_header(path):
        sheet = read_sheet(path, columns, what)
        cells = [_shown(values) for values in sheet.values]
        cells += [[None] * len(cells[0]) for _ in optional]
        made = [[_text(x) for x in row] for row in zip(*cells, strict=True)]
        return made, lambda place, message: FileError(path, None, f"row {place + 1}: {message}")
    columns = resolved(path, columns, what)
    if is_parquet(path):
        values = [column.to_pylist() for column in read_columns(path, columns, what).values]
        values += [_parquet_column(path, name, len(values[0])) for name in optional]
    elif is_json_lines(path):
        values = read_json_lines(path, columns, what)
        values += [_json_field(path, name) for name in optional]
    else:
        return _csv(path, columns, what, optional)
    rows = [[_text(x) for x in row] for row in zip(*values, strict=True)]
    if not rows:
        raise FileError(path, None, f"the {what} have no rows, expected at least one")

    def blame(place: int, message: str) -> FileError:
        if is_parquet(path):
            return FileError(path, None, f"row {place + 1}: {message}")
        return FileError(path, line_of(path, place), message)

    return rows, blame


def _shown(values: Any) -> list[Any]:
    """The values of a column, which may be coded."""
    if isinstance(values, Coded):
        return [values.names[code] for code in values.codes]
    return listed(values)


def _csv(path: Path, columns: Sequence[str], what: str, optional: Sequence[str]) -> Rows:
    names = [column.strip().lower() for column in columns]
    read = list(read_rows(path, names, optional))
    if not read:
        raise FileError(path, 1, f"no {what} below the header: add one line for each")
    rows = [[_text(x) for x in row] for _, row in read]
    return rows, lambda place, message: FileError(path, read[place][0], message)


def columns_in(path: Path) -> list[str]:
    """The names of the columns of a file, those of CSV in small letters; none if it is unreadable.

    Whoever reads the rows next says what is wrong with it.
    """
    try:
        if is_parquet(path):
            from pyarrow import parquet

            return list(parquet.read_schema(path).names)
        with path.open(encoding="utf-8-sig", newline="") as file:
            if is_json_lines(path):
                first = next((line for line in file if line.strip()), "{}")
                record = parse_json(first)
                return list(record) if isinstance(record, dict) else []
            return [name.strip().lower() for name in next(csv.reader(file), [])]
    except (OSError, ValueError, csv.Error):
        return []


def _parquet_column(path: Path, name: str, rows: int) -> list[Any]:
    from pyarrow import parquet

    if name not in parquet.read_schema(path).names:
        return [None] * rows
    found: list[Any] = parquet.read_table(path, columns=[name])[name].to_pylist()
    return found


def _json_field(path: Path, name: str) -> list[Any]:
    """The field of every line of a file that was read before."""
    lines = path.read_text(encoding="utf-8-sig").split("\n")
    return [parse_json(line).get(name) for line in lines if line.strip()]


def _text(value: Any) -> str:
    text = "" if value is None else str(value).strip()
    return "" if text in NAN else text


#: What the column with the names of items may be called.
NAMES: Final = ("task", "id", "item")


class Judged(NamedTuple):
    """The verdict on each task, how sure it is, and how probable some classes are.

    `confidences` and `chances` are None where the file does not say.
    """

    verdicts: dict[str, str]
    confidences: dict[str, float] | None
    chances: dict[str, dict[str, float]] | None

    def scores(self, worth: dict[str, float]) -> dict[str, float] | None:
        """What each item is expected to be worth, if a class is worth so much, others nothing.

        By the probabilities of the classes, else by the confidence of the verdict, the rest of
        which goes to the other classes evenly; None if the file has neither.

        >>> Judged({"a": "x", "b": "y"}, {"a": 0.9, "b": 0.8}, None).scores({"x": 1.0})
        {'a': 0.9, 'b': 0.19999999999999996}
        """
        if self.chances is not None and worth.keys() <= self.chances.keys():
            values = {name: self.chances[name] for name in worth}
            return {t: sum(worth[k] * values[k][t] for k in worth) for t in self.verdicts}
        if self.confidences is None:
            return None
        classes = {*self.verdicts.values(), *worth}
        others = max(1, len(classes) - 1)
        total = sum(worth.values())
        found = {}
        for task, label in self.verdicts.items():
            sure, own = self.confidences[task], worth.get(label, 0.0)
            found[task] = sure * own + (1 - sure) * (total - own) / others
        return found


def read_judged(
    path: str | Path, columns: Sequence[str] = COLUMNS, classes: Sequence[str] = ()
) -> Judged:
    r"""The verdicts of a file, with `confidence` and the columns p(class) of some classes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "verdicts.csv")
    ...     _ = path.write_text("task,label,confidence,p(ok),p(bad)\n1,ok,0.9,0.9,0.1\n")
    ...     read_judged(path, classes=["bad"])
    Judged(verdicts={'1': 'ok'}, confidences={'1': 0.9}, chances={'bad': {'1': 0.1}})
    """
    path = Path(path)
    verdicts = read_verdicts(path, columns)
    there = set(columns_in(path))
    named = {name: f"p({name})" for name in classes}
    if path.suffix.lower() not in (".parquet", ".pq", ".jsonl", ".ndjson"):
        named = {name: column.lower() for name, column in named.items()}
    wanted = [*(["confidence"] if "confidence" in there else []), *named.values()]
    wanted = [name for name in wanted if name in there]
    if not wanted:
        return Judged(verdicts, None, None)
    rows, blame = text_rows(path, [columns[0], *wanted], "verdicts")
    found: dict[str, dict[str, float]] = {name: {} for name in wanted}
    for place, (task, *texts) in enumerate(rows):
        for name, text in zip(wanted, texts, strict=True):
            value = number(text)
            if value is None or not 0 <= value <= 1 + 1e-9:
                message = f"{name} is {shown(text)}, expected a probability from 0 to 1"
                raise blame(place, f"{message}: correct it, or drop the column")
            found[name][task] = min(value, 1.0)
    chances = {name: found[column] for name, column in named.items() if column in found}
    return Judged(verdicts, found.get("confidence"), chances or None)


def read_groups(
    path: str | Path, columns: Sequence[str], tasks: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    r"""The values of some columns for each task that has a verdict.

    The column with their names is task, id or item, another usual name, or one that has them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("id,text,model\n1,hello,a\n2,hi,b\n")
    ...     read_groups(path, ["model"], ["1", "2"])
    {'1': ('a',), '2': ('b',)}
    """
    path = Path(path)
    there, sample = file_head(path)
    known = set(tasks)
    lower = {name.strip().lower(): name for name in there}
    named = [lower[name] for name in NAMES if name in lower] + role_names(there, ITEM)
    named += [name for name in there if known.intersection(map(str, sample.get(name, ())))]
    name = next(iter(named), None)
    if name is None:
        got = ", ".join(there)
        message = f"there is no column {' or '.join(NAMES)}, got {shown(got)}: add the items' names"
        raise FileError(path, None, message)
    rows, blame = text_rows(path, [name, *columns], "items")
    found: dict[str, tuple[str, ...]] = {}
    for place, (task, *values) in enumerate(rows):
        if task in found:
            raise blame(place, f"item {shown(task)} is above already: keep one of the rows")
        found[task] = tuple(values)
    missing = next((task for task in tasks if task not in found), None)
    if missing is not None:
        message = f"there is no item {shown(missing)}, expected every item that has a verdict"
        raise FileError(path, None, f"{message}: add a row for it")
    return {task: found[task] for task in tasks}


def asked_output(path: str | Path, asked: Iterable[Asked]) -> Output:
    """The list for whoever labels, with the label to be filled in.

    >>> output = asked_output("ask.csv", [Asked("a", 0.25)])
    >>> output.columns, list(output.rows)
    (('task', 'label', 'probability'), [('a', None, 0.25)])
    """
    rows = ((task, None, probability) for task, probability in asked)
    return Output(Path(path), (*COLUMNS, "probability"), rows)
