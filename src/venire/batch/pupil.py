"""What a batch knows of a student: see `venire.student`, which is above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from venire.labels import LabelTable

__all__ = ["Pupil", "Teachable"]


class Pupil(Protocol):
    """A model that learns from the labels of a batch and votes with the panel."""

    def join(self, table: LabelTable, now: bool = False) -> LabelTable:
        """The table with its votes, as labels of labelers after those of the panel."""

    def record(self) -> dict[str, Any]:
        """What is reported of it."""


class Teachable(Protocol):
    """A student, which joins a batch of contents: `venire.student.Student`."""

    def join_batch(self, contents: Sequence[Any]) -> Pupil:
        """Its seat in the batch."""
