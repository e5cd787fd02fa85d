"""Time that does not suffice: slots too short to be closed, and a ticker that stumbles."""

import asyncio

import pytest
from pydantic import ValidationError

from tests.unit.server.support import bench, running, settings_of, until
from venire.server import ItemIn, ManualClock, ServiceSettings
from venire.server.runtime.ticker import RELOAD_SECONDS
from venire.server.settings import as_body, of_body


class Slow(ManualClock):
    """A clock by which every look at it takes some time."""

    takes = 0.0

    def monotonic(self) -> float:
        self.advance(self.takes)
        return super().monotonic()


def test_a_slot_is_not_shorter_than_can_be_served() -> None:
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.01"):
        settings_of(slot_seconds=1e-6)
    old = as_body(settings_of(), "running").replace('"slot_seconds": 10.0', '"slot_seconds": 1e-06')
    assert of_body(old)[0].slot_seconds == 0.01  # of a store from before


@running
async def test_slots_that_cannot_be_closed_in_time_do_not_pass() -> None:
    clock = Slow()
    async with bench(clock=clock, slot_seconds=0.01) as b:
        await b.add("p1")
        clock.advance(1000)
        clock.takes = 0.015
        b.service.runtime.ticker.tick()
        clock.takes = 0.0
        assert 0 < b.live.engine.slot < 20
        assert not b.live.is_due(clock.monotonic())  # nothing is left to be caught up with
        assert (await b.service.insights("posts")).slots_skipped > 99_000
        slot = b.live.engine.slot
        await b.pass_time(1.0)  # time goes on, and is kept up with
        assert slot + 90 < b.live.engine.slot <= slot + 100
        fingerprint = b.live.engine.fingerprint()
    async with bench(b.storage, clock) as again:
        assert again.live.engine.fingerprint() == fingerprint


@running
async def test_an_idle_time_of_any_length_passes_at_once() -> None:
    async with bench(slot_seconds=0.01) as b:
        await b.pass_time(1e7)
        assert b.live.engine.slot == pytest.approx(10**9, abs=2)
        assert (await b.service.insights("posts")).slots_skipped == 0


@running
async def test_a_stream_that_fails_stops_neither_the_others_nor_the_clock(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with bench(deadline_slots=1) as b:
        await b.service.create_stream("others", settings_of(deadline_slots=1), "test")
        for stream in ("posts", "others"):
            await b.service.add_items(stream, [ItemIn("p1")])
        bad = next(live for live in b.service.runtime.loaded() if live.name == "posts")
        monkeypatch.setattr(bad.engine, "advance", lambda slot: 1 / 0)
        await b.pass_time(20)
        assert "ZeroDivisionError" in caplog.text
        assert [live.name for live in b.service.runtime.loaded()] == ["others"]
        assert [exit.item for exit in await b.service.exits("others")] == ["p1"]
        b.clock.advance(RELOAD_SECONDS)
        await until(lambda: len(b.service.runtime.loaded()) == 2)  # loaded again, by the ticker
        await b.pass_time(20)
        assert [exit.item for exit in await b.service.exits("posts")] == ["p1"]
        assert b.service.up


@running
async def test_loops_beside_the_requests_survive_what_nobody_foresaw(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("venire.server.webhooks.deliveries.POLL_SECONDS", 0.01)
    async with bench(server=ServiceSettings(key_refresh_seconds=0.01)) as b:
        calls = dict.fromkeys(("tick", "send_due", "refresh"), 0)
        for owner, name in (
            (b.service.runtime.ticker, "tick"),
            (b.service.webhooks.deliveries, "send_due"),
            (b.service.keys, "refresh"),
        ):

            def fails(name: str = name) -> None:
                calls[name] += 1
                raise ValueError(name)

            monkeypatch.setattr(owner, name, fails)
        while min(calls.values()) < 2:
            b.service.runtime.ticker.wake()
            await asyncio.sleep(0.02)
        assert [b.service.up] == [True]
        assert "failed; retrying" in caplog.text
        task = b.service.runtime.ticker._task
        assert task is not None
        task.cancel()
        await until(lambda: not b.service.up)  # no time passes: /ready has to say so
        monkeypatch.undo()
