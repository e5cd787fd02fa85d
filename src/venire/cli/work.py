"""`venire work`, `mcp` and `connect`: who labels for a stream, or is in step with it.

`work` has a callable, the models of a panel or LLM judges label, `mcp` agents, and `connect` the
people or programs of a project elsewhere.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.export import TRACED, Name
from venire.cli.shared import (
    HERE,
    AdminKey,
    AsJson,
    UntilIdle,
    Url,
    check_key,
    first_given,
    screen,
)
from venire.cli.shared.callables import find_callable
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.client.worker import Tally as Worked
    from venire.connectors.crew import CrewReport
    from venire.connectors.label_studio import LabelStudio
    from venire.connectors.rounds import Rounds, Tally


STREAM = "The stream to work for."
CALL = "The callable, package.module:function: it gets a payload and returns the label."
PANEL = "A panel of functions and models (docs/models.md), each under its id. Needs an admin key."
JUDGES = "A file of LLM judges (YAML or TOML): each labels under its id. Needs an admin key."
CACHE = "With --judges: where answers are kept. [default: beside the file of judges, with .cache]"
LABELER = "The labeler the callable acts as. [default: the labeler of the key]"
KEY = "A key with the role labeler or admin; preferably given as VENIRE_KEY."
CONCURRENCY = "Items at a time; the labeler's capacity must allow it. [default: 1]"
GRACE = "Seconds to finish running work after a signal; then it is released."
RESUME = (
    "Begin with the items that the labeler still holds from an earlier run; --no-resume if several "
    "run at the same time."
)


def work(
    stream: Annotated[str, typer.Option(metavar="NAME", help=STREAM)],
    call: Annotated[str | None, typer.Option(metavar="CALLABLE", help=CALL)] = None,
    panel: Annotated[Path | None, typer.Option(metavar="FILE", help=PANEL)] = None,
    judges: Annotated[Path | None, typer.Option(metavar="FILE", help=JUDGES)] = None,
    cache: Annotated[Path | None, typer.Option(metavar="FILE", help=CACHE)] = None,
    labeler: Annotated[str | None, typer.Option(metavar="ID", help=LABELER)] = None,
    url: Url = HERE,
    key: Annotated[str, typer.Option(metavar="KEY", help=KEY, envvar="VENIRE_KEY")] = "",
    concurrency: Annotated[int | None, typer.Option(metavar="N", help=CONCURRENCY, min=1)] = None,
    grace: Annotated[float, typer.Option(metavar="SECONDS", help=GRACE, min=0)] = 30.0,
    until_idle: UntilIdle = None,
    resume: Annotated[bool, typer.Option("--resume/--no-resume", help=RESUME)] = True,
    as_json: AsJson = False,
) -> None:
    """Turn a Python callable, models or LLM judges into labelers of a stream.

    It pulls items, calls the callable with each payload, and sends what it returns as the label.
    With --panel or --judges, everybody in the file is asked instead. An exception is not a label:
    the item is released for another labeler. Ctrl-C or SIGTERM shuts it down gracefully.
    """
    check_key(key)
    if [call, panel, judges].count(None) != 2:
        raise InputError("give one of --call, --panel and --judges: who labels?")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    options: dict[str, Any] = {"grace": grace, "until_idle": until_idle, "resume": resume}
    if call is None and (labeler is not None or concurrency is not None):
        raise InputError(
            "--labeler and --concurrency are for --call: the files of panels and judges say both"
        )
    if call is None:
        reports = asyncio.run(_crew(url, key, stream, panel, judges, cache, options))
        _say_reports(reports, as_json)
        return
    function = find_callable(call)

    async def run() -> Worked:
        from venire.client import AsyncClient, Worker

        async with AsyncClient(url, key) as client:
            worker = Worker(
                client, stream, labeler, function, concurrency=concurrency or 1, **options
            )
            _on_signal(worker.stop)
            return await worker.run()

    tally = asyncio.run(run())
    if as_json:
        print(json.dumps(vars(tally)))
    else:
        screen.say(
            f"{tally.labelled:,} labelled, {tally.given_back:,} released, {tally.failed:,} failed"
        )


def _on_signal(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, stop)


async def _crew(
    url: str,
    key: str,
    stream: str,
    panel: Path | None,
    judges: Path | None,
    cache: Path | None,
    options: dict[str, Any],
) -> Sequence[CrewReport]:
    """Everybody in the file of a panel or of judges works for the stream."""
    from venire.client import AsyncClient
    from venire.connectors import crew
    from venire.connectors.judges import open_judges
    from venire.connectors.models import read_panel_of_models

    async def together(hands: crew.Hands) -> list[CrewReport]:
        given = (lambda: AsyncClient(url, key)), stream, _on_signal
        return await crew.work_together(hands, *given, **options)

    if panel is not None:
        callers = read_panel_of_models(panel, find_callable)
        reports = await together(crew.hands_of_panel(callers))
        await crew.close_all(callers)
        return reports
    assert judges is not None
    kept = judges.with_suffix(".cache") if cache is None else cache
    async with open_judges(judges, kept) as sitting:
        reports = await together(crew.hands_of_judges(sitting))
        return [crew.with_usage(report, sitting[report.id]) for report in reports]


def _say_reports(reports: Sequence[CrewReport], as_json: bool) -> None:
    """One line for each labeler; an error if none is left."""
    if as_json:
        print(json.dumps([report.to_json() for report in reports]))
    else:
        for report in reports:
            released = f"{report.tally.given_back:,} released"
            end = f"; stopped: {report.stopped}" if report.stopped else ""
            screen.say(f"{report.id}: {report.summary}; {released}{end}")
    if all(report.stopped for report in reports):
        raise InputError("everybody has stopped: the lines above say why")


def mcp(url: Url = HERE) -> None:
    """Let an agent label, and ask for verdicts and explanations, by the Model Context Protocol.

    It speaks over standard input and output: agents start it. The key is read from VENIRE_KEY; its
    role decides which tools there are.
    """
    from venire.connectors.mcp import serve

    key = os.environ.get("VENIRE_KEY", "").strip()
    if not key:
        raise InputError("no key was given: set VENIRE_KEY, such as in the settings of the agent")
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    asyncio.run(serve(url, key))


PROGRAMS = ("label-studio", *TRACED)

PROGRAM = f"The program: {', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]}."
IN_STEP = "The stream; its classes are those of the project, or of the annotations."
PROJECT = "Label Studio: the number of the project, as in its address. Others: its name."
URL = "The address of the program. [default: its usual port on this machine]"
TOKEN_ENV = (
    "With label-studio: the environment variable that has the token, a personal access token or a "
    "legacy one. [default: LABEL_STUDIO_API_KEY]"
)
TAKES_PART = (
    "With label-studio: who takes part, EMAIL or EMAIL=LABELER; repeat it. "
    "[default: users on the panel, or all]"
)
CONTROL = (
    "With label-studio: the control of the labelling config that says the class. "
    "[default: the only one]"
)
CREATE = "Create the stream if there is none, with the classes of the project or annotations."
EVERY = "Seconds between two rounds."


def connect(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help=PROGRAM)],
    stream: Annotated[str, typer.Option(metavar="NAME", help=IN_STEP)],
    project: Annotated[str, typer.Option(metavar="PROJECT", help=PROJECT)],
    name: Name = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help=URL)] = None,
    token_env: Annotated[str | None, typer.Option(metavar="NAME", help=TOKEN_ENV)] = None,
    labeler: Annotated[list[str] | None, typer.Option(metavar="WHO", help=TAKES_PART)] = None,
    control: Annotated[str | None, typer.Option(metavar="NAME", help=CONTROL)] = None,
    create: Annotated[bool, typer.Option("--create", help=CREATE)] = False,
    server: Url = HERE,
    key: AdminKey = "",
    every: Annotated[float, typer.Option(metavar="SECONDS", help=EVERY, min=0.1)] = 2.0,
    until_idle: UntilIdle = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for each round.")] = False,
) -> None:
    """Keep a stream in step with a project of Label Studio, Phoenix, MLflow or Langfuse.

    Label Studio: tasks become items; everybody has a tab with the tasks to label; annotations
    become labels; tasks that are done are closed, with the verdict as a prediction.
    Others: traces become items, annotations or feedback labels, expectations gold; verdicts are
    written back as annotations or feedback of venire. One line says what a round did. Ctrl-C or
    SIGTERM ends it; a restart goes on where it stopped.
    """
    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    check_key(key)
    studio = {"--token-env": token_env, "--labeler": labeler or None, "--control": control}
    option = first_given(studio if program in TRACED else {"--name": name})
    if option is not None:
        raise InputError(f"{option} is not for {program}: drop it")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    from venire.client import AsyncClient
    from venire.connectors.label_studio import Sync
    from venire.connectors.traces import source_of
    from venire.connectors.traces.source import TraceSync

    async def run() -> Tally:
        async with AsyncExitStack() as opened:
            panel = await opened.enter_async_context(AsyncClient(server, key))
            sync: Rounds[Any]
            if program in TRACED:
                source = source_of(program, url, project, name)
                sync = TraceSync(await opened.enter_async_context(source), panel, stream)
            else:
                api = _studio(url, token_env or "LABEL_STUDIO_API_KEY", project)
                studio, named = await opened.enter_async_context(api), labeler or ()
                sync = Sync(studio, panel, stream, int(project), control=control, named=named)
            sync.say, sync.on_round = screen.say, lambda done: _say_round(sync, done, as_json)
            _on_signal(sync.stop)
            if create:
                await sync.create_stream()
            done: Tally = await sync.run(every, until_idle)
            return done

    total = asyncio.run(run())
    if as_json:
        print(json.dumps({"total": total.counts()}))
    else:
        print(f"in all: {total}")


def _studio(url: str | None, variable: str, project: str) -> LabelStudio:
    from venire.connectors.label_studio import LabelStudio

    token = os.environ.get(variable, "").strip()
    if not token:
        raise InputError(
            f"the environment variable {variable} is empty, expected the token of Label Studio: "
            "export it, or name another with --token-env"
        )
    if not project.isdecimal():
        raise InputError(f"got --project {project!r}, expected the number that its address has")
    return LabelStudio(url or "http://127.0.0.1:8080", token, int(project))


def _say_round(sync: Rounds[Any], done: Tally, as_json: bool) -> None:
    state = sync.state
    if as_json:
        print(json.dumps({**done.counts(), **state}), flush=True)
    else:
        held = [f"{count:,} {name.replace('_', ' ')}" for name, count in state.items()]
        print("; ".join([str(done), *held]), flush=True)
