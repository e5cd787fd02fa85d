"""Leases: taken, renewed, answered, given back, expired."""

import asyncio

import pytest

from tests.unit.server.support import Flaky, bench, running
from venire.errors import Conflict, InputError, NotFound, StateError
from venire.model import NoWork
from venire.server import Lease, Nothing


@running
async def test_a_lease_is_a_row_with_the_hash_of_its_token_and_its_assignment() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert (lease.item, lease.payload, lease.classes) == ("p1", {"text": "p1"}, ("spam", "ok"))
        assert lease.token is not None
        assert len(lease.token) >= 43
        [row] = b.storage.leases("posts")
        assert (row.item, row.labeler, row.status) == ("p1", "ann", "open")
        assert lease.token not in repr(row)
        assert "assigned" in [event.kind for event in b.storage.events("posts")]


@running
async def test_the_same_answer_again_is_the_first_answer_and_another_is_a_conflict() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        first = await b.service.label(lease.token, "spam")
        b.clock.advance(5)
        assert await b.service.label(lease.token, "spam") == first
        with pytest.raises(Conflict, match="cannot be changed"):
            await b.service.label(lease.token, "ok")
        assert len(b.storage.labels("posts")) == 1
    async with bench(b.storage, b.clock) as again:  # after a restart too
        assert await again.service.label(lease.token, "spam") == first
        with pytest.raises(Conflict):
            await again.service.label(lease.token, "ok")


@running
async def test_answering_at_the_same_time_counts_once() -> None:
    async with bench() as b:
        await b.add("p1")
        token = (await b.take("ann")).token
        assert token is not None
        answers = await asyncio.gather(*(b.service.label(token, "spam") for _ in range(5)))
        assert len(set(answers)) == 1
        assert b.live.statistics.labels == len(b.storage.labels("posts")) == 1


@running
async def test_an_expired_lease_loses_the_claim_but_not_the_label() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.pass_time(lease.ttl + 1)
        assert [row.status for row in b.storage.leases("posts", None)] == ["expired"]
        with pytest.raises(StateError, match="has ended"):
            await b.service.heartbeat(lease.token)
        answer = await b.service.label(lease.token, "spam")
        assert answer.expired
        assert not answer.late
        assert [row.status for row in b.storage.leases("posts", None)] == ["done"]
        assert (await b.service.item("posts", "p1")).posterior == pytest.approx(
            {"spam": 0.9, "ok": 0.1}
        )


@running
async def test_the_label_of_an_expired_lease_answers_the_next_one_too() -> None:
    async with bench() as b:
        await b.add("p1")
        old = await b.take("ann")
        await b.pass_time(old.ttl + 1)
        new = await b.take("ann")
        assert new.item == old.item
        await b.service.label(str(old.token), "spam")
        assert len(b.live.leases) == 0
        assert (await b.service.label(str(new.token), "spam")).said == "spam"
        await b.pass_time(new.ttl + 1)
        assert len(b.storage.labels("posts")) == 1


@running
async def test_a_label_after_the_item_has_left_is_late_and_kept() -> None:
    async with bench(policy="fixed-overlap:1") as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.pass_time(lease.ttl + 1)
        other = await b.take("bob")
        assert other.token is not None
        await b.service.label(other.token, "ok")
        await b.pass_time(10)
        assert [exit.verdict for exit in await b.service.exits("posts")] == ["ok"]
        answer = await b.service.label(lease.token, "spam")
        assert answer.late
        assert [(r.labeler, bool(r.late)) for r in b.storage.labels_of("posts", "p1")] == [
            ("ann", True),
            ("bob", False),
        ]
        assert [exit.verdict for exit in await b.service.exits("posts")] == ["ok"]


@running
async def test_a_heartbeat_renews() -> None:
    async with bench() as b:
        await b.add("p1")
        lease = await b.take("ann")
        assert lease.token is not None
        for _ in range(5):
            await b.pass_time(lease.ttl * 0.9)
            assert await b.service.heartbeat(lease.token) > b.clock.wall()
        assert [row.status for row in b.storage.leases("posts", None)] == ["open"]
        assert not (await b.service.label(lease.token, "spam")).expired


@running
async def test_what_is_given_back_goes_to_others_and_with_a_bar_not_to_the_same() -> None:
    async with bench() as b:
        await b.add("p1")
        token = (await b.take("ann")).token
        assert token is not None
        await b.service.release(token)
        await b.service.release(token)  # again is no error
        token = (await b.take("ann")).token
        assert token is not None
        await b.service.release(token, bar=True)
        assert await b.why("ann") == "none_for_you"
        token = (await b.take("bob")).token
        assert token is not None
        await b.service.label(token, "ok")
        with pytest.raises(StateError, match="already labelled"):
            await b.service.release(token)


