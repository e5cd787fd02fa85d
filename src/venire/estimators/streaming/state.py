r"""The state of a stream, in one place: what a file stores, and what results are computed from.

**Has the world changed? What was learned is compared with the latest items of the window.**

Labels of a stream are learned from as long as they are in the window, which is best while nothing
changes. Two things show that something has:

- **Labelers.** The latest half, quarter or eighth of the items is looked at by itself: given what
  explained the labels before, pairs of labelers err independently there (`Pairs.misfit`, as in
  `independence`), or that was another time. Then older labels are forgotten. The sequential test
  of each labeler (`drift`) finds one who changes; this finds many who change together, who are each
  other's witnesses.
- **Classes.** The class shares of the latest items are those of the items before them up to
  chance, both under the same confusion matrices, or they count instead. Nothing is forgotten: how
  labelers label does not depend on how frequent the classes are.

Labels are rows of integers in order of time: item, labeler, said, and whether the drift test has
used them. Both `LearnWhileServing` and `Streaming` store them this way.

A stream on disk: one file with its whole state and no executable content.

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
import math
import os
import tempfile
import zipfile
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from venire.errors import FileError, InputError
from venire.estimators.base import TINY
from venire.estimators.dependence import weighted_posteriors
from venire.estimators.screening import USUAL_MISFIT, Pairs
from venire.estimators.streaming.drift import DriftMonitor
from venire.labels import Codes, LabelTable, Names, Repeats
from venire.labels.table import slice_items
from venire.tools.arrays import Floats, Ints, softmax

if TYPE_CHECKING:
    from venire.estimators.streaming.estimator import Streaming


#: Columns of a remembered label.
ITEM, LABELER, SAID, WATCHED = range(4)

#: Items with fewer labels are not tested: when two labels differ, nobody knows who has changed, and
#: whether there is a second label depends on the first.
COMPANY: Final = 3

#: The witness of a label without other labels.
_NOBODY: Final = 0


def latest(labels: Ints, half_life: float) -> NDArray[np.bool_]:
    """The latest `half_life` / ln 2 labels of each labeler, as many as a half-life weighs.

    >>> latest(np.array([[0, 0, 1, 0], [1, 0, 1, 0], [1, 7, 0, 0], [2, 0, 0, 0]]), 1.0).tolist()
    [False, True, True, True]
    """
    most, who = math.ceil(half_life / math.log(2)), labels[:, LABELER]
    order = np.argsort(who, kind="stable")
    ranked = who[order]
    left = np.searchsorted(ranked, ranked, side="right") - np.arange(len(who))
    kept = np.empty(len(who), np.bool_)
    kept[order] = left <= most
    return kept


def watch(monitor: DriftMonitor, labels: Ints, confusions: Floats, prior: Floats) -> Ints:
    """Test the labels of items that now have three or more, and mark them; returns who has changed.

    `confusions` and `prior` are the beliefs about the labelers and the classes.

    >>> monitor = DriftMonitor(classes=2)
    >>> monitor.expand(3)
    >>> labels = np.array([[0, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 0], [0, 2, 1, 0]])
    >>> watch(monitor, labels, np.full((3, 2, 2), 0.5), np.full(2, 0.5)).tolist()
    []
    >>> labels[:, WATCHED].tolist(), monitor.seen.tolist()
    ([1, 1, 0, 1], [1, 1, 1])
    """
    company = np.bincount(labels[:, ITEM] - labels[:, ITEM].min(initial=0))
    several = company[labels[:, ITEM] - labels[:, ITEM].min(initial=0)] >= COMPANY
    fresh = several & (labels[:, WATCHED] == 0)
    if not fresh.any():
        return np.zeros(0, np.int64)
    before = monitor.alarms.copy()
    used = labels[:, WATCHED] == 1
    used |= fresh
    rest = _others(labels, confusions, prior)[used]
    witness = _witness(labels, _order(confusions, prior))[used]
    heard = labels[used]
    monitor.follow(heard[:, LABELER], heard[:, SAID], rest, witness, fresh[used])
    labels[fresh, WATCHED] = 1
    return np.flatnonzero(monitor.alarms > before)


def opinions(labels: Ints, confusions: Floats, prior: Floats) -> tuple[Ints, Floats]:
    """The item numbers, and the log of each class's share and of what was said, for each item."""
    items, item = np.unique(labels[:, ITEM], return_inverse=True)
    logs = np.tile(np.log(prior.clip(TINY)), (len(items), 1))  # an estimator may say 0
    np.add.at(logs, item, _told(labels, confusions))
    return items, logs


