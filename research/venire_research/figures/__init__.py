"""The figures: each module with a `FIGURE` is one. Add a file to add a figure."""

from __future__ import annotations

from typing import Final

__all__ = ["ORDER"]

#: The order of the report; a figure that is not named comes last.
ORDER: Final = (
    "synthetic-regret",
    "synthetic-learning",
    "bird-regret",
    "bird-learning",
    "dog-regret",
    "dog-learning",
    "best-learning-length",
    "errata",
    "bounds",
)
