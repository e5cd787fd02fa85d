"""`venire ask`: the few items that an expert should see."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import (
    FamiliesFile,
    Labels,
    Reading,
    check_list,
    families_of,
    gold_of,
)
from venire.errors import InputError
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
    *,
    reading: Reading,
    seed: Annotated[int, typer.Option(metavar="N", help=SEED)] = 0,
    as_json: AsJson = False,
) -> None:
    """Choose the items whose truth tells most about which explanation of the labels holds.

    Fill in the labels of the list, and give it as --gold: to this command, which says what is
    known now and whether more would pay, and to venire aggregate.
    """
    from venire.estimators.questions import questions
    from venire.files import write_outputs
    from venire.files.audits import KnownLabels

    reading.check()
    source = located(labels)
    if out is None and gold is None:
        raise InputError("give --out, the file for the list, or --gold with the answers so far")
    if out is not None:
        check_list(out, (source, gold, families), "answers")
    with screen.working(f"reading {source.name}"):
        table = reading.table(source)
        known = KnownLabels({}) if gold is None else gold_of(gold, table, reading.beside)
        kin = families_of(families, source, table, reading.beside)
        taught = None if gold is None else known.labels
        found = questions(table, n, taught, asked=known.asked, families=kin, seed=seed)
    if out is not None:
        write_outputs([_output(out, found)])
    given = {f"--{name}": x for name, x in asdict(reading).items() if x != "error"}
    reread = _reread(labels, given | {"--families": families})
    screen.show(found.record, _lines(found, reread, gold, out), as_json, default=str)


def _reread(labels: str, given: Mapping[str, Any]) -> str:
    """The labels with the options that say how to read them, for the next command.

    >>> _reread("my labels.csv", {"--columns": "id,judge,winner", "--merge": True, "--wide": False})
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


def _lines(found: Questions, labels: str, gold: Path | None, out: Path | None) -> Iterator[str]:
    yield from found.words
    for name, weight in list(found.explanations.items())[:5] if found.gold else ():
        hits, of = found.right.get(name, (0, 0))
        if weight >= 0.01:
            yield f"  {weight:4.0%}  {name}" + (f", right on {hits} of {of}" if of else "")
    if out is not None:
        also = f", and add the rows of {gold} to it" if gold is not None else ""
        yield f"fill in the labels of {out}, as somebody trusted sees them{also}; then:"
        answers = shlex.join(["--gold", str(out)])
        yield f"  venire ask {labels} {answers}        what they say"
        yield f"  venire aggregate {labels} {answers}  verdicts that follow them"
