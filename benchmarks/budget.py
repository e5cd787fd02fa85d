"""Accuracy against spend on recorded label sets: python -m benchmarks budget --data ../shared/data.

Three ways to spend the same: an even overlap of labelers drawn at random, the plain loop of
`plain_batch`, and `venire label`. Verdicts of the first two are `Auto`'s, as those of the third.
With prices the better labelers are the dearer ones; then the budget is what the labels would cost
at the mean price. Every run is a line of a file, so that an interrupted measurement goes on.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.plain_batch import buy_plainly
from benchmarks.real_data import SETS, load
from venire.batch import label_recorded
from venire.estimators import Auto
from venire.estimators.metrics import error_rate
from venire.labels import LabelTable
from venire.model import Budget

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: The sets on which constants were chosen; the others are the ones that count.
TUNED: Final = ("bluebird", "dog", "rte", "temp")

KINDS: Final = {
    "crowds, two classes": (
        "bluebird", "fact_eval", "medrelex_cause", "product", "rte", "sentiment",
        "snow_joy", "temp", "trec2010", "zencrowd_in",
    ),
    "crowds, several classes": (
        "adult2", "dog", "dtype_athlete", "face", "labelme", "ms", "reuters", "web",
    ),
    "judges": ("llmbar", "llmjudge2024_binary", "mtbench_judges"),
}  # fmt: skip

#: Labels an item.
POINTS: Final = (1.5, 3.0, 4.5)

MOST_ITEMS: Final = 2000


def thinned(table: LabelTable, truth: Ints, most: int) -> tuple[LabelTable, Ints]:
    """At most so many items, those of known truth first, drawn at random."""
    n = len(table.items)
    rng = np.random.default_rng(0)
    known, other = (rng.permutation(np.flatnonzero(part)) for part in (truth >= 0, truth < 0))
    keep = np.sort(np.concatenate([known, other])[:most])
    place = np.full(n, -1)
    place[keep] = np.arange(keep.size)
    item = place[table.item]
    there = item >= 0
    labelers, labeler = np.unique(table.labeler[there], return_inverse=True)
    names = range(keep.size), range(labelers.size), range(len(table.classes))
    codes = item[there], labeler, table.said[there]
    return LabelTable.from_codes(*codes, *names), truth[keep]


def prices_of(table: LabelTable, truth: Ints) -> Floats:
    """From 1 for the worst labeler to 5 for the best, by their share of right labels."""
    M, known = len(table.labelers), truth[table.item] >= 0
    right = (table.said == truth[table.item]) & known
    given = np.bincount(table.labeler[known], minlength=M)
    hits = np.bincount(table.labeler[right], minlength=M)
    mean = hits.sum() / max(1, given.sum())
    skill = (hits + 2 * mean) / (given + 2)
    return np.asarray(1 + 4 * np.argsort(np.argsort(skill, kind="stable")) / max(1, M - 1))


def evenly(table: LabelTable, seed: int) -> Ints:
    """All labels, the first of every item before the second of any, in random order."""
    rng = np.random.default_rng(seed)
    item = table.item
    order = np.lexsort((rng.random(item.size), item))
    place = np.arange(item.size) - table.start[item[order]]
    return np.asarray(order[np.argsort(place + 0.999 * rng.random(len(table.items))[item[order]])])


def verdicts(table: LabelTable, entries: Ints) -> Floats:
    """The posteriors of `Auto` on these labels."""
    keep = np.zeros(table.said.size, np.bool_)
    keep[entries] = True
    from venire.labels.table import keep_labels

    return Auto().fit(keep_labels(table, keep)).posteriors_


def right(posteriors: Floats, truth: Ints) -> float:
    known = truth >= 0
    return 1 - error_rate(posteriors[known], truth[known])


def jobs(seed: int) -> Iterator[tuple[str, float, bool, int]]:
    """Way, labels an item, whether there are prices, seed."""
    yield from (("even", b, False, seed) for b in POINTS)
    yield from (("venire", b, False, seed) for b in POINTS)
    yield ("plain", 3.0, False, seed)
    yield from (("even", b, True, seed) for b in (3.0, 4.5))
    yield ("venire", 3.0, True, seed)


def run(
    table: LabelTable, truth: Ints, way: str, each: float, priced: bool, seed: int
) -> dict[str, Any]:
    """One measurement."""
    n = len(table.items)
    price = prices_of(table, truth) if priced else np.ones(len(table.labelers))
    budget = each * n * float(price[table.labeler].mean())
    if way == "venire":
        limit = Budget(money=budget) if priced else Budget(labels=round(each * n))
        named = dict(enumerate(price.tolist()))
        done = label_recorded(table, limit, prices=named, seed=seed)
        sure = done.confidence >= 0.95
        known = truth >= 0
        hit = float((done.codes == truth)[sure & known].mean()) if (sure & known).any() else None
        return {
            "right": right(done.posteriors, truth),
            "expected": done.expected_accuracy,
            "sure": float(sure.mean()),
            "sure_right": hit,
            "spent": done.spent,
            "labels": done.asked,
        }
    if way == "plain":
        entries = buy_plainly(table, round(each * n), seed)
    else:
        entries = evenly(table, seed)
        entries = entries[np.cumsum(price[table.labeler[entries]]) <= budget + 1e-9]
    spent = float(price[table.labeler[entries]].sum())
    q = verdicts(table, entries)
    return {"right": right(q, truth), "spent": spent, "labels": int(entries.size)}


def measure(
    data: Path, seeds: int, most: int, out: Path, names: Sequence[str], ways: Sequence[str]
) -> None:
    """Run what is not in the file yet."""
    there = {tuple(row["job"]) for row in read(out)}
    for seed, name in ((seed, name) for seed in range(seeds) for name in names):
        if not (data / name).is_dir():
            continue
        table, truth = thinned(*load(data / name), most)
        per_item = table.said.size / len(table.items)
        for way, each, priced, _ in jobs(seed):
            job = (name, way, each, priced, seed)
            if job in there or each > per_item or way not in ways:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = run(table, truth, way, each, priced, seed)
            with open(out, "a", encoding="utf-8") as file:
                row = {"job": job, "per_item": per_item, **found}
                file.write(json.dumps(row) + "\n")


def read(out: Path) -> list[dict[str, Any]]:
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def mean_right(rows: Sequence[dict[str, Any]]) -> dict[tuple[str, str, float, bool], float]:
    """The mean over the seeds: of set, way, labels an item and prices."""
    found: dict[tuple[str, str, float, bool], list[float]] = {}
    for row in rows:
        name, way, each, priced, _ = row["job"]
        found.setdefault((name, way, each, priced), []).append(100 * row["right"])
    return {key: float(np.mean(values)) for key, values in found.items()}


COLUMNS: Final[tuple[tuple[str, str, float, bool], ...]] = (
    ("even, 3", "even", 3.0, False),
    ("even, 4.5", "even", 4.5, False),
    ("plain loop, 3", "plain", 3.0, False),
    ("venire, 3", "venire", 3.0, False),
    ("prices: even, 3", "even", 3.0, True),
    ("prices: even, 4.5", "even", 4.5, True),
    ("prices: venire, 3", "venire", 3.0, True),
)


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A row for each set, and means over those with five labels an item and more."""
    found = mean_right(rows)
    rich = {row["job"][0] for row in rows if row["per_item"] >= 5}
    names = sorted({key[0] for key in found})
    lines = ["| right, % | " + " | ".join(head for head, *_ in COLUMNS) + " |"]
    lines.append("|-" + "|-:" * len(COLUMNS) + "|")
    for name in names:
        cells = [_cell(found.get((name, way, b, priced))) for _, way, b, priced in COLUMNS]
        mark = " (tuned)" if name in TUNED else ""
        lines.append(f"| {name}{mark} | {' | '.join(cells)} |")
    judged = sorted(rich - set(TUNED))
    for title, some in (
        (f"mean of the {len(rich)} with 5 labels an item and more", sorted(rich)),
        (f"mean of the {len(judged)} of them that were not tuned on", judged),
        ("the same without llmbar", [name for name in judged if name != "llmbar"]),
    ):
        means = [
            np.mean([found.get((s, way, b, priced), np.nan) for s in some])
            for _, way, b, priced in COLUMNS
        ]
        lines.append(f"| {title} | {' | '.join(_cell(float(x)) for x in means)} |")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.1f}"


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Right verdicts against labels an item, a panel for each kind of set."""
    from matplotlib import pyplot as plt

    from venire_research.common.drawing import COLOURS, look

    found = mean_right(rows)
    have = {key[0] for key in found}
    kinds = {kind: [s for s in some if s in have] for kind, some in KINDS.items()}
    kinds = {kind: some for kind, some in kinds.items() if some}
    with look():
        figure, axes = plt.subplots(1, len(kinds), figsize=(3.0 * len(kinds), 3.1))
        for axis, (kind, some) in zip(np.atleast_1d(axes), kinds.items(), strict=True):
            for way, colour, style in (("even", "orange", "--"), ("venire", "blue", "-")):
                for name in some:
                    points = [(b, found[name, way, b, False]) for b in POINTS
                              if (name, way, b, False) in found]  # fmt: skip
                    axis.plot(*zip(*points, strict=True), style, color=COLOURS[colour], alpha=0.25)
                whole = [s for s in some if all((s, way, b, False) in found for b in POINTS)]
                mean = [np.mean([found[s, way, b, False] for s in whole]) for b in POINTS]
                title = "even overlap + Auto" if way == "even" else "venire label"
                axis.plot(POINTS, mean, style, color=COLOURS[colour], linewidth=2.4, label=title)
            axis.set_title(f"{kind} ({len(some)} sets)")
            axis.set_xlabel("labels an item")
        np.atleast_1d(axes)[0].set_ylabel("right verdicts, %")
        handles, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="upper center", ncols=2, frameon=False)
        figure.tight_layout(rect=(0, 0, 1, 0.93))
        figure.savefig(path, dpi=150, metadata={"Software": None})


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks budget")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--items", type=int, default=MOST_ITEMS, help="at most so many of a set")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--ways", nargs="*", default=["even", "plain", "venire"])
    parser.add_argument("--out", type=Path, default=Path(".data/budget.jsonl"))
    parser.add_argument("--picture", type=Path, help="draw the curves into this file")
    given = parser.parse_args(arguments)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if kept := len(read(given.out)):
        note = f"{kept} results are in {given.out}: remove it to measure them again"
        print(note, file=sys.stderr)
    measure(given.data, given.seeds, given.items, given.out, given.sets, given.ways)
    rows = read(given.out)
    if not rows:
        sys.exit("none of the sets is in that folder; each is a folder with labels.csv, truth.csv")
    print(markdown(rows))
    if given.picture:
        draw(rows, given.picture)
