"""Errors that do not cost the same: a moderation stream, with and without costs in the scheduler.

A missed toxic post costs 10, a false alarm 1. Three ways, on the same posts
and panels: the most probable class; a threshold on the posterior afterwards, the simplest rival,
with the labels of the first; and `Scheduler(costs=...)`, which also sends labels to where they are
worth most. What is lost is weight times cost, and the delay in slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from venire import Item, Label, Labeler, LearnWhileServing, Realised, Scheduler

CLASSES = ("ok", "toxic")
COSTS = {("toxic", "ok"): 10.0, ("ok", "toxic"): 1.0}
PANEL, WEIGHT, SLOTS, SKIP = 12, 20.0, 400, 100
SEEDS = 5

#: Posts a slot; the labelers' skills, from and to; the share of toxic posts; are skills known?
WORLDS = {
    "known skills 0.6 to 0.9, half toxic, 1 a slot": (1, 0.6, 0.9, 1 / 2, True),
    "the same, 2 a slot": (2, 0.6, 0.9, 1 / 2, True),
    "the same, 3 a slot": (3, 0.6, 0.9, 1 / 2, True),
    "learned skills, half toxic, 2 a slot": (2, 0.6, 0.9, 1 / 2, False),
    "learned skills 0.75 to 0.95, 1 in 11 toxic, 3 a slot": (3, 0.75, 0.95, 1 / 11, False),
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


def _run(
    rate: int, low: float, high: float, toxic: float, known: bool, seed: int, costs: Any
) -> list[tuple[int, Any]]:
    """The truth and the exit of each post."""
    rng = np.random.default_rng(seed)
    skills = rng.uniform(low, high, (PANEL, 2))  # on each class, the same where they are known
    if known:
        skills[:, 1] = skills[:, 0]
    panel = [Labeler(f"m{k}", float(skills[k, 0]) if known else None) for k in range(PANEL)]
    learning = None if known else LearnWhileServing()
    s = Scheduler(panel, CLASSES, Realised(), learning, costs=costs)
    truth: dict[str, int] = {}
    left = []
    for slot in range(SLOTS):
        posts = [f"{slot}-{k}" for k in range(rng.poisson(rate))]
        truth |= {post: int(rng.random() < toxic) for post in posts}
        s.arrive([Item(post, WEIGHT) for post in posts])
        for a in s.assign():
            who, own = int(a.labeler[1:]), np.random.default_rng(_code(seed, a.item, a.labeler))
            right = own.random() < skills[who, truth[a.item]]
            said = truth[a.item] if right else 1 - truth[a.item]
            s.observe(Label(a.item, a.labeler, CLASSES[said]))
        left += [(truth[e.item], e) for e in s.close() if e.arrival >= SKIP]
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
