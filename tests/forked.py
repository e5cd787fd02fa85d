"""The `venire` command in processes of their own, without importing everything in each.

A process that has imported venire and loaded its kernels (`tests.preloaded`) stands by, and each
command is a fork of it. So a server is there after a tenth of the work that `python -m venire`
takes, which counts in tests that start dozens. It is killed, stopped and waited for like any other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from venire.cli import main

FORKS = get_context("forkserver") if sys.platform == "linux" else None


class Forked:
    """A command that runs; the part of `subprocess.Popen` that the tests use.

    What it says goes to `stdout`, what is wrong to the open file `log`; if not `piped`, both.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: dict[str, str],
        log: int,
        piped: bool = True,
    ) -> None:
        assert FORKS is not None
        FORKS.set_forkserver_preload(["tests.preloaded"])
        read, write = FORKS.Pipe(duplex=False)
        error = Connection(os.dup(log), readable=False)
        files = (write if piped else error, error)
        self._process = FORKS.Process(
            target=_run, args=(command, str(folder), env, *files), daemon=True
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


def _run(
    command: Sequence[str], folder: str, env: dict[str, str], out: Connection, error: Connection
) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    for connection, descriptor in ((out, 1), (error, 2)):
        os.dup2(connection.fileno(), descriptor)
    sys.exit(main(list(command)))
