"""A lock that goes with the process that holds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from venire.errors import StoreError

__all__ = ["FileLock"]


class FileLock:
    """Held from the making of it until `release`, or until the process ends, however it ends.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock = FileLock(Path(folder, "x.lock"), "the store x")
    ...     try:
    ...         FileLock(Path(folder, "x.lock"), "the store x")
    ...     except StoreError as error:
    ...         print(str(error).partition(" (")[0])
    ...     lock.release()
    the store x is in use by another server
    """

    def __init__(self, path: Path, what: str) -> None:
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be made: {error.strerror}") from None
        try:
            _lock(self._file)
        except OSError:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"{what} is in use by another server (process {holder}): stop it first, "
                "or give this one a store of its own"
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let others have it."""
        os.close(self._file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        os.lseek(file, 1 << 20, os.SEEK_SET)  # far behind the text, which stays readable
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        finally:
            os.lseek(file, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
