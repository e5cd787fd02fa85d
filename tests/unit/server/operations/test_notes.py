"""Abstentions, comments, flags, progress, and work that is fetched ahead."""

import asyncio

import pytest

from tests.unit.server.support import asleep, bench, running
from venire.errors import InputError, NotFound, StateError
from venire.model import NoteKind
from venire.server import Lease
from venire.server.store.maintenance.verify import verify


@running
async def test_an_abstention_frees_the_item_for_others_and_is_counted_once() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        token = str((await b.take("ann")).token)
        with pytest.raises(NotFound):
            await b.service.abstain(token, "bob")
        await b.service.abstain(token, "ann", "key_1")
        await b.service.abstain(token, "ann", "key_1")  # a retry
        assert (await b.take("ann")).item == "p2"
        assert (await b.take("bob")).item == "p1"
        assert (await b.service.insights("posts")).unsure == 1
        assert [one.unsure for one in await b.service.labelers("posts")] == [1, 0, 0]
        [note] = (await b.service.item("posts", "p1")).notes
        assert (note.labeler, note.kind, note.key) == ("ann", "unsure", "key_1")
        assert b.live.statistics.labels == 0
    async with bench(b.storage, b.clock) as again:  # after a restart too
        assert (await again.service.insights("posts")).unsure == 1
        assert [one.unsure for one in await again.service.labelers("posts")] == [1, 0, 0]
        assert await again.why("ann") == "over_capacity"
        assert verify(again.storage, "posts").ok


@running
async def test_who_is_late_may_abstain_but_not_who_has_labelled() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        late = str((await b.take("ann")).token)
        await b.pass_time(700)
        await b.service.abstain(late)
        assert (await b.service.insights("posts")).unsure == 1
        token = str((await b.take("bob")).token)
        await b.service.label(token, "ok")
        with pytest.raises(StateError, match="already labelled"):
            await b.service.abstain(token)


@running
async def test_who_abstains_after_the_lease_ended_does_not_get_the_item_again() -> None:
    async with bench() as b:
        await b.add("p1")
        late = str((await b.take("ann")).token)
        await b.pass_time(700)
        for _ in range(2):
            await b.service.abstain(late)
        assert await b.why("ann") == "none_for_you"
        assert (await b.take("bob")).item == "p1"
    async with bench(b.storage, b.clock) as again:
        await again.service.abstain(late)  # a retry after a restart
        assert await again.why("ann") == "none_for_you"
        assert verify(again.storage, "posts").ok


@running
async def test_who_got_the_item_again_and_abstains_by_the_old_lease_gives_it_back() -> None:
    async with bench() as b:
        await b.add("p1")
        late = str((await b.take("ann")).token)
        await b.pass_time(700)
        assert (await b.take("ann")).item == "p1"
        await b.service.abstain(late)
        assert len(b.live.leases) == 0
        assert await b.why("ann") == "none_for_you"
        assert verify(b.storage, "posts").ok


@running
async def test_notes_are_taken_before_and_after_the_answer_and_once() -> None:
    async with bench() as b:
        await b.add("p1")
        token = str((await b.take("ann")).token)
        for _ in range(2):
            await b.service.add_note(token, NoteKind.COMMENT, "odd", "ann", "key_1")
        await b.service.label(token, "ok")
        await b.service.add_note(token, NoteKind.FLAG)
        await b.service.add_note(token, NoteKind.COMMENT, "it was spam")
        found = await b.service.notes("posts")
        assert [(note.n, note.kind, note.text) for note in found] == [
            (1, "comment", "odd"),
            (2, "flag", ""),
            (3, "comment", "it was spam"),
        ]
        assert await b.service.notes("posts", after=2) == found[2:]
        assert await b.service.notes("posts", limit=1) == found[:1]
        assert await b.service.notes("posts", item="p2") == []
        view = await b.service.insights("posts")
        assert (view.comments, view.flags, view.unsure) == (2, 1, 0)
        with pytest.raises(InputError, match="without a text"):
            await b.service.add_note(token, NoteKind.COMMENT, "  ")
        with pytest.raises(InputError, match="kind unsure"):
            await b.service.add_note(token, NoteKind.UNSURE)
        with pytest.raises(NotFound):
            await b.service.add_note("none", NoteKind.FLAG)
        await b.service.erase_payload("posts", "p1", "test")
        assert [note.text for note in await b.service.notes("posts")] == ["", "", ""]


@running
async def test_the_progress_of_a_labeler_counts_since_a_time() -> None:
    async with bench() as b:
        await b.add("p1", "p2", "p3")
        for n in range(3):
            await b.service.label(str((await b.take("ann")).token), "ok", seconds=2.0)
            if n == 0:
                b.clock.advance(1000)
        since = b.clock.wall() - 500
        view = await b.service.progress("posts", "ann", since)
        assert (view.labels, view.total, view.unsure) == (2, 3, 0)
        nobody = await b.service.progress("posts", "nobody", 0.0)
        assert (nobody.labels, nobody.total) == (0, 0)


@running
async def test_what_waits_behind_another_item_does_not_count_as_time_of_labelling() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        tokens = [str((await b.take("ann")).token)]
        ahead = await b.service.next("posts", "ann", ahead=1)
        assert isinstance(ahead, Lease)
        tokens.append(str(ahead.token))
        b.clock.advance(30)
        await b.service.label(tokens[0], "ok")
        await b.service.label(tokens[1], "ok", seconds=4.0)
        leads = [row.lead_seconds for row in b.storage.labels("posts")]
        assert leads == [30.0, 4.0]


@running
async def test_a_labeler_holds_as_many_ahead_as_the_stream_allows() -> None:
    async with bench(ahead=2) as b:
        await b.add("p1", "p2", "p3", "p4")
        await b.take("ann")
        assert await b.why("ann") == "over_capacity"
        for _ in range(2):
            assert isinstance(await b.service.next("posts", "ann", ahead=50), Lease)
        more = await b.service.next("posts", "ann", ahead=50)
        assert not isinstance(more, Lease)
        assert more.reason == "over_capacity"
    async with bench(b.storage, b.clock) as again:
        assert verify(again.storage, "posts").ok
        assert again.live.leases.holds("ann") == 3


@running
async def test_those_who_wait_get_work_ahead_of_their_capacity() -> None:
    async with bench(ahead=1) as b:
        await b.add("p1")
        await b.take("ann")
        one = asyncio.create_task(b.service.next("posts", "ann", 20, ahead=1))
        two = asyncio.create_task(b.service.next("posts", "bob", 20))
        await asleep(1, b)  # there is one for bob
        await b.add("p2")
        assert {(await one).item, (await two).item} == {"p1", "p2"}  # type: ignore[union-attr]


@running
async def test_what_is_sent_twice_at_once_is_noted_once() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        note, unsure = str((await b.take("ann")).token), str((await b.take("bob")).token)
        await asyncio.gather(
            *(b.service.add_note(note, NoteKind.FLAG, "odd") for _ in range(3)),
            *(b.service.abstain(unsure) for _ in range(3)),
        )
        view = await b.service.insights("posts")
        assert (view.flags, view.unsure) == (1, 1)
        assert len(await b.service.notes("posts")) == 2
