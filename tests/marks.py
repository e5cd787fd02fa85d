"""Marks of cases of a test."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

__all__ = ["examples", "nightly"]


def nightly(*values: Any) -> Any:
    """A case that is left out by default: it is slow, and seldom tells what the others do not."""
    return pytest.param(*values, marks=pytest.mark.slow)


def examples(night: int, day: int) -> settings:
    """How many examples of hypothesis, where each is dear: more with the profile of the night."""
    return settings(max_examples=night if settings.get_current_profile_name() == "search" else day)
