"""Time that does not suffice: slots too short to be closed, and a ticker that stumbles."""

import pytest
from pydantic import ValidationError

from tests.unit.service.support import bench, running, settings_of
from venire.service import ManualClock
from venire.service.settings import as_body, of_body


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
        b.service.hub.tick()
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
