"""A newcomer's run, timed step by step: python -m benchmarks first-run [--keep DIR].

The committed state of this repository is cloned into an empty folder, and `sh scripts/demo` is run
there, on a terminal. Written down is when each thing is first on the screen, in seconds since the
step before and in CPU seconds of all processes of the run; and the longest time in which nothing
on the screen changed once the installation was over. On a machine that does other things as well,
the CPU seconds say what an idle one would need at least.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: What is on the screen when a step has begun.
STEPS = (
    ("virtual environment", "Installing requirements"),
    ("installation, up to the first words", "Training"),
    ("first picture: images and labelers", "what each labeler says"),
    ("compiled; the stream is being labelled, live", "slot 0 of 400"),
    ("stream labelled (an animation of 8 s)", "slot 400 of 400"),
    ("other methods compiled", "Labelling the same streams"),
    ("the table", "Mean over"),
)


def cpu_seconds(session: int) -> float:
    """What the processes of a session have used, with their children that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def watch(folder: Path) -> int:
    """Run the demo on a terminal of 100 x 40 characters, and say when each step is reached."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvp("sh", ["sh", "scripts/demo"])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    steps, begun, screen = list(STEPS), time.monotonic(), ""
    last, silent, quiet_since, used = begun, 0.0, begun, 0.0
    while True:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            said = os.read(terminal, 65536).decode(errors="replace")
        except OSError:
            break
        now = time.monotonic()
        if len(steps) < len(STEPS) - 1:
            silent = max(silent, now - quiet_since)
        quiet_since, screen = now, (screen + said)[-20_000:]
        while steps and steps[0][1] in screen:
            cpu = cpu_seconds(child)
            print(f"{steps.pop(0)[0]:48}{now - last:8.1f}{cpu - used:8.1f}", flush=True)
            last, used = now, cpu
    print(f"{'in all':48}{time.monotonic() - begun:8.1f}{used:8.1f}")
    print(f"longest time without any change on the screen: {silent:.1f} s")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(arguments: list[str]) -> None:
    """Clone, and watch."""
    parser = argparse.ArgumentParser(prog="first-run")
    parser.add_argument("--keep", type=Path, default=None)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        clone = (options.keep or Path(scratch)) / "venire"
        begun = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        print(f"{'':48}{'seconds':>8}{'CPU':>8}")
        print(f"{'clone':48}{time.monotonic() - begun:8.1f}", flush=True)
        raise SystemExit(watch(clone))
