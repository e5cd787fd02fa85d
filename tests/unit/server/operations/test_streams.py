"""Streams and their settings: made, changed live, paused, closed, and a budget of labels."""

import pytest
from pydantic import ValidationError

from tests.unit.server.support import Flaky, bench, running, settings_of
from venire.errors import Conflict, InputError, NotFound, StateError, TooMuch
from venire.server import ItemIn, Lease, ServiceSettings, StreamSettings
from venire.server.operations.streams import StreamOperations
from venire.server.stream.change_batch import Batch


@running
async def test_a_stream_made_twice_is_one_and_with_other_settings_a_conflict() -> None:
    async with bench() as b:
        first = await b.service.stream("posts")
        assert await b.service.create_stream("posts", settings_of(), "me") == first
        with pytest.raises(Conflict):
            await b.service.create_stream("posts", settings_of(max_overlap=5), "me")
        with pytest.raises(InputError, match="stream name"):
            await b.service.create_stream("a/b", settings_of(), "me")
        with pytest.raises(NotFound):
            await b.service.stream("nowhere")
        with pytest.raises(InputError, match="did you mean"):
            await b.service.create_stream("more", settings_of(policy="gredy"), "me")
        assert [view.name for view in await b.service.streams()] == ["posts"]


@running
async def test_a_stream_that_learns_nothing_must_be_told() -> None:
    async with bench() as b:
        for panel, why in (((), "nobody is on the panel"), (({"id": "dan"},), "'dan' has no comp")):
            told = settings_of(panel=panel, open_panel=True)
            with pytest.raises(InputError, match=f"learning is 'known', but .*{why}"):
                await b.service.create_stream("more", told, "me")
        await b.service.create_stream("open", settings_of(open_panel=True), "me")
        with pytest.raises(InputError, match="does not learn the competences of newcomers"):
            await b.service.next("open", "dan")


@running
async def test_settings_change_live_and_every_version_is_kept() -> None:
    async with bench() as b:
        await b.service.change_stream("posts", {"policy": "greedy", "min_confidence": 0.95}, "me")
        await b.service.pause("posts", "you")
        assert b.live.engine.policy.name == "greedy"
        assert b.live.engine.bounds.min_confidence == 0.95
        history = await b.service.settings_history("posts")
        assert [(v.version, v.actor, v.status) for v in history] == [
            (1, "test", "running"),
            (2, "me", "running"),
            (3, "you", "paused"),
        ]
        assert history[1].settings["policy"] == "greedy"
        with pytest.raises(InputError, match="classes"):
            await b.service.change_stream("posts", {"classes": ["a", "b"]}, "me")
        with pytest.raises(InputError, match="min_labels"):
            await b.service.change_stream("posts", {"min_labels": 9, "max_overlap": 2}, "me")
        with pytest.raises(InputError, match="Extra"):
            await b.service.change_stream("posts", {"nonsense": 1}, "me")
    async with bench(b.storage, b.clock) as again:
        assert again.live.status == "paused"
        assert again.live.version == 3
        assert again.live.engine.policy.name == "greedy"


@running
async def test_a_change_that_the_engine_refuses_changes_nothing() -> None:
    async with bench() as b:
        await b.add("p1")
        before = b.live.engine.fingerprint()
        panel = [{"id": "ann", "competence": 0.9}, {"id": "dan"}]
        with pytest.raises(InputError, match="no competence"):
            await b.service.change_stream("posts", {"panel": panel, "min_labels": 2}, "me")
        view = await b.service.stream("posts")
        assert view.version == 1
        assert b.live.engine.fingerprint() == before


@running
async def test_labelers_come_and_go_by_a_change_of_the_panel() -> None:
    async with bench() as b:
        await b.add("p1", "p2", "p3")
        lease = await b.take("ann")
        panel = [
            {"id": "bob", "competence": 0.8, "capacity": 2},
            {"id": "dan", "competence": 0.6, "kind": "model"},
        ]
        await b.service.change_stream("posts", {"panel": panel}, "me")
        with pytest.raises(NotFound):
            await b.service.next("posts", "ann")
        await b.service.label(str(lease.token), "ok")  # what it holds may still come
        assert (await b.take("bob")).item != (await b.take("bob")).item
        await b.take("dan")
        kinds = {view.id: view.kind for view in await b.service.labelers("posts")}
        assert kinds["dan"] == "model"
    async with bench(b.storage, b.clock) as again:
        with pytest.raises(NotFound):
            await again.service.next("posts", "ann")


