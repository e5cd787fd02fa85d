"""Units of settings that are numbers; forms show them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Unit"]


class Unit(NamedTuple):
    """What a number counts: beside its bounds in the type of a setting.

    >>> Unit("seconds").name
    'seconds'
    """

    name: str
