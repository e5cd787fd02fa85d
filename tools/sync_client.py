"""Make the synchronous client of the asynchronous one: `scripts/generate`.

Only `AsyncClient` is written by hand. Its source, with `await` and `async` taken out and a few
words replaced, is the source of `Client`. `python -m tools.sync_client --check` changes nothing,
and fails if the file is not what this gives.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["generated", "home_of", "main", "synchronous"]

ROOT: Final = Path(__file__).parent.parent
HEADER: Final = "# Generated from AsyncClient by scripts/generate; do not edit.\n"

#: What stands for what, in this order; whole words, in the code and in its docstrings.
REPLACEMENTS: Final = (
    (r"\b(?:async|await) ", ""),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\basyncio\b", "time"),
)


def home_of(kind: str) -> Path:
    """The file of the package `client` that defines a class."""
    files = sorted((ROOT / "src" / "venire" / "client").glob("*.py"))
    found = [path for path in files if f"\nclass {kind}:\n" in path.read_text()]
    if len(found) != 1:
        raise SystemExit(f"{len(found)} files in {files[0].parent} define {kind}, expected one")
    return found[0]


def synchronous(source: str) -> str:
    r"""Source that does one thing after another, of source that awaits.

    >>> synchronous("async def close(self):\n    await asyncio.sleep(1)\n")
    'def close(self):\n    time.sleep(1)\n'
    """
    for pattern, word in REPLACEMENTS:
        source = re.sub(pattern, word, source)
    return source


def generated() -> str:
    """What the file of the synchronous client must hold."""
    text = HEADER + synchronous(home_of("AsyncClient").read_text())
    sort = ("check", "--fix", "--quiet", "--select", "I")
    return _ruff(_ruff(text, *sort), "format", "--quiet")


def _ruff(text: str, *command: str) -> str:
    """What ruff makes of a text, as if it were in the target."""
    name = "--stdin-filename", str(home_of("Client")), "-"
    whole = [sys.executable, "-m", "ruff", *command, *name]
    done = subprocess.run(whole, input=text, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(f"ruff failed on what was generated:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, or say whether it is as it must be."""
    parser = argparse.ArgumentParser(description="Make the synchronous client.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if it differs")
    check, target, text = parser.parse_args(arguments).check, home_of("Client"), generated()
    if check and target.read_text() != text:
        where = target.relative_to(ROOT)
        print(f"{where} is not what AsyncClient gives: run scripts/generate", file=sys.stderr)
        return 1
    if not check:
        target.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
