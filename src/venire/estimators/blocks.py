"""Blocks of items: how a pass over a label table is shared among threads.

A table is cut into blocks of items that depend on the table alone. Each block sums into an array
of its own, and these are added up in the order of the blocks, so the result is the same bit for bit
with any number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, Self, TypeVar

import numpy as np

from venire.errors import InputError
from venire.estimators.passes import arrange
from venire.labels import Codes, LabelTable
from venire.labels.partitions import Partitions, Table
from venire.tools.arrays import Floats

#: The fewest labels of a block: below that, starting a thread costs more than it saves.
LABELS: Final = 1 << 15

#: The most blocks.
MOST: Final = 64


class Blocks:
    """Runs a kernel over the blocks of a table and adds up what it found.

    A kernel is called as kernel(lengths, code, order, *parameters, sums, posteriors), see
    `venire.estimators.passes` for the first three; `sums` are zeros to add to, `posteriors`
    is the block's part of the items x K array, or is empty. It returns a number, and these are
    added up as well.

    `room` is the size of the largest array that a kernel sums into; `threads` are by default as
    many as this process may use processors; `said_of` is the class that was said in each code.

    >>> from venire.estimators.passes import count_pass
    >>> table = LabelTable.from_matrix([[0, 1], [1, -1], [0, -1]])
    >>> with Blocks(table, room=4) as blocks:
    ...     blocks.run(count_pass, 4)
    (3.0, array([2., 1., 0., 1.]))
    """

    def __init__(self, table: LabelTable, room: int, threads: int | None = None) -> None:
        if threads is not None and (threads != int(threads) or threads < 1):
            raise InputError(f"got threads={threads!r}, expected a whole number above 0, or None")
        self.table = table
        self.edges = _edges(table, room)
        self.count = len(self.edges) - 1
        narrow = np.uint8 if len(table.classes) <= 256 else np.uint32
        self.said_of = np.tile(np.arange(len(table.classes), dtype=narrow), len(table.labelers))
        self._nothing = np.empty((0, len(table.classes)))
        self._helpers = min(threads or usable_processors(), self.count) - 1
        self._pool = ThreadPoolExecutor(self._helpers) if self._helpers > 0 else None
        self._arrange()

    def run(
        self,
        kernel: Callable[..., float],
        room: int,
        *parameters: Any,
        posteriors: Floats | None = None,
        numbered: bool = False,
    ) -> tuple[float, Floats]:
        """One pass over the table: the sum of what the kernel returned, and the sums it made.

        With `numbered` a kernel gets the number of its block after the other parameters.
        """
        sums, totals = np.zeros((self.count, room)), np.zeros(self.count)

        def one(b: int) -> None:
            out = self._nothing if posteriors is None else posteriors[slice(*self.edges[b : b + 2])]
            number = (b,) if numbered else ()
            totals[b] = kernel(*self._layout[b], *parameters, *number, sums[b], out)

        self._each(one)
        for b in range(1, self.count):
            sums[0] += sums[b]
        return float(np.add.accumulate(totals)[-1]), sums[0]

    def _arrange(self) -> None:
        """Arrange the labels of each block in the layout of the kernels."""
        start, K = self.table.start, len(self.table.classes)
        self._layout: list[Any] = [None] * self.count
        few = len(self.table.labelers) * K <= 1 << 16
        code: Codes = np.empty(int(start[-1]), np.uint16 if few else np.uint32)
        order = np.empty(len(start) - 1, np.uint32)

        def one(b: int) -> None:
            first, last = self.edges[b], self.edges[b + 1]
            mine = code[start[first] : start[last]], order[first:last]
            labels = self.table.labeler, self.table.said
            lengths = arrange(start[first : last + 1], *labels, K, *mine)
            self._layout[b] = lengths, *mine

        self._each(one)

    def _each(self, one: Callable[[int], None]) -> None:
        """Call a function for every block; each thread takes the next free block."""
        queue = iter(range(self.count))

        def work(queue: Iterator[int]) -> None:
            for b in queue:
                one(b)

        pool = self._pool
        waiting = [pool.submit(work, queue) for _ in range(self._helpers)] if pool else []
        work(queue)
        for helper in waiting:
            helper.result()

    def close(self) -> None:
        if self._pool:
            self._pool.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Model:
    """Passes over a table, block by block: `expect` is a step of EM."""

    expect: Callable[..., tuple[float, Any]]

    def __init__(self, table: LabelTable, room: int, threads: int | None) -> None:
        self.labelers, self.classes = len(table.labelers), len(table.classes)
        self.rows = len(table.items)
        self._blocks = Blocks(table, room, threads)

    def conclude(self, parameters: Floats, priors: Floats) -> tuple[float, Any, Floats]:
        """What `expect` says, and the posteriors of all items: those without labels have priors."""
        posteriors = np.empty((self.rows, self.classes))
        posteriors[np.diff(self._blocks.table.start) == 0] = priors
        return *self.expect(parameters, priors, posteriors), posteriors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.close()


AnyModel = TypeVar("AnyModel", bound=Model)


def model_of(kind: type[AnyModel], table: Table, threads: int | None = None) -> AnyModel:
    """The model of a table, in one piece or in partitions."""
    if isinstance(table, Partitions):
        model: AnyModel = table.model(kind)
        return model
    return kind(table, threads)  # type: ignore[call-arg]  # each kind knows its room


def usable_processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _edges(table: LabelTable, room: int) -> list[int]:
    """The first item of each block, and the number of items: blocks of about as many labels.

    All the sums together never need more room than one number per label.
    """
    labels, items = int(table.start[-1]), len(table.start) - 1
    blocks = max(1, min(MOST, labels // LABELS, labels // max(1, room)))
    inner = np.searchsorted(table.start, labels * np.arange(1, blocks) // blocks)
    return [0, *(b for b in np.unique(inner).tolist() if 0 < b < items), items]
