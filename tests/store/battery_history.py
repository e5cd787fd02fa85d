"""The part of the battery for stores that is about archived history; see `testing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from venire.errors import StoreError
from venire.server.store import changes as c
from venire.server.store.base import Storage
from venire.server.store.rows import (
    ERASED,
    ArchivedRow,
    DeliveryRow,
    EventRow,
    ExitRow,
    GoldRow,
    ItemRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RevisionRow,
    SegmentRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)

__all__ = ["check_history", "everything", "refused"]

_ODD = 'naïve "quoted"\n\u2028 \U0001f600 \\u0000 %s ? {}'


def _item(id: str) -> ItemRow:
    return ItemRow("old", id, f"digest of {id}", _ODD, 0.1 + 0.2, '["ann"]', "[]", 2**40, 1e9)


def refused(storage: Storage, *changes: c.Change) -> None:
    """Check that a store refuses the last of the changes, and that none of them is made."""
    before = everything(storage, "checked")
    try:
        storage.write(changes)
    except StoreError:
        pass
    else:
        raise AssertionError(f"the store took {changes[-1]!r}")
    assert everything(storage, "checked") == before, "a refused write left something behind"


def everything(storage: Storage, stream: str) -> dict[str, Any]:
    """Everything a store has of a stream, and what belongs to no stream, for comparison."""
    reads: Sequence[Callable[[str], Any]] = (
        storage.settings,
        storage.events,
        storage.engines,
        storage.snapshot_numbers,
        storage.items,
        storage.exits,
        storage.revisions,
        storage.checks,
        storage.gold,
        storage.notes,
        storage.note_counts,
        storage.alarms,
        storage.follows,
        storage.labels,
        storage.labeler_counts,
        storage.counts,
        storage.webhooks,
        storage.segments,
    )
    found = {read.__name__: read(stream) for read in reads}
    found["leases"] = storage.leases(stream, None)
    hooks = [row.id for row in storage.webhooks(stream)]
    found["deliveries"] = [storage.deliveries(id) for id in hooks]
    done = [row[1:] for row in storage.audit()]  # a number may be left out where a write failed
    return {"streams": storage.streams(), "keys": storage.keys(), "audit": done, **found}


def check_history(storage: Storage) -> None:
    """What is archived goes in pieces, is counted, and comes back as it was."""
    _check_in_time(storage)
    row = EventRow("old", 0, 1, 3, 2.0, "left", '"ann"')
    label = LabelRow("old", "i1", "m", "ok", 0.0, 4, False, None, "x")
    lease = LeaseRow("old1", "old", "i1", "m", 0.0, 1.0)
    note = NoteRow("old", 1, "i1", "m", "flag", _ODD, 3.5)
    revision = RevisionRow("old", 1, "i1", 5, 4.5, "ok", 0.5, None, 0.5, 3)
    left = ExitRow("old", "i1", "left", 1, 9, 4.5, "ok", 0.5, 2, "no_gain")
    sent = DeliveryRow("w4", "old", 1, 1, 10.0, "done")
    filled: list[c.Change] = [
        c.AddStream(StreamRow("old", 1.0)),
        c.AddItems([_item(f"i{n}") for n in range(4)]),
        c.LeaveItems([left, left._replace(id="i2", exit_n=2, status="withdrawn")]),
        c.AddEvents([row._replace(n=n) for n in range(5)]),
        c.AddLabels([label, label._replace(labeler="late", late=True, slot=7)]),
        c.AddLeases([lease, lease._replace(token_hash="old2", labeler="eve")]),
        c.EndLeases([c.LeaseEnd("old1", "done", 6.0)]),
        c.AddNotes([note, note._replace(n=2)]),
        c.AddRevisions([revision, revision._replace(n=2)]),
        c.SaveSnapshot(SnapshotRow("old", 0, 1.0, b"x")),
        c.SaveSnapshot(SnapshotRow("old", 4, 1.0, b"y")),
        c.AddWebhook(WebhookRow("w4", "old", "https://example.org/z", "whsec_z", 1.0)),
        c.AddDeliveries([sent, sent._replace(exit_n=2, status="pending")]),
        c.AddGold([GoldRow("old", "i1", "ok", 1.0, "sent", "me")]),
    ]
    storage.write(filled)
    assert storage.exits("old", 1, payloads=True) == [storage.item("old", "i2")]
    assert {x.token_hash for x in storage.leases_among("old", ["i1", "?"])} == {"old1", "old2"}
    assert storage.leases("old", None, 0.5) == []
    assert sorted(x.n for x in storage.notes_among("old", ["i1", "i2"])) == [1, 2]
    assert (storage.first_pending("old"), storage.first_pending("old", "revision")) == (2, None)
    before, counts = everything(storage, "old"), storage.counts("old")
    segment = SegmentRow("old", 1, 9.0, 0, 4, 2.0, 6, 1, 1, 1, "1", "abc")
    storage.write([c.AddSegment(segment), c.DropHistory(segment, 2, 0, 0)])
    assert storage.segments("old") == [segment]
    assert ([x.n for x in storage.events("old")], storage.snapshot_numbers("old")) == (
        [2, 3, 4],
        [4],
    )
    storage.write([c.DropHistory(segment, 9, 9, 9), c.DropHistory(segment, 9, 9, 9)])
    assert ([x.n for x in storage.events("old")], storage.snapshot_numbers("old")) == ([4], [4])
    assert [x.id for x in storage.items("old")] == ["i0", "i2", "i3"]
    assert [x.labeler for x in storage.labels("old")] == ["late"], "it came after the segment"
    assert [x.token_hash for x in storage.leases("old", None)] == ["old2"], "it is open"
    assert [x.n for x in storage.notes("old")] == [x.n for x in storage.revisions("old")] == [2]
    assert [x.exit_n for x in storage.deliveries("w4")] == [2]
    assert storage.counts("old") == counts, "what is archived counts"
    assert storage.labeler_counts("old") == before["labeler_counts"]
    assert storage.note_counts("old") == before["note_counts"]
    assert storage.known_ids("old", ["i1"]) == {}
    assert storage.archived("old", ["i1", "i2"]) == {
        "i1": ArchivedRow("old", "i1", "digest of i1", 1)
    }
    assert list(storage.all_archived("old", chunk=1)) == storage.archived_after("old")
    assert [x.id for x in storage.archived_after("old")] == ["i1"]
    storage.write([c.EraseArchived("old", "i1")])
    assert storage.archived("old", ["i1"])["i1"].digest == ERASED
    refused(storage, c.EraseArchived("old", "i2"))
    refused(storage, c.AddSegment(segment))
    _put_back(storage, segment, before)


def _check_in_time(storage: Storage) -> None:
    """Labels and leases are read in the order of time, and as they are asked for."""
    label = LabelRow("timed", "i1", "m", "ok", 2.0, 4, False, None, "x")
    lease = LeaseRow("t1", "timed", "i1", "m", 2.0, 1.0)
    storage.write(
        [
            c.AddStream(StreamRow("timed", 1.0)),
            c.AddItems([_item(id)._replace(stream="timed") for id in ("i1", "i2")]),
            c.AddLabels([label, label._replace(item="i2", late=True, at=1.0, slot=2**40)]),
            c.AddLeases([lease, lease._replace(token_hash="t2", given_at=1.0)]),
            c.EndLeases([c.LeaseEnd("t1", "done", 6.0)]),
        ]
    )
    with storage.frozen():
        said, leases = storage.said_in_time("timed"), storage.leases_in_time("timed")
        assert next(said) == ("i2", "m", "ok", 2**40, True, 1.0)
        assert [row.token_hash for row in leases] == ["t2", "t1"]
        assert list(said) == [("i1", "m", "ok", 4, False, 2.0)]
    assert [row[0] for row in storage.said_in_time("timed", 1.5)] == ["i1"]
    assert list(storage.leases_in_time("timed", 1.5)) == [storage.lease("t1")]
    assert storage.stray_items("timed") == []
    storage.write([c.MarkDeleted("timed", 5.0), c.PurgeStream("timed", 1000)])
    storage.write([c.PurgeStream("timed", 1000), c.DeleteStream("timed")])


def _put_back(storage: Storage, segment: SegmentRow, before: dict[str, Any]) -> None:
    tables: tuple[c.Restorable, ...]
    tables = ("events", "items", "labels", "leases", "notes", "revisions")
    back: list[c.Change] = [c.PutBack(table, before[table]) for table in tables]
    back.append(c.PutBack("snapshots", [SnapshotRow("old", 0, 1.0, b"x")]))
    storage.write(back)
    storage.write([*back, c.RemoveSegment("old", 1), c.RemoveSegment("old", 1)])
    after = everything(storage, "old")
    assert {**after, "deliveries": before["deliveries"]} == before
    assert storage.archived("old", ["i1"]) == {}
    gone = segment._replace(next_event=5, exits=2, revisions=2, notes=2, name="")
    storage.write([c.AddSegment(gone), c.DropHistory(gone, 5, 2, 2)])
    assert storage.events("old") == []
    assert storage.archived("old", ["i1"])["i1"].digest == ERASED, "nothing of it is kept"
    more = EventRow("old", 5, 1, 3, 2.0, "left", '"ann"')
    storage.write([c.AddEvents([more])])
    assert storage.events("old") == [more], "the log goes on where it ended"
    storage.write([c.MarkDeleted("old", 5.0), c.PurgeStream("old", 1000)])
    storage.write([c.PurgeStream("old", 1000), c.DeleteStream("old")])
