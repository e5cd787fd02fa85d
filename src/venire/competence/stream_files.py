"""A stream on disk: one file that holds all of it, and nothing that can run.

The file is a NumPy .npz archive (a zip of arrays, each with a checksum) of

    header      JSON text in UTF-8: {"format": "venire-stream", "version": 1, "parameters": {...},
                "classes": [...], "labelers": [...], "places": [...], "free": [...],
                "finals": [...], "counters": {...}}
    window.*    the items that are kept, see `stream_window.Window`
    counts.*    what is known of the labelers, see `stream_em.Counts`
    drift.*     the drift monitor, see `drift.DriftMonitor`; absent if it is off
    finals      the final posteriors

Names are JSON text, numbers, true, false or null; a tuple is {"tuple": [...]}; others cannot be
saved. A stream that is loaded goes on as the one that was saved would have, to the bit. A
file is written beside its final place and then moved there, so that it is never half there.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Hashable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError, InputError

if TYPE_CHECKING:
    from venire.competence.streaming import Streaming

__all__ = ["VERSION", "load", "pack", "save", "unpack"]

S = TypeVar("S", bound="Streaming")

FORMAT: Final = "venire-stream"

#: The version of the format that is written, and the newest that can be read.
VERSION: Final = 1


def save(stream: Streaming, path: str | Path) -> None:
    """Write a stream to a file, all or nothing."""
    arrays = pack(stream)
    target = Path(path)
    if not target.parent.is_dir():
        where = f"there is no folder {target.parent}: make it first"
        raise FileError(path, None, f"cannot be written, {where}")
    if target.is_dir():
        raise FileError(path, None, "cannot be written, it is a folder: give the name of a file")
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def load(kind: type[S], path: str | Path) -> S:
    """Read a stream from a file."""
    return unpack(kind, _read(path), path)


def unpack(kind: type[S], arrays: dict[str, NDArray[Any]], path: str | Path = "a snapshot") -> S:
    """A stream from its arrays, which it keeps; `path` is where an error says they are from."""
    header = _check_header(path, arrays)
    try:
        stream = _restore(kind, header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _broken(path, repr(error)) from error
    if not _sound(stream):
        raise _broken(path, "its arrays do not fit each other")
    return stream


def pack(stream: Streaming) -> dict[str, NDArray[Any]]:
    """The stream as arrays, those of the file; they are its own, so copy what must not change."""
    core = stream._core
    arrays = {f"window.{n}": a for n, a in core.window._asdict().items()}
    arrays |= {f"counts.{n}": a for n, a in core.counts._asdict().items()}
    if core.monitor is not None:
        arrays |= {f"drift.{n}": getattr(core.monitor, n) for n in core.monitor.arrays()}
    arrays["finals"] = stream._finals.posteriors(stream._finals.of, core.classes)
    text = json.dumps(_header(stream), allow_nan=True).encode()
    arrays["header"] = np.frombuffer(text, dtype=np.uint8)
    return arrays


def _header(stream: Streaming) -> dict[str, Any]:
    core, places = stream._core, stream._places
    parameters = {f.name: _plain(getattr(stream, f.name)) for f in fields(stream)}
    for name in ("classes", "labelers"):
        given = getattr(stream, name)
        parameters[name] = None if given is None else [_pack(x) for x in given]
    return {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters,
        "classes": [_pack(name) for name in stream._class],
        "labelers": [_pack(name) for name in stream._labeler],
        "places": [[_pack(name), place] for name, place in places.of.items()],
        "free": places.free,
        "finals": [_pack(name) for name in stream._finals.of],
        "counters": {
            "calls": core.calls,
            "labels": core.labels,
            "next_look": core.next_look,
            "n_iter": stream.n_iter_,
            "converged": stream.converged_,
        },
    }


def _plain(value: Any) -> Any:
    """A parameter as JSON: text, a number, or an array of numbers."""
    return value if value is None or isinstance(value, str) else np.asarray(value).tolist()


def _pack(name: Hashable) -> Any:
    if isinstance(name, np.generic):
        name = name.item()
    if isinstance(name, tuple):
        return {"tuple": [_pack(part) for part in name]}
    if name is None or isinstance(name, str | int | float):
        return name
    raise InputError(
        f"the name {name!r} is a {type(name).__name__}, expected text, a number or a tuple of "
        "them: a stream with other names cannot be saved"
    )


def _unpack(name: Any) -> Hashable:
    if isinstance(name, dict):
        return tuple(_unpack(part) for part in name["tuple"])
    return name  # type: ignore[no-any-return]


def _read(path: str | Path) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise FileError(path, None, "there is no such file") from None
    except (zipfile.BadZipFile, ValueError, OSError, EOFError, AttributeError, KeyError) as error:
        raise _broken(path, str(error)) from error


def _check_header(path: str | Path, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(arrays["header"].tobytes())
        found, version = header["format"], int(header["version"])
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(path, "it has no header") from error
    if found != FORMAT:
        raise _broken(path, f"its format is {found!r}, expected {FORMAT!r}")
    if version > VERSION:
        raise FileError(
            path,
            None,
            f"its format has version {version}, expected at most {VERSION}: it was written by a "
            "newer venire, so read it with that one or upgrade this one",
        )
    return header


def _broken(path: str | Path, why: str) -> FileError:
    return FileError(
        path, None, f"this is no whole stream saved by venire ({why}): save it again, or restore it"
    )


def _restore(kind: type[S], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> S:
    given = header["parameters"]
    for name in ("classes", "labelers"):
        if given[name] is not None:
            given[name] = tuple(_unpack(x) for x in given[name])
    stream = kind(**given)
    stream._begin(*([_unpack(x) for x in header[name]] for name in ("classes", "labelers")))
    core, places, finals = stream._core, stream._places, stream._finals
    for part in ("window", "counts"):
        old = getattr(core, part)
        setattr(core, part, old._replace(**{n: arrays[f"{part}.{n}"] for n in old._fields}))
    for n in core.monitor.arrays() if core.monitor is not None else ():
        setattr(core.monitor, n, arrays[f"drift.{n}"])
    places.of = {_unpack(packed): place for packed, place in header["places"]}
    places.free = header["free"]
    places.names = [None] * (len(places.of) + len(places.free))
    for item, place in places.of.items():
        places.names[place] = item
    finals.add([_unpack(name) for name in header["finals"]], arrays["finals"])
    counters = header["counters"]
    core.calls, core.labels = counters["calls"], counters["labels"]
    core.next_look = counters["next_look"]
    stream.n_iter_, stream.converged_ = counters["n_iter"], counters["converged"]
    return stream


def _sound(stream: Streaming) -> bool:
    """Whether no array points outside another."""
    from venire.competence.stream_core import Core

    core, M, K = stream._core, len(stream._labeler), len(stream._class)
    w, fresh = core.window, Core(core.setting, max(2, K))
    fresh.add_labelers(M)
    here: list[NDArray[Any]] = [*core.counts, *w]
    there: list[NDArray[Any]] = [*fresh.counts, *fresh.window]
    types = all(a.dtype == b.dtype and a.ndim == b.ndim for a, b in zip(here, there, strict=True))
    shapes = all(a.shape == b.shape for a, b in zip(core.counts, fresh.counts, strict=True))
    lengths = len({len(a) for a in w[:5]}) == 1 and len({len(a) for a in w[5:9]}) == 1
    if not (types and shapes and lengths and len(w.first) >= len(stream._places.names)):
        return False
    held = w.length > 0
    used = np.zeros(len(w.said), np.bool_)
    inside = (w.first[held] >= 0) & (w.first[held] + w.room[held] <= len(w.said))
    if not (inside.all() and (w.length <= w.room).all() and w.posterior.shape[1] == core.classes):
        return False
    for first, n in zip(w.first[held].tolist(), w.length[held].tolist(), strict=True):
        used[first : first + n] = True
    who, what = w.labeler[used], w.said[used]
    return bool(((who >= 0) & (who < M)).all() and ((what >= 0) & (what < max(K, 2))).all())
