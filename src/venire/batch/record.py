"""The report of a batch, for JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venire.batch.outcome import Labelled

__all__ = ["record_of"]


def record_of(done: Labelled) -> dict[str, Any]:
    """Everything that the report says, as plain values; NaN is null.

    >>> from venire.batch import label_recorded
    >>> rows = [(i, w, i % 2) for i in range(40) for w in "abcde"]
    >>> record = label_recorded(rows, 80.0, truth={0: 0}).record()
    >>> record["items"], record["budget"]["money"], record["labelers"][0]["id"]
    (40, 80.0, 'a')
    """
    budget = done.budget
    return {
        "items": len(done.table.items),
        "labels": int(done.asked),
        "spent": done.spent,
        "budget": budget and {"money": budget.money, "labels": budget.labels},
        "expected_accuracy": _plain(done.expected_accuracy),
        "sure": done.sure,
        "accuracy": _plain(done.accuracy),
        "labels_per_item": _plain(done.asked / len(done.table.items)),
        "reasons": {str(why): done.reasons.count(why) for why in sorted(set(done.reasons))},
        "classes": [str(name) for name in done.table.classes],
        "curve": [{key: _plain(x) for key, x in p._asdict().items()} for p in done.curve],
        "labelers": [
            {key: _plain(x) for key, x in one._asdict().items()} for one in done.labelers
        ],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if isinstance(value, int | str | None) else str(value)
