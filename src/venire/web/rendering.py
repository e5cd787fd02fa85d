"""How values look on the pages of the console."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["payload_of", "times"]

#: Longer texts are cut on the page of an item; the API has all of it.
MOST_TEXT: Final = 20_000


def times(value: float | None) -> str:
    """A moment for people, in UTC.

    >>> times(1e9), times(None)
    ('2001-09-09 01:46:40', '–')
    """
    return "–" if value is None else f"{datetime.fromtimestamp(value, UTC):%Y-%m-%d %H:%M:%S}"


def payload_of(payload: Any) -> str:
    """A payload as text: what it says, or its JSON; never HTML.

    >>> payload_of("hello"), payload_of({"a": 1})
    ('hello', '{"a": 1}')
    """
    if isinstance(payload, dict) and isinstance(payload.get("text"), str) and len(payload) == 1:
        payload = payload["text"]
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
