"""A digest of the sources that results depend on, so that none outlives the code it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import venire

__all__ = ["SOURCES", "digest_of", "sources_digest", "version_of"]

#: Files and folders that can change what a point returns. Files that only measure, draw or describe
#: what the points returned are not among them; label sets have their own digest.
SOURCES: Final = (
    "venire/model.py",
    *(f"venire/{folder}" for folder in ("engine", "estimators", "labels", "paper", "scheduling")),
    "venire/simulation",
    "venire/tools",
    "venire_research/common/label_sets.py",
    *(
        f"venire_research/reproduction/{name}.py"
        for name in ("exact", "literal", "measures", "sources")
    ),
)

#: Where each package lies: beside each other if they are installed, apart in a clone.
_ROOTS: Final = {
    "venire": Path(venire.__file__).resolve().parents[1],
    "venire_research": Path(__file__).resolve().parents[2],
}


def digest_of(sources: Sequence[str] = SOURCES, roots: Mapping[str, Path] = _ROOTS) -> str:
    """The names and contents of these Python files, in sixteen hex digits."""
    found = hashlib.sha256()
    for source in sources:
        root = roots[source.partition("/")[0]]
        path = root / source
        files = [path] if path.suffix else sorted(path.rglob("*.py"))
        for file in files:
            found.update(f"{file.relative_to(root).as_posix()}\0".encode())
            found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """The digest of the sources as they are on disk, read once in each process."""
    return digest_of()


@lru_cache(maxsize=8)
def version_of(sources: tuple[str, ...]) -> str:
    """The version of venire with the digest of these sources, read once in each process."""
    return f"{venire.__version__}/{digest_of(sources)}"
