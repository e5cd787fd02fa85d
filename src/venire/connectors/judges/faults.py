"""Why a judge gave no label.

    JudgeFault
    ├── NoLabel        it answered, but not with a label: refused, truncated, no class
    ├── Unavailable    it cannot be reached for now, or is too busy: ask again later
    └── Stopped        no request will do any more: its key, its quota, its model

A worker hands an item after `NoLabel` to other labelers only; after `Unavailable` the same judge
may get it again; after `Stopped` the worker of that judge ends, and the rest of the panel goes on.
"""

from __future__ import annotations

from venire.errors import GaveUp, NotNow, VenireError

__all__ = ["JudgeFault", "NoLabel", "Stopped", "Unavailable"]


class JudgeFault(VenireError):
    """A judge gave no label; `cost` is what its tokens cost all the same.

    >>> str(NoLabel("strict", "it refused")), NoLabel("strict", "it refused", cost=0.5).cost
    ('judge strict: it refused', 0.5)
    """

    def __init__(self, judge: str, why: str, cost: float = 0.0) -> None:
        """Which judge, and why."""
        self.judge, self.why, self.cost = judge, why, cost
        super().__init__(f"judge {judge}: {why}")


class NoLabel(JudgeFault):
    """The judge answered, but not with one of the classes; another labeler should be asked."""


class Unavailable(JudgeFault, NotNow):
    """The judge cannot answer for now; the same item may be asked again."""


class Stopped(JudgeFault, GaveUp):
    """The judge cannot answer any more: spent quota, wrong key, unknown model."""
