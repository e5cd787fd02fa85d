"""The store fails, the clock jumps, the server restarts: nothing is lost, nothing is wedged."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tests.unit.server.support import Bench, Flaky, asleep, bench, running, settings_of, until
from venire.engine import Scheduler
from venire.errors import Conflict, StoreDown
from venire.model import NoWork
from venire.server import ItemIn, LabelIn, Lease, Nothing, ServiceSettings
from venire.server.store import ItemRow
from venire.server.stream.live_stream import LiveStream


async def recovered(b: Bench) -> None:
    await until(lambda: b.service.up and bool(b.service.runtime.loaded()))


@running
async def test_while_the_store_is_down_everything_is_retryable_and_nothing_stays() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        storage.down = True
        with pytest.raises(StoreDown):
            await b.service.label(lease.token, "spam")
        with pytest.raises(StoreDown):
            await b.service.add_items("posts", [ItemIn("p2")])
        with pytest.raises(StoreDown):
            await b.service.next("posts", "bob")
        assert [b.service.up] == [False]
        storage.down = False
        assert (await b.service.label(lease.token, "spam")).said == "spam"  # the same again
        assert b.service.up
        assert [row.labeler for row in storage.labels("posts")] == ["ann"]
        assert list(b.live.open) == ["p1"]
        await b.service.add_items("posts", [ItemIn("p2")])


@running
async def test_whoever_waits_is_served_when_the_store_is_back() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
        storage.down = True
        with pytest.raises(StoreDown):
            await b.add("p1")
        storage.down = False
        await recovered(b)
        await b.add("p1")
        assert isinstance(await ask, Lease)


@running
async def test_whoever_is_offered_what_cannot_be_written_waits_on() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
        storage.down, storage.lag = True, 0.2  # the offer is made before the item is refused
        with pytest.raises(StoreDown):
            await b.add("p1")
        storage.down, storage.lag = False, 0.0
        await recovered(b)
        assert [ask.done(), b.service.runtime.waiting] == [False, 1]
        await b.add("p1")
        lease = await ask
        assert isinstance(lease, Lease)
        assert [row.labeler for row in storage.leases("posts")] == ["ann"]


@running
async def test_a_wait_that_ends_while_the_store_is_down_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, loop, passed = Flaky(), asyncio.get_running_loop(), 0.0
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + passed)
    async with bench(storage) as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
        storage.down, storage.lag = True, 0.2
        with pytest.raises(StoreDown):
            await b.add("p1")
        passed = 60.0  # the wait is over
        with pytest.raises(StoreDown):
            await ask


@running
async def test_work_that_is_on_disk_is_handed_over_though_the_store_has_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def gone(stream: str) -> LiveStream:
        raise StoreDown("the disk is full")

    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1")
        lease = await b.take("ann")
        ask = asyncio.create_task(b.service.next("posts", "bob", wait=5))
        await asleep(1, b)
        b.clock.advance(lease.ttl + 1)
        monkeypatch.setattr(b.service.runtime, "live_stream", gone)
        b.service.runtime.ticker.tick()
        got = await ask
        assert isinstance(got, Lease)
        assert got.item == "p1"


@running
async def test_work_whose_payload_cannot_be_read_is_given_again() -> None:
    class Blind(Flaky):
        blind = True

        def item(self, stream: str, id: str) -> ItemRow | None:
            if self.blind:
                self.blind = False
                raise StoreDown("the connection was lost")
            return super().item(stream, id)

    async with bench(Blind(), policy="fixed-overlap:1") as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=20))
        await asleep(1, b)
        await b.service.add_items("posts", [ItemIn("p1", "x" * 10_000)])
        lease = await ask
        assert isinstance(lease, Lease)
        assert lease.payload == "x" * 10_000
        kept = [row.status for row in b.storage.leases("posts", None)]
        assert sorted(kept) == ["open", "released"]


@running
async def test_nobody_is_told_of_what_is_not_on_disk() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1")
        lease, service = await b.take("ann"), b.service
        await b.pass_time(lease.ttl + 1)  # over, so that its label does not end it
        pairs: list[tuple[Awaitable[Any], Awaitable[Any]]] = [
            (
                service.add_labels("posts", [("p1", "ann", "spam")]),
                service.label(str(lease.token), "ok"),
            ),
            (
                service.add_items("posts", [ItemIn("p2", 1)]),
                service.add_items("posts", [ItemIn("p2", 2)]),
            ),
            (
                service.create_stream("more", settings_of(), "me"),
                service.create_stream("more", settings_of(), "you"),
            ),
            (
                service.change_stream("posts", {"max_overlap": 3}, "me"),
                service.change_stream("posts", {"max_overlap": 3}, "you"),
            ),
        ]
        for pair in pairs:
            storage.down, storage.lag = True, 0.2
            got = await asyncio.gather(*pair, return_exceptions=True)
            assert [type(error) for error in got] == [StoreDown, StoreDown]
            storage.down, storage.lag = False, 0.0
            await recovered(b)


@running
async def test_a_stream_that_was_thrown_away_is_loaded_again_before_anyone_asks() -> None:
    async with bench() as b:
        b.service.runtime.drop(b.live)
        await recovered(b)


@running
async def test_a_commit_whose_answer_was_lost_counts_once() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        storage.lost_answer = True
        with pytest.raises(StoreDown):
            await b.service.label(lease.token, "spam")
        assert (await b.service.label(lease.token, "spam")).said == "spam"
        assert len(storage.labels("posts")) == 1
        with pytest.raises(Conflict):
            await b.service.label(lease.token, "ok")


@running
async def test_all_that_is_queued_behind_a_failure_fails_with_it() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add(*(f"p{k}" for k in range(3)))
        leases = [await b.take(name) for name in ("ann", "bob", "cec")]
        storage.down = True
        got = await asyncio.gather(
            *(b.service.label(str(lease.token), "ok") for lease in leases), return_exceptions=True
        )
        assert all(isinstance(error, StoreDown) for error in got)
        storage.down = False
        for lease in leases:
            await b.service.label(str(lease.token), "ok")
        assert len(storage.labels("posts")) == 3


@running
async def test_a_wall_clock_that_jumps_changes_nothing() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        for jump in (3600, -7200, 3600):
            b.clock.jump(jump)
            await b.pass_time(1)
            assert len(b.live.leases) == 1
            assert b.live.engine.slot == 0
        await b.pass_time(lease.ttl)
        assert len(b.live.leases) == 0


@running
async def test_a_restart_goes_on_where_it_was_to_the_bit() -> None:
    async with bench(policy="fixed-overlap:2") as b:
        await b.add(*(f"p{k}" for k in range(9)))
        for round_ in range(4):
            for name in ("ann", "bob"):
                got = await b.service.next("posts", name)
                if isinstance(got, Lease) and (round_, name) != (3, "bob"):
                    await b.service.label(str(got.token), "spam" if round_ % 2 else "ok")
            await b.pass_time(10)
        await b.service.change_stream("posts", {"min_confidence": 0.99}, "me")
        fingerprint, n, exits = b.live.engine.fingerprint(), b.live.n, b.live.exit_n
        state = {id: entry.labels for id, entry in b.live.open.items()}
        leases = [(x.item, x.labeler) for x in b.live.leases]
        assert leases
    async with bench(b.storage, b.clock) as after:  # from the snapshot
        assert after.live.engine.fingerprint() == fingerprint
        assert (after.live.n, after.live.exit_n) == (n, exits)
        assert {id: entry.labels for id, entry in after.live.open.items()} == state
        assert [(x.item, x.labeler) for x in after.live.leases] == leases
        first = after.storage.snapshots("posts")[0]
    from venire.server.store import decode

    engine = Scheduler.restore(first.body)  # and from the log alone
    engine.follow(decode(b.storage.events("posts")))
    engine.advance(after.live.engine.slot)
    assert engine.fingerprint() == fingerprint


@running
async def test_after_a_restart_leases_have_their_full_time_and_slots_did_not_pass() -> None:
    async with bench(deadline_slots=3) as b:
        await b.add("p1")
        lease = await b.take("ann")
    b.clock.advance(1_000_000)
    async with bench(b.storage, b.clock) as again:
        assert list(again.live.open) == ["p1"]
        await again.pass_time(20)
        assert len(again.live.leases) == 1
        assert not (await again.service.label(str(lease.token), "spam")).expired


@running
async def test_the_outcome_of_a_stream_does_not_depend_on_restarts() -> None:
    outcomes = []
    for restarts in (False, True):
        storage, clock = Flaky(), None
        for hour in range(4):
            async with bench(storage, clock, policy="fixed-overlap:1") as b:
                clock = b.clock
                await b.add(*(f"h{hour}-{k}" for k in range(3)))
                for name in ("ann", "bob", "cec"):
                    got = await b.service.next("posts", name)
                    if isinstance(got, Lease):
                        await b.service.label(str(got.token), "spam" if name == "ann" else "ok")
                await b.pass_time(10)
                if not restarts:
                    for hour_ in range(hour + 1, 4):
                        await b.add(*(f"h{hour_}-{k}" for k in range(3)))
                        for name in ("ann", "bob", "cec"):
                            got = await b.service.next("posts", name)
                            if isinstance(got, Lease):
                                said = "spam" if name == "ann" else "ok"
                                await b.service.label(str(got.token), said)
                        await b.pass_time(10)
            if not restarts:
                break
        outcomes.append(
            [(row.id, row.verdict, row.confidence, row.exit_slot) for row in storage.exits("posts")]
        )
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]


@running
async def test_two_who_make_the_same_stream_at_once_make_one() -> None:
    async with bench(make=False) as b:
        views = await asyncio.gather(
            *(b.service.create_stream("posts", settings_of(), "me") for _ in range(4))
        )
        assert len({view.created_at for view in views}) == 1
        assert len(b.storage.streams()) == 1
        assert await b.service.next("posts", "ann") == Nothing(NoWork.EMPTY)


@running
async def test_a_snapshot_is_packed_in_a_thread_and_spaced_by_the_length_of_the_queue() -> None:
    async with bench(server=ServiceSettings(snapshot_every=10)) as b:
        await b.add(*(f"p{k}" for k in range(30)))
        rows = [(f"p{k}", "ann", "ok") for k in range(30)]
        await b.service.add_labels("posts", rows)
        b.service.runtime.ticker.tick()
        assert len(b.storage.snapshots("posts")) == 1  # 31 events, 30 open items
        await b.service.add_labels("posts", [(item, "bob", said) for item, _, said in rows])
        before = b.live.engine.fingerprint()
        b.service.runtime.ticker.tick()
        await b.add("later")  # while it is packed
        await until(lambda: len(b.storage.snapshots("posts")) == 2)
        packed = b.storage.snapshots("posts")[-1]
        assert packed.n == 61
        assert Scheduler.restore(packed.body).fingerprint() == before
        after = b.live.engine.fingerprint()
    async with bench(b.storage, b.clock) as again:
        assert again.live.engine.fingerprint() == after


@running
async def test_a_large_batch_lets_others_come_between() -> None:
    async with bench(policy="fixed-overlap:3") as b:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        items = [ItemIn(f"p{k}", k) for k in range(3500)]
        wrong = [*items, ItemIn("p7", "other")]
        await b.service.add_items("posts", [ItemIn("p3499", 3499)])
        with pytest.raises(Conflict):
            await b.service.add_items("posts", wrong)
        with pytest.raises(Conflict):  # found in the last piece, before the first is taken
            await b.service.add_items("posts", [*items[:3400], ItemIn("p3499", "other")])
        assert list(b.live.open) == ["p3499"]
        added = await b.service.add_items("posts", items)
        assert [x.status for x in added] == ["created"] * 3499 + ["exists"]
        before = turns
        rows: list[LabelIn | tuple[str, str, str]] = [(item.id, "ann", "ok") for item in items]
        outcomes = await b.service.add_labels("posts", [*rows, rows[0], ("p1", "ann", "spam")])
        assert [x.status for x in outcomes] == ["accepted"] * 3500 + ["exists", "refused"]
        assert turns - before >= 3
        assert len(b.storage.labels("posts")) == 3500
        beside.cancel()


@running
async def test_two_large_batches_at_once_are_one_after_the_other() -> None:
    async with bench() as b:
        one = [ItemIn(f"p{k}", 1) for k in range(2500)]
        two = [ItemIn(f"p{k}", 2) for k in range(2499, -1, -1)]
        got = await asyncio.gather(
            *(b.service.add_items("posts", items) for items in (one, two)), return_exceptions=True
        )
        assert sum(isinstance(x, Conflict) for x in got) == 1
        assert len({entry.payload for entry in b.live.open.values()}) == 1
        assert len(b.live.open) == 2500
