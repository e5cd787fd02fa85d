"""Labelers who are added, retired and restored, and how they agree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from tests.store.store import MemoryStorage
from tests.unit.server.support import bench, running
from venire.audits.intervals import share_interval
from venire.errors import InputError, NotFound, StateError
from venire.server.messages import GoldIn
from venire.server.operations.labelers import agreement_over, kappa
from venire.server.settings import Member
from venire.server.store import LabelRow
from venire.server.store.maintenance.verify import verify

ANN_BOB = [("p1", "ann", "ok"), ("p1", "bob", "ok")]


@pytest.mark.parametrize("open_panel", [False, True])
@running
async def test_a_retired_labeler_gets_no_more_work_and_its_labels_stay(open_panel: bool) -> None:
    storage = MemoryStorage()
    changes: dict[str, Any] = {"open_panel": open_panel, "policy": "fixed-overlap:3"}
    async with bench(storage, **changes) as b:
        await b.add("p1", "p2")
        lease = await b.take("ann")
        assert lease.token is not None
        await b.service.add_labels("posts", [("p2", "ann", "ok")])
        await b.service.retire_labeler("posts", "ann", "me")
        with pytest.raises(StateError, match="is retired"):
            await b.service.next("posts", "ann")
        with pytest.raises(StateError, match="not renewed"):
            await b.service.heartbeat(lease.token)
        refused = await b.service.add_labels("posts", [("p2", "ann", "ok"), ("new", "ann", "ok")])
        assert [one.status for one in refused] == ["exists", "refused"]
        await b.add("p3")
        assert [x.code for x in await b.service.add_labels("posts", [("p3", "ann", "ok")])] == [
            "retired"
        ]
        assert (await b.service.label(lease.token, "ok")).said == "ok"  # it held that before
        [view] = [one for one in await b.service.labelers("posts") if one.id == "ann"]
        assert (view.retired, view.labels) == (True, 2)
        assert "ann" not in b.live.labelers.seated
    async with bench(storage, **changes) as b:  # it is the same after a restart
        with pytest.raises(StateError, match="is retired"):
            await b.service.next("posts", "ann")
        assert "ann" not in b.live.labelers.seated
        await b.service.restore_labeler("posts", "ann", "me")
        assert (await b.take("ann")).item == "p3"
        done = [row for row in await b.service.audit() if row.action.startswith("labeler.")]
        assert [(row.action, row.subject) for row in done] == [
            ("labeler.retire", "ann"), ("labeler.restore", "ann")]  # fmt: skip
        assert verify(b.storage, "posts").ok


@running
async def test_a_lease_of_a_retired_labeler_expires() -> None:
    async with bench() as b:
        await b.add("p1")
        await b.take("ann")
        await b.service.retire_labeler("posts", "ann", "me")
        await b.pass_time(700)
        assert len(b.live.leases) == 0
        assert (await b.take("bob")).item == "p1"
        assert verify(b.storage, "posts").ok


@running
async def test_a_guest_of_an_open_panel_is_retired_too_and_a_trusted_one() -> None:
    trusted = {"id": "judge", "trusted": True}
    panel = [{"id": "ann", "competence": 0.9}, trusted]
    more: dict[str, Any] = {"open_panel": True, "learning": "while-serving", "audit_share": 1.0}
    async with bench(panel=panel, **more) as b:
        await b.add("p1")
        await b.take("guest")
        await b.service.retire_labeler("posts", "guest", "me")
        with pytest.raises(StateError, match="is retired"):
            await b.service.next("posts", "guest")
        await b.service.retire_labeler("posts", "judge", "me")
        assert not await b.service.is_trusted("posts", "judge")
        with pytest.raises(NotFound):
            await b.service.retire_labeler("posts", "nobody", "me")
        with pytest.raises(NotFound):
            await b.service.restore_labeler("posts", "nobody", "me")


@running
async def test_labelers_are_added_and_changed_one_by_one() -> None:
    async with bench() as b:
        await b.service.add_labeler("posts", Member(id="dan", competence=0.6, price=2), "me")
        await b.add("p1")
        assert (await b.take("dan")).item == "p1"
        view = await b.service.add_labeler("posts", Member(id="dan", competence=0.6), "me")
        names = [member["id"] for member in view.settings["panel"]]
        assert names == ["ann", "bob", "cec", "dan"]
        assert view.settings["panel"][-1]["price"] == 0
        for name in ("ann", "bob", "cec"):
            await b.service.retire_labeler("posts", name, "me")
        with pytest.raises(InputError, match="the panel is empty and closed"):
            await b.service.retire_labeler("posts", "dan", "me")


@running
async def test_agreement_with_gold_and_with_each_other() -> None:
    async with bench() as b:
        await b.add("p1", "p2")
        said = [*ANN_BOB, ("p2", "ann", "ok"), ("p2", "bob", "spam")]
        await b.service.add_labels("posts", said)
        await b.service.add_gold("posts", [GoldIn("p1", "ok"), GoldIn("p2", "spam")])
        found = await b.service.agreement("posts")
        assert [(one.labeler, one.right, one.items) for one in found.gold] == [
            ("ann", 1, 2), ("bob", 2, 2)]  # fmt: skip
        [pair] = found.pairs
        assert (pair.first, pair.second, pair.same, pair.items) == ("ann", "bob", 1, 2)
        assert await b.service.agreement("posts") is found


Votes = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=40)


@given(Votes)
def test_kappa_is_that_of_scikit_learn(votes: list[tuple[str, str]]) -> None:
    ours = kappa(Counter(votes))
    if ours is None:
        assert len({x for pair in votes for x in pair}) == 1
    else:
        assert ours == pytest.approx(cohen_kappa_score(*zip(*votes, strict=True)), abs=1e-4)


@given(st.lists(st.tuples(*(st.sampled_from(x) for x in ("123", "xyz", "ab"))), max_size=30))
def test_the_agreement_is_that_of_counting_pairs(rows: list[tuple[str, str, str]]) -> None:
    said = {(item, who): what for item, who, what in rows}
    labels = [
        LabelRow(
            stream="s",
            item=item,
            labeler=labeler,
            said=what,
            at=0.0,
            slot=0,
            late=False,
            lead_seconds=None,
            source="bulk",
        )
        for (item, labeler), what in said.items()
    ]
    found = agreement_over("s", labels, {"1": "a"})
    for pair in found.pairs:
        both = [i for i in "123" if (i, pair.first) in said and (i, pair.second) in said]
        same = sum(said[i, pair.first] == said[i, pair.second] for i in both)
        assert (pair.items, pair.same) == (len(both), same)
    for one in found.gold:
        assert (one.items, one.right) == (1, said["1", one.labeler] == "a")


@given(st.integers(0, 50), st.integers(0, 50))
def test_an_interval_holds_the_share(right: int, wrong: int) -> None:
    low, high = share_interval(right, right + wrong)
    if right + wrong:
        assert low is not None
        assert high is not None
        assert 0 <= low <= right / (right + wrong) <= high <= 1
