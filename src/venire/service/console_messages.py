"""What operators get from the service: pages of items, reviews and alarms.

Times are seconds since 1970 (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from venire.model import ExitReason, ItemStatus

__all__ = ["GoldView", "ItemSummary", "ItemsPage", "ReviewItem", "Reviewed", "ReviewsPage"]


@dataclass(frozen=True, slots=True)
class ItemSummary:
    """An item in a listing: `excerpt` is the beginning of its text, or of its payload.

    `verdict` and `confidence` are those of the exit, None while the item is open; `revised` is what
    the verdict became since, if it did, and `gold` what somebody trusted said.
    """

    id: str
    status: ItemStatus
    excerpt: str
    arrived_at: float
    left_at: float | None
    verdict: str | None
    confidence: float | None
    labels: int
    reason: ExitReason | None
    revised: str | None = None
    gold: str | None = None


@dataclass(frozen=True, slots=True)
class ItemsPage:
    """Items, the latest arrival first; `next` is the cursor for more, None at the end.

    A search for something rare may return few items, or none, and still have a `next`: it looked
    for as long as one request may, and goes on from there.
    """

    items: tuple[ItemSummary, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A verdict that waits for a reviewer.

    The kind is `audit` for a verdict that was drawn at random: it is shown without verdict and
    labels, since whoever knows them tends to agree. Others are `disputed` where labels differ from
    the verdict, and `doubtful` where none does. `votes` says how often each class was said.
    """

    item: str
    kind: Literal["audit", "disputed", "doubtful"]
    excerpt: str
    arrived_at: float
    left_at: float | None
    verdict: str | None = None
    confidence: float | None = None
    votes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReviewsPage:
    """Verdicts that wait for a reviewer: audits first, then the least confident ones.

    `audits_due` counts the audits; `next` is the cursor for more, None at the end.
    """

    stream: str
    audits_due: int
    items: tuple[ReviewItem, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """The outcome of a review: `before` is the verdict that was judged, `label` is now gold.

    A verdict that is overridden is revised: see the item's revisions. Nothing changes for one that
    was judged the same before.
    """

    item: str
    outcome: Literal["confirmed", "overridden"]
    before: str | None
    label: str


@dataclass(frozen=True, slots=True)
class GoldView:
    """Gold: what somebody trusted said of an item, when, who, and how it came.

    `source` is `audit` for a drawn audit, `review` for a review, `sent` for gold that was sent.
    """

    item: str
    label: str
    at: float
    source: str
    actor: str
    key: str | None
