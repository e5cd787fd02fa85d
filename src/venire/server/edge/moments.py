"""Moments in query parameters: seconds since 1970, or ISO 8601, in UTC where no zone is named."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Annotated, Any, TypeAlias

from fastapi import Query
from pydantic import BeforeValidator

__all__ = ["Since", "Until", "moment"]


def moment(value: Any) -> Any:
    """Seconds since 1970; None for an empty text, as forms send it.

    >>> moment("2001-09-09T01:46:40"), moment("1e9"), moment("")
    (1000000000.0, 1000000000.0, None)
    """
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        seconds = float(value)
    except ValueError:
        pass
    else:
        if not isfinite(seconds):
            raise ValueError(f"got {value!r}, expected a moment")
        return seconds
    try:
        read = datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(
            f"got {value!r}, expected seconds since 1970 or a moment such as 2026-01-31T08:30"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


_Moment: TypeAlias = Annotated[float | None, BeforeValidator(moment)]
Since: TypeAlias = Annotated[
    _Moment, Query(description="Only what arrived at this moment or later.")
]
Until: TypeAlias = Annotated[_Moment, Query(description="Only what arrived before this moment.")]
