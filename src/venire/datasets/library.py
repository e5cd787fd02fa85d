"""The label sets on this machine: download them (transfers are resumed), find them, read them."""

from __future__ import annotations

import csv
import hashlib
import http.client
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from venire.datasets.registry import SOURCE, DataSet, RawFile, data_set
from venire.errors import FetchError

if TYPE_CHECKING:
    from venire.labels import LabelTable


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


#: What a normaliser raises on a file that is not what it expects.
_UNREADABLE = (
    *(ValueError, LookupError, StopIteration, EOFError),
    *(csv.Error, tarfile.TarError, zipfile.BadZipFile, zlib.error),
)


def cache_folder() -> Path:
    """Where fetched sets are kept: VENIRE_DATA, or else venire/datasets in the user's cache."""
    given = os.environ.get("VENIRE_DATA")
    if given:
        return Path(given)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "venire" / "datasets"


def path_of(name: str, root: Path | None = None) -> Path:
    """The folder with labels.csv and truth.csv of a set; a FetchError if it is not there."""
    chosen = data_set(name)
    folder = (root or cache_folder()) / name
    if not is_fetched(chosen, root):
        where = f" --data {root}" if root else ""
        raise FetchError(
            f"{name} is not in {folder.parent}: fetch it with: venire datasets fetch {name}{where}"
        )
    return folder


def is_fetched(chosen: DataSet, root: Path | None = None) -> bool:
    """Whether both tables of a set are there."""
    folder = (root or cache_folder()) / chosen.name
    return all((folder / table).is_file() for table in ("labels.csv", "truth.csv"))


def load(name: str, root: str | Path | None = None) -> tuple[LabelTable, dict[Hashable, Hashable]]:
    """The labels of a set and what is known of their truth, from the cache or from `root`.

    Where a set repeats (task, worker) rows, `DataSet.repeats` says which one is kept and why.

    >>> load("rte", root="no-such-folder")
    Traceback (most recent call last):
    venire.errors.FetchError: rte is not in no-such-folder: fetch it with: venire datasets ...
    """
    from venire.labels.sources import as_table, as_truth

    chosen = data_set(name)
    folder = path_of(name, Path(root) if root is not None else None)
    table = as_table(folder / "labels.csv", repeats=chosen.repeats)
    right = as_truth(folder / "truth.csv", table)
    classes = (*table.classes, None)
    known = ((i, code) for i, code in enumerate(right.tolist()) if code >= 0)
    return table, {table.items[i]: classes[code] for i, code in known}


def fetch(
    name: str,
    root: Path | None = None,
    given: Path | None = None,
    source: str = SOURCE,
    told: Told | None = None,
) -> Path:
    """Bring a set into the cache, unless it is there; the folder that holds it.

    Parameters
    ----------
    name
        A name of the registry.
    root
        Where to keep it, instead of the cache.
    given
        A folder with the raw files (or with labels.csv and truth.csv), downloaded manually.
    source
        Where the repositories are.
    told
        Called with the number of bytes received.
    """
    chosen = data_set(name)
    home = root or cache_folder()
    folder = home / name
    if _is_normalised(chosen, folder):
        return folder
    try:
        home.mkdir(parents=True, exist_ok=True)
        raw = home / f".{name}.raw"
        draft = home / f".{name}.{os.getpid()}.part"
        try:
            draft.mkdir(exist_ok=True)
            _fill(chosen, raw, draft, given, source, told)
            shutil.rmtree(folder, ignore_errors=True)
            draft.replace(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(raw, ignore_errors=True)
    except FetchError:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"cannot keep {name} in {home} ({reason}): give another folder with --data"
        raise FetchError(message) from None
    return folder


def _fill(
    chosen: DataSet, raw: Path, draft: Path, given: Path | None, source: str, told: Told | None
) -> None:
    if given is not None and _is_normalised(chosen, given):
        for table in ("labels.csv", "truth.csv"):
            shutil.copyfile(given / table, draft / table)
        return
    raw.mkdir(exist_ok=True)
    for file in chosen.raw:
        _get(chosen, file, raw / file.name, given, source, told)
    try:
        made = chosen.normalise(raw)
    except _UNREADABLE as error:
        raise FetchError(f"{_not_as_recorded(chosen)} ({type(error).__name__}: {error})") from None
    from venire.files import Output, write_outputs  # NumPy, which a list of sets does not need

    labels = Output(draft / "labels.csv", made.columns, made.labels)
    write_outputs([labels, Output(draft / "truth.csv", ("task", "label"), made.truth)])
    if not _is_normalised(chosen, draft):
        raise FetchError(_not_as_recorded(chosen))


def _get(
    chosen: DataSet, file: RawFile, target: Path, given: Path | None, source: str, told: Told | None
) -> None:
    if target.exists() and (file.sha256 is None or sha256_of(target) == file.sha256):
        return
    if given is None:
        try:
            download(file.url(source), target, file.sha256, told)
        except FetchError as error:
            raise FetchError(f"{error}; offline, {_by_hand(chosen)}") from None
        return
    found = next((p for p in (given / file.path, given / file.name) if p.is_file()), None)
    if found is None:
        raise FetchError(f"{given} has no file {file.name}: {_by_hand(chosen)}")
    shutil.copyfile(found, target)
    check_sha256(target, file.sha256, str(found))


def _is_normalised(chosen: DataSet, folder: Path) -> bool:
    wanted = {"labels.csv": chosen.labels_sha256, "truth.csv": chosen.truth_sha256}
    return all(
        (folder / table).is_file() and sha256_of(folder / table) == sha256
        for table, sha256 in wanted.items()
    )


def _not_as_recorded(chosen: DataSet) -> str:
    return (
        f"the files of {chosen.name} are not those that were published: their labels differ from "
        "the recorded ones, so nothing was kept: get them at the recorded commit, see "
        f"venire datasets list {chosen.name}"
    )


def _by_hand(chosen: DataSet) -> str:
    count = len(chosen.raw)
    files = "the file" if count == 1 else f"the {count} files"
    return (
        f"download {files} that `venire datasets list {chosen.name}` names on another machine, "
        f"into one folder DIR, and run: venire datasets fetch {chosen.name} --from DIR"
    )
