"""How sure labelers are: kept, learned from, shown; and "not sure" without a lease."""

from tests.unit.server.support import bench, running
from venire.client.wire import label_row
from venire.events import Observed
from venire.server import LabelIn
from venire.server.pages.story import story_of
from venire.server.store import decode
from venire.server.store.maintenance.export import TABLES
from venire.server.store.maintenance.verify import verify


@running
async def test_confidence_is_kept_logged_learned_and_told() -> None:
    async with bench(policy="fixed-overlap:2", learning="while-serving") as b:
        ids = [f"p{k}" for k in range(24)]
        await b.add(*ids)
        assert list(TABLES["labels"](b.storage, "posts").columns) == ["task", "worker", "label"]
        lease = await b.take("ann")
        await b.service.label(str(lease.token), "spam", confidence=0.75)
        rest = [item for item in ids if item != lease.item]
        rows = [(item, "ann", "spam", [0.5, 0.9][k % 2]) for k, item in enumerate(rest)]
        got = await b.service.add_labels("posts", [*rows, LabelIn(rest[0], "bob", "ok")])
        assert {outcome.status for outcome in got} == {"accepted"}
        again = await b.service.add_labels("posts", [(rest[0], "ann", "spam", 0.1)])
        assert again[0].status == "exists"
        assert list(b.live.engine.state.tones.edges) == [0]
        seen = await b.service.item("posts", rest[0])
        assert {x.labeler: x.confidence for x in seen.labels} == {"ann": 0.5, "bob": None}
        story = story_of(seen, await b.service.explain("posts", rest[0]))
        assert any("ann said spam, 50 % sure" in line.text for line in story)
        table = TABLES["labels"](b.storage, "posts")
        assert table.columns[3:] == ("confidence",)
        assert (lease.item, "ann", "spam", 0.75) in list(table.rows)
        await b.pass_time(10)
        late = await b.service.add_labels("posts", [(rest[0], "cec", "ok", 0.8)])
        assert late[0].status == "late"
        events = decode(b.storage.events("posts"))
        logged = [e.label.confidence for e in events if isinstance(e, Observed)]
        assert (logged[0], logged[-1]) == (0.75, 0.8)
        before = b.live.engine.fingerprint()
    async with bench(b.storage, b.clock) as restarted:
        assert restarted.live.engine.fingerprint() == before
        assert verify(restarted.storage, "posts").ok


@running
async def test_not_sure_without_a_lease() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        assert (await b.take("ann")).item == "p1"
        unsure = [("p1", "ann", None), ("p2", "ann", "ok"), ("p2", "bob", None)]
        got = await b.service.add_labels(
            "posts", [*unsure, ("p2", "ann", None), ("px", "bob", None)]
        )
        assert [(x.status, x.code) for x in got] == [
            ("accepted", None),
            ("accepted", None),
            ("accepted", None),
            ("refused", "changed"),
            ("refused", "unknown_item"),
        ]
        again = await b.service.add_labels("posts", unsure)
        assert [x.status for x in again] == ["exists", "exists", "exists"]
        assert not [*b.live.leases]  # the lease of p1 has ended
        [note] = (await b.service.item("posts", "p1")).notes
        assert (note.labeler, note.kind) == ("ann", "unsure")
        assert [one.unsure for one in await b.service.labelers("posts")] == [1, 1, 0]
        assert (await b.take("bob")).item == "p1"  # and not p2, of which it was not sure
        own = await b.service.add_labels("posts", [("p1", "cec", None)], own=True)
        assert (own[0].status, own[0].code) == ("refused", "not_given")
        assert verify(b.storage, "posts").ok


def test_a_client_sends_a_confidence_only_if_there_is_one() -> None:
    assert label_row(("p1", "ann", "ok")) == {"item": "p1", "labeler": "ann", "said": "ok"}
    assert label_row(("p1", "ann", None))["said"] is None
    assert label_row(("p1", "ann", "ok", 0.9))["confidence"] == 0.9
