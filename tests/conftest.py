"""Shared set-up: hypothesis without deadlines (the first call compiles), no stale kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("venire", deadline=None)
settings.load_profile("venire")

SOURCE = Path(__file__).parent.parent / "src"
DATA = Path(__file__).parent.parent.parent / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Throw compiled kernels away if any source is newer.

    Numba looks only at the file of the function itself, so that a change in a kernel that is
    compiled into others would otherwise go unnoticed.
    """
    if hasattr(config, "workerinput"):
        return
    newest = max(f.stat().st_mtime for f in SOURCE.rglob("*.py"))
    compiled = [f for f in SOURCE.rglob("*.nb[ic]") if f.suffix in (".nbi", ".nbc")]
    if any(f.stat().st_mtime < newest for f in compiled):
        for f in compiled:
            f.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real label sets; tests that need it skip where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no real label sets at {DATA}")
    return DATA
