"""Many slots in one compiled call, by the kernels that the engine calls one by one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from venire.scheduling.base import Kernels
from venire.scheduling.kernel.desk import OUTSTANDING, ROWS, TOUCHES, Desk
from venire.scheduling.kernel.verdicts import decide_gone
from venire.simulation import inputs
from venire.simulation.inputs import Stream, ask
from venire.tools.compiling import inlined, kernel

__all__ = ["run_of"]


@inlined
def observe_all(desk: Desk, stream: Stream, first: int) -> None:
    """Let every label asked for since touch `first` come within its slot."""
    for k in range(first, desk.meta[TOUCHES]):
        row, m = desk.touches[k].row, desk.touches[k].labeler
        desk.touches[k].said = ask(stream, row, m, desk.touches[k].slot)
        desk.rows[row].pending = 0
        desk.panel[m].inflight = 0
        desk.panel[m].load = 0


@inlined
def most_in_a_slot(desk: Desk) -> int:
    """The most labels that a slot may bring: nobody labels an item twice."""
    most = 0
    for m in range(len(desk.panel)):
        most += min(desk.panel[m].capacity, len(desk.rows))
    return most


@kernel
def hear_all(desk: Desk, stream: Stream, first: int) -> None:
    """`observe_all` for callers outside the kernels."""
    observe_all(desk, stream, first)


@kernel
def decide_all(desk: Desk, count: int) -> None:
    """`decide_gone` for callers outside the kernels."""
    decide_gone(desk, count)


Slots = Callable[[Desk, Stream, int, int], int]


def run_of(kernels: Kernels) -> Slots:
    """The `run(desk, stream, start, stop)` of a policy: slots start..stop-1.

    It returns the slot reached, which is before `stop` where the desk has no room for the
    touches of one more slot. It is compiled, unless a kernel of the policy is Python.
    """
    written = all(hasattr(part, "py_func") for part in (kernels.serve, kernels.settle))
    return compiled_run(kernels) if written else plain_run(kernels)


@cache
def compiled_run(kernels: Kernels) -> Slots:
    """All slots in one compiled call."""
    enter, serve, settle = kernels.enter, kernels.serve, kernels.settle

    @kernel
    def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
        most = most_in_a_slot(desk)
        for slot in range(start, stop):
            if desk.meta[TOUCHES] + most > len(desk.touches):
                return slot
            for row in range(stream.first[slot], stream.first[slot + 1]):
                desk.rows[row].state = OUTSTANDING
                desk.meta[ROWS] = row + 1
                enter(desk, row, slot)
            first = desk.meta[TOUCHES]
            serve(desk, slot)
            observe_all(desk, stream, first)
            decide_gone(desk, settle(desk, slot))
        return stop

    return run


def plain_run(kernels: Kernels) -> Slots:
    """The same, slot by slot from Python."""

    def run(desk: Desk, stream: Stream, start: int, stop: int) -> int:
        most = inputs.most_in_a_slot(desk.panel["capacity"], len(desk.rows))
        for slot in range(start, stop):
            first = int(desk.meta[TOUCHES])
            if first + most > len(desk.touches):
                return slot
            for row in range(stream.first[slot], stream.first[slot + 1]):
                desk.rows["state"][row] = OUTSTANDING
                desk.meta[ROWS] = row + 1
                kernels.enter(desk, row, slot)
            kernels.serve(desk, slot)
            hear_all(desk, stream, first)
            decide_all(desk, kernels.settle(desk, slot))
        return stop

    return run
