"""`venire estimate`: rates of a file, by verdicts on all items and trusted labels of a few."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from venire.cli.shared import AsJson, counted, screen
from venire.cli.shared.guarantees import read_sample
from venire.cli.shared.tables import VerdictColumns, check_list, columns_of
from venire.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

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
ANYTIME = "Intervals that hold at all times together, so that you may check after every label."
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

    def interval(self) -> dict[str, Any]:
        """How intervals are made."""
        level = 0.95 if self.level is None else self.level
        return {"level": level, "anytime": self.anytime, "ongoing": self.ongoing}


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
    if asked.gold is None:
        record = _draw(judged, verdicts, named, asked)
        screen.show(record, _drawn_lines(record, verdicts, asked), as_json)
        return
    known, chances = _gold(asked.gold, judged.verdicts)
    groups = _groups(asked, judged.verdicts)
    of = asked.of
    if of is not None and of not in judged.verdicts.values() and of not in known.values():
        classes = ", ".join(sorted(set(judged.verdicts.values()))[:20])
        raise InputError(
            f"no verdict and no trusted label is {of!r}, expected one of {classes}: correct --of"
        )
    scores = judged.scores(dict(zip(named, WORTH, strict=False)))
    report = _report(Sample(judged.verdicts, known, scores, chances, asked, named), groups)
    screen.show(lambda: _record(report, asked), _lines(report, asked), as_json)


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


def _draw(judged: Judged, path: Path, named: tuple[str, ...], asked: Asked) -> dict[str, Any]:
    from venire.audits import draw_for_rate
    from venire.files import asked_output, write_outputs

    assert asked.draw is not None
    assert asked.out is not None
    check_list(asked.out, (path,), "trusted labels")
    seed = secrets.randbelow(2**32) if asked.seed is None else asked.seed
    scores = judged.scores(dict(zip(named, WORTH, strict=False)))
    drawn = draw_for_rate(judged.verdicts, named[0], asked.draw, seed, scores)
    write_outputs([asked_output(asked.out, drawn)])
    return {"verdicts": len(judged.verdicts), "drawn": len(drawn), "seed": seed}


def _drawn_lines(record: dict[str, Any], verdicts: Path, asked: Asked) -> Iterator[str]:
    what = f"--of {asked.of}" if asked.wins is None else f"--wins {asked.wins}"
    yield f"{record['drawn']:,} of {record['verdicts']:,} items, seed {record['seed']}"
    yield f"fill in the labels of {asked.out} from the top; then:"
    yield f"venire estimate {verdicts} --gold {asked.out} {what}"


def _gold(path: Path, verdicts: dict[str, str]) -> tuple[dict[str, str], dict[str, float] | None]:
    """The trusted labels in the order drawn, and the probabilities if they differ."""
    found, sample = read_sample(path, verdicts, " in rates")
    if not (found.marked or found.probabilities):
        screen.warn(
            "the intervals hold if the tasks were drawn at random: draw them by venire estimate "
            "--draw or venire audit draw"
        )
    known = {task: label for task, label in sample.items() if label is not None}
    skipped = len(sample) - len(known)
    if skipped:
        screen.warn(
            f"{counted(skipped, 'task')} before the last label have none: the intervals hold if "
            "that has nothing to do with the label; fill them in"
        )
    return known, found.probabilities


def _groups(asked: Asked, verdicts: dict[str, str]) -> dict[str, tuple[str, ...]] | None:
    if asked.items is None or asked.by is None:
        return None
    from venire.files import read_groups

    columns = [name.strip() for name in asked.by.split(",")]
    if len(columns) > (1 if asked.wins is None else 2) or "" in columns:
        sides = "" if asked.wins is None else ", or two with the names of the sides"
        raise InputError(f"got --by {asked.by!r}, expected one column{sides}")
    return read_groups(asked.items, columns, verdicts)


class Sample(NamedTuple):
    """The verdicts on all, the trusted labels of some, and what is asked of them."""

    verdicts: dict[str, str]
    gold: dict[str, str]
    scores: dict[str, float] | None
    chances: dict[str, float] | None
    asked: Asked
    named: tuple[str, ...]

    def rate(self, tasks: Iterable[str], **interval: Any) -> Rate:
        """The share of the class, or the win rate, of some items."""
        from venire.audits import share_of, win_rate

        verdicts = {task: self.verdicts[task] for task in tasks}
        gold = {task: label for task, label in self.gold.items() if task in verdicts}
        known, how = (self.scores, self.chances), self.asked.interval() | interval
        if self.asked.of is not None:
            return share_of(verdicts, gold, self.asked.of, *known, **how)
        return win_rate(verdicts, gold, self.named, None, None, *known, **how)

    def overall(self) -> dict[str, Rate]:
        """What is said of all items; without groups of sides, of which each has a rate."""
        from venire.audits import precision_of, recall_of

        of, how = self.asked.of, self.asked.interval()
        if of is None:
            return {"win rate": self.rate(self.verdicts)}
        given = self.verdicts, self.gold, of, self.scores, self.chances
        return {
            "share": self.rate(self.verdicts),
            "precision": precision_of(*given, **how),
            "recall": recall_of(*given, **how),
        }

    def sides(self, groups: Mapping[str, tuple[str, ...]]) -> dict[str, Rate]:
        """How often each of the names of the sides wins."""
        from venire.audits import win_rate

        sides = {task: (pair[0], pair[1]) for task, pair in groups.items()}
        given, how = (self.verdicts, self.gold, self.named), self.asked.interval()
        known = self.scores, self.chances
        names = sorted({name for pair in sides.values() for name in pair})
        return {name: win_rate(*given, sides, name, *known, **how) for name in names}


def _report(sample: Sample, groups: dict[str, tuple[str, ...]] | None) -> Report:
    of, against = sample.asked.of, sample.asked.against
    what = f"win rate of {sample.named[0]}" if of is None else f"share of {of}"
    if groups is None:
        return Report(what, sample.overall(), {}, {})
    if len(next(iter(groups.values()))) == 2:
        if against is not None:
            raise InputError(
                "--against needs groups of items: the two sides of a pair share its label"
            )
        return Report("win rate", {}, sample.sides(groups), {})
    members: dict[str, list[str]] = {}
    for task, (group,) in groups.items():
        members.setdefault(group, []).append(task)
    rates = {name: sample.rate(members[name]) for name in sorted(members)}
    return Report(what, sample.overall(), rates, _differences(sample, members))


def _differences(sample: Sample, members: Mapping[str, list[str]]) -> dict[tuple[str, str], Rate]:
    from venire.audits import rate_difference

    asked, against = sample.asked, sample.asked.against
    if against is not None and against not in members:
        known = ", ".join(sorted(members)[:20])
        raise InputError(f"got --against {against!r}, expected one of the groups: {known}")
    level = asked.interval()["level"]
    if asked.anytime:  # both intervals must hold together
        level = (1 + level) / 2
    rates = {name: sample.rate(tasks, level=level) for name, tasks in sorted(members.items())}
    if against is None:
        pairs = list(combinations(rates, 2))
    else:
        pairs = [(name, against) for name in rates if name != against]
    return {(a, b): rate_difference(rates[a], rates[b], asked.anytime) for a, b in pairs}


def _record(report: Report, asked: Asked) -> dict[str, Any]:
    main = next(iter(report.overall.values()), None)
    others = {name: rate.record() for name, rate in list(report.overall.items())[1:]}
    differences = [
        {"group": a, "against": b, **rate.record()} for (a, b), rate in report.differences.items()
    ]
    return {
        "rate": report.what,
        **({} if main is None else main.record()),
        **asked.interval(),
        **others,
        "groups": [{"group": name, **rate.record()} for name, rate in report.groups.items()],
        "differences": differences,
    }


def _lines(report: Report, asked: Asked) -> Iterator[str | Table]:
    level = f"{asked.interval()['level'] * 100:g} %"
    rows = [(report.what if i == 0 else k, r) for i, (k, r) in enumerate(report.overall.items())]
    rows += [(f"{report.what}, {name}", rate) for name, rate in report.groups.items()]
    rows += [(f"{a} - {b}", rate) for (a, b), rate in report.differences.items()]
    yield screen.table(
        ("rate", "estimate", f"{level} interval", "by gold alone", "gold", "worth"),
        (
            (
                name,
                _per_cent(rate.estimate),
                _ends(rate.low, rate.high),
                _ends(rate.gold_only.low, rate.gold_only.high),
                f"{rate.gold:,}",
                f"{rate.worth:,.0f}",
            )
            for name, rate in rows[:MOST]
        ),
    )
    if len(rows) > MOST:
        yield f"... {len(rows) - MOST:,} more rows: --json has all of them"
    yield ""
    whose = "the process that these items come from" if asked.ongoing else "these items"
    often = ", however often you have looked" if asked.anytime else ", if you look once"
    yield f"of {whose}; each row holds at {level} by itself{often}"
    yield "worth: how many trusted labels alone, drawn at random, would say as much"


def _per_cent(x: float) -> str:
    return "-" if math.isnan(x) else f"{100 * x:.1f} %"


def _ends(low: float, high: float) -> str:
    """Both ends, rounded outwards.

    >>> _ends(0.05, 0.1234)
    '5.0 to 12.4 %'
    """
    down, up = math.floor(1000 * low + 1e-6) / 10, math.ceil(1000 * high - 1e-6) / 10
    return f"{down:.1f} to {up:.1f} %"
