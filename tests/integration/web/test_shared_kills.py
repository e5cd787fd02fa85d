"""Three servers on one PostgreSQL under load; one after the other is killed, stopped or ended.

Whatever was acknowledged must be there in the end, exactly once; no item has two verdicts, no
cursor skips an exit, event streams go on without a gap, nobody writes a stream without its lock,
and the store is what its log says. `VENIRE_KILLS` says how many servers are lost, and
`VENIRE_PAUSE` for how many seconds one is stopped; the first for a minute. A server that is stopped
sleeps on while others are lost, some of them at once, when its streams are still its own: those are
not counted. How long streams were without an owner is printed, and held to limits.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.web import written_by
from tests.integration.web.harness import Process, until
from tests.integration.web.shared_load import Anywhere, SharedLoad
from tests.integration.web.test_crash import SETTINGS, check
from tests.integration.web.test_sharing import health, several
from venire.cli import main
from venire.client import backoff
from venire.storage import open_storage

KILLS = int(os.environ.get("VENIRE_KILLS", "20"))
PAUSE = float(os.environ.get("VENIRE_PAUSE", "16"))
LONGEST_PAUSE = 60.0
STREAMS = ("s0", "s1", "s2", "s3")
SIGNALS = (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM)

#: The longest that a stream may be without an owner, in seconds, and a server that wakes without
#: being a member; on a busy machine longer: `allowance`.
LIMITS = {signal.SIGKILL: 3.0, signal.SIGSTOP: 15.0, signal.SIGTERM: 3.0, signal.SIGCONT: 10.0}


def allowance() -> float:
    """How many times the limits: twice, and more where more than six programs share a core."""
    return max(2.0, os.getloadavg()[0] / (os.cpu_count() or 1) / 3)


def owned_by(storage: str, server: Process) -> list[str]:
    with open_storage(storage, owner=False) as store:
        members = store.members()
    mine = {pid for pid, address in members.addresses.items() if address == server.url}
    return [name for name in STREAMS if members.owner(name) in mine]


def answers(server: Process) -> bool:
    with contextlib.suppress(OSError):
        return bool(health(server)["role"] == "member")
    return False


@dataclass
class Trial:
    """The servers, who of them sleeps, and what was measured."""

    storage: str
    servers: list[Process]
    loads: dict[str, SharedLoad]
    draw: random.Random
    pool: ThreadPoolExecutor
    took: dict[signal.Signals, list[float]] = field(default_factory=dict)
    allowed: dict[signal.Signals, float] = field(default_factory=dict)
    asleep: Process | None = None
    waking: Future[None] | None = None
    sessions: list[tuple[str, Any]] = field(default_factory=list)

    def lose_one(
        self, how: signal.Signals, pause: float = 0.0, at_once: signal.Signals | None = None
    ) -> None:
        """Lose the server with most streams among those who are awake, and perhaps another."""
        if self.waking is not None and (how == signal.SIGSTOP or self.waking.done()):
            self.wake()
        awake = [server for server in self.servers if server is not self.asleep]
        victim = max(awake, key=lambda x: (len(owned_by(self.storage, x)), self.draw.random()))
        others = [server for server in awake if server is not victim]
        names, begun = owned_by(self.storage, victim), time.monotonic()
        session = written_by.session_of(self.storage, victim.url)
        assert victim.process is not None
        victim.process.send_signal(how)
        if how == signal.SIGSTOP:
            self.asleep = victim
            self.waking = self.pool.submit(self._wake_after, victim, pause)
        probes = [self.pool.submit(self._taken_over, name, others, begun) for name in names]
        if at_once is not None:
            self.lose_one(at_once)
        for probe in probes:
            self._note(how, probe.result(120))
        if how == signal.SIGSTOP:
            self.sessions.append((session, written_by.now(self.storage)))
        else:
            victim.process.wait(60)
            victim.start()

    def wake(self) -> None:
        """Wait until the server that sleeps is a member again."""
        if self.waking is not None:
            self.waking.result(LONGEST_PAUSE + PAUSE + 300)
            self.asleep = self.waking = None

    def _wake_after(self, victim: Process, pause: float) -> None:
        time.sleep(pause)
        assert victim.process is not None
        victim.process.send_signal(signal.SIGCONT)
        begun = time.monotonic()
        until(lambda: answers(victim), 120)
        self._note(signal.SIGCONT, time.monotonic() - begun)

    def _taken_over(self, stream: str, servers: list[Process], begun: float) -> float:
        """Seconds until an item of a stream was acknowledged by another server."""
        item = f"probe-{begun}"
        with Anywhere(servers) as client:
            client.add_items(stream, [{"id": item}])
        self.loads[stream].items.add(item)
        return time.monotonic() - begun

    def _note(self, how: signal.Signals, seconds: float) -> None:
        self.took.setdefault(how, []).append(seconds)
        print(f"{how.name} {seconds:.2f} s", flush=True)  # noqa: T201
        self.allowed[how] = max(self.allowed.get(how, 0.0), LIMITS[how] * allowance())


def report(trial: Trial) -> None:
    """What was measured, and whether it is within the limits."""
    what = {signal.SIGCONT: "servers that woke were members again"}
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    lines, late = [f"{os.cpu_count()} cores, load average {load}"], []
    for how, seconds in sorted(trial.took.items()):
        ordered = sorted(seconds)
        p99 = ordered[math.ceil(0.99 * (len(ordered) - 1))]
        lines.append(
            f"{how.name}: {len(ordered)} {what.get(how, 'streams were taken over')}, median "
            f"{statistics.median(ordered):.2f} s, p99 {p99:.2f} s, longest {ordered[-1]:.2f} s, "
            f"allowed {trial.allowed[how]:.1f} s"
        )
        if p99 > trial.allowed[how]:
            late.append(how.name)
    print("", *lines, sep="\n")  # noqa: T201
    assert not late, f"too late: {late}\n" + "\n".join(lines)


def check_events(storage: str, load: SharedLoad) -> None:
    """The events that were followed are those of the log, each once and in order."""
    with open_storage(storage) as store:
        log = [row.n + row.size for row in store.all_events(load.stream)]
    assert load.events == log[: len(load.events)], "events were left out or came twice"
    assert len(load.events) > len(log) / 2


@pytest.mark.timeout(600 + 90 * KILLS)
def test_nothing_acknowledged_is_lost_when_servers_are(
    new_url: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONGEST", 0.2)
    storage, draw = new_url("postgres"), random.Random(15)
    with several(storage, tmp_path, 3) as servers, ThreadPoolExecutor(8) as pool:
        with servers[0].client(timeout=200) as client:
            for name in STREAMS:
                client.create_stream(name, **SETTINGS)
        written_by.begin_notes(storage)
        loads = {
            name: SharedLoad(servers[0], name, 1.0, 2.0, servers=servers, knows_all=n % 2 == 0)
            for n, name in enumerate(STREAMS)
        }
        for load in loads.values():
            load.start()
        trial = Trial(storage, servers, loads, draw, pool)
        order = [SIGNALS[n % len(SIGNALS)] for n in range(1, KILLS)]
        draw.shuffle(order)
        for n, how in enumerate([SIGNALS[0], *order]):
            time.sleep(draw.uniform(0.2, 1.5))
            more = draw.choice((None, *SIGNALS[1:])) if how == signal.SIGSTOP else None
            trial.lose_one(how, PAUSE if n else max(PAUSE, LONGEST_PAUSE), more)
            assert not [fault for load in loads.values() for fault in load.faults]
        trial.wake()
        for load in loads.values():
            load.sent_all.set()
        for load in loads.values():
            load.finish()
        for server in servers:
            assert server.stop() == 0
    for load in loads.values():
        check(storage, load)
        check_events(storage, load)
    assert written_by.strays(storage) == []
    for session, when in trial.sessions:
        assert written_by.written_since(storage, session, when) == [], "a stopped owner wrote"
    assert main(["verify", "--storage", storage]) == 0
    report(trial)
