"""A share of a batch's budget for an expert: python -m benchmarks expert --data DIR [--sets a,b].

Three labels an item at price 1, of which a tenth of the money goes to an expert, who is right, at
10 and 20 times the price of a label. Beside it the same money on labels alone, on the expert for
items drawn at random, which teach in every round, and on the expert for the items that `venire ask`
names, in lists of five. All items are scored; what the expert saw is right.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gold import Ints, Labels, known_only
from benchmarks.real_data import SETS, load
from venire.batch import label_recorded
from venire.estimators import Auto
from venire.estimators.base import right_shares
from venire.estimators.questions import questions
from venire.labels import LabelTable
from venire.model import Budget
from venire.tools.arrays import Floats

PRICES, SHARE, LABELS = (10, 20), 0.1, 3
#: Sets of at most this number of items are run: others take too long.
MOST = 1_500


class Job:
    """A set, its budget, and what an expert would say."""

    def __init__(self, table: LabelTable, truth: Ints, seed: int) -> None:
        self.table, self.truth, self.seed = table, truth, seed
        self.money = float(LABELS * len(table.items))
        able = np.flatnonzero(truth < len(table.classes)).tolist()
        self.expert = {table.items[i]: table.classes[truth[i]] for i in able}

    def questions(self, price: float) -> int:
        return min(int(SHARE * self.money / price), len(self.expert))

    def right(self, posteriors: Floats, table: LabelTable, gold: Any = ()) -> float:
        """The share of right verdicts, in per cent; an item that nobody saw has none."""
        known = np.array([item in gold for item in table.items])
        shares = right_shares(posteriors, self.truth)
        shares[np.diff(table.start) == 0] = 0.0
        shares[known] = 1.0
        return 100 * float(shares.mean())


def labels_alone(job: Job, price: float) -> float:
    done = label_recorded(job.table, Budget(money=job.money), seed=job.seed)
    return job.right(done.posteriors, done.table)


def at_random(job: Job, price: float) -> float:
    rng, n = np.random.default_rng([job.seed, 9]), job.questions(price)
    names = list(job.expert)
    gold = {names[i]: job.expert[names[i]] for i in rng.permutation(len(names))[:n].tolist()}
    left = Budget(money=job.money - n * price)
    done = label_recorded(job.table, left, seed=job.seed, gold=gold)
    return job.right(done.posteriors, done.table, gold)


def asked(job: Job, price: float) -> float:
    n = job.questions(price)
    done = label_recorded(job.table, Budget(money=job.money - n * price), seed=job.seed)
    gold: dict[Any, Any] = {}
    while len(gold) < n:
        some = questions(done.table, 15, gold or None, seed=job.seed).asked
        known = [one.item for one in some if one.item in job.expert][: min(5, n - len(gold))]
        if not known:
            break
        gold |= {item: job.expert[item] for item in known}
    fitted = Auto(seed=job.seed).fit(done.table, gold, gold.keys())
    return job.right(fitted.posteriors_, done.table, gold)


def least_sure(job: Job, price: float) -> float:
    told: dict[str, Any] = {"expert": job.expert, "expert_price": price, "expert_share": SHARE}
    done = label_recorded(job.table, Budget(money=job.money), seed=job.seed, **told)
    assert done.expert is not None
    return job.right(done.posteriors, done.table, done.expert.answers)


WAYS: dict[str, Callable[[Job, float], float]] = {
    "random": at_random,
    "asked": asked,
    "least sure": least_sure,
}


def main(arguments: Sequence[str] = ()) -> None:
    """A row for each set: right verdicts of labels alone, then the difference of each way."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks expert")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--sets", default=",".join(SETS))
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    heads = [f"{way}, {price}" for price in PRICES for way in WAYS]
    print(f"| set | questions | labels alone | {' | '.join(heads)} |\n{'|-' * (len(heads) + 3)}|")
    rows = []
    for name in options.sets.split(","):
        if not (options.data / name).is_dir():
            continue
        set_ = known_only(Labels(name, *load(options.data / name), (), []))
        if len(set_.truth) > MOST:
            continue
        jobs = [Job(set_.table, set_.truth, seed) for seed in range(options.seeds)]
        alone = [labels_alone(job, 1) for job in jobs]
        gains = [
            float(np.mean([way(job, price) for job in jobs])) - float(np.mean(alone))
            for price in PRICES
            for way in WAYS.values()
        ]
        rows.append([float(np.mean(alone)), *gains])
        number = " and ".join(str(jobs[0].questions(price)) for price in PRICES)
        _print(name, number, rows[-1])
    means = np.mean(rows, axis=0).tolist()
    _print("**mean**", "", means)


def _print(name: str, number: str, row: Sequence[float]) -> None:
    gains = " | ".join(f"{gain:+.1f}" for gain in row[1:])
    print(f"| {name} | {number} | {row[0]:.1f} | {gains} |", flush=True)