@running
async def test_no_slot_passes_while_a_stream_is_paused() -> None:
    async with bench(deadline_slots=3) as b:
        await b.add("p1")
        await b.service.pause("posts", "me")
        await b.pass_time(1000)
        assert list(b.live.open) == ["p1"]
        await b.service.resume("posts", "me")
        await b.pass_time(20)
        assert list(b.live.open) == ["p1"]
        await b.pass_time(30)
        assert [exit.reason for exit in await b.service.exits("posts")] == ["deadline"]


@running
async def test_a_closed_stream_finishes_what_it_has() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1")
        await b.service.close("posts", "me")
        with pytest.raises(StateError, match="closed"):
            await b.add("p2")
        await b.add("p1")  # again is no error
        lease = await b.take("ann")
        await b.service.label(str(lease.token), "ok")
        await b.pass_time(10)
        assert [exit.verdict for exit in await b.service.exits("posts")] == ["ok"]
        for verb in (b.service.pause, b.service.resume):
            with pytest.raises(StateError):
                await verb("posts", "me")


@running
async def test_an_item_is_known_by_its_id_and_its_content() -> None:
    async with bench() as b:
        a, other = ItemIn("p1", {"x": 1, "y": [2]}, weight=3), ItemIn("p2", "text")
        added = await b.service.add_items("posts", [a, other, a])
        assert [x.status for x in added] == ["created", "created", "exists"]
        same = ItemIn("p1", {"y": [2], "x": 1}, weight=3)
        assert [x.status for x in await b.service.add_items("posts", [same])] == ["exists"]
        for changed in (ItemIn("p1", {"x": 2}, weight=3), ItemIn("p1", {"x": 1, "y": [2]})):
            with pytest.raises(Conflict):
                await b.service.add_items("posts", [ItemIn("p3"), changed])
        assert sorted(b.live.open) == ["p1", "p2"]  # nothing of those requests
        await b.service.withdraw("posts", "p1")
        assert [x.status for x in await b.service.add_items("posts", [same])] == ["exists"]
    async with bench(b.storage, b.clock) as again:
        assert [x.status for x in await again.service.add_items("posts", [same])] == ["exists"]
        with pytest.raises(Conflict):
            await again.service.add_items("posts", [ItemIn("p1", 5)])


@pytest.mark.parametrize(
    "item",
    [
        ItemIn(""),
        ItemIn("x" * 201),
        ItemIn("a\nb"),
        ItemIn("p", weight=0),
        ItemIn("p", weight=float("nan")),
        ItemIn("p", payload=float("inf")),
        ItemIn("p", payload={1, 2}),
        ItemIn("p", eligible="ann"),  # type: ignore[arg-type]
    ],
)
@running
async def test_items_that_cannot_be_are_refused(item: ItemIn) -> None:
    async with bench() as b:
        with pytest.raises(InputError):
            await b.service.add_items("posts", [ItemIn("fine"), item])
        assert b.live.open == {}


@running
async def test_too_many_open_items_are_refused_for_now() -> None:
    async with bench(server=ServiceSettings(max_open_items=2)) as b:
        await b.add("p1", "p2")
        with pytest.raises(TooMuch) as refused:
            await b.add("p3")
        assert refused.value.retry_after is not None


@running
async def test_a_withdrawn_item_has_no_verdict_and_its_label_is_late() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        view = await b.service.withdraw("posts", "p1")
        assert (view.status, view.verdict) == ("withdrawn", None)
        assert (await b.service.withdraw("posts", "p1")).status == "withdrawn"
        assert (await b.service.label(str(lease.token), "ok")).late
        with pytest.raises(NotFound):
            await b.service.withdraw("posts", "p2")
        assert (await b.service.insights("posts")).withdrawn == 1


