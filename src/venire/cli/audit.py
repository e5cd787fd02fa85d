"""`venire audit`: draw verdicts to check, and bound their error rate."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from venire.cli.shared import AsJson, counted, screen
from venire.cli.shared.guarantees import drawn_gold, guarantee_lines
from venire.cli.shared.tables import VerdictColumns, check_list, columns_of
from venire.errors import FileError, InputError, UnknownName

if TYPE_CHECKING:
    from rich.table import Table

    from venire.audits import AuditReport, ErrorBound, Guarantee
    from venire.files.audits import Gold


ACTIONS = ("draw", "bound", "guarantee")

ACTION = (
    "draw: choose verdicts to check. bound: bound the error rate by the checked ones. "
    "guarantee: mark the verdicts of which at most a stated share is wrong."
)
VERDICTS = "The verdicts, as venire aggregate --out writes them: task,label."
GOLD = (
    "With bound and guarantee: the trusted labels, task,label: the list that was drawn, filled in."
)
SHARE = "With draw: this share of the verdicts. [default: 0.05]"
AT_LEAST = "With draw: at least this many of each class, or all there are. [default: 0]"
SEED = "With draw: the seed. [default: drawn, and printed]"
OUT = (
    "With draw: write the list, task,label,drawn. With guarantee: task,label,confidence,guaranteed."
)
DRAWN = "With bound: the list that was drawn, if the trusted labels are in another file."
LEVEL = "The probability with which a bound or the guarantee holds. [default: 0.95]"
RIGHT = "With guarantee: this share of the marked verdicts is right. [default: 0.95]"
ONGOING = "With bound: also bound future verdicts, not only those in the file."


def audit(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=ACTION)],
    verdicts: Annotated[Path, typer.Argument(metavar="VERDICTS", help=VERDICTS)],
    gold: Annotated[Path | None, typer.Argument(metavar="GOLD", help=GOLD)] = None,
    columns: VerdictColumns = None,
    share: Annotated[float | None, typer.Option(metavar="X", help=SHARE)] = None,
    at_least: Annotated[int | None, typer.Option(metavar="N", help=AT_LEAST)] = None,
    seed: Annotated[int | None, typer.Option(help=SEED)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None,
    drawn: Annotated[Path | None, typer.Option(metavar="FILE", help=DRAWN)] = None,
    level: Annotated[float | None, typer.Option(metavar="X", help=LEVEL)] = None,
    right: Annotated[float | None, typer.Option(metavar="X", help=RIGHT)] = None,
    ongoing: Annotated[bool, typer.Option("--ongoing", help=ONGOING)] = False,
    as_json: AsJson = False,
) -> None:
    """Draw verdicts for somebody to check, and bound the error rate of all of them.

    The bound is valid at any time: check as many as you like, and look as often as you like.
    """
    from venire.files import read_verdicts
    from venire.files.audits import COLUMNS

    given: dict[str, Any] = {"--share": share, "--at-least": at_least, "--seed": seed}
    given |= {"--out": out, "GOLD": gold, "--drawn": drawn, "--level": level}
    _check(action, given | {"--ongoing": ongoing or None, "--right": right})
    called, sure = columns_of(columns, COLUMNS), 0.95 if level is None else level
    if gold is None:
        assert out is not None
        known = read_verdicts(verdicts, called)
        check_list(out, (verdicts,), "trusted labels")
        seed = secrets.randbelow(2**32) if seed is None else seed
        record = _draw(known, out, 0.05 if share is None else share, seed, at_least or 0)
        screen.show(record, _drawn_lines(record, verdicts, out), as_json)
    elif action == "bound":
        report = _bound(read_verdicts(verdicts, called), gold, drawn, sure, ongoing)
        screen.show(lambda: _record(report, ongoing), _lines(report, ongoing), as_json)
    else:
        found = _guarantee(verdicts, called, gold, (0.95 if right is None else right, sure), out)
        screen.show(found.record, guarantee_lines(found), as_json)


#: The options of each action.
_OPTIONS: Final = {
    "draw": ("--share", "--at-least", "--seed", "--out"),
    "bound": ("GOLD", "--drawn", "--level", "--ongoing"),
    "guarantee": ("GOLD", "--out", "--level", "--right"),
}


def _check(action: str, given: dict[str, Any]) -> None:
    if action not in ACTIONS:
        raise UnknownName("action", action, ACTIONS)
    needed = "--out" if action == "draw" else "GOLD"
    if given[needed] is None:
        file = "a file for the list" if action == "draw" else "the file of the trusted labels"
        raise InputError(f"audit {action} needs {needed}: give {file}")
    for name, value in given.items():
        if value is not None and name not in _OPTIONS[action]:
            other = next(one for one, names in _OPTIONS.items() if name in names)
            raise InputError(f"{name} is an option of audit {other}, not of audit {action}")


def _draw(
    known: dict[str, str], out: Path, share: float, seed: int, at_least: int
) -> dict[str, Any]:
    from venire.audits import draw_audit
    from venire.files import drawn_output, write_outputs

    drawn = draw_audit(known, share, seed, at_least)
    write_outputs([drawn_output(out, drawn)])
    extra = sum(task.extra for task in drawn)
    return {"verdicts": len(known), "sample": len(drawn) - extra, "extra": extra, "seed": seed}


def _drawn_lines(record: dict[str, Any], verdicts: Path, out: Path) -> Iterator[str]:
    more = f", and {record['extra']:,} more of rare classes" if record["extra"] else ""
    yield f"{record['sample']:,} of {record['verdicts']:,} verdicts{more}, seed {record['seed']}"
    yield f"fill in the labels of {out} from the top, without a look at the verdicts; then:"
    yield f"venire audit bound {verdicts} {out}"


def _guarantee(
    verdicts: Path,
    columns: Sequence[str],
    gold: Path,
    shares: tuple[float, float],
    out: Path | None,
) -> Guarantee:
    """Mark the verdicts of a file."""
    from venire.audits import guarantee
    from venire.files import check_targets, columns_output, read_judged, write_outputs

    check_targets((out,), (verdicts, gold))
    judged = read_judged(verdicts, columns)
    if judged.confidences is None:
        message = "there is no column 'confidence', by which the surest verdicts are found"
        raise FileError(verdicts, None, f"{message}: give verdicts of aggregate, label or judge")
    known = drawn_gold(gold, judged.verdicts)
    found = guarantee(judged.verdicts, judged.confidences, known, *shares)
    if out is not None:
        tasks = list(judged.verdicts)
        marked: dict[str, list[Any]] = {
            "task": tasks,
            "label": list(judged.verdicts.values()),
            "confidence": [judged.confidences[task] for task in tasks],
            "guaranteed": ["yes" if task in found.tasks else "no" for task in tasks],
        }
        write_outputs([columns_output(out, marked)])
    return found


def _bound(
    known: dict[str, str], gold: Path, drawn: Path | None, level: float, ongoing: bool
) -> AuditReport:
    from venire.audits import audit_bounds
    from venire.files import read_gold

    found = read_gold(gold, known)
    listed = found if drawn is None else read_gold(drawn, known)
    if not any(found.labels.values()):
        raise FileError(gold, None, "no label is filled in: give the trusted labels of some tasks")
    _warn(found, listed, known, drawn is not None)
    try:
        return audit_bounds(known, found.labels, listed.drawn, level, ongoing)
    except InputError as error:
        raise InputError(f"{gold}: {error}") if drawn is not None else error from None


def _warn(found: Gold, listed: Gold, known: dict[str, str], given: bool) -> None:
    if not (given or listed.marked):
        screen.warn(
            "the bounds hold if the tasks were drawn at random: give the list of venire audit "
            "draw, filled in, or name it with --drawn"
        )
    classes = set(known.values())
    strange = [task for task, label in found.labels.items() if label and label not in classes]
    if strange:
        example = f"{found.labels[strange[0]]!r} for task {strange[0]!r}"
        screen.warn(
            f"the trusted label of {counted(len(strange), 'task')} is not one of the verdicts', "
            f"such as {example}: verdicts on them count as wrong"
        )


def _record(report: AuditReport, ongoing: bool) -> dict[str, Any]:
    return {
        "level": report.overall.level,
        "ongoing": ongoing,
        **_row(report.overall),
        "classes": [{"label": name, **_row(bound)} for name, bound in report.classes.items()],
    }


def _row(bound: ErrorBound) -> dict[str, Any]:
    low, high = bound.interval
    return {
        **({} if bound.size is None else {"verdicts": bound.size}),
        "audited": bound.audited,
        "wrong": bound.wrong,
        "skipped": bound.skipped,
        "estimate": bound.estimate,
        "upper": bound.upper,
        "low": low,
        "high": high,
    }


def _lines(report: AuditReport, ongoing: bool) -> Iterator[str | Table]:
    overall, classes = report.overall, report.classes
    whose = "of the process that these come from" if ongoing else f"of these {overall.size:,}"
    level = f"{overall.level * 100:g} %"
    yield f"with probability {level} at most {_up(overall.upper)} of verdicts are wrong, {whose}"
    yield ""
    yield _table({"all": overall, **{str(name): b for name, b in classes.items()}})
    yield ""
    if overall.skipped or any(bound.skipped for bound in classes.values()):
        yield "skipped tasks, which came before audited ones, count as wrong above, right below"
    yield f"each row holds at {level} by itself, however often you have looked"


def _table(bounds: dict[str, ErrorBound]) -> Table:
    skipped = any(bound.skipped for bound in bounds.values())
    heads = ["verdict", "verdicts", "audited", "wrong", *(["skipped"] if skipped else [])]
    rows = []
    for name, bound in bounds.items():
        counts = [bound.size, bound.audited, bound.wrong, *([bound.skipped] if skipped else [])]
        low, high = bound.interval
        rows.append(
            [
                name,
                *("-" if count is None else f"{count:,}" for count in counts),
                "-" if bound.estimate is None else f"{bound.estimate:.2%}".replace("%", " %"),
                _up(bound.upper),
                f"{math.floor(low * 1e4 + 1e-6) / 100:.2f} to {_up(high)}",
            ]
        )
    return screen.table([*heads, "estimate", "at most", "interval"], rows)


def _up(rate: float) -> str:
    """A rate rounded up, so that "at most" is true.

    >>> _up(0.05), _up(0.050001)
    ('5.00 %', '5.01 %')
    """
    return f"{math.ceil(rate * 1e4 - 1e-6) / 100:.2f} %"
