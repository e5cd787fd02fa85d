"""Download a file; an interrupted transfer is resumed."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from venire.errors import FetchError

__all__ = ["Told", "check_sha256", "download", "sha256_of"]

#: Called with the file's name and the bytes that are there.
Told: TypeAlias = Callable[[str, int], None]

_BLOCK = 1 << 16
_SECONDS = 30.0


def download(url: str, target: Path, sha256: str | None = None, told: Told | None = None) -> None:
    """Download to `target`, by way of `target.part`, which is kept if the transfer breaks.

    A part that is there already is continued (HTTP Range) where the server can do that. What
    arrives must have the sha256, if that is known; otherwise the part is deleted.

    >>> download("http://127.0.0.1:9/x", Path("x"))
    Traceback (most recent call last):
    venire.errors.FetchError: cannot download http://127.0.0.1:9/x (...refused): ...
    """
    part = target.with_name(target.name + ".part")
    try:
        _transfer(url, part, told)
    except urllib.error.HTTPError as error:
        if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE or not part.exists():
            raise FetchError(f"cannot download {url} (HTTP {error.code} {error.reason})") from None
        part.unlink()  # the part is larger than the file, so it belongs to another one: start again
        return download(url, target, sha256, told)
    except (OSError, http.client.HTTPException) as error:
        raise FetchError(_offline(url, error, part)) from None
    check_sha256(part, sha256, url)
    part.replace(target)
    return None


def check_sha256(path: Path, sha256: str | None, what: str) -> None:
    """Delete a file whose checksum is wrong."""
    if sha256 is None:
        return
    got = sha256_of(path)
    if got != sha256:
        path.unlink()
        raise FetchError(
            f"{what} has the sha256 {got}, expected {sha256}: it was damaged on the way, or its "
            "source has changed; it was removed, so run this again"
        )


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as hexadecimal digits.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     sha256_of(Path(file.name))[:16]
    'e3b0c44298fc1c14'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _transfer(url: str, part: Path, told: Told | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "venire"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        goes_on = answer.status == http.client.PARTIAL_CONTENT
        have = have if goes_on else 0
        length = answer.headers.get("Content-Length")
        with open(part, "ab" if goes_on else "wb") as file:
            got = 0
            while block := answer.read(_BLOCK):
                file.write(block)
                got += len(block)
                if told is not None:
                    told(part.name.removesuffix(".part"), have + got)
    if length is not None and got < int(length):
        raise ConnectionError(f"it broke off after {got:,} of {int(length):,} bytes")


def _offline(url: str, error: Exception, part: Path) -> str:
    reason = getattr(error, "reason", None) or error
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    remedy = "check the connection and run this again"
    if part.exists() and part.stat().st_size:
        remedy += f", it resumes after the {part.stat().st_size:,} bytes that are here"
    return f"cannot download {url} ({words.lower()}): {remedy}"
