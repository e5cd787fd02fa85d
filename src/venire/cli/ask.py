"""`venire ask`: the few items that an expert should see."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import (
    Blank,
    Columns,
    FamiliesFile,
    Labels,
    Merge,
    Repeats,
    Wide,
    blank_of,
    columns_of,
    families_of,
    gold_of,
    repeats_of,
)
from venire.errors import FileError, InputError
from venire.tools.addresses import located

if TYPE_CHECKING:
    from venire.estimators.questions import Questions


N = "How many items to ask about."
OUT = "Write the list, .csv, .parquet or .jsonl: task,label,drawn,verdict,other,information."
GOLD = "The answers so far, and other known labels: a file with task,label; empty ones are skipped."
SEED = "Seed of the draws."


def ask(
    labels: Labels,
    n: Annotated[int, typer.Option(metavar="N", help=N)] = 10,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None,
    families: FamiliesFile = None,
    columns: Columns = None,
    wide: Wide = False,
    merge: Merge = False,
    repeats: Repeats = "error",
    blank: Blank = None,
    seed: Annotated[int, typer.Option(metavar="N", help=SEED)] = 0,
    as_json: AsJson = False,
) -> None:
    """Choose the items whose truth tells most about which explanation of the labels holds.

    Fill in the labels of the list, and give it as --gold: to this command, which says what is
    known now and whether more would pay, and to venire aggregate.
    """
    from venire.estimators.questions import questions
    from venire.files import check_targets, write_outputs
    from venire.labels.sources import COLUMNS, as_table

    called, kept = columns_of(columns, COLUMNS, wide), repeats_of(repeats)
    source = located(labels)
    if out is None and gold is None:
        raise InputError("give --out, the file for the list, or --gold with the answers so far")
    if out is not None:
        sources = [path for path in (source, gold, families) if path is not None]
        check_targets([out], sources)
        if out.is_file():
            raise FileError(out, None, "it exists and may hold answers: choose another name")
    with screen.working(f"reading {source.name}"):
        form: dict[str, Any] = {"wide": wide, "merge": merge, "blank": blank_of(blank)}
        table = as_table(source, None, kept, called, tell=screen.say, **form)
        called = COLUMNS if wide else called  # the answers have no columns of judges
        known = None if gold is None else gold_of(gold, table, called)
        kin = families_of(families, source, table, called)
        told = (None, ()) if known is None else (known.labels, known.asked)
        found = questions(table, n, told[0], asked=told[1], families=kin, seed=seed)
    if out is not None:
        write_outputs([_output(out, found)])
    if as_json:
        print(json.dumps(found.record(), indent=2, allow_nan=False, default=str))
    else:
        given: dict[str, Any] = {
            "--columns": columns,
            "--wide": wide,
            "--merge": merge,
            "--blank": blank,
        }
        given |= {"--repeats": None if repeats == "error" else repeats, "--families": families}
        _print(found, _again(labels, given), gold, out)


def _again(labels: str, given: Mapping[str, Any]) -> str:
    """The labels with the options that say how to read them, for the next command.

    >>> _again("my labels.csv", {"--columns": "id,judge,winner", "--merge": True, "--wide": False})
    "'my labels.csv' --columns id,judge,winner --merge"
    """
    words = [labels]
    for name, value in given.items():
        if value is not None and value is not False:
            words += [name] if value is True else [name, str(value)]
    return shlex.join(words)


def _output(out: Path, found: Questions) -> Any:
    from venire.files import columns_output
    from venire.files.audits import ASKED

    asked = found.asked
    return columns_output(
        out,
        {
            "task": [one.item for one in asked],
            "label": ["" for _ in asked],
            "drawn": [ASKED for _ in asked],
            "verdict": [one.verdict for one in asked],
            "other": [one.other for one in asked],
            "information": [round(one.information, 4) for one in asked],
        },
    )


def _print(found: Questions, labels: str, gold: Path | None, out: Path | None) -> None:
    for line in found.words:
        print(line)
    if found.gold:
        for name, weight in list(found.explanations.items())[:5]:
            hits, of = found.right.get(name, (0, 0))
            told = f", right on {hits} of {of}" if of else ""
            if weight >= 0.01:
                print(f"  {weight:4.0%}  {name}{told}")
    if out is not None:
        also = f", and add the rows of {gold} to it" if gold is not None else ""
        print(f"fill in the labels of {out}, as somebody trusted sees them{also}; then:")
        answers = shlex.join(["--gold", str(out)])
        print(f"  venire ask {labels} {answers}        what they say")
        print(f"  venire aggregate {labels} {answers}  verdicts that follow them")
