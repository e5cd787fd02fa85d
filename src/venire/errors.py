"""Every error that venire raises on purpose, in one tree.

    VenireError
    ├── InputError (ValueError)      a value from outside is wrong
    │   ├── FileError                … and it came from a file: names file, line and remedy
    │   └── UnknownName              … and it is a name nobody knows: says which ones are known
    ├── StateError (RuntimeError)    a verb was called out of turn
    │   └── ReplayError              an event log does not replay to what it recorded
    ├── FetchError (OSError)         a data set could not be downloaded
    └── MissingExtra (ImportError)   an optional dependency is not installed

A message says what was got, what was expected and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "FetchError",
    "FileError",
    "InputError",
    "MissingExtra",
    "ReplayError",
    "StateError",
    "UnknownName",
    "VenireError",
]


class VenireError(Exception):
    """The root of the tree: `except VenireError` catches all that venire raises on purpose."""


class InputError(VenireError, ValueError):
    """A value from outside is wrong."""


class FileError(InputError):
    """A file says something that cannot be used.

    >>> print(FileError("items.csv", 3, "weight is 0, expected a number above 0"))
    items.csv, line 3: weight is 0, expected a number above 0
    """

    def __init__(self, path: str | Path, line: int | None, message: str) -> None:
        """Name the file, the line (the first is 1; None for the file as a whole) and the fault."""
        self.path, self.line = Path(path), line
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}")


class UnknownName(InputError):
    """A name that nobody knows.

    >>> print(UnknownName("policy", "gredy", ["greedy", "random"]))
    unknown policy 'gredy': did you mean 'greedy'? Known: greedy, random
    """

    def __init__(self, kind: str, got: str, known: Iterable[str]) -> None:
        """Say what kind of name was got, and suggest the nearest of the known ones."""
        names = sorted(known)
        near = difflib.get_close_matches(got, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {got!r}: {hint}Known: {', '.join(names)}")


class StateError(VenireError, RuntimeError):
    """A verb was called out of turn; the state is as it was before the call."""


class ReplayError(StateError):
    """An event log does not replay to what it recorded."""


class FetchError(VenireError, OSError):
    """A data set could not be downloaded, or is not what it was; says what to do."""


class MissingExtra(VenireError, ImportError):
    """An optional dependency is not installed.

    >>> print(MissingExtra("matplotlib", "plot"))
    matplotlib is not installed. Install it with: pip install 'venire[plot]'
    """

    def __init__(self, package: str, extra: str) -> None:
        """Name the package that is missing and the extra that brings it."""
        super().__init__(
            f"{package} is not installed. Install it with: pip install 'venire[{extra}]'"
        )
