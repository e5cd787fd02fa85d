"""What further labels are worth: the evidence of one, and what is lost with more of it.

Two policies differ in how they value a row (item_value.py): by evidence or by labels.
"""

from __future__ import annotations

import math
from typing import Final

from venire.scheduling.state.desk import SETTING, Desk
from venire.tools.compiling import inlined

__all__ = ["BY_EVIDENCE", "BY_LABELS", "TRUST", "evidence_of", "loss_after"]

BY_EVIDENCE: Final = 0
BY_LABELS: Final = 1

#: How much of what further labels would gain, when those there are agree, is believed.
TRUST: Final = 0.5


@inlined
def evidence_of(desk: Desk, labeler: int, pair: int) -> float:
    """The evidence of one label of this labeler for a pair of classes."""
    if desk.meta[SETTING] == BY_EVIDENCE:
        own: float = desk.panel[labeler].evidence
        return own
    classes = len(desk.scores)
    told: float = desk.pairs[labeler, pair // classes, pair % classes]
    return told


@inlined
def below(x: float) -> float:
    """The chance that a standard normal number is below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@inlined
def loss_after(
    weight: float,
    loss: float,
    left: float,
    told: bool,
    evidence: float,
    least: float,
    trust: float = TRUST,
) -> float:
    """What is lost if a row leaves with more evidence, of `least` in a label.

    `told` if any labels tell of it now; `trust` is how much of what they would gain is believed.
    """
    most = left * math.exp(-evidence)
    if not told or evidence <= 0.0 or loss <= 0.0:
        return most
    q = min(0.5, loss / weight)
    lead, spread, one = math.log((1.0 - q) / q), math.sqrt(8.0 * evidence), min(least, evidence)
    if evidence / one * 2.0 * math.acosh(math.exp(one)) <= lead:
        return most
    stays_wrong = q * below((lead - 4.0 * evidence) / spread)
    turns_wrong = (1.0 - q) * below(-(lead + 4.0 * evidence) / spread)
    return min(most, loss - trust * (loss - weight * (stays_wrong + turns_wrong)))
