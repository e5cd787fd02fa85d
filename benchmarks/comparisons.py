"""Bradley-Terry with labeler quality: python -m benchmarks comparisons.

Kendall's tau between scores and truth, seeds 100 to 119, against the share of wins and against the
plain model (everybody taken for honest). The priors were chosen on seeds 0 to 9.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.estimators import BradleyTerry
from venire.labels.sources.truth import Comparisons

#: The first seed.
FIRST = 100

FIVE = ("coin", "coin", "coin", "left", "left")

KINDS: dict[str, dict[str, Any]] = {
    "all honest": {},
    "5 of 20 spammers": {"odd": FIVE},
    "8 of 20 spammers": {"odd": (*FIVE, "left", "coin", "coin")},
    "3 of 20 say the contrary": {"odd": ("contrary",) * 3},
    "5 spammers, 2 contrary": {"odd": (*FIVE, "contrary", "contrary")},
    "5 spammers, a fifth ties": {"odd": FIVE, "ties": 0.2},
    "5 spammers, some things seldom met": {"odd": FIVE, "seldom": 1.0},
    "5 spammers, 15 comparisons each": {"odd": FIVE, "each": 15},
    "100 labelers, 10 each, 25 spammers": {"labelers": 100, "each": 10, "odd": FIVE * 5},
    "5 spammers, alike things": {"odd": FIVE, "spread": 0.7},
    "5 spammers, unlike things": {"odd": FIVE, "spread": 3.0},
}


def world(
    rng: np.random.Generator, things: int = 40, labelers: int = 20, each: int = 40,
    odd: Sequence[str] = (), ties: float = 0.0, seldom: float = 0.0, spread: float = 1.5,
) -> tuple[Comparisons, NDArray[np.float64]]:  # fmt: skip
    """Comparisons of things drawn at random, and their true scores."""
    score = rng.normal(0, spread, things)
    met = np.exp(rng.normal(0, seldom, things))
    kind = dict(zip(rng.choice(labelers, len(odd), replace=False).tolist(), odd, strict=True))
    rows = []
    for m in range(labelers):
        for _ in range(each):
            i, j = rng.choice(things, 2, replace=False, p=met / met.sum())
            ahead = 1 / (1 + np.exp(score[j] - score[i]))
            says = {"coin": 0.5, "left": 1.0, "contrary": 1 - ahead}.get(kind.get(m, ""), ahead)
            tie = m not in kind and rng.random() < ties
            rows.append((i, j, m, 0.5 if tie else float(rng.random() < says)))
    left, right, labeler = np.array([row[:3] for row in rows], np.int64).T
    won = np.array([row[3] for row in rows])
    return Comparisons(range(things), range(labelers), left, right, labeler, won), score


def measure(data: Comparisons, score: NDArray[np.float64]) -> tuple[float, ...]:
    """Tau of win shares, of the plain model and of ours; the share of 90 % intervals that hold."""
    from scipy.stats import kendalltau

    met, won = data.met_and_won()
    plain, ours = (BradleyTerry(prior=p).fit(data) for p in (None, BradleyTerry.prior))
    found = [np.array([fit.scores_[i] for i in range(len(score))]) for fit in (plain, ours)]
    error = np.array([ours.standard_errors_[i] for i in range(len(score))])
    held = np.abs(found[1] - score + score.mean()) < 1.645 * error
    taus = [kendalltau(x, score).statistic for x in (won / np.maximum(met, 1), *found)]
    return (*taus, float(held.mean()))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks comparisons")
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args(arguments).seeds
    warnings.simplefilter("ignore")
    print("| Kendall's tau | share of wins | all honest | BradleyTerry | coverage of intervals |")
    print("|-|-|-|-|-|")
    for kind, how in KINDS.items():
        rngs = map(np.random.default_rng, range(FIRST, FIRST + seeds))
        rows = [measure(*world(rng, **how)) for rng in rngs]
        wins, plain, ours, held = np.mean(rows, axis=0)
        print(
            f"| {kind} | {wins:.3f} | {plain:.3f} | {ours:.3f} | {100 * held:.0f} % |", flush=True
        )