def _told(labels: Ints, confusions: Floats) -> Floats:
    return np.log(confusions[labels[:, LABELER], :, labels[:, SAID]])


def _others(labels: Ints, confusions: Floats, prior: Floats) -> Floats:
    items, logs = opinions(labels, confusions, prior)
    return softmax(logs[np.searchsorted(items, labels[:, ITEM])] - _told(labels, confusions))


def _order(confusions: Floats, prior: Floats) -> Ints:
    """The rank of each labeler, the best is 1."""
    best = np.argsort(-np.einsum("mkk,k->m", confusions, prior), kind="stable")
    place = np.empty(len(best), np.int64)
    place[best] = np.arange(1, len(best) + 1)
    return place


def _witness(labels: Ints, place: Ints) -> Ints:
    """For each label, the rank of the best other labeler of the item."""
    _, item = np.unique(labels[:, ITEM], return_inverse=True)
    own, last = place[labels[:, LABELER]], len(place) + 1
    first, second = (np.full(item.max(initial=-1) + 1, last) for _ in range(2))
    np.minimum.at(first, item, own)
    later = own != first[item]
    np.minimum.at(second, item[later], own[later])
    best = np.where(later, first[item], second[item])
    return np.where(best == last, _NOBODY, best)


#: Parts of the window that are looked at by themselves.
PARTS: Final = (2, 4, 8, 16)

#: Pairs must share this many of the latest items in the mean, and there must be this many items.
MEAN_SHARED: Final = 8.0
FEWEST_ITEMS: Final = 30

#: Labelers, and class shares, that differ by this many standard errors have changed.
LABELER_ERRORS: Final = 4.0
SHARE_ERRORS: Final = 3.0

#: The excess of a misfit over what is usual is at least this if labelers have changed: scores of
#: many pairs are not independent of each other, and vary by more than their number says.
LEAST_EXCESS: Final = 0.5

#: Steps of EM for the class shares alone.
_STEPS: Final = 10


def changed_since(table: LabelTable, confusions: Floats, priors: Floats) -> int | None:
    """The first of the latest items that do not fit the belief; None if all of them do.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(2, size=(800, 1))
    >>> right = np.where(np.arange(800)[:, None] < 600, 0.9, [0.9, 0.9, 0.9, 0.2, 0.2])
    >>> said = np.where(rng.random((800, 5)) < right, truth, 1 - truth)
    >>> rows = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 5)
    >>> changed_since(LabelTable.from_matrix(said[:600]), rows, np.array([0.5, 0.5]))
    >>> changed_since(LabelTable.from_matrix(said), rows, np.array([0.5, 0.5]))
    750
    """
    items = len(table.items)
    found = None
    for part in PARTS:
        first = items - items // part
        if items - first < FEWEST_ITEMS:
            break
        latest = slice_items(table, first, items)
        pairs = Pairs.of(latest)
        if pairs.shared < MEAN_SHARED:
            continue
        misfit = pairs.misfit(
            latest.said, weighted_posteriors(latest, confusions, priors, []), confusions
        )
        if misfit > USUAL_MISFIT + max(
            LEAST_EXCESS, LABELER_ERRORS * np.sqrt(2 / pairs.compared.size)
        ):
            found = first
    return found


def latest_shares(labels: Ints, confusions: Floats, priors: Floats) -> Floats:
    """The class shares of the latest items where they clearly differ from those before.

    Shares of two parts of the window explain its labels better than the same for both, by the
    likelihood ratio. Both are fitted here, under the same matrices: an estimator may learn shares
    in another way, and items with few labels say little about them.

    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1], [900, 100])
    >>> said = np.where(rng.random((1000, 3)) < 0.9, truth[:, None], 1 - truth[:, None])
    >>> labels = np.array([(i, m, said[i, m], 0) for i in range(1000) for m in range(3)])
    >>> rows = np.array([[[0.9, 0.1], [0.1, 0.9]]] * 3)
    >>> latest_shares(labels, rows, np.array([0.9, 0.1])).round(1).tolist()
    [0.0, 1.0]
    >>> latest_shares(labels[:2700], rows, np.array([0.7, 0.3])).tolist()
    [0.7, 0.3]
    """
    _, logs = opinions(labels, confusions, np.ones(len(priors)))
    items, begin, found, together = len(logs), 0, priors, _shares(logs)[1]
    usual = np.sqrt(2 * len(priors) - 3)  # of the root of a chi-square, doubled (Fisher)
    for part in PARTS:
        first = items - items // part
        if items - first < FEWEST_ITEMS:
            break
        shares, apart = _shares(logs[first:])
        gain = apart + _shares(logs[begin:first])[1] - together
        if 2 * np.sqrt(max(gain, 0.0)) > usual + SHARE_ERRORS:
            begin, found, together = first, shares, apart
    return found


