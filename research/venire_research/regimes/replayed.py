"""The real label sets as streams: recorded labels; who labelled an item may label it.

A labeler's competence is its share of right labels by the truth of the set, shrunk towards the
panel's by `PRIOR` labels, since some have labelled little. Nothing is learned here; all policies
are told the same.
"""

from __future__ import annotations

import csv
from collections.abc import Hashable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire import datasets
from venire.errors import FileError
from venire.labels import LabelTable
from venire.simulation import Poisson, World
from venire.simulation.world import PAPER_WEIGHTS, Items, Masks
from venire_research.common.label_sets import read_set

__all__ = ["bluebird", "dog", "llmjudge", "medrelex", "right_shares", "rte", "slots_of"]

#: Pseudo-labels of an average labeler that are added to each one's own.
PRIOR = 4.0
#: Competences are clamped at 1 - RHO.
RHO = 0.01
#: Seconds in a slot of the set with real times.
SLOT = 600
#: The longest gap without new items, in slots: nights, and months between campaigns, are cut.
LONGEST_GAP = 6

Floats = NDArray[np.float64]


def bluebird(seed: int, slots: int, data: str | None = None) -> World:
    """The paper's Bird set at the paper's rate: 39 labelers, all of whom labelled everything."""
    return _replay("bluebird", 5, seed, data)


def rte(seed: int, slots: int, data: str | None = None) -> World:
    """Textual entailment, 10 items a slot: 164 labelers, ten of whom may label an item."""
    return _replay("rte", 10, seed, data)


def dog(seed: int, slots: int, data: str | None = None) -> World:
    """The paper's DOG set, four classes: 109 labelers, ten of whom may label an item."""
    return _replay("dog", 5, seed, data)


def llmjudge(seed: int, slots: int, data: str | None = None) -> World:
    """33 language models that judge relevance."""
    return _replay("llmjudge2024_binary", 5, seed, data)


def medrelex(seed: int, slots: int, data: str | None = None) -> World:
    """Medical relations, when and in the order in which they were really begun.

    A slot is ten minutes. 468 labelers, each at most one label a slot; each item may be
    labelled by those (about sixteen) who did. Weights are drawn; of 30 % the truth is known.
    """
    table, truth, _ = read_set(data, "medrelex_cause")
    folder = datasets.path_of("medrelex_cause", Path(data) if data is not None else None)
    begun = _begun(folder / "labels.csv", table)
    order = np.argsort(begun, kind="stable").astype(np.int32)
    arrival, right = slots_of(begun)[order], codes_of(table, truth)[order]
    ends = zip(table.start[:-1], table.start[1:], strict=True)
    allowed = [frozenset(table.labeler[a:b].tolist()) for a, b in ends]
    masks = Masks.of(allowed, len(table.labelers)).take(order)

    def draw(world: World, horizon: int) -> Items:
        n = int(np.searchsorted(arrival, horizon))
        weight = world.rng(1).choice(PAPER_WEIGHTS, len(order)).astype(np.float64)[:n]
        ids = tuple(table.items[i] for i in order[:n])
        some = masks.take(np.arange(n, dtype=np.int32))
        return Items(arrival[:n], weight, right[:n], True, ids, order[:n], some)

    return replace(World.recorded(table, truth, right_shares(table, truth), seed), draw=draw)


def _replay(name: str, rate: float, seed: int, data: str | None) -> World:
    table, truth, _ = read_set(data, name)
    return World.recorded(table, truth, right_shares(table, truth), seed, Poisson(rate))


def right_shares(table: LabelTable, truth: Mapping[Any, Hashable]) -> Floats:
    """Each labeler's share of right labels, shrunk towards the panel's.

    >>> table = LabelTable.from_matrix([[0, 0], [1, 0], [1, -1]])
    >>> right_shares(table, {0: 0, 1: 1, 2: 1}).round(3).tolist()
    [0.886, 0.7]
    """
    known = codes_of(table, truth)[table.item]
    judged = known >= 0
    who, right = table.labeler[judged], table.said[judged] == known[judged]
    given = np.bincount(who, minlength=len(table.labelers))
    hits = np.bincount(who, weights=right, minlength=len(table.labelers))
    share = (hits + PRIOR * float(right.mean())) / (given + PRIOR)
    return np.minimum(share, 1 - RHO)


def codes_of(table: LabelTable, truth: Mapping[Any, Hashable]) -> NDArray[np.int16]:
    """The code of each item's true class; -1 where it is not known."""
    code = {name: k for k, name in enumerate(table.classes)}
    return np.array([code.get(truth.get(i), -1) for i in table.items], dtype=np.int16)


def slots_of(begun: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """The slot of each time, gaps cut short; times in any order.

    >>> times = ["2014-06-27T14:00", "2014-06-27T14:25", "2014-06-27T14:26", "2015-01-01T00:00"]
    >>> slots_of(np.array(times, dtype="datetime64[s]")).tolist()
    [0, 2, 2, 8]
    """
    seconds = begun.astype("datetime64[s]").astype(np.int64)
    slot = (seconds - seconds.min()) // SLOT
    busy, place = np.unique(slot, return_inverse=True)
    gaps = np.minimum(np.diff(busy, prepend=busy[0]), LONGEST_GAP)
    return np.asarray(np.cumsum(gaps)[place], dtype=np.int64)


def _begun(path: Path, table: LabelTable) -> NDArray[np.datetime64]:
    """When somebody first began to label each item of the table."""
    first: dict[str, str] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if not row.get("started"):
                raise FileError(path, None, "has labels without a start: fetch the set again")
            task, start = row["task"], row["started"]
            first[task] = min(first.get(task, start), start)
    return np.array([first[str(name)] for name in table.items], dtype="datetime64[s]")
