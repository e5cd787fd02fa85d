"""Every outage is told in the log, with its cause, when it begins and when it is over."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.server.support import Flaky, bench, running, until
from venire.errors import StoreDown
from venire.server import ItemIn, ManualClock
from venire.server.runtime.health import HealthMonitor


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The lines of the log, as they come."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname} {record.getMessage()}")

    handler, logger = Keep(), logging.getLogger("venire.service")
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


@running
async def test_a_full_disk_is_told_once_with_its_cause_and_when_it_is_over(said: list[str]) -> None:
    storage = Flaky()
    async with bench(storage) as b:
        await b.add("p1")
        storage.down = True
        for _ in range(3):
            with pytest.raises(StoreDown):
                await b.add("p2")
        assert said == ["ERROR the store does not accept writes: the disk is full"]
        condition = await b.service.condition()
        assert set(condition.down) == {"writes"}
        assert condition.stats.failures == 1
        b.clock.advance(70)
        with pytest.raises(StoreDown):
            await b.add("p2")
        assert said[1:] == [
            "ERROR the store does not accept writes, for 70 s now: the disk is full"
        ]
        storage.down = False
        await b.add("p2")
        assert said[2:] == ["WARNING recovered after 70.0 s: the store does not accept writes"]
        assert (await b.service.condition()).down == {}


@running
async def test_reads_that_fail_are_told_as_one_outage(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench() as b:
        await b.add("p1")
        real, fails = b.storage.labels_of, True

        def labels_of(*args: Any) -> Any:
            if fails:
                raise StoreDown("unable to open database file")
            return real(*args)

        monkeypatch.setattr(b.storage, "labels_of", labels_of)
        for _ in range(3):  # other reads succeed meanwhile
            with pytest.raises(StoreDown):
                await b.service.item("posts", "p1")
            await b.service.keys.refresh()
            b.clock.advance(1)
        assert said == ["ERROR the store does not answer reads: unable to open database file"]
        fails = False
        await b.service.keys.refresh()
        b.clock.advance(5)
        await b.service.keys.refresh()
        assert said[1:] == ["WARNING recovered after 8.0 s: the store does not answer reads"]


def test_a_process_without_file_descriptors_says_so(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    watch, real = HealthMonitor(clock), os.open

    def full(*args: Any) -> int:
        raise OSError(24, "Too many open files")

    watch.try_files()
    monkeypatch.setattr(os, "open", full)
    watch.try_files()
    watch.try_files()
    monkeypatch.setattr(os, "open", real)
    clock.advance(6)
    watch.try_files()
    assert said == [
        "ERROR no file can be opened and no connection accepted: Too many open files (see ulimit "
        "-n)",
        "WARNING recovered after 6.0 s: no file can be opened and no connection accepted",
    ]


@running
async def test_commits_are_counted_and_timed() -> None:
    async with bench() as b:
        before = (await b.service.condition()).stats
        await b.service.add_items("posts", [ItemIn("p1")])
        now = await b.service.condition()
        assert now.stats.commits > before.commits
        assert now.stats.changes > before.changes
        await until(lambda: b.service.runtime.writer.waiting == 0)
        assert (await b.service.condition()).queued == 0
