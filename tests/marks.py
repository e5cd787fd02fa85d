"""Marks of cases of a test."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["nightly"]


def nightly(*values: Any) -> Any:
    """A case that is left out by default: it is slow, and seldom tells what the others do not."""
    return pytest.param(*values, marks=pytest.mark.slow)
