"""The confidence as a floor, through the service: who asks gets what is below it."""

from __future__ import annotations

import dataclasses

import pytest

from tests.unit.server.support import bench, running
from venire.engine import Scheduler
from venire.model import Bounds
from venire.scheduling import Policy
from venire.scheduling.by_name import exported
from venire.server import Lease
from venire.server.messages import ExitView
from venire.server.store import Insert
from venire.server.store.maintenance.verify import verify

NAMES = ("ann", "bob", "cec")


@pytest.mark.parametrize("policy", sorted(exported(Policy)))
@running
async def test_under_every_policy_the_server_asks_until_it_is_sure(policy: str) -> None:
    async with bench(policy=policy, min_confidence=0.96, default_weight=0.01) as b:
        await b.add("same", "mixed")
        for _ in range(6):
            for name in NAMES:
                while isinstance(got := await b.service.next("posts", name), Lease):
                    mixed = got.item == "mixed" and name == "bob"
                    await b.service.label(str(got.token), "ok" if mixed else "spam")
            await b.pass_time(10)
        left = {exit.item: exit for exit in await b.service.exits("posts")}
        assert (left["same"].reason, left["mixed"].reason) == ("confident", "undecided")
        assert left["same"].confidence >= 0.96 > left["mixed"].confidence
        assert left["mixed"].labels == 3
        assert (await b.service.insights("posts")).reasons == {"confident": 1, "undecided": 1}
        why = (await b.service.explain("posts", "mixed")).why
        assert "below min_confidence" in why
        await b.service.stop()
        assert verify(b.storage, "posts").differences == ()


@running
async def test_leases_that_end_and_labels_too_late_do_not_let_it_go() -> None:
    async with bench(policy="fixed-overlap:1", min_confidence=0.95) as b:
        await b.add("p1")
        lost = await b.take("ann")  # her label alone, of 0.9, cannot be enough
        taken = await b.take("bob")
        assert await b.why("cec") == "all_leased"  # the two can
        await b.pass_time(lost.ttl + 10)
        assert await b.service.exits("posts") == []
        again = await b.take("cec")
        await b.service.label(str(lost.token), "spam")
        await b.service.label(str(taken.token), "spam")
        await b.service.release(str(again.token))
        await b.pass_time(10)
        (left,) = await b.service.exits("posts")
        assert (left.reason, left.labels) == ("confident", 2)


@running
async def test_budget_and_deadline_stay_the_reason() -> None:
    async with bench(min_confidence=0.999, deadline_slots=3) as b:
        await b.add("p1")
        for _ in range(5):
            await b.pass_time(10)
        assert [exit.reason for exit in await b.service.exits("posts")] == ["deadline"]
    async with bench(min_confidence=0.999, label_budget=1) as b:
        await b.add("p1")
        await b.service.label(str((await b.take("ann")).token), "ok")
        await b.pass_time(10)
        assert [exit.reason for exit in await b.service.exits("posts")] == ["budget"]


@running
async def test_a_stream_of_an_older_version_gets_its_floor_when_it_is_loaded() -> None:
    async with bench(policy="fixed-overlap:1", min_confidence=0.99) as b:
        first = b.storage.snapshots("posts")[0]
        engine = Scheduler.restore(first.body)
        engine.change(bounds=dataclasses.replace(engine.bounds, floor=False))
        engine.drain()
        captured = engine.capture()
        captured.head["events"] = 0
        del captured.head["bounds"]["floor"]
    b.storage.write([Insert([first._replace(body=captured.pack())])])
    async with bench(b.storage, b.clock) as again:
        assert again.live.engine.bounds == Bounds(1, None, 0.99)
        await again.add("p1")
        await again.service.label(str((await again.take("ann")).token), "ok")
        await again.pass_time(10)
        assert await again.service.exits("posts") == []
        assert isinstance(await again.service.next("posts", "bob"), Lease)
    assert verify(b.storage, "posts").differences == ()


def test_an_exit_tells_its_confidence() -> None:
    assert {"confidence", "reason"} <= {field.name for field in dataclasses.fields(ExitView)}
