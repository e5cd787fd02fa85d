"""Which engine this is: a digest of everything that can change a decision."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

__all__ = ["engine_version"]

#: The packages that decide, beside the modules at the root.
_DECIDES: Final = ("engine", "estimators", "labels", "paper", "scheduling", "tools")

#: The libraries they compute with.
_LIBRARIES: Final = ("numba", "numpy", "scipy")


@cache
def engine_version() -> str:
    """A short name of this engine: equal for equal sources, libraries and kind of machine.

    A different name does not mean different decisions, only that they are possible.

    >>> len(engine_version())
    16
    """
    digest = hashlib.sha256(platform.machine().encode())
    for name in _LIBRARIES:
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:  # as when it is bundled
            digest.update(f"{name}\n".encode())
    root = Path(__file__).parent.parent
    parts = (path for name in _DECIDES for path in (root / name).rglob("*.py"))
    for path in sorted([*root.glob("*.py"), *parts]):
        digest.update(f"{path.relative_to(root)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
