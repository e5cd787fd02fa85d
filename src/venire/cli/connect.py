"""`venire connect`, `venire mcp`: a stream in step with another program, or open to agents."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.export import TRACED, Name
from venire.cli.shared import HERE, AdminKey, UntilIdle, Url, check_key, screen
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.client import AsyncClient
    from venire.connectors.rounds import Rounds, Tally


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
STREAM = "The stream; its classes are those of the project, or of the annotations."
PROJECT = "Label Studio: the number of the project, as in its address. Others: its name."
URL = "The address of the program. [default: its usual port on this machine]"
TOKEN_ENV = (
    "With label-studio: the environment variable that has the token, a personal access token or a "
    "legacy one. [default: LABEL_STUDIO_API_KEY]"
)
LABELER = (
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
    stream: Annotated[str, typer.Option(metavar="NAME", help=STREAM)],
    project: Annotated[str, typer.Option(metavar="PROJECT", help=PROJECT)],
    name: Name = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help=URL)] = None,
    token_env: Annotated[str | None, typer.Option(metavar="NAME", help=TOKEN_ENV)] = None,
    labeler: Annotated[list[str] | None, typer.Option(metavar="WHO", help=LABELER)] = None,
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
    SIGTERM ends it; a new start goes on where it was.
    """
    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    check_key(key)
    studio = {"--token-env": token_env, "--labeler": labeler, "--control": control}
    for option, given in ({"--name": name} if program not in TRACED else studio).items():
        if given:
            raise InputError(f"{option} is not for {program}: drop it")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    from venire.client import AsyncClient

    async def run() -> Tally:
        async with AsyncExitStack() as opened:
            panel = await opened.enter_async_context(AsyncClient(server, key))
            sync: Any  # each has a create_stream of its own
            if program in TRACED:
                sync = await _traces(opened, program, url, project, name, panel, stream)
            else:
                token = _token(token_env or "LABEL_STUDIO_API_KEY")
                sync = await _studio(opened, url, token, project, panel, stream, control, labeler)
            sync.say, sync.on_round = screen.say, lambda done: _say_round(sync, done, as_json)
            _on_signal(sync)
            if create:
                await sync.create_stream()
            done: Tally = await sync.run(every, until_idle)
            return done

    total = asyncio.run(run())
    if as_json:
        print(json.dumps({"total": total.counts()}))
    else:
        print(f"in all: {total}")


async def _traces(
    opened: AsyncExitStack,
    program: str,
    url: str | None,
    project: str,
    name: str | None,
    panel: AsyncClient,
    stream: str,
) -> Rounds:
    from venire.connectors.traces import source_of
    from venire.connectors.traces.sync import TraceSync

    source = await opened.enter_async_context(source_of(program, url, project, name))
    return TraceSync(source, panel, stream)


async def _studio(
    opened: AsyncExitStack,
    url: str | None,
    token: str,
    project: str,
    panel: AsyncClient,
    stream: str,
    control: str | None,
    labeler: list[str] | None,
) -> Rounds:
    from venire.connectors.label_studio import LabelStudio, Sync

    if not project.isdecimal():
        raise InputError(f"got --project {project!r}, expected the number that its address has")
    api = LabelStudio(url or "http://127.0.0.1:8080", token, int(project))
    studio = await opened.enter_async_context(api)
    return Sync(studio, panel, stream, int(project), control=control, named=labeler or ())


def _token(variable: str) -> str:
    token = os.environ.get(variable, "").strip()
    if not token:
        raise InputError(
            f"the environment variable {variable} is empty, expected the token of Label Studio: "
            "export it, or name another with --token-env"
        )
    return token


def _say_round(sync: Rounds, done: Tally, as_json: bool) -> None:
    state = sync.state
    if as_json:
        print(json.dumps({**done.counts(), **state}), flush=True)
    else:
        held = [f"{count:,} {name.replace('_', ' ')}" for name, count in state.items()]
        print("; ".join([str(done), *held]), flush=True)


def _on_signal(sync: Rounds) -> None:
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, sync.stop)
