"""A real cluster of two worker processes: the same results, also when one of them is killed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed", reason="pip install 'venire[distributed]'")

from tests.marks import nightly
from tests.unit.cluster.tables import METHODS, assert_same, crowd, divided
from tests.unit.cluster.test_loading import A, B, write
from venire import DawidSkene, LabelTable, partitioned
from venire.cluster import connected
from venire.cluster.partitions import OnDask
from venire.errors import InputError, StateError
from venire_research.sweeps.executors import OnCluster, Serial
from venire_research.sweeps.sweep import Point


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with connected("local", workers=2) as client:
        yield client


@pytest.mark.parametrize("name", ["auto", nightly("dawid-skene"), nightly("one-coin")])
def test_a_cluster_equals_one_process(client: Any, name: str) -> None:
    table, gold = crowd(1)
    parts = divided(table, 4, OnDask(client))
    assert_same(METHODS[name]().fit(parts, gold=gold), METHODS[name]().fit(table, gold=gold))


def test_files_on_a_cluster(client: Any, tmp_path: Path) -> None:
    done: list[tuple[str, int, int]] = []
    pattern = write(tmp_path, A, B)
    table = partitioned(pattern, client, progress=lambda *told: done.append(told))
    assert ("reading", 2, 2) in done
    assert_same(DawidSkene().fit(table), DawidSkene().fit(A + B))
    (tmp_path / "2.csv").write_text("task,worker\na,ann\n")
    with pytest.raises(InputError, match=r"2\.csv.*label"):
        partitioned(pattern, client)
    (tmp_path / "2.csv").write_text("task,worker,label\na,eve,no\n")
    with pytest.raises(InputError, match="task 'a' has labels in"):
        partitioned(pattern, client)
    moved = partitioned(pattern, client, repartition=True)
    whole = DawidSkene().fit([*A, *B, ("a", "eve", "no")])
    assert DawidSkene().fit(moved).skills_ == pytest.approx(whole.skills_, abs=1e-9)


def test_large_parameters(client: Any) -> None:
    """Confusions of more than 100 kB are not sent along with each task."""
    rng = np.random.default_rng(0)
    n = 5000
    item, labeler = np.repeat(np.arange(n), 3), (np.arange(3 * n) * 7) % n
    said = rng.integers(2, size=3 * n)
    table = LabelTable.from_codes(item, labeler, said, range(n), range(n), range(2))
    found = DawidSkene(max_iter=2, prior=2.0).fit(divided(table, 4, OnDask(client)))
    expected = DawidSkene(max_iter=2, prior=2.0).fit(table)
    np.testing.assert_allclose(found.confusions_, expected.confusions_, atol=1e-9)


def test_a_sweep_on_a_cluster(client: Any) -> None:
    points = [Point("statistics:fmean", {"data": [n, 2 * n]}) for n in range(6)]
    found = {point.key: result for point, result in OnCluster(client).run(points)}
    assert found == {point.key: result for point, result in Serial().run(points)}
    assert list(OnCluster(client).run([])) == []
    with pytest.raises(InputError, match="there is no function"):
        list(OnCluster(client).run([Point("statistics:nothing", {})]))


@pytest.mark.slow
def test_a_worker_is_killed_midway(tmp_path: Path) -> None:
    table, _ = crowd(2)
    files = [
        [
            (str(table.items[i]), f"w{m}", int(k))
            for i, m, k in zip(table.item, table.labeler, table.said, strict=True)
            if a <= i < a + 100
        ]
        for a in range(0, 600, 100)
    ]
    pattern = write(tmp_path, *files)
    how = {"tol": 0.0, "max_iter": 15, "prior": None}
    expected = DawidSkene(**how).fit(partitioned(pattern))  # type: ignore[arg-type]
    with connected("local", workers=2) as client:
        parts = partitioned(pattern, client)
        victim = min(client.run(os.getpid).values())
        killed = threading.Event()

        def kill() -> None:
            os.kill(victim, signal.SIGKILL)
            killed.set()

        threading.Timer(1.0, kill).start()
        found = DawidSkene(**how).fit(parts)  # type: ignore[arg-type]
        while not killed.is_set():  # a fast machine: until it happens in the middle of a fit
            found = DawidSkene(**how).fit(parts)  # type: ignore[arg-type]
    assert found.confusions_.tobytes() == expected.confusions_.tobytes()
    assert found.n_iter_ == expected.n_iter_


@pytest.mark.slow
def test_whoever_kills_its_workers_is_told() -> None:
    table, _ = crowd(3, items=20)
    with (
        connected("local", workers=1) as other,
        pytest.raises(StateError, match="died again and again"),
    ):
        divided(table, 1, OnDask(other)).total(_die)


def _die(table: LabelTable) -> int:
    os._exit(1)


def test_no_scheduler() -> None:
    with (
        pytest.raises(InputError, match=r"there is no Dask scheduler at 'tcp://127\.0\.0\.1:9'"),
        connected("tcp://127.0.0.1:9"),
    ):
        pass
