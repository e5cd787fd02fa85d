"""A scheduler as bytes, and back: what a server keeps so that it need not replay everything.

The format is a line of JSON (settings, names, and the shape of each array) and the arrays one
behind the other, compressed. Nothing in it is ever executed. The number of the format is in
front; older ones are read, newer ones are refused, and the log is replayed instead. Records are
written with the names of their fields: a snapshot of a version that kept more or fewer of them is
read, and everything is filed anew. Policy and learning are kept as data (see `kept`), and what the
policy remembers with the names of it.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.lib.format import descr_to_dtype, dtype_to_descr
from numpy.typing import NDArray

from venire.engine.departed import Departed
from venire.engine.kept import from_data, to_data
from venire.engine.roll import Roll
from venire.errors import InputError
from venire.model import Bounds
from venire.scheduling.base import Learning, Policy
from venire.scheduling.desk import Desk, allocate
from venire.scheduling.names import learning_named, policy_named

if TYPE_CHECKING:
    from venire.engine.scheduler import Scheduler

__all__ = ["Captured", "capture", "unpack"]

FORMAT = b"venire-3\n"

#: What can be read: before the third, policy and learning were names; before the second there were
#: no revisions, and no floor.
READ = (FORMAT, b"venire-2\n", b"venire-1\n")

#: So many entries of a list are written in one go.
PIECE = 1000


class Captured(NamedTuple):
    """A copy of a scheduler's state, quickly made; `pack` it anywhere, in a thread too."""

    head: dict[str, Any]
    roll: Roll
    departed: Departed
    arrays: dict[str, NDArray[Any]]

    def pack(self) -> bytes:
        """As bytes."""
        shapes = [[name, dtype_to_descr(a.dtype), list(a.shape)] for name, a in self.arrays.items()]
        head = self.head | {"roll": self.roll.state(), "departed": self.departed.state()}
        head["arrays"] = shapes
        try:
            line = _json(head).encode()
        except TypeError:
            raise InputError(
                f"got the classes {head['classes']}, expected text or numbers: a snapshot "
                "holds nothing else"
            ) from None
        body = b"".join(a.tobytes() for a in self.arrays.values())
        return FORMAT + zlib.compress(line + b"\n" + body, 1)


def _json(value: Any) -> str:
    """JSON, long lists in pieces: a thread that packs lets the others go on in between."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list) and len(value) > PIECE:
        pieces = (value[k : k + PIECE] for k in range(0, len(value), PIECE))
        return "[" + ", ".join(json.dumps(piece)[1:-1] for piece in pieces) + "]"
    return json.dumps(value)


def capture(scheduler: Scheduler) -> Captured:
    """All of a scheduler's state but its log, of which nothing changes any more."""
    clerk, learner = scheduler._clerk, scheduler._learner
    arrays: dict[str, NDArray[Any]] = {
        f"desk.{k}": v.copy() for k, v in clerk.desk._asdict().items()
    }
    arrays["capacity"] = clerk.capacity.copy()
    if learner is not None:
        arrays |= {f"learner.{k}": np.array(v) for k, v in learner.state().items()}
    head = {
        "policy": to_data(scheduler.policy, "policy"),
        "learning": to_data(scheduler.learning, "learning"),
        "memory": _memory(clerk.policy),
        "c": scheduler.c,
        "bounds": asdict(clerk.bounds),
        "remember": scheduler._roll.remember,
        "revisions": scheduler.revisions,
        "classes": list(scheduler.classes),
        "slot": scheduler.slot,
        "events": scheduler._events,
        "quiet": scheduler._quiet,
        "heard": list(scheduler._heard),
        "retired": list(clerk.retired.items()),
        "nobody": clerk.nobody,
    }
    return Captured(head, scheduler._roll.copy(), scheduler._departed.copy(), arrays)


