"""A policy that is changed while a stream is served, today and in a log of before."""

from pathlib import Path

from tests.store.store import MemoryStorage
from tests.unit.server.support import bench, running
from venire.server import Lease
from venire.server.store.maintenance.archive import read_archive
from venire.server.store.maintenance.verify import verify

DATA = Path(__file__).parents[3] / "data"


@running
async def test_a_policy_that_is_changed_live_begins_with_a_fresh_memory() -> None:
    async with bench(policy="lookahead") as b:
        for slot in range(12):
            await b.add(*(f"p{slot}-{k}" for k in range(6)), weight=20.0)
            for who in ("ann", "bob", "cec"):
                got = await b.service.next("posts", who)
                if isinstance(got, Lease):
                    await b.service.label(str(got.token), "ok")
            await b.pass_time(10)
        gauges = b.live.engine.state.raw.desk.gauges.copy()
        await b.service.change_stream("posts", {"min_labels": 1}, "me")
        assert b.live.engine.state.raw.desk.gauges.tolist() == gauges.tolist()
        assert gauges.any()
        await b.service.change_stream("posts", {"policy": "realised"}, "me")
        assert not b.live.engine.state.raw.desk.gauges.any()
        assert b.live.engine.price == 0.0
        print_of = b.live.engine.fingerprint()
    assert verify(b.storage, "posts").ok
    async with bench(b.storage, b.clock) as again:
        assert again.live.engine.fingerprint() == print_of


@running
async def test_what_an_engine_decided_that_mixed_memories_up_is_what_happened() -> None:
    """The store was written when `realised` took over what `lookahead` had remembered."""
    storage = MemoryStorage()
    read_archive(storage, DATA / "policy-change.ndjson")
    found = verify(storage, "posts")
    assert found.differences == ()
    assert (found.events, found.items, found.exits) == (287, 80, 80)
    assert found.taken > 0
    async with bench(storage) as b:
        assert b.live.engine.policy.name == "realised"
        await b.add("new")
        await b.pass_time(30)
    assert verify(storage, "posts").ok
