"""`venire work`: a Python callable as a labeler."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli import screen
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.client.worker import Tally

__all__ = ["work"]

STREAM = "The stream to work for."
CALL = "The callable, package.module:function: it gets a payload and returns the label."
LABELER = "The labeler it acts as. [default: the labeler of the key]"
URL = "The server."
KEY = "A key with the role labeler or admin; preferably given as VENIRE_KEY."
CONCURRENCY = "Items at a time; the labeler's capacity in the stream must allow it."
GRACE = "Seconds to finish running work after a signal; then it is released."
UNTIL_IDLE = "Stop after this many seconds without work."


def work(
    stream: Annotated[str, typer.Option(metavar="NAME", help=STREAM)],
    call: Annotated[str, typer.Option(metavar="CALLABLE", help=CALL)],
    labeler: Annotated[str | None, typer.Option(metavar="ID", help=LABELER)] = None,
    url: Annotated[
        str, typer.Option(metavar="URL", help=URL, envvar="VENIRE_URL")
    ] = "http://127.0.0.1:8400",
    key: Annotated[str, typer.Option(metavar="KEY", help=KEY, envvar="VENIRE_KEY")] = "",
    concurrency: Annotated[int, typer.Option(metavar="N", help=CONCURRENCY, min=1)] = 1,
    grace: Annotated[float, typer.Option(metavar="SECONDS", help=GRACE, min=0)] = 30.0,
    until_idle: Annotated[
        float | None, typer.Option(metavar="SECONDS", help=UNTIL_IDLE, min=0)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn a Python callable into a labeler of a stream.

    It pulls items, calls the callable with each payload, and sends what it returns as the label.
    An exception is not a label: the item is released for another labeler. Ctrl-C or SIGTERM shuts
    it down gracefully.
    """
    if not key:
        raise InputError("no key was given: use --key, or set VENIRE_KEY")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    function = find_callable(call)
    options = {"concurrency": concurrency, "grace": grace, "until_idle": until_idle}
    tally = asyncio.run(_work(url, key, stream, labeler, function, options))
    if as_json:
        print(json.dumps(vars(tally)))
    else:
        screen.say(
            f"{tally.labelled:,} labelled, {tally.given_back:,} released, {tally.failed:,} failed"
        )


def find_callable(name: str) -> Callable[[Any], Any]:
    """The callable that `package.module:function` names; also from the current folder.

    >>> find_callable("string:capwords")("spam")
    'Spam'
    """
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise InputError(f"got the callable {name!r}, expected package.module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"cannot find the callable {name!r}: {error}") from error
    if not callable(found):
        raise InputError(f"{name!r} is {type(found).__name__}, expected a callable")
    function: Callable[[Any], Any] = found
    return function


async def _work(
    url: str,
    key: str,
    stream: str,
    labeler: str | None,
    function: Callable[[Any], Any],
    options: dict[str, Any],
) -> Tally:
    from venire.client import AsyncClient, Worker

    async with AsyncClient(url, key) as client:
        worker = Worker(client, stream, labeler, function, **options)
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(sign, worker.stop)
        return await worker.run()
