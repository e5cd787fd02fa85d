"""Means over the seeds, differences to the best rival, and a summary in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from venire_research.common.sheets import Sheet, mean, percent, points, spread
from venire_research.equal_labels.buying import MODES
from venire_research.equal_labels.comparison import POINTS
from venire_research.equal_labels.measures import OURS, RULE, Row, point_name
from venire_research.equal_labels.plain_loop import PLAIN_LOOP

__all__ = ["GAIN", "LOSS", "concluding", "sheets", "skipped", "summarise"]

#: The goals: nowhere more than this below the best rival, and with any number of labels not below
#: the plain loop on average over the sets; and this far above the best rival where labelers can be
#: chosen.
LOSS: Final = 0.01
GAIN: Final = 0.03

_MODES: Final = {
    "chosen": "labelers can be chosen",
    "come": "labelers come as they did",
}

#: All contestants, ours first; the rule only at its own point.
CONTESTANTS: Final = (*OURS, "majority", "dawid-skene", "auto", PLAIN_LOOP, RULE)

Line = dict[str, Any]


def summarise(rows: Sequence[Row]) -> list[Line]:
    """One line for each set, mode and point: means over the seeds, and who is the best rival.

    The best rival is the one of the highest mean; `..._gain` is ours less that, and
    `..._gain_spread` the standard deviation of the difference over the seeds.
    """
    cells: dict[tuple[str, str, str], dict[str, list[Row]]] = {}
    for row in rows:
        which = row["set"], row["mode"], row["point"]
        cells.setdefault(which, {}).setdefault(row["contestant"], []).append(row)
    return [_line(which, found) for which, found in cells.items()]


def _line(which: tuple[str, str, str], found: Mapping[str, Sequence[Row]]) -> Line:
    scores = {name: [row["accuracy"] for row in rows] for name, rows in found.items()}
    means = {name: mean(values) or 0.0 for name, values in scores.items()}
    best = max((name for name in means if name not in OURS), key=means.__getitem__)
    streamed = found["streamed"]
    line: Line = dict(zip(("set", "mode", "point"), which, strict=True))
    line |= {name: mean([row[name] for row in streamed]) for name in ("items", "judged", "labels")}
    line |= {"seeds": len(streamed), "best": best}
    for name in CONTESTANTS:
        line[name] = means.get(name)
        line[f"{name}_spread"] = spread(scores[name]) if name in scores else None
    for name in OURS:
        pairs = zip(scores[name], scores[best], strict=True)
        line[f"{name}_gain"] = means[name] - means[best]
        line[f"{name}_gain_spread"] = spread([ours - theirs for ours, theirs in pairs])
    over = zip(scores["streamed"], scores[PLAIN_LOOP], strict=True)
    line["over_loop"] = means["streamed"] - means[PLAIN_LOOP]
    line["over_loop_spread"] = spread([ours - theirs for ours, theirs in over])
    for name in (*OURS, "auto"):
        line[f"{name}_ece"] = mean([row["ece"] for row in found[name]])
        line[f"{name}_sure_wrong"] = mean([row["sure_wrong"] for row in found[name]])
    return line | {"response": mean([row["response"] for row in streamed])}


def concluding(lines: Sequence[Line]) -> list[str]:
    """The conclusions, in words."""
    said = []
    for mode in (mode for mode in MODES if any(line["mode"] == mode for line in lines)):
        some = [line for line in lines if line["mode"] == mode]
        for name in OURS:
            said.append(f"{_MODES[mode].capitalize()}, {name}: {_gains(some, name)}")
        said.append(
            f"{_MODES[mode].capitalize()}, calibration error: streamed "
            f"{_mean(some, 'streamed_ece')} %, revised {_mean(some, 'revised_ece')} %, even "
            f"overlap + Auto {_mean(some, 'auto_ece')} %; wrong among verdicts at least 95 % "
            f"sure: {_mean(some, 'streamed_sure_wrong')} %, {_mean(some, 'revised_sure_wrong')} %, "
            f"{_mean(some, 'auto_sure_wrong')} %."
        )
        said.append(f"{_MODES[mode].capitalize()}, streamed: {_over_loop(some)}")
    said += [f"Goal: {text}: {'yes' if met else 'no'}." for text, met in _goals(lines)]
    return said


def _gains(lines: Sequence[Line], name: str) -> str:
    gains = [line[f"{name}_gain"] for line in lines]
    below = [gain for gain in gains if gain < -LOSS]
    worst = min(lines, key=lambda line: line[f"{name}_gain"])
    return (
        f"{points(mean(gains))} points on average against the best rival; more than 1 point below "
        f"it in {len(below)} of {len(gains)} cells, at worst {points(worst[f'{name}_gain'])} "
        f"({worst['set']} at {worst['point']})."
    )


def _over_loop(lines: Sequence[Line]) -> str:
    """What is gained over the plain loop, by the number of labels, and where it is lost."""
    by_point = _by_point(lines)
    gains = ", ".join(
        f"{points(mean([line['over_loop'] for line in some]))} at {point}"
        for point, some in by_point.items()
    )
    below = sum(line["over_loop"] < -LOSS for line in lines)
    worst = min(lines, key=lambda line: line["over_loop"])
    return (
        f"points above the plain loop on average: {gains}; more than 1 point below it in {below} "
        f"of {len(lines)} cells, at worst {points(worst['over_loop'])} ({worst['set']} at "
        f"{worst['point']})."
    )


def _by_point(lines: Sequence[Line]) -> dict[str, list[Line]]:
    known = dict.fromkeys(line["point"] for line in lines)
    return {point: [line for line in lines if line["point"] == point] for point in known}


def _goals(lines: Sequence[Line]) -> list[tuple[str, bool]]:
    safe = all(line["streamed_gain"] >= -LOSS for line in lines)
    goals = [("never more than 1 point below the best rival", safe)]
    loops = [
        mean([line["over_loop"] for line in some])
        for mode in MODES
        for some in _by_point([line for line in lines if line["mode"] == mode]).values()
    ]
    text = "with no number of labels more than 1 point below the plain loop on average"
    goals.append((text, all(gain is None or gain >= -LOSS for gain in loops)))
    chosen = mean([line["streamed_gain"] for line in lines if line["mode"] == "chosen"])
    if chosen is not None:
        text = "at least 3 points above it on average where labelers can be chosen"
        goals.append((text, chosen >= GAIN))
    return goals


def _mean(lines: Sequence[Line], name: str) -> str:
    return percent(mean([line[name] for line in lines]))


def skipped(lines: Sequence[Line], labels: Sequence[float | str] = POINTS) -> str | None:
    """Which sets lack which of these points, in words; None if none does."""
    known = [point_name(point) for point in labels]
    lacking: dict[str, list[str]] = {}
    for name in dict.fromkeys(line["set"] for line in lines):
        here = {line["point"] for line in lines if line["set"] == name}
        if missing := [point for point in known if point not in here]:
            lacking[name] = missing
    if not lacking:
        return None
    listed = "; ".join(f"{name} at {' and '.join(which)}" for name, which in lacking.items())
    return f"Left out, since the set does not have enough labels: {listed}."


def sheets(lines: Sequence[Line], full: bool = False) -> list[Sheet]:
    """For each mode the differences to the best rival; with `full` also all numbers."""
    made = []
    for mode in (mode for mode in MODES if any(line["mode"] == mode for line in lines)):
        some = [line for line in lines if line["mode"] == mode]
        made.append(_differences(mode, some))
        if full:
            made.append(_numbers(mode, some))
    return made


def _differences(mode: str, lines: Sequence[Line]) -> Sheet:
    title = f"{_MODES[mode].capitalize()}: points above the best rival, streamed / revised"
    known = list(dict.fromkeys(line["point"] for line in lines))
    found = {(line["set"], line["point"]): line for line in lines}
    rows = []
    for name in dict.fromkeys(line["set"] for line in lines):
        row = [name]
        for point in known:
            line = found.get((name, point))
            row.append("-" if line is None else _pair(line))
        rows.append(row)
    at = _by_point(lines).values()
    averages = [
        f"{points(mean([x['streamed_gain'] for x in some]))} / "
        f"{points(mean([x['revised_gain'] for x in some]))}"
        for some in at
    ]
    return Sheet(title, ("labels per item", *known), [*rows, ["mean", *averages]])


def _pair(line: Line) -> str:
    return f"{points(line['streamed_gain'])} / {points(line['revised_gain'])}"


def _numbers(mode: str, lines: Sequence[Line]) -> Sheet:
    columns = (
        "set", "point", "labels", "streamed", "revised", "majority", "Dawid-Skene", "Auto",
        "plain loop", "2 + 1", "streamed - best", "ECE", "sure, wrong",
    )  # fmt: skip
    rows = [
        [
            line["set"],
            line["point"],
            f"{line['labels']:.2f}",
            *(_with_spread(line, name) for name in CONTESTANTS),
            f"{points(line['streamed_gain'])} ± {percent(line['streamed_gain_spread'])}",
            percent(line["streamed_ece"]),
            percent(line["streamed_sure_wrong"]),
        ]
        for line in lines
    ]
    return Sheet(f"{_MODES[mode].capitalize()}: right verdicts, %", columns, rows)


def _with_spread(line: Line, name: str) -> str:
    if line[name] is None:
        return ""
    return f"{percent(line[name])} ± {percent(line[f'{name}_spread'])}"
