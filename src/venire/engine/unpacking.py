"""Compressed bytes, read piece by piece: what was read is not kept."""

from __future__ import annotations

import zlib
from typing import Final

__all__ = ["Unpacking"]

#: Compressed bytes to take at once.
_TAKE: Final = 2**16


class Unpacking:
    r"""Lines and bytes of what was compressed, in order.

    >>> packed = Unpacking(zlib.compress(b"first\nsecond\n1234"))
    >>> packed.line(), packed.line(), packed.take(4)
    (b'first', b'second', b'1234')
    >>> packed.end()
    """

    def __init__(self, packed: bytes | memoryview) -> None:
        self._packed, self._place = memoryview(packed), 0
        self._unpack = zlib.decompressobj()
        self._ready, self._read = b"", 0

    def line(self) -> bytes:
        """The next line, without its end."""
        searched = self._read
        while (end := self._ready.find(b"\n", searched)) < 0:
            searched = len(self._ready) - self._read
            self._more()
        line, self._read = self._ready[self._read : end], end + 1
        return line

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        parts, missing = [], count
        while missing > (there := len(self._ready) - self._read):
            parts.append(self._ready[self._read :])
            missing -= there
            self._read = len(self._ready)
            self._more()
        parts.append(self._ready[self._read : self._read + missing])
        self._read += missing
        return b"".join(parts)

    def end(self) -> None:
        """That is all; `zlib.error` if the checksum is wrong."""
        while not self._unpack.eof:
            self._read = len(self._ready)
            self._more()

    def _more(self) -> None:
        """Unpack more behind what was not read yet."""
        if self._unpack.eof or self._place >= len(self._packed):
            raise zlib.error("the snapshot ends too early")
        some = self._packed[self._place : self._place + _TAKE]
        self._place += len(some)
        self._ready = self._ready[self._read :] + self._unpack.decompress(some)
        self._read = 0
