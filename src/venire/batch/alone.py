"""Trusted alone: one labeler who is about as good as the whole panel labels the rest.

Only truth can tell who that is. Everybody labels the items with gold and as many others, if that
takes at most a third of the budget. The mixture that gold makes of all their labels
(`venire.estimators.truth.mixture`) has a posterior q of each of these items, and what the label of
one labeler costs, in the place of the panel's verdict, is

    the mean over these items of  sum_k q_k C[k, said] - min_l sum_k q_k C[k, l]

(C: 1 for any error, without costs). It is what the panel's own belief expects to lose, with all
that it is unsure of. Whoever has the least of it, and no more than a margin that is stated, labels
the other items alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from venire.batch.choice import Belief
from venire.batch.labelers import FREE, Work
from venire.errors import InputError
from venire.estimators.gold import Gold
from venire.tools.arrays import Floats, Ints

__all__ = ["Alone", "check_margin", "good_enough", "trial"]


#: Gold items, drawn at random, that somebody must have labelled to be trusted alone.
FEWEST: Final = 50


class Alone(NamedTuple):
    """Who was trusted alone, what is expected to be lost by that, and on how many items it rests.

    >>> Alone("claude", 0.004, 100).words
    'claude labels the rest alone: expected to lose 0.4 points, by 100 items that all labelled'
    """

    id: Hashable
    loss: float
    items: int

    @property
    def words(self) -> str:
        """In one sentence."""
        return (
            f"{self.id} labels the rest alone: expected to lose {100 * self.loss:.1f} points, "
            f"by {self.items:,} items that all labelled"
        )

    def record(self) -> dict[str, Any]:
        return {"id": str(self.id), "loss": self.loss, "items": self.items}


def check_margin(margin: float | None, gold: Gold | None) -> None:
    """Refuse a margin that is none, and one without gold.

    >>> check_margin(0.01, None)
    Traceback (most recent call last):
    venire.errors.InputError: got alone=0.01 without gold, ...
    """
    if margin is None:
        return
    if not (isinstance(margin, int | float) and 0 < margin < 1):
        raise InputError(
            f"got alone={margin!r}, expected the share of right verdicts that may be lost, such as "
            "0.01"
        )
    if not gold:
        raise InputError(
            f"got alone={margin!r} without gold, expected some: labels alone cannot tell who is "
            "good enough to be asked alone"
        )


def trial(work: Work, gold: Gold, seed: int) -> Ints:
    """All entries of the items with gold that was drawn, and of as many others."""
    known = _drawn(work, gold)
    others = np.random.default_rng(seed).permutation(np.flatnonzero(~known))
    chosen = known.copy()
    chosen[others[: int(known.sum())]] = True
    return np.flatnonzero(chosen[work.item])


def good_enough(
    work: Work, said: Ints, belief: Belief, costs: Floats | None, gold: Gold, margin: float
) -> tuple[int, Alone] | None:
    """Who is good enough to label the rest alone, and what that is expected to lose; or nobody.

    Only those who may label at least half of the rest.
    """
    if belief.fitted.checked_ is None:
        return None
    q = belief.fitted.unsettled_
    C = 1 - np.eye(q.shape[1]) if costs is None else costs
    lost = q @ C
    lost -= lost.min(axis=1, keepdims=True)
    there, M = said >= 0, len(work.labelers)
    known = _drawn(work, gold)[work.item]
    who, rest = work.labeler[there], said == FREE
    given = np.bincount(who, minlength=M)
    loss = np.bincount(who, lost[work.item[there], said[there]], minlength=M)
    able = np.bincount(work.labeler[there & known], minlength=M) >= FEWEST
    left = len(np.unique(work.item[rest]))
    able &= np.bincount(work.labeler[rest], minlength=M) >= max(1, left) / 2
    mean = np.where(able, loss / np.maximum(given, 1), np.inf)
    m = int(mean.argmin())
    if mean[m] > margin:
        return None
    return m, Alone(work.labelers[m], float(mean[m]), int(given[m]))


def _drawn(work: Work, gold: Gold) -> NDArray[np.bool_]:
    """Which items have gold that was drawn at random."""
    return np.array([name in gold and name not in work.asked for name in work.items])
