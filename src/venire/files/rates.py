"""The files of rates: verdicts with what they are sure of, groups of items, the list to label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from venire.audits.sampling import Asked
from venire.errors import FileError
from venire.files.audits import COLUMNS, columns_in, text_rows
from venire.files.results import Output
from venire.tools.csv_rows import number, shown

__all__ = ["Judged", "asked_output", "read_groups", "read_judged"]

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
    from venire.files.audits import read_verdicts

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

    The column with their names is task, id or item.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("id,text,model\n1,hello,a\n2,hi,b\n")
    ...     read_groups(path, ["model"], ["1", "2"])
    {'1': ('a',), '2': ('b',)}
    """
    path = Path(path)
    there = columns_in(path)
    name = next((name for name in NAMES if name in there), None)
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
