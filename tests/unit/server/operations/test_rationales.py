"""Why labelers say what they say: kept, shown, exported, and erased with the payload."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.server.support import bench, running
from venire.client.wire import label_row
from venire.model import LONGEST_RATIONALE, rationale_of
from venire.server import ItemIn, LabelIn
from venire.server.pages.story import story_of
from venire.server.store import ErasePayload, open_storage
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.export import TABLES
from venire.server.store.maintenance.verify import not_erased, verify

WHY = "It sells watches."


@running
async def test_a_reason_is_kept_and_told_wherever_its_label_is(tmp_path: Path) -> None:
    async with bench(policy="fixed-overlap:2") as b:
        await b.add("p1", "p2")
        assert list(TABLES["labels"](b.storage, "posts").columns) == ["task", "worker", "label"]
        lease = await b.take("ann")
        await b.service.label(str(lease.token), "spam", rationale=f" {WHY}\x00 ")
        again = await b.service.label(str(lease.token), "spam", rationale="Another.")
        assert again.said == "spam", "the first counts"
        rows = [LabelIn("p1", "bob", "ok", None, "I like it."), LabelIn("p2", "bob", "ok", 0.9)]
        assert {x.status for x in await b.service.add_labels("posts", rows)} == {"accepted"}
        await b.pass_time(10)
        late = LabelIn("p1", "cec", "spam", None, "Late, but so.")
        assert [x.status for x in await b.service.add_labels("posts", [late])] == ["late"]
        seen = await b.service.item("posts", "p1")
        assert {x.labeler: x.rationale for x in seen.labels} == {
            "ann": WHY,
            "bob": "I like it.",
            "cec": "Late, but so.",
        }
        story = [x.text for x in story_of(seen, await b.service.explain("posts", "p1"))]
        assert sum(f"It gave as its reason: “{why}”" in x for x in story
                   for why in (WHY, "I like it.", "Late, but so.")) == 3  # fmt: skip
        [review] = (await b.service.reviews("posts", kind="disputed")).items
        assert [(x.labeler, x.said, x.rationale) for x in review.rationales] == [
            ("ann", "spam", WHY),
            ("bob", "ok", "I like it."),
            ("cec", "spam", "Late, but so."),
        ]
        table = TABLES["labels"](b.storage, "posts")
        assert table.columns[3:] == ("confidence", "rationale")
        told = list(table.rows)
        assert ("p1", "ann", "spam", None, WHY) in told
        assert ("p2", "bob", "ok", 0.9, None) in told
        assert WHY not in repr(b.storage.events("posts")), "a log is never erased"
        write_archive(b.storage, tmp_path / "all.ndjson")
        with open_storage("memory:") as other:
            read_archive(other, tmp_path / "all.ndjson")
            assert other.labels("posts") == b.storage.labels("posts")
        before = b.live.engine.fingerprint()
    async with bench(b.storage, b.clock) as restarted:
        assert restarted.live.engine.fingerprint() == before
        assert verify(restarted.storage, "posts").ok


@running
async def test_reasons_are_erased_with_the_payload_and_none_comes_afterwards() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.service.add_items("posts", [ItemIn("p1", "secret"), ItemIn("p2", "open")])
        leases = {lease.item: lease for lease in [await b.take("ann"), await b.take("bob")]}
        [got] = await b.service.add_labels("posts", [LabelIn("p1", "cec", "spam", None, WHY)])
        assert got.status == "accepted", got
        await b.pass_time(10)
        await b.service.erase_payload("posts", "p1", "me")
        assert [x.rationale for x in (await b.service.item("posts", "p1")).labels] == [None]
        await b.service.label(str(leases["p1"].token), "ok", rationale="By lease.")
        assert {x.rationale for x in (await b.service.item("posts", "p1")).labels} == {None}
        assert not_erased(b.storage, "posts") == []
    async with bench(b.storage, b.clock) as b:  # it has to be looked up
        await b.service.add_labels("posts", [LabelIn("p1", "bob", "ok", None, "Much later.")])
        rows = (await b.service.item("posts", "p1")).labels
        assert len(rows) == 3
        assert {x.rationale for x in rows} == {None}


@running
async def test_reasons_that_are_there_though_they_were_erased_are_found() -> None:
    async with bench() as b:
        await b.add("p1")
        await b.service.add_labels("posts", [LabelIn("p1", "ann", "spam", None, WHY)])
        await b.service.erase_payload("posts", "p1", "me")
        tables: Any = b.storage.tables
        (key, row), *_ = tables.labels["posts"].items()
        tables.labels["posts"][key] = row._replace(rationale=WHY)
        assert not_erased(b.storage, "posts") == [
            "the reasons of labels of item 'p1' are there, though it was erased"
        ]
        b.storage.write([ErasePayload("posts", "p1")])
        assert not_erased(b.storage, "posts") == []


@running
async def test_who_is_not_sure_may_say_why() -> None:
    async with bench() as b:
        await b.add("p1")
        unsure = [LabelIn("p1", "ann", None, None, "It is in Latin.")]
        assert [x.status for x in await b.service.add_labels("posts", unsure)] == ["accepted"]
        [note] = (await b.service.item("posts", "p1")).notes
        assert (note.kind, note.text) == ("unsure", "It is in Latin.")
        assert [x.status for x in await b.service.add_labels("posts", unsure)] == ["exists"]


def test_a_client_sends_a_reason_only_if_there_is_one() -> None:
    assert label_row({"item": "p1", "labeler": "ann", "said": "ok", "rationale": WHY}) == {
        "item": "p1",
        "labeler": "ann",
        "said": "ok",
        "rationale": WHY,
    }


@pytest.mark.parametrize("text", ["x" * 5_000, "x" * 1_999 + " y", "\x00" * 5_000 + "x"])
def test_a_reason_is_cut_to_what_is_kept(text: str) -> None:
    assert 0 < len(rationale_of(text) or "") <= LONGEST_RATIONALE
