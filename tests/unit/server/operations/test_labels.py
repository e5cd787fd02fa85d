"""Labels in bulk: once, never changed, never lost; what became of each."""

import asyncio

import pytest

from tests.unit.server.support import PANEL, asleep, bench, running
from venire.errors import InputError, NotFound, TooMuch
from venire.server import ItemIn, LabelIn, Lease, ServiceSettings
from venire.server.actors import Actor


@running
async def test_each_row_has_its_outcome() -> None:
    async with bench() as b:
        await b.add("p1", "p2", excluded=("cec",))
        rows: list[LabelIn | tuple[str, str, str]] = [
            ("p1", "ann", "spam"),
            ("p1", "ann", "spam"),
            ("p1", "ann", "ok"),
            ("p2", "bob", "nonsense"),
            ("p2", "dan", "ok"),
            ("p2", "cec", "ok"),
            ("p3", "ann", "ok"),
            LabelIn("p2", "bob", "ok"),
        ]
        got = await b.service.add_labels("posts", rows)
        assert [(outcome.status, outcome.code) for outcome in got] == [
            ("accepted", None),
            ("exists", None),
            ("refused", "changed"),
            ("refused", "unknown_class"),
            ("refused", "unknown_labeler"),
            ("refused", "not_allowed"),
            ("refused", "unknown_item"),
            ("accepted", None),
        ]
        again = await b.service.add_labels("posts", rows)
        assert [o.status for o in again][:3] == ["exists", "exists", "refused"]
        assert len(b.storage.labels("posts")) == 2
        assert b.live.statistics.labels == 2


@running
async def test_labels_for_items_that_have_left_are_late_once() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1")
        await b.service.add_labels("posts", [("p1", "ann", "spam")])
        await b.pass_time(10)
        for expected in ("late", "exists"):
            got = await b.service.add_labels(
                "posts", [("p1", "bob", "ok"), ("p1", "ann", "spam"), ("p1", "ann", "ok")]
            )
            assert [o.status for o in got] == [expected, "exists", "refused"]
    async with bench(b.storage, b.clock) as again:  # the store knows what memory has forgotten
        got = await again.service.add_labels(
            "posts", [("p1", "bob", "ok"), ("p1", "cec", "ok"), ("p1", "ann", "ok")]
        )
        assert [o.status for o in got] == ["exists", "late", "refused"]
        assert len(again.storage.labels_of("posts", "p1")) == 3


@running
async def test_late_labels_for_items_that_the_engine_has_forgotten_are_kept() -> None:
    async with bench(server=ServiceSettings(remember_items=1), policy="fixed-overlap:1") as b:
        await b.add("p1", "p2", "p3")
        await b.service.add_labels("posts", [(f"p{k}", "ann", "ok") for k in (1, 2, 3)])
        await b.pass_time(10)
        assert b.live.open == {}
        got = await b.service.add_labels("posts", [(f"p{k}", "bob", "ok") for k in (1, 2, 3)])
        assert [o.status for o in got] == ["late"] * 3
        assert sum(bool(row.late) for row in b.storage.labels("posts")) == 3


@running
async def test_a_bulk_label_answers_the_lease_of_its_labeler() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.service.add_labels("posts", [("p1", "ann", "spam")])
        assert len(b.live.leases) == 0
        answer = await b.service.label(lease.token, "spam")
        assert answer.said == "spam"
        assert len(b.storage.labels("posts")) == 1


@running
async def test_a_label_that_came_in_bulk_after_the_lease_was_over_is_no_conflict() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.pass_time(lease.ttl + 1)
        await b.service.add_labels("posts", [("p1", "ann", "spam")])
        assert (await b.service.label(lease.token, "spam")).said == "spam"
        assert len(b.storage.labels("posts")) == 1


@running
async def test_who_was_barred_before_a_restart_is_refused_and_the_others_are_not() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.service.release(lease.token, bar=True)
    async with bench(b.storage, b.clock) as b:
        rows = [(item, name, "ok") for item in ("p1", "p2") for name in ("ann", "bob")]
        got = await b.service.add_labels("posts", rows)
        refused = [row[:2] for row, o in zip(rows, got, strict=True) if o.status == "refused"]
        assert refused == [(lease.item, "ann")]
        assert len(b.storage.labels("posts")) == 3


@running
async def test_newcomers_join_an_open_panel_by_their_labels() -> None:
    async with bench(open_panel=True, panel=(), learning="then-serve:5") as b:
        await b.add("p1")
        got = await b.service.add_labels("posts", [("p1", "dan", "ok"), ("p1", "eve", "ok")])
        assert [o.status for o in got] == ["accepted"] * 2
        assert [v.id for v in await b.service.labelers("posts")] == ["dan", "eve"]


