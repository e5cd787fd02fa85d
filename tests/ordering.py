"""Which tests are started first, where several processes share them.

Some files mostly wait: for servers that are killed again and again, for time-outs. Whatever starts
one of them last makes all wait for it. With `--dist worksteal` each process gets a stretch of the
tests, in order, and takes from the end of another's when it has no more. So these files go to the
beginnings of the first half of the stretches; the other processes keep the cores busy meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

#: The files that wait, the longest first.
WAITING = (
    "tests/integration/server/test_crash.py",
    "tests/integration/server/test_standby.py",
    "tests/integration/server/test_sharing.py",
    "tests/integration/server/test_label_studio.py",
)


def waiting_first(tests: Sequence[T], file_of: Callable[[T], str], processes: int) -> list[T]:
    """The tests in the order in which that many processes should share them."""
    first: list[list[T]] = [[] for _ in range(max(1, processes // 2))]
    for k, file in enumerate(WAITING):
        first[k % len(first)] += [test for test in tests if file_of(test) == file]
    others = [test for test in tests if file_of(test) not in WAITING]
    ordered: list[T] = []
    for k in range(processes):  # xdist's stretches
        size = (len(tests) - len(ordered)) // (processes - k)
        own = first[k] if k < len(first) else []
        rest = max(0, size - len(own))
        ordered += own + others[:rest]
        others = others[rest:]
    return ordered + others
