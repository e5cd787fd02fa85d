"""Alarms: each rule at its limit; raised once, cleared, sent, and there after a restart."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.server.support import Bench, Flaky, bench, running, settings_of
from venire.model import StreamStatus
from venire.server.admin_messages import Mix, TrendsView
from venire.server.edge.blind import Blind
from venire.server.messages import GoldIn, Insights
from venire.server.reports.alarm_rules import Finding, Watched, cleared, findings
from venire.server.reports.trends import trends_over
from venire.server.settings import AlarmRules, StreamSettings
from venire.server.store import Exited, LabelRow

CALM = Insights(
    stream="s", status=StreamStatus.RUNNING, slot=0, open_items=5, leased_items=0,
    oldest_seconds=10.0, labels=9, late_labels=0, exits=200, withdrawn=0, exits_per_minute=0.0,
    labels_per_minute=0.0, labels_per_item=2.0, budget=100, budget_left=50, agreement=None,
    mean_confidence=None, verdicts={}, reasons={}, response_median=1.0, response_p90=9.0,
    waiting=0, error_upper=0.05,
)  # fmt: skip
FINE = TrendsView("s", 200, 0.9, 0.88, 0.92, 0.5, 0.1, {"a": Mix(0.9, 0.8, 50, 40)}, {}, ())
ANN = Watched("ann", labels=20, drifting=False, away=0.0)

#: A rule, its limit, and what breaks it: of the insights, the trends, the labeler, or idle seconds.
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("queue", {"queue": 5}, {"open_items": 6}),
    ("oldest_seconds", {"oldest_seconds": 10.0}, {"oldest_seconds": 10.5}),
    ("response_p90_seconds", {"response_p90_seconds": 9.0}, {"response_p90": 9.5}),
    ("accuracy", {"accuracy": 0.92}, {"accuracy_high": 0.91}),
    ("error_upper", {"error_upper": 0.05}, {"error_upper": 0.06}),
    ("single_label_share", {}, {"single_label_share": 0.81}),
    ("kept_share", {}, {"mix": {"a": Mix(0.9, 0.8, 50, 24)}}),
    ("mix_shift", {}, {"mix_shift": 0.31}),
    ("drift", {}, {"drifting": True}),
    ("stopped_seconds", {}, {"away": 3601.0}),
    ("budget_share", {}, {"budget_left": 9}),
]


def found(rules: dict[str, Any], **changed: Any) -> list[str]:
    settings = StreamSettings(classes=("a", "b"), alarms=AlarmRules(**rules))
    now, trends = (
        replace(one, **{k: v for k, v in changed.items() if k in type(one).__dataclass_fields__})
        for one in (CALM, FINE)
    )
    ann = ANN._replace(**{k: v for k, v in changed.items() if k in ANN._fields})
    return [one.rule for one in findings(settings, now, trends, [ann])]  # type: ignore[arg-type]


@pytest.mark.parametrize(("rule", "limit", "broken"), CASES, ids=[case[0] for case in CASES])
def test_each_rule_is_kept_at_its_limit_and_broken_behind_it(
    rule: str, limit: dict[str, Any], broken: dict[str, Any]
) -> None:
    assert found(limit) == []
    assert found(limit, **broken) == [rule]
    off: Any = False if rule == "drift" else None
    assert found({rule: off}, **broken) == []
    assert {case[0] for case in CASES} == set(AlarmRules.model_fields)


@pytest.mark.parametrize(("rule", "limit", "broken"), CASES, ids=[case[0] for case in CASES])
def test_what_is_cleared_says_what_is_so_now(
    rule: str, limit: dict[str, Any], broken: dict[str, Any]
) -> None:
    was = Finding(rule, "ann" if rule in ("drift", "stopped_seconds") else "a", 9.0, 8.0, "was")
    settings = StreamSettings(classes=("a", "b"), alarms=AlarmRules(**limit))
    now = cleared(was, settings, CALM, FINE, [ANN])
    assert now.message not in ("was", "")
    assert rule == "drift" or any(x in now.message for x in ("back ", "within the limit"))
    off = AlarmRules.model_validate({rule: False if rule == "drift" else None})
    none = cleared(was, StreamSettings(classes=("a", "b"), alarms=off), CALM, FINE, [ANN])
    assert none.message == "this rule is off now"
    assert cleared(was, settings, CALM, replace(FINE, mix={}), []).message


def test_an_empty_queue_is_back_below_its_limit() -> None:
    settings = StreamSettings(classes=("a", "b"), alarms=AlarmRules(queue=500))
    was = Finding("queue", "", 1500, 500, "1,500 items are open, more than 500")
    now = cleared(was, settings, replace(CALM, open_items=0), FINE, [])
    assert (now.message, now.value) == ("0 open items, back below 500", 0)


def test_few_exits_say_nothing_and_one_label_may_be_wanted() -> None:
    assert found({}, single_label_share=1.0, mix_shift=1.0, exits=99) == []
    one = StreamSettings(classes=("a", "b"), max_overlap=1)
    assert findings(one, CALM, replace(FINE, single_label_share=1.0), []) == []


def _exits(n: int, verdict: str = "ok") -> list[Exited]:
    return [
        Exited(
            item=str(k),
            arrived_slot=0,
            arrived_at=0.0,
            exit_slot=1,
            left_at=9.0,
            verdict=verdict,
            confidence=0.9,
            labels=1,
            reason="no_gain",
            said=1,
            agreed=1,
        )
        for k in range(n)
    ]


def test_a_rare_class_that_is_overruled_is_found() -> None:
    """Nearly all left after one label, and whoever said the rare class was overruled."""
    labels = [
        LabelRow(
            stream="s",
            item=str(k),
            labeler="ann",
            said="rare" if k % 12 == 0 else "ok",
            at=1.0,
            slot=0,
            late=False,
            lead_seconds=None,
            source="lease",
        )
        for k in range(600)
    ]
    trends = trends_over("s", _exits(600), labels)
    assert (trends.mix["rare"].called, trends.mix["rare"].kept) == (50, 0)
    assert trends.mix["rare"].votes == pytest.approx(1 / 12)
    settings = StreamSettings(classes=("ok", "rare"))
    rules = [(one.rule, one.subject) for one in findings(settings, CALM, trends, [])]
    assert rules == [("single_label_share", ""), ("kept_share", "rare")]


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=300))
def test_shares_add_up_and_periods_cover_all(verdicts: list[str]) -> None:
    exits = [
        Exited(
            item=str(k),
            arrived_slot=0,
            arrived_at=0.0,
            exit_slot=1,
            left_at=float(k),
            verdict=said,
            confidence=0.5,
            labels=k % 3,
            reason="no_gain",
            said=1,
            agreed=1,
        )
        for k, said in enumerate(verdicts)
    ]
    labels = [
        LabelRow(
            stream="s",
            item=str(k),
            labeler=f"m{who}",
            said="ab"[who % 2],
            at=1.0,
            slot=0,
            late=False,
            lead_seconds=None,
            source="lease",
        )
        for k in range(0, len(verdicts), 2)
        for who in range(k % 5)
    ]
    trends = trends_over("s", exits, labels)
    assert sum(mix.verdicts for mix in trends.mix.values()) == pytest.approx(1)
    assert sum(mix.votes for mix in trends.mix.values()) == pytest.approx(float(len(verdicts) > 2))
    assert sum(period.exits for period in trends.periods) == len(verdicts)
    assert len(trends.periods) <= 24
    assert all(mix.kept <= mix.called for mix in trends.mix.values())
    assert 0 <= trends.mix_shift <= 1


async def _change(b: Bench, **rules: Any) -> None:
    await b.service.change_stream("posts", {"alarms": rules}, "me")


@running
async def test_an_alarm_is_raised_once_cleared_and_kept() -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("a", "b", "c")
        assert await b.service.check_alarms("posts") == []
        await _change(b, queue=2)
        [raised] = await b.service.check_alarms("posts")
        assert (raised.rule, raised.raised, raised.value, raised.threshold) == ("queue", True, 3, 2)
        assert await b.service.check_alarms("posts") == []
        assert (await b.service.insights("posts")).alarms == 1
    async with bench(storage) as b:
        assert [one.rule for one in (await b.service.alarms("posts")).active] == ["queue"]
        assert await b.service.check_alarms("posts") == []
        await _change(b, queue=3)
        assert await b.service.check_alarms("posts") == []  # not at the first check
        [cleared] = await b.service.check_alarms("posts")
        assert (cleared.rule, cleared.raised, cleared.n) == ("queue", False, 2)
        assert (cleared.value, cleared.threshold) == (3, 3)
        assert cleared.message == "3 open items, within the limit of 3"
        view = await b.service.alarms("posts")
        assert (view.active, [one.raised for one in view.history]) == ((), [True, False])
        assert [one.n for one in (await b.service.alarms("posts", after=1)).history] == [2]


@running
async def test_a_stream_of_the_same_name_has_none_of_the_trends_of_a_deleted_one() -> None:
    async with bench() as b:
        await b.add("a")
        await b.service.add_labels("posts", [("a", "ann", "spam"), ("a", "bob", "spam")])
        await b.service.add_gold("posts", [GoldIn("a", "spam")])
        await b.pass_time(100)
        assert (await b.service.trends("posts")).exits == 1
        await b.service.close("posts", "me")
        await b.service.delete_stream("posts", "me")
        await b.service.create_stream("posts", settings_of(), "me")
        assert (await b.service.trends("posts")).exits == 0


@running
async def test_requests_are_served_between_the_checks_of_two_streams() -> None:
    async with bench() as b:
        for name in ("one", "two", "three"):
            await b.service.create_stream(name, settings_of(), "me")
        await b.service.check_all_alarms()  # from now on everything it needs is in memory
        done = asyncio.ensure_future(b.service.check_all_alarms())
        turns = 0
        while not done.done():
            turns += 1
            await asyncio.sleep(0)
        assert turns >= 4


@running
async def test_old_alarms_are_dropped_and_those_that_are_on_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("venire.server.operations.insights.KEPT_ALARMS", 3)
    async with bench(alarms={"queue": 1, "oldest_seconds": 1000}) as b:
        await b.add("p1")
        await b.pass_time(1001)
        await b.service.check_alarms("posts")  # that an item waits is on from here on
        for n in range(4):
            await b.add(f"q{n}")
            await b.service.check_alarms("posts")
            await b.service.withdraw("posts", f"q{n}")
            for _ in range(2):
                await b.service.check_alarms("posts")
        kept = b.storage.alarms("posts")
        assert [row.n for row in kept] == [1, 7, 8, 9]
        assert kept[0].rule == "oldest_seconds"
    async with bench(b.storage, b.clock) as again:
        assert [key[0] for key in again.live.alarms] == ["oldest_seconds"]
        assert again.live.alarm_n == 9


def test_a_reviewer_is_told_of_alarms_that_no_verdict_raised() -> None:
    now = replace(CALM, audits_due=3, alarms=3, alarms_of_verdicts=2)
    assert Blind(frozenset(), hides=True).insights(now).alarms == 1
    assert Blind(frozenset(), hides=False).insights(now).alarms == 3
