"""A label out of the text of an answer, or none: when in doubt, none.

Taken are a JSON object with `label`, also inside a code fence or among other text, and a text that
is the name of a class and nothing else. Several objects must agree. A name somewhere in a sentence
is not taken: "not spam" is not spam.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["read_label"]

_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>", re.S)
_FENCE = re.compile(r"\A```\w*\n?(.*?)\n?```\Z", re.S)
_DECODER = json.JSONDecoder()


def read_label(text: str, classes: Sequence[str]) -> str | None:
    r"""The class that a text names, if it names exactly one.

    >>> read_label('Sure!\n```json\n{"label": "spam"}\n```', ["spam", "ok"])
    'spam'
    >>> read_label("OK.", ["spam", "ok"]), read_label("not spam", ["spam", "ok"])
    ('ok', None)
    """
    text = _THOUGHTS.sub("", text).strip()
    said = {_as_text(found["label"]) for found in _objects(text) if "label" in found}
    if not said:
        fenced = _FENCE.match(text)
        said = {(fenced[1] if fenced else text).strip().strip("\"'`*.").strip()}
    return _class(said.pop(), classes) if len(said) == 1 else None


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _class(name: str, classes: Sequence[str]) -> str | None:
    """The class of this name; else the only one that differs in case or space alone."""
    if name in classes:
        return name
    near = [known for known in classes if known.strip().casefold() == name.strip().casefold()]
    return near[0] if len(near) == 1 else None


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, the outermost ones."""
    at = text.find("{")
    while at >= 0:
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield found
        at = text.find("{", end)
