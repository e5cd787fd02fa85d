"""Doing again what a log says happened.

A log is either *redone*: the verbs are called again, and must write the same events; or *obeyed*:
who gets what and who leaves is taken from the log. A log that another version of the engine wrote
may hold other decisions than this one makes; what happened has happened all the same. So work is
given as the log has it, and at the end of a slot exactly those items leave that left. An item that
this version would have let go too is brought back, and leaves once this version decides.

Which engine this is: a digest of everything that can change a decision.
"""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from venire.engine.registry import Kept
from venire.errors import ReplayError, VenireError
from venire.events import (
    Assigned,
    Closed,
    Event,
    Observed,
)
from venire.model import Exit, Revision
from venire.scheduling.kernel.desk import GONE, OUTSTANDING, REASONS, TOUCHES
from venire.scheduling.kernel.rows import never_due_row, revalue
from venire.scheduling.kernel.verdicts import depart
from venire.tools.compiling import source_files

if TYPE_CHECKING:
    from venire.engine.bounded_queue import BoundedQueue
    from venire.engine.scheduler import Scheduler
    from venire.engine.state import State


#: The packages that decide, beside the modules at the root.
DECIDING: Final = ("engine", "estimators", "labels", "paper", "scheduling", "tools")

#: The libraries they compute with.
_LIBRARIES: Final = ("numba", "numpy", "scipy")


