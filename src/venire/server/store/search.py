"""What to look for among the items of a stream, and from where on.

Items are listed the latest arrival first. A search follows one index, chosen by `leading`, and
looks at a limited number of its rows each time; the other conditions are checked row by row. So
one step takes about the same time in a stream of a million items as in one of a thousand, and a
search for something rare takes several steps, each from where the last one ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, TypeAlias

from venire.model import ItemStatus
from venire.server.store.records import ItemRow

#: How many characters of a payload are read for a listing.
EXCERPT: Final = 2000

#: When an item arrived, and its id: where a listing is continued.
Place: TypeAlias = tuple[float, str]

#: The items of a page, with the beginnings of their payloads, and where to go on; None at the end.
Found: TypeAlias = tuple[list[ItemRow], Place | None]

#: The confidence of a verdict, and the number of its exit: where a list by confidence is continued.
Doubt: TypeAlias = tuple[float, int]


@dataclass(frozen=True, slots=True)
class ItemSearch:
    r"""Conditions that all have to hold; None where anything goes.

    `verdict`, `reason` and the range of the confidence are about the exit; `text` is in the id or
    the payload, whatever the case of ASCII letters; `labeler` has labelled the item; it arrived at
    `since` or later, and before `until`. With `blind`, items whose audits are due are passed over:
    nothing about the search tells of them.

    >>> search = ItemSearch(text='say "no"', status="open")
    >>> search.in_payload, search.leading
    ('say \\"no\\"', {'verdict': None})
    """

    status: str | None = None
    verdict: str | None = None
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    labeler: str | None = None
    text: str | None = None
    since: float | None = None
    until: float | None = None
    blind: bool = False

    @property
    def in_payload(self) -> str:
        """The text as a payload contains it, which is JSON."""
        return json.dumps(self.text or "", ensure_ascii=False)[1:-1]

    @property
    def leading(self) -> dict[str, str | None]:
        """The condition on a column whose index is followed; open items have no verdict."""
        if self.verdict is not None:
            return {"verdict": self.verdict}
        if self.status in (ItemStatus.OPEN, ItemStatus.WITHDRAWN):
            return {"verdict": None}
        return {} if self.reason is None else {"reason": self.reason}

    def leads_to(self, row: ItemRow) -> bool:
        """Whether a row is among those that the search looks at."""
        return (
            all(getattr(row, name) == value for name, value in self.leading.items())
            and (self.since is None or row.arrived_at >= self.since)
            and (self.until is None or row.arrived_at < self.until)
        )

    def matches(self, row: ItemRow, labelled: bool) -> bool:
        """Whether a row is wanted; `labelled` says whether the labeler has labelled it."""
        confidence = row.confidence
        return (
            self.status in (None, row.status)
            and self.verdict in (None, row.verdict)
            and self.reason in (None, row.reason)
            and (self.low is None or (confidence is not None and confidence >= self.low))
            and (self.high is None or (confidence is not None and confidence <= self.high))
            and (self.labeler is None or labelled)
            and (self.text is None or self._is_in(row))
        )

    def _is_in(self, row: ItemRow) -> bool:
        text, in_payload = _lower(self.text or ""), _lower(self.in_payload)
        return text in _lower(row.id) or in_payload in _lower(row.payload)


def _lower(text: str) -> str:
    """Text with ASCII capitals as small letters, as databases compare it.

    >>> _lower("Ärger ÜBER A")
    'Ärger Über a'
    """
    return text.translate(_SMALL)


_SMALL: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
