"""The setting `routes`: checked when it is made, followed once, in the logs and in the stories."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.unit.server.support import Bench, Flaky, bench, running, settings_of
from tests.unit.server.webhooks.test_deliveries import LOCAL, _only_when_told_to, receiver
from venire.engine import Scheduler
from venire.errors import InputError, StateError, StoreDown
from venire.server.messages import GoldIn, ItemIn
from venire.server.operations import routing
from venire.server.pages.setting_fields import groups_of
from venire.server.pages.story import story_of
from venire.server.reports.replays import events_of
from venire.server.settings import StreamSettings, as_body, changed, of_body
from venire.server.store import RoutedRow
from venire.server.store.maintenance.verify import verify

_ = _only_when_told_to

DOUBTS = {"verdict": "spam", "below": 0.95, "stream": "experts"}


@pytest.fixture(autouse=True)
def _followed_when_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "POLL_SECONDS", 3600.0)


async def with_experts(b: Bench, *routes: dict[str, Any], **more: Any) -> None:
    """A second stream, and routes to it."""
    await b.service.create_stream("experts", settings_of(**more), "test")
    await b.service.change_stream("posts", {"routes": routes or [DOUBTS]}, "test")


async def labelled(b: Bench, item: str, *said: str) -> None:
    who = ("ann", "bob", "cec")
    labels = [(item, name, word) for name, word in zip(who, said, strict=False)]
    await b.service.add_labels("posts", labels)


def replays(b: Bench, stream: str) -> bool:
    first = b.storage.snapshot(stream, 0)
    assert first is not None
    again = Scheduler.restore(first.body).follow(events_of(b.storage, stream))
    return again.fingerprint() == b.service.runtime.streams[stream].engine.fingerprint()


def events(b: Bench, kind: str) -> list[Any]:
    return [json.loads(row.body) for row in b.storage.all_events("posts") if row.kind == kind]


def test_the_setting_is_checked_stored_and_in_the_form() -> None:
    settings = StreamSettings(classes=("a", "b"))
    assert "routes" not in as_body(settings, "open")
    routes = [{"verdict": "a", "at_least": 0.5, "below": 0.8, "stream": "x"}, {"webhook": "wh_1"}]
    routed = changed(settings, {"routes": routes})
    assert of_body(as_body(routed, "open"))[0] == routed
    assert routed.places("a", 0.5) == [("stream", "x"), ("webhook", "wh_1")]
    assert routed.places("a", 0.8) == routed.places(None, 0.0) == [("webhook", "wh_1")]
    [field] = [f for _, group in groups_of(routed) for f in group if f.name == "routes"]
    assert [one.name for one in field.columns] == [
        "verdict",
        "at_least",
        "below",
        "stream",
        "webhook",
    ]
    for wrong, why in (
        ({"stream": "x", "webhook": "wh_1"}, "expected one of them"),
        ({"verdict": "a"}, "expected one of them"),
        ({"verdict": "c", "stream": "x"}, "names the class 'c'"),
        ({"at_least": 0.8, "below": 0.8, "stream": "x"}, "to be less"),
        ({"stream": "a/b"}, "pattern"),
    ):
        with pytest.raises(ValidationError, match=why):
            changed(settings, {"routes": [wrong]})


@running
async def test_items_arrive_once_and_both_logs_replay() -> None:
    async with bench() as b:
        await with_experts(b, DOUBTS, {"at_least": 0.9, "below": 0.95, "stream": "experts"})
        await b.add("sure", "split", "good", excluded=("cec",), weight=3.0)
        await labelled(b, "sure", "spam", "spam")
        await labelled(b, "split", "ok", "spam")
        await labelled(b, "good", "ok", "ok")
        await b.service.change_stream("posts", {"max_overlap": 2}, "me")
        await b.pass_time(10.0)
        split = await b.service.item("posts", "split")
        assert (split.verdict, split.routed) == ("ok", ()), "the better of two said ok"
        await b.add("doubt")
        await labelled(b, "doubt", "spam")
        await b.service.withdraw("posts", "doubt")
        await b.add("p/1 ü", "p2")
        await labelled(b, "p/1 ü", "spam", "ok")
        await labelled(b, "p2", "spam", "ok")
        await b.pass_time(10.0)
        waiting = await b.service.item("posts", "p2")
        assert [(one.target, one.settled_at) for one in waiting.routed] == [("experts", None)]
        for _ in range(3):
            await b.service.routing.follow()
        told = await b.service.item("posts", "p2")
        assert [one.fault for one in told.routed] == [None]
        assert told.routed[0].settled_at is not None
        there = b.service.runtime.streams["experts"]
        assert set(there.open) == {"p/1 ü", "p2"}
        assert json.loads(b.storage.payloads("experts", ["p2"])["p2"]) == {"text": "p2"}
        assert events(b, "routed") == [[x, "stream", "experts", None] for x in ("p/1 ü", "p2")]
        assert replays(b, "posts")
        assert replays(b, "experts")
        assert verify(b.storage, "posts").ok
        assert verify(b.storage, "experts").ok
        lines = story_of(told, await b.service.explain("posts", "p2"))
        assert lines[-1].text.endswith(", where it arrived.")
        lines = story_of(waiting, await b.service.explain("posts", "p2"))
        assert lines[-1].text.endswith("(routes): it is on its way.")
        came = await b.service.item("experts", "p2")
        assert [one.stream for one in came.routed_from] == ["posts"]
        texts = [x.text for x in story_of(came, await b.service.explain("experts", "p2"))]
        assert "It came from stream posts, by its verdict there (routes)." in texts
        audit = [row for row in b.storage.audit() if row.action == "items.add"]
        assert "routes of posts" in {row.actor for row in audit}


@running
async def test_who_may_label_it_goes_with_it_and_what_comes_back_does_not() -> None:
    async with bench() as b:
        await with_experts(b, {"stream": "experts"}, default_weight=7.0)
        await b.add("a", excluded=("ann",), eligible=("ann", "bob"), weight=3.0)
        await b.service.add_labels("posts", [("a", "bob", "spam")])
        await b.pass_time(10.0)
        await b.service.routing.follow()
        a = await b.service.item("experts", "a")
        assert (a.excluded, a.eligible, a.weight) == (("ann",), ("ann", "bob"), 7.0)
        await b.service.send_back("posts", "a", "me", 0.5)
        await b.service.add_labels("posts", [("a~2", "bob", "spam")])
        for _ in range(3):
            await b.pass_time(10.0)
        await b.service.routing.follow()
        assert [row.item for row in b.storage.routed("posts")] == ["a"]


@running
async def test_loops_and_what_there_is_not_are_refused_when_the_setting_is_made() -> None:
    async with bench() as b:
        new, change = b.service.create_stream, b.service.change_stream
        await new("b", settings_of(routes=[{"stream": "posts"}]), "me")
        await new("c", settings_of(routes=[{"stream": "b"}]), "me")
        for target, why in (
            ("posts", "circle, posts > posts"),
            ("b", "circle, posts > b > posts"),
            ("c", "circle, posts > c > b > posts"),
            ("nothing", "names the stream 'nothing', which does not exist"),
        ):
            with pytest.raises(InputError, match=why):
                await change("posts", {"routes": [{"stream": target}]}, "me")
        with pytest.raises(InputError, match="circle, d > d"):
            await new("d", settings_of(routes=[{"stream": "d"}]), "me")
        with pytest.raises(InputError, match="create the webhook first"):
            await new("d", settings_of(routes=[{"webhook": "wh_1"}]), "me")
        both = [
            change("posts", {"routes": [{"stream": "e"}]}, "me"),
            change("e", {"routes": [{"stream": "posts"}]}, "me"),
        ]
        await new("e", settings_of(), "me")
        done = await asyncio.gather(*both, return_exceptions=True)
        assert [type(one) for one in done].count(InputError) == 1
        await b.service.close("b", "me")
        await b.service.delete_stream("b", "me")
        with pytest.raises(InputError, match="circle, b > c > b"):
            await new("b", settings_of(routes=[{"stream": "c"}]), "me")


@running
async def test_what_cannot_arrive_is_said_and_not_tried_for_ever() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await with_experts(b, {"stream": "experts"})
        await b.service.add_items("experts", [ItemIn("same", {"text": "same"})])
        await b.service.add_items("experts", [ItemIn("other", {"text": "another"})])
        await b.add("same", "other", "fine", "erased")
        for item in ("same", "other", "fine", "erased"):
            await labelled(b, item, "spam", "spam")
        await b.pass_time(10.0)
        await b.service.erase_payload("posts", "erased", "me")
        await b.service.routing.follow()
        faults = {row.item: row.fault for row in storage.routed("posts")}
        assert faults == {
            "same": None, "fine": None, "other": "it has another item of that id",
            "erased": "its payload was erased before it arrived",
        }  # fmt: skip
        await b.add("late")
        await labelled(b, "late", "spam", "spam")
        await b.pass_time(10.0)
        await b.service.close("experts", "me")
        await b.service.routing.follow()
        late = await b.service.item("posts", "late")
        lines = story_of(late, await b.service.explain("posts", "late"))
        assert lines[-1].text == (
            "Its verdict sends it to stream experts (routes), where it could not go: it is closed."
        )
        assert not storage.routed_waiting(9)
        await b.service.delete_stream("experts", "me")
        await b.add("last")
        await labelled(b, "last", "spam", "spam")
        await b.pass_time(10.0)
        await b.service.routing.follow()
        assert events(b, "routed")[-1] == [
            "last", "stream", "experts", "there is no such stream any more",
        ]  # fmt: skip
        assert replays(b, "posts")


@running
async def test_a_full_stream_takes_them_when_it_has_room() -> None:
    from venire.server import ServiceSettings

    async with bench(server=ServiceSettings(max_open_items=3)) as b:
        await with_experts(b, {"stream": "experts"})
        await b.service.add_items("experts", [ItemIn(x, x) for x in ("x", "y")])
        for item in ("one", "two"):
            await b.add(item)
            await labelled(b, item, "spam", "spam")
        await b.pass_time(10.0)
        await b.service.routing.follow()
        assert [row.item for row in b.storage.routed_waiting(9)] == ["two"]
        await b.service.withdraw("experts", "x")
        await b.service.routing.follow()
        assert not b.storage.routed_waiting(9)


@running
async def test_what_waits_for_a_full_stream_keeps_nothing_else_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from venire.server import ServiceSettings

    monkeypatch.setattr(routing, "PAGE", 2)
    async with bench(server=ServiceSettings(max_open_items=3)) as b:
        await b.service.create_stream("others", settings_of(), "test")
        routes = {"verdict": "spam", "stream": "experts"}, {"verdict": "ok", "stream": "others"}
        await with_experts(b, *routes)
        await b.service.add_items("experts", [ItemIn(x, x) for x in ("x", "y", "z")])
        for item in ("one", "two", "three", "good", "fine"):
            word = "ok" if item in ("good", "fine") else "spam"
            await b.add(item)
            await labelled(b, item, word, word)
            await b.pass_time(10.0)
        await b.service.routing.follow()
        assert set(b.service.runtime.streams["others"].open) == {"good", "fine"}
        waiting = [row.item for row in b.storage.routed_waiting(9)]
        assert waiting == ["one", "two", "three"]
        await b.service.withdraw("experts", "x")
        await b.service.routing.follow()
        assert set(b.service.runtime.streams["experts"].open) == {"y", "z", "one"}


@pytest.mark.parametrize("where", ["_arrive", "_settle", "commit"])
@running
async def test_a_server_that_ends_half_way_goes_on(where: str) -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await with_experts(b, {"stream": "experts"})
        await b.add("a", "b")
        for item in ("a", "b"):
            await labelled(b, item, "spam", "spam")
        await b.pass_time(10.0)

        async def ends(*_: Any) -> int:
            raise StoreDown("the server ends")

        if where == "commit":
            arrive = b.service.routing._arrive

            async def then_down(target: str, rows: list[RoutedRow]) -> None:
                await arrive(target, rows)
                storage.down = True

            b.service.routing._arrive = then_down  # type: ignore[method-assign]
        else:
            setattr(b.service.routing, where, ends)
        with pytest.raises(StoreDown):
            await b.service.routing.follow()
        storage.down = False
        clock = b.clock
    assert len(storage.routed_waiting(9)) == 2
    async with bench(storage, clock) as b:
        for _ in range(2):
            await b.service.stream("posts")
            await b.service.stream("experts")
            await b.service.routing.follow()
        assert set(b.service.runtime.streams["experts"].open) == {"a", "b"}
        assert [one[0] for one in events(b, "routed")] == ["a", "b"]
        assert replays(b, "posts")
        assert replays(b, "experts")


@running
async def test_a_webhook_gets_the_verdicts_of_its_routes_only() -> None:
    async with bench(server=LOCAL) as b, receiver() as one, receiver() as other:
        hook = await b.service.webhooks.add("posts", one.url)
        await b.service.webhooks.add("posts", other.url)
        route = {"verdict": "spam", "at_least": 0.9, "webhook": hook.id}
        await b.service.change_stream("posts", {"routes": [route]}, "me")
        with pytest.raises(StateError, match="names webhook"):
            await b.service.webhooks.remove("posts", hook.id)
        await b.add("sure", "split", "good", "gone")
        await labelled(b, "sure", "spam", "spam")
        await labelled(b, "split", "spam", "ok")
        await labelled(b, "good", "ok", "ok")
        await b.service.withdraw("posts", "gone")
        await b.pass_time(10.0)
        await b.service.add_gold("posts", [GoldIn("good", "spam"), GoldIn("split", "ok")])
        await asyncio.gather(*await b.service.webhooks.deliveries.send_due())

        def got(hook: Any) -> list[tuple[str, str]]:
            sent = [json.loads(body) for _, body in hook.got]
            return sorted((x["data"]["item"], x["type"]) for x in sent)

        assert got(one) == [("good", "item.revised"), ("sure", "item.exit")]
        assert len(got(other)) == 4 + 2
        await b.service.routing.follow()
        assert events(b, "routed") == [["sure", "webhook", hook.id, None]]
        sure = await b.service.item("posts", "sure")
        told = story_of(sure, await b.service.explain("posts", "sure"))
        assert told[-1].text == f"Its verdict sends it to webhook {hook.id} (routes)."
        await b.service.change_stream("posts", {"routes": []}, "me")
        await b.service.webhooks.remove("posts", hook.id)
