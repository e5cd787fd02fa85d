"""Items that are sent back for more labels: they come again, and revise the verdict once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.battery import everything
from tests.store.store import MemoryStorage
from tests.unit.server.support import Bench, bench, running
from venire.errors import InputError, NotFound, StateError
from venire.server.actors import Actor
from venire.server.messages import GoldIn
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.verify import verify

PANEL: tuple[dict[str, Any], ...] = tuple(
    {"id": name, "competence": p}
    for name, p in (("ann", 0.7), ("bob", 0.65), ("cec", 0.9), ("dan", 0.95))
)
ME = Actor("Rita", "key_rita")


async def leave(b: Bench, item: str, *said: tuple[str, str]) -> None:
    await b.service.add_labels("posts", [(item, who, what) for who, what in said])
    await b.pass_time(10)


async def disputed(b: Bench) -> None:
    """`p1` leaves as spam, with little confidence."""
    await b.add("p1")
    await leave(b, "p1", ("ann", "spam"), ("bob", "ok"))
    assert (await b.service.item("posts", "p1")).verdict == "spam"


def intact(b: Bench) -> None:
    assert verify(b.storage, "posts").differences == ()


@running
async def test_others_label_it_again_and_the_surer_verdict_is_a_revision() -> None:
    async with bench(panel=PANEL) as b:
        await disputed(b)
        sent = await b.service.send_back("posts", "p1", ME, note="hard to read")
        assert (sent.item, sent.follow_up) == ("p1", "p1~2")
        again = await b.service.item("posts", "p1~2")
        first = await b.service.item("posts", "p1")
        assert (again.follows, first.follow_up) == ("p1", "p1~2")
        assert (again.payload, again.weight) == (first.payload, first.weight)
        assert again.excluded == ("ann", "bob")
        assert again.min_confidence is not None
        assert first.confidence < again.min_confidence < 1
        assert await b.why("ann") == "none_for_you"
        assert (await b.take("cec")).item == "p1~2"
        assert await b.service.send_back("posts", "p1", ME) == sent.__class__("posts", "p1", "p1~2")
        assert (await b.service.reviews("posts")).items == ()
        await leave(b, "p1~2", ("cec", "ok"), ("dan", "ok"))
        first = await b.service.item("posts", "p1")
        assert (first.verdict, first.gold, len(first.revisions)) == ("ok", None, 1)
        assert first.revisions[0].labels == 4
        assert first.exit is not None
        assert first.exit.verdict == "spam"
        assert [exit.item for exit in await b.service.exits("posts")] == ["p1", "p1~2"]
        assert [row.settled_at is not None for row in b.storage.follows("posts")] == [True]
        done = [row for row in await b.service.audit() if row.action == "item.send_back"]
        assert done[0].details["note"] == "hard to read"
        intact(b)


@running
async def test_a_verdict_that_is_the_same_or_less_sure_changes_nothing() -> None:
    async with bench(panel=PANEL) as b:
        await b.add("p1", "p2")
        for item in ("p1", "p2"):
            await leave(b, item, ("ann", "spam"), ("dan", "spam"))
            await b.service.send_back("posts", item, ME, min_confidence=0.6)
        await leave(b, "p1~2", ("bob", "spam"), ("cec", "spam"))
        await leave(b, "p2~2", ("bob", "ok"), ("cec", "ok"))
        assert (await b.service.item("posts", "p2~2")).verdict == "ok"
        assert await b.service.revisions("posts") == []
        assert (await b.service.item("posts", "p2")).verdict == "spam"
        assert (await b.service.send_back("posts", "p2", ME)).follow_up == "p2~3"
        intact(b)


@running
async def test_if_all_have_labelled_it_all_may_again() -> None:
    async with bench(panel=PANEL[:2]) as b:
        await disputed(b)
        await b.service.send_back("posts", "p1", ME)
        assert (await b.take("ann")).item == "p1~2"


@running
async def test_gold_is_final_for_both() -> None:
    async with bench(panel=PANEL) as b:
        await disputed(b)
        await b.service.send_back("posts", "p1", ME)
        await b.service.add_gold("posts", [GoldIn("p1", "spam")], ME)
        assert (await b.service.item("posts", "p1~2")).status == "withdrawn"
        assert (await b.service.item("posts", "p1")).verdict == "spam"
        await b.add("p2")
        await leave(b, "p2", ("ann", "spam"), ("bob", "ok"))
        await b.service.send_back("posts", "p2", ME, min_confidence=0.5)
        await leave(b, "p2~2", ("cec", "ok"), ("dan", "spam"))
        await b.service.review("posts", "p2~2", "ok", None, ME)
        assert (await b.service.item("posts", "p2")).gold == "ok"
        intact(b)


@running
async def test_what_cannot_be_sent_back_is_refused() -> None:
    async with bench(panel=PANEL) as b:
        await disputed(b)
        await b.add("open")
        with pytest.raises(NotFound):
            await b.service.send_back("posts", "nothing", ME)
        with pytest.raises(StateError, match="has not left"):
            await b.service.send_back("posts", "open", ME)
        with pytest.raises(InputError, match="expected a probability"):
            await b.service.send_back("posts", "p1", ME, min_confidence=2.0)
        await b.service.withdraw("posts", "open")
        with pytest.raises(StateError, match="was withdrawn"):
            await b.service.send_back("posts", "open", ME)
        await b.service.send_back("posts", "p1", ME, min_confidence=0.5)
        await leave(b, "p1~2", ("cec", "ok"), ("dan", "ok"))
        with pytest.raises(StateError, match="was sent back before"):
            await b.service.send_back("posts", "p1~2", ME)
        await b.service.add_gold("posts", [GoldIn("p1", "ok")], ME)
        with pytest.raises(StateError, match="has gold"):
            await b.service.send_back("posts", "p1", ME)


@running
async def test_after_a_restart_it_goes_on_and_an_archive_has_it() -> None:
    storage = MemoryStorage()
    async with bench(storage, panel=PANEL) as b:
        await disputed(b)
        await b.service.send_back("posts", "p1", ME)
    async with bench(storage, panel=PANEL) as b:
        await b.service.add_labels("posts", [("p1~2", "cec", "ok"), ("p1~2", "dan", "ok")])
        await b.pass_time(10)
        assert (await b.service.item("posts", "p1")).verdict == "ok"
        intact(b)


@running
async def test_one_that_was_not_settled_is_when_the_stream_is_loaded() -> None:
    storage = MemoryStorage()
    async with bench(storage, panel=PANEL) as b:
        await disputed(b)
        await b.service.send_back("posts", "p1", ME)
        b.live.follow_ups.original.clear()  # as if the server had been ended before it settled it
        await leave(b, "p1~2", ("cec", "ok"), ("dan", "ok"))
        assert (await b.service.item("posts", "p1")).verdict == "spam"
    async with bench(storage, panel=PANEL) as b:
        assert (await b.service.item("posts", "p1")).verdict == "ok"
        assert len(await b.service.revisions("posts")) == 1
        intact(b)
    async with bench(storage, panel=PANEL) as b:
        assert len(await b.service.revisions("posts")) == 1


@running
async def test_erasing_it_erases_the_other_and_the_notes_of_reviewers(tmp_path: Any) -> None:
    async with bench(panel=PANEL) as b:
        await disputed(b)
        await b.service.send_back("posts", "p1", ME, note="Ann Smith's letter")
        await b.add("p2")
        await leave(b, "p2", ("ann", "spam"), ("bob", "ok"))
        await b.service.review("posts", "p2", "ok", "Ann Smith wrote it", ME)
        for item in ("p1", "p2"):
            await b.service.erase_payload("posts", item, ME)
        assert (await b.service.item("posts", "p1~2")).payload is None
        assert "Smith" not in str(b.storage.audit())
        assert [row.action for row in await b.service.audit()].count("item.review") == 1
        write_archive(b.storage, tmp_path / "a.ndjson")
        other = MemoryStorage()
        read_archive(other, tmp_path / "a.ndjson")
        assert everything(other, "posts") == everything(b.storage, "posts")
        assert other.follows("posts") == b.storage.follows("posts")
        intact(b)