@running
async def test_what_is_too_much_or_no_name_is_refused_as_a_whole() -> None:
    async with bench(server=ServiceSettings(max_batch=2)) as b:
        with pytest.raises(TooMuch):
            await b.service.add_labels("posts", [("p1", "ann", "ok")] * 3)
        with pytest.raises(TooMuch):
            await b.service.add_items("posts", [ItemIn(str(k)) for k in range(3)])
        with pytest.raises(InputError, match="expected 1 to 200"):
            await b.service.add_labels("posts", [("p1", "", "ok")])


@running
async def test_asking_in_vain_opens_no_closed_panel() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1")
        lease = await b.take("ann")
        await b.service.label(str(lease.token), "ok")
        await b.pass_time(10)
        with pytest.raises(NotFound):
            await b.service.next("posts", "stranger")
        (outcome,) = await b.service.add_labels("posts", [("p1", "stranger", "ok")])
        assert (outcome.status, outcome.code) == ("refused", "unknown_labeler")
        assert "stranger" not in {view.id for view in await b.service.labelers("posts")}


@running
async def test_whoever_was_given_something_is_heard_after_it_left_the_panel() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        rest = [member for member in PANEL if member["id"] != "ann"]
        await b.service.change_stream("posts", {"panel": rest}, "me")
    async with bench(b.storage, b.clock) as again:
        assert (await again.service.label(str(lease.token), "ok")).said == "ok"


@running
async def test_labelers_decide_no_items_that_they_were_not_given() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add(*(f"p{k}" for k in range(5)))
        held, had, lapsed = [await b.take(name) for name in ("ann", "bob", "cec")]
        rows = [(f"p{k}", name, "ok") for k in range(5) for name in ("ann", "bob", "cec")]
        await b.service.release(str(had.token))
        await b.pass_time(9)
        got = await b.service.add_labels(
            "posts", [*rows, ("none", "ann", "ok")], Actor("ann's", "key_7"), own=True
        )
        taken = [row[:2] for row, o in zip(rows, got, strict=False) if o.status == "accepted"]
        assert set(taken) == {(x.item, x.labeler) for x in (held, had, lapsed)}
        assert {o.code for o in got if o.status == "refused"} == {"not_given"}, "ids can be guessed"
        assert {row.key for row in b.storage.labels("posts")} == {"key_7"}
        again = await b.service.add_labels("posts", [(held.item, "ann", "ok")], own=True)
        assert [o.status for o in again] == ["exists"]
        other = await b.service.add_labels("posts", [(held.item, "ann", "spam")], own=True)
        assert [o.code for o in other] == ["changed"]


@running
async def test_what_a_labeler_had_before_a_restart_it_may_still_label() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1", "p2")
        lease = await b.take("ann")
        await b.pass_time(lease.ttl + 1)
    async with bench(b.storage, b.clock) as b:
        rows = [("p1", "ann", "ok"), ("p2", "ann", "ok")]
        got = await b.service.add_labels("posts", rows, own=True)
        assert {row[0]: o.code for row, o in zip(rows, got, strict=True)} == {
            "p1": None if lease.item == "p1" else "not_given",
            "p2": None if lease.item == "p2" else "not_given",
        }


@running
async def test_a_stream_may_take_labels_that_nobody_asked_for() -> None:
    async with bench(unasked_labels=True) as b:
        await b.add("p1")
        got = await b.service.add_labels("posts", [("p1", "ann", "ok")], own=True)
        assert [o.status for o in got] == ["accepted"]
        await b.service.change_stream("posts", {"unasked_labels": False}, "me")
        got = await b.service.add_labels("posts", [("p1", "bob", "ok")], own=True)
        assert [o.code for o in got] == ["not_given"]


@running
async def test_every_label_and_lease_has_the_key_by_which_it_came() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        items = [ItemIn(item) for item in ("p1", "p2", "p3")]
        await b.service.add_items("posts", items, Actor("robot", "key_0"))
        assert {row.key for row in b.storage.items("posts")} == {"key_0"}
        first = await b.service.next("posts", "ann", key="key_a")
        second = await b.service.next("posts", "bob", key="key_b")
        assert isinstance(first, Lease)
        assert isinstance(second, Lease)
        await b.service.label(str(first.token), "ok", key="key_c")
        await b.service.add_labels("posts", [("p3", "cec", "ok")], Actor("cec's", "key_e"))
        waiting = asyncio.create_task(b.service.next("posts", "cec", 60, "key_f"))
        await asleep(1, b)
        await b.service.release(str(second.token), key="key_d")
        assert isinstance(await waiting, Lease)
        keys = {row.item: row.key for row in b.storage.labels("posts")}
        assert keys == {first.item: "key_c", "p3": "key_e"}
        leases = {(row.key, row.ended_key) for row in b.storage.leases("posts", None)}
        assert leases == {("key_a", "key_c"), ("key_b", "key_d"), ("key_f", None)}
        shown = await b.service.item("posts", first.item)
        assert [label.key for label in shown.labels] == ["key_c"]
