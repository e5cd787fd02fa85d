"""What the service says of the labelers of a stream, one by one and as a panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "AgreementView",
    "GoldAgreement",
    "LabelerView",
    "Measured",
    "PairAgreement",
    "PanelMemberView",
    "PanelView",
]


@dataclass(frozen=True, slots=True)
class LabelerView:
    """A labeler of a stream; `skill` is learned, with its interval.

    `expired` counts the leases that expired since the server started. `price` is what one label
    costs, and `money` what all labels of the labeler cost at that price. `unsure` counts how often
    it looked at an item and abstained. A `retired` one is given nothing any more.
    """

    id: str
    kind: str | None
    state: Literal["free", "busy", "away"]
    capacity: int
    holds: int
    skill: float | None
    skill_low: float | None
    skill_high: float | None
    labels: int
    late_labels: int
    expired: int
    lead_median: float | None
    lead_p90: float | None
    drifting: bool
    clone_of: str | None
    price: float = 0.0
    money: float = 0.0
    trusted: bool = False
    unsure: int = 0
    retired: bool = False


@dataclass(frozen=True, slots=True)
class GoldAgreement:
    """How often a labeler said what gold says: `right` of `items`, and the interval of 95 %."""

    labeler: str
    items: int
    right: int
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How often two labelers said the same: `same` of the `items` that both labelled.

    `kappa` is Cohen's: 1 if always, 0 if as often as chance explains, None if nothing but one class
    was said.
    """

    first: str
    second: str
    items: int
    same: int
    kappa: float | None


@dataclass(frozen=True, slots=True)
class AgreementView:
    """How the labelers of a stream agree with gold and with each other, by its latest `labels`.

    `pairs` are of those with the most labels.
    """

    stream: str
    labels: int
    gold: tuple[GoldAgreement, ...]
    pairs: tuple[PairAgreement, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A number and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class PanelMemberView:
    """What a labeler brings and costs.

    `without` is the change in expected accuracy if it left, `second` what a second label of it for
    every item would bring if its errors were independent; `stays` says whether it is on the
    cheapest panel. `copies` count as one labeler, a `family` has similar errors.
    """

    labeler: str
    skill: float
    skill_low: float
    skill_high: float
    price: float
    labels: int
    share: float
    cost: float
    copies: tuple[str, ...]
    family: tuple[str, ...]
    without: Measured
    second: Measured
    stays: bool


@dataclass(frozen=True, slots=True)
class PanelView:
    """A stream's panel by its latest labels, replayed without each of its labelers.

    `accuracy` is expected; `want` is the accuracy asked for, `cheapest` the cost of the cheapest
    panel that reaches it, `can_go` who is not on it, and `change` the change in accuracy.
    """

    stream: str
    items: int
    labels: int
    cost: float
    accuracy: Measured
    want: float
    reached: bool
    can_go: tuple[str, ...]
    cheapest: float
    change: Measured
    best_again: str
    members: tuple[PanelMemberView, ...]
