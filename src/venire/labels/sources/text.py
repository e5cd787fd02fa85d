"""Names as files and command lines write them: text that may be a whole number."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["as_text", "as_whole", "like"]

#: As Python writes a whole number, within 64 bits.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")


def as_whole(names: Iterable[Any]) -> tuple[int, ...] | None:
    """The names as whole numbers if every one is written as Python writes it, else None.

    >>> as_whole(["7", "-12", "0"]), as_whole(["007"]), as_whole(["1.0"]), as_whole(["7", "x"])
    ((7, -12, 0), None, None, None)
    """
    listed = list(names)
    if all(isinstance(name, str) and _WHOLE.fullmatch(name) for name in listed):
        return tuple(map(int, listed))
    return None


def as_text(names: Iterable[Any]) -> tuple[Any, ...]:
    """Whole numbers as text, everything else as it is.

    >>> as_text([7, "x", 0.5])
    ('7', 'x', 0.5)
    """
    return tuple(str(name) if _is_whole(name) else name for name in names)


def like(names: Iterable[Any], others: Iterable[Any]) -> tuple[Any, ...]:
    """Names written so that they can be found among others: two files may disagree on a type.

    >>> like([7, 8], ["7", "x"]), like(["7", "x"], [7, 8])
    (('7', '8'), (7, 'x'))
    """
    kinds = {type(name) for name in others}
    if kinds == {str}:
        return as_text(names)
    if kinds == {int}:
        return tuple((as_whole([name]) or (name,))[0] for name in names)
    return tuple(names)


def _is_whole(name: Any) -> bool:
    return isinstance(name, int) and not isinstance(name, bool)
