"""A scheduler as bytes, and back: what a server keeps so that it need not replay everything.

The format is a line of JSON (settings, and the shape of each array), the long lists as lines of
JSON with up to a thousand entries each and an empty line behind each list, and the arrays one
behind the other; all of it compressed. Nothing in it is ever executed, and nothing in it is long:
a thread that packs or restores lets others run after each piece. The number of the format is
in front; older ones are read, newer ones are refused, and the log is replayed instead. Records are
written with the names of their fields: a snapshot of a version that kept more or fewer of them is
read, and every item is filed again. Policy and learning are kept as data (see `settings_data`), and
the memory of the policy with the names of its parts.

**Policies, ways of learning and estimators as plain data, and back.**

What venire exports is kept as the name of its class and what its constructor was given:

    {"class": "LearnThenServe", "settings": {"slots": 5, "estimator": {"class": "OneCoin", ...}}}

Numbers, words and lists are themselves; tuples, mappings and arrays are written so that they come
back as what they were. Nothing else can be kept: a class of a user's own, or a function, is refused
here, since it could not be made again from the data.

Compressed bytes, read piece by piece: what was read is not kept.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, fields, is_dataclass
from itertools import chain, islice
from typing import Any, Final, NamedTuple, cast

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from venire import estimators, model, scheduling
from venire.engine.registry import Departed, Heard, Registry
from venire.engine.state import State
from venire.errors import InputError, VenireError
from venire.estimators.base import Parameters
from venire.estimators.voices import N_TONES, Tones
from venire.model import Bounds, Budget
from venire.scheduling.base import PER_ROW, Learning, Policy
from venire.scheduling.by_name import learning_named, policy_named
from venire.scheduling.kernel.desk import Desk, allocate

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


#: Where classes are looked for, by the names that these export.
_HOMES = (scheduling, estimators, model)


def to_data(value: Any, what: str) -> Any:
    """A value as plain data; `what` it is, for the error message.

    >>> from venire import LearnWhileServing
    >>> to_data(LearnWhileServing(prior=(9, 1)), "learning")["settings"]["prior"]
    {'tuple': [9, 1]}
    >>> to_data(print, "policy")
    Traceback (most recent call last):
    venire.errors.InputError: got a builtin_function_or_method as policy, which is not one of ...
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": value.tolist(), "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, list | tuple):
        parts = [to_data(part, f"{what}[{k}]") for k, part in enumerate(value)]
        return parts if type(value) is list else {"tuple": parts}
    if isinstance(value, Mapping):
        pairs = [(to_data(k, what), to_data(x, f"{what}[{k!r}]")) for k, x in value.items()]
        return {"mapping": [list(pair) for pair in pairs]}
    return _object(value, what)


def _object(value: Any, what: str) -> dict[str, Any]:
    name = type(value).__name__
    if _exported(name) is not type(value):
        raise InputError(
            f"got a {name} as {what}, which is not one of venire's own: a snapshot cannot keep it. "
            "Keep the log instead (Scheduler.log), and replay it with a scheduler made the same way"
        )
    given = _given(value).items()
    return {"class": name, "settings": {key: to_data(x, f"{what}.{key}") for key, x in given}}


def _given(value: Any) -> dict[str, Any]:
    if isinstance(value, Parameters):
        return value.get_params(deep=False)
    own = fields(value) if is_dataclass(value) else ()
    return {f.name: getattr(value, f.name) for f in own if f.init}


def _exported(name: str) -> type | None:
    for home in _HOMES:
        found = getattr(home, name) if name in home.__all__ else None
        if isinstance(found, type):
            return found
    return None


def from_data(data: Any) -> Any:
    """What `to_data` was given.

    >>> from_data({"class": "FixedOverlap", "settings": {"overlap": 5}})
    FixedOverlap(overlap=5)
    """
    if isinstance(data, list):
        return [from_data(part) for part in data]
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(from_data(part) for part in data["tuple"])
    if "mapping" in data:
        return {from_data(key): from_data(x) for key, x in data["mapping"]}
    if "array" in data:
        return np.array(data["array"], data["dtype"]).reshape(data["shape"])
    return _made(data["class"], {key: from_data(x) for key, x in data["settings"].items()})


def _made(name: str, settings: dict[str, Any]) -> Any:
    made = _exported(name)
    try:
        if made is None:
            raise TypeError(f"there is no class {name!r}")
        return made(**settings)
    except (TypeError, VenireError) as error:
        raise InputError(
            f"got a snapshot with settings that cannot be read ({error}): another "
            "version wrote it, replay the log instead"
        ) from error


FORMAT = b"venire-5\n"

