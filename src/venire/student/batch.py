"""A student in a batch: taught again whenever there are a quarter more labels.

The batch buys labels of the others only, so what the student is taught is free of its votes. Of an
item that it was taught it says what a model says that was not taught that item. Its answers are
not bought and not kept: each time it has learned more, what it says replaces what it said before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from venire.labels import LabelTable
from venire.student.lessons import lessons
from venire.student.student import Ints, Taught, with_voices

if TYPE_CHECKING:
    from venire.student.student import Student

__all__ = ["StudentInBatch"]

#: It is taught again once the labels have grown by this factor since the last time.
MORE: Final = 1.25


class StudentInBatch:
    """The seat of a student in a batch; `venire.batch.rounds` calls it."""

    def __init__(self, student: Student, contents: Sequence[Any]) -> None:
        self.student = student
        self.seen = student.look(contents)
        self.taught: Taught | None = None
        self.version = 0
        self._labels = 0
        self._said: tuple[Ints, Ints, Ints] | None = None  # items, bins, classes

    def join(self, table: LabelTable, now: bool = False) -> LabelTable:
        """The table with what the student says, as soon as it has learned anything.

        `table` holds the labels of the others. With `now` it learns from all of them.
        """
        due = table.labeler.size if now else int(table.labeler.size / MORE)
        if self._labels == 0 or (self._labels < due if now else self._labels <= due):
            self._learn(table)
        return table if self._said is None else with_voices(table, self.student, *self._said)

    def _learn(self, table: LabelTable) -> None:
        self._labels = table.labeler.size
        learned = self.student.learn(self.seen, lessons(table), self.version + 1)
        self._said = None
        if learned is None:
            return
        self.taught, self.version = learned, learned.version
        if learned.ready:
            shares = learned.held_out.copy()
            rest = np.flatnonzero(self.seen.usable & (shares.sum(axis=1) == 0))
            if rest.size:
                shares[rest] = learned.model.shares(self.seen.rows[rest])
            places = np.flatnonzero(self.seen.usable)
            self._said = (places, *learned.answers(shares[places]))

    def record(self) -> dict[str, Any]:
        """Version, verdicts it was taught, agreement."""
        nothing = {"version": 0, "verdicts": 0, "agreement": None, "commonest": None}
        learned = self.taught.record() if self.taught else {**nothing, "ready": False}
        return {"id": self.student.id, **learned}
