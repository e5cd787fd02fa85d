"""A stream on disk: one file with its whole state and no executable content.

The file is a NumPy .npz archive (a zip of arrays, each with a checksum) of

    header      JSON text in UTF-8: {"format": "venire-stream", "version": 2, "parameters": {...},
                "classes": [...], "labelers": [...], "items": [[name, number], ...],
                "finals": [...], "gold": [[name, class], ...], "counters": {...}}
    labels      the labels in the window, see `venire.estimators.streaming.state`
    looked.*    the beliefs of the last drift check; absent before the first
    drift.*     the drift monitor, see `drift.DriftMonitor`; absent if it is off
    finals      the final posteriors

Version 1 used incremental EM: the labels in the window, the final verdicts and the drift monitor
are read from it. What it had learned from labels that were dropped is not.

Names are JSON text, numbers, true, false or null; a tuple is {"tuple": [...]}; others cannot be
saved. A loaded stream continues bit for bit as the saved one would have. A file is written under a
temporary name and then moved into place, so it is never incomplete.
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
from venire.estimators.streaming.drift import DriftMonitor
from venire.estimators.streaming.state import Found, StreamState

if TYPE_CHECKING:
    from venire.estimators.streaming.estimator import Streaming


S = TypeVar("S", bound="Streaming")

FORMAT: Final = "venire-stream"

#: The version of the format that is written, and the newest that can be read.
VERSION: Final = 2


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
    return unpack(kind, _read(path), path)


def unpack(kind: type[S], arrays: dict[str, NDArray[Any]], path: str | Path = "a snapshot") -> S:
    """A stream from its arrays, which it keeps; error messages name `path` as their source."""
    header = _check_header(path, arrays)
    try:
        stream = _restore(kind, header, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _broken(path, repr(error)) from error
    if not _sound(stream):
        raise _broken(path, "its arrays do not fit each other")
    return stream


def pack(stream: Streaming) -> dict[str, NDArray[Any]]:
    """The stream as the arrays of its file; they are not copied."""
    arrays: dict[str, NDArray[Any]] = {"labels": stream.state.labels}
    if stream.state.looked is not None:
        arrays |= {
            "looked.confusions": stream.state.looked[0],
            "looked.priors": stream.state.looked[1],
        }
    if stream.state.monitor is not None:
        arrays |= {
            f"drift.{n}": getattr(stream.state.monitor, n) for n in stream.state.monitor.arrays()
        }
    classes = max(2, len(stream.state.classes))
    arrays["finals"] = stream.state.finals.posteriors(stream.state.finals.of, classes)
    text = json.dumps(_header(stream), allow_nan=True).encode()
    return arrays | {"header": np.frombuffer(text, dtype=np.uint8)}


def _header(stream: Streaming) -> dict[str, Any]:
    parameters = {f.name: _plain(getattr(stream, f.name)) for f in fields(stream)}
    for name in ("classes", "labelers"):
        given = getattr(stream, name)
        parameters[name] = None if given is None else [_pack(x) for x in given]
    return {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters,
        "classes": [_pack(name) for name in stream.state.classes],
        "labelers": [_pack(name) for name in stream.state.labelers],
        "items": [[_pack(name), number] for name, number in stream.state.items.items()],
        "finals": [_pack(name) for name in stream.state.finals.of],
        "gold": [[_pack(name), code] for name, code in stream.state.gold.items()],
        "counters": {
            "known": stream.state.known,
            "taken": stream.state.taken,
            "next_look": stream.state.next_look,
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
    message = f"not a complete stream saved by venire ({why})"
    return FileError(path, None, f"{message}: save it again, or restore a copy")


def old_labels(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> list[tuple[Any, ...]]:
    """The labels in the window of a file of version 1: item, labeler and class, in order."""
    first, length = arrays["window.first"], arrays["window.length"]
    who, said = arrays["window.labeler"], arrays["window.said"]
    if len(first) != len(length) or len(who) != len(said):
        raise ValueError("arrays of different lengths")
    return [
        (_unpack(name), int(who[e]), int(said[e]))
        for name, place in header["places"]
        for e in range(int(first[place]), int(first[place] + length[place]))
    ]


def _today(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Convert the contents of a version 1 file."""
    known = [place[0] for place in header["places"]]
    number = {_unpack(name): i for i, name in enumerate(known)}
    rows = [(number[item], m, k, 1) for item, m, k in old_labels(header, arrays)]
    arrays["labels"] = np.array(rows, np.int64).reshape(-1, 4)
    header["items"] = [[name, i] for i, name in enumerate(known)]
    for name in ("prior", "class_prior", "sweeps"):
        header["parameters"].pop(name)
    taken = int(header["counters"]["labels"])
    header["counters"] = {"known": len(known), "taken": taken, "next_look": taken}


def _restore(kind: type[S], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> S:
    if header["version"] == 1:
        _today(header, arrays)
    given = header["parameters"]
    for name in ("classes", "labelers"):
        if given[name] is not None:
            given[name] = tuple(_unpack(x) for x in given[name])
    stream = kind(**given)
    classes, labelers = ([_unpack(x) for x in header[name]] for name in ("classes", "labelers"))
    state = StreamState.begin(classes, labelers, stream.finals_kept, stream.drift)
    state.labels = arrays["labels"]
    if "looked.confusions" in arrays:
        state.looked = Found(arrays["looked.confusions"], arrays["looked.priors"])
    for n in state.monitor.arrays() if state.monitor is not None else ():
        setattr(state.monitor, n, arrays[f"drift.{n}"])
    state.items = {_unpack(packed): number for packed, number in header["items"]}
    state.gold = {_unpack(packed): code for packed, code in header.get("gold", ())}
    state.finals.add([_unpack(name) for name in header["finals"]], arrays["finals"])
    counters = header["counters"]
    state.known, state.taken = counters["known"], counters["taken"]
    state.next_look = counters["next_look"]
    stream.state = state
    return stream


def _sound(stream: Streaming) -> bool:
    """Whether all indices are within bounds."""
    labels, M, K = (
        stream.state.labels,
        len(stream.state.labelers),
        max(2, len(stream.state.classes)),
    )
    if labels.dtype != np.int64 or labels.ndim != 2 or labels.shape[1] != 4:
        return False
    inside: list[Any] = [(labels[:, column] >= 0).all() for column in range(4)]
    inside += [(labels[:, 1] < M).all(), (labels[:, 2] < K).all()]
    inside.append(np.isin(labels[:, 0], list(stream.state.items.values())).all())
    inside.append(all(0 <= code < K for code in stream.state.gold.values()))
    inside.append(all(number < stream.state.known for number in stream.state.items.values()))
    if stream.state.looked is not None:
        inside.append([a.shape for a in stream.state.looked[:2]] == [(M, K, K), (K,)])
    if stream.state.monitor is not None:
        fresh = DriftMonitor(2, stream.state.monitor.false_alarms)
        fresh.expand(M)
        pairs = ((getattr(stream.state.monitor, n), getattr(fresh, n)) for n in fresh.arrays())
        inside += [a.shape == b.shape and a.dtype == b.dtype for a, b in pairs]
    return all(map(bool, inside))
