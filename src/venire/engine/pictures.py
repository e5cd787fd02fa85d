"""What a scheduler looks like: its items as a dataframe, and tables for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from venire.display.html import SHOWN, block, facts, table
from venire.estimators.frames import Backend, frame_of

if TYPE_CHECKING:
    from venire.engine.scheduler import Scheduler

__all__ = ["Pictured"]


class Pictured:
    """The part of a scheduler that shows it."""

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The outstanding items as a dataframe, the earliest arrival first.

        The columns: item, arrival, weight, labels, in_flight, verdict and confidence so far.
        `backend` is "pandas", "polars" or "pyarrow"; by default the first that is installed.

        >>> from venire import Item, Label, Labeler, Scheduler
        >>> s = Scheduler([Labeler("ann", 0.9), Labeler("bob", 0.8)], classes=["spam", "ok"])
        >>> s.arrive(Item("post-1", weight=8))
        >>> s.observe(Label("post-1", "ann", "ok"))
        >>> s.to_frame("pandas")
             item  arrival  weight  labels  in_flight verdict  confidence
        0  post-1        0     8.0       1          0      ok         0.9
        """
        return frame_of(item_columns(cast("Scheduler", self)), backend)

    def _repr_html_(self) -> str:
        """What a notebook shows: where the stream stands, the labelers, the first items."""
        s = cast("Scheduler", self)
        known = s.competences or {}
        labelers: dict[str, list[Any]] = {
            "labeler": [who.id for who in s.panel],
            "capacity": [who.capacity for who in s.panel],
            "competence": [known.get(who.id) for who in s.panel],
        }
        stream = {"slot": s.slot, "items": len(s.outstanding), "labels in flight": len(s.in_flight)}
        title = f"Scheduler, {s.policy.describe()}"
        return block(title, [facts(stream), table(labelers), table(item_columns(s, SHOWN))])


def item_columns(scheduler: Scheduler, first: int | None = None) -> dict[str, list[Any]]:
    """The columns of `Scheduler.to_frame`, of all items or of the first ones only."""
    queue, items = scheduler.state.queue, list(scheduler.outstanding[:first])
    rows = queue.desk.rows[queue.outstanding()[:first]]
    verdicts = [scheduler.verdict(item) for item in items]
    return {
        "item": items,
        "arrival": rows["arrival"].tolist(),
        "weight": rows["weight"].tolist(),
        "labels": (rows["labels"] - rows["pending"]).tolist(),
        "in_flight": rows["pending"].tolist(),
        "verdict": [verdict.label for verdict in verdicts],
        "confidence": [verdict.confidence for verdict in verdicts],
    }
