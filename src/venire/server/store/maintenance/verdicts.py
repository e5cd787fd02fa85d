"""The verdicts of a stream, with the items, what they left with, and posteriors.

A store keeps the verdict of an item and its confidence, as it left and as it was revised. The
probability of the verdict is its confidence; what is left of 1 is divided among the other classes
as `Auto` sees them, learned when they are exported, from all labels and all gold of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from venire.estimators.auto import Auto
from venire.labels import LabelTable
from venire.server.store.base import Storage
from venire.server.store.maintenance.guaranteed import Guaranteed, guaranteed_in

COLUMNS = (
    *("task", "label", "confidence", "labels", "reason", "arrived_at", "left_at"),
    *("revised", "left_as", "payload"),
)


def classes_of(storage: Storage, stream: str) -> tuple[str, ...]:
    """The classes of a stream, by its settings."""
    body = json.loads(storage.settings(stream)[-1].body)
    return tuple(body.get("settings", body)["classes"])


def verdict_rows(
    storage: Storage, stream: str, probabilities: bool = False
) -> tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]:
    """The names of the columns, and a row for each item that has left.

    `label` and `confidence` are the verdict of today, `left_as` the one that the item left with;
    `payload` is JSON. A stream with a guarantee has a column `guaranteed`, about `left_as`. With
    probabilities there is a column `p(class)` for each class.
    """
    classes, proven = classes_of(storage, stream), guaranteed_in(storage, stream)
    columns = COLUMNS if proven is None else (*COLUMNS, "guaranteed")
    if not probabilities:
        return columns, _rows(storage, stream, proven)
    shares = _posteriors(storage, stream, classes)
    none = (None,) * len(classes)
    named = tuple(f"p({name})" for name in classes)
    rows = (
        (*row, *agreeing(shares.get(row[0], none), classes, row[1], row[2]))
        for row in _rows(storage, stream, proven)
    )
    return (*columns, *named), rows


def agreeing(
    shares: tuple[float | None, ...], classes: tuple[str, ...], verdict: str | None, sure: float
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


def _rows(storage: Storage, stream: str, proven: Guaranteed | None) -> Iterator[tuple[Any, ...]]:
    revised = {row.item: row for row in storage.all_revisions(stream)}
    for item in storage.all_items(stream):
        if item.exit_n is None:
            continue
        now = revised.get(item.id)
        said: tuple[Any, ...] = (item.verdict, item.confidence, item.labels)
        if now is not None:
            said = (now.verdict, now.confidence, now.labels)
        times = (item.reason, item.arrived_at, item.left_at)
        row = (item.id, *said, *times, now is not None, item.verdict, item.payload)
        mark = () if proven is None else (proven.marks(item.exit_n, item.confidence),)
        yield (*row, *mark)


def _posteriors(
    storage: Storage, stream: str, classes: tuple[str, ...]
) -> dict[str, tuple[float, ...]]:
    """The probability of each class of each item with a label."""
    rows = [(row.item, row.labeler, row.said) for row in storage.all_labels(stream)]
    if not rows:
        return {}
    table = LabelTable.from_rows(rows, classes)
    there = set(table.items)
    gold = {row.item: row.label for row in storage.all_gold(stream) if row.item in there}
    fitted = Auto().fit(table, gold=gold or None)
    return dict(zip(map(str, table.items), map(tuple, fitted.posteriors_.tolist()), strict=True))
