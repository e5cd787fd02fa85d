"""The guarantee of streams: python -m benchmarks guarantee-streams.

Streams of exits in which labelers are as bad as they can be, looked at after each exit: how often
more than the allowed share of the marked verdicts is wrong at any time, and how many are marked.
Beside it the simplest rivals: to mark whatever is as sure as it should be; and the largest
threshold whose Clopper-Pearson bound is low enough, looked at all the time.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

import numpy as np

from tests.unit.audits.test_exits import WORLDS, broken, world

SEED: Final = 27
RIGHT: Final = 0.9
AUDITED: Final = 0.1


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks guarantee-streams")
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--exits", type=int, default=6000)
    given = parser.parse_args(arguments)
    rivals = ("ours", "Clopper-Pearson", "as sure as it should be")
    print("| verdicts | " + " | ".join(f"{name}: broken | marked" for name in rivals) + " |")
    print("|-" * 7 + "|")
    for number, kind in enumerate(WORLDS):
        rng = np.random.default_rng([SEED, number])
        runs = []
        for _ in range(given.streams):
            sure, wrong = world(kind, given.exits, rng)
            drawn = rng.random(given.exits) < AUDITED
            runs.append(np.stack(broken(sure, wrong, drawn, RIGHT, AUDITED), axis=1).ravel())
        cells = 100 * np.mean(runs, axis=0)
        print(f"| {kind} | " + " | ".join(f"{x:.1f}" for x in cells) + " |", flush=True)
