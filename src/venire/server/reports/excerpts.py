"""The beginning of a payload, for people who look through many."""

from __future__ import annotations

import json
import re
from typing import Any, Final

#: How many characters to show.
LENGTH: Final = 240

#: The fields of an object that are most likely to say what it is.
_TELLING: Final = ("text", "title", "prompt", "question", "name")


def excerpt_of(payload: str, length: int = LENGTH) -> str:
    """The text of a payload, which is JSON and may be cut off.

    >>> excerpt_of('{"text":"Buy now","lang":"en"}'), excerpt_of('"hello"'), excerpt_of('[1, 2')
    ('Buy now', 'hello', '[1, 2')
    """
    try:
        found = _text(json.loads(payload))
    except ValueError:  # it is cut off
        found = payload
    found = re.sub(r"\s+", " ", found).strip()
    return found if len(found) <= length else f"{found[: length - 1]}…"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        telling = [value[name] for name in _TELLING if isinstance(value.get(name), str)]
        if telling:
            return str(telling[0])
    return "" if value is None else json.dumps(value, ensure_ascii=False)
