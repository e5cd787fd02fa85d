"""Named tuples by reference: kernels see the arrays that Python sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from venire.tools.compiling import inlined, kernel
from venire.tools.references import by_reference

ROW = np.dtype([("value", "f8"), ("count", "i4")])


@by_reference
class Box(NamedTuple):
    """One of each kind: records, a vector, a matrix, a cube and a number."""

    rows: NDArray[Any]
    line: NDArray[np.float64]
    table: NDArray[np.int32]
    cube: NDArray[np.float64]
    factor: float


@inlined
def part(box: Box, i: int) -> float:
    box.rows[i].count += 1
    box.rows[i].value = box.line[i] * box.factor
    total: float = box.rows[i].value + box.table[i, -1] + box.cube[i, 1, 0]
    return total


@kernel
def other(box: Box, i: int) -> float:
    """A kernel within a kernel has a reference of its own to the same arrays."""
    total: float = part(box, i)
    box.line[i] = -total
    return total


@kernel
def entry(box: Box) -> float:
    total = 0.0
    for i in range(len(box.rows)):
        total += part(box, i) + other(box, i)
    found: float = total + box.table.shape[1] * 1000 + box.cube.size
    return found


def plain(box: Box) -> float:
    total = 0.0
    for i in range(len(box.rows)):
        for again in range(2):
            box.rows["count"][i] += 1
            box.rows["value"][i] = box.line[i] * box.factor
            one = box.rows["value"][i] + box.table[i, -1] + box.cube[i, 1, 0]
            total += one
            if again:
                box.line[i] = -one
    found: float = total + box.table.shape[1] * 1000 + box.cube.size
    return found


def box_of(rows: int, columns: int, factor: float, seed: int) -> Box:
    draw = np.random.default_rng(seed)
    return Box(
        np.zeros(rows, ROW),
        draw.integers(-9, 9, rows).astype(float),
        draw.integers(-9, 9, (rows, columns), dtype=np.int32),
        draw.integers(-9, 9, (rows, 2, columns)).astype(float),
        factor,
    )


@given(st.integers(0, 6), st.integers(1, 5), st.sampled_from([0.5, -2.0, 3.0]), st.integers(0, 99))
def test_a_kernel_equals_the_same_in_plain_python(
    rows: int, columns: int, factor: float, seed: int
) -> None:
    compiled, expected = (box_of(rows, columns, factor, seed) for _ in range(2))
    assert entry(compiled) == plain(expected)
    for one, same in zip(compiled[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(one, same)


def test_arrays_that_are_not_contiguous_are_refused_by_their_name() -> None:
    box = box_of(4, 2, 1.0, 0)
    with pytest.raises(TypeError, match=r"Box\.line is not contiguous"):
        entry(box._replace(line=np.zeros(8)[::2]))
