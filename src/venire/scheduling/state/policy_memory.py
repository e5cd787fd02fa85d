"""What a policy remembers from slot to slot, by name.

A policy declares its memory beside its kernels: names, each with a place in `desk.gauges`. The same
place means something else to another policy, so a memory belongs to one class of policies:

- a policy that replaces one of another class begins with an empty memory;
- one of the same class, whatever its settings, keeps the memory.

Its counters, the order of its queue (`key` of the rows, the turn) and its pool are part of it: see
`forget` in desk.py. Everything else on a desk is the state of items and labelers, which all
policies read in the same way, or is rebuilt by `refile_all`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire.errors import InputError

__all__ = ["N_GAUGES", "PolicyMemory"]

#: The most numbers that a policy can remember.
N_GAUGES: Final = 64

#: A list of numbers begins at a multiple of this, with a cache line.
LINE: Final = 8


class PolicyMemory:
    """Names for what a policy remembers.

    Parameters
    ----------
    names
        Single numbers.
    after
        The memory of another policy that this one extends: names and places.
    lists
        Names of lists of numbers, and their lengths.

    >>> MEMORY = PolicyMemory("price", "sold", counts=16)
    >>> PRICE, SOLD, COUNTS = MEMORY.places
    >>> COUNTS
    8
    >>> gauges = np.zeros(64)
    >>> gauges[PRICE] = 2.5
    >>> MEMORY.read(gauges)["price"]
    array([2.5])
    """

    def __init__(self, *names: str, after: PolicyMemory | None = None, **lists: int) -> None:
        self.layout: dict[str, tuple[int, int]] = {} if after is None else dict(after.layout)
        end = max((place + size for place, size in self.layout.values()), default=0)
        own = []
        for name, size in [*((name, 1) for name in names), *lists.items()]:
            if name in self.layout:
                raise InputError(f"got {name!r} twice, expected distinct names in a memory")
            place = end if size == 1 else -(-end // LINE) * LINE
            end = place + size
            self.layout[name] = place, size
            own.append(place)
        if end > N_GAUGES:
            raise InputError(f"got a memory of {end} numbers, expected at most {N_GAUGES}")
        self.places = tuple(own)

    def read(self, gauges: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """The values now, by name."""
        return {name: gauges[at : at + size].copy() for name, (at, size) in self.layout.items()}
