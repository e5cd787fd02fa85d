"""Gold against the log, and the verdicts drawn to be audited against what left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from venire.model import ItemStatus
from venire.server.store.base import Storage


def gold_differences(
    storage: Storage,
    stream: str,
    gold: Mapping[str, tuple[str, float]],
    exits: Mapping[str, tuple[Any, ...]],
    since: float = -math.inf,
) -> Iterator[str]:
    """What of the gold, and of the verdicts drawn to be audited, is not as the log says.

    `gold` is label and time by item, `exits` how items left: status, number, slot, time, verdict;
    both only of what came after `since`.
    """
    missing = dict(gold)
    for row in storage.all_gold(stream):
        expected = missing.pop(row.item, None)
        if expected is None and row.at <= since:
            continue
        if expected is None:
            yield f"the gold of item {row.item!r} is in the table but not in the log"
        elif expected != (row.label, row.at):
            yield f"the gold of item {row.item!r} is {(row.label, row.at)}, the log says {expected}"
    for item in missing:
        yield f"the gold of item {item!r} is in the log but not in the table"
    for number, check in enumerate(storage.checks(stream), 1):
        if check.n != number:
            yield f"the audits continue with number {check.n}, expected {number}"
        left = exits.get(check.item)
        if left is None and check.at <= since:
            continue
        if left is None or left[0] != ItemStatus.LEFT:
            yield f"item {check.item!r} was drawn to be audited, but has not left"
        elif (check.verdict, check.at) != (left[4], left[3]):
            yield (
                f"item {check.item!r} was drawn to be audited as {check.verdict!r}, the log says "
                f"that it left as {left[4]!r}"
            )
