"""The part of the battery for stores that is about archived history; see `testing`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from venire.errors import StoreError
from venire.server.store import changes as c
from venire.server.store.records import (
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
from venire.server.store.sql.storage import Storage

__all__ = ["check_history", "everything", "refused"]

_ODD = 'naïve "quoted"\n\u2028 \U0001f600 \\u0000 %s ? {}'


def _item(id: str) -> ItemRow:
    return ItemRow(
        stream="old",
        id=id,
        digest=f"digest of {id}",
        payload=_ODD,
        weight=0.1 + 0.2,
        eligible='["ann"]',
        excluded="[]",
        arrived_slot=2**40,
        arrived_at=1e9,
    )


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
        storage.routed,
        storage.repeats,
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
    done = [
        row._replace(n=0) for row in storage.audit()
    ]  # a number may be left out where a write failed
    return {"streams": storage.streams(), "keys": storage.keys(), "audit": done, **found}


def check_history(storage: Storage) -> None:
    """What is archived goes in pieces, is counted, and comes back as it was."""
    _check_in_time(storage)
    row = EventRow(stream="old", n=0, size=1, slot=3, at=2.0, kind="left", body='"ann"')
    label = LabelRow(
        stream="old",
        item="i1",
        labeler="m",
        said="ok",
        at=0.0,
        slot=4,
        late=False,
        lead_seconds=None,
        source="x",
    )
    lease = LeaseRow(token_hash="old1", stream="old", item="i1", labeler="m", given_at=0.0, ttl=1.0)
    note = NoteRow(stream="old", n=1, item="i1", labeler="m", kind="flag", text=_ODD, at=3.5)
    revision = RevisionRow(
        stream="old",
        n=1,
        item="i1",
        slot=5,
        at=4.5,
        before="ok",
        before_confidence=0.5,
        verdict=None,
        confidence=0.5,
        labels=3,
    )
    left = ExitRow(
        stream="old",
        id="i1",
        status="left",
        exit_n=1,
        exit_slot=9,
        left_at=4.5,
        verdict="ok",
        confidence=0.5,
        labels=2,
        reason="no_gain",
    )
    sent = DeliveryRow(webhook="w4", stream="old", exit_n=1, attempt=1, next_at=10.0, status="done")
    filled: list[c.Change] = [
        c.Insert([StreamRow(name="old", created_at=1.0)]),
        c.Insert([_item(f"i{n}") for n in range(4)]),
        c.LeaveItems([left, left._replace(id="i2", exit_n=2, status="withdrawn")]),
        c.Insert([row._replace(n=n) for n in range(5)]),
        c.Insert([label, label._replace(labeler="late", late=True, slot=7)]),
        c.Insert([lease, lease._replace(token_hash="old2", labeler="eve")]),
        c.EndLeases([c.LeaseEnd("old1", "done", 6.0)]),
        c.Insert([note, note._replace(n=2, text="")]),
        c.Insert([revision, revision._replace(n=2)]),
        c.Insert([SnapshotRow(stream="old", n=0, at=1.0, body=b"x")]),
        c.Insert([SnapshotRow(stream="old", n=4, at=1.0, body=b"y")]),
        c.Insert(
            [
                WebhookRow(
                    id="w4",
                    stream="old",
                    url="https://example.org/z",
                    secret="whsec_z",
                    created_at=1.0,
                )
            ]
        ),
        c.Insert([sent, sent._replace(exit_n=2, status="pending")]),
        c.Insert([GoldRow(stream="old", item="i1", label="ok", at=1.0, source="sent", actor="me")]),
    ]
    storage.write(filled)
    assert storage.exits("old", 1, payloads=True) == [storage.item("old", "i2")]
    assert {x.token_hash for x in storage.leases_among("old", ["i1", "?"])} == {"old1", "old2"}
    assert storage.leases("old", None, 0.5) == []
    assert sorted(x.n for x in storage.notes_among("old", ["i1", "i2"])) == [1, 2]
    assert (storage.first_pending("old"), storage.first_pending("old", "revision")) == (2, None)
    before, counts = everything(storage, "old"), storage.counts("old")
    segment = SegmentRow(
        stream="old",
        n=1,
        at=9.0,
        first_event=0,
        next_event=4,
        ended_at=2.0,
        slot=6,
        exits=1,
        revisions=1,
        notes=1,
        name="1",
        digest="abc",
    )
    storage.write([c.Insert([segment]), c.DropHistory(segment, 2, 0, 0)])
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
        "i1": ArchivedRow(stream="old", id="i1", digest="digest of i1", segment=1)
    }
    assert list(storage.all_archived("old", chunk=1)) == storage.archived_after("old")
    assert [x.id for x in storage.archived_after("old")] == ["i1"]
    storage.write([c.EraseArchived("old", "i1")])
    assert storage.archived("old", ["i1"])["i1"].digest == ERASED
    refused(storage, c.EraseArchived("old", "i2"))
    refused(storage, c.Insert([segment]))
    _put_back(storage, segment, before)


def _check_in_time(storage: Storage) -> None:
    """Labels and leases are read in the order of time, and as they are asked for."""
    label = LabelRow(
        stream="timed",
        item="i1",
        labeler="m",
        said="ok",
        at=2.0,
        slot=4,
        late=False,
        lead_seconds=None,
        source="x",
        confidence=0.75,
    )
    lease = LeaseRow(token_hash="t1", stream="timed", item="i1", labeler="m", given_at=2.0, ttl=1.0)
    storage.write(
        [
            c.Insert([StreamRow(name="timed", created_at=1.0)]),
            c.Insert([_item(id)._replace(stream="timed") for id in ("i1", "i2")]),
            c.Insert([label, label._replace(item="i2", late=True, at=1.0, slot=2**40)]),
            c.Insert([lease, lease._replace(token_hash="t2", given_at=1.0)]),
            c.EndLeases([c.LeaseEnd("t1", "done", 6.0)]),
        ]
    )
    with storage.frozen():
        said, leases = storage.said_in_time("timed"), storage.leases_in_time("timed")
        assert next(said) == ("i2", "m", "ok", 2**40, True, 1.0, 0.75)
        assert [row.token_hash for row in leases] == ["t2", "t1"]
        assert list(said) == [("i1", "m", "ok", 4, False, 2.0, 0.75)]
        assert storage.said_beside("timed") == ("confidence",)
    assert [row[0] for row in storage.said_in_time("timed", 1.5)] == ["i1"]
    assert list(storage.leases_in_time("timed", 1.5)) == [storage.lease("t1")]
    assert storage.stray_items("timed") == []
    storage.write([c.MarkDeleted("timed", 5.0), c.PurgeStream("timed", 1000)])
    storage.write([c.PurgeStream("timed", 1000), c.DeleteStream("timed")])


def _put_back(storage: Storage, segment: SegmentRow, before: dict[str, Any]) -> None:
    tables = ("events", "items", "labels", "leases", "notes", "revisions")
    back: list[c.Change] = [c.PutBack(before[table]) for table in tables]
    back.append(c.PutBack([SnapshotRow(stream="old", n=0, at=1.0, body=b"x")]))
    storage.write(back)
    storage.write([*back, c.RemoveSegment("old", 1), c.RemoveSegment("old", 1)])
    after = everything(storage, "old")
    assert {**after, "deliveries": before["deliveries"]} == before
    assert storage.archived("old", ["i1"]) == {}
    gone = segment._replace(next_event=5, exits=2, revisions=2, notes=2, name="")
    storage.write([c.Insert([gone]), c.DropHistory(gone, 5, 2, 2)])
    assert storage.events("old") == []
    assert storage.archived("old", ["i1"])["i1"].digest == ERASED, "nothing of it is kept"
    more = EventRow(stream="old", n=5, size=1, slot=3, at=2.0, kind="left", body='"ann"')
    storage.write([c.Insert([more])])
    assert storage.events("old") == [more], "the log goes on where it ended"
    storage.write([c.MarkDeleted("old", 5.0), c.PurgeStream("old", 1000)])
    storage.write([c.PurgeStream("old", 1000), c.DeleteStream("old")])
