"""Functions for the points of a sweep, importable in every process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from venire.simulation.executors import Processes
from venire.simulation.store import Store
from venire.simulation.sweep import Point, sweep


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


def main(folder: str) -> int:
    """A sweep in two processes, to be killed: `python -m tests.unit.simulation.points FOLDER`."""
    log = Path(folder, "log")
    points = [Point("tests.unit.simulation.points:square", {"x": x}, inputs={"log": str(log), "seconds": 0.05}) for x in range(60)]  # fmt: skip  # noqa: E501
    with Store(Path(folder, "points.sqlite")) as store:
        try:
            sweep(points, store, Processes(2))
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
