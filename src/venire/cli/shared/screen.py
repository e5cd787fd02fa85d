"""Messages and progress of the command line, on stderr; what is being compiled."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


#: Called with the number done and the total.
Progress: TypeAlias = Callable[[int, int], None]

#: The exit code after Ctrl-C, by the convention of shells.
INTERRUPTED = 130

#: Characters of a message: what is wrong with a file may quote all of it.
LONGEST = 2_000


def say(message: str) -> None:
    """Print a message on stderr, as one line."""
    line = " ".join(message.split())
    if len(line) > LONGEST:
        line = f"{line[:LONGEST]}… ({len(line) - LONGEST:,} more characters)"
    print(line.encode(errors="backslashreplace").decode(), file=sys.stderr)


def fail(message: str) -> int:
    """Print an error; returns the exit code."""
    say(f"error: {message}")
    return 2


def warn(message: str) -> None:
    say(f"warning: {message}")


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    warn(str(message))


@contextmanager
def bar(total: int, unit: str = "slot", last: str = "adding up") -> Iterator[Progress | None]:
    """A progress bar for `progress=...`; None if stderr is not a terminal.

    It shows how many of `unit` are done, and `last` at the end.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting (the first run compiles, about 10 s)", total=total)

        def update(done: int, of: int) -> None:
            words = last if done >= of else f"{unit} {done:,} of {of:,}"
            progress.update(task, completed=done, total=of, description=words)

        yield update


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner with what is being done, and for how long; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda what: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = rich.SpinnerColumn(), rich.TextColumn("{task.description}"), rich.TimeElapsedColumn()
    with rich.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda what: progress.update(task, description=what)


#: Seconds between two lines where there is no terminal, and so no spinner.
_EVERY: Final = 15.0


@contextmanager
def compiling(console: Console, what: str) -> Iterator[Status]:
    """A spinner with the function that is being compiled and how many were; lines elsewhere.

    >>> from rich.console import Console
    >>> with compiling(Console(), "what the demo needs"):
    ...     pass
    """
    from numba.core import event

    from venire.tools.compiling import Notice

    class Shown(event.Listener):
        """Hears of each function that is not in the cache and has to be compiled."""

        count, told = 0, time.monotonic()

        def on_start(self, begun: Any) -> None:
            """A function is being compiled."""
            self.count += 1
            name = begun.data["dispatcher"].py_func.__name__
            said = f"Compiling, the first time only: {what}, function {self.count} ({name})"
            status.update(said)
            if not console.is_terminal and time.monotonic() - self.told > _EVERY:
                self.told = time.monotonic()
                console.print(said, markup=False, highlight=False)

        def on_end(self, ended: Any) -> None:
            """It is compiled."""

    Notice.given = True
    with console.status(what) as status, event.install_listener("numba:compile", Shown()):
        yield status
