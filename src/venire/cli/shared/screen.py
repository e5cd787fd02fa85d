"""Messages and progress of the command line, on stderr; what is being compiled; Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status
    from rich.table import Table


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


def show(
    record: Any,
    lines: Iterable[str | Table],
    as_json: bool,
    width: int | None = None,
    default: Callable[[Any], Any] | None = None,
) -> None:
    """Print what was found: the record as JSON, or lines and tables for people.

    A record that takes work may be a function that makes it. `default` brings what JSON lacks,
    such as a task that is a date, into a form that it has.
    """
    if as_json:
        made = record() if callable(record) else record
        print(json.dumps(made, indent=2, allow_nan=False, default=default))
        return
    for line in lines:
        if isinstance(line, str):
            print(line)
        else:
            from rich.console import Console

            plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
            Console(**plain, soft_wrap=True, width=width).print(line)


def finite(value: float | None) -> float | None:
    """A number for JSON, which has neither infinities nor NaN: None in their place.

    >>> finite(0.5), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and isfinite(value) else None


def table(
    heads: Sequence[str], rows: Iterable[Iterable[str]], words: Collection[str] = ()
) -> Table:
    """Rows below headings: the first column and those of `words` to the left, numbers to the right.

    >>> show(None, [table(["labeler", "skill"], [["ann", "0.9"], ["bob", "0.75"]])], False)
    labeler  skill
    ann        0.9
    bob       0.75
    """
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    for i, name in enumerate(heads):
        left = i == 0 or name in words
        made.add_column(name, justify="left" if left else "right", no_wrap=i == 0 or not left)
    for row in rows:
        made.add_row(*row)
    return made


@contextmanager
def interruptible() -> Iterator[None]:
    """Where a Ctrl-C that comes while Python frees an object is not lost: it comes again.

    What is raised in a `__del__`, or in a callback of a weak reference, is printed and ignored.
    """
    told, inside = sys.unraisablehook, False

    def hook(raised: sys.UnraisableHookArgs) -> None:
        nonlocal inside
        if raised.exc_type is not KeyboardInterrupt or not hasattr(signal, "pthread_kill"):
            told(raised)
            return
        inside = True
        try:
            threading.Thread(target=again, args=[threading.get_ident()], daemon=True).start()
        finally:
            inside = False  # the last step: Python looks for signals after calls and jumps

    def again(thread: int) -> None:
        while inside:  # where it would be lost once more
            time.sleep(0.001)
        signal.pthread_kill(thread, signal.SIGINT)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = told


@contextmanager
def progress(text: str, total: float | None) -> Iterator[Callable[..., None] | None]:
    """A bar on stderr, or a spinner without a total, and how to update it; None: no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    words = rich.TextColumn("{task.description}")
    columns = (rich.SpinnerColumn(), words) if total is None else (words, rich.BarColumn())
    console = Console(stderr=True)
    with rich.Progress(*columns, rich.TimeElapsedColumn(), console=console, transient=True) as bars:
        yield partial(bars.update, bars.add_task(text, total=total))


@contextmanager
def bar(total: int, unit: str = "slot", last: str = "adding up") -> Iterator[Progress | None]:
    """A bar for `progress=...`: how many of `unit` are done, and `last` at the end."""
    with progress("starting", total) as update:

        def advance(done: int, of: int) -> None:
            words = last if done >= of else f"{unit} {done:,} of {of:,}"
            if update is not None:
                update(completed=done, total=of, description=words)

        yield None if update is None else advance


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner with what is being done, and for how long; nothing without a terminal."""
    with progress(what, None) as update:
        yield lambda what: None if update is None else update(description=what)


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

        count, printed = 0, time.monotonic()

        def on_start(self, begun: Any) -> None:
            """A function is being compiled."""
            self.count += 1
            name = begun.data["dispatcher"].py_func.__name__
            line = f"Compiling, the first time only: {what}, function {self.count} ({name})"
            status.update(line)
            if not console.is_terminal and time.monotonic() - self.printed > _EVERY:
                self.printed = time.monotonic()
                console.print(line, markup=False, highlight=False)

        def on_end(self, ended: Any) -> None:
            """It is compiled."""

    Notice.given = True
    with console.status(what) as status, event.install_listener("numba:compile", Shown()):
        yield status
