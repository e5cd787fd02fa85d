"""Recorded panels of LLM judges at equal cost: python -m benchmarks judge-panels --data DIR.

What the same money buys on `mtbench_judges`, `llmjudge2024_binary` and `llmbar`, with prices by
model as in docs/panel.md: one judge asked about everything (the best by the truth, which nobody
knows beforehand, and one drawn at random), the majority of judges drawn at random for each item,
the majority of the cheapest, and `venire label`. The budgets are what the best judge costs on
everything, and shares of what all judges cost. Each seed is another sample of the items.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.panel_drops import price, sample
from venire import MajorityVote
from venire.batch import label_recorded
from venire.estimators import Auto
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth
from venire.labels.table import keep_labels
from venire.model import Budget

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SETS: Final = ("mtbench_judges", "llmjudge2024_binary", "llmbar")
#: Shares of what all judges cost on all items.
SHARES: Final = (0.1, 0.25, 0.5)
#: Draws of judges whose mean is reported, of ways that draw.
DRAWS: Final = 5


def right(codes: Ints, truth: Ints) -> float:
    """The share of right verdicts, in %; -1 is no verdict, and wrong."""
    return float(100 * (codes == truth).mean())


def vote(table: LabelTable, keep: NDArray[np.bool_], method: Any, seed: int) -> Ints:
    """The verdicts of a method on some of the labels; -1 for an item without any."""
    some = keep_labels(table, keep)
    method.seed = seed
    found = np.argmax(method.fit(some).posteriors_, axis=1)
    if isinstance(method, MajorityVote):  # ties by its seeded draw
        place = {name: k for k, name in enumerate(some.classes)}
        found = np.array([place.get(name, -1) for name in method.labels_.values()])
    return np.where(np.diff(some.start) > 0, found, -1)


def at_random(table: LabelTable, paid: Floats, budget: float, seed: int) -> NDArray[np.bool_]:
    """Judges drawn for each item: the first of every item, then the second, within the budget."""
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(table.said.size), table.item))
    place = np.empty(table.said.size)
    place[order] = np.arange(table.said.size) - table.start[table.item[order]]
    order = np.lexsort((rng.random(table.said.size), place))
    keep = np.zeros(table.said.size, np.bool_)
    keep[order[np.cumsum(paid[order]) <= budget + 1e-9]] = True
    return keep


def whole_judges(table: LabelTable, paid: Floats, budget: float, order: Ints) -> NDArray[np.bool_]:
    """Judges in this order, each on everything, as long as the money lasts."""
    cost = np.bincount(table.labeler, paid, minlength=len(table.labelers))
    chosen, left = np.zeros(len(table.labelers), np.bool_), budget
    for m in order.tolist():
        if cost[m] <= left + 1e-9:
            chosen[m] = True
            left -= cost[m]
    return chosen[table.labeler]


def one(table: LabelTable, truth: Ints, seed: int) -> list[dict[str, Any]]:
    """One sample: every way at every budget."""
    each = np.array([price(str(name)) for name in table.labelers])
    paid = each[table.labeler]
    M, n = len(table.labelers), len(table.items)
    hits = np.bincount(table.labeler[table.said == truth[table.item]], minlength=M)
    cost = np.bincount(table.labeler, paid, minlength=M)
    best = int(np.argmax(hits))
    rows = [{"way": "best judge, by an oracle", "share": 0.0, "spent": cost[best] / n,
             "right": 100 * hits[best] / n}]  # fmt: skip
    everything = np.ones(table.said.size, np.bool_)
    for way, method in (("majority of all", MajorityVote()), ("Auto on all", Auto())):
        rows.append({"way": way, "share": 1.0, "spent": paid.sum() / n,
                     "right": right(vote(table, everything, method, seed), truth)})  # fmt: skip
    budgets = {0.0: float(cost[best]), **{share: share * float(paid.sum()) for share in SHARES}}
    for share, budget in budgets.items():
        rows += at_budget(table, truth, seed, share, budget, each)
    return rows


def at_budget(
    table: LabelTable, truth: Ints, seed: int, share: float, budget: float, each: Floats
) -> list[dict[str, Any]]:
    """Every way to spend one budget; a share of 0 is the price of the best judge."""
    paid, M, n = each[table.labeler], len(table.labelers), len(table.items)
    rng, found = np.random.default_rng(seed), dict[str, list[tuple[float, float]]]()

    def note(way: str, keep: NDArray[np.bool_], method: Any) -> None:
        score = right(vote(table, keep, method, seed), truth)
        found.setdefault(way, []).append((score, float(paid[keep].sum())))

    cost = np.bincount(table.labeler, paid, minlength=M)
    able = np.flatnonzero(cost <= budget + 1e-9)
    hits = np.bincount(table.labeler[table.said == truth[table.item]], minlength=M)
    if able.size:
        top = int(able[np.argmax(hits[able])])
        found["best judge that it pays, by an oracle"] = [(100 * hits[top] / n, cost[top])]
        found["a judge at random that it pays"] = [
            (float(np.mean(100 * hits[able] / n)), float(np.mean(cost[able])))
        ]
    cheapest = whole_judges(table, paid, budget, np.argsort(cost, kind="stable"))
    note("majority of the cheapest judges", cheapest, MajorityVote())
    for draw in range(DRAWS):
        keep = at_random(table, paid, budget, 1000 * seed + draw)
        note("majority of k random", keep, MajorityVote())
        note("Auto on k random", keep, Auto())
        order = rng.permutation(M)
        note(
            "majority of k random judges", whole_judges(table, paid, budget, order), MajorityVote()
        )
    named = dict(zip(table.labelers, each.tolist(), strict=True))
    done = label_recorded(table, Budget(money=budget), prices=named, seed=seed)
    found["venire"] = [(right(np.where(done.counts > 0, done.codes, -1), truth), done.spent)]
    return [
        {"way": way, "share": share, "spent": float(np.mean([s for _, s in scores])) / n,
         "right": float(np.mean([r for r, _ in scores]))}
        for way, scores in found.items()
    ]  # fmt: skip


def measure(data: Path, seeds: int, names: Sequence[str], out: Path) -> None:
    """Run what is not in the file yet."""
    there = {(row["set"], row["seed"]) for row in read(out)}
    for name in names:
        table = as_table(data / name / "labels.csv", repeats="first")
        truth = as_truth(data / name / "truth.csv", table)
        for seed in range(seeds):
            if (name, seed) in there:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = one(*sample(table, truth, seed), seed)
            with open(out, "a", encoding="utf-8") as file:
                for row in found:
                    file.write(json.dumps({"set": name, "seed": seed, **row}) + "\n")


def read(out: Path) -> list[dict[str, Any]]:
    """The rows so far."""
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """For each set a table: a row for each way, a column for each budget."""
    lines: list[str] = []
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        budgets = [0.0, *SHARES, 1.0]
        heads = ["the best judge's price", *(f"{100 * s:.0f} % of all" for s in SHARES), "all"]
        seeds = len({row["seed"] for row in mine})
        lines += [f"\n{name}, {seeds} seeds", "", "| right, % | " + " | ".join(heads) + " |"]
        lines.append("|-" + "|-:" * len(heads) + "|")
        whole, best = (_spent(mine, way) for way in ("majority of all", "best judge, by an oracle"))
        money = [best if b == 0 else b * whole for b in budgets]
        lines.append("| *money an item* | " + " | ".join(f"*{x:.1f}*" for x in money) + " |")
        for way in dict.fromkeys(row["way"] for row in mine):
            cells = [_cell([r["right"] for r in mine if r["way"] == way and r["share"] == b])
                     for b in budgets]  # fmt: skip
            lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _spent(rows: Sequence[dict[str, Any]], way: str) -> float:
    return float(np.mean([row["spent"] for row in rows if row["way"] == way]))


def _cell(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks judge-panels")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--out", type=Path, default=Path(".data/judge-panels.jsonl"))
    given = parser.parse_args(arguments)
    missing = [name for name in given.sets if not (given.data / name).is_dir()]
    if missing:
        sys.exit(f"{', '.join(missing)} are not in {given.data}: see docs/real-data.md")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if kept := len(read(given.out)):
        note = f"{kept} results are in {given.out}: remove it to measure them again"
        print(note, file=sys.stderr)
    measure(given.data, given.seeds, given.sets, given.out)
    print(markdown(read(given.out)))
