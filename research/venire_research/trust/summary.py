"""Means over the seeds, and whether each cell passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from venire_research.common.sheets import Sheet, mean, percent, points
from venire_research.regimes.summary import short_names
from venire_research.trust.measures import Row

__all__ = ["BELOW_BEST", "BELOW_MAJORITY", "concluding", "sheets", "summarise"]

#: How far streamed verdicts may be below the majority of the same labels, and below the best of
#: three ways to aggregate them: the truth says which that is.
BELOW_MAJORITY: Final = 0.01
BELOW_BEST: Final = 0.03
BATCH: Final = ("majority", "auto", "dawid-skene")

#: Differences below this are rounding errors.
ROUNDING: Final = 1e-9

#: Marks a cell that does not pass.
MARK: Final = "!"

_MEASURES: Final = (
    *("items", "labels", "streamed", "majority", "auto", "dawid-skene"),
    *("confidence", "ece", "sure", "sure_wrong", "auto_ece"),
    *("labelers", "alarms", "alarms_allowed"),
)

Line = dict[str, Any]


def summarise(rows: Sequence[Row]) -> list[Line]:
    """One line for each world, policy and way of learning: means over the seeds, and `passed`."""
    cells: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["world"], row["learning"], row["policy"]), []).append(row)
    lines = []
    for which, found in cells.items():
        line: Line = {"suite": found[0]["suite"]}
        line |= dict(zip(("world", "learning", "policy"), which, strict=True))
        line |= {"seeds": len(found)}
        line |= {name: mean([row[name] for row in found]) for name in _MEASURES}
        line["over_majority"] = line["streamed"] - line["majority"]
        line["over_best"] = line["streamed"] - max(line[name] for name in BATCH)
        line["passed"] = bool(
            line["over_majority"] >= -BELOW_MAJORITY - ROUNDING
            and line["over_best"] >= -BELOW_BEST - ROUNDING
        )
        lines.append(line)
    return lines


def sheets(lines: Sequence[Line]) -> list[Sheet]:
    """For each way of learning: right verdicts, and the points above majority and the best."""
    made = []
    policies = list(dict.fromkeys(line["policy"] for line in lines))
    for learning in dict.fromkeys(line["learning"] for line in lines):
        found = {(x["world"], x["policy"]): x for x in lines if x["learning"] == learning}
        worlds = dict.fromkeys(world for world, _ in found)
        rows = [[world, *(_cell(found[world, p]) for p in policies)] for world in worlds]
        title = f"{learning}: right verdicts, %, points above majority / best; {MARK}: fails"
        made.append(Sheet(title, ("world", *short_names(policies).values()), rows))
    return made


def _cell(line: Line) -> str:
    mark = "" if line["passed"] else f" {MARK}"
    above = f"{points(line['over_majority'])} / {points(line['over_best'])}"
    return f"{percent(line['streamed'])} {above}{mark}"


def concluding(lines: Sequence[Line]) -> list[str]:
    """The conclusions, in words: how many pass, and each that does not."""
    failed = [line for line in lines if not line["passed"]]
    said = [
        f"{len(lines) - len(failed)} of {len(lines)} pass: at most 1 point below the majority of "
        "the same labels, and at most 3 below the best of majority, Auto and Dawid-Skene of them."
    ]
    for learning in dict.fromkeys(line["learning"] for line in lines):
        some = [line for line in lines if line["learning"] == learning]
        passed = sum(line["passed"] for line in some)
        said.append(
            f"{learning}: {passed} of {len(some)} pass; calibration error "
            f"{percent(mean([line['ece'] for line in some]))} %, that of Auto "
            f"{percent(mean([line['auto_ece'] for line in some]))} %."
        )
        said += _false_alarms(learning, some)
    for line in failed:
        which = f"{line['world']}, {line['policy']}, {line['learning']}"
        said.append(
            f"fails: {which}: {percent(line['streamed'])} %, majority "
            f"{percent(line['majority'])} %, Auto {percent(line['auto'])} %, Dawid-Skene "
            f"{percent(line['dawid-skene'])} %"
        )
    return said


def _false_alarms(learning: str, lines: Sequence[Line]) -> list[str]:
    """Drift alarms in worlds in which nobody changes: all of them are false."""
    alarms, allowed = (
        sum(line[name] * line["seeds"] for line in lines) for name in ("alarms", "alarms_allowed")
    )
    if not allowed:
        return []
    labelers = sum(line["labelers"] * line["seeds"] for line in lines)
    said = f"{learning}: {alarms:.0f} drift alarms among {labelers:,.0f} labelers who never change"
    worlds = [line["world"] for line in lines if line["alarms"]]
    where = f" ({', '.join(dict.fromkeys(worlds))})" if worlds else ""
    return [f"{said}{where}; the level allows {allowed:.1f}."]
