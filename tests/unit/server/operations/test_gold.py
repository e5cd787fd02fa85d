"""Accuracy audits and gold through the service: draws, leases, bounds, revisions, restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.marks import nightly
from tests.store.battery import everything
from tests.store.store import MemoryStorage
from tests.unit.server.support import Bench, bench, running, settings_of
from venire import ErrorBound
from venire.errors import Conflict, InputError, NotFound
from venire.server import ItemIn, ServiceSettings
from venire.server.actors import Actor
from venire.server.messages import GoldIn, Outcome
from venire.server.store import CheckRow, open_storage
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.verify import verify
from venire.server.stream.checks import Checks, drawn

PANEL: tuple[dict[str, Any], ...] = (
    {"id": "ann", "competence": 0.9},
    {"id": "bob", "competence": 0.8},
    {"id": "judge", "trusted": True, "capacity": 2},
)
AUDITED: dict[str, Any] = {"panel": PANEL, "audit_share": 1.0}
ME = Actor("Ann's laptop", "key_me")


async def decide(b: Bench, *items: str, said: str = "spam") -> None:
    """Items come, both say the same of them, and they leave."""
    await b.add(*items)
    await b.service.add_labels("posts", [(i, m, said) for i in items for m in ("ann", "bob")])
    await b.pass_time(10)


def intact(b: Bench) -> None:
    found = verify(b.storage, "posts")
    assert found.differences == ()


@running
async def test_a_drawn_verdict_goes_to_the_trusted_labeler_and_becomes_what_it_says() -> None:
    async with bench(**AUDITED) as b:
        assert await b.why("judge") == "empty"
        await decide(b, "p1", "p2")
        lease = await b.take("judge")
        assert (lease.item, lease.payload, lease.gain) == ("p1", {"text": "p1"}, None)
        assert lease.token is not None
        answer = await b.service.label(lease.token, "ok", "judge")
        assert (answer.said, answer.late) == ("ok", False)
        assert await b.service.label(lease.token, "ok", "judge") == answer
        with pytest.raises(Conflict):
            await b.service.label(lease.token, "spam", "judge")
        item = await b.service.item("posts", "p1")
        assert (item.verdict, item.confidence, item.gold) == ("ok", 1.0, "ok")
        assert item.exit is not None
        assert item.exit.verdict == "spam"
        assert [(r.before, r.verdict) for r in item.revisions] == [("spam", "ok")]
        assert [r.item for r in await b.service.revisions("posts")] == ["p1"]
        assert len(item.labels) == 2  # what is gold is no label
    intact(b)


@running
async def test_bounds_are_those_of_the_library_and_skipping_gains_nothing() -> None:
    async with bench(**AUDITED) as b:
        await decide(b, *(f"p{k}" for k in range(9)))
        await decide(b, *(f"q{k}" for k in range(5)), said="ok")
        leases = [await b.take("judge") for _ in range(2)]
        assert [lease.item for lease in leases] == ["p0", "p1"]
        assert await b.why("judge") == "over_capacity"
        assert leases[1].token is not None
        await b.service.label(leases[1].token, "spam", "judge")
        view = await b.service.audits("posts")
        assert (view.drawn, view.due, view.share) == (14, 13, 1.0)
        assert (view.overall.audited, view.overall.wrong, view.overall.skipped) == (2, 0, 1)
        assert view.overall.upper == ErrorBound(0.95, None, 2, 0, 1).upper
        assert view.due_items is not None
        assert view.due_items[:2] == ("p0", "p2")
        await b.service.add_gold("posts", [GoldIn(f"p{k}", "spam") for k in range(1, 9)])
        await b.service.add_gold("posts", [GoldIn("p0", "ok"), GoldIn("q0", "spam")])
        view = await b.service.audits("posts", level=0.9)
        assert (view.overall.audited, view.overall.wrong, view.overall.skipped) == (10, 2, 0)
        assert view.overall.upper == ErrorBound(0.9, None, 10, 2).upper
        assert (view.overall.low, view.overall.high) == ErrorBound(0.9, None, 10, 2).interval
        spam, ok = view.classes["spam"], view.classes["ok"]
        assert [(x.audited, x.wrong) for x in (spam, ok)] == [(9, 1), (1, 1)]
        now = await b.service.insights("posts")
        assert (now.audits, now.audits_due, now.gold) == (10, 4, 10)
        assert now.error_upper == ErrorBound(0.95, None, 10, 2).upper
        with pytest.raises(InputError, match="level"):
            await b.service.audits("posts", level=95)
    intact(b)


@running
async def test_gold_that_somebody_chose_says_nothing_of_the_others() -> None:
    async with bench(panel=PANEL, audit_share=0.3) as b:
        names = [f"p{k}" for k in range(60)]
        await decide(b, *names)
        sample = set(b.live.checks.verdicts)
        assert 5 < len(sample) < 35
        chosen = [name for name in names if name not in sample]
        await b.service.add_gold("posts", [GoldIn(name, "ok") for name in chosen])
        view = await b.service.audits("posts")
        assert (view.gold, view.overall.audited, view.due) == (len(chosen), 0, len(sample))
        assert (await b.service.insights("posts")).error_upper is None
        await b.service.add_gold("posts", [GoldIn(name, "spam") for name in sorted(sample)])
        view = await b.service.audits("posts")
        assert (view.overall.audited, view.overall.wrong) == (len(sample), 0)
    intact(b)


@running
async def test_gold_of_an_open_item_is_its_verdict_and_is_not_drawn() -> None:
    async with bench(**AUDITED) as b:
        await b.add("p1")
        [outcome] = await b.service.add_gold("posts", [GoldIn("p1", "ok")], ME)
        assert outcome.status == "accepted"
        assert (await b.service.item("posts", "p1")).verdict == "ok"
        await b.service.add_labels("posts", [("p1", m, "spam") for m in ("ann", "bob")])
        await b.pass_time(10)
        [exit] = await b.service.exits("posts")
        assert (exit.verdict, exit.confidence, exit.labels) == ("ok", 1.0, 2)
        assert b.live.checks.verdicts == {}
    intact(b)
    async with bench(b.storage, b.clock) as again:
        assert (await again.service.audits("posts")).gold == 1


@running
async def test_outcomes_of_gold() -> None:
    async with bench(panel=PANEL) as b:
        await decide(b, "p1", "p2")
        await b.add("gone")
        await b.service.withdraw("posts", "gone")
        rows = [("p1", "ok"), ("p1", "ok"), ("p1", "spam"), ("p2", "eggs"), ("z", "ok")]
        told = await b.service.add_gold("posts", [GoldIn(*row) for row in (*rows, ("gone", "ok"))])
        assert [(o.status, o.code) for o in told] == [
            ("accepted", None),
            ("exists", None),
            ("refused", "changed"),
            ("refused", "unknown_class"),
            ("refused", "unknown_item"),
            ("refused", "withdrawn"),
        ]
        [again] = await b.service.add_gold("posts", [GoldIn("p1", "ok")])
        assert again.status == "exists"
        trail = [line for line in await b.service.audit() if line.action == "gold.add"]
        assert [(line.subject, line.details) for line in trail] == [("p1", {"taken": 1})]
        with pytest.raises(NotFound):
            await b.service.add_gold("other", [GoldIn("p1", "ok")])
    intact(b)


@running
async def test_gold_is_corrected_and_who_did_it_is_kept() -> None:
    async with bench(**AUDITED) as b:
        await decide(b, "p1", "p2", "p3")
        await b.add("open")
        rows = [GoldIn("p1", "ok"), GoldIn("p2", "spam"), GoldIn("open", "ok")]
        await b.service.add_gold("posts", rows, ME)
        assert (await b.service.audits("posts")).overall.wrong == 1
        with pytest.raises(Conflict, match="correct=true"):
            await b.service.review("posts", "p1", "spam", None, "chief")
        await b.pass_time(1)
        done = await b.service.review("posts", "p1", "spam", "a slip", "chief", correct=True)
        assert (done.outcome, done.before, done.label) == ("corrected", "ok", "spam")
        rows = [GoldIn("p2", "spam"), GoldIn("open", "spam"), GoldIn("p3", "ok")]
        told = await b.service.add_gold("posts", rows, ME, correct=True)
        assert [one.status for one in told] == ["exists", "corrected", "accepted"]
        view = await b.service.audits("posts")
        assert (view.overall.wrong, view.overall.audited, view.gold) == (1, 3, 4)
        item = await b.service.item("posts", "p1")
        assert (item.gold, item.verdict) == ("spam", "spam")
        assert [(r.before, r.verdict) for r in item.revisions] == [("spam", "ok"), ("ok", "spam")]
        assert item.gold_said is not None
        assert (item.gold_said.actor, item.gold_said.source) == ("chief", "review")
        [was] = item.gold_said.earlier
        assert (was.label, was.actor, was.key, was.source) == ("ok", str(ME), ME.key, "sent")
        assert was.at < item.gold_said.at
        trail = [line for line in await b.service.audit() if line.action == "gold.correct"]
        assert [(line.subject, line.actor, line.details) for line in trail] == [
            ("p1", "chief", {"before": "ok", "label": "spam", "note": "a slip"}),
            ("open", str(ME), {"before": "ok", "label": "spam"}),
        ]
    intact(b)
    async with bench(b.storage, b.clock) as again:
        assert await again.service.audits("posts") == view
        assert await again.service.item("posts", "p1") == item
        assert (await again.service.item("posts", "open")).verdict == "spam"


@running
async def test_a_review_of_a_follow_up_corrects_both() -> None:
    async with bench(panel=PANEL) as b:
        await decide(b, "p1")
        again = (await b.service.send_back("posts", "p1", "chief")).follow_up
        await b.pass_time(1000)
        if again in [row.id for row in b.storage.items("posts") if row.status == "open"]:
            await b.service.add_labels("posts", [(again, "ann", "ok"), (again, "bob", "ok")])
            await b.pass_time(10)
        await b.service.review("posts", again, "ok", None, "chief")
        await b.service.review("posts", again, "spam", None, "chief", correct=True)
        for name in (again, "p1"):
            assert (await b.service.item("posts", name)).gold == "spam"
    intact(b)


@running
async def test_gold_of_an_item_that_is_forgotten_says_that_it_teaches_nothing() -> None:
    server = ServiceSettings(remember_items=1)
    async with bench(server=server, learning="while-serving", panel=PANEL) as b:
        await decide(b, "p1")
        await decide(b, "p2")
        rows = [GoldIn("p1", "ok"), GoldIn("p2", "ok")]
        forgotten, known = await b.service.add_gold("posts", rows)
        assert (forgotten.status, forgotten.code) == ("accepted", "not_learned")
        assert forgotten.message is not None
        assert "teaches nothing about its labelers" in forgotten.message
        assert known == Outcome("accepted")
        item = await b.service.item("posts", "p1")
        assert (item.verdict, item.gold) == ("ok", "ok")
        assert [o.status for o in await b.service.add_gold("posts", rows)] == ["exists"] * 2
        intact(b)


@running
async def test_a_trusted_labeler_gives_no_labels_and_has_no_seat() -> None:
    async with bench(**AUDITED) as b:
        await b.add("p1")
        assert b.live.engine.seated == ("ann", "bob")
        assert await b.why("judge") == "empty"
        [outcome] = await b.service.add_labels("posts", [("p1", "judge", "ok")])
        assert (outcome.status, outcome.code) == ("refused", "not_allowed")
        [judge] = [one for one in await b.service.labelers("posts") if one.trusted]
        assert (judge.id, judge.skill) == ("judge", None)
        await b.service.change_stream("posts", {"panel": PANEL[:2]}, "me")
        assert b.live.trusted == frozenset()
        await b.service.change_stream(
            "posts", {"panel": ({"id": "bob", "trusted": True}, PANEL[0])}, "me"
        )
        assert list(b.live.engine.seated) == ["ann"]
    intact(b)


@running
async def test_waiting_for_an_audit_and_giving_one_back() -> None:
    async with bench(**AUDITED) as b:
        import asyncio

        waiting = asyncio.create_task(b.service.next("posts", "judge", wait=60))
        await asyncio.sleep(0.01)
        await decide(b, "p1")
        lease: Any = await waiting
        assert lease.item == "p1"
        await b.service.release(lease.token, bar=True, labeler="judge")
        assert await b.why("judge") == "all_leased"
        assert (await b.service.audits("posts")).due == 1
    intact(b)


@running
async def test_an_audit_lease_expires_and_its_late_answer_counts() -> None:
    async with bench(**AUDITED) as b:
        await decide(b, "p1")
        lease = await b.take("judge")
        await b.pass_time(700)
        assert len(b.live.leases) == 0
        assert lease.token is not None
        answer = await b.service.label(lease.token, "ok", "judge")
        assert answer.expired
        assert (await b.service.audits("posts")).overall.wrong == 1
    intact(b)


@running
async def test_everything_is_there_after_a_restart_and_in_an_archive(tmp_path: Path) -> None:
    storage = open_storage(f"sqlite:///{tmp_path / 'a.db'}")
    async with bench(storage, **AUDITED) as b:  # type: ignore[arg-type]
        await decide(b, *(f"p{k}" for k in range(6)))
        await b.service.add_gold("posts", [GoldIn("p0", "ok"), GoldIn("p1", "spam")], ME)
        lease = await b.take("judge")
        before = await b.service.audits("posts")
        secret = b.live.checks.secret
    async with bench(storage, b.clock) as again:  # type: ignore[arg-type]
        assert await again.service.audits("posts") == before
        assert again.live.checks.secret == secret
        assert lease.token is not None
        await again.service.label(lease.token, "ok", "judge")
        after = await again.service.audits("posts")
        assert (after.overall.audited, after.overall.wrong) == (3, 2)
    assert verify(storage, "posts").differences == ()
    write_archive(storage, tmp_path / "all.ndjson")
    other = MemoryStorage()
    read_archive(other, tmp_path / "all.ndjson")
    assert everything(other, "posts") == everything(storage, "posts")
    assert verify(other, "posts").differences == ()
    assert len(other.checks("posts")) == 6
    rows = {row.item: (row.label, row.source, row.key) for row in other.gold("posts")}
    assert rows["p0"] == ("ok", "sent", "key_me")
    assert rows["p2"] == ("ok", "audit", None)
    storage.close()


@running
async def test_verify_finds_gold_that_was_meddled_with() -> None:
    async with bench(**AUDITED) as b:
        await decide(b, "p1")
        await b.service.add_gold("posts", [GoldIn("p1", "ok")])
    table = b.storage.tables.gold["posts"]
    kept = table["p1"]
    table["p1"] = kept._replace(label="spam")
    [found] = verify(b.storage, "posts").differences
    assert "the gold of item 'p1' is ('spam'" in found
    del table["p1"]
    assert "in the log but not in the table" in verify(b.storage, "posts").differences[0]
    table["p1"] = kept
    checks = b.storage.tables.checks["posts"]
    checks[1] = checks[1]._replace(verdict="ok")
    assert "drawn to be audited as 'ok'" in verify(b.storage, "posts").differences[0]


@running
async def test_items_have_targets_of_their_own() -> None:
    async with bench(policy="realised", open_panel=False, min_confidence=0.85) as b:
        items = [ItemIn("easy", weight=1, min_confidence=0.6), ItemIn("usual", weight=1)]
        await b.service.add_items("posts", [*items, ItemIn("hard", weight=1, min_confidence=0.97)])
        labels = [(name, "bob", "spam") for name in ("easy", "usual", "hard")]
        await b.service.add_labels("posts", labels)
        await b.pass_time(10)
        assert [e.item for e in await b.service.exits("posts")] == ["easy"]
        await b.service.add_labels("posts", [("usual", "ann", "spam"), ("hard", "ann", "spam")])
        await b.pass_time(10)
        assert {e.item for e in await b.service.exits("posts")} == {"easy", "usual", "hard"}
        assert (await b.service.item("posts", "hard")).min_confidence == 0.97
        with pytest.raises(Conflict):
            await b.service.add_items("posts", [ItemIn("hard", weight=1, min_confidence=0.5)])
        with pytest.raises(InputError, match="min_confidence"):
            await b.service.add_items("posts", [ItemIn("new", min_confidence=95)])
    intact(b)


@running
async def test_costs_of_errors_move_verdicts() -> None:
    costs = ({"truth": "spam", "verdict": "ok", "cost": 10},)
    async with bench(panel=PANEL[:2], costs=costs) as b:
        await decide(b, "p1", said="ok")
        await b.service.change_stream("posts", {"costs": ()}, "me")
        await b.add("p2")
        await b.service.add_labels("posts", [("p2", "bob", "ok")])
        assert (await b.service.item("posts", "p2")).verdict == "ok"
        await b.service.change_stream("posts", {"costs": costs}, "me")
        view = await b.service.item("posts", "p2")
        assert view.verdict == "spam"
        assert round(view.confidence, 2) == 0.2
    intact(b)
    for bad in ([{"truth": "spam", "verdict": "eggs", "cost": 2}], [*costs, *costs]):
        with pytest.raises(ValueError, match="cost"):
            settings_of(costs=bad)


def test_draws_are_random_independent_of_each_other_and_secret() -> None:
    names = [f"post-{k}" for k in range(20_000)]
    one = np.array([drawn(b"one", "posts", name, 0.1) for name in names])
    other = np.array([drawn(b"other", "posts", name, 0.1) for name in names])
    assert abs(one.mean() - 0.1) < 0.01
    assert abs((one & other).mean() - 0.01) < 0.003
    more = np.array([drawn(b"one", "posts", name, 0.2) for name in names])
    assert (more | ~one).all()  # a larger share draws these and more


@pytest.mark.parametrize("runs", [20, nightly(200)])
def test_the_bound_covers_under_peeking_whatever_is_answered_first(runs: int) -> None:
    """A stream of verdicts, 10 % wrong; whoever answers takes the right ones first.

    A bound that ignored what was left out is broken in every run, so that 20 tell them apart.
    """
    rng = np.random.default_rng(0)
    broken, uppers = 0, dict[tuple[int, int, int], float]()  # most counts come in many runs
    for run in range(runs):
        checks, truth = Checks(b"%d" % run), rng.random(150) < 0.1
        checks.load(
            [
                CheckRow(stream="s", n=n + 1, item=f"{n}", at=0.0, share=1.0, verdict="ok")
                for n in range(150)
            ],
            {},
        )
        waiting: list[int] = []
        upper = 1.0
        for n in range(150):
            waiting.append(n)
            if len(waiting) > 10:  # of ten that wait, the easiest
                easiest = min(waiting, key=lambda k: bool(truth[k]))
                waiting.remove(easiest)
                checks.answer(f"{easiest}", "spam" if truth[easiest] else "ok")
                bound = checks.bound()
                counts = (bound.audited, bound.wrong, bound.skipped)
                if counts not in uppers:
                    uppers[counts] = bound.upper
                upper = min(upper, uppers[counts])
        broken += upper < 0.1
    assert broken / runs <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5
