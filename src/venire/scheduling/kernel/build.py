"""All kernels of a policy, built out of the three that it writes.

A policy writes three kernels: a row enters, a row leaves, a slot is served. The others follow from
them in the same way for every policy, and are built here: the end of a slot, labels that come in,
rows that are refiled. Each policy has its own compiled copy, which Numba keeps on disk (see
`venire.tools.compiling`).

**Where a row stands with the limits on labels and confidence.**

The confidence that a row must reach is its own, or that of all rows.

A row is *held* while it is below the confidence that it must reach, has fewer than the most labels,
and an eligible labeler is left. It is *short* of labels if it has fewer than the least, or if it
would still be below the confidence once all of its labels in flight confirm its verdict: so nothing
is requested that they may make superfluous, and nothing waits for them if they cannot be enough. It
is *sure* once it has the confidence, by what is believed of the labelers, and the fewest labels.

This is written on the row whenever something happens to it, so that neither closing a slot nor
asking for work looks at the labels of unchanged rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venire.scheduling.base import Kernels, Policy
from venire.scheduling.kernel.desk import (
    BELIEVED,
    CERTAINTY,
    COSTLY,
    FLOOR,
    HELD,
    KEEPS,
    LEAST,
    MOST,
    N_SETTINGS,
    OUTSTANDING,
    POOLED,
    ROWS,
    SETTING,
    SHORT,
    SURE,
    Desk,
    clear_files,
    forget,
    with_rows_of,
)
from venire.scheduling.kernel.rows import (
    any_eligible,
    find,
    in_group,
    make_hear,
    make_settle,
    mark_barred,
    revalue,
)
from venire.scheduling.kernel.verdicts import add_up, add_votes, confidence_in
from venire.tools.arrays import Ints
from venire.tools.compiling import inlined, kernel


@inlined
def confidences(desk: Desk, row: int) -> tuple[float, float]:
    """The confidence of a row now, and once all labels in flight confirm its verdict."""
    best, votes = add_up(desk, row)
    believed, certain = desk.meta[BELIEVED] != 0, desk.bounds[CERTAINTY]
    how = desk.lean, believed, certain, desk.meta[COSTLY] != 0
    now = confidence_in(desk.scores, *how, best, votes)
    if desk.rows[row].pending == 0:
        return now, now
    votes += add_votes(desk, row, best)
    return now, confidence_in(desk.scores, *how, best, votes)


@inlined
def stand_of(desk: Desk, row: int) -> int:
    """Where the row stands, as flags."""
    least, labels = desk.meta[LEAST], desk.rows[row].labels
    floor = desk.rows[row].floor if desk.rows[row].floor > 0.0 else desk.bounds[FLOOR]
    full = 0 < desk.meta[MOST] <= labels
    stand = SHORT if labels < least and not full else 0
    if floor <= 0.0:
        return stand
    now, then = confidences(desk, row)
    if now >= floor:
        known = desk.meta[BELIEVED] != 0 or desk.meta[KEEPS] == 0
        if known and labels - desk.rows[row].pending >= max(1, least):
            stand |= SURE
    elif desk.meta[KEEPS] != 0 and not full and any_eligible(desk, row):
        stand |= HELD
        if then < floor:
            stand |= SHORT
    return stand


@inlined
def note(desk: Desk, row: int, cursors: Ints) -> int:
    """Write where the row stands; reset the cursors of labelers who may be given it now."""
    stand = stand_of(desk, row)
    desk.rows[row].stand = stand
    if stand & SHORT:
        stamp = mark_barred(desk, row)
        for m in range(len(cursors)):
            if cursors[m] > row and desk.panel[m].mark != stamp:
                cursors[m] = row
    return stand


@kernel
def note_stand(desk: Desk, row: int, cursors: Ints) -> int:
    return note(desk, row, cursors)


@kernel
def note_rows(desk: Desk, rows: Ints, cursors: Ints) -> None:
    """Write where these rows stand."""
    for row in rows:
        note(desk, row, cursors)


@kernel
def survey(desk: Desk, cursors: Ints) -> None:
    """Write where every outstanding row stands."""
    for m in range(len(cursors)):
        cursors[m] = 0
    for row in range(desk.meta[ROWS]):
        if desk.rows[row].state == OUTSTANDING:
            desk.rows[row].stand = stand_of(desk, row)


@kernel
def next_short(desk: Desk, labeler: int, cursors: Ints) -> int:
    """The earliest row that is short of labels and that this labeler may be given; -1 if none.

    `cursors` holds for each labeler a row before which there is none, so that repeated requests
    do not look at the same rows.
    """
    for row in range(cursors[labeler], desk.meta[ROWS]):
        if desk.rows[row].stand & SHORT == 0 or desk.rows[row].state != OUTSTANDING:
            continue
        if in_group(desk, row, labeler) and find(desk, row, labeler) < 0:
            cursors[labeler] = row
            return row
    cursors[labeler] = desk.meta[ROWS]
    return -1


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
