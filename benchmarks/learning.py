"""Learning while serving against Algorithm 2 and its best T_L: regret by horizon, over seeds.

    python -m benchmarks learning [regret luck drift bird] [--seeds N] [--slots T] [--data DIR]

Regret is normalised as in the paper, against Algorithm 1 with the true competences.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from venire import Algorithm2, Greedy, Learning, LearnWhileServing, Poisson, World, simulate
from venire.errors import FetchError
from venire_research.common.label_sets import Sets

Floats = NDArray[np.float64]

HORIZONS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
LENGTHS = (2, 3, 5, 8, 12, 20, 30, 45, 70, 100, 150, 250, 400)
PAPER: Floats = 0.9 - 0.005 * np.arange(1, 31, dtype=np.float64)

WAYS = {
    "while-serving": LearnWhileServing(),
    "while-serving:one-coin": LearnWhileServing("one-coin"),
}


def regrets(learning: Learning, slots: int, genies: Sequence[float]) -> Floats:
    """Of the seeds 0, 1, ... on the synthetic set, given what the genie earned on each."""
    found = []
    for seed, best in enumerate(genies):
        run = simulate(World.synthetic(seed), Greedy(), learning, slots=slots)
        scale = float(run.rows["weight"].sum()) / slots
        found.append((best - run.utility) / scale)
    return np.array(found)


def told(values: Floats) -> str:
    return f"{values.mean():.2f} ({values.min():.2f} to {values.max():.2f})"


def by_horizon(seeds: int, most: int) -> None:
    """Mean (least to most) over the seeds."""
    print(f"| T | {' | '.join(WAYS)} | Algorithm 2, best T_L | T_L |\n|-|-|-|-|-|")
    for slots in (t for t in HORIZONS if t <= most):
        genies = [
            simulate(World.synthetic(seed), Greedy(), slots=slots).utility for seed in range(seeds)
        ]
        own = [told(regrets(how, slots, genies)) for how in WAYS.values()]
        rivals = {
            length: regrets(Algorithm2(length), slots, genies)
            for length in LENGTHS
            if length <= slots // 4
        }
        best = min(rivals, key=lambda length: rivals[length].mean())
        print(f"| {slots:,} | {' | '.join(own)} | {told(rivals[best])} | {best} |", flush=True)


def luck(seeds: int) -> None:
    """The best of six labelers is wrong all the time at first; and a panel of which most guess."""
    good = (0.95, 0.75, 0.72, 0.7, 0.68, 0.66)
    ways = {
        f"{model}, explore={share}": LearnWhileServing(model, explore=share)
        for model in ("one-coin", "dawid-skene")
        for share in (0.0, 0.02, 0.05, 0.1)
    }
    print("\n| ratio to the genie | wrong for 25 slots | 60 slots | 200 slots | 20 of 30 guess |")
    print("|-|-|-|-|-|")
    for name, how in ways.items():
        cells = []
        for length in (25, 60, 200):
            worlds = [
                World.synthetic(s, (0.01, *good[1:]), Poisson(2), changes=[(length, good)])
                for s in range(seeds)
            ]
            cells.append(told_ratio(worlds, how, 4_000))
        guess = [World.synthetic(s, [*PAPER[:10], *[0.5] * 20]) for s in range(seeds)]
        print(f"| {name} | {' | '.join(cells)} | {told_ratio(guess, how, 4_000)} |", flush=True)


def told_ratio(worlds: Sequence[World], how: Learning, slots: int) -> str:
    ratios = [simulate(world, Greedy(), how, slots=slots).ratio or 0.0 for world in worlds]
    return f"{np.mean(ratios):.4f} ({min(ratios):.4f})"


def drift(seeds: int) -> None:
    """Competences change in slot 2,000 of 5,000."""
    one, ten, most = PAPER.copy(), PAPER.copy(), PAPER.copy()
    one[0], ten[:10], most[:20] = 0.6, 0.6, 0.55
    weak = PAPER.copy()
    weak[:10] = 0.55
    kinds = {
        "nobody changes": (PAPER, PAPER),
        "one from 0.9 to 0.6": (PAPER, one),
        "ten to 0.6": (PAPER, ten),
        "twenty of thirty to 0.55": (PAPER, most),
        "ten from 0.55 up": (weak, PAPER),
    }
    ways: dict[str, Learning] = {
        "alarms (default)": LearnWhileServing(),
        "labels count for ever": LearnWhileServing(drift=None),
        "half_life=1000": LearnWhileServing(half_life=1000, drift=None),
        "half_life=300": LearnWhileServing(half_life=300, drift=None),
        "Algorithm 2, T_L=45": Algorithm2(45),
    }
    print(f"\n| regret | {' | '.join(kinds)} |\n{'|-' * (len(kinds) + 1)}|")
    for name, how in ways.items():
        cells = []
        for before, after in kinds.values():
            worlds = (
                World.synthetic(s, before, changes=[(2_000, after.tolist())]) for s in range(seeds)
            )
            found = [simulate(w, Greedy(), how, slots=5_000).normalised_regret for w in worlds]
            cells.append(told(np.array(found)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def bird(seeds: int, data: Path | None) -> None:
    """The Bird set, replayed: how many verdicts are right."""
    try:
        found = Sets(data).load("bluebird")
    except FetchError as error:
        print(f"\n{error}")
        return
    ways: dict[str, Learning | None] = {"Algorithm 1, genie": None, **WAYS}
    print("\n| Bird, verdicts right | T = 2,000 | T = 10,000 | labels an image |\n|-|-|-|-|")
    for name, how in ways.items():
        cells, labels = [], 0.0
        for slots in (2_000, 10_000):
            runs = [
                simulate(
                    World.recorded(found.table, found.truth, found.competences, s),
                    Greedy(),
                    how,
                    slots,
                )
                for s in range(seeds)
            ]
            right = 100 * np.array([run.accuracy for run in runs])
            labels = float(np.mean([run.labels_per_item for run in runs]))
            cells.append(f"{right.mean():.1f} % ({right.min():.1f} to {right.max():.1f})")
        print(f"| {name} | {' | '.join(cells)} | {labels:.2f} |", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks learning")
    parser.add_argument("parts", nargs="*", default=["regret", "luck", "drift", "bird"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--slots", type=int, default=HORIZONS[-1], help="the longest horizon")
    parser.add_argument("--data", type=Path, default=None)
    given = parser.parse_args(arguments)
    known: dict[str, Callable[[], None]] = {
        "regret": lambda: by_horizon(given.seeds, given.slots),
        "luck": lambda: luck(given.seeds),
        "drift": lambda: drift(given.seeds),
        "bird": lambda: bird(given.seeds, given.data),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in given.parts:
            known[part]()
