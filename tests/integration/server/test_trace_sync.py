"""`venire connect phoenix`, `mlflow` and `langfuse`, with kills of everything.

Every annotation counts once or is refused aloud, and every trace has one verdict, which is the
stream's. Nightly with the real programs: `VENIRE_PHOENIX` and `VENIRE_MLFLOW` name their commands.
"""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Forked
from tests.integration.server.harness import SOURCE, Process, serving, until, unused_port
from tests.marks import nightly
from tests.traces import Doubles, Kept, doubles
from venire.client import Client

RIGHT = {"j1": 0.8, "j2": 0.75, "ann": 0.95}
OTHER = {"yes": "no", "no": "yes"}
SETTINGS: dict[str, Any] = {
    "classes": ["yes", "no"],
    "learning": "while-serving",
    "max_overlap": 3,
    "min_confidence": 0.999,
    "slot_seconds": 0.3,
}


@dataclass
class Real:
    """The real program, from its package; it may be killed and started again on its data."""

    program: str
    folder: Path
    port: int = field(default_factory=unused_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        env, command = dict(os.environ), shlex.split(os.environ[f"VENIRE_{self.program.upper()}"])
        if self.program == "phoenix":
            env |= {"PHOENIX_WORKING_DIR": str(self.folder), "PHOENIX_PORT": str(self.port)}
            env |= {"PHOENIX_GRPC_PORT": str(self.port + 1), "PHOENIX_TELEMETRY_ENABLED": "false"}
            command += ["serve"]
        else:
            where = f"sqlite:///{self.folder}/mlflow.db"
            command += ["server", "--backend-store-uri", where, "--port", str(self.port)]
            command += ["--workers", "1"]
        with (self.folder / "program.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=env, stdout=log, stderr=log, start_new_session=True
            )
        until(self.is_up, 600)

    def is_up(self) -> bool:
        try:
            with urllib.request.urlopen(self.url, timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)  # with its workers
        self.process.wait()


@dataclass
class Sync:
    """`venire connect` in a process of its own."""

    kept: Kept
    server: Process
    folder: Path
    process: Forked | subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        env = {**os.environ, "PYTHONPATH": SOURCE}
        env |= {"VENIRE_URL": self.server.url, "VENIRE_KEY": self.server.key}
        command = ["connect", self.kept.program, "--url", self.kept.url, "--stream", "answers"]
        command += ["--project", self.kept.project, "--name", "correct", "--every", "0.2"]
        with (self.folder / "sync.log").open("ab") as log:
            self.process = Forked(command, self.folder, env, log.fileno(), piped=False)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @property
    def log(self) -> str:
        return (self.folder / "sync.log").read_text()


@contextmanager
def program(name: str, real: bool, folder: Path) -> Iterator[Doubles | Real]:
    if not real:
        with doubles() as made:
            yield made
        return
    if f"VENIRE_{name.upper()}" not in os.environ:
        pytest.skip(f"set VENIRE_{name.upper()} to the command of the program")
    started = Real(name, folder)
    started.start()
    try:
        yield started
    finally:
        started.kill()


@pytest.mark.parametrize(
    ("name", "real", "count", "kills"),
    [
        ("phoenix", False, 40, 4),
        nightly("phoenix", False, 200, 25),
        nightly("mlflow", False, 200, 25),
        nightly("langfuse", False, 200, 25),
        nightly("phoenix", True, 200, 6),
        nightly("mlflow", True, 200, 6),
    ],
)
@pytest.mark.timeout(3000)
def test_kills_lose_nothing_and_count_nothing_twice(
    tmp_path: Path, name: str, real: bool, count: int, kills: int
) -> None:
    draw = random.Random(7)
    folder = tmp_path / "program"
    folder.mkdir()
    with program(name, real, folder) as other, serving(f"sqlite:///{tmp_path}/v.db", tmp_path) as s:
        kept = Kept(name, other.url)
        sync = Sync(kept, s, tmp_path)
        victims: dict[str, Any] = {"sync": sync, "program": other, "server": s}
        with s.client(timeout=200) as client:
            client.create_stream("answers", **SETTINGS)
            truth = {id: draw.choice(["yes", "no"]) for id in kept.add_items(count)}
            said = [
                (id, who, truth[id] if draw.random() < p else OTHER[truth[id]])
                for id in truth
                for who, p in RIGHT.items()
            ]
            draw.shuffle(said)
            sync.start()
            parts = kills + 1
            try:
                for k in range(parts):  # they annotate while things are killed
                    kept.say(said[k::parts], why="{who} looked")
                    if k == kills:
                        break
                    heard = labels_of(client)
                    until(lambda heard=heard: labels_of(client) > heard)  # type: ignore[misc]
                    time.sleep(draw.uniform(0, 0.5))
                    victim = victims[["sync", "program", "server"][k % 3]]
                    victim.kill()
                    victim.start()
                until(lambda: in_step(kept, client, count), 600)
                check(kept, client, said, truth)
                revise(kept, client, truth)
                assert sync.process is not None
                sync.process.send_signal(signal.SIGTERM)
                assert sync.process.wait(280) == 0
            finally:
                if sync.process is not None and sync.process.poll() is None:
                    sync.kill()
        assert "Traceback" not in sync.log


def labels_of(client: Client) -> int:
    return int(client.stream("answers")["labels"])


def verdicts_of(client: Client) -> dict[str, str | None]:
    found = {row.item: row.verdict for row in client.exits("answers", limit=1000)}
    return found | {row.item: row.verdict for row in client.revisions("answers", limit=1000)}


def in_step(kept: Kept, client: Client, count: int) -> bool:
    """Whether all items have left, and all traces have what they left with."""
    found = verdicts_of(client)
    ours = asyncio.run(kept.ours())
    return len(found) == count and all(
        [one[0] for one in ours[id]] == [label] for id, label in found.items()
    )


def check(
    kept: Kept, client: Client, said: list[tuple[str, str, str]], truth: dict[str, str]
) -> None:
    rows = [(id, row) for id in truth for row in client.item("answers", id)["labels"]]
    counted = [(id, row["labeler"], row["said"]) for id, row in rows]
    assert sorted(counted) == sorted(said)  # each annotation once
    assert all(row["rationale"] == f"{row['labeler']} looked" for _, row in rows)
    ours = asyncio.run(kept.ours())
    assert {len(ours[id]) for id in truth} == {1}  # each verdict once
    right = sum(ours[id][0][0] == truth[id] for id in truth)
    assert right > 0.8 * len(truth)
    assert all(0.5 <= ours[id][0][1] <= 1 and ": ann looked" in ours[id][0][2] for id in truth)


def revise(kept: Kept, client: Client, truth: dict[str, str]) -> None:
    """What somebody corrects by gold is written again, in place."""
    found = verdicts_of(client)
    id, label = next(iter(found.items()))
    client.add_gold("answers", {id: OTHER[str(label)]})
    until(lambda: [one[0] for one in asyncio.run(kept.ours())[id]] == [OTHER[str(label)]])
