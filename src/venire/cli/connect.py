"""`venire connect`: a stream together with a program in which people label already."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from venire.cli import screen
from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.connectors.label_studio import Sync, Tally

__all__ = ["connect"]

PROGRAMS = ("label-studio",)

PROGRAM = "The program: label-studio."
STREAM = "The stream; its classes are those of the project."
PROJECT = "The number of the project, as in its address."
URL = "The address of Label Studio."
TOKEN_ENV = "The environment variable that has the token: a personal access token, or a legacy one."
LABELER = "Who takes part, EMAIL or EMAIL=LABELER; repeat it. [default: users on the panel, or all]"
CONTROL = "The control of the labelling config that says the class. [default: the only one]"
CREATE = "Create the stream, with the classes of the project, if there is none."
SERVER = "The venire server; several on one store with commas between them."
KEY = "An admin key; preferably given as VENIRE_KEY."
EVERY = "Seconds between two rounds."
UNTIL_IDLE = "Stop after this many seconds with nothing to do."


def connect(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help=PROGRAM)],
    stream: Annotated[str, typer.Option(metavar="NAME", help=STREAM)],
    project: Annotated[int, typer.Option(metavar="N", help=PROJECT)],
    url: Annotated[str, typer.Option(metavar="URL", help=URL)] = "http://127.0.0.1:8080",
    token_env: Annotated[
        str, typer.Option(metavar="NAME", help=TOKEN_ENV)
    ] = "LABEL_STUDIO_API_KEY",
    labeler: Annotated[list[str] | None, typer.Option(metavar="WHO", help=LABELER)] = None,
    control: Annotated[str | None, typer.Option(metavar="NAME", help=CONTROL)] = None,
    create: Annotated[bool, typer.Option("--create", help=CREATE)] = False,
    server: Annotated[
        str, typer.Option(metavar="URL", help=SERVER, envvar="VENIRE_URL")
    ] = "http://127.0.0.1:8400",
    key: Annotated[str, typer.Option(metavar="KEY", help=KEY, envvar="VENIRE_KEY")] = "",
    every: Annotated[float, typer.Option(metavar="SECONDS", help=EVERY, min=0.1)] = 2.0,
    until_idle: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=UNTIL_IDLE, min=0)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a round.")] = False,
) -> None:
    """Let a stream decide who labels what in a project of Label Studio.

    Tasks become items; everybody has a tab with the tasks to label; annotations become labels;
    tasks that are done are closed, with the verdict as a prediction. One line says what a round
    did. Ctrl-C or SIGTERM ends it; a new start goes on where it was.
    """
    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    if not key:
        raise InputError("no key was given: use --key, or set VENIRE_KEY")
    token = os.environ.get(token_env, "").strip()
    if not token:
        raise InputError(
            f"the environment variable {token_env} is empty, expected the token of Label Studio: "
            "export it, or name another with --token-env"
        )
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    from venire.client import AsyncClient
    from venire.connectors.label_studio import LabelStudio, Sync

    async def run() -> Tally:
        async with LabelStudio(url, token, project) as studio, AsyncClient(server, key) as panel:
            sync = Sync(studio, panel, stream, project, control=control, named=labeler or ())
            sync.say, sync.on_round = screen.say, lambda done: _say_round(sync, done, as_json)
            _on_signal(sync)
            if create:
                await sync.create_stream()
            return await sync.run(every, until_idle)

    total = asyncio.run(run())
    if as_json:
        print(json.dumps({"total": total.counts()}))
    else:
        print(f"in all: {total}")


def _say_round(sync: Sync, done: Tally, as_json: bool) -> None:
    held = len(sync.desk.tokens)
    if as_json:
        print(json.dumps({**done.counts(), "in_tabs": held}), flush=True)
    else:
        print(f"{done}; {held:,} in tabs", flush=True)


def _on_signal(sync: Sync) -> None:
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, sync.stop)
