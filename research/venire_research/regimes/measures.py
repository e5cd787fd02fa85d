"""What is measured on one stream: plain functions that return JSON, the points of a sweep.

The key of a point covers the suite, the regime, the seed, the slots, the policy, the way of
learning, the digest of replayed labels and a digest of the package's sources; for a policy or a
regime of your own, also of its file. If any of these changes, the point is computed again.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from venire.scheduling import Greedy
from venire.scheduling.base import Learning, Policy
from venire.scheduling.by_name import KNOWN
from venire.simulation import Run, simulate
from venire_research.common import fingerprint
from venire_research.regimes.suite import SUITE, Regime
from venire_research.sweeps.sweep import Point

__all__ = ["Stream", "certified", "certify", "serve", "served"]

_SOURCES: Final = (
    *fingerprint.SOURCES,
    "venire/offline",
    *(f"venire_research/regimes/{name}.py" for name in ("measures", "replayed", "synthetic")),
)

T = TypeVar("T")


@dataclass(frozen=True)
class Stream:
    """One regime with one seed, over a number of slots."""

    regime: Regime
    seed: int
    slots: int
    data: Path | None = None

    def run(self, policy: Policy, learning: Learning | None) -> Run:
        """Simulate; a policy or a way of learning that draws at random gets the seed."""
        world = self.regime.world(self.seed, self.slots, self.data)
        taught = None if learning is None else _seeded(copy.deepcopy(learning), self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few labels cause warnings; the result is counted
            return simulate(world, _seeded(policy, self.seed), taught, self.slots)

    def key(self) -> dict[str, Any]:
        """What identifies the stream."""
        return {
            "suite": SUITE,
            "regime": self.regime.name,
            "world": _origin(self.regime.make),
            "labels": self.regime.digest(self.data),
            "seed": self.seed,
            "slots": self.slots,
        }


def served(stream: Stream, policy: Policy, learning: Learning | None) -> Point:
    """The point at which the policy is run on the stream."""
    key = stream.key() | {
        "policy": policy.describe(),
        "class": _origin(type(policy)),
        "learning": KNOWN if learning is None else learning.describe(),
        "learner": None if learning is None else [_origin(type(learning)), repr(learning)],
    }
    inputs = {"stream": stream, "policy": policy, "learning": learning}
    return Point(f"{__name__}:serve", {"key": key}, fingerprint.version_of(_SOURCES), inputs)


def certified(stream: Stream, learning: Learning | None) -> Point:
    """The point that computes the certificate of the stream.

    It is the same for every way of learning that has no phase of its own.
    """
    phased = learning if learning is not None and learning.counts_from() else None
    key = stream.key() | {"from": phased.counts_from() if phased else 0}
    inputs = {"stream": stream, "learning": phased}
    return Point(f"{__name__}:certify", {"key": key}, fingerprint.version_of(_SOURCES), inputs)


def serve(
    key: Mapping[str, Any], stream: Stream, policy: Policy, learning: Learning | None
) -> dict[str, Any]:
    """Run the policy, and count. `key` identifies the result."""
    run = stream.run(policy, learning)
    counts, rows = run.ledger.counts, run.rows
    wait = (rows["exit"] - rows["arrival"])[counts]
    judged = counts & (run.items.truth >= 0)
    return {
        "items": int(counts.sum()),
        "labels": len(run.touches),
        "weight": float(rows["weight"][counts].sum()),
        "judged_weight": float(rows["weight"][judged].sum()),
        "utility": run.utility,
        "realised_utility": run.realised_utility,
        "true_utility": run.true_utility,
        "accuracy": run.accuracy,
        "labels_per_item": run.labels_per_item,
        "mean_response": run.mean_response,
        "p95_response": float(np.percentile(wait, 95)) if len(wait) else 0.0,
    }


def certify(key: Mapping[str, Any], stream: Stream, learning: Learning | None) -> dict[str, Any]:
    """An upper bound on what any schedule could have earned, and how far it may be off."""
    found = stream.run(Greedy(), learning).certificate()
    return {
        "certificate": float(found.bound),
        "certificate_gap": float(found.gap) if np.isfinite(found.gap) else None,
        "certificate_method": str(found.method),
    }


def _seeded(settings: T, seed: int) -> T:
    """The same policy or way of learning with the seed, if it has one."""
    if is_dataclass(settings) and any(f.name == "seed" and f.init for f in fields(settings)):
        return replace(settings, seed=seed)  # type: ignore[type-var,unused-ignore]
    return settings


@lru_cache(maxsize=256)
def _origin(thing: Any) -> str:
    """Where a class or a function is from; with a digest of its file if not of this package."""
    name = f"{thing.__module__}:{thing.__qualname__}"
    if name.startswith("venire."):
        return name
    try:
        source = Path(inspect.getfile(thing)).read_bytes()
    except (OSError, TypeError):  # typed into a prompt
        return name
    return f"{name}/{hashlib.sha256(source).hexdigest()[:16]}"
