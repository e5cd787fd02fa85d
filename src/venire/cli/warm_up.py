"""`venire warm-up`: compile everything beforehand, such as while a container image is built."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import JOBS, worker_count
from venire.tools.lazy import library

if TYPE_CHECKING:
    from venire.scheduling import Learning, Policy


ONLY = "Only what a server needs, for streams with its default policy; needs the extra serve."

#: The policies that take longest come first, so that processes end together.
_LONGEST: Final = ("lookahead", "realised", "waterfill", "greedy")
_CLASSES: Final = (("yes", "no"), ("yes", "no", "unsure"))

Job = Callable[[], None]


def warm_up(
    server: Annotated[bool, typer.Option("--server", help=ONLY)] = False,
    jobs: Annotated[int | None, typer.Option(metavar="N", help=JOBS)] = None,
    as_json: AsJson = False,
) -> None:
    """Compile everything, so that nothing has to be compiled when it is used.

    If all is compiled already, it takes a second or two. It is kept beside the package, or below
    NUMBA_CACHE_DIR, for this kind of processor; installing the same version again leaves it valid.
    """
    workers = worker_count(jobs)
    planned = list(_served() if server else _everything())
    begun = time.perf_counter()
    for done, what in enumerate(_run(planned, workers), start=1):
        screen.say(f"{done} of {len(planned)}: {what}")
    seconds = round(time.perf_counter() - begun, 3)
    if as_json:
        print(json.dumps({"compiled": [name for name, _ in planned], "seconds": seconds}, indent=2))
    else:
        print(f"Compiled, in {seconds:.0f} s.")


def _run(planned: list[tuple[str, Job]], workers: int) -> Iterator[str]:
    """Do the jobs; yields their names as they end."""
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    if workers == 1:
        for name, job in planned:
            job()
            yield name
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        names = {pool.submit(job): name for name, job in planned}
        for ended in as_completed(names):
            ended.result()
            yield names[ended]


def _everything() -> Iterator[tuple[str, Job]]:
    from venire import LearnWhileServing
    from venire.estimators.base import methods
    from venire.scheduling import Policy
    from venire.scheduling.by_name import exported

    names = sorted(set(exported(Policy)) - set(_LONGEST))
    for name in (*_LONGEST, *names):
        yield f"policy {name}, simulated", partial(_simulated, name)
        yield f"policy {name}, in a scheduler", partial(_scheduled, name)
    yield "learning while serving", partial(_simulated, "realised", LearnWhileServing())
    for method in sorted(methods()):
        yield f"method {method}", partial(_fitted, method)
    yield "batches", _batch
    if find_spec("fastapi") is not None:  # the extra serve
        yield from _served()


def _served() -> Iterator[tuple[str, Job]]:
    library("fastapi", "serve")
    for classes in _CLASSES:
        yield f"server, {len(classes)} classes", partial(_serving, classes)


def _simulated(policy: str, learning: Learning | None = None) -> None:
    from venire import World, simulate
    from venire.scheduling.by_name import policy_named

    simulate(World.synthetic(seed=0), policy_named(policy), learning, slots=20)


def _scheduled(name: str) -> None:
    """The engine's verbs, with all that may happen to an item."""
    from venire import Item, Label, Labeler, Scheduler
    from venire.scheduling.by_name import policy_named

    policy: Policy = policy_named(name)
    for classes in _CLASSES:
        panel = [Labeler("one", 0.7), Labeler("two", 0.8)]
        engine = Scheduler(panel, classes, policy)
        engine.arrive([Item(f"item {k}", 100.0) for k in range(3)])
        for work in engine.assign():
            engine.observe(Label(work.item, work.labeler, classes[0]))
        engine.close()
        engine.arrive([Item("late", 100.0)])
        for work in engine.assign(asked=["one"]):
            engine.release(work.item, work.labeler)
        Scheduler.restore(engine.snapshot()).advance(3)


def _fitted(method: str) -> None:
    from venire.estimators.base import method_named

    rows = [(f"item {k}", f"labeler {m}", str((k * m + k) % 3)) for k in range(8) for m in range(4)]
    method_named(method).fit(rows)


def _batch() -> None:
    from venire import Budget, label

    says: dict[str, Any] = {name: (lambda k: "yes" if k % 2 else "no") for name in "abcd"}
    label({str(k): k for k in range(12)}, says, Budget(labels=36))


def _serving(classes: tuple[str, ...]) -> None:
    from venire.server import StreamSettings
    from venire.server.reports import skill_report
    from venire.server.stream import engine_setup

    engine_setup.warm_up(StreamSettings(classes=classes))
    skill_report.warm_up(classes)
