"""`venire work`: a Python callable as a labeler, the models of a panel, or the judges of a file."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import HERE, AsJson, UntilIdle, Url, check_key, screen
from venire.cli.shared.worlds import find_callable
from venire.errors import InputError

if TYPE_CHECKING:
    from venire.client.worker import Tally
    from venire.connectors.crew import CrewReport, Hands


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
    "Begin with the items that the labeler still holds from an earlier run; not if several run at "
    "a time."
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
    if panel is not None:
        _say_reports(asyncio.run(_panel(url, key, stream, panel, options)), as_json)
        return
    if judges is not None:
        kept = judges.with_suffix(".cache") if cache is None else cache
        _say_reports(asyncio.run(_judge(url, key, stream, judges, kept, options)), as_json)
        return
    function = find_callable(str(call))
    options["concurrency"] = concurrency or 1
    tally = asyncio.run(_work(url, key, stream, labeler, function, options))
    if as_json:
        print(json.dumps(vars(tally)))
    else:
        screen.say(
            f"{tally.labelled:,} labelled, {tally.given_back:,} released, {tally.failed:,} failed"
        )


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
        _on_signal(worker.stop)
        return await worker.run()


def _on_signal(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, stop)


async def _judge(
    url: str, key: str, stream: str, judges: Path, cache: Path, options: dict[str, Any]
) -> list[CrewReport]:
    from venire.connectors.crew import hands_of_judges, with_usage
    from venire.connectors.judges import open_judges

    async with open_judges(judges, cache) as panel:
        reports = await _together(hands_of_judges(panel), url, key, stream, options)
        return [with_usage(report, panel[report.id]) for report in reports]


async def _panel(
    url: str, key: str, stream: str, panel: Path, options: dict[str, Any]
) -> list[CrewReport]:
    from venire.connectors.crew import close_all, hands_of_panel
    from venire.connectors.models import read_panel_of_models

    callers = read_panel_of_models(panel, find_callable)
    reports = await _together(hands_of_panel(callers), url, key, stream, options)
    await close_all(callers)
    return reports


async def _together(
    hands: Hands, url: str, key: str, stream: str, options: dict[str, Any]
) -> list[CrewReport]:
    from venire.client import AsyncClient
    from venire.connectors.crew import work_together

    return await work_together(hands, lambda: AsyncClient(url, key), stream, _on_signal, **options)


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
