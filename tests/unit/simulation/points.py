"""Functions for the points of a sweep, importable in every process."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from venire_research.sweeps.executors import OnCluster, Processes
from venire_research.sweeps.store import Store
from venire_research.sweeps.sweep import Point, sweep


def square(x: int, log: str | None = None, seconds: float = 0.0) -> dict[str, int]:
    """x squared; one line in `log` for every call."""
    if log is not None:
        with open(log, "a") as file:
            file.write(f"{x}\n")
    time.sleep(seconds)
    return {"square": x * x, "process": os.getpid()}


def fail(x: int) -> None:
    raise ValueError(f"no {x}")


def die(x: int) -> None:
    os._exit(x)


def point(x: int, log: Path | None = None, seconds: float = 0.0) -> Point:
    inputs = {"seconds": seconds} | ({"log": str(log)} if log else {})
    return Point(f"{__name__}:square", {"x": x}, inputs=inputs)


def count(path: Path) -> int:
    """How many points a store holds that another process may be writing to, or about to make."""
    if not path.exists():
        return 0
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        try:
            return int(db.execute("SELECT COUNT(*) FROM points").fetchone()[0])
        except sqlite3.OperationalError:  # it is being made
            return 0


def main(folder: str, quick: str = "60", where: str = "here") -> int:
    """A sweep in two processes: `python -m tests.unit.simulation.points FOLDER [QUICK] [WHERE]`.

    The points after so many quick ones take until the process is killed. WHERE may be "local", a
    Dask cluster of two workers.
    """
    log, name = Path(folder, "log"), "tests.unit.simulation.points:square"
    points = [
        Point(name, {"x": x}, inputs={"log": str(log), "seconds": 3600.0 * (x >= int(quick))})
        for x in range(60)
    ]
    with Store(Path(folder, "points.sqlite")) as store:
        try:
            if where == "here":
                sweep(points, store, Processes(2))
                return 0
            from venire.cluster import connected

            with connected(where, workers=2) as client:
                sweep(points, store, OnCluster(client))
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
