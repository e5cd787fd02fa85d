"""`--cluster` of `compare`, `reproduce` and `label`, as a user gives it: the same results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Not in a fixture: Dask logs to the stderr of whenever it is imported, and that of a test ends.
pytest.importorskip("distributed", reason="pip install 'venire[distributed]'")

from distributed import LocalCluster

from tests.unit.cluster.tables import crowd
from tests.unit.simulation.points import count
from venire.cli import main
from venire_research.commands.parallel import say_long


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler with a worker, which is a thread of this process: quick."""
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://",
        dashboard_address="127.0.0.1:0",
    ) as running:  # fmt: skip
        yield running.scheduler_address


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        said = capsys.readouterr()
        assert said.err == ""
        return json.loads(said.out)

    return run


def tables_in(folder: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).glob("*.csv")}


@pytest.mark.parametrize(
    ("words", "points"),
    [
        ("--regime bursts --policy greedy --policy fixed-overlap:3 --seeds 2 --no-certificate", 4),
        ("--suite trust-2 --regime panel-3 --policy greedy --learning while-serving --seeds 1", 1),
    ],
)
def test_compare_is_the_same_on_a_cluster(run: Any, cluster: str, words: str, points: int) -> None:
    here = run("compare", *words.split(), "--quick", "--jobs", "1", "--out", "here")
    there = run("compare", *words.split(), "--quick", "--cluster", cluster, "--out", "there")
    assert here["rows"] == there["rows"]
    assert here["summary"] == there["summary"]
    assert tables_in("here") == tables_in("there") != {}
    assert count(Path("there", "points.sqlite")) == points
    # what a cluster has finished is finished for a process of this machine, too
    run("compare", *words.split(), "--quick", "--jobs", "1", "--out", "there")
    assert count(Path("there", "points.sqlite")) == points


@pytest.mark.slow
def test_reproduce_is_the_same_on_a_cluster(run: Any, cluster: str) -> None:
    words = ["reproduce", "--quick", "--seeds", "2", "--figure", "errata"]
    here = run(*words, "--jobs", "1", "--out", "here")
    there = run(*words, "--cluster", cluster, "--out", "there")
    assert here["claims"] == there["claims"] != []
    assert tables_in("here") == tables_in("there") != {}


def test_label_is_the_same_on_a_cluster(run: Any, cluster: str) -> None:
    table, gold = crowd(1, items=300)
    Path("labels").mkdir()
    for n in range(3):
        lines = [
            f"{table.items[i]},w{m},{k}"
            for i, m, k in zip(table.item, table.labeler, table.said, strict=True)
            if i // 100 == n
        ]
        Path(f"labels/{n}.csv").write_text("\n".join(["task,worker,label", *lines]))
    Path("truth.csv").write_text("\n".join(["task,label", *(f"{i},{k}" for i, k in gold.items())]))
    words = ["label", "--recorded", "labels/*.csv", "--labels-per-item", "3"]
    words += ["--truth", "truth.csv", "--out"]
    assert run(*words, "a.csv") == run(*words, "b.csv", "--cluster", cluster)
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_jobs_and_a_cluster_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("compare", "reproduce"):
        assert main([command, "--jobs", "2", "--cluster", "local"]) == 2
        assert "got --jobs and --cluster, expected one of them" in capsys.readouterr().err


def test_a_long_sweep_is_told_of_clusters_once(capsys: pytest.CaptureFixture[str]) -> None:
    def said_by(total: int, pace: float, cluster: str | None = None) -> str:
        clock = iter(range(100_000))
        seen: list[int] = []
        watch = say_long(lambda done, of: seen.append(done), cluster, lambda: next(clock) * pace)
        assert watch is not None
        for done in range(10, 100):  # ten were finished before
            watch(done, total)
        assert seen == list(range(10, 100))
        return capsys.readouterr().err

    # 10 s a point
    told = said_by(total=1000, pace=10.0)
    assert told.count("\n") == 1
    assert told.startswith("about 2.")
    assert "the same command with --cluster goes on from here" in told
    assert said_by(total=110, pace=10.0) == ""  # a quarter of an hour
    assert said_by(total=1000, pace=10.0, cluster="local") == ""
    assert say_long(None, "local") is None