@running
async def test_why_there_is_nothing() -> None:
    async with bench() as b:
        assert await b.why("ann") == "empty"
        await b.add("p1")
        await b.take("ann")
        assert await b.why("ann") == "over_capacity"
        await b.take("bob")
        assert await b.why("cec") == "all_leased"
        await b.service.pause("posts", "me")
        assert await b.why("cec") == "paused"
        await b.service.resume("posts", "me")
        await b.service.close("posts", "me")
        assert await b.why("cec") == "all_leased"
        await b.service.withdraw("posts", "p1")
        assert await b.why("cec") == "closed"


@running
async def test_who_holds_all_that_is_open_is_not_told_that_others_do() -> None:
    """The labelling page holds what was answered as long as it can be undone."""
    async with bench(show_left=True) as b:
        await b.add("p1")
        await b.add("p2")
        await b.take("ann")
        second = await b.service.next("posts", "ann", 0.0, None, ahead=5)
        assert isinstance(second, Lease)
        found = await b.service.next("posts", "ann", 0.0, None, ahead=5)
        assert found == Nothing(NoWork.NONE_FOR_YOU)
        assert (await b.service.progress("posts", "ann", 0.0)).left == 2
        await b.service.label(str(second.token), "ok")
        assert (await b.service.progress("posts", "ann", 0.0)).left == 1
        assert (await b.service.progress("posts", "bob", 0.0)).left == 2
    async with bench() as b:
        assert (await b.service.progress("posts", "ann", 0.0)).left is None


@running
async def test_nobody_may_use_the_lease_of_another() -> None:
    async with bench() as b:
        await b.add("p1")
        token = (await b.take("ann")).token
        assert token is not None
        with pytest.raises(NotFound):
            await b.service.label(token, "spam", labeler="bob")
        with pytest.raises(NotFound):
            await b.service.label("nonsense", "spam")
        with pytest.raises(InputError, match="expected one of"):
            await b.service.label(token, "nonsense", labeler="ann")
        await b.service.label(token, "spam", labeler="ann")
        with pytest.raises(NotFound):
            await b.service.label(token, "spam", labeler="bob")


@running
async def test_eligible_and_excluded_are_kept_to() -> None:
    async with bench() as b:
        await b.add("p1", eligible=("bob",))
        await b.add("p2", excluded=("ann",))
        assert await b.why("ann") == "none_for_you"
        assert {(await b.take("bob")).item, (await b.take("cec")).item} == {"p1", "p2"}


@running
async def test_a_newcomer_joins_an_open_panel_by_asking_and_not_a_closed_one() -> None:
    async with bench() as b:
        with pytest.raises(NotFound, match="closed to newcomers"):
            await b.service.next("posts", "dan")
    async with bench(open_panel=True, panel=(), learning="then-serve:1") as b:
        await b.pass_time(20)
        await b.add("p1")
        assert (await b.take("dan")).item == "p1"
        assert [view.id for view in await b.service.labelers("posts")] == ["dan"]


@running
async def test_a_labeler_that_never_answers_costs_its_lease_only() -> None:
    async with bench() as b:
        await b.add(*(f"p{k}" for k in range(5)))
        await b.take("ann")
        for _ in range(400):
            for name in ("bob", "cec"):
                got = await b.service.next("posts", name)
                if isinstance(got, Lease) and got.token is not None:
                    await b.service.label(got.token, "ok")
            await b.pass_time(10)
        assert b.live.open == {}
        assert b.live.labelers["ann"].expired == 1


@running
async def test_what_is_held_can_be_taken_up_again_under_a_new_token() -> None:
    async with bench() as b:
        await b.add("p1")
        old = (await b.take("ann")).token
        assert old is not None
        [seen] = await b.service.held("posts", "ann")
        assert (seen.item, seen.token) == ("p1", None)
        [again] = await b.service.held("posts", "ann", new_tokens=True)
        assert again.token is not None
        with pytest.raises(StateError):
            await b.service.heartbeat(old)
        await b.service.label(again.token, "spam")
        assert await b.service.held("posts", "ann") == []


@running
async def test_a_large_payload_is_read_when_it_is_handed_out() -> None:
    async with bench() as b:
        from venire.server import ItemIn

        text = "x" * 100_000
        await b.service.add_items("posts", [ItemIn("p1", text)])
        assert b.live.open["p1"].payload is None
        assert (await b.take("ann")).payload == text


@running
async def test_a_lease_lasts_twice_the_time_in_which_most_labels_come() -> None:
    async with bench() as b:
        await b.add(*(f"p{k}" for k in range(12)))
        for _ in range(10):
            lease = await b.take("ann")
            assert lease.token is not None
            b.clock.advance(50)
            await b.service.label(lease.token, "ok")
        assert (await b.take("ann")).ttl == 100.0
        assert (await b.take("bob")).ttl == 100.0  # nothing is known of bob: as the panel


@running
async def test_nothing_is_handed_out_without_the_disk() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1")
        before = storage.writes
        assert isinstance(await b.service.next("posts", "ann"), Lease)
        assert storage.writes == before + 1
        assert isinstance(await b.service.next("posts", "ann"), Nothing)
        assert storage.writes == before + 1  # asking in vain costs nothing
