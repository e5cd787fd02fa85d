"""The battery that every store must pass: `check_storage`, for venire's stores and for yours."""

from __future__ import annotations

from tests.store.battery_history import check_history, everything, refused
from venire.events import Arrived, Event, Observed
from venire.model import Item, Label
from venire.server.store import changes as c
from venire.server.store.base import Storage
from venire.server.store.codec import decode, encode
from venire.server.store.rows import (
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
    RevisionRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)

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
    assert storage.counts("nobody") == Counts(0, 0, 0, 0, 0, 0, 0, 0)
    storage.ping()
    assert all(size >= 0 for size in storage.sizes().values())
    with storage.frozen():
        assert len(storage.streams()) == 1


def _streams(storage: Storage) -> None:
    first = SettingsRow("checked", 1, 1.5, "admin", '{"classes":["spam","ok"]}')
    storage.write([c.AddStream(StreamRow("checked", 1.5)), c.AddSettings(first)])
    second = first._replace(version=2, at=2.5, body=_ODD)
    storage.write([c.AddSettings(second), c.SetStatus("checked", "paused")])
    assert storage.streams() == [StreamRow("checked", 1.5, "paused")]
    assert storage.settings("checked") == [first, second]
    assert storage.settings("nobody") == []
    refused(storage, c.AddStream(StreamRow("checked", 3.0)))
    refused(storage, c.AddSettings(second))
    refused(storage, c.AddSettings(first._replace(stream="nobody")))
    refused(storage, c.SetStatus("nobody", "running"))


def _events(storage: Storage) -> None:
    events: list[Event] = [
        Arrived(0, (Item("a", 0.1 + 0.2), Item(_ODD, 3, frozenset({"ann"}), frozenset({"bob"})))),
        *(Observed(1, Label("a", f"m{i}", "spam"), late=i == 2) for i in range(5)),
        Observed(2, Label("a", "ann", _ODD), late=False),
    ]
    rows = encode("checked", 0, 1.5, events)
    storage.write([c.AddEvents(rows[:1])])
    storage.write([c.AddEvents(rows[1:2]), c.AddEvents(rows[2:])])
    found = storage.events("checked")
    assert found == rows
    assert decode(found) == events
    assert storage.events("checked", 2) == rows[1:], "the row of a later event is missing"
    assert storage.events("checked", 0, 1) == rows[1:2]
    assert storage.events("checked", 6) == []
    assert list(storage.all_events("checked", chunk=1)) == rows
    gap = EventRow("checked", 8, 1, 3, 2.0, "left", '"ann"')
    refused(storage, c.AddEvents([gap]))
    refused(storage, c.AddEvents([gap._replace(n=6)]))
    refused(storage, c.AddEvents([gap._replace(stream="nobody", n=0)]))
    assert storage.counts("checked").events == 7


def _item(id: str) -> ItemRow:
    return ItemRow("checked", id, f"digest of {id}", _ODD, 0.1 + 0.2, '["ann"]', "[]", 2**40, 1e9)


def _items(storage: Storage) -> None:
    items = {id: _item(id) for id in ("a", "B", "é", "z", "Z")}
    storage.write([c.AddItems(list(items.values()))])
    left = ExitRow("checked", "z", "left", 1, 9, 4.5, "spam", 1 / 3, 2, "no_gain")
    gone = ExitRow("checked", "B", "withdrawn", 2, 9, 4.5, None, 0.0, 0, "withdrawn")
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
    refused(storage, c.AddItems([_item("new"), _item("a")]))
    refused(storage, c.LeaveItems([left._replace(exit_n=3)]))
    refused(storage, c.LeaveItems([left._replace(exit_n=3, id="nothing")]))
    refused(storage, c.LeaveItems([left._replace(exit_n=2, id="a")]))
    assert storage.counts("checked")[:3] == (3, 1, 1)


def _revisions(storage: Storage) -> None:
    first = RevisionRow("checked", 1, "z", 2**40, 4.5, "spam", 1 / 3, _ODD, 0.1 + 0.2, 3)
    rows = [first, first._replace(n=2, item="a", before=None, verdict=None), first._replace(n=3)]
    storage.write([c.AddRevisions(rows[:2]), c.AddRevisions(rows[2:])])
    assert storage.revisions("checked") == rows
    assert storage.revisions("checked", 1, 1) == rows[1:2]
    assert list(storage.all_revisions("checked", chunk=1)) == rows
    assert storage.revisions_of("checked", "z") == [rows[0], rows[2]]
    assert storage.revisions_of("checked", "nothing") == storage.revisions("nobody") == []
    refused(storage, c.AddRevisions([first._replace(n=4), first]))
    refused(storage, c.AddRevisions([first._replace(stream="nobody")]))
    assert storage.counts("checked").revisions == 3


