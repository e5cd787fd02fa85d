"""`venire estimate`: rates of a file, by verdicts on all items and trusted labels of a few."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from venire.cli.shared import AsJson, screen
from venire.cli.shared.tables import VerdictColumns, columns_of
from venire.errors import FileError, InputError

if TYPE_CHECKING:
    from venire.audits import Rate
    from venire.files.audits import Judged


VERDICTS = "The verdicts of venire aggregate, label or judge: task,label; also confidence,p(class)."
GOLD = "The trusted labels of items drawn at random: task,label; also probability, drawn."
OF = "The class whose share, precision and recall are estimated."
WINS = (
    "For pairs: the labels which say that the first side wins, that the second does, and that "
    "neither does: first,second,tie."
)
ITEMS = "With --by: the items, with task, id or item and other columns."
BY = "A column of --items: the rate of each group; with --wins also two, the names of both sides."
AGAINST = "With --by: only differences from this group. [default: between every two]"
LEVEL = "The probability with which each interval holds. [default: 0.95]"
ANYTIME = "Intervals that hold at all times together, so that you may look after each label."
ONGOING = "The rate of the process that these items come from, not only of these."
DRAW = (
    "Draw this many items to be labelled, doubtful ones more often; needs --out and --of or --wins."
)
SEED = "With --draw: the seed. [default: drawn, and printed]"
OUT = "With --draw: write the list, .csv, .parquet or .jsonl: task,label,probability."

#: What a win, a loss and a tie count.
WORTH = (1.0, 0.0, 0.5)

#: Rows of a report that are printed; JSON has all.
MOST = 40


class Options(NamedTuple):
    """How intervals are made."""

    level: float
    ongoing: bool
    anytime: bool


@dataclass(frozen=True)
class Asked:
    """What is estimated, from what and how, or drawn."""

    gold: Annotated[Path | None, typer.Option(metavar="FILE", help=GOLD)] = None
    of: Annotated[str | None, typer.Option(metavar="CLASS", help=OF)] = None
    wins: Annotated[str | None, typer.Option(metavar="NAMES", help=WINS)] = None
    items: Annotated[Path | None, typer.Option(metavar="FILE", help=ITEMS)] = None
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help=BY)] = None
    against: Annotated[str | None, typer.Option(metavar="GROUP", help=AGAINST)] = None
    columns: VerdictColumns = None
    level: Annotated[float | None, typer.Option(metavar="X", help=LEVEL)] = None
    anytime: Annotated[bool, typer.Option("--anytime", help=ANYTIME)] = False
    ongoing: Annotated[bool, typer.Option("--ongoing", help=ONGOING)] = False
    draw: Annotated[int | None, typer.Option(metavar="N", help=DRAW)] = None
    seed: Annotated[int | None, typer.Option(help=SEED)] = None
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=OUT)] = None


def estimate(
    verdicts: Annotated[Path, typer.Argument(metavar="VERDICTS", help=VERDICTS)],
    *,
    asked: Asked,
    as_json: AsJson = False,
) -> None:
    """Estimate the share of a class, or win rates, with intervals that hold whatever judges do.

    Trusted labels of a few items correct the verdicts on all: intervals are narrower than by these
    labels alone, and are wrong no more often than stated.
    """
    from venire.files.audits import COLUMNS, read_judged

    named = _names(asked.of, asked.wins)
    _check(asked)
    judged = read_judged(verdicts, columns_of(asked.columns, COLUMNS), named)
    of, wins = asked.of, asked.wins
    if asked.draw is not None and asked.out is not None:
        record = _draw(judged, verdicts, named, asked.draw, asked.seed, asked.out)
        what = f"--of {of}" if wins is None else f"--wins {wins}"
        said = _drawn(record, verdicts, asked.out, what)
        print(json.dumps(record, indent=2) if as_json else said)
        return
    if asked.gold is None:  # as checked
        raise InputError("give the trusted labels: --gold FILE")
    options = Options(0.95 if asked.level is None else asked.level, asked.ongoing, asked.anytime)
    known, chances = _gold(asked.gold, judged.verdicts)
    groups = _groups(asked.items, asked.by, judged.verdicts, wins)
    if of is not None and of not in judged.verdicts.values() and of not in known.values():
        classes = ", ".join(sorted(set(judged.verdicts.values()))[:20])
        raise InputError(
            f"no verdict and no trusted label is {of!r}, expected one of {classes}: correct --of"
        )
    report = _report(judged, known, chances, of, wins and named, groups, asked.against, options)
    if as_json:
        print(json.dumps(_record(report, options), indent=2, allow_nan=False))
    else:
        _print(report, options)


class Report(NamedTuple):
    """All rates, by what they are of; those of groups and their differences by the groups."""

    what: str
    overall: dict[str, Rate]
    groups: dict[str, Rate]
    differences: dict[tuple[str, str], Rate]


def _names(of: str | None, wins: str | None) -> tuple[str, ...]:
    if (of is None) == (wins is None):
        raise InputError(
            "give either --of CLASS or --wins FIRST,SECOND[,TIE]: what is to be estimated"
        )
    if wins is None:
        return (str(of),)
    names = tuple(name.strip() for name in wins.split(","))
    if len(names) not in (2, 3) or len(set(names)) < len(names) or "" in names:
        raise InputError(f"got --wins {wins!r}, expected two or three labels: first,second,tie")
    return names


def _check(asked: Asked) -> None:
    if asked.draw is None:
        for name in ("seed", "out"):
            if getattr(asked, name) is not None:
                raise InputError(f"--{name} needs --draw: it is for the list of items to label")
        if asked.gold is None:
            raise InputError("give the trusted labels, --gold FILE, or draw items: --draw N")
    else:
        for name in ("gold", "items", "by", "against", "level", "anytime", "ongoing"):
            value = getattr(asked, name)
            if value is not None and value is not False:
                raise InputError(
                    f"--draw and --{name} exclude each other: first draw, then estimate"
                )
        if asked.out is None:
            raise InputError("--draw needs --out: a file for the list")
    if (asked.items is None) != (asked.by is None):
        raise InputError("--items and --by need each other: the file, and its column of groups")
    if asked.against is not None and asked.by is None:
        raise InputError("--against needs --by: differences are between groups")


def _draw(
    judged: Judged, path: Path, named: tuple[str, ...], n: int, seed: int | None, out: Path
) -> dict[str, Any]:
    from venire.audits import draw_for_rate
    from venire.files import asked_output, check_targets, write_outputs

    check_targets([out], [path])
    if out.is_file():
        raise FileError(out, None, "it exists and may hold trusted labels: choose another name")
    seed = secrets.randbelow(2**32) if seed is None else seed
    worth = dict(zip(named, WORTH, strict=False))
    drawn = draw_for_rate(judged.verdicts, named[0], n, seed, judged.scores(worth))
    write_outputs([asked_output(out, drawn)])
    return {"verdicts": len(judged.verdicts), "drawn": len(drawn), "seed": seed}


def _drawn(record: dict[str, Any], verdicts: Path, out: Path, what: str) -> str:
    return (
        f"{record['drawn']:,} of {record['verdicts']:,} items, seed {record['seed']}\n"
        f"fill in the labels of {out} from the top; then:\n"
        f"venire estimate {verdicts} --gold {out} {what}"
    )


def _gold(path: Path, verdicts: dict[str, str]) -> tuple[dict[str, str], dict[str, float] | None]:
    """The trusted labels in the order drawn, and the probabilities if they differ."""
    from venire.files import read_gold

    found = read_gold(path, verdicts)
    extra = {task for task, is_extra in found.drawn if is_extra}
    known = {task: x for task, x in found.labels.items() if x is not None and task not in extra}
    if not known:
        raise FileError(path, None, "no label is filled in: give the trusted labels of some tasks")
    if extra:
        screen.warn(f"{len(extra):,} labels drawn as extra for their class do not count in rates")
    if not (found.marked or found.probabilities):
        screen.warn(
            "the intervals hold if the tasks were drawn at random: draw them by venire estimate "
            "--draw or venire audit draw"
        )
    order = [task for task in found.labels if task not in extra]
    last = max(i for i, task in enumerate(order) if task in known)
    skipped = last + 1 - len(known)
    if skipped:
        tasks = "1 task" if skipped == 1 else f"{skipped:,} tasks"
        screen.warn(
            f"{tasks} before the last label have none: the intervals hold if that has nothing to "
            "do with the label; fill them in"
        )
    return known, found.probabilities


def _groups(
    items: Path | None, by: str | None, verdicts: dict[str, str], wins: str | None
) -> dict[str, tuple[str, ...]] | None:
    if items is None or by is None:
        return None
    from venire.files import read_groups

    columns = [name.strip() for name in by.split(",")]
    most = 1 if wins is None else 2
    if len(columns) > most or "" in columns:
        expected = (
            "one column" if wins is None else "one column, or two with the names of the sides"
        )
        raise InputError(f"got --by {by!r}, expected {expected}")
    return read_groups(items, columns, verdicts)


def _report(
    judged: Judged,
    gold: dict[str, str],
    chances: dict[str, float] | None,
    of: str | None,
    wins: tuple[str, ...] | str | None,
    groups: dict[str, tuple[str, ...]] | None,
    against: str | None,
    options: Options,
) -> Report:
    from venire.audits import precision_of, recall_of, share_of, win_rate

    if of is None:
        labels = tuple(wins or ())
        values = dict(zip(labels, WORTH, strict=False))
        scores = judged.scores(values)

        def main(tasks: Iterable[str], how: Options) -> Rate:
            return win_rate(
                *_part(judged, gold, tasks), labels, None, None, scores, chances, **how._asdict()
            )
    else:
        scores = judged.scores({of: 1.0})

        def main(tasks: Iterable[str], how: Options) -> Rate:
            return share_of(*_part(judged, gold, tasks), of, scores, chances, **how._asdict())

    given, how = (judged.verdicts, gold), options._asdict()
    sided = groups is not None and len(next(iter(groups.values()))) == 2
    if of is None:
        what, overall = f"win rate of {labels[0]}", {}
        if not sided:
            overall = {"win rate": main(judged.verdicts, options)}
    else:
        what, overall = f"share of {of}", {"share": main(judged.verdicts, options)}
        overall["precision"] = precision_of(*given, of, scores, chances, **how)
        overall["recall"] = recall_of(*given, of, scores, chances, **how)
    if groups is None:
        return Report(what, overall, {}, {})
    if sided:
        sides = {task: (pair[0], pair[1]) for task, pair in groups.items()}
        names = sorted({name for pair in sides.values() for name in pair})
        rates = {
            name: win_rate(*given, labels, sides, name, scores, chances, **how) for name in names
        }
        if against is not None:
            raise InputError(
                "--against needs groups of items: the two sides of a pair share its label"
            )
        return Report("win rate", overall, rates, {})
    members: dict[str, list[str]] = {}
    for task, (group,) in groups.items():
        members.setdefault(group, []).append(task)
    rates = {name: main(members[name], options) for name in sorted(members)}
    return Report(what, overall, rates, _differences(members, main, against, options))


def _part(
    judged: Judged, gold: dict[str, str], tasks: Iterable[str]
) -> tuple[dict[str, str], dict[str, str]]:
    verdicts = {task: judged.verdicts[task] for task in tasks}
    return verdicts, {task: label for task, label in gold.items() if task in verdicts}


def _differences(
    members: Mapping[str, list[str]], main: Any, against: str | None, options: Options
) -> dict[tuple[str, str], Rate]:
    from venire.audits import rate_difference

    if against is not None and against not in members:
        known = ", ".join(sorted(members)[:20])
        raise InputError(f"got --against {against!r}, expected one of the groups: {known}")
    each = options
    if options.anytime:  # both intervals must hold together
        each = options._replace(level=(1 + options.level) / 2)
    rates = {name: main(tasks, each) for name, tasks in sorted(members.items())}
    if against is None:
        pairs = list(combinations(rates, 2))
    else:
        pairs = [(name, against) for name in rates if name != against]
    return {(a, b): rate_difference(rates[a], rates[b], options.anytime) for a, b in pairs}


def _record(report: Report, options: Options) -> dict[str, Any]:
    main = next(iter(report.overall.values()), None)
    others = {name: rate.record() for name, rate in list(report.overall.items())[1:]}
    differences = [
        {"group": a, "against": b, **rate.record()} for (a, b), rate in report.differences.items()
    ]
    return {
        "rate": report.what,
        **({} if main is None else main.record()),
        "level": options.level,
        "anytime": options.anytime,
        "ongoing": options.ongoing,
        **others,
        "groups": [{"group": name, **rate.record()} for name, rate in report.groups.items()],
        "differences": differences,
    }


def _print(report: Report, options: Options) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    level = f"{options.level * 100:g} %"
    table = Table(box=None, pad_edge=False)
    table.add_column("rate", no_wrap=True)
    for name in ("estimate", f"{level} interval", "by gold alone", "gold", "worth"):
        table.add_column(name, justify="right", no_wrap=True)
    rows = [(report.what if i == 0 else k, r) for i, (k, r) in enumerate(report.overall.items())]
    rows += [(f"{report.what}, {name}", rate) for name, rate in report.groups.items()]
    rows += [(f"{a} - {b}", rate) for (a, b), rate in report.differences.items()]
    for name, rate in rows[:MOST]:
        table.add_row(
            name,
            _per_cent(rate.estimate),
            _ends(rate.low, rate.high),
            _ends(rate.gold_only.low, rate.gold_only.high),
            f"{rate.gold:,}",
            f"{rate.worth:,.0f}",
        )
    console.print(table)
    if len(rows) > MOST:
        console.print(f"... {len(rows) - MOST:,} more rows: --json has all of them")
    console.print()
    whose = "the process that these items come from" if options.ongoing else "these items"
    often = ", however often you have looked" if options.anytime else ", if you look once"
    console.print(f"of {whose}; each row holds at {level} by itself{often}")
    console.print("worth: how many trusted labels alone, drawn at random, would say as much")


def _per_cent(x: float) -> str:
    return "-" if math.isnan(x) else f"{100 * x:.1f} %"


def _ends(low: float, high: float) -> str:
    """Both ends, rounded outwards.

    >>> _ends(0.05, 0.1234)
    '5.0 to 12.4 %'
    """
    down, up = math.floor(1000 * low + 1e-6) / 10, math.ceil(1000 * high - 1e-6) / 10
    return f"{down:.1f} to {up:.1f} %"
