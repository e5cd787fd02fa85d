"""Label tables for the tests: drawn, simulated and real."""

import csv
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.conftest import DATA
from venire.labels import LabelTable

Ints = NDArray[np.int64]
Panel = Sequence[float] | NDArray[np.floating[Any]]

PAPER_PANEL = 0.9 - 0.005 * np.arange(1, 31)


@st.composite
def label_matrices(
    draw: st.DrawFn, max_items: int = 8, max_labelers: int = 6, min_labelers: int = 1
) -> tuple[Ints, int]:
    """(matrix with -1 for no label, K): noise, complete or partial."""
    classes = draw(st.integers(2, 4))
    items = draw(st.integers(1, max_items))
    labelers = draw(st.integers(min_labelers, max_labelers))
    lowest = draw(st.sampled_from([0, -1]))
    cell = st.integers(lowest, classes - 1)
    row = st.lists(cell, min_size=labelers, max_size=labelers)
    matrix = np.array(draw(st.lists(row, min_size=items, max_size=items)))
    if (matrix < 0).all():
        matrix[0, 0] = 0
    return matrix, classes


def simulate(
    panel: Panel, items: int, seed: int, classes: int = 2, share: float = 1.0
) -> tuple[LabelTable, Ints]:
    """A one-coin world: (table, truth); each label is there with probability `share`."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=(items, 1))
    wrong = (truth + rng.integers(1, classes, size=(items, len(panel)))) % classes
    said = np.where(rng.random((items, len(panel))) < panel, truth, wrong)
    said[rng.random(said.shape) >= share] = -1
    return LabelTable.from_matrix(said, classes), truth[:, 0]


def plain(matrix: Ints) -> list[list[int | None]]:
    """The same matrix for the plain reference: None for no label."""
    return [[None if x < 0 else int(x) for x in row] for row in matrix]


def real(name: str) -> tuple[LabelTable, dict[Hashable, str]]:
    """(table, truth) of a real label set, or skip."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"the real label sets are not at {DATA}")
    with open(folder / "labels.csv", newline="") as labels:
        rows = [(r["task"], r["worker"], r["label"]) for r in csv.DictReader(labels)]
    with open(folder / "truth.csv", newline="") as truths:
        truth: dict[Hashable, str] = {r["task"]: r["label"] for r in csv.DictReader(truths)}
    return LabelTable.from_rows(rows, repeats="first"), truth
