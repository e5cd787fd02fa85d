"""A lock that is released when its process ends, and files that only their owner may read."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from venire.errors import StoreError, StoreInUse

#: A store holds payloads, secrets and hashes of keys: its files are for their owner alone.
PRIVATE: Final = 0o600

#: What to do where the system denies access to a store.
OWNER: Final = "The user who runs this has to be able to write to it and its folder: see ls -l"


def open_private(path: str, flags: int) -> int:
    """An `opener` for `open`, of files that nobody else may read."""
    return os.open(path, flags, PRIVATE)


def create_private(path: Path) -> None:
    """An empty file that nobody else may read, if there is none."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    except FileExistsError:
        pass
    except OSError as error:
        raise _unwritable(path, error) from None


def check_writable(path: Path) -> None:
    """Refuse a file that belongs to somebody else, such as a copy that root has restored."""
    if path.exists() and not os.access(path, os.W_OK):
        raise _unwritable(path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))


def _unwritable(path: Path, error: OSError) -> StoreError:
    """The error of a file that cannot be written, and what to do if it is somebody else's."""
    denied = error.errno in (errno.EACCES, errno.EPERM)
    hint = f". {OWNER}" if denied else ""
    return StoreError(f"{path} cannot be written: {error.strerror}{hint}")


def make_private(path: Path) -> None:
    """Take away everybody else's access to a file: older versions made it readable for all.

    A file that only its group may read besides was made so on purpose, and stays so.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "venire.db")
    ...     path.touch(0o644)
    ...     make_private(path)
    ...     oct(path.stat().st_mode & 0o777)
    '0o600'
    """
    with suppress(OSError):  # it belongs to somebody else, or is gone
        if os.stat(path).st_mode & 0o007:
            os.chmod(path, PRIVATE)


class FileLock:
    """A lock that is held until `release`, or until the process ends, however it ends.

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
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            _lock(self._file)
        except OSError:
            holder = os.read(self._file, 20).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreInUse(
                f"{what} is in use by another server (process {holder}): stop it first, "
                "or give this one a store of its own"
            ) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
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
