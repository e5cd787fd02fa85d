"""What is measured in one cell: one label set, mode, number of labels and seed.

`measure("rte", "chosen", 3, seed=0, data="shared/data")` is a row for each contestant.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from venire.estimators import Auto, DawidSkene, MajorityVote
from venire.labels import LabelTable
from venire.scheduling.base import Learning, Policy
from venire_research.common import fingerprint
from venire_research.common.scores import aggregated, score, streamed
from venire_research.equal_labels.buying import Mode, buy
from venire_research.equal_labels.plain_loop import PLAIN_LOOP, plain_loop
from venire_research.equal_labels.replay import Replay, files_digest, replay
from venire_research.equal_labels.rivals import even_overlap, two_plus_one
from venire_research.sweeps.sweep import Point

__all__ = [
    "COLUMNS",
    "OURS",
    "RULE",
    "SUITE",
    "cell",
    "measure",
    "measure_stream",
    "point_name",
]

#: The name of this suite: a change to a stream, a rival or a measure requires a new one.
SUITE: Final = "equal-labels-3"

#: The point at which the number of labels is that of Toloka's rule.
RULE: Final = "2+1"

#: Our two contestants: verdicts as items left, and the labels bought aggregated once more.
OURS: Final = ("streamed", "revised")

#: A set is skipped at a point if it lacks more than this share of the required labels.
SHORT: Final = 0.02

#: The columns of a row, in this order.
COLUMNS: Final = (
    *("suite", "set", "mode", "point", "seed", "contestant", "items", "judged", "labels"),
    *("accuracy", "ece", "sure", "sure_wrong", "response"),
)

_SOURCES: Final = (
    *fingerprint.SOURCES,
    "venire_research/common/scores.py",
    *(
        f"venire_research/equal_labels/{name}.py"
        for name in ("buying", "measures", "plain_loop", "replay", "rivals")
    ),
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
    """The cell as a point of a sweep; its key covers everything that it depends on."""
    key = {
        "suite": SUITE, "set": name, "files": files_digest(name, data), "mode": mode,
        "labels": labels, "seed": seed, "policy": repr(policy), "learning": repr(learning),
    }  # fmt: skip
    inputs = {"data": data, "policy": policy, "learning": learning}
    return Point(f"{__name__}:measure_cell", {"key": key}, fingerprint.version_of(_SOURCES), inputs)


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
    """Every contestant on one label set, with `labels` labels per item (`RULE`: those of the rule).

    Empty, if the set lacks more than a share `SHORT` of these labels.
    """
    stream = replay(name, None if data is None else Path(data), seed)
    if labels != RULE and float(labels) > (1 + SHORT) * stream.held:
        return []
    found = measure_stream(stream, mode, labels, seed, policy, learning)
    which = {"suite": SUITE, "set": name, "mode": mode, "point": point_name(labels), "seed": seed}
    return [which | row for row in found]


def point_name(labels: float | str) -> str:
    """How a number of labels is written.

    >>> point_name(2.0), point_name(1.5), point_name("2+1")
    ('2', '1.5', '2+1')
    """
    return labels if isinstance(labels, str) else f"{labels:g}"


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
    >>> found = measure_stream(stream, "chosen", 2)
    >>> [(row["contestant"], row["labels"], row["accuracy"]) for row in found]
    [('streamed', 2.0, 1.0), ('revised', 2.0, 1.0), ('majority', 2.0, 1.0), ...]
    """
    rule = two_plus_one(stream, mode, seed) if labels == RULE else None
    each = float(labels) if rule is None else len(rule.said) / len(rule.items)
    bought = buy(stream, mode, each, policy, learning)
    even = even_overlap(stream, mode, bought.labels, seed)
    said = streamed(bought.verdict, bought.confidence, len(even.classes))
    rows = [_row("streamed", stream, bought.table, said)]
    rows[0]["response"] = float(bought.response.mean())
    rows.append(_row("revised", stream, bought.table, aggregated(bought.table, Auto())))
    for method in (MajorityVote(), DawidSkene(), Auto()):
        rows.append(_row(method.name, stream, even, aggregated(even, method)))
    rows.append(_row(PLAIN_LOOP, stream, *plain_loop(stream, mode, bought.labels, seed)))
    if rule is not None:
        rows.append(_row(RULE, stream, rule, aggregated(rule, MajorityVote())))
    return rows


def _row(name: str, stream: Replay, bought: LabelTable, posteriors: Floats) -> Row:
    known = {"items": len(stream.truth), "judged": int((stream.truth >= 0).sum())}
    labels = len(bought.said) / len(bought.items)
    row = {"contestant": name, **known, "labels": labels, **score(posteriors, stream.truth)}
    return row | {"response": None}