#: What can be read: before the fifth there were no prices and budgets; before the fourth the lists
#: were part of the first line; before the third, policy and learning were names; before the second
#: there were neither revisions nor a floor.
READ = (FORMAT, b"venire-4\n", b"venire-3\n", b"venire-2\n", b"venire-1\n")

#: How many entries of a list, and bytes of an array, are written in one go.
PIECE, BYTES = 1000, 2**20


def is_older(snapshot: bytes) -> bool:
    r"""Whether an earlier version wrote a snapshot, by its format.

    >>> is_older(b"venire-1\n..."), is_older(FORMAT + b"..."), is_older(b"damaged")
    (True, False, False)
    """
    return snapshot.startswith(READ[1:])


class Captured(NamedTuple):
    """A copy of a scheduler's state, quickly made; any thread may `pack` it."""

    head: dict[str, Any]
    registry: Registry
    departed: Departed
    heard: Heard
    arrays: dict[str, NDArray[Any]]

    def pack(self) -> bytes:
        lists = {**self.registry.lists(), "departed": self.departed.lines(), "heard": self.heard}
        shapes = [[name, dtype_to_descr(a.dtype), list(a.shape)] for name, a in self.arrays.items()]
        head = self.head | {
            "arrived": self.registry.arrived,
            "lists": list(lists),
            "arrays": shapes,
        }
        pieces: Iterable[Any] = chain([_line(head)], *map(_lines, lists.values()), self._bytes())
        packer = zlib.compressobj(1)
        return b"".join([FORMAT, *map(packer.compress, pieces), packer.flush()])

    def _bytes(self) -> Iterator[NDArray[np.uint8]]:
        for array in self.arrays.values():
            flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            yield from (flat[k : k + BYTES] for k in range(0, len(flat), BYTES))


def _lines(values: Iterable[Any]) -> Iterator[bytes]:
    """A list as lines, and an empty one."""
    left = iter(values)
    while piece := list(islice(left, PIECE)):
        yield _line(piece)
    yield b"\n"


def _line(value: Any) -> bytes:
    try:
        return json.dumps(value).encode() + b"\n"
    except TypeError as error:
        raise InputError(
            f"got names that are neither text nor numbers ({error}): a snapshot cannot hold them, "
            "keep the log instead"
        ) from None


def capture(state: State) -> Captured:
    """A copy of the state without its log, which no longer changes."""
    queue, learner = state.queue, state.learner
    arrays: dict[str, NDArray[Any]] = {
        f"desk.{k}": v.copy() for k, v in queue.desk._asdict().items()
    }
    arrays["capacity"] = queue.capacity.copy()
    arrays["labelled"] = state.visits.labelled.copy()
    if learner is not None:
        arrays |= {f"learner.{k}": np.array(v) for k, v in learner.state().items()}
    head = {
        "policy": to_data(state.policy, "policy"),
        "learning": to_data(state.learning, "learning"),
        "memory": _memory(queue.policy),
        "c": state.c,
        "bounds": asdict(state.raw.bounds),
        "remember": state.registry.remember,
        "revisions": state.departed.most,
        "classes": list(state.registry.classes),
        "slot": state.slot,
        "events": state.events,
        "quiet": state.quiet,
        "retired": list(state.raw.retired.items()),
        "nobody": state.raw.nobody,
        "gold": list(state.gold.items()),
        **({"sufficed": list(state.sufficed.items())} if state.sufficed else {}),
        "costs": [[*pair, cost] for pair, cost in state.costs.items()],
        **({"families": list(state.families.items())} if state.families else {}),
        **({"tones": state.tones.state()} if state.tones else {}),
        "budget": None if state.purse.budget is None else asdict(state.purse.budget),
        "purse": state.purse.state(),
        "visits": state.visits.state(),
    }
    copied = state.registry.copy(), state.departed.copy(), state.heard.copy()
    return Captured(head, *copied, arrays)


