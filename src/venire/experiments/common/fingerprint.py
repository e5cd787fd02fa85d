"""A digest of the sources that results depend on, so that none outlives the code it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from venire import __version__

__all__ = ["SOURCES", "digest_of", "sources_digest", "version_of"]

#: Files and folders of the package that can change what a point returns. Files that only measure,
#: draw or describe what the points returned are not among them; label sets have their own digest.
SOURCES: Final = (
    *("model.py", "engine", "estimators", "labels", "paper", "scheduling", "simulation", "tools"),
    "experiments/common/label_sets.py",
    *(
        f"experiments/reproduction/{name}.py"
        for name in ("exact", "literal", "measures", "sources")
    ),
)


def digest_of(root: Path, sources: Sequence[str] = SOURCES) -> str:
    """The names and contents of these Python files below `root`, in sixteen hex digits."""
    found = hashlib.sha256()
    for source in sources:
        path = root / source
        files = [path] if path.suffix else sorted(path.rglob("*.py"))
        for file in files:
            found.update(f"{file.relative_to(root).as_posix()}\0".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """The digest of the package as it is on disk, read once in each process."""
    return digest_of(Path(__file__).resolve().parents[2])


@lru_cache(maxsize=8)
def version_of(sources: tuple[str, ...]) -> str:
    """The version of the package with the digest of these sources, read once in each process."""
    return f"{__version__}/{digest_of(Path(__file__).resolve().parents[2], sources)}"