def _labels(storage: Storage) -> None:
    rows = [
        LabelRow("checked", item, who, _ODD, at, 7, late, lead, "lease")
        for item, who, at, late, lead in (
            ("a", "ann", 1.0, False, 0.25),
            ("a", "bob", 2.0, True, None),
            ("b", "ann", 3.0, False, 1e-9),
        )
    ]
    storage.write([c.AddLabels(rows[2:]), c.AddLabels(rows[:2])])
    many = [rows[0]._replace(item=f"m{i}", labeler="eve", at=0.0) for i in range(200)]
    storage.write([c.AddLabels(many)])
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
    refused(storage, c.AddLabels([rows[0]._replace(item="new"), rows[0]._replace(said="ok")]))
    assert storage.counts("checked")[3:5] == (203, 1)
    assert storage.stream("checked") in storage.streams()
    assert storage.stream("none") is None
    assert storage.open_counts()["checked"] == storage.counts("checked").open
    _recent_exits(storage)


def _recent_exits(storage: Storage) -> None:
    z = LabelRow("checked", "z", "ann", "spam", 3.0, 7, False, None, "bulk")
    more = [z._replace(labeler="bob", said="ok"), z._replace(labeler="eve", late=True)]
    left = ExitRow("checked", "a", "left", 3, 9, 5.5, None, 0.0, 0, "deadline")
    storage.write([c.AddLabels([z, *more]), c.LeaveItems([left])])
    first = Exited("z", 2**40, 1e9, 9, 4.5, "spam", 1 / 3, 2, "no_gain", 2, 1)
    last = Exited("a", 2**40, 1e9, 9, 5.5, None, 0.0, 0, "deadline", 1, 0)
    assert storage.recent_exits("checked", 5) == [last, first], (
        "z has a late label, B was withdrawn"
    )
    assert storage.recent_exits("checked", 1) == [last]
    assert storage.recent_exits("nobody", 5) == []


def _leases(storage: Storage) -> None:
    one, two = (LeaseRow(f"hash{i}", "checked", "a", f"m{i}", 5.0 - i, 60.0) for i in (1, 2))
    storage.write([c.AddLeases([one, two])])
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
    refused(storage, c.AddLeases([one]))
    refused(storage, c.EndLeases([c.LeaseEnd("nothing", "done", 6.0)]))


def _snapshots(storage: Storage) -> None:
    assert storage.latest_snapshot("checked") is None
    assert storage.engines("checked") == []
    began = EngineRow("checked", 2, _ODD, 1.0)
    storage.write([c.AddEngine(began._replace(version="other"))])
    storage.write([c.AddEngine(began)])
    assert storage.engines("checked") == [began]
    for n in (0, 1, 2, 3, 4, 9, 10):
        row = SnapshotRow("checked", n, 1.0, bytes(range(256)) * n)
        storage.write([c.SaveSnapshot(row)])
    storage.write([c.SaveSnapshot(row._replace(at=2.0))])
    assert storage.snapshot_numbers("checked") == [0, 2, 4, 9, 10], (
        "the first, those of engines and the last two stay, of the others fewer the older they are"
    )
    assert storage.snapshot("checked", 10) == row._replace(at=2.0)
    assert storage.snapshot("checked", 3) is None
    assert [kept.n for kept in storage.snapshots("checked")] == [0, 2, 4, 9, 10]
    assert storage.latest_snapshot("checked") == row._replace(at=2.0)
    refused(storage, c.AddEngine(began._replace(stream="nobody")))


def _keys(storage: Storage) -> None:
    one = KeyRow("k1", "hash of 1", "admin", None, _ODD, 2.0)
    two = KeyRow("k2", "hash of 2", "labeler", "ann", "ann's", 1.0)
    storage.write([c.AddKey(one), c.AddKey(two)])
    storage.write([c.TouchKey("k1", 3.0), c.RevokeKey("k2", 4.0), c.RevokeKey("k2", 5.0)])
    storage.write([c.TouchKey("nobody", 3.0), c.RevokeKey("nobody", 4.0)])
    storage.write([c.ExpireKey("k1", at) for at in (8.0, 9.0, 7.0)] + [c.ExpireKey("nobody", 1.0)])
    assert storage.keys() == [
        two._replace(revoked_at=4.0),
        one._replace(last_used_at=3.0, expires_at=7.0),
    ]
    refused(storage, c.AddKey(one._replace(hash="hash of 3")))
    refused(storage, c.AddKey(one._replace(id="k3")))


