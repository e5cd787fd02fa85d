"""Three servers on one PostgreSQL under load; one after the other is killed, stopped or ended.

Whatever was acknowledged must be there in the end, exactly once; no item has two verdicts, no
cursor skips an exit, and the store is what its log says. `VENIRE_KILLS` says how many servers are
lost, and `VENIRE_PAUSE` for how many seconds one is stopped; how long its streams were without an
owner is printed, and held to limits.
"""

from __future__ import annotations

import math
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.integration.web.harness import Process, until
from tests.integration.web.test_crash import SETTINGS, Load, check
from tests.integration.web.test_sharing import health, member
from venire.cli import main
from venire.client import Client, ServerError, Unreachable, backoff
from venire.storage import open_storage

KILLS = int(os.environ.get("VENIRE_KILLS", "4"))
PAUSE = float(os.environ.get("VENIRE_PAUSE", "16"))
STREAMS = ("s0", "s1", "s2", "s3")
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)

#: The longest that a stream may be without an owner, in seconds; twice that on a busy machine.
LIMITS = {signal.SIGKILL: 3.0, signal.SIGSTOP: 15.0, signal.SIGTERM: 3.0}


class Anywhere:
    """A client that goes to another server whenever one does not answer, as a balancer would."""

    def __init__(self, servers: list[Process], timeout: float = 4.0) -> None:
        self._clients = [server.client(retry_seconds=0.0, timeout=timeout) for server in servers]
        self._draw = random.Random()

    def __enter__(self) -> Anywhere:
        return self

    def __exit__(self, *error: object) -> None:
        for client in self._clients:
            client.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            end = time.monotonic() + 300
            while True:
                try:
                    return getattr(self._draw.choice(self._clients), name)(*args, **more)
                except (ServerError, Unreachable) as fault:
                    lost = not isinstance(fault, ServerError) or fault.status in (502, 503, 504)
                    if not lost or time.monotonic() > end:
                        raise
                    time.sleep(0.05)

        return call


@dataclass
class SharedLoad(Load):
    """A load on one stream, through any of the servers: half of them by a client that knows all."""

    servers: list[Process] = field(default_factory=list)

    def client(self) -> Client:
        if self.stream in STREAMS[::2]:
            urls = [server.url for server in self.servers]
            return Client(urls, self.servers[0].key, timeout=4.0, retry_seconds=300)
        return cast(Client, Anywhere(self.servers))


@contextmanager
def three(storage: str, folder: Path) -> Iterator[list[Process]]:
    servers: list[Process] = []
    try:
        for n in range(3):
            servers.append(member(storage, folder / str(n), servers[0].key if n else ""))
        yield servers
    finally:
        for server in servers:
            server.kill()


def owned_by(storage: str, server: Process) -> list[str]:
    with open_storage(storage, owner=False) as store:
        members = store.members()
    mine = {pid for pid, address in members.addresses.items() if address == server.url}
    return [name for name in STREAMS if members.owner(name) in mine]


def taken_over(stream: str, servers: list[Process], load: SharedLoad, begun: float) -> float:
    """Seconds until an item of a stream was acknowledged by another server."""
    item = f"probe-{begun}"
    with Anywhere(servers) as client:
        client.add_items(stream, [{"id": item}])
    load.items.add(item)
    return time.monotonic() - begun


def lose(
    victim: Process, how: signal.Signals, servers: list[Process], storage: str, loads: Any
) -> list[float]:
    """Lose a server; how long each of its streams was without an owner."""
    names = owned_by(storage, victim)
    others = [server for server in servers if server is not victim]
    assert victim.process is not None
    victim.process.send_signal(how)
    begun, took = time.monotonic(), list[float]()
    probes = [
        threading.Thread(
            target=lambda name=name: took.append(taken_over(name, others, loads[name], begun))
        )
        for name in names
    ]
    for probe in probes:
        probe.start()
    for probe in probes:
        probe.join(120)
    if how == signal.SIGSTOP:
        time.sleep(max(0.0, begun + PAUSE - time.monotonic()))
        victim.process.send_signal(signal.SIGCONT)
        until(lambda: health(victim)["role"] == "member")
    else:
        victim.process.wait(60)
        victim.start()
    assert len(took) == len(names), "a stream has no owner"
    return took


@pytest.mark.timeout(28800)
def test_nothing_acknowledged_is_lost_when_servers_are(
    new_url: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backoff, "LONGEST", 0.2)
    storage, draw = new_url("postgres"), random.Random(15)
    took: dict[signal.Signals, list[float]] = {how: [] for how in SIGNALS}
    with ExitStack() as stack:
        servers = stack.enter_context(three(storage, tmp_path))
        with servers[0].client(timeout=200) as client:
            for name in STREAMS:
                client.create_stream(name, **SETTINGS)
        loads = {name: SharedLoad(servers[0], name, 1.0, servers=servers) for name in STREAMS}
        for load in loads.values():
            load.start()
        for n in range(KILLS):
            time.sleep(draw.uniform(0.2, 1.5))
            how = SIGNALS[n] if n < len(SIGNALS) else draw.choice(SIGNALS)
            victim = max(servers, key=lambda one: (len(owned_by(storage, one)), draw.random()))
            took[how] += lose(victim, how, servers, storage, loads)
            assert not [fault for load in loads.values() for fault in load.faults]
        for load in loads.values():
            load.sent_all.set()
        for load in loads.values():
            load.finish()
        for server in servers:
            assert server.stop() == 0
    for load in loads.values():
        check(storage, load)
    assert main(["verify", "--storage", storage]) == 0
    report(took)


def report(took: dict[signal.Signals, list[float]]) -> None:
    for how, seconds in took.items():
        if seconds:
            ordered = sorted(seconds)
            p99 = ordered[math.ceil(0.99 * (len(ordered) - 1))]
            middle = statistics.median(ordered)
            print(  # noqa: T201
                f"{how.name}: {len(ordered)} streams taken over, median {middle:.2f} s, "
                f"p99 {p99:.2f} s, longest {ordered[-1]:.2f} s"
            )
            assert p99 < 2 * LIMITS[how]