@running
async def test_when_the_budget_is_spent_items_leave_with_what_they_have() -> None:
    async with bench(label_budget=3) as b:
        await b.add("p1", "p2", "p3")
        leases = [await b.take(name) for name in ("ann", "bob", "cec")]
        assert (await b.service.insights("posts")).budget_left == 0
        for lease in leases:
            await b.service.label(str(lease.token), "ok")
        assert await b.why("ann") == "budget_spent"
        await b.pass_time(10)
        exits = await b.service.exits("posts")
        assert {exit.item for exit in exits} == {"p1", "p2", "p3"}
        assert sum(exit.labels for exit in exits) == 3
        assert {exit.reason for exit in exits} == {"budget"}
        assert (await b.service.explain("posts", "p1")).why == "the budget of labels was spent"
    async with bench(b.storage, b.clock) as b:
        await b.add("late")  # what comes then leaves at the end of its slot, with nothing
        await b.pass_time(10)
        left = (await b.service.exits("posts", after=3))[0]
        assert (left.reason, left.labels, left.verdict) == ("budget", 0, None)
        await b.add("p4")
        await b.service.change_stream("posts", {"label_budget": 4}, "me")
        assert (await b.take("ann")).item == "p4"


@running
async def test_a_lease_that_ends_gives_its_label_back_to_the_budget() -> None:
    async with bench(label_budget=1) as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert await b.why("bob") == "budget_spent"
        await b.pass_time(lease.ttl + 1)
        await b.take("bob")


@running
async def test_delay_cost_is_in_units_of_weight() -> None:
    async with bench(delay_cost=4.0, default_weight=8.0, policy="greedy") as b:
        await b.add("p1")
        assert b.live.engine.ranking("ann", 1)[0][1] == pytest.approx(2 * (1 - 9 ** (-0.4)))
        lease = await b.take("ann")
        assert lease.gain == pytest.approx(8 * (1 - 9 ** (-0.4)))


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": ["a", "a"]},
        {"panel": [{"id": "ann"}, {"id": "ann"}]},
        {"panel": [], "open_panel": False},
        {"lease_floor_seconds": 10, "lease_ceiling_seconds": 5},
        {"min_confidence": 1.5},
        {"slot_seconds": 0},
        {"panel": [{"id": "a\x00"}]},
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        StreamSettings.model_validate({"classes": ["a", "b"], **changes})


@running
async def test_slots_that_find_nothing_to_do_write_nothing() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1")
        before = storage.writes
        for _ in range(50):
            await b.pass_time(10)
        assert storage.writes == before
        assert b.live.engine.slot == 50
        assert isinstance(await b.service.next("posts", "ann"), Lease)


@running
async def test_a_guest_goes_when_the_panel_is_closed() -> None:
    async with bench(open_panel=True, learning="while-serving", min_labels=1) as b:
        await b.add("p1", eligible=["guest"])
        lease = await b.take("guest")
        assert "guest" in b.live.engine.seated
        await b.service.change_stream("posts", {"open_panel": False}, "me")
        assert sorted(b.live.engine.seated) == ["ann", "bob", "cec"]
        with pytest.raises(NotFound):
            await b.service.next("posts", "guest")
        await b.service.label(str(lease.token), "ok")  # what it holds may still come
        await b.service.change_stream("posts", {"open_panel": True}, "me")
        await b.add("p2", eligible=["guest"])
        assert (await b.take("guest")).item == "p2"
        panel = [*b.live.settings.model_dump()["panel"], {"id": "guest", "capacity": 3}]
        await b.service.change_stream("posts", {"panel": panel}, "me")
        await b.add("p3", eligible=["guest"])
        assert (await b.take("guest")).item == "p3"  # a guest who becomes a member has its room


@running
async def test_whoever_kept_a_place_without_a_right_to_it_goes_when_the_stream_is_loaded() -> None:
    async with bench(open_panel=True, learning="while-serving") as b:
        assert await b.why("guest") == "empty"
        live = b.live
        settings = live.settings.model_copy(update={"open_panel": False})
        live.settings = settings  # as servers did it that forgot to tell the engine
        batch = Batch()
        batch.first = [StreamOperations(b.service.runtime)._new_version(live, "me")]
        await b.service.runtime.commit(live, batch)
    async with bench(b.storage, b.clock) as again:
        assert "guest" not in again.live.engine.seated
        n = again.live.n
        await again.service.runtime.flush()
        assert again.storage.events("posts")[-1].kind == "left"
    async with bench(b.storage, b.clock) as third:
        assert third.live.n == n


@running
async def test_a_request_may_hold_nothing() -> None:
    async with bench() as b:
        assert await b.service.add_items("posts", []) == []
        assert await b.service.add_labels("posts", []) == []
