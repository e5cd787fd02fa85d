"""Every error that venire raises on purpose, in one tree.

    VenireError
    ├── InputError (ValueError)      a value from outside is wrong
    │   ├── FileError                … in a file: names file, line and remedy
    │   └── UnknownName              … an unknown name: lists the known ones
    ├── NotFound (LookupError)       there is no such stream, item, assignment, webhook or key
    ├── Archived (LookupError)       it is not in the store any more, but in the archive
    ├── StateError (RuntimeError)    the state does not allow the call
    │   ├── Conflict                 it contradicts what is already there
    │   └── ReplayError              an event log does not replay to what it recorded
    ├── TooMuch (RuntimeError)       a limit is reached: retry later, or send less
    ├── StoreError (OSError)         the store cannot be used: damaged, or by a newer version
    │   └── StoreDown                … for now: disk full, database gone; retry
    │       ├── StreamElsewhere      … a stream: another server owns it, or is about to
    │       └── StreamLoading        … a stream: it is still being loaded
    ├── StreamDown (RuntimeError)    a stream is set aside: it cannot be loaded
    ├── NotNow                       a labeler cannot answer now: ask again later
    ├── GaveUp                       a labeler will not answer any more
    ├── FetchError (OSError)         a data set could not be downloaded
    └── MissingExtra (ImportError)   an optional dependency is not installed

A message says what was got, what was expected and what to do.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Self

__all__ = [
    "Archived",
    "Conflict",
    "FetchError",
    "FileError",
    "GaveUp",
    "InputError",
    "MissingExtra",
    "NotFound",
    "NotNow",
    "ReplayError",
    "StateError",
    "StoreDown",
    "StoreError",
    "StoreInUse",
    "StreamDown",
    "StreamElsewhere",
    "StreamLoading",
    "TooMuch",
    "UnknownName",
    "VenireError",
]


class VenireError(Exception):
    """The root of the tree: `except VenireError` catches all that venire raises on purpose."""


class InputError(VenireError, ValueError):
    """A value from outside is wrong."""


class FileError(InputError):
    """A file cannot be read, or has invalid content.

    >>> print(FileError("items.csv", 3, "weight is 0, expected a number above 0"))
    items.csv, line 3: weight is 0, expected a number above 0
    """

    def __init__(self, path: str | PathLike[str], line: int | None, message: str) -> None:
        """Name the file, the line (the first is 1; None for the file as a whole) and the fault."""
        self.path, self.line, self.why = Path(path), line, message
        where = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {message}")

    @classmethod
    def unreadable(cls, path: str | PathLike[str], error: OSError) -> Self:
        """The error about a file that the system does not let be read.

        >>> print(FileError.unreadable("items.csv", PermissionError(13, "Permission denied")))
        items.csv: cannot be read (permission denied): check the path
        """
        reason = (error.strerror or str(error)).lower()
        return cls(path, None, f"cannot be read ({reason}): check the path")


class UnknownName(InputError):
    """An unknown name.

    >>> print(UnknownName("policy", "gredy", ["greedy", "random"]))
    unknown policy 'gredy': did you mean 'greedy'? Known: greedy, random
    >>> print(UnknownName("policy", "mine", ["greedy", "random"]))
    unknown policy 'mine'; known: greedy, random
    """

    def __init__(self, kind: str, got: str, known: Iterable[str]) -> None:
        """Say what kind of name was got, and suggest the nearest of the known ones."""
        names = sorted(known)
        near = difflib.get_close_matches(got, names, n=1)
        hint = f": did you mean {near[0]!r}? Known: " if near else "; known: "
        super().__init__(f"unknown {kind} {got!r}{hint}{', '.join(names)}")


class NotFound(VenireError, LookupError):
    """What was asked for does not exist.

    >>> print(NotFound("stream", "posts"))
    there is no stream 'posts'
    """

    def __init__(self, kind: str, got: str | None, hint: str = "") -> None:
        """Say what was looked for, and under which name; None for one that is not to be shown."""
        self.kind, self.got = kind, got
        what = f"such {kind}" if got is None else f"{kind} {got!r}"
        super().__init__(f"there is no {what}{': ' if hint else ''}{hint}")


class Archived(VenireError, LookupError):
    """What was asked for has left the store: it is in the archive, or was deleted."""


class StateError(VenireError, RuntimeError):
    """The state does not allow the call; nothing was changed."""


class Conflict(StateError):
    """The call contradicts what is already there; nothing was changed."""


class ReplayError(StateError):
    """An event log does not replay to what it recorded."""


class TooMuch(VenireError, RuntimeError):
    """A limit is reached: retry after `retry_after` seconds; None: send less.

    >>> TooMuch("200 requests are waiting, at most 200 may", retry_after=2).retry_after
    2
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        """Say which limit, and when to retry."""
        self.retry_after = retry_after
        super().__init__(message)


class StoreError(VenireError, OSError):
    """The store cannot be used: it is damaged, locked by another server, or of a newer version."""


class StoreInUse(StoreError):
    """Another server owns the store."""


class StoreDown(StoreError):
    """The store cannot be written to for now. Send the request again: nothing counts twice.

    A request of many items or labels may have been done in part, and one whose answer was lost
    may have been done as a whole.

    >>> StoreDown("the disk is full").retry_after
    1.0
    """

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        """Say what is wrong with the store, and when to retry."""
        self.retry_after = retry_after
        super().__init__(message)


class StreamElsewhere(StoreDown):
    """Another server owns the stream, or nobody does for now: nothing was done here.

    >>> StreamElsewhere("posts").stream
    'posts'
    """

    def __init__(self, stream: str) -> None:
        """Say which stream."""
        self.stream = stream
        super().__init__(f"stream {stream!r} is not on this server at the moment: try again")


class StreamLoading(StoreDown):
    """A stream is still being loaded, or what it runs on compiled: nothing was done.

    >>> StreamLoading("posts").retry_after
    2.0
    >>> print(StreamLoading(compiling=12.0))
    what such a stream runs on is being compiled, which takes about 12 s more: try again
    """

    def __init__(self, stream: str | None = None, compiling: float | None = None) -> None:
        """Say which stream, None for several; or how many more seconds the compiler may take."""
        self.stream = stream
        what = "streams are" if stream is None else f"stream {stream!r} is"
        message = f"{what} still being loaded"
        if compiling is not None:
            message = "what such a stream runs on is being compiled, which takes about "
            message += f"{compiling:.0f} s more"
        super().__init__(f"{message}: try again", retry_after=compiling or 2.0)


class StreamDown(VenireError, RuntimeError):
    """A stream is set aside: it cannot be loaded. The other streams are served.

    >>> print(StreamDown("posts", "event 7 does not replay"))
    stream 'posts' is set aside: event 7 does not replay
    """

    def __init__(self, stream: str, why: str) -> None:
        """Say which stream, and what is wrong with it."""
        self.stream = stream
        super().__init__(f"stream {stream!r} is set aside: {why}")


class NotNow(VenireError):
    """Raised by a labeler that cannot answer now, but may later.

    A worker releases the item, which may be assigned to the same labeler again; a batch goes on
    without that label, and a later run asks again.
    """


class GaveUp(VenireError):
    """Raised by a labeler that cannot answer any more: it is not asked again."""


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
