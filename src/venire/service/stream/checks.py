"""Accuracy audits of a stream: which verdicts were drawn for a trusted labeler, and what it said.

Each verdict is drawn with probability `audit_share` when its item leaves. The draw is a keyed hash
of the item's id, under a secret of the store: it depends neither on labels nor on the verdict, and
nobody who lacks the secret can foresee it. The bounds are computed from drawn verdicts alone, in
the order in which they were drawn. One without an answer before the last that has one counts as
wrong in upper bounds: leaving out hard ones gains nothing. Gold that somebody chose to send for
other items never counts.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from venire.audits import ErrorBound
from venire.storage import CheckRow

__all__ = ["Checks", "drawn"]


def drawn(secret: bytes, stream: str, item: str, share: float) -> bool:
    """Whether the verdict on an item is drawn to be audited.

    >>> sum(drawn(b"secret", "posts", f"post-{i}", 0.02) for i in range(10_000))
    170
    """
    digest = hmac.digest(secret, f"{stream}\0{item}".encode(), hashlib.sha256)
    return int.from_bytes(digest[:8]) < share * 2.0**64


@dataclass
class Checks:
    """The verdicts of a stream that were drawn, in order, and which of them turned out wrong.

    `open_gold` are open items whose class is known already: their verdicts are not the labelers',
    and are not drawn. `gold` counts all gold of the stream.

    >>> checks = Checks(b"secret")
    >>> checks.load([CheckRow("posts", 1, "a", 0.0, 0.02, "ok")], {})
    >>> checks.due, checks.answer("a", "spam"), checks.due
    (['a'], True, [])
    >>> checks.bound().wrong
    1
    """

    secret: bytes = b""
    verdicts: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, bool] = field(default_factory=dict)
    open_gold: set[str] = field(default_factory=set)
    barred: set[tuple[str, str]] = field(default_factory=set)
    gold: int = 0
    waiting: dict[str, None] = field(default_factory=dict)

    def load(self, rows: Iterable[CheckRow], gold: Mapping[str, str]) -> None:
        """Begin with what the store has: the draws, and the gold of these items."""
        for row in rows:
            self.verdicts[row.item] = row.verdict
            if row.item in gold:
                self.wrong[row.item] = gold[row.item] != row.verdict
            else:
                self.waiting[row.item] = None

    def draw(
        self, stream: str, item: str, verdict: str | None, share: float, at: float
    ) -> list[CheckRow]:
        """An item left: the row of its audit, if it is drawn."""
        known = item in self.open_gold
        self.open_gold.discard(item)
        if known or verdict is None or not share or not drawn(self.secret, stream, item, share):
            return []
        self.verdicts[item] = verdict
        self.waiting[item] = None
        return [CheckRow(stream, len(self.verdicts), item, at, share, verdict)]

    def answer(self, item: str, label: str) -> bool:
        """The class of an item is known; whether it had been drawn."""
        self.gold += 1
        if item not in self.waiting:
            return False
        del self.waiting[item]
        self.wrong[item] = label != self.verdicts[item]
        return True

    @property
    def due(self) -> list[str]:
        """The items that wait for a trusted labeler, those drawn first in front."""
        return list(self.waiting)

    def bound(self, level: float = 0.95, verdict: str | None = None) -> ErrorBound:
        """The bound on the rate of errors; with `verdict`, of the verdicts that say it."""
        last = max((n for n, item in enumerate(self.verdicts) if item in self.wrong), default=-1)
        counts = [0, 0, 0]
        for n, (item, said) in enumerate(self.verdicts.items()):
            if n <= last and verdict in (None, said):
                counts[0] += 1
                counts[1] += self.wrong.get(item, False)
                counts[2] += item not in self.wrong
        return _bound(level, *counts)


@lru_cache(1000)
def _bound(level: float, audited: int, wrong: int, skipped: int) -> ErrorBound:
    return ErrorBound(level, None, audited, wrong, skipped)
