"""Three servers that share a PostgreSQL, and a standby, under load; one fault after the other.

Servers are killed, ended and suspended; connections to PostgreSQL are half-open, stalled, reset and
refused; PostgreSQL itself is killed, or has no connection to spare. Whatever was acknowledged must
be there in the end, exactly once; no item has two verdicts, none is stuck, no cursor skips an exit,
event streams go on without a gap, nobody writes a stream that is not its own, every server comes
back by itself, and the store is what its log says. `VENIRE_KILLS` says how many faults there are,
`VENIRE_SEED` which. For how long streams were without an owner is printed.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import new_database, running_postgres, start_postgres
from tests.integration.server import written_by
from tests.integration.server.harness import Process, until
from tests.integration.server.shared_load import Anywhere, SharedLoad
from tests.integration.server.test_crash import SETTINGS, check
from tests.integration.server.test_sharing import health
from tests.wire import FAULTS, Wire, wire_to
from venire.cli import main
from venire.server.store import open_storage
from venire.tools import http

KILLS = int(os.environ.get("VENIRE_KILLS", "60"))
SEED = int(os.environ.get("VENIRE_SEED", "26"))
STREAMS = ("s0", "s1", "s2", "s3")

#: The faults, and for how many seconds a stream may be without an owner after them, as far as that
#: is not the length of the fault. On a busy machine that says nothing: `allowance`.
LIMITS = {
    "SIGKILL": 5.0,
    "SIGKILL, all": 10.0,
    "SIGTERM": 5.0,
    "SIGSTOP": 20.0,
    "halfopen": 20.0,
    "halfdrop": 20.0,
    "stall": 20.0,
    "reset": 10.0,
    "refuse": 10.0,
    "halfopen, all": 20.0,
    "postmaster": 30.0,
    "slots": 15.0,
}
#: How long a fault lasts, from and to, if it is not over at once.
LASTS = {"SIGSTOP": (6, 18), "stall": (6, 20), "refuse": (4, 12), "slots": (5, 8)}


def allowance() -> float:
    """How many times the limits: twice; where more than three programs share a core, any."""
    return 2.0 if os.getloadavg()[0] <= 3 * (os.cpu_count() or 1) else math.inf


def role(server: Process) -> str:
    with contextlib.suppress(OSError):
        return str(health(server)["role"])
    return ""


def owned_by(storage: str, server: Process) -> list[str]:
    if role(server) == "leader":
        return list(STREAMS)
    with open_storage(storage, owner=False) as store:
        members = store.members()
    mine = {pid for pid, address in members.addresses.items() if address == server.url}
    return [name for name in STREAMS if members.owner(name) in mine]


@dataclass
class Trial:
    """The servers, their connections to PostgreSQL, and what was measured."""

    postgres: Any
    storage: str
    servers: list[Process]  # the last one is the standby
    wires: dict[str, Wire]  # by the folder of the server
    loads: dict[str, SharedLoad]
    draw: random.Random
    pool: ThreadPoolExecutor
    took: dict[str, list[float]] = field(default_factory=dict)
    back: list[float] = field(default_factory=list)
    led: int = 0  # after how many faults the standby had the store
    allowed: dict[str, float] = field(default_factory=dict)
    sessions: list[tuple[str, Any]] = field(default_factory=list)

    def strike(self, kind: str, spared: Process | None = None) -> None:
        """Do something to the server with most streams, or to all, and see how they come back."""
        awake = [server for server in self.servers if server is not spared]
        victim = max(awake, key=lambda x: (len(owned_by(self.storage, x)), self.draw.random()))
        everything = kind in ("postmaster", "slots") or kind.endswith("all")
        names = STREAMS if everything else owned_by(self.storage, victim)
        gone = [victim] if hasattr(signal, kind) else []
        if kind == "SIGKILL, all":  # of those that serve: the standby takes over, or they from it
            gone = [victim] if victim is self.servers[-1] else self.servers[:-1]
        asked = [server for server in awake if server not in gone]
        session = written_by.session_of(self.storage, victim.url) if kind == "SIGSTOP" else ""
        seconds = self.draw.uniform(*LASTS.get(kind, (1, 3)))
        begun = time.monotonic()
        mended = self.pool.submit(self._mended_after, seconds, self._do(kind, victim, gone))
        probes = [self.pool.submit(self._acknowledged, name, asked, begun) for name in names]
        if kind == "SIGSTOP" and spared is None and self.draw.random() < 0.67:
            self.strike(self.draw.choice(("SIGKILL", "SIGTERM")), victim)
        for probe in probes:
            self._note(kind, probe.result(240))
        if kind == "SIGSTOP" and seconds > 14:
            self.sessions.append((session, written_by.now(self.storage)))
        mended.result(240)
        if spared is None:
            over = time.monotonic()
            until(self._settled, 240)
            self.back.append(time.monotonic() - over)
            self.led += role(self.servers[-1]) == "leader"
        assert not [fault for load in self.loads.values() for fault in load.faults]

    def _do(self, kind: str, victim: Process, gone: list[Process]) -> Callable[[], None]:
        """Begin a fault; how to end it."""
        wire = self.wires[str(victim.folder)]
        if gone:
            for server in gone:
                _signal(server, kind.partition(",")[0])
            if kind == "SIGSTOP":
                return lambda: _signal(victim, "SIGCONT")
            return lambda: self._again(gone)
        if kind in FAULTS:
            wire.fail(kind)
            return wire.mend
        if kind == "halfopen, all":
            for one in self.wires.values():
                one.fail("halfopen")
            return lambda: None
        if kind == "postmaster":
            os.kill(self.postgres.get_pid(), signal.SIGKILL)
            return self._start_postgres
        held = self._fill()
        wire.fail("reset")  # it has to connect anew
        return held.close

    def _again(self, gone: list[Process]) -> None:
        for server in gone:
            assert server.process is not None
            server.process.wait(280)
            server.start(standby=server is self.servers[-1])

    def _start_postgres(self) -> None:
        (self.postgres.pgdata / "postmaster.pid").unlink()  # nobody may have buried the old one yet
        begun = time.monotonic()
        start_postgres(self.postgres)
        print(f"PostgreSQL took {time.monotonic() - begun:.1f} s to start", flush=True)  # noqa: T201

    def _fill(self) -> contextlib.ExitStack:
        """Take all connections that PostgreSQL has to spare."""
        held = contextlib.ExitStack()
        with contextlib.suppress(psycopg.OperationalError):
            while True:
                held.callback(psycopg.connect(self.storage).close)
        return held

    def _mended_after(self, seconds: float, mend: Callable[[], None]) -> None:
        time.sleep(seconds)
        mend()

    def _settled(self) -> bool:
        """Whether three share the store, or one of the four has it and the others stand by."""
        roles = [role(server) for server in self.servers]
        alone = sorted(roles) == ["leader", "standby", "standby", "standby"]
        return alone or roles == ["member", "member", "member", "standby"]

    def _acknowledged(self, stream: str, servers: list[Process], begun: float) -> float:
        """Seconds until a new item of a stream was acknowledged."""
        item = f"probe-{begun}"
        with Anywhere(servers, timeout=2.0) as client:
            client.add_items(stream, [{"id": item}])
        self.loads[stream].items.add(item)
        return time.monotonic() - begun

    def _note(self, kind: str, seconds: float) -> None:
        self.took.setdefault(kind, []).append(seconds)
        print(f"{kind} {seconds:.2f} s", flush=True)  # noqa: T201
        self.allowed[kind] = max(self.allowed.get(kind, 0.0), LIMITS[kind] * allowance())


def _signal(server: Process, name: str) -> None:
    assert server.process is not None
    server.process.send_signal(signal.Signals[name])


def report(trial: Trial) -> list[str]:
    """Print what was measured; which faults took longer than they may."""
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    lines, late = [f"{os.cpu_count()} cores, load average {load}"], []
    for kind, seconds in sorted({**trial.took, "servers back": trial.back}.items()):
        ordered = sorted(seconds)
        p99 = ordered[math.ceil(0.99 * (len(ordered) - 1))]
        lines.append(
            f"{kind}: {len(ordered)}, median {statistics.median(ordered):.1f} s, longest "
            f"{ordered[-1]:.1f} s"
        )
        if p99 > trial.allowed.get(kind, math.inf):
            late.append(kind)
    items = sum(len(load.items) for load in trial.loads.values())
    labels = sum(len(load.labels) for load in trial.loads.values())
    lines.append(
        f"{items} items and {labels} labels acknowledged; the standby led after {trial.led}"
    )
    print("", *lines, sep="\n")  # noqa: T201
    return late


def check_events(storage: str, load: SharedLoad) -> None:
    """The events that were followed are those of the log, each once and in order."""
    with open_storage(storage) as store:
        log = [row.n + row.size for row in store.all_events(load.stream)]
    assert load.events == log[: len(load.events)], "events were left out or came twice"
    assert len(load.events) > len(log) / 2


@contextlib.contextmanager
def four(storage: str, folder: Path) -> Iterator[tuple[list[Process], dict[str, Wire]]]:
    """Three servers that share, and a standby, each with a wire of its own."""
    with contextlib.ExitStack() as stack:
        servers, wires = list[Process](), dict[str, Wire]()
        for n in range(4):
            at = folder / str(n)
            at.mkdir()
            wire = wires[str(at)] = stack.enter_context(wire_to(storage))
            key = servers[0].key if n else ""
            server = Process(wire.url, at, key=key, options=() if n == 3 else ("--shared",))
            server.start(standby=n == 3)
            stack.callback(server.kill)
            servers.append(server)
        yield servers, wires


def faults(count: int, draw: random.Random) -> list[str]:
    """As many of each kind as of any other, or one more, in any order."""
    kinds = sorted(LIMITS)
    order = [kinds[n % len(kinds)] for n in range(count)]
    draw.shuffle(order)
    return order


@pytest.mark.slow
@pytest.mark.timeout(600 + 90 * KILLS)
def test_nothing_acknowledged_is_lost_whatever_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "LONGEST", 0.2)
    with running_postgres() as postgres:
        storage = new_database(postgres.get_uri(), "faults")
        with four(storage, tmp_path) as (servers, wires), ThreadPoolExecutor(16) as pool:
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
            draw = random.Random(SEED)
            trial = Trial(postgres, storage, servers, wires, loads, draw, pool)
            for kind in faults(KILLS, random.Random(SEED)):
                time.sleep(draw.uniform(0.2, 1.5))
                trial.strike(kind)
            for load in loads.values():
                load.sent_all.set()
            for load in loads.values():
                load.finish()
            for server in reversed(servers):
                assert server.stop() == 0
        for load in loads.values():
            check(storage, load)
            check_events(storage, load)
        assert written_by.strays(storage) == []
        for session, when in trial.sessions:
            assert written_by.written_since(storage, session, when) == [], "a stopped owner wrote"
        assert main(["verify", "--storage", storage]) == 0
        late = report(trial)
    assert not late, f"too late: {late}"
