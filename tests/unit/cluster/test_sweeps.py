"""Sweeps on a cluster: points of a lost worker run again, and Ctrl-C keeps what is finished."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="pip install 'venire[distributed]'")

from tests.forked import started
from tests.unit.simulation.points import count, point
from tests.unit.simulation.test_sweep import ROOT, alive, wait_for
from venire.cluster import connected
from venire_research.sweeps.executors import OnCluster
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import sweep


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected("local", workers=2) as client:
        yield client


def runs_in(log: Path) -> Counter[str]:
    return Counter(log.read_text().split()) if log.exists() else Counter()


def test_the_points_of_a_killed_worker_are_run_again(client: Any, tmp_path: Path) -> None:
    runs = 16
    while runs == 16:  # until the worker is killed in the middle of a point
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        runs = runs_of_sixteen_points(client, folder)


def runs_of_sixteen_points(client: Any, folder: Path) -> int:
    """How often points were run in a sweep of 16 during which a worker is killed."""
    client.wait_for_workers(2)
    log = folder / "log"
    victim = min(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if done >= 4 and not killed:
            killed.append(victim)
            os.kill(victim, signal.SIGKILL)

    with Store(folder / "points.sqlite") as store:
        points = [point(x, log, seconds=0.2) for x in range(16)]
        found = sweep(points, store, OnCluster(client), kill)
        assert len(store) == 16
    assert [found[p.key]["square"] for p in points] == [x * x for x in range(16)]
    assert killed
    assert runs_in(log).keys() == {str(x) for x in range(16)}
    return runs_in(log).total()


def test_an_interrupted_sweep_leaves_nothing_on_the_cluster(client: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    points = [point(x, log, seconds=0.05) for x in range(12)]

    def interrupt(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with Store(tmp_path / "points.sqlite") as store:
        with pytest.raises(KeyboardInterrupt):
            sweep(points, store, OnCluster(client), interrupt)
        assert len(store) == 3
        wait_for(lambda: not client.run_on_scheduler(_tasks))
        kept = store.get(p.key for p in points)
        later = tmp_path / "later"  # a worker may still be at a point that was cancelled
        found = sweep([point(x, later) for x in range(12)], store, OnCluster(client))
    assert [found[p.key]["square"] for p in points] == [x * x for x in range(12)]
    assert runs_in(later) == Counter(str(x) for x in range(12) if points[x].key not in kept)


def _tasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_a_cluster_of_its_own(tmp_path: Path) -> None:
    """While two points are under way that would take an hour."""
    command = [sys.executable, "-m", "tests.unit.simulation.points", str(tmp_path)]
    log, file = tmp_path / "log", tmp_path / "points.sqlite"
    with started(
        [*command, "12", "local"], cwd=ROOT, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        wait_for(lambda: count(file) == 12 and runs_in(log).total() == 14)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, said = process.communicate(timeout=60)
        wait_for(lambda: not alive(process.pid))
    assert (process.returncode, said) == (130, "")
    assert count(file) == 12
    under_way = {x for x in runs_in(log) if int(x) >= 12}  # which, is up to Dask
    assert len(under_way) == 2
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)  # the rest, without a cluster
    assert count(file) == 60
    runs = runs_in(log)
    assert {x for x, times in runs.items() if times > 1} == under_way