def unpack(snapshot: bytes) -> State:
    head, lists, follow = _parse(snapshot)
    policy, learning = _settings(head)
    labelers = list(lists["labelers"])
    state = State(
        [fields[0] for fields in labelers],
        head["classes"],
        policy,
        learning,
        head["c"],
        Bounds(**{"floor": False} | head["bounds"]),  # older snapshots had no floor
        head["remember"],
        head.get("revisions", 0),
        Budget(**head["budget"]) if head.get("budget") else None,
        {(truth, verdict): cost for truth, verdict, cost in head.get("costs", ())},
        dict(head.get("families", ())),
    )
    if "purse" in head:
        state.purse.restore(head["purse"])
    state.registry.restore(lists | {"labelers": labelers, "arrived": head["arrived"]})
    state.departed.restore(lists.get("departed", ()))
    state.slot, state.events, state.quiet = head["slot"], head["events"], head["quiet"]
    state.heard = Heard(lists["heard"])
    state.gold = dict(head.get("gold", ()))
    state.sufficed = dict(head.get("sufficed", ()))
    if "tones" in head:
        state.tones = Tones.restored(head["tones"])
    arrays = dict(follow)
    if "visits" in head:
        state.visits.restore(head["visits"], arrays["labelled"])
    if state.learner is not None:
        state.learner.restore(_under("learner.", arrays))
    state.believe()
    _resume(state, head, arrays)
    state.file()
    return state


def _resume(state: State, head: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    queue = state.raw.queue
    queue.use(state.active)
    fitted, queue.stale = _fitted(_under("desk.", arrays), state.active.per_row)
    queue.capacity = arrays["capacity"]
    retired = {row: (why, group) for row, (why, group) in head["retired"]}
    if head.get("memory", now := _memory(queue.policy)) != now:
        fitted.gauges[:] = 0.0  # its places had other meanings
    state.raw.resume(fitted, retired, head["nobody"])


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin with the prefix, without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def _settings(head: dict[str, Any]) -> tuple[Policy, Learning | None]:
    """Policy and learning; older snapshots have only their names and seeds."""
    if "seeds" in head:
        seeds = head["seeds"]
        named = policy_named(head["policy"], seeds[0]), learning_named(head["learning"], seeds[1])
        return named
    policy, learning = from_data(head["policy"]), from_data(head["learning"])
    return cast(Policy, policy), cast("Learning | None", learning)


def _memory(policy: Policy) -> list[list[str | int]]:
    return [[name, *place] for name, place in policy.memory.layout.items()]


def _fitted(saved: dict[str, NDArray[Any]], per_row: Collection[str]) -> tuple[Desk, bool]:
    """The arrays as this version lays them out, and whether the saved ones were different.

    Older snapshots have those of every policy.
    """
    sizes = (len(saved[name]) for name in ("rows", "touches", "panel", "scores", "groups", "edges"))
    desk, other = allocate(*sizes, per_row=per_row)._asdict(), False
    if "votes" in saved and saved["votes"].shape[1:2] == (N_TONES * len(saved["scores"]),):
        desk["votes"] = np.zeros(saved["votes"].shape)
    for name, fresh in desk.items():
        old = saved.get(name)
        if name in PER_ROW and name not in per_row:
            continue
        if old is not None and old.dtype == fresh.dtype and old.shape == fresh.shape:
            # Equal dtypes may still differ: a saved one has lost that it is aligned, and kernels
            # would be compiled for it again and called more slowly.
            desk[name] = old.view(fresh.dtype)
            continue
        other = True
        if old is not None and old.dtype.names:
            for field in set(old.dtype.names) & set(fresh.dtype.names or ()):
                fresh[field][: len(old)] = old[field]
        elif old is not None and old.ndim == fresh.ndim == 1:
            fresh[: len(old)] = old[: len(fresh)]
    return Desk(**desk), other


def _parse(
    snapshot: bytes,
) -> tuple[dict[str, Any], dict[str, Iterable[Any]], Iterator[tuple[str, NDArray[Any]]]]:
    """The first line, the lists and the arrays, to be read in this order, and in theirs."""
    if not snapshot.startswith(READ):
        raise InputError(
            f"got a snapshot that begins with {snapshot[:12]!r}, expected {FORMAT!r}: "
            "another version wrote it, replay the log instead"
        )
    packed = Unpacking(memoryview(snapshot)[len(FORMAT) :])
    head: dict[str, Any] = json.loads(packed.line())
    if "roll" in head:  # before the fourth format the lists were here
        roll = head.pop("roll")
        lists = {**roll, "departed": head.get("departed", ()), "heard": head["heard"]}
        head["arrived"] = roll["arrived"]
    else:
        lists = {name: _entries(packed) for name in head["lists"]}
    return head, lists, _arrays(head["arrays"], packed)


def _entries(packed: Unpacking) -> Iterator[Any]:
    while line := packed.line():
        yield from json.loads(line)


def _arrays(shapes: list[Any], packed: Unpacking) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, kind, shape in shapes:
        descr: Any = kind if isinstance(kind, str) else [tuple(field) for field in kind]
        dtype = descr_to_dtype(descr)
        flat = np.frombuffer(packed.take(int(np.prod(shape)) * dtype.itemsize), dtype)
        yield name, flat.reshape(shape).copy()
    packed.end()
