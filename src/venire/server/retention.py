"""How long a stream's history stays in the store; see docs/history.md."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from venire.errors import InputError
from venire.server.units import Unit

__all__ = ["Retention", "check_retention"]

Days = Annotated[float, Field(gt=0, le=36_500, allow_inf_nan=False), Unit("days")]


class Retention(BaseModel):
    """How long history stays; None keeps it for ever.

    >>> Retention(item_days=90).archives, Retention(item_days=90, delete=True).archives
    (True, False)
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    payload_days: Days | None = None
    """The payload of an item is erased so long after the item left."""
    item_days: Days | None = None
    """Items are archived, with all that was said of them, so long after they left."""
    items: Annotated[int, Field(ge=0, le=2**53), Unit("items")] | None = None
    """Archive all items except the given number of those that left last."""
    delete: bool = False
    """What would be archived is deleted instead, for good."""

    @property
    def bounds_items(self) -> bool:
        """Whether items leave the store."""
        return self.item_days is not None or self.items is not None

    @property
    def archives(self) -> bool:
        """Whether an archive is needed."""
        return self.bounds_items and not self.delete


def check_retention(retention: Retention, archive: object | None) -> None:
    """Refuse to archive without an archive."""
    if retention.archives and archive is None:
        raise InputError(
            "got a retention that archives items, and this server has no archive: start it with "
            "--archive FOLDER, or set retention.delete, which deletes them for good"
        )