def _shares(logs: Floats) -> tuple[Floats, float]:
    """The class shares of items, given how probable their labels are in each class; how likely."""
    shares = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(_STEPS):
        mass = softmax(logs + np.log(shares)).sum(axis=0) + 1.0
        shares = mass / mass.sum()
    return np.asarray(shares), float(np.logaddexp.reduce(logs + np.log(shares), axis=1).sum())


def numbered(names: Iterable[Hashable]) -> dict[Hashable, int]:
    """Each name once, numbered in order."""
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def pick(names: Names, index: Codes) -> list[Any]:
    """Some of the names, as Python objects."""
    if isinstance(names, np.ndarray):
        return list(names[index].tolist())
    return [names[i] for i in index.tolist()]


def listed(names: Names) -> list[Any]:
    """All of the names, as Python objects."""
    return pick(names, np.arange(len(names)))


def codes_of(known: dict[Hashable, int], names: list[Hashable]) -> Ints:
    """Codes of names; those that are new get the next ones.

    >>> codes_of({"ann": 0, "bob": 1}, ["eve", "bob", "zoe"]).tolist()
    [2, 1, 3]
    """
    new = iter(range(len(known), len(known) + len(names)))
    codes = (known[name] if name in known else next(new) for name in names)
    return np.fromiter(codes, dtype=np.int64)


