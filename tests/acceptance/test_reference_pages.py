"""docs/glossary.md and docs/formats.md are complete: they are compared with the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import typer

import venire as vn
from venire.batch.labelling import KEYS
from venire.cli import COMMANDS, command_of
from venire.files import (
    assignments_output,
    drawn_output,
    exits_output,
    items,
    skills_output,
    verdicts_output,
)
from venire.labels.sources import COLUMNS, COMPARISON_COLUMNS, TRUTH_COLUMNS
from venire.model import ExitReason
from venire.server.store import RevisionRow
from venire.server.store.maintenance.export import COLUMNS as STREAM_VERDICTS
from venire_research.regimes.files import FILES

DOCS = Path(__file__).parent.parent.parent / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text()
FORMATS = (DOCS / "formats.md").read_text()

LABELS = [("a", "ann", "x"), ("a", "bob", "x"), ("b", "ann", "y"), ("b", "bob", "x")]
COMPARED = [("a", "b", "ann", "a"), ("b", "c", "bob", "c")]


def rows(page: str) -> dict[str, list[str]]:
    """The rows of the tables of a page by their first cell."""
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in page.splitlines()
        if line.startswith("|") and not line.startswith("|-")
    ]
    return {first: rest for first, *rest in cells}


def paths_of(command: str) -> list[str]:
    """The files of a command as its help names them: `--out`, or `LABELS` for an argument."""
    function = command_of(command)
    found = []
    for name, hint in get_type_hints(function, include_extras=True).items():
        kinds = get_args(hint) or (hint,)
        if Path not in kinds[:1] and Path not in get_args(kinds[0]):
            continue
        option = kinds[1]
        words = (option.default, *(option.param_decls or ()))
        declared = [text for text in words if str(text).startswith("--")]
        is_option = isinstance(option, typer.models.OptionInfo)
        named = declared[0] if declared else f"--{name.replace('_', '-')}"
        found.append(named if is_option else option.metavar or name.upper())
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_every_file_of_a_command_is_described(command: str) -> None:
    wanted = {f"venire {command} {path.strip('[]')}" for path in paths_of(command)}
    assert {text for text in wanted if f"`{text}`" not in FORMATS} == set()


def columns() -> dict[str, tuple[str, ...]]:
    """What the code reads and writes, by the name that the page gives the file."""
    fitted, numbers = vn.MajorityVote().fit(LABELS), vn.RobustMean().fit([(1, 1, 1.5), (1, 2, 2.5)])
    ranked = vn.BradleyTerry().fit(COMPARED)
    return {
        "labels": COLUMNS,
        "truth: known labels to compare with": TRUTH_COLUMNS,
        "gold: known labels to learn from": TRUTH_COLUMNS,
        "comparisons": COMPARISON_COLUMNS,
        "prices": ("labeler", "price"),
        "verdicts": verdicts_output("v.csv", fitted).columns,
        "skills": skills_output("s.csv", fitted).columns,
        "means": tuple(numbers.value_columns()),
        "raters of numbers": tuple(numbers.labeler_columns()),
        "scores": tuple(ranked.value_columns()),
        "those who compared": tuple(ranked.labeler_columns()),
        "the list to audit": drawn_output("d.csv", []).columns,
        "panel of a batch (YAML, TOML, JSON)": KEYS,
        "items of a stream (CSV)": items.REQUIRED + items.OPTIONAL,
        "panel (CSV)": items.PANEL_REQUIRED + items.PANEL_OPTIONAL,
        "assignments": assignments_output("a.csv", []).columns,
        "exits": exits_output("e.csv", []).columns,
        "revisions": RevisionRow._fields[1:],
        "verdicts of a stream": STREAM_VERDICTS,
        "comparison": FILES,
    }


@pytest.mark.parametrize(("file", "names"), columns().items(), ids=columns())
def test_every_column_is_described(file: str, names: tuple[str, ...]) -> None:
    listed = re.findall(r"`([^`]+)`", rows(FORMATS)[file][-1])
    assert [name for name in names if name not in listed] == []


def test_the_glossary_has_every_exit_reason_with_its_meaning() -> None:
    table = rows(GLOSSARY.partition("## Exit reasons")[2])
    told = {name.strip("`"): cells[0] for name, cells in table.items() if name.startswith("`")}
    assert told == {str(reason): reason.meaning for reason in ExitReason}


def test_the_glossary_is_sorted_and_every_word_has_a_page() -> None:
    table = rows(GLOSSARY.partition("## Exit reasons")[0])
    del table["word"]
    assert list(table) == sorted(table)
    assert [word for word, cells in table.items() if "](" not in cells[-1]] == []
    wanted = "slot weight exit evidence utility labeler panel lease gold verdict posterior overlap"
    assert set(wanted.split()) | {"certificate"} <= set(table)