def unpack(snapshot: bytes) -> Scheduler:
    """The scheduler that was packed."""
    from venire.engine.scheduler import Scheduler

    head, arrays = _parse(snapshot)
    policy, learning = _settings(head)
    labelers = [fields[0] for fields in head["roll"]["labelers"]]
    scheduler = Scheduler.__new__(Scheduler)
    scheduler._begin(
        labelers,
        head["classes"],
        policy,
        learning,
        head["c"],
        Bounds(**{"floor": False} | head["bounds"]),  # it was none in older snapshots
        head["remember"],
        head.get("revisions", 0),
    )
    scheduler._departed.restore(head.get("departed", ()))
    roll, clerk = scheduler._roll, scheduler._books
    roll.restore(head["roll"])
    scheduler.slot, scheduler._events = head["slot"], head["events"]
    scheduler._quiet = head["quiet"]
    scheduler._heard = [(a, b, c) for a, b, c in head["heard"]]
    learned = {k.partition(".")[2]: v for k, v in arrays.items() if k.startswith("learner.")}
    if scheduler._learner is not None:
        scheduler._learner.restore(learned)
    scheduler._believe()
    clerk.use(scheduler._active())
    desk = {k.partition(".")[2]: v for k, v in arrays.items() if k.startswith("desk.")}
    fitted, clerk.stale = _fitted(desk)
    clerk.capacity = arrays["capacity"]
    retired = {row: (why, group) for row, (why, group) in head["retired"]}
    if head.get("memory", now := _memory(clerk.policy)) != now:
        fitted.gauges[:] = 0.0  # its places had other meanings
    clerk.resume(fitted, retired, head["nobody"])
    clerk.refresh(scheduler.slot)
    return scheduler


def _settings(head: dict[str, Any]) -> tuple[Policy, Learning | None]:
    """Policy and learning; by their names, without more than the names say, in older snapshots."""
    if "seeds" in head:
        seeds = head["seeds"]
        named = policy_named(head["policy"], seeds[0]), learning_named(head["learning"], seeds[1])
        return named
    policy, learning = from_data(head["policy"]), from_data(head["learning"])
    return cast(Policy, policy), cast("Learning | None", learning)


def _memory(policy: Policy) -> list[list[str | int]]:
    """The names of what a policy remembers, with their places."""
    return [[name, *place] for name, place in policy.memory.layout.items()]


def _fitted(saved: dict[str, NDArray[Any]]) -> tuple[Desk, bool]:
    """The desk as this version keeps it, and whether the one that was saved was otherwise."""
    sizes = (len(saved[name]) for name in ("rows", "touches", "panel", "scores", "groups", "edges"))
    desk, other = allocate(*sizes)._asdict(), False
    for name, fresh in desk.items():
        old = saved.get(name)
        if old is not None and old.dtype == fresh.dtype and old.shape == fresh.shape:
            # Equal is not the same: a dtype that was written down has lost that it is aligned,
            # and kernels would be compiled for it anew and called by a slower way.
            desk[name] = old.view(fresh.dtype)
            continue
        other = True
        if old is not None and old.dtype.names:
            for field in set(old.dtype.names) & set(fresh.dtype.names or ()):
                fresh[field][: len(old)] = old[field]
        elif old is not None and old.ndim == fresh.ndim == 1:
            fresh[: len(old)] = old[: len(fresh)]
    return Desk(**desk), other


def _parse(snapshot: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if not snapshot.startswith(READ):
        raise InputError(
            f"got a snapshot that begins with {snapshot[:12]!r}, expected {FORMAT!r}: it is of "
            "another version; replay the log instead"
        )
    line, _, body = zlib.decompress(snapshot[len(FORMAT) :]).partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    arrays, place = {}, 0
    for name, kind, shape in head["arrays"]:
        descr: Any = kind if isinstance(kind, str) else [tuple(field) for field in kind]
        dtype = descr_to_dtype(descr)
        count = int(np.prod(shape))
        flat = np.frombuffer(body, dtype, count, place)
        arrays[name] = flat.reshape(shape).copy()
        place += count * dtype.itemsize
    return head, arrays
