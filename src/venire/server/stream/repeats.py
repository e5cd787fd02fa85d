"""Asking labelers again: which of their items, when, and what became of it.

A labeler is given an item that it labelled a while ago and that has left since, as one that is
new. Its answer is kept beside its label and never reaches the engine's beliefs: all of its
agreement with itself, and nothing of the verdict. Whether the next item of a labeler is such a one
is drawn by a keyed hash of how many it was handed, so that nobody can foresee it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from venire.model import StreamStatus
from venire.server.store import LabelRow
from venire.server.stream.checks import drawn
from venire.server.stream.leases import REMEMBERED, RecentDict

if TYPE_CHECKING:
    from venire.server.stream.live_stream import LiveStream

#: How long ago a labeler labelled what it is asked about again, in slots, if nobody says.
AFTER_SLOTS: Final = 60

#: Of how many of its latest such labels one is drawn.
LATEST: Final = 200


class Repeats:
    """What is known of the labelers of a stream who are to be asked again.

    `handed` counts what each was handed; `ready` is the label that its labeler repeats next, and
    `looked` for which of its items, in which slot, that was looked for. `said` are the latest
    answers, and `answers` counts all of them.
    """

    def __init__(self) -> None:
        self.handed: Counter[str] = Counter()
        self.ready: dict[str, LabelRow] = {}
        self.looked: dict[str, tuple[int, int]] = {}
        self.said: RecentDict[tuple[str, str], str] = RecentDict(REMEMBERED)
        self.answers = 0

    def number(self, live: LiveStream, labeler: str) -> int:
        """How many items the labeler was handed before the next."""
        record = live.labelers.get(labeler)
        if labeler not in self.handed and record is not None:
            self.handed[labeler] = record.labels + record.repeats + record.unsure
        return self.handed[labeler]

    def is_due(self, live: LiveStream, labeler: str) -> bool:
        """Whether something must be found that the labeler may be asked again now."""
        share = live.settings.repeat_share
        if not share or live.status != StreamStatus.RUNNING or labeler in self.ready:
            return False
        number = self.number(live, labeler)
        if live.leases.again[labeler] or self.looked.get(labeler) == (number, live.engine.slot):
            return False
        return labeler not in live.trusted and self._drawn(live, labeler, number, share)

    @staticmethod
    def _drawn(live: LiveStream, labeler: str, number: int, share: float) -> bool:
        return drawn(live.checks.secret, f"{live.name}\0again", f"{labeler}\0{number}", share)

    def found(self, live: LiveStream, labeler: str, rows: Sequence[LabelRow]) -> None:
        """These labels could be repeated; one is drawn among them."""
        number, barred = self.number(live, labeler), live.checks.barred
        rows = [x for x in rows if (x.item, labeler) not in barred and self.is_free(live, x)]
        self.looked[labeler] = number, live.engine.slot
        if rows:
            told = f"{live.name}\0{labeler}\0{number}".encode()
            digest = hmac.digest(live.checks.secret, told, hashlib.sha256)
            self.ready[labeler] = rows[int.from_bytes(digest) % len(rows)]

    def is_free(self, live: LiveStream, row: LabelRow) -> bool:
        """Whether a label can be repeated: its item has left, and nobody holds it for that."""
        pair = row.item, row.labeler
        return (
            row.item not in live.open
            and live.leases.of_pair(*pair) is None
            and pair not in self.said
        )
