"""The battery that every store must pass: `check_storage`, for venire's stores and for yours."""

from __future__ import annotations

from typing import Any

from tests.store.battery_history import check_history, everything, refused
from venire.events import Arrived, Event, Observed
from venire.model import Item, Label
from venire.server.store import changes as c
from venire.server.store.log import decode, encode
from venire.server.store.records import (
    ERASED,
    AlarmRow,
    AuditRow,
    Counts,
    DeliveryRow,
    EngineRow,
    EventRow,
    Exited,
    ExitRow,
    FollowRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    RoutedRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.server.store.sql.storage import Storage

__all__ = ["check_storage", "everything"]

_ODD = 'naïve "quoted"\n\u2028 \U0001f600 \\u0000 %s ? {}'


def check_storage(storage: Storage) -> None:
    """What every store must do; it has to be empty, and holds the stream `checked` afterwards.

    What is written can be read, by every read; all changes of a `write` are made, or none; an
    item leaves once, a label is given once, events follow each other without a gap; numbers and
    text come back as they were.

    >>> from tests.store.store import MemoryStorage
    >>> check_storage(MemoryStorage())
    """
    assert storage.streams() == [], "the store is not empty"
    for check in (_streams, _events, _items, _revisions, _labels, _leases, _snapshots, _keys):
        check(storage)
    for check in (_notes, _webhooks, _audit, _erasure, check_history, _console, _deletion):
        check(storage)
    for check in (_others,):
        check(storage)
    _all_or_nothing(storage)
    assert storage.counts("nobody") == Counts(
        open=0, left=0, withdrawn=0, labels=0, late=0, leases=0, events=0, exits=0
    )
    storage.ping()
    assert all(size >= 0 for size in storage.sizes().values())
    with storage.frozen():
        assert len(storage.streams()) == 1


def _streams(storage: Storage) -> None:
    first = SettingsRow(
        stream="checked", version=1, at=1.5, actor="admin", body='{"classes":["spam","ok"]}'
    )
    storage.write([c.Insert([StreamRow(name="checked", created_at=1.5)]), c.Insert([first])])
    second = first._replace(version=2, at=2.5, body=_ODD)
    storage.write([c.Insert([second]), c.SetStatus("checked", "paused")])
    assert storage.streams() == [StreamRow(name="checked", created_at=1.5, status="paused")]
    assert storage.settings("checked") == [first, second]
    assert storage.settings("nobody") == []
    refused(storage, c.Insert([StreamRow(name="checked", created_at=3.0)]))
    refused(storage, c.Insert([second]))
    refused(storage, c.Insert([first._replace(stream="nobody")]))
    refused(storage, c.SetStatus("nobody", "running"))


def _events(storage: Storage) -> None:
    events: list[Event] = [
        Arrived(0, (Item("a", 0.1 + 0.2), Item(_ODD, 3, frozenset({"ann"}), frozenset({"bob"})))),
        *(Observed(1, Label("a", f"m{i}", "spam"), late=i == 2) for i in range(5)),
        Observed(2, Label("a", "ann", _ODD), late=False),
    ]
    rows = encode("checked", 0, 1.5, events)
    storage.write([c.Insert(rows[:1])])
    storage.write([c.Insert(rows[1:2]), c.Insert(rows[2:])])
    found = storage.events("checked")
    assert found == rows
    assert decode(found) == events
    assert storage.events("checked", 2) == rows[1:], "the row of a later event is missing"
    assert storage.events("checked", 0, 1) == rows[1:2]
    assert storage.events("checked", 6) == []
    assert list(storage.all_events("checked", chunk=1)) == rows
    gap = EventRow(stream="checked", n=8, size=1, slot=3, at=2.0, kind="left", body='"ann"')
    refused(storage, c.Insert([gap]))
    refused(storage, c.Insert([gap._replace(n=6)]))
    refused(storage, c.Insert([gap._replace(stream="nobody", n=0)]))
    assert storage.counts("checked").events == 7


def _item(id: str) -> ItemRow:
    return ItemRow(
        stream="checked",
        id=id,
        digest=f"digest of {id}",
        payload=_ODD,
        weight=0.1 + 0.2,
        eligible='["ann"]',
        excluded="[]",
        arrived_slot=2**40,
        arrived_at=1e9,
    )


def _items(storage: Storage) -> None:
    items = {id: _item(id) for id in ("a", "B", "é", "z", "Z")}
    storage.write([c.Insert(list(items.values()))])
    left = ExitRow(
        stream="checked",
        id="z",
        status="left",
        exit_n=1,
        exit_slot=9,
        left_at=4.5,
        verdict="spam",
        confidence=1 / 3,
        labels=2,
        reason="no_gain",
    )
    gone = ExitRow(
        stream="checked",
        id="B",
        status="withdrawn",
        exit_n=2,
        exit_slot=9,
        left_at=4.5,
        verdict=None,
        confidence=0.0,
        labels=0,
        reason="withdrawn",
    )
    storage.write([c.LeaveItems([left, gone])])
    for row in (left, gone):
        items[row.id] = items[row.id]._replace(**row._asdict())
    in_order = [items[id] for id in sorted(items)]
    assert storage.items("checked") == in_order, "items are not in the order of code points"
    assert list(storage.all_items("checked", chunk=2)) == in_order
    assert [row.id for row in storage.items("checked", "open")] == ["Z", "a", "é"]
    assert [row.id for row in storage.items("checked", "open", "Z", 1)] == ["a"]
    assert storage.item("checked", "z") == items["z"]
    assert storage.item("checked", "nothing") is None
    z, b = (items[id]._replace(payload="") for id in "zB")
    assert storage.exits("checked") == [z, b], "exits come without payloads"
    assert storage.exits("checked", 1) == [b]
    assert storage.exits("checked", 0, 1) == [z]
    still = [items[id] for id in ("Z", "a", "é")]
    assert list(storage.open_items("checked", len(_ODD), chunk=2)) == still
    assert list(storage.open_items("checked", 5)) == [x._replace(payload="") for x in still]
    assert storage.known_ids("checked", [*"az", "?"]) == {i: f"digest of {i}" for i in "az"}
    refused(storage, c.Insert([_item("new"), _item("a")]))
    refused(storage, c.LeaveItems([left._replace(exit_n=3)]))
    refused(storage, c.LeaveItems([left._replace(exit_n=3, id="nothing")]))
    refused(storage, c.LeaveItems([left._replace(exit_n=2, id="a")]))
    counts = storage.counts("checked")
    assert (counts.open, counts.left, counts.withdrawn) == (3, 1, 1)


def _revisions(storage: Storage) -> None:
    first = RevisionRow(
        stream="checked",
        n=1,
        item="z",
        slot=2**40,
        at=4.5,
        before="spam",
        before_confidence=1 / 3,
        verdict=_ODD,
        confidence=0.1 + 0.2,
        labels=3,
    )
    rows = [first, first._replace(n=2, item="a", before=None, verdict=None), first._replace(n=3)]
    storage.write([c.Insert(rows[:2]), c.Insert(rows[2:])])
    assert storage.revisions("checked") == rows
    assert storage.revisions("checked", 1, 1) == rows[1:2]
    assert list(storage.all_revisions("checked", chunk=1)) == rows
    assert storage.revisions_of("checked", "z") == [rows[0], rows[2]]
    assert storage.revisions_of("checked", "nothing") == storage.revisions("nobody") == []
    refused(storage, c.Insert([first._replace(n=4), first]))
    refused(storage, c.Insert([first._replace(stream="nobody")]))
    assert storage.counts("checked").revisions == 3


def _labels(storage: Storage) -> None:
    rows = [
        LabelRow(
            stream="checked",
            item=item,
            labeler=who,
            said=_ODD,
            at=at,
            slot=7,
            late=late,
            lead_seconds=lead,
            source="lease",
        )
        for item, who, at, late, lead in (
            ("a", "ann", 1.0, False, 0.25),
            ("a", "bob", 2.0, True, None),
            ("b", "ann", 3.0, False, 1e-9),
        )
    ]
    storage.write([c.Insert(rows[2:]), c.Insert(rows[:2])])
    many = [rows[0]._replace(item=f"m{i}", labeler="eve", at=0.0) for i in range(200)]
    storage.write([c.Insert(many)])
    assert storage.labels_of("checked", "a") == rows[:2]
    assert storage.labels("checked", None, 3) == rows
    assert storage.labels("checked", ("a", "ann"), 2) == rows[1:]
    assert list(storage.all_labels("checked", chunk=7)) == rows + sorted(many)
    assert storage.recent_labels("checked", 2.0) == [rows[2], rows[1]]
    assert storage.recent_labels("checked", 0.5, "ann", 1) == [rows[2]]
    assert storage.labeler_counts("checked") == {"ann": (2, 0), "bob": (1, 1), "eve": (200, 0)}
    assert sorted(storage.open_said("checked")) == [("a", "ann", _ODD), ("a", "bob", _ODD)]
    asked = [("a", "ann"), ("a", "eve"), ("m1", "eve")]
    assert storage.said("checked", asked) == {("a", "ann"): _ODD, ("m1", "eve"): _ODD}
    refused(storage, c.Insert([rows[0]._replace(item="new"), rows[0]._replace(said="ok")]))
    counts = storage.counts("checked")
    assert (counts.labels, counts.late) == (203, 1)
    assert storage.stream("checked") in storage.streams()
    assert storage.stream("none") is None
    assert storage.open_counts()["checked"] == storage.counts("checked").open
    _recent_exits(storage)


def _recent_exits(storage: Storage) -> None:
    z = LabelRow(
        stream="checked",
        item="z",
        labeler="ann",
        said="spam",
        at=3.0,
        slot=7,
        late=False,
        lead_seconds=None,
        source="bulk",
    )
    more = [z._replace(labeler="bob", said="ok"), z._replace(labeler="eve", late=True)]
    left = ExitRow(
        stream="checked",
        id="a",
        status="left",
        exit_n=3,
        exit_slot=9,
        left_at=5.5,
        verdict=None,
        confidence=0.0,
        labels=0,
        reason="deadline",
    )
    storage.write([c.Insert([z, *more]), c.LeaveItems([left])])
    first = Exited(
        item="z",
        arrived_slot=2**40,
        arrived_at=1e9,
        exit_slot=9,
        left_at=4.5,
        verdict="spam",
        confidence=1 / 3,
        labels=2,
        reason="no_gain",
        said=2,
        agreed=1,
    )
    last = Exited(
        item="a",
        arrived_slot=2**40,
        arrived_at=1e9,
        exit_slot=9,
        left_at=5.5,
        verdict=None,
        confidence=0.0,
        labels=0,
        reason="deadline",
        said=1,
        agreed=0,
    )
    assert storage.recent_exits("checked", 5) == [last, first], (
        "z has a late label, B was withdrawn"
    )
    assert storage.recent_exits("checked", 1) == [last]
    assert storage.recent_exits("nobody", 5) == []


def _leases(storage: Storage) -> None:
    one, two = (
        LeaseRow(
            token_hash=f"hash{i}",
            stream="checked",
            item="a",
            labeler=f"m{i}",
            given_at=5.0 - i,
            ttl=60.0,
        )
        for i in (1, 2)
    )
    storage.write([c.Insert([one, two])])
    assert storage.leases("checked") == [two, one]
    storage.write([c.EndLeases([c.LeaseEnd("hash1", "expired", 6.0)]), c.RenewLease("hash2", 90.5)])
    storage.write([c.EndLeases([c.LeaseEnd("hash1", "done", 7.0, _ODD, "k1")])])
    done = one._replace(status="done", ended_at=7.0, answer=_ODD, ended_key="k1")
    assert storage.lease("hash1") == done
    assert storage.leases("checked") == [two._replace(ttl=90.5)]
    assert storage.given("checked", [("a", "m1"), ("a", "m2"), ("a", "m3"), ("b", "m1")]) == {
        ("a", "m1"),
        ("a", "m2"),
    }
    assert storage.given("nobody", [("a", "m1")]) == set()
    assert len(storage.leases("checked", None)) == 2
    assert storage.lease("nothing") is None
    refused(storage, c.Insert([one]))
    refused(storage, c.EndLeases([c.LeaseEnd("nothing", "done", 6.0)]))


def _snapshots(storage: Storage) -> None:
    assert storage.snapshots("checked") == []
    assert storage.engines("checked") == []
    began = EngineRow(stream="checked", n=2, version=_ODD, at=1.0)
    storage.write([c.Insert([began._replace(version="other")])])
    storage.write([c.Insert([began])])
    assert storage.engines("checked") == [began]
    for n in (0, 1, 2, 3, 4, 9, 10):
        row = SnapshotRow(stream="checked", n=n, at=1.0, body=bytes(range(256)) * n)
        storage.write([c.Insert([row])])
    storage.write([c.Insert([row._replace(at=2.0)])])
    assert storage.snapshot_numbers("checked") == [0, 2, 4, 9, 10], (
        "the first, those of engines and the last two stay, of the others fewer the older they are"
    )
    assert storage.snapshot("checked", 10) == row._replace(at=2.0)
    assert storage.snapshot("checked", 3) is None
    assert [kept.n for kept in storage.snapshots("checked")] == [0, 2, 4, 9, 10]
    assert storage.snapshots("checked")[-1] == row._replace(at=2.0)
    refused(storage, c.Insert([began._replace(stream="nobody")]))


def _keys(storage: Storage) -> None:
    one = KeyRow(id="k1", hash="hash of 1", role="admin", labeler=None, name=_ODD, created_at=2.0)
    two = KeyRow(
        id="k2", hash="hash of 2", role="labeler", labeler="ann", name="ann's", created_at=1.0
    )
    storage.write([c.Insert([one]), c.Insert([two])])
    storage.write([c.TouchKey("k1", 3.0), c.RevokeKey("k2", 4.0), c.RevokeKey("k2", 5.0)])
    storage.write([c.TouchKey("nobody", 3.0), c.RevokeKey("nobody", 4.0)])
    storage.write([c.ExpireKey("k1", at) for at in (8.0, 9.0, 7.0)] + [c.ExpireKey("nobody", 1.0)])
    assert storage.keys() == [
        two._replace(revoked_at=4.0),
        one._replace(last_used_at=3.0, expires_at=7.0),
    ]
    refused(storage, c.Insert([one._replace(hash="hash of 3")]))
    refused(storage, c.Insert([one._replace(id="k3")]))


def _webhooks(storage: Storage) -> None:
    hook = WebhookRow(
        id="w1", stream="checked", url="https://example.org/x", secret="whsec_x", created_at=1.0
    )
    storage.write([c.Insert([hook]), c.Insert([hook._replace(id="w2")])])
    rows = [
        DeliveryRow(webhook="w1", stream="checked", exit_n=n, attempt=0, next_at=10.0 - n)
        for n in (1, 2, 3)
    ]
    storage.write([c.Insert([*rows, rows[0]._replace(webhook="w2")])])
    assert storage.pending_deliveries("w1") == rows[::-1]
    assert storage.pending_deliveries("w1", 2) == [rows[2], rows[1]]
    assert storage.pending_deliveries("w1", 1) == [rows[2]]
    assert storage.pending_deliveries("w2") == [rows[0]._replace(webhook="w2")]
    tried = rows[2]._replace(attempt=5, status="dead", last_error=_ODD, failing_since=1.5)
    done = rows[1]._replace(attempt=1, status="done")
    storage.write([c.UpdateDelivery(tried), c.UpdateDelivery(done)])
    assert storage.pending_deliveries("w1") == [rows[0]]
    assert storage.deliveries("w1", "dead") == [tried]
    assert storage.deliveries("w1") == [rows[0], done, tried]
    other = rows[0]._replace(kind="revision")
    storage.write([c.Insert([other]), c.UpdateDelivery(rows[0]._replace(attempt=3))])
    storage.write([c.UpdateDelivery(rows[0])])
    assert storage.pending_deliveries("w1") == [rows[0], other]
    assert storage.deliveries("w1") == [rows[0], done, tried, other], "exits and then revisions"
    assert storage.delivery_counts("w1") == {"pending": 2, "dead": 1}
    assert storage.delivery_counts("nobody") == {"pending": 0, "dead": 0}
    storage.write([c.RotateSecret("w1", "whsec_y", 9.5), c.RotateSecret("nobody", "x", 1.0)])
    rotated = hook._replace(secret="whsec_y", old_secret="whsec_x", old_until=9.5)
    assert storage.webhooks("checked") == [rotated, hook._replace(id="w2")]
    storage.write([c.RemoveWebhook("w1"), c.RemoveWebhook("w1"), c.UpdateDelivery(tried)])
    assert storage.webhooks("checked") == storage.webhooks() == [hook._replace(id="w2")]
    assert storage.deliveries("w1") == []
    assert storage.webhooks("nobody") == []
    refused(storage, c.Insert([rows[0]]))


def _audit(storage: Storage) -> None:
    rows = [
        AuditRow(n=0, at=1.5, actor="me (k1)", key="k1", action="stream.pause", stream="checked"),
        AuditRow(
            n=0,
            at=2.5,
            actor=_ODD,
            key=None,
            action="key.revoke",
            stream=None,
            subject="k2",
            details='{"why":"lost"}',
        ),
    ]
    storage.write([c.Insert(rows[:1]), c.Insert(rows[1:])])
    found = storage.audit()
    assert [row._replace(n=0) for row in found] == [row._replace(n=0) for row in rows]
    assert found[0].n < found[1].n
    assert storage.audit(found[0].n) == found[1:]
    assert storage.audit(0, 1) == storage.audit(stream="checked") == found[:1]
    assert list(storage.all_audit(chunk=1)) == found


def _notes(storage: Storage) -> None:
    first = NoteRow(
        stream="checked",
        n=1,
        item="a",
        labeler="ann",
        kind="comment",
        text=_ODD,
        at=3.5,
        key="key_1",
    )
    second = NoteRow(stream="checked", n=2, item="z", labeler="ann", kind="unsure", text="", at=4.5)
    storage.write([c.Insert([first]), c.Insert([second])])
    assert storage.notes("checked") == list(storage.all_notes("checked", chunk=1))
    assert storage.notes("checked") == [first, second]
    assert storage.notes("checked", 1) == storage.notes("checked", item="z") == [second]
    assert storage.notes("checked", 0, 1) == [first]
    assert storage.note_counts("checked") == {
        "comment": {"ann": 1},
        "flag": {},
        "unsure": {"ann": 1},
    }
    assert storage.counts("checked").notes == 2
    refused(storage, c.Insert([second]))
    refused(storage, c.Insert([second._replace(stream="nobody")]))


def _erasure(storage: Storage) -> None:
    before = storage.item("checked", "a")
    assert before is not None
    label = LabelRow(
        stream="checked",
        item="a",
        labeler="why",
        said="ok",
        at=3.5,
        slot=0,
        late=True,
        lead_seconds=None,
        source="x",
        rationale=_ODD,
    )
    storage.write([c.Insert([label])])
    assert label in storage.labels_of("checked", "a")
    assert storage.said_beside("checked")[-1] == "rationale"
    storage.write([c.ErasePayload("checked", "a")])
    assert label._replace(rationale=None) in storage.labels_of("checked", "a")
    assert "rationale" not in storage.said_beside("checked")
    assert storage.item("checked", "a") == before._replace(payload="null", digest=ERASED)
    assert [row.text for row in storage.notes("checked", item="a")] == [""]
    refused(storage, c.ErasePayload("checked", "nothing"))
    storage.scrub()


def _console(storage: Storage) -> None:
    """Alarms are dropped but the last of each, items sent back, streams archived, notes erased."""
    rules = ("queue", "drift", "queue", "queue", "drift")
    rows = [
        AlarmRow(
            stream="checked",
            n=n,
            at=1.0,
            rule=rule,
            subject=_ODD,
            raised=n % 2 == 1,
            value=0.1 + 0.2,
            threshold=1.0,
            message=_ODD,
        )
        for n, rule in enumerate(rules, 1)
    ]
    storage.write([c.Insert(rows)])
    assert storage.last_alarms("checked") == rows[3:]
    storage.write([c.DropAlarms("checked", 4), c.DropAlarms("nobody", 4)])
    assert storage.alarms("checked") == storage.last_alarms("checked") == rows[3:]
    assert storage.last_alarms("nobody") == []
    sent = FollowRow(stream="checked", item="z~2", original="z", at=1.5, actor=_ODD, key=None)
    storage.write([c.Insert([sent]), c.SettleFollow("checked", "nothing", 2.0)])
    assert storage.follows("checked") == [sent]
    storage.write([c.SettleFollow("checked", "z~2", 2.5)])
    assert storage.follows("checked") == [sent._replace(settled_at=2.5)]
    refused(storage, c.Insert([sent]))
    refused(storage, c.Insert([sent._replace(stream="nobody")]))
    _routes(storage)
    _repeats(storage)
    kept = storage.item("checked", "a")
    assert kept is not None
    assert storage.payloads("checked", ["a", "nothing"]) == {"a": kept.payload}
    storage.write([c.ArchiveStream("checked", 7.5)])
    assert storage.streams()[0].archived_at == 7.5
    storage.write([c.ArchiveStream("checked", None)])
    assert storage.streams()[0].archived_at is None
    refused(storage, c.ArchiveStream("nobody", 1.0))
    last = storage.audit()[-1]
    storage.write([c.RetellAudit(last.n, '{"note":""}')])
    assert storage.audit()[-1] == last._replace(details='{"note":""}')
    storage.write([c.RetellAudit(last.n, last.details)])


def _deletion(storage: Storage) -> None:
    """A deleted stream is not listed, goes in pieces, and makes room for another of its name."""
    assert storage.remains("checked")
    assert not storage.remains("gone")
    hook = WebhookRow(
        id="w3", stream="gone", url="https://example.org/y", secret="whsec_y", created_at=1.0
    )
    row = EventRow(stream="gone", n=0, size=1, slot=3, at=2.0, kind="left", body='"ann"')
    label = LabelRow(
        stream="gone",
        item="a",
        labeler="m",
        said="ok",
        at=0.0,
        slot=0,
        late=False,
        lead_seconds=None,
        source="x",
        key="k1",
    )
    filled: list[c.Change] = [
        c.Insert([StreamRow(name="gone", created_at=1.0)]),
        c.Insert([SettingsRow(stream="gone", version=1, at=1.0, actor="admin", body="{}")]),
        c.Insert([_item(f"i{n}")._replace(stream="gone", key="k1") for n in range(5)]),
        c.LeaveItems(
            [
                ExitRow(
                    stream="gone",
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
            ]
        ),
        c.Insert([row, row._replace(n=1)]),
        c.Insert([label, label._replace(item="b")]),
        c.Insert(
            [
                LeaseRow(
                    token_hash="gone1",
                    stream="gone",
                    item="a",
                    labeler="m",
                    given_at=0.0,
                    ttl=1.0,
                    key="k1",
                )
            ]
        ),
        c.Insert([SnapshotRow(stream="gone", n=0, at=1.0, body=b"x")]),
        c.Insert([FollowRow(stream="gone", item="i1~2", original="i1", at=1.0, actor="me")]),
        c.Insert([_route("gone", "i1", "elsewhere", 0.5)]),
        c.Insert([_repeat("gone", "i1", "m", "x")]),
        c.Insert([hook]),
        c.Insert(
            [
                DeliveryRow(webhook="w3", stream="gone", exit_n=n, attempt=0, next_at=10.0)
                for n in (1, 2, 3)
            ]
        ),
    ]
    storage.write(filled)
    assert {row.key for row in storage.items("gone")} == {"k1"}
    assert [row.key for row in storage.labels("gone")] == ["k1", "k1"]
    before = everything(storage, "checked")
    storage.write([c.MarkDeleted("gone", 5.0)])
    assert [row.name for row in storage.streams()] == ["checked"]
    assert storage.deleted_streams() == [
        StreamRow(name="gone", created_at=1.0, status="running", deleted_at=5.0)
    ]
    refused(storage, c.DeleteStream("gone"))
    refused(storage, c.MarkDeleted("nobody", 5.0))
    rounds = 0
    while storage.remains("gone"):
        storage.write([c.PurgeStream("gone", 2)])
        rounds += 1
    assert 2 <= rounds <= 30
    storage.write([c.DeleteStream("gone")])
    assert storage.deleted_streams() == []
    assert storage.counts("gone") == Counts(
        open=0, left=0, withdrawn=0, labels=0, late=0, leases=0, events=0, exits=0
    )
    assert storage.deliveries("w3") == []
    assert everything(storage, "checked") == {**before, "streams": storage.streams()}
    storage.write(filled)
    storage.write([c.MarkDeleted("gone", 5.0), c.PurgeStream("gone", 1000)])
    storage.write([c.PurgeStream("gone", 1000), c.DeleteStream("gone")])


def _route(stream: str, item: str, target: str, at: float, kind: str = "stream") -> RoutedRow:
    return RoutedRow(
        stream=stream,
        item=item,
        kind=kind,
        target=target,
        at=at,
        verdict=_ODD,
        confidence=0.1 + 0.2,
    )


def _routes(storage: Storage) -> None:
    """Where verdicts send items: kept, settled, found by where they go."""
    one, two = _route("checked", "z", "b", 2.0), _route("checked", "z", "a", 3.0)
    hook = _route("checked", "z", "a", 1.0, "webhook")
    storage.write([c.Insert([one, two, hook])])
    assert storage.routed("checked") == storage.routed("checked", "z") == [two, one, hook]
    assert storage.routed("checked", "y") == storage.routed("nobody") == []
    assert storage.routed_to("a", "z") == [two]
    assert storage.routed_waiting(9) == [hook, one, two]
    done = one._replace(settled_at=4.5, fault=_ODD)
    storage.write([c.SettleRoute(done), c.SettleRoute(done._replace(item="y"))])
    assert storage.routed("checked") == [two, done, hook]
    assert storage.routed_waiting(1) == [hook]
    assert storage.routed_waiting(9) == [hook, two]
    assert storage.routed_waiting(1, {("checked", "a")}) == []
    assert storage.routed_waiting(1, [("checked", "b"), ("z", "a")]) == [hook]
    refused(storage, c.Insert([two]))
    refused(storage, c.Insert([two._replace(stream="nobody")]))
    storage.write([c.SettleRoute(row._replace(settled_at=5.0)) for row in (two, hook)])
    assert storage.routed_waiting(9) == []


def _repeat(stream: str, item: str, labeler: str, said: str) -> RepeatRow:
    told: dict[str, Any] = {"at": 0.1 + 0.2, "slot": 7, "confidence": 0.5}
    return RepeatRow(stream=stream, item=item, labeler=labeler, before="x", said=said, **told)


def _repeats(storage: Storage) -> None:
    """What labelers say who are asked again, and what they may be asked again."""
    left = {row.id for row in storage.items("checked", "left") if row.digest != ERASED}
    labels = storage.labels("checked")
    who = next(row.labeler for row in labels if row.item in left)
    mine = [row for row in labels if row.labeler == who]
    may = sorted(row.item for row in mine if row.item in left)
    last = max(row.slot for row in mine)
    found = storage.repeatable("checked", who, last, 99)
    assert sorted(row.item for row in found) == may != []
    assert [row.at for row in found] == sorted((row.at for row in found), reverse=True)
    assert storage.repeatable("checked", who, last, 1) == found[:1]
    assert storage.repeatable("checked", who, -1, 9) == []
    assert storage.repeatable("checked", "nobody", last, 9) == []
    rows = [
        _repeat("checked", found[0].item, who, "x"),
        _repeat("checked", "?", who, _ODD),
        _repeat("checked", "?", "n", "x"),
    ]
    storage.write([c.Insert(rows)])
    assert storage.repeats("checked") == sorted(rows)
    assert storage.repeats("checked", "?") == sorted(rows[1:])
    assert storage.repeats("nobody") == []
    assert storage.repeat_counts("checked") == {who: (2, 1), "n": (1, 1)}
    assert storage.repeatable("checked", who, last, 99) == found[1:]
    refused(storage, c.Insert([rows[0]]))
    refused(storage, c.Insert([rows[0]._replace(stream="nobody")]))


def _others(storage: Storage) -> None:
    assert storage.meta("secret") is None
    storage.write([c.SetMeta("secret", "1"), c.SetMeta("secret", _ODD)])
    assert storage.meta("secret") == _ODD
    storage.write([c.SetMeta(f"a {n}", str(n)) for n in range(3)] + [c.SetMeta("A 4", "")])
    storage.write([c.DropMeta("a 1"), c.DropMeta("a 9")])
    assert storage.metas("a ") == {"a 0": "0", "a 2": "2"}


def _all_or_nothing(storage: Storage) -> None:
    fine = (
        c.Insert([_item("never")]),
        c.Insert(
            [
                KeyRow(
                    id="never",
                    hash="never",
                    role="admin",
                    labeler=None,
                    name="never",
                    created_at=9.0,
                )
            ]
        ),
        c.Insert(
            [
                LeaseRow(
                    token_hash="never",
                    stream="checked",
                    item="a",
                    labeler="m",
                    given_at=0.0,
                    ttl=1.0,
                )
            ]
        ),
        c.SetStatus("checked", "running"),
        c.Insert([SnapshotRow(stream="checked", n=9, at=1.0, body=b"")]),
        c.RemoveWebhook("w2"),
        c.Insert(
            [EventRow(stream="checked", n=7, size=1, slot=3, at=2.0, kind="left", body='"ann"')]
        ),
    )
    refused(storage, *fine, c.Insert([StreamRow(name="checked", created_at=3.0)]))
    storage.write(fine[-1:])
    assert storage.counts("checked").events == 8
