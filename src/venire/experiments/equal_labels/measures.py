"""What is measured in one cell: one label set, mode, number of labels and seed.

    from venire.experiments.equal_labels import measure

    for row in measure("rte", "chosen", 3, seed=0, data="shared/data"):
        print(row["contestant"], row["accuracy"])

All items of known truth count. A verdict that is a tie counts as its share, and so does no
verdict at all: 1 / K, which is what a class drawn at random earns on average.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire import __version__
from venire.aggregation import Auto, MajorityVote
from venire.competence import DawidSkene
from venire.competence.base import BaseEstimator
from venire.experiments.equal_labels.buying import Bought, Mode, buy
from venire.experiments.equal_labels.replay import Ints, Replay, digest_of, replay
from venire.experiments.equal_labels.rivals import even_overlap, two_plus_one
from venire.experiments.reproduction import fingerprint
from venire.labels import LabelTable
from venire.scheduling.base import Learning, Policy
from venire.scoring import expected_calibration_error, right_shares
from venire.simulation.sweep import Point

__all__ = ["OURS", "RULE", "SURE", "SUITE", "cell", "measure", "measure_stream"]

#: The name of this suite: whoever changes a stream, a rival or a measure gives it a new one.
SUITE: Final = "equal-labels-1"

#: The point at which the number of labels is that of Toloka's rule.
RULE: Final = "2+1"

#: Our two contestants: verdicts as items left, and the labels bought aggregated once more.
OURS: Final = ("streamed", "revised")

#: From this confidence on a verdict is called sure.
SURE: Final = 0.95

_SOURCES: Final = (
    *fingerprint.SOURCES,
    "aggregation",
    *(f"experiments/equal_labels/{name}.py" for name in ("buying", "measures", "replay", "rivals")),
)

Row: TypeAlias = dict[str, Any]
Floats = NDArray[np.float64]


def cell(
    name: str,
    mode: Mode,
    labels: float | str,
    seed: int,
    data: Path | None,
    policy: Policy | None = None,
    learning: Learning | None = None,
) -> Point:
    """The cell as a point of a sweep; it is kept under all that it depends on."""
    key = {
        "suite": SUITE, "set": name, "files": digest_of(name, data), "mode": mode,
        "labels": labels, "seed": seed, "policy": repr(policy), "learning": repr(learning),
    }  # fmt: skip
    inputs = {"data": data, "policy": policy, "learning": learning}
    return Point(f"{__name__}:measure_cell", {"key": key}, _version(), inputs)


def measure_cell(
    key: Mapping[str, Any], data: Path | None, policy: Policy | None, learning: Learning | None
) -> list[Row]:
    """`measure` of the cell of this key."""
    which = key["set"], key["mode"], key["labels"], key["seed"]
    return measure(*which, data=data, policy=policy, learning=learning)


def measure(
    name: str,
    mode: Mode,
    labels: float | str,
    seed: int = 0,
    data: str | Path | None = None,
    policy: Policy | None = None,
    learning: Learning | None = None,
) -> list[Row]:
    """Every contestant on one label set, at so many labels an item (`RULE`: as the rule needs)."""
    stream = replay(name, None if data is None else Path(data), seed)
    found = measure_stream(stream, mode, labels, seed, policy, learning)
    which = {"suite": SUITE, "set": name, "mode": mode, "point": str(labels), "seed": seed}
    return [which | row for row in found]


def measure_stream(
    stream: Replay,
    mode: Mode,
    labels: float | str,
    seed: int = 0,
    policy: Policy | None = None,
    learning: Learning | None = None,
) -> list[Row]:
    """The same for any stream of recorded labels.

    >>> rows = [(i, w, i % 2) for i in range(40) for w in "abc"]
    >>> stream = Replay.of(LabelTable.from_rows(rows), np.arange(40) % 2, seed=0)
    >>> found = measure_stream(stream, "come", 2)
    >>> [(row["contestant"], row["labels"], row["accuracy"]) for row in found]
    [('streamed', 2.0, 1.0), ('revised', 2.0, 1.0), ('majority', 2.0, 1.0), ...]
    """
    rule = two_plus_one(stream, mode, seed) if labels == RULE else None
    each = float(labels) if rule is None else len(rule.said) / len(rule.items)
    bought = buy(stream, mode, each, policy, learning)
    even = even_overlap(stream, mode, bought.labels, seed)
    rows = [_streamed(stream, bought)]
    rows.append(_judged("revised", stream, bought.table, Auto()))
    for method in (MajorityVote(), DawidSkene(), Auto()):
        rows.append(_judged(method.name, stream, even, method))
    if rule is not None:
        rows.append(_judged(RULE, stream, rule, MajorityVote()))
    return rows


def _streamed(stream: Replay, bought: Bought) -> Row:
    """The verdicts as they left, each with its confidence."""
    given = bought.verdict >= 0
    right = np.where(given, bought.verdict == stream.truth, 1 / len(stream.table.classes))
    confidence = np.where(given, bought.confidence, 1 / len(stream.table.classes))
    row = _score("streamed", stream.truth, bought.table, right, confidence)
    return row | {"response": float(bought.response.mean())}


def _judged(name: str, stream: Replay, bought: LabelTable, method: BaseEstimator) -> Row:
    """What a method makes of the labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what comes of few labels is scored
        q = method.fit(bought).posteriors_.copy()
    q[np.diff(bought.start) == 0] = 1 / q.shape[1]
    return _score(name, stream.truth, bought, right_shares(q, stream.truth), q.max(axis=1))


def _score(name: str, truth: Ints, bought: LabelTable, right: Floats, confidence: Floats) -> Row:
    known = truth >= 0
    right, confidence = right[known], confidence[known]
    sure = confidence >= SURE
    return {
        "contestant": name,
        "items": len(truth),
        "judged": int(known.sum()),
        "labels": len(bought.said) / len(bought.items),
        "accuracy": float(right.mean()),
        "ece": expected_calibration_error(confidence, right),
        "sure": float(sure.mean()),
        "sure_wrong": float(1 - right[sure].mean()) if sure.any() else None,
        "response": None,
    }


@lru_cache(maxsize=1)
def _version() -> str:
    package = Path(__file__).resolve().parents[2]
    return f"{__version__}/{fingerprint.digest_of(package, _SOURCES)}"