def _webhooks(storage: Storage) -> None:
    hook = WebhookRow("w1", "checked", "https://example.org/x", "whsec_x", 1.0)
    storage.write([c.AddWebhook(hook), c.AddWebhook(hook._replace(id="w2"))])
    rows = [DeliveryRow("w1", "checked", n, 0, 10.0 - n) for n in (1, 2, 3)]
    storage.write([c.AddDeliveries([*rows, rows[0]._replace(webhook="w2")])])
    assert storage.due_deliveries("w1", 8.0) == [rows[2], rows[1]]
    assert storage.due_deliveries("w1", 8.0, 1) == [rows[2]]
    assert storage.due_deliveries("w1", 9.0) == rows[::-1]
    assert storage.due_deliveries("w2", 9.0) == [rows[0]._replace(webhook="w2")]
    tried = rows[2]._replace(attempt=5, status="dead", last_error=_ODD, failing_since=1.5)
    done = rows[1]._replace(attempt=1, status="done")
    storage.write([c.UpdateDelivery(tried), c.UpdateDelivery(done)])
    assert storage.due_deliveries("w1", 8.0) == []
    assert storage.deliveries("w1", "dead") == [tried]
    assert storage.deliveries("w1") == [rows[0], done, tried]
    other = rows[0]._replace(kind="revision")
    storage.write([c.AddDeliveries([other]), c.UpdateDelivery(rows[0]._replace(attempt=3))])
    storage.write([c.UpdateDelivery(rows[0])])
    assert storage.due_deliveries("w1", 9.0) == [rows[0], other]
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
    refused(storage, c.AddDeliveries([rows[0]]))


def _audit(storage: Storage) -> None:
    rows = [
        AuditRow(0, 1.5, "me (k1)", "k1", "stream.pause", "checked"),
        AuditRow(0, 2.5, _ODD, None, "key.revoke", None, "k2", '{"why":"lost"}'),
    ]
    storage.write([c.AddAudit(rows[:1]), c.AddAudit(rows[1:])])
    found = storage.audit()
    assert [row[1:] for row in found] == [row[1:] for row in rows]
    assert found[0].n < found[1].n
    assert storage.audit(found[0].n) == found[1:]
    assert storage.audit(0, 1) == storage.audit(stream="checked") == found[:1]
    assert list(storage.all_audit(chunk=1)) == found


def _notes(storage: Storage) -> None:
    first = NoteRow("checked", 1, "a", "ann", "comment", _ODD, 3.5, "key_1")
    second = NoteRow("checked", 2, "z", "ann", "unsure", "", 4.5)
    storage.write([c.AddNotes([first]), c.AddNotes([second])])
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
    refused(storage, c.AddNotes([second]))
    refused(storage, c.AddNotes([second._replace(stream="nobody")]))


def _erasure(storage: Storage) -> None:
    before = storage.item("checked", "a")
    assert before is not None
    storage.write([c.ErasePayload("checked", "a")])
    assert storage.item("checked", "a") == before._replace(payload="null", digest=ERASED)
    assert [row.text for row in storage.notes("checked", item="a")] == [""]
    refused(storage, c.ErasePayload("checked", "nothing"))
    storage.scrub()


