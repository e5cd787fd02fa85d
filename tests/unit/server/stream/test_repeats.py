"""The setting `repeat_share`: who is asked again, and that it changes nothing but what is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.unit.server.support import Bench, Flaky, bench, running
from venire.engine import Scheduler
from venire.errors import Conflict, InputError
from venire.server import ItemIn, Lease
from venire.server.pages.setting_fields import groups_of
from venire.server.pages.story import story_of
from venire.server.reports.replays import events_of
from venire.server.settings import StreamSettings, as_body, changed, of_body
from venire.server.store.maintenance.export import write_table
from venire.server.store.maintenance.verify import verify
from venire.whatif import Plan, Recorded, rerun

AGAIN: dict[str, Any] = {"repeat_share": 1.0, "repeat_after_slots": 2, "policy": "fixed-overlap:1"}


def log_of(b: Bench, kind: str) -> list[Any]:
    return [json.loads(row.body) for row in b.storage.all_events("posts") if row.kind == kind]


def fresh(b: Bench) -> Scheduler:
    first = b.storage.snapshot("posts", 0)
    assert first is not None
    return Scheduler.restore(first.body)


async def label(b: Bench, lease: Lease, said: str) -> None:
    await b.service.label(lease.token or "", said)


async def labelled_by_ann(b: Bench, *items: str, said: str = "spam") -> None:
    """Items that ann labelled and that left, two slots ago."""
    await b.add(*items)
    await b.service.add_labels("posts", [(item, "ann", said) for item in items])
    for _ in range(3):
        await b.pass_time(10.0)
    assert not b.live.open


def test_the_setting_is_checked_stored_and_in_the_form() -> None:
    settings = StreamSettings(classes=("a", "b"))
    assert "repeat_share" not in as_body(settings, "open")
    asked = changed(settings, {"repeat_share": 0.05, "repeat_after_slots": 9})
    assert of_body(as_body(asked, "open"))[0] == asked
    fields = {f.name: f for _, group in groups_of(asked) for f in group}
    assert (fields["repeat_share"].value, fields["repeat_after_slots"].value) == ("0.05", "9")
    with pytest.raises(ValidationError, match="without repeat_share"):
        changed(settings, {"repeat_after_slots": 9})
    with pytest.raises(ValidationError, match="repeat_share"):
        changed(settings, {"repeat_share": 1.5})


@running
async def test_the_second_answer_is_no_label_and_is_told(tmp_path: Any) -> None:
    async with bench(**AGAIN) as b:
        await labelled_by_ann(b, "a", "b")
        before = b.live.engine.fingerprint()
        first = await b.take("ann")
        assert first.item in "ab"
        assert first.payload == {"text": first.item}
        assert (await b.why("ann"), await b.why("bob")) == ("empty", "empty")
        with pytest.raises(InputError, match="expected one of"):
            await label(b, first, "other")
        await label(b, first, "ok")
        await label(b, first, "ok")  # a retry
        with pytest.raises(Conflict):
            await label(b, first, "spam")
        second = await b.take("ann")
        assert {first.item, second.item} == {"a", "b"}
        await label(b, second, "spam")
        assert await b.why("ann") == "empty"
        assert b.live.engine.fingerprint() == before
        assert len(b.storage.labels("posts")) == b.live.statistics.labels == 2
        assert [row.late for row in b.storage.labels("posts")] == [False, False]
        item = await b.service.item("posts", first.item)
        assert (item.verdict, len(item.labels)) == ("spam", 1)
        assert item.confidence == pytest.approx(0.9)
        lines = story_of(item, await b.service.explain("posts", first.item))
        assert lines[-1].text == (
            "ann was asked about it again and said ok, where it had said spam; that is no label "
            "(repeat_share)."
        )
        assert log_of(b, "asked_again") == [[first.item, "ann"], [second.item, "ann"]]
        assert log_of(b, "repeated") == [
            [first.item, "ann", "spam", "ok"], [second.item, "ann", "spam", "spam"],
        ]  # fmt: skip
        view = await b.service.agreement("posts")
        [own] = view.itself
        assert (own.labeler, own.items, own.same) == ("ann", 2, 1)
        assert own.low is not None
        assert own.high is not None
        assert own.low < 0.5 < own.high
        path = tmp_path / "again.csv"
        assert write_table(b.storage, "posts", "repeats", path) == 2
        assert path.read_text().splitlines()[0] == "task,worker,label,again,at"
        again = fresh(b).follow(events_of(b.storage, "posts"))
        assert again.fingerprint() == b.live.engine.fingerprint()
        assert verify(b.storage, "posts").ok
        recorded = Recorded.of(fresh(b), events_of(b.storage, "posts"))
        assert rerun(recorded, Plan()).exits == recorded.exits


@running
async def test_only_what_left_long_enough_ago_is_asked_again_and_once() -> None:
    async with bench(**AGAIN) as b:
        await b.add("a", "open")
        await b.service.add_labels("posts", [("a", "ann", "ok"), ("a", "bob", "ok")])
        await b.pass_time(10.0)
        assert (await b.take("ann")).item == "open"  # one slot ago is too early
        await b.pass_time(10.0)
        assert (await b.take("bob")).item == "a"
        await b.service.withdraw("posts", "open")
        await b.add("c")
        await b.service.add_labels("posts", [("c", "cec", "ok")])
        for _ in range(3):
            await b.pass_time(10.0)
        await b.service.erase_payload("posts", "c", "me")
        assert await b.why("cec") == "empty"
        assert (await b.take("ann")).item == "a"


@running
async def test_a_share_of_the_work_is_that_and_a_labeler_cannot_foresee_it() -> None:
    asked = AGAIN | {"repeat_share": 0.2, "repeat_after_slots": 1}
    async with bench(**asked) as b:
        await b.service.add_items("posts", [ItemIn(f"i{n}", n) for n in range(400)])
        drawn = []
        for _ in range(300):
            lease = await b.take("ann")
            drawn.append(b.live.leases.again["ann"] > 0)
            await label(b, lease, "ok")
            await b.pass_time(10.0)
        assert 35 < sum(drawn) < 90
        assert b.live.labelers["ann"].repeats == sum(drawn)
        assert b.live.labelers["ann"].labels == 300 - sum(drawn)


@running
async def test_it_is_paid_and_the_budgets_hold() -> None:
    panel = [{"id": "ann", "competence": 0.9, "price": 1.0}]
    more = AGAIN | {"panel": panel, "budget": {"money": 3.0}, "slot_seconds": 10.0}
    async with bench(**more) as b:
        await labelled_by_ann(b, "a", "b")
        lease = await b.take("ann")
        assert b.live.engine.budget_left[0] == pytest.approx(0.0)
        await label(b, lease, "spam")
        assert b.live.labelers["ann"].money == 3.0
        await b.pass_time(10.0)
        assert await b.why("ann") == "empty"  # the money is spent
        assert len(log_of(b, "asked_again")) == 1
    async with bench(**AGAIN, label_budget=3) as b:
        await labelled_by_ann(b, "a", "b")
        lease = await b.take("ann")
        assert b.live.budget_left == 0
        await label(b, lease, "spam")
        assert b.live.budget_left == 0
        assert b.live.spent


@running
async def test_what_is_not_answered_comes_back_after_a_restart_or_not_at_all() -> None:
    storage = Flaky()
    async with bench(storage, **AGAIN) as b:
        await labelled_by_ann(b, "a", "b", "c")
        lost = await b.take("ann")
        await b.pass_time(700.0)  # its lease expires
        held = await b.take("ann")
        clock = b.clock
    async with bench(storage, clock) as b:
        await b.service.stream("posts")
        assert b.live.leases.again["ann"] == 1
        await label(b, held, "spam")
        await label(b, lost, "spam")  # late, or the same item once more
        unsure = await b.take("ann")
        await b.service.abstain(unsure.token or "")
        assert b.live.leases.again["ann"] == 0
        record = b.live.labelers["ann"]
        assert record.repeats == len(storage.repeats("posts")) == len({held.item, lost.item})
        assert verify(storage, "posts").ok
        again = fresh(b).follow(events_of(storage, "posts"))
        assert again.fingerprint() == b.live.engine.fingerprint()
        clock = b.clock
    async with bench(storage, clock) as b:
        await b.service.stream("posts")
        assert b.live.labelers["ann"].repeats == record.repeats
        assert b.live.repeats.answers == record.repeats
