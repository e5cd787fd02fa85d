"""Shows what is being compiled, which takes a minute or more the first time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from numba.core import event
from rich.console import Console
from rich.status import Status

from venire.tools.compiling import Notice

__all__ = ["compiling"]

#: Seconds between two lines where there is no terminal, and so no spinner.
_EVERY: Final = 15.0


@contextmanager
def compiling(console: Console, what: str) -> Iterator[Status]:
    """A spinner with the function that is being compiled and how many were; lines elsewhere.

    >>> with compiling(Console(), "what the demo needs"):
    ...     pass
    """
    Notice.given = True
    with console.status(what) as status:
        shown = _Shown(console, status, what)
        with event.install_listener("numba:compile", shown):
            yield status


class _Shown(event.Listener):
    """Hears of each function that is not in the cache and has to be compiled."""

    def __init__(self, console: Console, status: Status, what: str) -> None:
        self._console, self._status, self._what = console, status, what
        self._count, self._told = 0, time.monotonic()

    def on_start(self, begun: event.Event) -> None:
        """A function is being compiled."""
        self._count += 1
        name = begun.data["dispatcher"].py_func.__name__
        said = f"Compiling, the first time only: {self._what}, function {self._count} ({name})"
        self._status.update(said)
        if not self._console.is_terminal and time.monotonic() - self._told > _EVERY:
            self._told = time.monotonic()
            self._console.print(said, markup=False, highlight=False)

    def on_end(self, ended: event.Event) -> None:
        """It is compiled."""
