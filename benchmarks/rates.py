"""Rates by judges and a little gold: coverage and width: python -m benchmarks rates.

--data names the folder of real label sets, --draws the draws of gold for each row.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from benchmarks.real_data import load
from venire.audits.audit import DOUBT, allotted, cells_of, halvings
from venire.audits.intervals import missed_ever, sequence_interval
from venire.audits.rates import Rate, Sample, precision_of, recall_of, win_rate
from venire.estimators import Auto

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SETS = ("civilcomments", "mtbench_judges", "llmjudge2024_binary")
GOLD, LEVEL, SEED, SIZE = (20, 50, 100, 200), 0.95, 27, 2_000


class World(NamedTuple):
    """The true value of each item, the value of its verdict, and what judges expect."""

    truth: Floats
    said: Floats
    score: Floats


def real(folder: Path) -> World:
    """Verdicts of `Auto` on a real set; the class is the second one."""
    table, codes = load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q = Auto().fit(table).posteriors_[codes >= 0]
    codes = codes[codes >= 0]
    said = q.argmax(axis=1)
    return World((codes == 1).astype(np.float64), (said == 1).astype(np.float64), q[:, 1])


def made(share: float, found: float, alarms: float, sure: str) -> World:
    """Judges who find a share of the class and raise some false alarms; how sure they say to be."""
    rng = np.random.default_rng(SEED)
    truth = (rng.random(SIZE) < share).astype(np.float64)
    chance = np.where(truth == 1, found, alarms)
    said = (rng.random(SIZE) < chance).astype(np.float64)
    right = said == truth
    doubt = {
        "honest": np.where(right, rng.beta(1, 8, SIZE), rng.beta(3, 3, SIZE)) / 2,
        "random": rng.random(SIZE) / 2,
        "liars": np.where(right, rng.beta(3, 3, SIZE), rng.beta(1, 8, SIZE)) / 2,
    }[sure]
    return World(truth, said, np.where(said == 1, 1 - doubt, doubt))


MADE = {
    "good, half": (0.5, 0.9, 0.1, "honest"),
    "good, a tenth": (0.1, 0.85, 0.05, "honest"),
    "nearly perfect": (0.3, 0.98, 0.01, "honest"),
    "useless": (0.4, 0.3, 0.3, "random"),
    "useless, rare class": (0.03, 0.3, 0.3, "random"),
    "inverted": (0.4, 0.1, 0.9, "honest"),
    "wrong when sure": (0.4, 0.7, 0.3, "liars"),
    "blind to a rare class": (0.03, 0.05, 0.05, "liars"),
}


def normal_ppi(world: World, place: NDArray[np.int64]) -> tuple[float, float]:
    """PPI++ with the normal interval, for these items: the plain rival."""
    y, f, n, size = world.truth[place], world.score[place], len(place), len(world.truth)
    both = np.cov(y, f)
    slope = both[0, 1] / both[1, 1] if both[1, 1] > 0 else 0.0
    middle = slope * world.score.mean() + (y - slope * f).mean()
    error = np.sqrt((y - slope * f).var(ddof=1) / n * (1 - n / size))
    half = norm.ppf((1 + LEVEL) / 2) * error
    return middle - half, middle + half


def ends(rate: Rate) -> tuple[float, float]:
    return rate.low, rate.high


def active(world: World, cells: Ints, n: int, rng: np.random.Generator) -> Rate:
    """The rate by as many labels, more of them on doubtful items."""
    counts = allotted(cells, world.score, n)
    parts = [
        rng.choice(np.flatnonzero(cells == k), count, replace=False)
        for k, count in enumerate(counts.tolist())
    ]
    place = np.concatenate(parts)
    weight = (np.bincount(cells) / np.maximum(counts, 1))[cells[place]]
    return Sample(world.said, world.score, place, world.truth[place], weight, cells).rate(LEVEL)


def measured(world: World, n: int, draws: int) -> list[str]:
    """Coverage of each, then mean widths; the last are what the labels are worth."""
    rng, target = np.random.default_rng(SEED + n), float(world.truth.mean())
    size, rows = len(world.truth), []
    cells = cells_of(world.said, world.score, halvings(n))
    for _ in range(draws):
        place = rng.permutation(size)[:n]
        rate = Sample(world.said, world.score, place, world.truth[place], None, cells).rate(LEVEL)
        chosen = active(world, cells, n, rng)
        every = [ends(rate), rate.gold_only[1:], normal_ppi(world, place), ends(chosen)]
        held = [low - 1e-9 <= target <= high + 1e-9 for low, high in every]
        rows.append([*held, *(high - low for low, high in every), rate.worth, chosen.worth])
    mean = np.mean(rows, axis=0)
    shown = [f"{100 * x:.1f}" for x in mean[:8]]
    return [*shown, *(f"{np.median([row[k] for row in rows]):.0f}" for k in (8, 9))]


def saved(world: World, times: int) -> tuple[float, float]:
    """What active drawing saves of the variance, in per cent: at best, by the truth, and ours."""
    cells = cells_of(world.said, world.score, times)
    share = np.bincount(cells) / len(cells)
    rate = np.bincount(cells, world.truth) / np.bincount(cells)
    spread = np.sqrt(rate * (1 - rate))
    told = DOUBT + (1 - 2 * DOUBT) * world.score
    drawn = np.bincount(cells, np.sqrt(told * (1 - told)))
    drawn = drawn / drawn.sum()
    even, best = (share * spread**2).sum(), (share * spread).sum() ** 2
    ours = (share**2 * spread**2 / drawn).sum()
    return 100 * float(1 - best / even), 100 * float(1 - ours / even)


def at_all_times(world: World, n: int, draws: int) -> list[str]:
    """How often the truth is ever outside, in per cent; mean widths, with judges and without."""
    rng, target = np.random.default_rng(SEED), float(world.truth.mean())
    size, missed, widths = len(world.truth), [], []
    for draw in range(draws):
        place = rng.permutation(size)[:n]
        given = world.score, place, world.truth[place]
        missed.append(missed_ever(*given, LEVEL, target))
        if draw < 50:
            both = [sequence_interval(*given, LEVEL, alone=alone) for alone in (False, True)]
            widths.append([one.width for one in both])
    return [f"{100 * np.mean(missed):.1f}", *(f"{100 * x:.1f}" for x in np.mean(widths, axis=0))]


def others(draws: int) -> Iterator[list[str]]:
    """Precision, recall, and win rates with ties: coverage and widths, with judges and without."""
    world = made(0.1, 0.85, 0.05, "honest")
    labels = np.array(["ok", "toxic"])
    truth, said = (dict(enumerate(labels[x.astype(int)].tolist())) for x in world[:2])
    score = dict(enumerate(world.score.tolist()))
    hits = float((world.truth * world.said).sum())
    targets: dict[str, tuple[float, Callable[[dict[int, str]], Rate]]] = {
        "precision": (hits / world.said.sum(), lambda g: precision_of(said, g, "toxic", score)),
        "recall": (hits / world.truth.sum(), lambda g: recall_of(said, g, "toxic", score)),
    }
    for name, (target, rate) in targets.items():
        for n in (50, 200):
            yield [name, str(n), *_both(draws, target, rate, truth, n)]
    rng = np.random.default_rng(SEED)
    names = np.array(["second", "tie", "first"])
    true = rng.choice(3, SIZE, p=(0.3, 0.25, 0.45))
    judged = np.where(rng.random(SIZE) < 0.75, true, rng.integers(0, 3, SIZE))
    truth, told = (dict(enumerate(names[x].tolist())) for x in (true, judged))
    wins = ("first", "second", "tie")
    for n in (50, 200):
        target = float(true.mean() / 2)
        cells = _both(draws, target, lambda g: win_rate(told, g, wins), truth, n)
        yield ["win rate with ties", str(n), *cells]


def _both(
    draws: int,
    target: float,
    make: Callable[[dict[int, str]], Rate],
    truth: dict[int, str],
    n: int,
) -> list[str]:
    rng, rows = np.random.default_rng(SEED + n), []
    for _ in range(draws):
        rate = make({i: truth[i] for i in rng.permutation(SIZE)[:n].tolist()})
        every = [ends(rate), rate.gold_only[1:]]
        held = [low - 1e-9 <= target <= high + 1e-9 for low, high in every]
        rows.append([*held, *(high - low for low, high in every)])
    return [f"{100 * x:.1f}" for x in np.mean(rows, axis=0)]


def main(arguments: Sequence[str] = ()) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks rates")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--draws", type=int, default=1_000)
    options = parser.parse_args(arguments)
    worlds = {name: made(*how) for name, how in MADE.items()}
    there = [name for name in SETS if (options.data / name).is_dir()]
    worlds = {name: real(options.data / name) for name in there} | worlds
    names = "judges | gold alone | normal PPI++ | active"
    print(f"held, %: {names}; widths: {names}; worth: judges | active\n")
    print(f"| world | gold | {names} | {names} | judges | active |")
    print("|-" * 12 + "|")
    for name, world in worlds.items():
        for n in GOLD:
            if 2 * n <= len(world.truth):
                cells = measured(world, n, options.draws)
                print(f"| {name} | {n} | {' | '.join(cells)} |", flush=True)
    print("\n| rate | gold | held | gold alone | width | gold alone |\n" + "|-" * 6 + "|")
    for row in others(options.draws):
        print(f"| {' | '.join(row)} |", flush=True)
    print("\n| active draws save | quarters: at best | ours | sixteenths: at best | ours |")
    print("|-" * 5 + "|")
    for name, world in worlds.items():
        cells = [f"{x:.1f}" for times in (2, 4) for x in saved(world, times)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\n| at all times | gold | ever missed | width | gold alone |\n" + "|-" * 5 + "|")
    for name, world in worlds.items():
        n = min(200, len(world.truth) // 2)
        print(f"| {name} | {n} | {' | '.join(at_all_times(world, n, options.draws))} |", flush=True)
