"""The `venire` command in processes of their own, without importing everything in each (`run`).

A process that has imported venire and loaded its kernels (`tests.preloaded`) stands by, and each
command is a fork of it. So a server is there after a tenth of the work that `python -m venire`
takes, which counts in tests that start dozens. It is killed, stopped and waited for like any other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer
from typing import IO, Any

import venire
from venire.cli import main

FORKS = get_context("forkserver") if sys.platform == "linux" else None


class Forked:
    """A command that runs; the part of `subprocess.Popen` that the tests use.

    What it says goes to `stdout`, what is wrong to the open file `log`; if not `piped`, both.
    Only one that may have `children` can start processes.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: dict[str, str],
        log: int,
        piped: bool = True,
        children: bool = False,
    ) -> None:
        assert FORKS is not None
        FORKS.set_forkserver_preload(["tests.preloaded"])
        read, write = FORKS.Pipe(duplex=False)
        error = Connection(os.dup(log), readable=False)
        files = (write if piped else error, error)
        self._process = FORKS.Process(
            target=_run, args=(command, str(folder), env, *files), daemon=not children
        )
        self._process.start()
        write.close()
        error.close()
        self.stdout: IO[str] | None = None
        if piped:
            self.stdout = os.fdopen(os.dup(read.fileno()), encoding="utf-8")
        read.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("venire", timeout or 0.0)
        return code

    def send_signal(self, sign: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sign)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextmanager
def started(command: Sequence[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """`subprocess.Popen`, killed when something goes wrong: that would wait for its end forever."""
    with subprocess.Popen(command, **more) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def run(
    folder: Path,
    *command: str,
    timeout: float = 280,
    begun: Callable[[Forked | subprocess.Popen[str]], None] = lambda process: None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run a `venire` command in a folder to its end; `more` is added to the environment.

    `begun` is told which process it is.
    """
    colours = {"FORCE_COLOR", "TTY_COMPATIBLE"}
    env = {name: value for name, value in os.environ.items() if name not in colours} | more
    env["PYTHONPATH"] = str(Path(venire.__file__).parents[1])
    if FORKS is None:
        whole, pipe = [sys.executable, "-m", "venire", *command], subprocess.PIPE
        with started(
            whole, cwd=folder, env=env, stdout=pipe, stderr=pipe, encoding="utf-8"
        ) as plain:
            begun(plain)
            said, wrong = plain.communicate(timeout=timeout)
        return subprocess.CompletedProcess(command, plain.returncode, said, wrong)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log:
        process = Forked(command, folder, env, log.fileno(), children=True)
        begun(process)
        assert process.stdout is not None
        limit = Timer(timeout, process.kill)
        limit.start()
        with process.stdout:
            said = process.stdout.read()
        code = process.wait()
        limit.cancel()
        log.seek(0)
        return subprocess.CompletedProcess(command, code, said, log.read())


def _run(
    command: Sequence[str], folder: str, env: dict[str, str], out: Connection, error: Connection
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    for connection, descriptor in ((out, 1), (error, 2)):
        os.dup2(connection.fileno(), descriptor)
    sys.exit(main(list(command)))
