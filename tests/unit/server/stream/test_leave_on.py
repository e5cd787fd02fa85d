"""The setting `leave_on`: stored, heeded for every way in which a label comes, replayed, told."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.unit.server.support import Bench, bench, running
from tests.unit.server.webhooks.test_deliveries import LOCAL, _only_when_told_to, receiver
from venire.engine import Scheduler
from venire.server.messages import GoldIn
from venire.server.pages.setting_fields import groups_of
from venire.server.pages.story import story_of
from venire.server.reports.replays import events_of
from venire.server.settings import StreamSettings, as_body, changed, of_body

_ = _only_when_told_to

PANEL = [
    {"id": "ann", "kind": "person"},
    {"id": "bob", "kind": "person"},
    {"id": "gpt", "kind": "judge"},
    {"id": "chief", "kind": "person", "trusted": True},
]
RULES: dict[str, Any] = {
    "classes": ("illegal", "spam", "ok"),
    "panel": PANEL,
    "learning": "while-serving",
    "policy": "fixed-overlap:3",
    "min_labels": 3,
    "leave_on": {"illegal": ["kind:person"], "spam": ["gpt"]},
}


def replayed(b: Bench) -> Scheduler:
    first = b.storage.snapshot("posts", 0)
    assert first is not None
    return Scheduler.restore(first.body).follow(events_of(b.storage, "posts"))


def test_the_setting_is_checked_stored_and_in_the_form() -> None:
    settings = StreamSettings(classes=("a", "b"))
    assert "leave_on" not in as_body(settings, "open")
    ruled = changed(settings, {"leave_on": {"a": ["ann", "kind:person"]}})
    kept = json.loads(as_body(ruled, "open"))["settings"]["leave_on"]
    assert kept == {"a": ["ann", "kind:person"]}
    assert of_body(as_body(ruled, "open"))[0] == ruled
    [field] = [f for _, group in groups_of(ruled) for f in group if f.name == "leave_on"]
    assert json.loads(field.value) == kept
    for wrong, why in (
        ({"c": ["ann"]}, "names the class 'c'"),
        ({"a": []}, "at least 1 item"),
        ({"a": "ann"}, "leave_on"),
    ):
        with pytest.raises(ValidationError, match=why):
            changed(settings, {"leave_on": wrong})


@running
async def test_one_word_is_enough_by_lease_in_bulk_and_as_gold() -> None:
    async with bench(server=LOCAL, **RULES) as b, receiver() as hook:
        await b.service.webhooks.add("posts", hook.url)
        await b.add("a", "b", "c", "d", "e")
        lease = await b.take("ann")
        assert lease.item == "a"
        await b.service.label(lease.token or "", "illegal")
        await b.service.add_labels("posts", [("b", "gpt", "spam"), ("b", "ann", "ok")])
        await b.service.add_labels("posts", [("c", "gpt", "illegal"), ("c", "ann", "spam")])
        await b.service.add_gold("posts", [GoldIn("d", "illegal")], labeler="chief")
        await b.service.add_gold("posts", [GoldIn("e", "illegal")], "ann")  # an admin's key
        given = {(await b.take("bob")).item, (await b.take("gpt")).item}
        assert given <= {"c", "e"}
        await b.pass_time(10.0)
        left = {x.id: x for x in [await b.service.item("posts", i) for i in "abcde"]}
        why = {name: x.exit.reason for name, x in left.items() if x.exit is not None}
        assert why == dict.fromkeys(("a", "b", "d"), "leave_on")
        assert [left[i].verdict for i in ("a", "b", "d")] == ["illegal", "spam", "illegal"]
        assert left["d"].confidence == 1.0
        assert replayed(b).fingerprint() == b.live.engine.fingerprint()
        await asyncio.gather(*await b.service.webhooks.deliveries.send_due())
        sent = [json.loads(body)["data"] for _, body in hook.got]
        assert {x["item"]: x["reason"] for x in sent} == why

        told = await b.service.explain("posts", "b", True)
        assert told.why == "gpt said spam, and its word is enough for that (leave_on)"
        assert told.enough is not None
        assert (told.enough.labeler, told.enough.said) == ("gpt", "spam")
        lines = [line.text for line in story_of(left["b"], told, ())]
        assert lines[-2] == (
            "The word of gpt is enough for spam (leave_on): nobody else is asked, and the item "
            "leaves at the end of the slot."
        )
        assert lines[-1].startswith("It left as spam with 2 labels, confidence ")
        assert lines[-1].endswith("because gpt said spam, and its word is enough for that "
                                  "(leave_on).")  # fmt: skip


@running
async def test_a_change_holds_for_what_is_said_from_then_on_also_after_a_restart() -> None:
    async with bench(**RULES | {"leave_on": {}}) as b:
        await b.add("a", "b")
        await b.service.add_labels("posts", [("a", "ann", "illegal")])
        rule = {"illegal": ["kind:person"]}
        await b.service.change_stream("posts", {"leave_on": rule}, "me")
        await b.service.add_labels("posts", [("a", "gpt", "illegal"), ("b", "bob", "illegal")])
        storage, clock = b.storage, b.clock
        assert set(b.live.engine.state.sufficed) == {"b"}
    async with bench(storage, clock) as b:
        await b.service.stream("posts")
        assert set(b.live.engine.state.sufficed) == {"b"}
        await b.pass_time(10.0)
        assert set(b.live.open) == {"a"}
        assert replayed(b).fingerprint() == b.live.engine.fingerprint()
