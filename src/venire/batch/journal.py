r"""The journal: every answer that was paid for, on disk before the next one is asked for.

A file of JSON Lines. The first line names the items by a digest; each other line is an answer:
item, labeler, label (null: there was none), cost, and confidence and rationale if they were said. A
run that was interrupted begins by reading it: an answer that is there is not asked for again. A
line that was cut off is dropped, with its answer.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from venire.errors import FileError
from venire.tools.untrusted import parse_json

FORMAT: Final = "venire label journal 1"


class Entry(NamedTuple):
    """An answer that was paid for; `label` is None where there was none.

    >>> Entry("a", "ann", "spam", 0.5).row(), Entry("a", "net", "spam", 0.0, 0.9).row()
    (['a', 'ann', 'spam', 0.5], ['a', 'net', 'spam', 0.0, 0.9])
    """

    item: str
    labeler: str
    label: Any
    cost: float
    confidence: float | None = None
    rationale: str | None = None

    def row(self) -> list[Any]:
        """As a line of the journal: without what was not said at its end."""
        if self.rationale is not None:
            return list(self)
        return list(self[:5] if self.confidence is not None else self[:4])


def digest_of(items: Iterable[str]) -> str:
    """A fingerprint of the names of the items.

    >>> digest_of(["a", "b"]) == digest_of(["b", "a"]), len(digest_of([]))
    (False, 16)
    """
    return hashlib.sha256("\n".join(items).encode()).hexdigest()[:16]


def earlier(path: str | Path) -> tuple[int, float]:
    """How many answers a journal has, and what they cost; none if there is no such file.

    >>> earlier("nowhere.journal")
    (0, 0.0)
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    rows = [row for row in map(_parsed, text.split("\n")) if isinstance(row, list) and len(row) > 3]
    return len(rows), float(sum(row[3] for row in rows if isinstance(row[3], int | float)))


class Journal(AbstractContextManager["Journal"]):
    """The journal of a batch; `entries` are the answers of earlier runs.

    `stale` counts those that a labeler gave while it was configured otherwise: a judge with another
    prompt or model. A line that is an object has the digests of configurations from there on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal")
    ...     with Journal(path, ["a", "b"]) as journal:
    ...         journal.append([Entry("a", "ann", "spam", 0.5)])
    ...     with Journal(path, ["a", "b"]) as journal:
    ...         print(journal.entries)
    [Entry(item='a', labeler='ann', label='spam', cost=0.5, confidence=None, rationale=None)]
    """

    def __init__(
        self, path: str | Path, items: Sequence[str], digests: Mapping[str, str] | None = None
    ) -> None:
        """Open the journal of these items, or begin it; `digests` are of the labelers as they are.

        Whoever has no digest, and what was answered before there were any, is never stale.
        """
        self.path = Path(path)
        self.entries: list[Entry] = []
        self._given: Counter[tuple[str, str]] = Counter()
        self._digests: dict[str, str] = {}
        head = {"format": FORMAT, "items": len(items), "digest": digest_of(items)}
        try:
            whole = self._read(head) if self.path.exists() else 0
            self._file: BinaryIO = open(self.path, "ab")  # noqa: SIM115
            self._file.truncate(whole)
        except OSError as error:
            raise FileError(self.path, None, f"cannot be written: {error.strerror}") from None
        if not whole:
            self._write(json.dumps(head) + "\n")
        now = digests or {}
        changed = {name: own for name, own in now.items() if self._digests.get(name) != own}
        if changed:
            self._write(json.dumps({"digests": changed}) + "\n")
        self.stale: dict[str, int] = {}
        for (name, then), count in self._given.items():
            if now.get(name, then) != then:
                self.stale[name] = self.stale.get(name, 0) + count

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def append(self, entries: Sequence[Entry]) -> None:
        """Write answers, and wait until they are on disk."""
        self._write("".join(json.dumps(e.row(), ensure_ascii=False) + "\n" for e in entries))

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, head: dict[str, Any]) -> int:
        """Read the entries; returns the length of what is whole."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].decode("utf-8", "replace").split("\n")[:-1]
        if not lines:
            return 0
        if _parsed(lines[0]) != head:
            known = isinstance(_parsed(lines[0]), dict) and FORMAT in lines[0]
            what = "is the journal of other items" if known else "is not a journal of venire label"
            raise FileError(
                self.path, 1, f"{what}: give another file with --journal, or remove this one"
            )
        for number, line in enumerate(lines[1:], 2):
            row = _parsed(line)
            if isinstance(row, dict) and isinstance(row.get("digests"), dict):
                self._digests |= row["digests"]
                continue
            if not (isinstance(row, list) and 4 <= len(row) <= 6):
                message = "is not an answer of a labeler: the file is damaged, remove this line"
                raise FileError(self.path, number, message)
            entry = Entry(*row)
            self.entries.append(entry)
            if entry.labeler in self._digests:
                self._given[entry.labeler, self._digests[entry.labeler]] += 1
        return whole


def _parsed(line: str) -> Any:
    try:
        return parse_json(line)
    except ValueError:
        return None