def _console(storage: Storage) -> None:
    """Alarms are dropped but the last of each, items sent back, streams archived, notes erased."""
    rules = ("queue", "drift", "queue", "queue", "drift")
    rows = [
        AlarmRow("checked", n, 1.0, rule, _ODD, n % 2 == 1, 0.1 + 0.2, 1.0, _ODD)
        for n, rule in enumerate(rules, 1)
    ]
    storage.write([c.AddAlarms(rows)])
    assert storage.last_alarms("checked") == rows[3:]
    storage.write([c.DropAlarms("checked", 4), c.DropAlarms("nobody", 4)])
    assert storage.alarms("checked") == storage.last_alarms("checked") == rows[3:]
    assert storage.last_alarms("nobody") == []
    sent = FollowRow("checked", "z~2", "z", 1.5, _ODD, None)
    storage.write([c.AddFollows([sent]), c.SettleFollow("checked", "nothing", 2.0)])
    assert storage.follows("checked") == [sent]
    storage.write([c.SettleFollow("checked", "z~2", 2.5)])
    assert storage.follows("checked") == [sent._replace(settled_at=2.5)]
    refused(storage, c.AddFollows([sent]))
    refused(storage, c.AddFollows([sent._replace(stream="nobody")]))
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
    hook = WebhookRow("w3", "gone", "https://example.org/y", "whsec_y", 1.0)
    row = EventRow("gone", 0, 1, 3, 2.0, "left", '"ann"')
    label = LabelRow("gone", "a", "m", "ok", 0.0, 0, False, None, "x", "k1")
    filled: list[c.Change] = [
        c.AddStream(StreamRow("gone", 1.0)),
        c.AddSettings(SettingsRow("gone", 1, 1.0, "admin", "{}")),
        c.AddItems([_item(f"i{n}")._replace(stream="gone", key="k1") for n in range(5)]),
        c.LeaveItems([ExitRow("gone", "i1", "left", 1, 9, 4.5, "ok", 0.5, 2, "no_gain")]),
        c.AddEvents([row, row._replace(n=1)]),
        c.AddLabels([label, label._replace(item="b")]),
        c.AddLeases([LeaseRow("gone1", "gone", "a", "m", 0.0, 1.0, key="k1")]),
        c.SaveSnapshot(SnapshotRow("gone", 0, 1.0, b"x")),
        c.AddFollows([FollowRow("gone", "i1~2", "i1", 1.0, "me")]),
        c.AddWebhook(hook),
        c.AddDeliveries([DeliveryRow("w3", "gone", n, 0, 10.0) for n in (1, 2, 3)]),
    ]
    storage.write(filled)
    assert {row.key for row in storage.items("gone")} == {"k1"}
    assert [row.key for row in storage.labels("gone")] == ["k1", "k1"]
    before = everything(storage, "checked")
    storage.write([c.MarkDeleted("gone", 5.0)])
    assert [row.name for row in storage.streams()] == ["checked"]
    assert storage.deleted_streams() == [StreamRow("gone", 1.0, "running", 5.0)]
    refused(storage, c.DeleteStream("gone"))
    refused(storage, c.MarkDeleted("nobody", 5.0))
    rounds = 0
    while storage.remains("gone"):
        storage.write([c.PurgeStream("gone", 2)])
        rounds += 1
    assert 2 <= rounds <= 30
    storage.write([c.DeleteStream("gone")])
    assert storage.deleted_streams() == []
    assert storage.counts("gone") == Counts(0, 0, 0, 0, 0, 0, 0, 0)
    assert storage.deliveries("w3") == []
    assert everything(storage, "checked") == {**before, "streams": storage.streams()}
    storage.write(filled)
    storage.write([c.MarkDeleted("gone", 5.0), c.PurgeStream("gone", 1000)])
    storage.write([c.PurgeStream("gone", 1000), c.DeleteStream("gone")])


def _others(storage: Storage) -> None:
    assert storage.meta("secret") is None
    storage.write([c.SetMeta("secret", "1"), c.SetMeta("secret", _ODD)])
    assert storage.meta("secret") == _ODD
    storage.write([c.SetMeta(f"a {n}", str(n)) for n in range(3)] + [c.SetMeta("A 4", "")])
    storage.write([c.DropMeta("a 1"), c.DropMeta("a 9")])
    assert storage.metas("a ") == {"a 0": "0", "a 2": "2"}


def _all_or_nothing(storage: Storage) -> None:
    fine = (
        c.AddItems([_item("never")]),
        c.AddKey(KeyRow("never", "never", "admin", None, "never", 9.0)),
        c.AddLeases([LeaseRow("never", "checked", "a", "m", 0.0, 1.0)]),
        c.SetStatus("checked", "running"),
        c.SaveSnapshot(SnapshotRow("checked", 9, 1.0, b"")),
        c.RemoveWebhook("w2"),
        c.AddEvents([EventRow("checked", 7, 1, 3, 2.0, "left", '"ann"')]),
    )
    refused(storage, *fine, c.AddStream(StreamRow("checked", 3.0)))
    storage.write(fine[-1:])
    assert storage.counts("checked").events == 8
