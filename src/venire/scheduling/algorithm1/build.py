"""All kernels of a policy, built out of the three that it writes.

A policy writes three kernels: a row enters, a row leaves, a slot is served. The others follow from
them in the same way for every policy, and are built here: the end of a slot, labels that come in,
rows that are refiled. Each policy has its own compiled copy, which Numba keeps on disk (see
`venire.tools.compiling`).
"""

from __future__ import annotations

from collections.abc import Callable

from venire.scheduling.algorithm1.exit_wheel import make_settle
from venire.scheduling.algorithm1.incoming_labels import make_hear
from venire.scheduling.algorithm1.verdicts import make_refile
from venire.scheduling.base import Kernels
from venire.scheduling.state.desk import Desk
from venire.tools.compiling import inlined

__all__ = ["compiled"]

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
