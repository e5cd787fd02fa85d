"""The tables of a stream: its labels, verdicts, revisions, gold and notes, for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from venire.errors import UnknownName
from venire.files.results import Output, write_outputs
from venire.server.store.base import Storage
from venire.server.store.maintenance.verdicts import classes_of, verdict_rows
from venire.server.store.records import RevisionRow


class Table(NamedTuple):
    """The names of the columns, the rows, and the classes of the column `label`."""

    columns: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]
    classes: tuple[str, ...] | None = None


def write_table(
    storage: Storage, stream: str, what: str, to: Path, probabilities: bool = False
) -> int:
    r"""Write a table to a file, of the kind that its name ends with; how many rows it has.

    >>> import tempfile
    >>> from venire.server.store import Insert, StreamRow, open_storage
    >>> storage = open_storage("memory:")
    >>> storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "labels.csv")
    ...     write_table(storage, "posts", "labels", path), path.read_text()
    (0, 'task,worker,label\n')
    """
    if what not in TABLES:
        raise UnknownName("table", what, TABLES)
    table = _verdicts(storage, stream, probabilities) if probabilities else None
    table = table or TABLES[what](storage, stream)
    counted = _Counted(table.rows)
    write_outputs([Output(to, table.columns, counted, table.classes)])
    return counted.count


class _Counted:
    """Rows that are counted as they are written."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        self.count = 0
        for row in self._rows:
            self.count += 1
            yield row


def _labels(storage: Storage, stream: str) -> Table:
    """What was said, and how sure of it labelers were if any of them said so."""
    names = ("item", "labeler", "said", *(["confidence"] * storage.are_confident(stream)))
    rows = map(attrgetter(*names), storage.all_labels(stream))
    return Table(("task", "worker", "label", *names[3:]), rows)


def _verdicts(storage: Storage, stream: str, probabilities: bool = False) -> Table:
    columns, rows = verdict_rows(storage, stream, probabilities)
    return Table(columns, rows, classes_of(storage, stream))


def _revisions(storage: Storage, stream: str) -> Table:
    columns = RevisionRow._fields[1:]  # but the stream
    return Table(columns, map(attrgetter(*columns), storage.all_revisions(stream)))


def _gold(storage: Storage, stream: str) -> Table:
    drawn = {row.item: row.verdict for row in storage.checks(stream)}
    rows = (
        (row.item, row.label, row.at, row.source, row.actor, row.item in drawn,
         drawn.get(row.item), row.earlier)
        for row in storage.all_gold(stream)
    )  # fmt: skip
    names = ("task", "label", "at", "source", "actor", "drawn", "verdict", "corrected")
    return Table(names, rows)


def _notes(storage: Storage, stream: str) -> Table:
    rows = ((n.item, n.labeler, n.kind, n.text, n.at) for n in storage.all_notes(stream))
    return Table(("task", "worker", "kind", "text", "at"), rows)


#: What there is to export as a table, by name.
TABLES: Final = MappingProxyType[str, Callable[[Storage, str], Table]](
    {
        "labels": _labels,
        "verdicts": _verdicts,
        "revisions": _revisions,
        "gold": _gold,
        "notes": _notes,
    }
)
