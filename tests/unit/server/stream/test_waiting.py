"""Long poll: woken by what changes, the longest first, and nobody who has gone."""

import asyncio
from collections.abc import Iterable

import pytest

from tests.unit.server.support import Flaky, asleep, bench, running, until
from venire.errors import TooMuch
from venire.model import Assignment, NoWork
from venire.server import Lease, Nothing, ServiceSettings


@running
async def test_arrivals_wake_those_who_wait_the_longest_first() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        order = []

        async def ask(name: str) -> None:
            got = await b.service.next("posts", name, wait=60)
            assert isinstance(got, Lease)
            order.append((name, got.item))

        asks = []
        for count, name in enumerate(("cec", "ann", "bob"), start=1):
            asks.append(asyncio.create_task(ask(name)))
            await asleep(count, b)
        for item in ("p1", "p2", "p3"):
            await b.add(item)
            await asyncio.sleep(0.01)
        await asyncio.gather(*asks)
        assert order == [("cec", "p1"), ("ann", "p2"), ("bob", "p3")]
        assert b.service.runtime.waiting == 0


@running
async def test_a_release_and_an_expiry_wake_too() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1")
        first = await b.take("ann")
        assert first.token is not None
        ask = asyncio.create_task(b.service.next("posts", "bob", wait=60))
        await asleep(1, b)
        await b.service.release(first.token)
        second = await ask
        assert isinstance(second, Lease)
        ask = asyncio.create_task(b.service.next("posts", "cec", wait=60))
        await asleep(1, b)
        await b.pass_time(second.ttl + 1)
        assert isinstance(await ask, Lease)


@running
async def test_a_new_slot_wakes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(policy="fixed-overlap:1") as b:
        engine, give = b.live.engine, b.live.engine.assign

        def patient(asked: Iterable[str] | None = None, ahead: int = 0) -> tuple[Assignment, ...]:
            return give(asked, ahead) if engine.slot else ()

        monkeypatch.setattr(engine, "assign", patient)
        await b.add("p1")
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=5))
        await asleep(1, b)
        await b.pass_time(10)
        assert isinstance(await ask, Lease)


@running
async def test_whoever_waited_in_vain_is_told_why() -> None:
    async with bench() as b:
        assert await b.service.next("posts", "ann", wait=0.02) == Nothing(NoWork.EMPTY)


@running
async def test_one_who_has_gone_is_given_nothing() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
        ask.cancel()
        await asyncio.gather(ask, return_exceptions=True)
        await b.add("p1")
        assert len(b.live.leases) == 0


@running
async def test_work_for_one_who_goes_while_it_is_written_is_taken_back() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
        add = asyncio.create_task(b.add("p1"))
        while not b.live.leases:
            await asyncio.sleep(0)
        ask.cancel()
        await asyncio.gather(add, ask, return_exceptions=True)
        rows = b.storage.leases
        await until(lambda: [row.status for row in rows("posts", None)] == ["released"])
        assert not b.live.leases
        assert (await b.take("bob")).item == "p1"


@running
async def test_the_number_of_those_who_wait_is_bounded() -> None:
    async with bench(server=ServiceSettings(max_waiting=2)) as b:
        asks = [
            asyncio.create_task(b.service.next("posts", name, wait=60)) for name in ("ann", "bob")
        ]
        await asleep(2, b)
        with pytest.raises(TooMuch) as refused:
            await b.service.next("posts", "cec", wait=60)
        assert refused.value.retry_after == 1
        for ask in asks:
            ask.cancel()
        await asyncio.gather(*asks, return_exceptions=True)
        assert b.service.runtime.waiting == 0


@running
async def test_stopping_sends_those_who_wait_home() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        ask = asyncio.create_task(b.service.next("posts", "ann", wait=60))
        await asleep(1, b)
    assert await ask == Nothing(NoWork.EMPTY)


@running
async def test_many_wait_and_each_gets_one() -> None:
    names = [f"w{k}" for k in range(60)]
    panel = [{"id": name, "competence": 0.8} for name in names]
    async with bench(panel=panel, policy="fixed-overlap:1") as b:
        asks = [asyncio.create_task(b.service.next("posts", name, wait=60)) for name in names]
        await asleep(60, b)
        await b.add(*(f"p{k}" for k in range(60)))
        got = await asyncio.gather(*asks)
        assert len({lease.item for lease in got if isinstance(lease, Lease)}) == 60


@running
async def test_exits_and_events_are_waited_for() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        events = b.service.events("posts", after=0)
        exits = asyncio.create_task(b.service.exits("posts", wait=60))
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.service.label(lease.token, "spam")
        await b.pass_time(10)
        assert [(exit.item, exit.verdict) for exit in await exits] == [("p1", "spam")]
        seen = [await anext(events) for _ in range(4)]
        assert [event.kind for event in seen] == ["arrived", "assigned", "observed", "closed"]
        assert [event.n for event in seen] == [1, 2, 3, 4]
        assert seen[2].body == {
            "labels": [{"item": "p1", "labeler": "ann", "said": "spam", "late": False}]
        }
        assert await b.service.exits("posts", after=1) == []


@running
async def test_those_who_follow_are_told_of_what_somebody_did_who_has_gone() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        position = b.service.runtime.log_position("posts")
        before, storage.lag = position.event, 0.2
        add = asyncio.create_task(b.add("p1"))
        while not b.live.open:
            await asyncio.sleep(0.001)
        add.cancel()
        await asyncio.gather(add, return_exceptions=True)
        assert await position.wait_for_event(before, 20)
