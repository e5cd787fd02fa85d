"""`venire demo`: schedule and learn on handwritten digits, with nothing to download."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.errors import InputError, MissingExtra, VenireError

if TYPE_CHECKING:
    from rich.console import Console

    from venire_research.digits import DigitJob, Method, Trial

__all__ = ["demo"]

SEED = "Seed of the stream that is shown; the comparison uses the seeds from it on."
SEEDS = "How many streams to compare."
LEARNING_SLOTS = "Length of the learning phase of the paper's algorithm (T_L)."
OUT = "Folder for demo.png, equal.png, demo.csv and demo.json."
LIVE = "Animate the run, for about 8 s. Off without a terminal."
SERVE = "Serve the stream as a console in the browser, labelled while you watch, until Ctrl-C."
PORT = "With --serve: the port; 0 for any free one."
BROWSER = "With --serve: open the browser."
KEEP = "With --serve: keep the store, as venire.db in the folder of --out."


def demo(
    seed: Annotated[int, typer.Option(metavar="N", help=SEED)] = 0,
    seeds: Annotated[int, typer.Option(metavar="N", help=SEEDS)] = 5,
    learning_slots: Annotated[int, typer.Option(metavar="N", help=LEARNING_SLOTS)] = 20,
    out: Annotated[Path, typer.Option(metavar="DIR", help=OUT)] = Path("venire-demo"),
    live: Annotated[bool, typer.Option(help=LIVE)] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object only.")] = False,
    serve: Annotated[bool, typer.Option("--serve", help=SERVE)] = False,
    port: Annotated[int, typer.Option(metavar="PORT", help=PORT)] = 0,
    browser: Annotated[bool, typer.Option(help=BROWSER)] = True,
    keep: Annotated[bool, typer.Option("--keep", help=KEEP)] = False,
) -> None:
    """Label a stream of handwritten digits with weak labelers of unknown quality.

    Twelve labelers, each handicapped in its own way, like people (expensive), LLM judges and
    models (quick, cheap and weak), label 1,197 digits, none of which they were trained on. The
    scheduler knows what they cost and learns how good each is, without seeing the truth; a student
    learns from its verdicts and labels too. Then the same streams are labelled by other methods,
    and a table and a picture compare them.
    """
    from rich.console import Console

    from venire_research.common.drawing import require_matplotlib
    from venire_research.common.files import make_folder
    from venire_research.digits import METHODS, load_job, report
    from venire_research.digits.equal import equal_rows
    from venire_research.digits.picture import save_equal, save_picture
    from venire_research.digits.view import introduce

    start = time.perf_counter()
    _check(seed, seeds, learning_slots)
    if serve:
        _serve(seed, port, browser, out if keep else None, as_json)
        return
    require_matplotlib("demo")  # which brings scikit-learn too
    make_folder(out)
    console = Console(quiet=as_json)
    console.print("Training 12 weak labelers on 600 digits; 1,197 others are the stream.")
    job = load_job()
    introduce(job, console)
    _compile(console, job, METHODS[:1])
    if not as_json:
        _show(console, job, seed, live)
        console.print()
    _compile(console, job, METHODS[1:])
    trials = _compared(console, job, range(seed, seed + seeds), learning_slots)
    record = report.document(job, trials, learning_slots)
    report.save(out, record)
    save_picture(out / "demo.png", job, trials)
    save_equal(out / "equal.png", equal_rows(job, trials))
    if as_json:
        print(json.dumps(record, indent=2))
        return
    _conclude(console, job, trials, out, time.perf_counter() - start)


def _serve(seed: int, port: int, browser: bool, keep: Path | None, as_json: bool) -> None:
    """The demo as a console in the browser."""
    from rich.console import Console

    from venire_research.common.files import make_folder

    if as_json:
        raise InputError("got --serve and --json: the console is for people, leave one out")
    if not 0 <= port <= 65535:
        raise InputError(f"got --port {port}, expected 0 to 65535")
    try:
        from venire_research.commands.demo_serve import serve_demo
    except ImportError as error:
        raise MissingExtra(error.name or "fastapi", "demo,serve") from error
    if keep is not None:
        make_folder(keep)
    try:
        with socket.create_server(("127.0.0.1", port)):
            pass  # before a minute of other work
        serve_demo(Console(), seed, port, browser, keep)
    except OSError as error:
        if isinstance(error, VenireError) or not error.errno:
            raise
        raise InputError(f"cannot listen: {error}") from error


def _check(seed: int, seeds: int, learning_slots: int) -> None:
    from venire_research.digits import SLOTS

    if not 0 <= seed < 2**62:
        raise InputError(f"got --seed {seed}, expected a whole number from 0 to 2**62 - 1")
    if not 1 <= seeds <= 1000:
        raise InputError(f"got --seeds {seeds}, expected 1 to 1000 streams")
    if not 1 <= learning_slots < SLOTS:
        raise InputError(
            f"got --learning-slots {learning_slots}, expected 1 to {SLOTS - 1}: "
            f"the stream has {SLOTS} slots"
        )


def _compile(console: Console, job: DigitJob, methods: Sequence[Method]) -> None:
    """Run methods once on a few slots, so that they are compiled, and say what takes long."""
    from venire.cli.shared.screen import compiling
    from venire_research.digits import compare

    for method in methods:
        begun = time.perf_counter()
        with compiling(console, method.title):
            for _ in compare(job, [0], learning_slots=2, slots=12, methods=[method]):
                pass
        took = time.perf_counter() - begun
        if took > 2:
            console.print(f"Compiled, and kept on disk: {method.title} ({took:.0f} s).")


def _compared(
    console: Console, job: DigitJob, seeds: Sequence[int], learning_slots: int
) -> list[Trial]:
    from venire_research.digits import METHODS, compare

    trials: list[Trial] = []
    total = len(seeds) * len(METHODS)
    with console.status("Labelling the same streams by other methods") as status:
        for trial in compare(job, seeds, learning_slots):
            trials.append(trial)
            status.update(f"Labelling the same streams by other methods: {len(trials)} of {total}")
    return trials


def _show(console: Console, job: DigitJob, seed: int, live: bool) -> None:
    from venire.student import Student
    from venire_research.digits import hire, work
    from venire_research.digits.view import watch

    progress = work(job, hire(job), seed, student=Student())
    console.print()
    watch(job, progress, console, seconds=8.0 if live else 0.0)


def _conclude(
    console: Console, job: DigitJob, trials: list[Trial], out: Path, seconds: float
) -> None:
    from venire_research.digits.equal import equal_rows
    from venire_research.digits.report import EQUAL_NOTES, NOTES, as_equal_table, as_table

    console.print()
    console.print(as_equal_table(equal_rows(job, trials), console.options.ascii_only))
    console.print(EQUAL_NOTES, highlight=False)
    console.print()
    console.print(as_table(trials, console.options.ascii_only))
    console.print(NOTES, highlight=False)
    files = f"{out / 'demo.png'}, equal.png, demo.csv and demo.json"
    saved = f"\nSaved {files}. That took {seconds:.0f} s."
    console.print(saved, markup=False, highlight=False, soft_wrap=True)