def distinct(items: Names) -> tuple[list[Hashable], Ints]:
    """The distinct items, and the position of each among them.

    >>> distinct(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    if not isinstance(items, np.ndarray):
        seen = numbered(items)
        return list(seen), np.array([seen[name] for name in items], dtype=np.int64)
    unique, index = np.unique(items, return_inverse=True)
    return unique.tolist(), index


class Finals:
    """The latest final posteriors, at most `limit` of them (None: all), in a ring of rows.

    >>> finals = Finals(limit=2)
    >>> finals.add(["a", "b", "c"], np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]))
    >>> list(finals.of), finals.posteriors(["c"], classes=3).tolist()
    (['b', 'c'], [[0.3, 0.7, 0.0]])
    """

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.of: dict[Hashable, int] = {}
        self._rows: Floats = np.zeros((0, 0))
        self._next = 0

    def add(self, names: list[Hashable], posteriors: Floats) -> None:
        """Add these, and drop the oldest beyond the limit."""
        if self.limit is not None:
            names = names[max(0, len(names) - self.limit) :]
            over = len(self.of) + len(names) - self.limit
            for name in list(islice(self.of, max(0, over))):
                del self.of[name]
        self._make_room(len(names), posteriors.shape[1])
        rows = np.arange(self._next, self._next + len(names)) % max(1, len(self._rows))
        self._rows[rows, : posteriors.shape[1]] = posteriors[len(posteriors) - len(names) :]
        self.of.update(zip(names, rows.tolist(), strict=True))
        self._next = int(rows[-1]) + 1 if len(names) else self._next

    def _make_room(self, number: int, classes: int) -> None:
        """More rows, as long as the ring is not complete, and columns for new classes."""
        most = self.limit if self.limit is not None else self._next + number
        have, wide = self._rows.shape
        want = have if have >= most or self._next + number <= have else self._next + number
        want = min(max(want, 2 * have), most) if want > have else have
        if want > have or classes > wide:
            self._rows = np.pad(self._rows, ((0, want - have), (0, max(0, classes - wide))))

    def posteriors(self, names: Iterable[Hashable], classes: int) -> Floats:
        """Their posteriors as an array; a class that came later has none."""
        rows = [self.of[name] for name in names]
        out = np.zeros((len(rows), classes))
        out[:, : self._rows.shape[1]] = self._rows[rows] if rows else 0.0
        return out


def not_repeated(index: Ints, labeler: Ints, repeats: Repeats) -> NDArray[np.bool_]:
    """Which labels to keep so that a batch has one of each labeler for an item: first or last.

    >>> not_repeated(np.array([0, 0, 1]), np.array([7, 7, 7]), "last").tolist()
    [False, True, True]
    """
    keep = np.ones(index.size, dtype=np.bool_)
    key = index * (labeler.max(initial=0) + 1) + labeler
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        keep[:] = False
        last = repeats == "last"
        chosen = np.unique(key[::-1] if last else key, return_index=True)[1]
        keep[index.size - 1 - chosen if last else chosen] = True
    return keep


#: The first drift check is made after this many labels.
FIRST_LOOK: Final = 100


class Found(NamedTuple):
    """The result of a fit: confusions (labelers x truth x said), class shares, certainty."""

    confusions: Floats
    priors: Floats
    certainty: float = 1.0


@dataclass(eq=False)
class StreamState:
    """The memory of a stream.

    `classes` and `labelers` map names to codes, `items` maps the items in the window to numbers,
    the one that has waited longest for a label first. `labels` are those in the window (see
    the module), `gold` the classes of items where they are known. `known` items were
    numbered and `taken` labels accepted so far; the next drift check is made at `next_look` labels,
    against the beliefs in `looked`.
    """

    classes: dict[Hashable, int]
    labelers: dict[Hashable, int]
    finals: Finals
    monitor: DriftMonitor | None
    items: dict[Hashable, int] = field(default_factory=dict)
    labels: Ints = field(default_factory=lambda: np.zeros((0, 4), np.int64))
    gold: dict[Hashable, int] = field(default_factory=dict)
    known: int = 0
    taken: int = 0
    next_look: int = FIRST_LOOK
    looked: Found | None = None

    @classmethod
    def begin(
        cls,
        classes: Iterable[Hashable],
        labelers: Iterable[Hashable],
        max_finals: int | None,
        drift: float | None,
    ) -> Self:
        """The memory of a stream that has seen no label.

        >>> StreamState.begin(["spam", "ok"], ["ann"], None, None).classes
        {'spam': 0, 'ok': 1}
        """
        monitor = None if drift is None else DriftMonitor(2, drift)
        made = cls(numbered(classes), numbered(labelers), Finals(max_finals), monitor)
        if monitor is not None:
            monitor.expand(len(made.labelers))
        return made


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
    state = stream.state
    arrays: dict[str, NDArray[Any]] = {"labels": state.labels}
    if state.looked is not None:
        arrays |= {"looked.confusions": state.looked[0], "looked.priors": state.looked[1]}
    if state.monitor is not None:
        arrays |= {f"drift.{n}": getattr(state.monitor, n) for n in state.monitor.arrays()}
    arrays["finals"] = state.finals.posteriors(state.finals.of, max(2, len(state.classes)))
    text = json.dumps(_header(stream), allow_nan=True).encode()
    return arrays | {"header": np.frombuffer(text, dtype=np.uint8)}


#: The numbers of a state that a file has in its header.
_COUNTERS: Final = ("known", "taken", "next_look")


def _header(stream: Streaming) -> dict[str, Any]:
    state = stream.state
    parameters = {f.name: _plain(getattr(stream, f.name)) for f in fields(stream)}
    for name in ("classes", "labelers"):
        given = getattr(stream, name)
        parameters[name] = None if given is None else [_pack(x) for x in given]
    return {
        "format": FORMAT,
        "version": VERSION,
        "parameters": parameters,
        "classes": [_pack(name) for name in state.classes],
        "labelers": [_pack(name) for name in state.labelers],
        "items": [[_pack(name), number] for name, number in state.items.items()],
        "finals": [_pack(name) for name in state.finals.of],
        "gold": [[_pack(name), code] for name, code in state.gold.items()],
        "counters": {name: getattr(state, name) for name in _COUNTERS},
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
    for name in _COUNTERS:
        setattr(state, name, header["counters"][name])
    stream.state = state
    return stream


def _sound(stream: Streaming) -> bool:
    """Whether all indices are within bounds."""
    state = stream.state
    labels, M, K = state.labels, len(state.labelers), max(2, len(state.classes))
    if labels.dtype != np.int64 or labels.ndim != 2 or labels.shape[1] != 4:
        return False
    inside: list[Any] = [(labels[:, column] >= 0).all() for column in range(4)]
    inside += [(labels[:, 1] < M).all(), (labels[:, 2] < K).all()]
    inside += [
        np.isin(labels[:, 0], list(state.items.values())).all(),
        all(0 <= code < K for code in state.gold.values()),
        all(number < state.known for number in state.items.values()),
    ]
    if state.looked is not None:
        inside.append([a.shape for a in state.looked[:2]] == [(M, K, K), (K,)])
    if state.monitor is not None:
        fresh = DriftMonitor(2, state.monitor.false_alarms)
        fresh.expand(M)
        pairs = ((getattr(state.monitor, n), getattr(fresh, n)) for n in fresh.arrays())
        inside += [a.shape == b.shape and a.dtype == b.dtype for a, b in pairs]
    return all(map(bool, inside))
