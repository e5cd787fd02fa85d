r"""Answers on disk, by content, so that a second run costs nothing.

The file is text, one answer a line: the SHA-256 of everything that was asked (model, address,
messages, parameters, which vote), a space, and the answer as JSON. Lines are only ever appended,
each with one write, so that a crash loses at most the line it was writing; what is not a whole line
is skipped. Only labels are kept, never faults. Neither prompts nor keys are in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from venire.errors import FileError
from venire.tools.untrusted import parse_json

_HEX = 64


def digest(asked: Mapping[str, Any]) -> str:
    """The name under which the answer to a question is kept.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}) != digest({"a": 1})
    True
    """
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Cache:
    """Answers by the digest of what was asked, in a file or, without a path, in memory.

    >>> cache = Cache()
    >>> cache.put("0" * 64, {"label": "spam"})
    >>> cache.get("0" * 64), cache.get("1" * 64)
    ({'label': 'spam'}, None)
    """

    def __init__(self, path: str | Path | None = None, late: bool = False) -> None:
        """Read what is there; the file and its folder are made if they are not.

        `late` says that new answers are written by `save`: those of batches are kept elsewhere with
        what they cost until the run has ended.
        """
        self._late: list[bytes] | None = [] if late else None
        self._answers: dict[bytes, bytes] = {}
        self._file: int | None = None
        if path is not None:
            self._open(Path(path))

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer, if it is known."""
        text = self._answers.get(bytes.fromhex(key))
        return None if text is None else json.loads(text)

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Keep an answer."""
        text = json.dumps(answer, separators=(",", ":")).encode()
        self._answers[bytes.fromhex(key)] = text
        line = b"%s %s\n" % (key.encode(), text)
        if self._late is not None:
            self._late.append(line)
        elif self._file is not None:
            os.write(self._file, line)

    def save(self) -> None:
        if self._late and self._file is not None:
            os.write(self._file, b"".join(self._late))
            self._late.clear()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __len__(self) -> int:
        return len(self._answers)

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            held = path.read_bytes()
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            message = f"the cache cannot be opened ({why}): give another path with --cache"
            raise FileError(path, None, message) from None
        for line in held.splitlines():
            self._take(line)
        if held and not held.endswith(b"\n"):
            os.write(self._file, b"\n")  # a crash cut the last line short

    def _take(self, line: bytes) -> None:
        try:
            key = bytes.fromhex(line[:_HEX].decode())
            answer = parse_json(line[_HEX:])
        except ValueError:
            return
        if len(key) == _HEX // 2 and isinstance(answer, dict):
            self._answers[key] = line[_HEX + 1 :]
