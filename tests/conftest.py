"""Shared set-up: hypothesis without deadlines (the first call compiles), and the real data."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("venire", deadline=None)
settings.load_profile("venire")

DATA = Path(__file__).parent.parent.parent / "shared" / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real label sets; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no real label sets at {DATA}")
    return DATA
