"""What-if by the service: the same as the library's, bounded, off the loop, and cancelled."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

from tests.unit.server.support import Bench, bench, running, until
from venire import Budget, Plan, what_if
from venire.errors import InputError, NotFound, StateError, TooMuch, UnknownName
from venire.server.messages import GoldIn
from venire.server.reports import replays as report
from venire.server.reports.explain import Stopped
from venire.server.stream import background

PANEL = [
    {"id": m, "competence": c, "price": 0.5} for m, c in (("ann", 0.9), ("bob", 0.8), ("cec", 0.7))
]


async def labelled(b: Bench, items: int = 40) -> None:
    """Items that everybody labelled, and that have left."""
    rng = np.random.default_rng(0)
    await b.add(*(f"i{n}" for n in range(items)))
    for _ in range(3 * items):
        for name, skill in (("ann", 0.9), ("bob", 0.8), ("cec", 0.7)):
            lease: Any = await b.service.next("posts", name)
            if not hasattr(lease, "token"):
                continue
            right = rng.random() < skill
            said = "ok" if right == (int(lease.item[1:]) % 2 == 0) else "spam"
            await b.service.label(lease.token, said)
    await b.pass_time(10)


@running
async def test_it_is_the_comparison_of_the_library() -> None:
    async with bench(policy="everyone", panel=PANEL) as b:
        await labelled(b)
        for plan in (
            Plan("fixed-overlap:1"),
            Plan(without=frozenset({"cec"})),
            Plan(budget=Budget(labels=30)),
            Plan(max_labels=2),
        ):
            view = await b.service.what_if("posts", plan)
            expected = what_if(report.recorded_of(b.storage, "posts"), plan)
            assert view.whole
            assert view.compared == expected.compared == 40
            for name, paired in expected.measures.items():
                found = view.measures[name]
                assert found.was == pytest.approx(paired.was)
                assert found.change.value == pytest.approx(paired.change.value)
        assert view.measures["labels"].was == 3
        assert view.measures["labels"].would_be.value == 2
        assert view.measures["money"].was == pytest.approx(1.5)


@running
async def test_only_the_beginning_of_a_long_log_is_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with bench(policy="fixed-overlap:2", panel=PANEL) as b:
        await labelled(b, 20)
        await labelled_later(b, 20)
        whole = await b.service.what_if("posts", Plan())
        monkeypatch.setattr(report, "MOST_EVENTS", b.live.n - 30)
        part = await b.service.what_if("posts", Plan())
        assert (whole.whole, part.whole) == (True, False)
        assert part.compared < whole.compared == 40


async def labelled_later(b: Bench, items: int) -> None:
    await b.add(*(f"l{n}" for n in range(items)))
    rows = [(f"l{n}", m, "ok") for n in range(items) for m in ("ann", "bob")]
    await b.service.add_labels("posts", rows)
    await b.pass_time(10)


@running
async def test_bad_plans_are_refused_before_anything_is_replayed() -> None:
    async with bench() as b:
        with pytest.raises(NotFound):
            await b.service.what_if("nothing", Plan())
        with pytest.raises(InputError, match="the log holds no label"):
            await b.service.what_if("posts", Plan())
        with pytest.raises(UnknownName):
            await b.service.what_if("posts", Plan("nonsense"))
        with pytest.raises(UnknownName):
            await b.service.what_if("posts", Plan(learning="nonsense"))


@running
async def test_what_takes_too_long_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_SECONDS", -1.0)
    async with bench() as b:
        with pytest.raises(StateError, match="use venire replay, which has no limit"):
            await b.service.what_if("posts", Plan())


@running
async def test_it_stops_with_its_caller_and_explanations_do_not_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ended, go = threading.Event(), threading.Event(), threading.Event()
    real = report.recorded_of

    def slow(storage: Any, stream: str, progress: Any, most: int) -> Any:
        begun.set()
        go.wait()
        try:
            progress(1000)
            return real(storage, stream, progress, most)
        except Stopped:
            ended.set()
            raise

    monkeypatch.setattr(report, "recorded_of", slow)
    async with bench() as b:
        await b.add("a")
        task = asyncio.ensure_future(b.service.what_if("posts", Plan()))
        await until(begun.is_set)
        assert (await b.service.explain("posts", "a")).why == "it has not left"
        waiting = [
            asyncio.ensure_future(b.service.what_if("posts", Plan()))
            for _ in range(background.MAX_REPLAYS - 1)
        ]
        await asyncio.sleep(0.01)
        with pytest.raises(TooMuch, match="replays are in progress"):
            await b.service.what_if("posts", Plan())
        for one in (task, *waiting):
            one.cancel()
        await asyncio.gather(task, *waiting, return_exceptions=True)
        go.set()
        await until(ended.is_set)


@running
async def test_with_nothing_changed_it_repeats_a_stream_in_which_all_happens() -> None:
    """Costs, a target, people who come late, gold, a pause, and leases that end."""
    costs = [{"truth": "spam", "verdict": "ok", "cost": 20}]
    rng = np.random.default_rng(0)
    async with bench(
        policy="realised",
        learning="while-serving",
        panel=[{"id": "ann"}],
        open_panel=True,
        costs=costs,
        min_confidence=0.9,
    ) as b:
        for round in range(30):
            await b.add(*(f"r{round}-{n}" for n in range(2)))
            for name in 3 * ["ann", "bob", *(["cec", "dan"] if round > 8 else [])]:
                lease: Any = await b.service.next("posts", name)
                if hasattr(lease, "token") and rng.random() < 0.8:
                    await b.service.label(lease.token, "spam" if rng.random() < 0.1 else "ok")
            if round in (5, 15):
                rows = [GoldIn(f"r{round}-0", "ok"), GoldIn(f"r{round - 5}-1", "spam")]
                await b.service.add_gold("posts", rows)
            if round == 20:
                await b.service.pause("posts", "test")
                await b.pass_time(100)
                await b.service.resume("posts", "test")
            await b.pass_time(25)
        view = await b.service.what_if("posts", Plan())
        assert view.repeated == view.recorded > 10  # enough of them to compare
        assert view.measures["right"].change.value == 0
        assert f"it repeats {view.recorded} of {view.recorded} verdicts" in view.notes[0]
        other = await b.service.what_if("posts", Plan(max_labels=1))
        assert other.repeated == view.recorded
        assert "it does as the log says up to slot 0" in other.notes[1]
