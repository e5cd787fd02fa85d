"""What can be exported of a stream: tables (`TABLES`), its log, and tasks of Label Studio.

Each table says its columns beside its rows; those of the verdicts are the fields of `VerdictRow`. A
store keeps the verdict of an item and its confidence, as it left and as it was revised. The
probability of the verdict is its confidence; what is left of 1 is divided among the other classes
as `Auto` sees them, learned when they are exported, from all labels and all gold of the stream.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from venire.errors import FileError, UnknownName
from venire.estimators.auto import Auto
from venire.files.label_config import PLAIN_CONTROL, Control
from venire.files.results import Output, write_outputs
from venire.labels import LabelTable
from venire.server.store.file_lock import open_private
from venire.server.store.log import decode, kind_of
from venire.server.store.maintenance.guaranteed import Guaranteed, guaranteed_in
from venire.server.store.records import ItemRow, LabelRow, RevisionRow

if TYPE_CHECKING:
    from venire.server.store.sql.storage import Storage


class VerdictRow(NamedTuple):
    """A row of the table of verdicts: its columns, in their order.

    `label` and `confidence` are the verdict of today, `left_as` the one that the item left with;
    `payload` is JSON.
    """

    task: str
    label: str | None
    confidence: float | None
    labels: int | None
    reason: str | None
    arrived_at: float
    left_at: float | None
    revised: bool
    left_as: str | None
    payload: str


COLUMNS = VerdictRow._fields


def classes_of(storage: Storage, stream: str) -> tuple[str, ...]:
    body = json.loads(storage.settings(stream)[-1].body)
    return tuple(body.get("settings", body)["classes"])


def verdict_rows(
    storage: Storage, stream: str, probabilities: bool = False
) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """The names of the columns, and a row for each item that has left.

    They are those of `VerdictRow`. A stream with a guarantee has a column `guaranteed`, about
    `left_as`. With probabilities there is a column `p(class)` for each class.
    """
    classes, proven = classes_of(storage, stream), guaranteed_in(storage, stream)
    columns = COLUMNS if proven is None else (*COLUMNS, "guaranteed")
    verdicts = _verdicts_of(storage, stream, proven)
    if not probabilities:
        return columns, ((*row, *mark) for row, mark in verdicts)
    shares = _posteriors(storage, stream, classes)
    none = (None,) * len(classes)
    named = tuple(f"p({name})" for name in classes)
    rows = (
        (*row, *mark, *agreeing(shares.get(row.task, none), classes, row.label, row.confidence))
        for row, mark in verdicts
    )
    return (*columns, *named), rows


def agreeing(
    shares: tuple[float | None, ...],
    classes: tuple[str, ...],
    verdict: str | None,
    sure: float | None,
) -> tuple[float | None, ...]:
    """The probabilities of the classes, in which that of the verdict is its confidence.

    >>> agreeing((0.6, 0.3, 0.1), ("a", "b", "c"), "a", 0.8)
    (0.8, 0.15, 0.05)
    """
    if verdict not in classes or sure is None or None in shares:
        return shares
    place = classes.index(verdict)
    others = sum(p for j, p in enumerate(shares) if j != place and p is not None)
    even = 1 / max(len(shares) - 1, 1)
    rest = [(p or 0.0) / others if others > 1e-9 else even for p in shares]
    return tuple(sure if j == place else round(p * (1 - sure), 12) for j, p in enumerate(rest))


def _verdicts_of(
    storage: Storage, stream: str, proven: Guaranteed | None
) -> Iterator[tuple[VerdictRow, tuple[bool, ...]]]:
    """The verdict of each item that has left, and whether it is guaranteed where any may be."""
    revised = {row.item: row for row in storage.all_revisions(stream)}
    gold = {row.item: row.label for row in storage.all_gold(stream)}
    for item in storage.all_items(stream):
        if item.exit_n is None:
            continue
        now = revised.get(item.id, item)
        sure = now.confidence if item.id not in gold or gold[item.id] != now.verdict else 1.0
        row = VerdictRow(
            task=item.id,
            label=now.verdict,
            confidence=None if sure is None else round(sure, 12),
            labels=now.labels,
            reason=item.reason,
            arrived_at=item.arrived_at,
            left_at=item.left_at,
            revised=now is not item,
            left_as=item.verdict,
            payload=item.payload,
        )
        yield row, () if proven is None else (proven.marks(item.exit_n, item.confidence),)


def _posteriors(
    storage: Storage, stream: str, classes: tuple[str, ...]
) -> dict[str, tuple[float, ...]]:
    rows = [(row.item, row.labeler, row.said) for row in storage.all_labels(stream)]
    if not rows:
        return {}
    table = LabelTable.from_rows(rows, classes)
    there = set(table.items)
    gold = {row.item: row.label for row in storage.all_gold(stream) if row.item in there}
    fitted = Auto().fit(table, gold=gold or None)
    return dict(zip(map(str, table.items), map(tuple, fitted.posteriors_.tolist()), strict=True))


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
    if what == "verdicts":
        table = _verdicts(storage, stream, probabilities)
    else:
        table = TABLES[what](storage, stream)
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
    """What was said, and how sure of it labelers were, and why, if any of them said so."""
    names = ("item", "labeler", "said", *storage.said_beside(stream))
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


def _repeats(storage: Storage, stream: str) -> Table:
    rows = ((x.item, x.labeler, x.before, x.said, x.at) for x in storage.repeats(stream))
    return Table(("task", "worker", "label", "again", "at"), rows)


def _notes(storage: Storage, stream: str) -> Table:
    rows = ((n.item, n.labeler, n.kind, n.text, n.at) for n in storage.all_notes(stream))
    return Table(("task", "worker", "kind", "text", "at"), rows)


#: What there is to export as a table, by name.
TABLES: Final[Mapping[str, Callable[[Storage, str], Table]]] = MappingProxyType(
    {
        "labels": _labels,
        "verdicts": _verdicts,
        "revisions": _revisions,
        "gold": _gold,
        "notes": _notes,
        "repeats": _repeats,
    }
)


@contextmanager
def replacing(target: Path) -> Iterator[TextIO]:
    """A private text file that replaces the target once all of it is on disk."""
    part = target.with_name(f"{target.name}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n", opener=open_private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        raise FileError(target, None, f"cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def log_lines(storage: Storage, stream: str) -> Iterator[str]:
    """Every event as one line of JSON, oldest first.

    A line has the event's number `n`, from 1 as the API counts, its `slot`, when it was written
    (`at`), its `kind` and its own fields; a gain that is not known is null.

    >>> from venire.events import Left
    >>> from venire.server.store import Insert, StreamRow, encode, open_storage
    >>> storage = open_storage("memory:")
    >>> events = encode("posts", 0, 1.5, [Left(3, "ann")])
    >>> storage.write([Insert([StreamRow(name="posts", created_at=0.0)]), Insert(events)])
    >>> print(*log_lines(storage, "posts"))
    {"n": 1, "slot": 3, "at": 1.5, "kind": "left", "labeler": "ann"}
    """
    for row in storage.all_events(stream):
        for place, event in enumerate(decode([row])):
            head = {"n": row.n + place + 1, "slot": row.slot, "at": row.at, "kind": kind_of(row)}
            yield json.dumps({**head, **_plain(event)}, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def write_log(storage: Storage, stream: str, target: Path) -> int:
    """Write the log as NDJSON; how many events it has."""
    count = 0
    with storage.frozen(), replacing(target) as file:
        for line in log_lines(storage, stream):
            file.write(f"{line}\n")
            count += 1
    return count


def label_studio_tasks(
    storage: Storage, stream: str, control: Control = PLAIN_CONTROL
) -> Iterator[dict[str, Any]]:
    """Items as tasks of Label Studio, each label an annotation and the verdict a prediction.

    `control` is the one of the project's labelling config that says the class.

    Label Studio takes no annotator whom it does not know, so who gave a label stands in the
    `meta` of its result; the item's id and how it left stand in the `meta` of the task. A verdict
    that was revised since is the prediction, and what the item left with is in the `meta`.
    """
    labels = _by_item(storage.all_labels(stream))
    revised = {row.item: row for row in storage.all_revisions(stream)}
    waiting = next(labels, None)
    for item in storage.all_items(stream):
        mine: list[LabelRow] = []
        while waiting is not None and waiting[0] <= item.id:
            mine = waiting[1] if waiting[0] == item.id else []
            waiting = next(labels, None)
        yield _task(item, mine, revised.get(item.id), control)


def _by_item(rows: Iterator[LabelRow]) -> Iterator[tuple[str, list[LabelRow]]]:
    some: list[LabelRow] = []
    for row in rows:
        if some and some[0].item != row.item:
            yield some[0].item, some
            some = []
        some.append(row)
    if some:
        yield some[0].item, some


def _task(
    item: ItemRow, labels: list[LabelRow], revised: RevisionRow | None, control: Control
) -> dict[str, Any]:
    payload = json.loads(item.payload)
    data = payload if isinstance(payload, dict) else {control.field: payload}
    about = {"item": item.id, "status": item.status, "reason": item.reason}
    if revised is not None:
        about["left_as"] = item.verdict
        item = item._replace(verdict=revised.verdict, confidence=revised.confidence)
    task: dict[str, Any] = {"data": data, "meta": {"venire": about}}
    task["annotations"] = [
        {
            "result": [
                {**part, "meta": {"text": [row.labeler]}} for part in control.result(row.said)
            ],
            "lead_time": row.lead_seconds,
        }
        for row in labels
    ]
    task["predictions"] = []
    if item.verdict is not None:
        found = {"model_version": "venire", "score": item.confidence}
        task["predictions"] = [{**found, "result": control.result(item.verdict)}]
    return task


def write_label_studio(
    storage: Storage, stream: str, target: Path, control: Control = PLAIN_CONTROL
) -> int:
    """Write the items as a JSON list that Label Studio imports; how many there are."""
    with storage.frozen():
        return write_tasks(label_studio_tasks(storage, stream, control), target)


def write_tasks(tasks: Iterable[dict[str, Any]], target: Path) -> int:
    """Write tasks as a JSON list, one a line; how many there are."""
    count = 0
    with replacing(target) as file:
        file.write("[")
        for task in tasks:
            file.write(",\n" if count else "\n")
            file.write(json.dumps(task, ensure_ascii=False, allow_nan=False))
            count += 1
        file.write("\n]\n")
    return count
