"""How a store in memory lets archived history go, and takes it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from tests.store.tables import Tables
from venire.errors import StoreError
from venire.model import DeliveryStatus
from venire.server.store import changes as c
from venire.server.store.contents import is_in
from venire.server.store.records import (
    ERASED,
    ArchivedRow,
    ItemRow,
    LabelRow,
    NoteRow,
)

__all__ = ["ARCHIVING"]


def _drop_history(t: Tables, change: c.DropHistory) -> None:
    segment, stream = change.segment, change.segment.stream
    events, exits, revisions = (
        min(change.events, segment.next_event),
        min(change.exits, segment.exits),
        min(change.revisions, segment.revisions),
    )
    mine = {n: id for n, id in t.exits.get(stream, {}).items() if n <= exits}
    ids, gone = set(mine.values()), Counter[tuple[str, str, str]]()
    for n, id in mine.items():
        row = t.items[stream][id]
        digest = row.digest if segment.name else ERASED
        t.put(
            t.of(t.archived, stream),
            id,
            ArchivedRow(stream=stream, id=id, digest=digest, segment=segment.n),
        )
        gone[stream, "items", row.status] += 1
        t.drop(t.items[stream], id)
        t.drop(t.exits[stream], n)
    for label in list(t.labels.get(stream, {}).values()):
        if label.item in ids and is_in(segment, label):
            gone[stream, "labels", label.labeler] += 1
            gone[stream, "late", label.labeler] += label.late
            t.drop(t.labels[stream], (label.item, label.labeler))
    for note in list(t.notes.get(stream, {}).values()):
        if note.item in ids and is_in(segment, note):
            gone[stream, note.kind, note.labeler] += 1
            t.drop(t.notes[stream], note.n)
    if not segment.name:
        there = t.routed.get(stream, {})
        _drop_keys(t, there, (key for key in there if key[0] in ids))
        said = t.repeats.get(stream, {})
        _drop_keys(t, said, (key for key in said if key[0] in ids))
    for lease in list(t.leases.values()):
        if lease.stream == stream and lease.item in ids and is_in(segment, lease):
            t.drop(t.leases, lease.token_hash)
    _drop_keys(t, t.logs.get(stream, {}), (n for n in t.logs.get(stream, {}) if n < events))
    _drop_keys(t, t.snapshots, (k for k in t.snapshots if k[0] == stream and k[1] < events))
    kept = t.revisions.get(stream, {})
    _drop_keys(t, kept, (n for n in kept if n <= revisions))
    upto = {"exit": exits, "revision": revisions, "alarm": 0}
    sent = (
        key
        for key, row in t.deliveries.items()
        if row.stream == stream
        and row.status != DeliveryStatus.PENDING
        and row.exit_n <= upto[row.kind]
    )
    _drop_keys(t, t.deliveries, sent)
    _count_dropped(t, gone)


def _drop_keys(t: Tables, table: dict[Any, Any], keys: Iterable[Any]) -> None:
    for key in list(keys):
        t.drop(table, key)


def _count_dropped(t: Tables, more: Counter[tuple[str, str, str]]) -> None:
    for key, number in more.items():
        t.put(t.dropped, key, t.dropped.get(key, 0) + number)


def _put_back(t: Tables, change: c.PutBack) -> None:
    back = Counter[tuple[str, str, str]]()
    for row in change.rows:
        table, key = t.place(row)
        if key in table:
            continue
        t.put(table, key, row)
        match row:
            case ItemRow():
                back[row.stream, "items", row.status] -= 1
                t.put(t.of(t.exits, row.stream), row.exit_n, row.id)
                if row.id in t.archived.get(row.stream, {}):
                    t.drop(t.archived[row.stream], row.id)
            case LabelRow():
                back[row.stream, "labels", row.labeler] -= 1
                back[row.stream, "late", row.labeler] -= row.late
            case NoteRow():
                back[row.stream, row.kind, row.labeler] -= 1
    _count_dropped(t, back)


def _remove_segment(t: Tables, change: c.RemoveSegment) -> None:
    if change.n in t.segments.get(change.stream, {}):
        t.drop(t.segments[change.stream], change.n)


def _erase_archived(t: Tables, change: c.EraseArchived) -> None:
    kept = t.archived.get(change.stream, {})
    if change.item not in kept:
        raise StoreError(f"an archived item to erase is unknown: {change.item!r}")
    t.put(kept, change.item, kept[change.item]._replace(digest=ERASED))
    erase_texts(t, change.stream, change.item)


def erase_texts(t: Tables, stream: str, item: str) -> None:
    """Erase what labelers wrote of an item: notes, and reasons of labels."""
    notes, labels = t.notes.get(stream, {}), t.labels.get(stream, {})
    for n in [n for n, note in notes.items() if note.item == item]:
        t.put(notes, n, notes[n]._replace(text=""))
    for key in [key for key, label in labels.items() if label.item == item]:
        t.put(labels, key, labels[key]._replace(rationale=None))


#: How each kind of change is made.
ARCHIVING: Final[dict[type, Callable[[Tables, Any], None]]] = {
    c.DropHistory: _drop_history,
    c.PutBack: _put_back,
    c.RemoveSegment: _remove_segment,
    c.EraseArchived: _erase_archived,
}
