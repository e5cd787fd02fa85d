"""A stream for other programs: its log, its labels, its items with all that was said of them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from venire.errors import FileError
from venire.files.label_config import PLAIN_CONTROL, Control
from venire.server.store.base import Storage
from venire.server.store.codec import decode, kind_of
from venire.server.store.file_lock import open_private
from venire.server.store.records import ItemRow, LabelRow, RevisionRow


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
