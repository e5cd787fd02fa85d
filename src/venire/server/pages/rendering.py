"""How values look on the pages of the console."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from venire.server.messages import SettingsVersion

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
    text = payload if isinstance(payload, str) else _beginning(payload)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"


def _beginning(payload: Any) -> str:
    """As much of the JSON of a payload as is shown."""
    text = ""
    for piece in json.JSONEncoder(ensure_ascii=False).iterencode(payload):
        text += piece
        if len(text) > MOST_TEXT:
            break
    return text


def percent(p: float) -> str:
    """A probability for people; never 100 % for what is not certain.

    >>> percent(0.5), percent(0.9996), percent(1.0)
    ('50 %', '>99.9 %', '100 %')
    """
    if 0.9995 <= p < 1:
        return ">99.9 %"
    return f"{100 * p:.1f} %".replace(".0 %", " %")


def changed_settings(versions: Sequence[SettingsVersion]) -> list[tuple[SettingsVersion, str]]:
    """Each version of a stream's settings, the latest first, with what it changed."""
    found: list[tuple[SettingsVersion, str]] = []
    before: dict[str, Any] = {}
    status = ""
    for version in versions:
        now = dict.fromkeys(before) | version.settings  # without a field that is empty again
        names = [name for name, value in now.items() if before.get(name) != value]
        said = ", ".join(_setting(name, now[name]) for name in names)
        if version.status != status:
            said = f"{said}; {version.status}" if said and before else said or version.status
        found.append((version, said if before else "created"))
        before, status = version.settings, version.status
    return found[::-1]


def _setting(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"{name}: {text if len(text) <= 80 else text[:79] + '…'}"
