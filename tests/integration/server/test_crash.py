"""The crash test: a load of producers and labelers, and a server that is killed again and again.

Whatever was acknowledged must be there in the end, exactly once; no item has two verdicts, none is
stuck, and the store is what its log says. `VENIRE_KILLS` says how often the server is killed.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.harness import Process, serving, until
from venire.cli import main
from venire.client import Client, ItemExit, ServerError, Work
from venire.server.store import open_storage
from venire.tools import http

KILLS = int(os.environ.get("VENIRE_KILLS", "3"))
LABELERS = ("ann", "bob", "cat")
SETTINGS: dict[str, Any] = {
    "classes": ["spam", "ok"],
    "panel": [{"id": name, "competence": 0.8, "capacity": 2} for name in LABELERS],
    "learning": "known",
    "policy": "fixed-overlap:2",
    "slot_seconds": 0.2,
    "lease_floor_seconds": 1.0,
    "lease_ceiling_seconds": 2.0,
}


@dataclass
class Load:
    """Who sends and labels, and what the server acknowledged to them."""

    server: Process
    stream: str = "posts"
    pause: float = 0.05
    wait: float = 0.5
    items: set[str] = field(default_factory=set)
    labels: dict[tuple[str, str], str] = field(default_factory=dict)
    exits: list[ItemExit] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)
    sent_all: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        jobs: list[Callable[[Client], None]] = [self.produce(n) for n in range(2)]
        jobs += [self.label(name) for name in LABELERS]
        jobs.append(self.watch)
        # after a failure they go on asking for an hour, which must not hold up the end
        self.threads = [threading.Thread(target=self.run, args=(job,), daemon=True) for job in jobs]
        for thread in self.threads:
            thread.start()

    def run(self, job: Callable[[Client], None]) -> None:
        try:
            with self.client() as client:
                job(client)
        except BaseException as fault:
            self.faults.append(fault)

    def client(self) -> Client:
        return self.server.client(retry_seconds=3600, timeout=60)

    def produce(self, number: int) -> Callable[[Client], None]:
        def job(client: Client) -> None:
            batch = 0
            while not self.sent_all.is_set():
                rows = [{"id": f"{number}-{batch}-{n}", "payload": {"n": n}} for n in range(3)]
                client.add_items(self.stream, rows)
                self.items.update(row["id"] for row in rows)  # type: ignore[misc]
                batch += 1
                time.sleep(self.pause)

        return job

    def label(self, name: str) -> Callable[[Client], None]:
        draw = random.Random(name)

        def job(client: Client) -> None:
            while not self.done.is_set():
                work = client.next(self.stream, name, wait=self.wait)
                if not isinstance(work, Work):
                    continue
                if draw.random() < 0.02:  # one that never answers
                    continue
                said = draw.choice(["spam", "ok"])
                try:
                    client.label(work.token, said)
                    if draw.random() < 0.1:  # one that answers twice
                        client.label(work.token, said)
                except ServerError as fault:
                    if fault.status != 404:
                        raise
                    continue  # the lease was given, but the server died before it was on disk
                self.labels[work.item, name] = said

        return job

    def watch(self, client: Client) -> None:
        while not self.done.is_set():
            after = self.exits[-1].n if self.exits else 0
            found = client.exits(self.stream, after, wait=self.wait)
            numbers = [exit.n for exit in found]
            assert numbers == list(range(after + 1, after + 1 + len(found))), f"after {after}"
            self.exits += found

    def finish(self) -> None:
        """Send no more, and wait until every item has left."""
        self.sent_all.set()
        for producer in self.threads[:2]:
            producer.join(600)
        before, changed = -1, 0.0
        with self.client() as client:
            while (now := client.stream(self.stream)["open_items"]) > 0:
                assert not self.faults, self.faults
                if now != before:
                    before, changed = now, time.monotonic()
                assert time.monotonic() < changed + 600, f"{now} items are stuck"
                time.sleep(0.2)
            left = client.insights(self.stream)["exits"]
        until(lambda: len(self.exits) >= left)
        self.done.set()
        for thread in self.threads:
            thread.join(600)
        assert not self.faults, self.faults


def crash(storage: str, folder: Path) -> None:
    draw = random.Random(storage)
    with serving(storage, folder) as server:
        with server.client(timeout=200) as client:
            client.create_stream("posts", **SETTINGS)
        load = Load(server)
        load.start()
        until(lambda: len(load.items) > 20)
        for _ in range(KILLS):
            time.sleep(draw.uniform(0.02, 1.0))
            server.kill()
            server.start()
        load.finish()
        assert server.stop() == 0
    check(storage, load)
    assert main(["verify", "--storage", storage]) == 0


def check(storage: str, load: Load) -> None:
    """Everything acknowledged is there once, and every exit was told once."""
    with open_storage(storage) as store:
        rows = list(store.all_items(load.stream))
        labels = {(row.item, row.labeler): row.said for row in store.all_labels(load.stream)}
        counted = sum(1 for _ in store.all_labels(load.stream))
    assert counted == len(labels)
    assert len(load.items) > 20
    assert load.items <= {row.id for row in rows}
    assert len({row.id for row in rows}) == len(rows)
    assert load.labels.items() <= labels.items()
    assert {row.status for row in rows} == {"left"}
    numbers = [row.exit_n for row in rows]
    assert sorted(numbers) == list(range(1, len(rows) + 1))  # type: ignore[type-var]
    seen = Counter(exit.item for exit in load.exits)
    assert set(seen.values()) == {1}, "an exit was told twice"
    verdicts = {row.id: (row.exit_n, row.verdict, row.confidence) for row in rows}
    assert {x.item: (x.n, x.verdict, x.confidence) for x in load.exits} == verdicts


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_nothing_acknowledged_is_lost(
    kind: str, new_url: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the server is up for moments only, which a patient client would miss
    monkeypatch.setattr(http, "LONGEST", 0.2)
    crash(new_url(kind), tmp_path)
