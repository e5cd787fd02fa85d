"""A little truth in a stream: python -m benchmarks gold-streams [SET ...] --data DIR.

Each set is served as a stream in which every item comes once and labelers come as they did, with
three labels an item. Gold is drawn at random and told when its item leaves, as an audit is: it
teaches the stream from then on. Scored on the items that are not gold, as they left (*streamed*),
and as all labels and gold decide them at the end (*revised*).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.gold import Score, mean_of, scored
from benchmarks.real_data import load
from venire.estimators import Auto
from venire_research.common.scores import aggregated, streamed
from venire_research.equal_labels.buying import buy
from venire_research.equal_labels.replay import Replay

SETS: Final = (
    "bluebird", "temp", "dtype_athlete", "rte", "mtbench_judges", "fact_eval", "llmbar", "web",
)  # fmt: skip
SIZES: Final = (0, 20, 50, 100)
LABELS: Final = 3.0


def measured(data: Path, name: str, size: int, seed: int) -> tuple[Score, Score]:
    """Streamed and revised, of one draw."""
    stream = Replay.of(*load(data / name), seed)
    truth, classes = stream.truth, len(stream.table.classes)
    able = np.flatnonzero((truth >= 0) & (truth < classes))
    drawn = np.random.default_rng([seed, size]).choice(able, size, replace=False).tolist()
    gold = {i: int(truth[i]) for i in drawn}
    bought = buy(stream, "come", LABELS, gold=gold)
    other = np.setdiff1d(np.flatnonzero(truth >= 0), drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few labels of each labeler
        items = {bought.table.items[i]: k for i, k in gold.items()}
        names = {item: bought.table.classes[k] for item, k in items.items()}
        if gold:
            fitted = Auto().fit(bought.table, gold=names)
            told = fitted.posteriors_
        else:
            told = aggregated(bought.table, Auto())
    left = streamed(bought.verdict, bought.confidence, classes)
    return scored(left, truth, other), scored(told, truth, other)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks gold-streams")
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args(arguments)
    print("| right / ECE / sure / of these right, % | " + " | ".join(map(str, SIZES)) + " |")
    print("|-" * (len(SIZES) + 1) + "|", flush=True)
    for name in given.sets:
        found = {size: [measured(given.data, name, size, seed) for seed in range(given.draws)]
                 for size in SIZES if _fits(given.data, name, size)}  # fmt: skip
        for k, how in enumerate(("streamed", "revised")):
            cells = [
                " / ".join(f"{x:.1f}" for x in mean_of([pair[k] for pair in found[size]]))
                if size in found
                else ""
                for size in SIZES
            ]
            print(f"| {name}, {how} | {' | '.join(cells)} |", flush=True)


def _fits(data: Path, name: str, size: int) -> bool:
    """Whether at least as many items of known truth are left to score."""
    return size <= int((load(data / name)[1] >= 0).sum()) // 2
