"""A sweep runs every point once, whatever happens to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.forked import started
from tests.unit.simulation import points
from tests.unit.simulation.points import point
from venire.errors import FileError, InputError, StateError
from venire_research.sweeps.executors import Executor, Processes, Serial
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import Point, sweep

ROOT = Path(__file__).parents[3]


def squares(results: dict[str, dict[str, int]]) -> list[int]:
    return [result["square"] for result in results.values()]


def test_the_key_is_of_the_settings_not_of_their_order_nor_of_the_inputs() -> None:
    a = Point("m:f", {"x": 1, "y": [1, 2]}, inputs={"data": "here"})
    assert a.key == Point("m:f", {"y": [1, 2], "x": 1}, inputs={"data": "there"}).key
    others = [
        Point("m:g", a.settings),
        Point("m:f", {"x": 1, "y": [2, 1]}),
        Point("m:f", a.settings, "2"),
    ]
    assert a.key not in {other.key for other in others}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, Path("x")])
def test_settings_are_json(value: object) -> None:
    with pytest.raises(InputError, match="are not JSON"):
        Point("m:f", {"x": value}).canonical()


@pytest.mark.parametrize("function", ["nowhere:f", "math:nothing", "math"])
def test_an_unknown_function_is_named(function: str) -> None:
    with pytest.raises(InputError, match=function):
        Point(function, {}).run()


@pytest.mark.parametrize("executor", [Serial(), Processes(2)])
def test_executors_agree(executor: Executor) -> None:
    with Store(":memory:") as store:
        assert squares(sweep([point(x) for x in (3, 1, 2, 3)], store, executor)) == [9, 1, 4]


def test_processes_are_several_and_others_than_this_one() -> None:
    with Store(":memory:") as store:
        found = sweep([point(x, seconds=0.2) for x in range(6)], store, Processes(2))
    assert len({r["process"] for r in found.values()} - {os.getpid()}) == 2


def test_no_points_start_no_process() -> None:
    with Store(":memory:") as store:
        assert sweep([], store, Processes(2)) == {}
    with pytest.raises(InputError, match="0 jobs"):
        Processes(0)


def test_what_is_stored_is_not_run_again(tmp_path: Path) -> None:
    log, seen = tmp_path / "log", []
    for wanted in (range(3), range(5), range(5)):
        with Store(tmp_path / "points.sqlite") as store:
            sweep([point(x, log) for x in wanted], store, progress=lambda *n: seen.append(n))
            assert len(store) == len(wanted)
    assert log.read_text().split() == list("01234")
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3), (3, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize("executor", [Serial(), Processes(1)])
def test_a_failure_names_its_point_and_keeps_what_is_finished(executor: Executor) -> None:
    bad = Point(f"{points.__name__}:fail", {"x": 7})
    with Store(":memory:") as store:
        with pytest.raises(ValueError, match="no 7") as caught:
            sweep([point(1), bad, point(2)], store, executor)
        assert len(store) >= 1
    assert any('"x":7' in note for note in caught.value.__notes__)


def test_a_process_that_dies_is_told() -> None:
    bad = Point(f"{points.__name__}:die", {"x": 3})
    with Store(":memory:") as store, pytest.raises(StateError, match="a process died"):
        sweep([bad], store, Processes(1))


def test_a_result_that_is_no_json_is_refused() -> None:
    with Store(":memory:") as store, pytest.raises(ValueError, match="not JSON compliant"):
        store.put(Point("m:f", {}), float("nan"))


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a diary, not a database " * 100)
    with pytest.raises(FileError, match="is not a store of results"):
        Store(tmp_path / "x")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_resumed(tmp_path: Path, how: signal.Signals) -> None:
    """It stops, its processes end, what is finished is kept, and the rest is run."""
    command = [sys.executable, "-m", "tests.unit.simulation.points", str(tmp_path)]
    log, file = tmp_path / "log", tmp_path / "points.sqlite"
    with started(
        [*command, "12"], cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for(lambda: points.count(file) == 12 and len(log.read_text().split()) == 14)
        if how == signal.SIGINT:
            os.killpg(process.pid, how)  # as a terminal does
        else:
            process.kill()
        _, said = process.communicate(timeout=120)
        wait_for(lambda: not alive(process.pid))
    assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL)
    assert how == signal.SIGKILL or said == ""  # a killed process cannot tidy up
    assert points.count(file) == 12
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    assert points.count(file) == 60
    runs = Counter(log.read_text().split())
    assert len(runs) == 60
    assert {x for x, count in runs.items() if count > 1} == {"12", "13"}  # what was under way


def wait_for(condition: object, seconds: float = 120.0) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def alive(group: int) -> bool:
    """Whether any process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
