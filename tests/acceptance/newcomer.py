"""Somebody who pastes the blocks of a page, in order, as a newcomer would.

python -m tests.acceptance.newcomer docs/tutorials/own-policy.md    # prints what each block says

`sh` blocks are run by bash; a block that begins with `venire serve` starts the server, one that
begins with `export VENIRE` tells where it is, and one that ends in & keeps running. `python` and
`yaml` blocks are files to save: their first line is a comment with the name. A block without a
language is what the block before it printed. A comment `<!-- ann labels -->` is the place where a
person labels until there is nothing more to label.
"""

from __future__ import annotations

import csv
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import venire
from tests.integration.server.harness import Process, until
from venire import Client
from venire.client import ServerError, Work

ROOT = Path(__file__).parent.parent.parent
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$|^<!-- ([\w, ]+) labels -->$", flags=re.S | re.M)
BACKGROUND = re.compile(r"(.*) &$")


class Block(NamedTuple):
    """A fenced block: its language, or `shown` for output, or `people` who label."""

    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in order.

    >>> blocks_of("```sh\\nls\\n```\\n\\n```\\na.txt\\n```\\n\\n<!-- ann, bob labels -->\\n")
    [Block(language='sh', text='ls\\n'), Block(language='shown', text='a.txt\\n'), \
Block(language='people', text='ann, bob')]
    """
    return [
        Block("people", people) if people else Block(language or "shown", text)
        for language, text, people in FENCE.findall(page)
    ]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Newcomer:
    """Somebody with a folder, two terminals, and the page."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said = folder, [""]
        self.port, self.judges_port = free_port(), free_port()
        self.server = Process("sqlite:///venire.db", folder, port=self.port)
        self.background: list[subprocess.Popen[str]] = []
        scripts = folder / "bin"
        scripts.mkdir()
        for name, command in (
            ("venire", f"{sys.executable} -m venire"),
            ("python", sys.executable),
        ):
            (scripts / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (scripts / name).chmod(0o755)
        source = os.pathsep.join([str(Path(venire.__file__).parent.parent), str(ROOT)])
        path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "PYTHONPATH": source, "COLUMNS": "100"}

    def paste(self, language: str, block: str) -> None:
        """Do what a block is for; what it prints is the last of `said`."""
        block = block.replace("8765", str(self.judges_port))
        if language in ("python", "yaml"):
            named = re.match(r"# ([\w-]+\.\w+)\n", block)
            (self.folder / (named[1] if named else "judges.py")).write_text(block)
        elif language == "people":
            self.label(block.split(", "))
        elif block.startswith("venire serve"):
            if self.server.process is not None:
                assert self.server.stop() == 0
            self.server.start()
        elif block.startswith("export VENIRE"):
            self.env |= {"VENIRE_URL": self.server.url, "VENIRE_KEY": self.server.key}
        elif block.startswith("export PYTHONPATH"):
            assert str(ROOT) in self.env["PYTHONPATH"]
        elif language == "sh" and (stays := BACKGROUND.fullmatch(block.strip())):
            self.leave_running(stays[1])
        elif language == "sh":
            self.said.append(self.shell(block))

    def shell(self, block: str) -> str:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, (block, done.stdout, done.stderr)
        assert '"error"' not in done.stdout, (block, done.stdout)
        return done.stdout

    def leave_running(self, command: str) -> None:
        """One command in a terminal of its own; its first line says that it is ready."""
        started = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.background.append(started)
        assert started.stdout is not None
        self.said.append(started.stdout.readline())
        assert started.poll() is None, command

    def label(self, people: list[str]) -> None:
        """People at the labelling page, each with a key of their own, all at once."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(self._label_as, people))

    def _label_as(self, name: str) -> None:
        """What the page does: take an item, show it, send the answer; right nine times in ten."""
        truth = {row["item"]: row["label"] for row in rows_of(self.folder / "truth.csv")}
        classes = sorted(set(truth.values()))
        draw = random.Random(name)
        key = (self.folder / f"{name}.key").read_text().strip()
        with self.server.client(key) as client:
            until(lambda: self._signed_in(client))
            (stream,) = client.streams()
            while isinstance(work := client.next(stream["name"], wait=4), Work):
                right = truth[work.item]
                wrong = draw.choice([other for other in classes if other != right])
                client.label(work.token, right if draw.random() < 0.9 else wrong)

    def _signed_in(self, client: Client) -> bool:
        """Whether the server knows the key: it learns of a new one within seconds."""
        try:
            return bool(client.streams())
        except ServerError as error:
            if error.code != "unknown_key":
                raise
            return False

    def close(self) -> None:
        """Close the terminals."""
        for started in self.background:
            started.terminate()
            started.wait(280)
            if started.stdout is not None:
                started.stdout.close()
        if self.server.process is not None:
            self.server.stop()


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _show(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        newcomer = Newcomer(Path(folder))
        try:
            for language, block in blocks_of(page.read_text()):
                if language == "shown":
                    continue
                start, count = time.monotonic(), len(newcomer.said)
                newcomer.paste(language, block)
                print(f"--- {block.splitlines()[0]}  ({time.monotonic() - start:.1f} s)")  # noqa: T201
                print("".join(newcomer.said[count:]), flush=True)  # noqa: T201
        finally:
            newcomer.close()


if __name__ == "__main__":
    _show(Path(sys.argv[1]))
