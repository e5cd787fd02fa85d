"""`venire connect label-studio`, with people, and with kills of everything.

Nothing is handed out without a lease, every annotation counts once or is refused aloud, and all
tasks are closed. `VENIRE_KILLS` says how often something is killed.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.forked import FORKS, Forked
from tests.integration.server.harness import SOURCE, Process, serving, until
from tests.marks import nightly
from tests.studio.double import ANNOTATORS, OWNER
from tests.studio.people import KIND, Somebody
from tests.studio.servers import Studio, running
from venire.client import Client
from venire.connectors.label_studio.studio import FIELD
from venire.connectors.label_studio.sync import VERSION
from venire.server.store import open_storage

KILLS = int(os.environ.get("VENIRE_KILLS", "2"))
SETTINGS: dict[str, Any] = {
    "classes": ["spam", "ok"],
    "panel": [{"id": email, "competence": 0.85, "capacity": 2} for email in ANNOTATORS],
    "learning": "known",
    "policy": "fixed-overlap:2",
    "slot_seconds": 0.3,
    "lease_floor_seconds": 2.0,
    "lease_ceiling_seconds": 4.0,
    "deadline_slots": 2000,
}


@dataclass
class Sync:
    """`venire connect` in a process of its own; started again when it dies."""

    studio: Studio
    server: Process
    project: int
    folder: Path
    more: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | Forked | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    starts: int = 0
    watcher: threading.Thread | None = None

    def start(self) -> None:
        env = {**os.environ, "PYTHONPATH": SOURCE, "STUDIO": self.studio.tokens[OWNER]}
        env |= {"VENIRE_URL": self.server.url, "VENIRE_KEY": self.server.key}
        command = ["connect", "label-studio", "--url", self.studio.url]
        command += ["--token-env", "STUDIO", "--stream", "posts"]
        command += ["--project", str(self.project), "--every", "0.2", *self.more]
        with (self.folder / "sync.log").open("ab") as log:
            if FORKS is not None:
                self.process = Forked(command, self.folder, env, log.fileno(), piped=False)
            else:
                command = [sys.executable, "-m", "venire", *command]
                self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        self.starts += 1

    def watch(self) -> None:
        """Start it again whenever it has ended, as systemd would."""
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self) -> None:
        while not self.stopping.wait(0.1):
            if self.process is not None and self.process.poll() is not None:
                self.start()

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, sign: int = signal.SIGTERM) -> int:
        self.stopping.set()
        if self.watcher is not None:
            self.watcher.join(280)
        assert self.process is not None
        self.process.send_signal(sign)
        return self.process.wait(280)

    @property
    def log(self) -> str:
        return (self.folder / "sync.log").read_text()


@dataclass
class World:
    studio: Studio
    server: Process
    sync: Sync
    people: list[Somebody]
    storage: str
    client: Client

    @property
    def project(self) -> int:
        return self.sync.project

    @property
    def made(self) -> int:
        """How many annotations there are by now."""
        return sum(one.made for one in self.people)

    def all_closed(self) -> bool:
        stream = self.client.stream("posts")
        if stream["open_items"] or stream["exits"] < 40:
            return False
        return all(task["is_labeled"] for task in self.studio.tasks(self.project))


@contextmanager
def world(
    folder: Path, real: bool = False, tasks: int = 40, pause: float = 0.05, **settings: Any
) -> Iterator[World]:
    storage = f"sqlite:///{folder}/venire.db"
    with ExitStack() as opened:
        studio = opened.enter_context(running(folder, real))
        server = opened.enter_context(serving(storage, folder))
        client = opened.enter_context(server.client(timeout=200))
        client.create_stream("posts", **{**SETTINGS, **settings})
        project = studio.make_project(tasks)
        sync = Sync(studio, server, project, folder)
        people = [Somebody(studio, project, email, pause=pause) for email in ANNOTATORS]
        try:
            yield World(studio, server, sync, people, storage, client)
        finally:
            sync.stopping.set()
            for one in people:
                one.stop.set()
            if sync.process is not None and sync.process.poll() is None:
                sync.kill()


def go(found: World, kills: int, victims: str, seconds: float = 300) -> None:
    """People annotate everything, while things are killed."""
    draw = random.Random(kills)
    found.sync.start()
    found.sync.watch()
    threads = [one.start() for one in found.people]
    for _ in range(kills):
        made = found.made
        until(lambda made=made: found.made > made or found.all_closed(), seconds)  # type: ignore[misc]
        time.sleep(draw.uniform(0.0, 0.6))
        victim: Any = getattr(found, draw.choice(victims.split()))
        victim.kill()
        if victim is not found.sync:
            time.sleep(draw.uniform(0, 0.5))
            victim.start()
    until(found.all_closed, seconds)
    for one in found.people:
        one.stop.set()
    for thread in threads:
        thread.join(280)
    assert not [fault for one in found.people for fault in one.faults]
    time.sleep(2)  # what was annotated last is seen
    until(found.all_closed, seconds)
    assert found.sync.stop() == 0


def check(found: World) -> int:
    """Both sides against each other; the number of labels."""
    users = {one["id"]: one["email"] for one in found.studio.call("GET", "/api/users")}
    tasks = found.studio.tasks(found.project)
    assert found.server.stop() == 0
    with open_storage(found.storage) as store:
        items = {row.id: row for row in store.all_items("posts")}
        labels = {(row.item, row.labeler): row.said for row in store.all_labels("posts")}
        counted = sum(1 for _ in store.all_labels("posts"))
        leased = {(row.item, row.labeler) for row in store.leases("posts", None)}
    assert counted == len(labels)
    for one in found.people:  # nothing is handed out without a lease
        assert {(f"{found.project}-{given}", one.email) for given in one.given} <= leased
    wanted: dict[tuple[str, str], str] = {}
    refused, skipped = [], set()
    for task in tasks:
        item = f"{found.project}-{task['id']}"
        for made in sorted(task["annotations"], key=lambda one: one["id"]):
            pair = (item, users[made["completed_by"]])
            if made["was_cancelled"]:
                skipped.add(pair)
            elif pair in leased and pair not in wanted:
                [wanted[pair]] = KIND.said(made["result"])
            elif KIND.said(made["result"]) != [wanted.get(pair)]:
                refused.append(made["id"])
    assert labels == wanted  # each annotation counts once
    assert not skipped & set(labels)
    for id in refused:
        assert re.search(rf"annotation {id} of task \d+ is not counted: ", found.sync.log), id
    for task in tasks:
        row = items[f"{found.project}-{task['id']}"]
        assert row.status == "left"
        assert (task["is_labeled"], task["data"].get(FIELD, "")) == (True, "")
        ours = [one for one in task["predictions"] if one["model_version"] == VERSION]
        assert [KIND.said(one["result"]) for one in ours] == (
            [[row.verdict]] if row.verdict else []
        )
    return len(labels)


def test_forty_tasks_and_four_people(tmp_path: Path) -> None:
    with world(tmp_path) as found:
        go(found, 0, "")
        assert 70 <= check(found) <= 110
        assert found.sync.starts == 1
        assert "40 new items" in found.sync.log
        assert "in all: 40 new items" in found.sync.log
        assert "Traceback" not in found.sync.log


@pytest.mark.parametrize(
    ("victims", "kills"),
    [
        ("sync studio server", KILLS),
        nightly("sync", 25),
        nightly("studio", 25),
        nightly("sync studio server", 25),
    ],
)
@pytest.mark.timeout(1200)
def test_kills_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, victims: str, kills: int
) -> None:
    with world(tmp_path) as found:
        go(found, kills, victims)
        assert check(found) >= 60
        assert "Traceback" not in found.sync.log


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_real_label_studio_with_learning_and_kills(tmp_path: Path) -> None:
    """The real thing, the default policy, and nobody's competence known."""
    settings: dict[str, Any] = {
        "panel": [{"id": email, "capacity": 2} for email in ANNOTATORS],
        "learning": "while-serving",
        "policy": "realised",
        "min_confidence": 0.9,
        "max_overlap": 4,
        "default_weight": 1000,
        "lease_floor_seconds": 20.0,
        "lease_ceiling_seconds": 40.0,
        "slot_seconds": 1.0,
    }
    with world(tmp_path, real=True, pause=0.2, **settings) as found:
        go(found, 6, "sync sync studio", seconds=1500)
        assert 40 <= check(found) <= 160
        assert found.sync.starts > 1
        assert "Traceback" not in found.sync.log
