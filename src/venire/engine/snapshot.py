"""A scheduler as bytes, and back: what a server keeps so that it need not replay everything.

The format is a line of JSON (settings, and the shape of each array), the long lists as lines of
JSON with up to a thousand entries each and an empty line behind each list, and the arrays one
behind the other; all of it compressed. Nothing in it is ever executed, and nothing in it is long:
a thread that packs or restores lets others run after each piece. The number of the format is
in front; older ones are read, newer ones are refused, and the log is replayed instead. Records are
written with the names of their fields: a snapshot of a version that kept more or fewer of them is
read, and every item is filed again. Policy and learning are kept as data (see `settings_data`), and
the memory of the policy with the names of its parts.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from itertools import chain, islice
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from venire.budget import Budget
from venire.engine.departed import Departed
from venire.engine.heard import Heard
from venire.engine.registry import Registry
from venire.engine.settings_data import from_data, to_data
from venire.engine.state import State
from venire.engine.unpacking import Unpacking
from venire.errors import InputError
from venire.model import Bounds
from venire.scheduling.base import PER_ROW, Learning, Policy
from venire.scheduling.by_name import learning_named, policy_named
from venire.scheduling.kernel.desk import Desk, allocate

__all__ = ["Captured", "capture", "is_older", "unpack"]

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
        """As bytes."""
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
        "costs": [[*pair, cost] for pair, cost in state.costs.items()],
        **({"families": list(state.families.items())} if state.families else {}),
        "budget": None if state.purse.budget is None else asdict(state.purse.budget),
        "purse": state.purse.state(),
        "visits": state.visits.state(),
    }
    copied = state.registry.copy(), state.departed.copy(), state.heard.copy()
    return Captured(head, *copied, arrays)


def unpack(snapshot: bytes) -> State:
    """The state that was packed."""
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
    """Put the arrays of the queue in place."""
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
    """The names of the parts of a policy's memory, with their places."""
    return [[name, *place] for name, place in policy.memory.layout.items()]


def _fitted(saved: dict[str, NDArray[Any]], per_row: Collection[str]) -> tuple[Desk, bool]:
    """The arrays as this version lays them out, and whether the saved ones were different.

    Older snapshots have those of every policy.
    """
    sizes = (len(saved[name]) for name in ("rows", "touches", "panel", "scores", "groups", "edges"))
    desk, other = allocate(*sizes, per_row=per_row)._asdict(), False
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
    """The entries of a list, line by line, up to an empty one."""
    while line := packed.line():
        yield from json.loads(line)


def _arrays(shapes: list[Any], packed: Unpacking) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, kind, shape in shapes:
        descr: Any = kind if isinstance(kind, str) else [tuple(field) for field in kind]
        dtype = descr_to_dtype(descr)
        flat = np.frombuffer(packed.take(int(np.prod(shape)) * dtype.itemsize), dtype)
        yield name, flat.reshape(shape).copy()
    packed.end()
