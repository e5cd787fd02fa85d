"""The posts of docs/serve.md and three of the programs that judge them there."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

__all__ = ["JUDGES", "posts"]

SPAM: Final = 0
HAM: Final = 1


def posts(truth: Sequence[int], seed: int) -> list[str]:
    """A post for each class, 0 for spam, drawn as the walk-through draws them.

    >>> posts([0, 1], seed=0)
    ['a a cheap now offer cheap', 'a at lunch the today lunch']
    """
    draw = random.Random(seed)
    words = (["BUY", "now", "cheap", "offer"], ["see", "you", "at", "lunch"])
    return [" ".join(draw.choices([*words[k], "the", "a", "today"], k=6)) for k in truth]


def keywords(text: str) -> int:
    """Spam if it wants to sell something."""
    return SPAM if any(word in text.lower() for word in ("buy", "cheap", "offer")) else HAM


def length(text: str) -> int:
    """Spam by its length, which says nothing."""
    return SPAM if len(text) % 5 < 2 else HAM


def shouting(text: str) -> int:
    """Spam if a word is in capitals."""
    return SPAM if any(word.isupper() for word in text.split()) else HAM


JUDGES: Final[tuple[Callable[[str], int], ...]] = (keywords, length, shouting)
