"""What the service says of another plan for a stream."""

from __future__ import annotations

from dataclasses import dataclass

from venire.service.panel_messages import Measured

__all__ = ["Compared", "WhatIfView"]


@dataclass(frozen=True, slots=True)
class Compared:
    """A measure per item: as it was, as it would have been, and the change."""

    was: float
    would_be: Measured
    change: Measured


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """What another plan would have bought, of the `compared` items that left in both cases.

    `measures` are per item: `right`, the expected share of right verdicts, `labels`, `money` and
    `wait`, the slots to the exit. `items` arrived, `left` of them left under the plan. `held` is
    the share of the wanted labels that the log holds: below 1 the others were drawn. `ran_out` is
    the share of items that had used up all labels that the log holds of them, `idle` the share of
    visits on which a labeler was given nothing. Only the beginning of the log was replayed unless
    it is `whole`.
    """

    stream: str
    whole: bool
    items: int
    compared: int
    left: int
    measures: dict[str, Compared]
    held: float
    ran_out: float
    idle: float
