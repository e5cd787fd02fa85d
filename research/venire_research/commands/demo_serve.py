"""`venire demo --serve`: the demo's stream as a console in the browser, labelled while one watches.

An ordinary server on a store of its own, in a folder that is removed at the end. The demo's
labelers are clients of it, in a thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
import threading
import time
import urllib.request
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from venire.cli.shared.screen import compiling
from venire.errors import InputError
from venire.server.edge.settings import ServerSettings
from venire.server.process import run_server
from venire_research.commands.demo_history import HISTORY, Opened, live_through
from venire_research.digits import DigitJob, Progress, load_job
from venire_research.digits.crowd import Crowd
from venire_research.digits.served import STREAM, arrivals
from venire_research.digits.view import introduce

__all__ = ["serve_demo"]

#: What the server says before its address.
_LISTENING: Final = "listening on "

#: Seconds between two lines about the verdicts.
_EVERY: Final = 10.0


def serve_demo(
    console: Console, seed: int = 0, port: int = 0, browser: bool = True, keep: Path | None = None
) -> None:
    """Serve the demo until Ctrl-C; `keep` is a folder for the store, which else is removed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does
    with _folder(keep) as folder:
        console.print("Training 12 weak labelers on 600 digits; 1,197 others are the stream.")
        job = load_job()
        introduce(job, console)
        slots, url = arrivals(job, seed), f"sqlite:///{folder / 'venire.db'}"
        opened = _past(console, url, job, slots[:HISTORY])
        settings = ServerSettings(
            storage=url, host="127.0.0.1", port=port, standby=False, log_level="warning"
        )
        show = _Show(console, job, opened, slots, browser, keep)
        try:
            run_server(settings, show.hear)
        finally:
            show.end()
    console.print("The demo has ended.")


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """The folder of the store."""
    if keep is not None:
        store = keep / "venire.db"
        if store.exists():
            raise InputError(
                f"{store} exists, from an earlier --keep: move it, or look at it with "
                f"`venire serve --storage sqlite:///{store}`"
            )
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="venire-demo-") as folder:
        yield Path(folder)


def _past(
    console: Console, url: str, job: DigitJob, slots: Sequence[Sequence[dict[str, object]]]
) -> Opened:
    """Live through the first slots, saying how far it is."""
    console.print("The first minutes of the stream, in quick motion.")
    with compiling(console, "the server") as status:

        def tell(done: int) -> None:
            status.update(f"Slot {done} of {len(slots)}")
            if not console.is_terminal and done % 25 == 0:  # no spinner there
                console.print(f"Slot {done} of {len(slots)}.", highlight=False)

        return asyncio.run(live_through(url, job, slots, tell))


class _Show:
    """What follows when the server listens: the labelers, the browser, and some words."""

    def __init__(
        self,
        console: Console,
        job: DigitJob,
        opened: Opened,
        slots: Sequence[Sequence[dict[str, object]]],
        browser: bool,
        keep: Path | None,
    ) -> None:
        self._console, self._job, self._opened = console, job, opened
        self._total, self._slots = sum(map(len, slots)), slots[HISTORY:]
        self._browser, self._keep = browser, keep
        self._loop = asyncio.new_event_loop()
        self._crowd: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._told = time.monotonic()

    def hear(self, line: str) -> None:
        """What the server says."""
        if line.startswith(_LISTENING):
            url = line.removeprefix(_LISTENING)
            self._thread = threading.Thread(target=self._begin, args=(url,), daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Send the labelers home."""
        if self._thread is not None and self._crowd is not None:
            self._loop.call_soon_threadsafe(self._crowd.cancel)
            self._thread.join(10)
        self._loop.close()

    def _explain(self, url: str) -> None:
        link = f"{url}/sign-in?link={self._opened.link}"
        kept = f"keeps its store, {self._keep}/venire.db" if self._keep else "removes its store"
        for line in (
            "",
            f"The console: {link}",
            "             (signs you in, once; afterwards, or elsewhere, use the key)",
            f"Admin key:   {self._opened.admin}",
            f"Label, too:  {url}/work?stream={STREAM}&labeler=you",
            f"Ctrl-C ends the demo and {kept}.",
            "",
        ):
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        if self._browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()

    def _begin(self, url: str) -> None:
        try:
            while _is_loading(url):
                time.sleep(0.05)
        except OSError:  # the demo was ended
            return
        self._explain(url)
        self._work(url)

    def _work(self, url: str) -> None:
        crowd = Crowd(self._job, url, self._opened.keys, self._slots, self._tell)
        self._crowd = self._loop.create_task(crowd.work())
        try:
            self._loop.run_until_complete(self._crowd)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # the console still shows what there is
            self._console.print(f"The labelers have stopped: {error!r}", markup=False)

    def _tell(self, now: Progress) -> None:
        total, moment = self._total, time.monotonic()
        if moment - self._told < _EVERY and now.verdicts < total:
            return
        self._told = moment
        said = f"{now.verdicts:,} of {total:,} images have a verdict, {now.accuracy:.1%} are right"
        self._console.print(said, highlight=False)


def _is_loading(url: str) -> bool:
    """Whether the stream is not in the server's memory yet: the console would be empty."""
    with urllib.request.urlopen(f"{url}/health", timeout=60) as answer:
        return "loading" in json.load(answer)


def _has_screen() -> bool:
    """Whether there is a screen for a browser; a text browser in the terminal is of no use."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform in ("darwin", "win32") or any(map(os.environ.get, screens))
