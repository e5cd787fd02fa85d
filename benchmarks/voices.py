"""Confidence on the labels of a stream: what heeding it gains over ignoring it.

python -m benchmarks voices [--seeds 10 ...] [--classes K]

Six labelers whose mean chance of being right is drawn between 0.6 and 0.85, 1,500 items, ten a
slot, `Scheduler` with its usual policy and `LearnWhileServing`. Half of the answers of a labeler
are sure (a confidence between 0.8 and 1), half are not (0.5 to 0.8). In the world `told` sure
answers are right more often by 0.15 than the labeler's mean, the others less by as much; in
`inverted` it is the other way round; in `useless` confidence says nothing. Verdicts of the first
fifth of the items, in which nobody is known, are left out. Both ways see the same answers.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

from venire import Item, Label, Labeler, LearnWhileServing, Scheduler

ITEMS, LABELERS, EACH_SLOT = 1500, 6, 10


def answers(
    world: str, seed: int, classes: int
) -> tuple[list[int], dict[tuple[int, int], tuple[int, float]]]:
    """The classes of the items, and what each labeler would say of each, and how sure."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(classes, size=ITEMS), rng.uniform(0.6, 0.85, LABELERS)
    draw, said = np.random.default_rng([seed, 7]), {}
    for i in range(ITEMS):
        for m in range(LABELERS):
            sure = draw.random() < 0.5
            shift = 0.0 if world == "useless" else 0.15 if sure else -0.15
            wrong = draw.random() >= min(0.99, skill[m] + shift)
            other = int(draw.integers(classes - 1))
            stated = draw.uniform(0.8, 1.0) if sure else draw.uniform(0.5, 0.8)
            how = 1.5 - stated if world == "inverted" else stated
            said[i, m] = (int(truth[i]) + wrong * (1 + other)) % classes, float(how)
    return truth.tolist(), said


def serve(world: str, seed: int, classes: int, heed: bool) -> tuple[float, float, float]:
    """The share of right verdicts, their mean confidence, and the labels an item."""
    truth, said = answers(world, seed, classes)
    panel = [Labeler(f"{m}", capacity=5) for m in range(LABELERS)]
    s = Scheduler(panel, list(range(classes)), learning=LearnWhileServing(longest=20))
    left: dict[int, tuple[bool, float]] = {}
    arrived = labels = 0
    while arrived < ITEMS or s.outstanding:
        new = range(arrived, min(ITEMS, arrived + EACH_SLOT))
        s.arrive([Item(f"{i}", weight=15) for i in new])
        arrived += len(new)
        for a in s.assign():
            label, how = said[int(a.item), int(a.labeler)]
            s.observe(Label(a.item, a.labeler, label, how if heed else None))
            labels += 1
        for e in s.close():
            left[int(e.item)] = e.verdict.label == truth[int(e.item)], e.verdict.confidence
    known = [left[i] for i in left if i >= ITEMS // 5]
    right, sure = (float(np.mean(column)) for column in zip(*known, strict=True))
    return 100 * right, 100 * sure, labels / len(left)


def main(*words: str) -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser(prog="benchmarks voices")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10, 18)))
    parser.add_argument("--classes", type=int, default=2)
    asked = parser.parse_args(words)
    for world in ("told", "useless", "inverted"):
        pairs = [
            [serve(world, seed, asked.classes, heed) for heed in (False, True)]
            for seed in asked.seeds
        ]
        gains = [heeded[0] - ignored[0] for ignored, heeded in pairs]
        means = [
            [statistics.mean(column) for column in zip(*way, strict=True)]
            for way in zip(*pairs, strict=True)
        ]
        told = " | ".join(
            f"{way} {right:.1f} % right, {sure:.1f} % sure, {labels:.2f} labels"
            for way, (right, sure, labels) in zip(("ignored", "heeded"), means, strict=True)
        )
        spread = f"{min(gains):+.1f} to {max(gains):+.1f}, sd {statistics.stdev(gains):.1f}"
        print(f"{world}: {told} | gain {statistics.mean(gains):+.1f} ({spread})", flush=True)
