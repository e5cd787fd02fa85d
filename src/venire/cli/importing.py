"""`venire import`: labels of other programs as a table that `venire aggregate` reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from venire.errors import InputError, UnknownName

if TYPE_CHECKING:
    from venire.connectors.traces.source import Source

__all__ = ["TRACED", "Name", "Project", "importing"]

#: Programs that are read over HTTP, those of `connectors.traces`, which --help need not import.
TRACED = ("phoenix", "mlflow", "langfuse")
PROGRAMS = ("label-studio", "inspect", *TRACED)

PROGRAM = "Where the labels are: label-studio, inspect, phoenix, mlflow or langfuse."
FILE = (
    "What Label Studio exported, JSON or JSON-MIN; a log of inspect in JSON, or a folder of logs; "
    "or the address of the others."
)
GOLD = "With mlflow: also write what was expected, task,label, as gold. [default: not written]"
TO = "The table to write: .csv, .parquet or .jsonl. [default: labels.csv]"
CONTROL = "The control that says the class, as from_name in the file. [default: the only one]"

#: Where a program keeps traces, and which annotations of them are meant.
Project = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Phoenix: the project; MLflow: the experiment; Langfuse: the annotation queue.",
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which annotations (Phoenix), assessments (MLflow), scores or scorer (inspect).",
    ),
]


def importing(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help=PROGRAM)],
    file: Annotated[str, typer.Argument(metavar="FILE", help=FILE)],
    to: Annotated[Path, typer.Option(metavar="FILE", help=TO)] = Path("labels.csv"),
    control: Annotated[str | None, typer.Option(metavar="NAME", help=CONTROL)] = None,
    project: Project = None,
    name: Name = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn labels of other programs into a table: task, worker, label.

    Phoenix: a task is a span, a worker the identifier of an annotation or the user who made it.
    MLflow: a task is a trace, a worker the source of a feedback. Langfuse: a task is a trace of an
    annotation queue, a worker the author of a score. inspect: a task is a sample, a worker is a
    scorer, or a judge of venire's panel. Label Studio: a task is called by its number, a worker by
    the e-mail address or the number of the user. Skipped tasks and annotations without exactly one
    class are left out, and counted.
    """
    from venire.connectors.label_studio import read_export
    from venire.files import Output, check_targets, write_outputs

    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    if program in TRACED:
        from venire.connectors.traces import source_of

        _traced(source_of(program, file, project, name), file, to, gold, as_json)
        return
    if program == "inspect" and project is None and gold is None:
        _logged(file, name, to, as_json)
        return
    if project is not None or name is not None or gold is not None:
        raise InputError(
            "--project, --name and --gold are for phoenix, mlflow and langfuse: drop them"
        )
    check_targets([to], [Path(file)])
    found = read_export(Path(file), control)
    if not found.labels:
        raise InputError(f"{file} has no label of one class: nothing was written")
    write_outputs([Output(to, ("task", "worker", "label"), found.labels)])
    counts = {"labels": len(found.labels), "left_out": found.left_out, "path": str(to)}
    if as_json:
        print(json.dumps({**counts, "control": found.control.name}))
        return
    print(f"{len(found.labels):,} labels of {found.control.name} in {to}")
    _say_left_out(found.left_out)


def _say_left_out(left_out: Mapping[str, int]) -> None:
    if left_out:
        why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
        print(f"left out: {why}")


def _logged(path: str, scorer: str | None, to: Path, as_json: bool) -> None:
    from venire.connectors.inspect import read_logs
    from venire.files import Output, check_targets, write_outputs

    check_targets([to], [Path(path)])
    found = read_logs(path, scorer)
    if not found.labels:
        named = "" if scorer is None else f" of the scorer {scorer!r}"
        raise InputError(f"{path} has no score{named} that is a class: nothing was written")
    write_outputs([Output(to, ("task", "worker", "label"), found.labels)])
    if as_json:
        counts = {"labels": len(found.labels), "samples": found.samples}
        print(json.dumps({**counts, "left_out": found.left_out, "path": str(to)}))
        return
    print(f"{len(found.labels):,} labels of {found.samples:,} samples in {to}")
    _say_left_out(found.left_out)


def _traced(source: Source, url: str, to: Path, gold: Path | None, as_json: bool) -> None:
    from venire.connectors.traces.source import Found
    from venire.files import Output, check_targets, write_outputs

    check_targets([to] if gold is None else [to, gold])

    async def read() -> Found:
        async with source:
            return await Found.read(source)

    found = asyncio.run(read())
    if not found.labels:
        raise InputError(f"{url} has no label in {found.traces:,} traces: nothing was written")
    outputs = [Output(to, ("task", "worker", "label"), found.labels)]
    if gold is not None:
        outputs.append(Output(gold, ("task", "label"), list(found.gold.items())))
    write_outputs(outputs)
    if as_json:
        counts = {"labels": len(found.labels), "gold": len(found.gold), "traces": found.traces}
        print(json.dumps({**counts, "left_out": found.left_out, "path": str(to)}))
        return
    print(f"{len(found.labels):,} labels of {found.traces:,} traces in {to}")
    if gold is not None:
        print(f"{len(found.gold):,} expectations in {gold}")
    _say_left_out(found.left_out)
