"""`venire serve`, `deploy-files` and `warm-up`: the HTTP server, its files, and compiling ahead."""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from venire.cli.shared import AsJson, screen, stores
from venire.cli.shared.tables import JOBS, worker_count
from venire.errors import InputError, MissingExtra, VenireError
from venire.tools.lazy import library

if TYPE_CHECKING:
    from venire.scheduling import Learning, Policy


STORAGE = "The store: sqlite:///FILE or postgresql://... [default: sqlite:///venire.db]"
HOST = "The address to listen on. [default: 127.0.0.1]"
PORT = "The port; 0 for any free one. [default: 8400]"
JSON = "Write the log, on stderr, and what is said on stdout, as one JSON object per line."
CONFIG = "A file of settings. [default: venire.toml, if there is one]"
ARCHIVE = "The folder for what streams archive (their setting retention). [default: none]"
STANDBY = "Wait while another server owns the store, and take over when it is gone."
SHARED = "Share the streams of a PostgreSQL store with the other servers that are started so."
ADDRESS = (
    "With --shared: where the others reach this server, http://HOST:PORT. [default: where it "
    "listens]"
)
FOLDER = "The folder to write them into; created if there is none."
FORCE = "Overwrite files of the same name."
LEVEL = "The log level: debug, info, warning or error. [default: info]"


@dataclass(frozen=True)
class Serving:
    """The settings of the server that are options too."""

    storage: Annotated[str | None, typer.Option(metavar="URL", help=STORAGE)] = None
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help=HOST)] = None
    port: Annotated[int | None, typer.Option(metavar="PORT", help=PORT)] = None
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help=LEVEL)] = None
    archive: Annotated[Path | None, typer.Option(metavar="FOLDER", help=ARCHIVE)] = None
    standby: Annotated[bool, typer.Option("--standby", help=STANDBY)] = False
    shared: Annotated[bool, typer.Option("--shared", help=SHARED)] = False
    address: Annotated[str | None, typer.Option(metavar="URL", help=ADDRESS)] = None


def serve(
    *,
    serving: Serving,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help=CONFIG)] = None,
    as_json: Annotated[bool, typer.Option("--json", help=JSON)] = False,
) -> None:
    """Serve streams over HTTP: items in, work out, labels in, verdicts out, nothing lost.

    The first start on an empty store prints an admin key, once, or writes it into the file that
    VENIRE_ADMIN_KEY_FILE names. Every setting can also be given as a variable VENIRE_... or in
    venire.toml, and some only there: docs/serve.md lists them. Ctrl-C or SIGTERM shuts it down
    gracefully.
    """
    given = {name: x for name, x in asdict(serving).items() if x is not None and x is not False}
    if as_json:
        given["log_format"] = "json"
    try:
        with warnings.catch_warnings(record=True) as early:
            from venire.server.edge.monitoring import as_line
            from venire.server.process import run_server
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "serve") from error
    settings = _settings(given, config)
    try:
        if settings.log_format == "json":
            logging.captureWarnings(True)  # into the log, which is JSON
        run_server(settings, lambda line: print(line, flush=True), early)
    except VenireError as error:
        if settings.log_format != "json":
            raise
        print(as_line(settings, str(error), "error"), file=sys.stderr)
        raise typer.Exit(2) from None
    except OSError as error:
        if isinstance(error, InputError | MissingExtra) or not error.errno:
            raise
        raise InputError(f"cannot listen: {error}") from error
    except SystemExit:
        screen.say("error: the server did not start, see above")
        raise typer.Exit(2) from None


def deploy_files(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help=FOLDER)],
    force: Annotated[bool, typer.Option("--force", help=FORCE)] = False,
) -> None:
    """Write the files for an operator: systemd, proxies, containers, Prometheus and Grafana.

    docs/deploy.md says what each is for. Nothing is started or installed.
    """
    packaged = files("venire") / "deploy"
    if not packaged.is_dir():  # not installed from a wheel: a clone has them at its root
        packaged = files("venire") / ".." / ".." / "deploy"
    with as_file(packaged) as found:
        names = sorted(path.name for path in found.iterdir() if path.is_file())
        there = [name for name in names if (folder / name).exists()]
        if there and not force:
            raise InputError(f"{folder / there[0]} exists already: give --force to overwrite it")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copyfile(found / name, folder / name)
                print(folder / name)
        except OSError as error:
            raise InputError(f"cannot write into {folder}: {error.strerror}") from error


def _settings(given: dict[str, Any], config: Path | None = None) -> Any:
    """The settings: options override variables, which override the file, then the defaults."""
    from pydantic import ValidationError

    from venire.server.edge.settings import ServerSettings

    path = stores.config_path(config)
    written = stores.read(path)
    stores.check_keys(path, written, ServerSettings.model_fields)
    named = {name.upper() for name in os.environ}
    filed = {key: value for key, value in written.items() if f"VENIRE_{key.upper()}" not in named}
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return ServerSettings(**{**filed, **chosen})
    except ValidationError as error:
        fault = error.errors()[0]
        name = "_".join(str(part) for part in fault["loc"])
        variable = f"VENIRE_{name.upper()}"
        where = f" in {path}" if name in filed else f" in {variable}" if variable in named else ""
        where = "" if name in chosen else where
        raise InputError(
            f"the setting {name}{where} is {fault['input']!r}: {fault['msg']}"
        ) from error


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

    If all is compiled already, it takes a second or two. The result is kept beside the package, or
    below NUMBA_CACHE_DIR, for this kind of processor; installing the same version again leaves it
    valid.
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
        _say_no_more()
        for name, job in planned:
            job()
            yield name
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_say_no_more) as pool:
        names = {pool.submit(job): name for name, job in planned}
        for ended in as_completed(names):
            ended.result()
            yield names[ended]


def _say_no_more() -> None:
    """Who compiles beforehand need not be told that this can be done."""
    from venire.tools.compiling import Notice

    Notice.given = True


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
