"""What is measured at one point of a sweep: plain functions of JSON that return JSON.

Results are keyed by the version of the package and a digest of the sources they depend on: after a
change of a formula or a constant they are computed again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from venire import __version__
from venire.estimators import OneCoin
from venire.model import Item, Labeler
from venire.paper.accuracy import evidence
from venire.scheduling import Algorithm2, Greedy
from venire.simulation import Run, World, simulate
from venire.simulation.run import keep_ledger
from venire_research.common import fingerprint
from venire_research.common.label_sets import share_right
from venire_research.reproduction.exact import accuracy_by_size
from venire_research.reproduction.literal import LiteralGreedy
from venire_research.reproduction.sources import RHO, world_of
from venire_research.sweeps.sweep import Point

__all__ = ["break_run", "counterexample", "exact_curve", "point", "stream_run"]


def point(name: str, settings: dict[str, Any], inputs: dict[str, Any] | None = None) -> Point:
    """The point that calls this function of this module."""
    version = f"{__version__}/{fingerprint.sources_digest()}"
    return Point(f"{__name__}:{name}", settings, version, inputs or {})


def stream_run(
    stream: dict[str, Any],
    seed: int,
    horizons: Sequence[int],
    length: int = 0,
    c: float = 1.0,
    sign_rule: Any = "fixed",
    data: str | None = None,
) -> dict[str, Any]:
    """Algorithm 1 (length 0, the genie) or Algorithm 2 (length T_L) on a stream.

    One run over the longest horizon gives all shorter ones: the stream of a longer horizon
    begins with that of a shorter one, and what an item has earned by a slot is settled then.
    """
    world, known = world_of(stream, seed, data)
    estimator = OneCoin(prior=None, sign_rule=sign_rule)
    learning = Algorithm2(length, seed, estimator, RHO) if length else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short phase may end in the mirror image, with a warning
        run = simulate(world, Greedy(), learning, max(horizons), c)
    learned = getattr(estimator, "competences_", None)
    return at_horizons(run, horizons) | {
        "norm": None if learned is None else float(np.abs(learned - known).max()),
        "mean_error": None if learned is None else float(np.abs(learned - known).mean()),
        "labels_per_item": run.labels_per_item,
        "mean_delay": run.mean_delay,
        "mean_response": run.mean_response,
    }


def at_horizons(run: Run, horizons: Sequence[int]) -> dict[str, list[Any]]:
    """What a run had earned after each horizon, as if it had ended there.

    `right` and `majority` are shares of right verdicts by the run's own votes, and by counting
    the same labels equally, among the items that count and had left.
    """
    own, counted = _verdicts(run)
    judged = run.ledger.counts & (run.items.truth >= 0)
    found: dict[str, list[Any]] = {
        name: [] for name in ("utility", "true_utility", "right", "majority", "weight", "items")
    }
    for horizon in horizons:
        rows = run.rows[: np.searchsorted(run.rows["arrival"], horizon)]
        gone = judged[: len(rows)] & (rows["exit"] < horizon)
        found["utility"].append(_utility_by(run, rows, horizon))
        found["true_utility"].append(float(run.ledger.true[: len(rows)][gone].sum()))
        found["right"].append(_share(own[: len(rows)][gone]))
        found["majority"].append(_share(counted[: len(rows)][gone]))
        found["weight"].append(float(rows["weight"].sum()))
        found["items"].append(len(rows))
    return found


def _utility_by(run: Run, rows: NDArray[Any], horizon: int) -> float:
    """The paper's utility at a horizon: what the labels of the slots before it earned."""
    touches = run.touches[: np.searchsorted(run.touches["slot"], horizon)]
    start = run.learning.counts_from() if run.learning else 0
    truth, known = run.items.truth[: len(rows)], run.world.competences
    classes = len(run.world.classes)
    ledger = keep_ledger(touches, rows, truth, known, classes, run.c, start)
    return float(ledger.utility.sum())


def _verdicts(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each item, how right its verdict is, and how right a plain count of its labels."""
    k, n = len(run.world.classes), len(run.rows)
    seat = run.touches["row"].astype(np.int64) * k + run.touches["said"]
    votes = np.bincount(seat, minlength=n * k).reshape(n, k)
    own = (run.rows["verdict"] == run.items.truth).astype(np.float64)
    return own, share_right(votes, run.items.truth)


def _share(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def counterexample(labelers: int) -> dict[str, float]:
    """Erratum 4: many weak labelers, all items at once; Algorithm 1 and a plain schedule.

    M labelers of evidence 3/M each, 2M items of weight 0.33 M: a second label never pays for
    a slot of its own.
    """
    label, weight, items = 3.0 / labelers, 0.33 * labelers, 2 * labelers
    p = float(brentq(lambda x: float(evidence(x)) - label, 0.5, 0.999))
    panel = [Labeler(f"m{m}", p) for m in range(labelers)]
    arrivals = [Item(f"i{i}", weight) for i in range(items)]
    run = simulate(World.trace(arrivals, [0] * items, panel), Greedy(), slots=8)
    return {"greedy": run.utility, "plain": plain_schedule(labelers, items, label, weight)}


def plain_schedule(labelers: int, items: int, label: float, weight: float) -> float:
    """Each slot is devoted to a few new items, as many as earn the most.

    >>> round(plain_schedule(300, 600, 0.01, 99.0))
    7417
    """
    total, slot = 0.0, 0
    while items > 0:
        few = np.arange(1, min(items, labelers) + 1)
        each, extra = np.divmod(labelers, few)
        less = -weight * np.expm1(-label * each) - slot
        more = -weight * np.expm1(-label * (each + 1)) - slot
        value = (few - extra) * less + extra * more
        best = int(np.argmax(value))
        if value[best] <= 0:
            break
        total, items, slot = total + float(value[best]), items - int(few[best]), slot + 1
    return total


def break_run(share: float, seed: int, slots: int) -> dict[str, float]:
    """Erratum 3: Algorithm 1 with and without `Break`, with restricted eligibility.

    The synthetic stream; each labeler is in each of 60 groups with probability `share`, and each
    item is for one group.
    """
    world = World.synthetic(seed)
    stream = world.items(slots)
    rng = np.random.default_rng([seed, 4])
    names = np.array([labeler.id for labeler in world.panel])
    masks = rng.random((60, len(names))) < share
    groups = [frozenset(names[mask].tolist()) for mask in masks]
    allowed = [groups[g] for g in rng.integers(60, size=len(stream))]
    ids = [str(i) for i in range(len(stream))]
    own = World.columns(ids, stream.arrival, stream.weight, world.panel, allowed, seed=seed)
    return {
        "going_on": simulate(own, Greedy(), slots=slots).utility,
        "break": simulate(own, LiteralGreedy(), slots=slots).utility,
    }


def exact_curve(competences: Sequence[float]) -> dict[str, list[float]]:
    """For the best 1, 2, ... labelers: evidence, and the exact accuracy of their vote."""
    held, right = accuracy_by_size(competences)
    return {"evidence": held.tolist(), "accuracy": right.tolist()}