@cache
def engine_version() -> str:
    """A short name of this engine: equal for equal sources, libraries and kind of machine.

    A different name does not mean different decisions, only that they are possible.

    >>> len(engine_version())
    16
    """
    digest = hashlib.sha256(platform.machine().encode())
    for name in _LIBRARIES:
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:  # as when it is bundled
            digest.update(f"{name}\n".encode())
    root = Path(__file__).parent.parent
    for path in source_files(DECIDING):
        digest.update(f"{path.relative_to(root)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


#: How many labels are taken in one call.
PIECE: Final = 1000


def follow(s: Scheduler, log: Iterable[Event], obey: bool) -> None:
    """Do again what the events say; with `obey`, take decisions from them."""
    for _, run in groupby(log, _kind_and_slot):
        for event in run:
            _follow_one(s, event, obey)
            if isinstance(event, Observed):
                for labels in _pieces(run):
                    if not _hear(s, labels):
                        for label in labels:
                            _follow_one(s, label, obey)


def _follow_one(s: Scheduler, event: Event, obey: bool) -> None:
    state = s.state
    number = state.events + 1
    if obey:
        _pass_to(state, event.slot)
        _obey(s, event)
    else:
        s.advance(event.slot)
        if state.events + 1 == number:
            event.redo(s)
    if state.events != number or not _same(state.log[-1], event):
        gave = state.log[-1] if state.events >= number else "nothing"
        raise _differs(event, gave)


def _kind_and_slot(event: Event) -> tuple[type, int]:
    return type(event), event.slot


def _pieces(run: Iterator[Event]) -> Iterator[list[Event]]:
    while piece := list(islice(run, PIECE)):
        yield piece


def _hear(s: Scheduler, run: list[Event]) -> bool:
    """Take the labels of this slot in one call, which is as one by one; False if one is refused."""
    labels = cast("list[Observed]", run)
    before = len(s.state.log)
    try:
        s.observe([event.label for event in labels])
    except VenireError:  # then none was taken
        return False
    made = cast("list[Observed]", s.state.log[before:])
    if len(made) == len(labels) and all(
        a.label is b.label and a.late == b.late for a, b in zip(made, labels, strict=True)
    ):
        return True
    pairs = zip_longest(labels, made, fillvalue="nothing")
    raise _differs(*next((event, gave) for event, gave in pairs if event != gave))


def _differs(event: Event | str, gave: Event | str) -> ReplayError:
    return ReplayError(f"the log says {event}, but replaying it gave {gave}")


def _pass_to(state: State, slot: int) -> None:
    """Let the slots before this one pass; nobody leaves in them."""
    while state.slot < slot:
        if not state.skip(slot):
            _settle_as(state, ())
            state.learn()
            state.next()


def _obey(s: Scheduler, event: Event) -> None:
    if isinstance(event, Assigned):
        _assign_as(s.state, event)
    elif isinstance(event, Closed):
        _close_as(s.state, event)
    else:
        event.redo(s)


def _assign_as(state: State, event: Assigned) -> None:
    for a in event.assignments:
        row, m = state.registry.outstanding(a.item), state.registry.known(a.labeler)
        if state.queue.find(row, m) >= 0:
            raise ReplayError(f"labeler {a.labeler!r} has item {a.item!r} already")
        state.bounded.give(row, m, state.slot, a.gain)
        end = int(state.queue.desk.meta[TOUCHES])
        state.spend(range(end - 1, end))
    state.write(event)


def _close_as(state: State, event: Closed) -> None:
    """End the slot with the exits and revisions that the event names."""
    _settle_as(state, event.exits)
    state.learn()
    _revise_as(state, event.revisions)
    state.write(event)
    state.next()


def _settle_as(state: State, exits: Sequence[Exit]) -> None:
    """End the slot in which these left."""
    registry, departed = state.registry, state.departed
    rows = [registry.outstanding(exit.item) for exit in exits]
    codes = [registry.code.get(exit.verdict.label, -1) for exit in exits]
    _let_go(state.bounded, state.slot, rows, exits, codes)
    for row, exit, code in zip(rows, exits, codes, strict=True):
        known = state.gold.pop(exit.item, None), state.sufficed.pop(exit.item, None)
        if known == (None, None) and departed.most:
            labels = state.raw.queue.labels_of(row)
            departed.add(exit.item, Kept(*labels, code, exit.verdict.confidence))
        registry.remove(row)


def _let_go(
    bounded: BoundedQueue, slot: int, rows: Sequence[int], exits: Sequence[Exit], codes: list[int]
) -> None:
    """Have exactly these rows leave, each with its exit and the code of its verdict."""
    desk, kernels, leaving = bounded.desk, bounded.queue.kernels, set(rows)
    gone = set(desk.gone[: kernels.settle(desk, slot)].tolist())
    for row in sorted(gone - leaving):
        desk.rows["state"][row] = OUTSTANDING
        revalue(desk, row)
        kernels.enter(desk, row, slot)
    for row in sorted(leaving - gone):
        kernels.leave(desk, row)
        never_due_row(desk, row)
        desk.rows["state"][row], desk.rows["exit"][row] = GONE, slot
    depart(desk, np.array(rows, np.int32))
    for row, exit, code in zip(rows, exits, codes, strict=True):
        r = desk.rows[row]
        r["verdict"], r["confidence"] = code, exit.verdict.confidence
        r["labels"] = exit.labels
        r["reason"] = REASONS.index(exit.reason)
        bounded.retired.pop(row, None)
    desk.panel["load"] = desk.panel["inflight"]
    bounded.queue.stale = True  # rows that came back are due again where a bound says so


def _revise_as(state: State, revisions: Sequence[Revision]) -> None:
    for revision in revisions:
        kept, verdict = state.departed.items.get(revision.item), revision.verdict
        if kept is None:
            raise ReplayError(
                f"the log revises item {revision.item!r}, which is not among the "
                f"{state.departed.most} items that left last"
            )
        code = state.registry.code.get(verdict.label, -1)
        state.departed.items[revision.item] = kept._replace(
            verdict=code, confidence=verdict.confidence
        )


def _same(a: Event, b: Event) -> bool:
    """Equal, where a gain that is not known equals another that is not."""
    if isinstance(a, Assigned) and isinstance(b, Assigned):
        pairs = zip(a.assignments, b.assignments, strict=False)
        return len(a.assignments) == len(b.assignments) and all(
            x == replace(y, gain=x.gain) and (x.gain == y.gain or math.isnan(x.gain))
            for x, y in pairs
        )
    return a == b
