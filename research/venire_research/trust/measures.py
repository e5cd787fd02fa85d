"""What is measured in one cell: one world, policy, way of learning and seed.

`measure("spammers-6", Realised(), LearnWhileServing(), seed=0)` is a row.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np

from venire.estimators import Auto, DawidSkene, MajorityVote
from venire.estimators.streaming.drift import PER
from venire.labels import LabelTable
from venire.scheduling.base import Learning, Policy
from venire.scheduling.estimates import USUAL
from venire.simulation import Run, simulate
from venire_research.common import fingerprint
from venire_research.common.scores import aggregated, score, streamed
from venire_research.sweeps.sweep import Point
from venire_research.trust.worlds import SLOTS, world_named

__all__ = ["SUITE", "cell", "labels_of", "measure"]

#: The name of this suite. A change in any world makes another suite.
SUITE: Final = "trust-2"

_SOURCES: Final = (
    *fingerprint.SOURCES,
    "venire_research/common/scores.py",
    *(f"venire_research/trust/{name}.py" for name in ("measures", "posts", "worlds")),
)

Row: TypeAlias = dict[str, Any]


def cell(world: str, policy: Policy, learning: Learning, seed: int, slots: int = SLOTS) -> Point:
    """The cell as a point of a sweep; its key covers everything that it depends on."""
    key = {
        "suite": SUITE, "world": world, "seed": seed, "slots": slots,
        "policy": repr(policy), "learning": repr(learning),
    }  # fmt: skip
    inputs = {"policy": policy, "learning": learning}
    return Point(f"{__name__}:measure_cell", {"key": key}, fingerprint.version_of(_SOURCES), inputs)


def measure_cell(key: Mapping[str, Any], policy: Policy, learning: Learning) -> Row:
    """`measure` of the cell of this key."""
    return measure(key["world"], policy, learning, key["seed"], key["slots"])


def measure(
    world: str, policy: Policy, learning: Learning, seed: int = 0, slots: int = SLOTS
) -> Row:
    """Streamed verdicts, and the verdicts of other methods on the same labels.

    Items that arrive in a learning phase do not count; their labels do, for the methods.

    >>> from venire import FixedOverlap, LearnWhileServing
    >>> row = measure("panel-3", FixedOverlap(3), LearnWhileServing(), slots=60)
    >>> 0.5 < row["streamed"] < 1, 0.5 < row["majority"] < 1
    (True, True)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few labels cause warnings; the result is scored
        made = world_named(world).make(seed, slots)
        run = simulate(made, policy, copy.deepcopy(learning), slots)
    table, truth = labels_of(run), run.items.truth.astype(np.int64)
    truth = np.where(run.ledger.counts, truth, -1)
    said = streamed(run.rows["verdict"], run.rows["confidence"], len(table.classes))
    ours = score(said, truth)
    row = {
        "suite": SUITE if slots == SLOTS else f"{SUITE}-quick",
        "world": world, "policy": policy.describe(), "learning": learning.describe(),
        "seed": seed, "slots": slots, "items": int((truth >= 0).sum()),
        "labels": len(table.said) / max(1, len(table.items)), "streamed": ours.pop("accuracy"),
    }  # fmt: skip
    for method in (MajorityVote(), Auto(), DawidSkene()):
        row[method.name] = score(aggregated(table, method), truth)["accuracy"]
    batch = score(aggregated(table, Auto()), truth)
    confidence = float(run.rows["confidence"][truth >= 0].mean())
    row |= {"confidence": confidence} | ours | {"auto_ece": batch["ece"]}
    return row | _false_alarms(run, len(table.said))


def _false_alarms(run: Run, labels: int) -> Row:
    """The number of drift alarms, all of them false, and how many the level allows.

    `alarms_allowed` follows from the level: the false-alarm probability in 1,000 labels of a
    labeler.
    """
    found = run.learner.alarms() if run.learner else None
    level = getattr(run.learning, "drift", USUAL.drift) or 0.0
    return {
        "labelers": len(run.world.panel),
        "alarms": 0 if found is None else int(found.sum()),
        "alarms_allowed": 0.0 if found is None else level * labels / PER,
    }


def labels_of(run: Run) -> LabelTable:
    """The labels that were bought, by number."""
    touches = run.touches[run.touches["said"] >= 0]
    names = range(len(run.rows)), range(len(run.world.panel)), range(len(run.world.classes))
    return LabelTable.from_codes(touches["row"], touches["labeler"], touches["said"], *names)
