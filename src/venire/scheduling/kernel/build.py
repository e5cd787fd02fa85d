"""All kernels of a policy, built out of the three that it writes.

A policy writes three kernels: a row enters, a row leaves, a slot is served. The others follow from
them in the same way for every policy, and are built here: the end of a slot, labels that come in,
rows that are refiled. Each policy has its own compiled copy, which Numba keeps on disk (see
`venire.tools.compiling`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.desk import (
    N_SETTINGS,
    OUTSTANDING,
    POOLED,
    ROWS,
    SETTING,
    Desk,
    clear_files,
    forget,
    with_rows_of,
)
from venire.scheduling.kernel.exits import make_settle
from venire.scheduling.kernel.labels import make_hear, revalue
from venire.tools.compiling import inlined, kernel

__all__ = ["compiled", "put_to_work", "refile_all"]

Row = Callable[[Desk, int], None]
RowInSlot = Callable[[Desk, int, int], None]


@inlined
def keep(desk: Desk, row: int) -> None:
    """Leave the row where it is."""


def compiled(
    enter: RowInSlot,
    leave: Row,
    serve: Callable[[Desk, int], None],
    settle: Callable[[Desk, int], int] | None = None,
    reenter: RowInSlot | None = None,
) -> Kernels:
    """All kernels of a policy, from those that it writes.

    Parameters
    ----------
    enter, leave, serve
        See `Kernels`.
    settle
        The end of a slot, if more happens in it than that due rows leave.
    reenter
        For an outstanding row whose labels have changed; by default `leave`, then `enter`.

    >>> from venire import Greedy
    >>> Greedy().kernels().settle.__name__
    'settle'
    """
    hear = make_hear(leave, enter) if reenter is None else make_hear(keep, reenter)
    return Kernels(enter, leave, serve, settle or make_settle(leave), hear, make_refile(enter))


def make_refile(enter: Callable[..., Any]) -> Callable[[Desk, Any, int], None]:
    """Build `refile(desk, rows, slot)` out of a policy's `enter`."""

    @kernel
    def refile(desk: Desk, rows: Any, slot: int) -> None:
        for i in range(len(rows)):
            revalue(desk, rows[i])
            enter(desk, rows[i], slot)

    return refile


def put_to_work(desk: Desk, policy: Policy, before: Policy) -> Desk:
    """The desk with a policy's own arrays, and its settings where its kernels read them.

    All rows are to be refiled after it.

    If it replaces a policy of another class, its memory begins empty (see `PolicyMemory`).
    """
    if type(policy) is not type(before):
        forget(desk)
    settings = policy.settings()
    desk.meta[SETTING : SETTING + N_SETTINGS] = 0
    desk.meta[SETTING : SETTING + len(settings)] = settings
    return with_rows_of(desk, policy.per_row)


def refile_all(desk: Desk, kernels: Kernels, slot: int, first: int | None = None) -> int:
    """Refile every outstanding row, after a change of belief, panel or policy.

    Rows in the pool keep their order, so that random draws do not depend on this. Returns the
    first outstanding row: given as `first` the next time, it saves looking at rows that have left.
    """
    pooled, start = desk.pool[: desk.meta[POOLED]].copy(), first or 0
    others = desk.rows["state"][start : desk.meta[ROWS]] == OUTSTANDING
    begin = start + int(others.argmax()) if others.any() else int(desk.meta[ROWS])
    others[pooled - start] = False
    clear_files(desk, first)
    rows = np.concatenate([pooled, start + np.flatnonzero(others)]).astype(np.int64)
    kernels.refile(desk, rows, slot)
    return begin
