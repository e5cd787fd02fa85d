"""Errors that do not cost the same: a moderation stream, with and without costs in the scheduler.

One post in eleven is toxic; a missed one costs 10, a false alarm 1. Three ways, on the same posts
and panels: the most probable class; a threshold on the posterior afterwards, the simplest rival,
with the labels of the first; and `Scheduler(costs=...)`, which also sends labels to where they are
worth most. What is lost is weight times cost, and the delay in slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from venire import Item, Label, LearnWhileServing, Realised, Scheduler

CLASSES = ("ok", "toxic")
COSTS = {("toxic", "ok"): 10.0, ("ok", "toxic"): 1.0}
PANEL, TOXIC, WEIGHT, RATE, SLOTS, SKIP = 12, 1 / 11, 20.0, 3, 400, 100
SEEDS = 5

#: The labelers' skills on each class, from and to, and the share of the posts with gold.
WORLDS = {
    "skills 0.75 to 0.95": (0.75, 0.95, 0.0),
    "skills 0.6 to 0.9": (0.6, 0.9, 0.0),
    "the same, gold of 10 %": (0.6, 0.9, 0.1),
}


class Outcome(NamedTuple):
    """Means over the posts of a run: cost of errors, misses, false alarms, labels, delay, loss."""

    cost: float
    missed: float
    alarms: float
    labels: float
    delay: float
    lost: float


def main(argv: Sequence[str] = ()) -> None:
    """Print the table; --quick with two seeds."""
    seeds = range(2 if "--quick" in argv else SEEDS)
    head = "panel | verdicts | cost per post | missed % | false alarms % | labels | delay | lost"
    print(f"| {head} |\n|-|-|-|-|-|-|-|-|")
    for world, how in WORLDS.items():
        runs = [(_run(*how, seed, None), _run(*how, seed, COSTS)) for seed in seeds]
        ways = {
            "most probable": [_outcome(plain, False) for plain, _ in runs],
            "threshold afterwards": [_outcome(plain, True) for plain, _ in runs],
            "costs in the scheduler": [_outcome(charged, False) for _, charged in runs],
        }
        for name, found in ways.items():
            mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / len(found) ** 0.5
            cells = [f"{mean[0]:.3f} ± {error[0]:.3f}", f"{100 * mean[1]:.1f}"]
            cells += [f"{100 * mean[2]:.1f}", f"{mean[3]:.2f}", f"{mean[4]:.2f}"]
            print(f"| {world} | {name} | {' | '.join(cells)} | {mean[5]:.2f} |", flush=True)


def _run(low: float, high: float, gold: float, seed: int, costs: Any) -> list[tuple[int, Any]]:
    """The truth and the exit of each post without gold."""
    rng = np.random.default_rng(seed)
    skills = rng.uniform(low, high, (PANEL, 2))  # on each class
    names = [f"m{k}" for k in range(PANEL)]
    s = Scheduler(names, CLASSES, Realised(), LearnWhileServing(), costs=costs)
    truth: dict[str, int] = {}
    left = []
    for slot in range(SLOTS):
        posts = [f"{slot}-{k}" for k in range(rng.poisson(RATE))]
        truth |= {post: int(rng.random() < TOXIC) for post in posts}
        s.arrive([Item(post, WEIGHT) for post in posts])
        for a in s.assign():
            who, own = int(a.labeler[1:]), np.random.default_rng(_code(seed, a.item, a.labeler))
            right = own.random() < skills[who, truth[a.item]]
            said = truth[a.item] if right else 1 - truth[a.item]
            s.observe(Label(a.item, a.labeler, CLASSES[said]))
        for e in s.close():
            if np.random.default_rng(_code(seed, e.item, "m99")).random() < gold:
                s.gold(e.item, CLASSES[truth[e.item]])
            elif e.arrival >= SKIP:
                left.append((truth[e.item], e))
    return left


def _code(seed: int, item: str, labeler: str) -> list[int]:
    """What a labeler says of a post is the same in every run."""
    slot, k = item.split("-")
    return [seed, int(slot), int(k), int(labeler[1:])]


def _outcome(exits: list[tuple[int, Any]], threshold: bool) -> Outcome:
    rows = []
    for truth, e in exits:
        said = 0 if e.verdict.label is None else CLASSES.index(e.verdict.label)
        if threshold:
            toxic = e.verdict.confidence if said == 1 else 1 - e.verdict.confidence
            said = int(10 * toxic > 1 - toxic)
        missed, alarm = truth == 1 and said == 0, truth == 0 and said == 1
        cost, delay = 10.0 * missed + alarm, e.slot - e.arrival
        rows.append((cost, missed, alarm, e.labels, delay, WEIGHT * cost + delay))
    return Outcome(*np.mean(rows, axis=0).tolist())
