"""`venire import`: labels of other programs as a table that `venire aggregate` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from venire.errors import InputError, UnknownName

__all__ = ["importing"]

PROGRAMS = ("label-studio",)

PROGRAM = "Where the file is from: label-studio."
FILE = "What the program exported: JSON or JSON-MIN."
TO = "The table to write: .csv, .parquet or .jsonl. [default: labels.csv]"
CONTROL = "The control that says the class, as from_name in the file. [default: the only one]"


def importing(
    program: Annotated[str, typer.Argument(metavar="PROGRAM", help=PROGRAM)],
    file: Annotated[Path, typer.Argument(metavar="FILE", help=FILE)],
    to: Annotated[Path, typer.Option(metavar="FILE", help=TO)] = Path("labels.csv"),
    control: Annotated[str | None, typer.Option(metavar="NAME", help=CONTROL)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Turn an export of Label Studio into a table of labels: task, worker, label.

    A task is called by its number in Label Studio, a worker by the e-mail address or the number of
    the user. Skipped tasks and annotations without exactly one class are left out, and counted.
    """
    from venire.connectors.label_studio import read_export
    from venire.files import Output, check_targets, write_outputs

    if program not in PROGRAMS:
        raise UnknownName("program", program, PROGRAMS)
    check_targets([to], [file])
    found = read_export(file, control)
    if not found.labels:
        raise InputError(f"{file} has no label of one class: nothing was written")
    write_outputs([Output(to, ("task", "worker", "label"), found.labels)])
    counts = {"labels": len(found.labels), "left_out": found.left_out, "path": str(to)}
    if as_json:
        print(json.dumps({**counts, "control": found.control.name}))
        return
    print(f"{len(found.labels):,} labels of {found.control.name} in {to}")
    if found.left_out:
        why = ", ".join(f"{count:,} {reason}" for reason, count in found.left_out.items())
        print(f"left out: {why}")
