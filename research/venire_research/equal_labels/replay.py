"""A label set as a stream in which every item comes once.

Items arrive in random order, spread evenly over `SLOTS` slots, and must leave within `DEADLINE`
slots. A labeler can be asked about an item only where the set has that label.

Where labelers cannot be chosen, they come as they did: each label of the set stands for a visit
of its labeler at a random time while the item was open. Of these visits a random sample takes
place: as many as there are labels to buy, plus a share `SPARE`, since some visitors find nothing to
do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from venire import datasets
from venire.errors import InputError, UnknownName
from venire.labels import LabelTable
from venire.labels.sources import as_table, as_truth

__all__ = ["DEADLINE", "MOST_ITEMS", "SLOTS", "Replay", "files_digest", "read", "replay", "sets_in"]

#: The number of slots in which items arrive.
SLOTS: Final = 200
#: The most slots that an item stays.
DEADLINE: Final = 50
#: Larger sets are sampled down to this many items, half of them with truth if enough have it.
MOST_ITEMS: Final = 2000

#: The surplus of visitors over the labels that can be bought.
SPARE: Final = 0.1

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Replay:
    """One stream of a label set; items are numbered in the order in which they come.

    Parameters
    ----------
    table
        All labels that can be bought.
    truth
        The right class of each item; -1 where it is not known, the number of classes where
        nobody ever says it.
    arrival
        The slot in which each item comes.
    seed
        What the visits are drawn from.
    """

    table: LabelTable
    truth: Ints
    arrival: Ints
    seed: int

    @classmethod
    def of(cls, table: LabelTable, truth: Ints, seed: int, most: int = MOST_ITEMS) -> Replay:
        """The stream of this seed.

        >>> table = LabelTable.from_rows([("a", "ann", 0), ("b", "ann", 1), ("b", "bob", 0)])
        >>> made = Replay.of(table, np.array([0, -1]), seed=0)
        >>> made.arrival.tolist(), made.held
        ([0, 100], 1.5)
        """
        rng = np.random.default_rng([seed, 0])
        order = _sample(truth, most, rng)
        place = np.full(len(table.items), -1)
        place[order] = np.arange(len(order))
        item = place[table.item]
        kept = item >= 0
        here, labeler = np.unique(table.labeler[kept], return_inverse=True)
        names = range(len(order)), range(len(here)), table.classes
        some = LabelTable.from_codes(item[kept], labeler, table.said[kept], *names)
        arrival = np.arange(len(order)) * SLOTS // len(order)
        return cls(some, truth[order], arrival, seed)

    @property
    def held(self) -> float:
        """Labels per item, if all are bought."""
        return len(self.table.labeler) / len(self.table.items)

    def visits(self, labels: float) -> list[Ints]:
        """The labelers who come in each slot, in order, if `labels` labels are bought per item.

        >>> table = LabelTable.from_matrix(np.zeros((1000, 5), int))
        >>> come = Replay.of(table, np.zeros(1000, int), seed=0).visits(2)
        >>> len(come), sum(map(len, come))
        (250, 2200)
        """
        rng = np.random.default_rng([self.seed, 1])
        most = round((1 + SPARE) * labels * len(self.table.items))
        drawn = rng.permutation(len(self.table.said))[:most]
        slot = self.arrival[self.table.item[drawn]] + rng.integers(DEADLINE, size=len(drawn))
        order = np.argsort(slot, kind="stable")
        ends = np.searchsorted(slot[order], np.arange(1, SLOTS + DEADLINE))
        return np.split(self.table.labeler[drawn[order]].astype(np.int64), ends)

    def entries(self, labeler: int) -> Ints:
        """The places in the table of what the labeler said."""
        return self._by_labeler[labeler]

    @cached_property
    def _by_labeler(self) -> list[Ints]:
        order = np.argsort(self.table.labeler, kind="stable")
        ranked = self.table.labeler[order]
        return np.split(order, np.searchsorted(ranked, np.arange(1, len(self.table.labelers))))

    def said(self, item: int, labeler: int) -> int:
        """What the labeler said of the item; an error if the set does not have it."""
        a, b = self.table.start[item : item + 2]
        k = a + np.searchsorted(self.table.labeler[a:b], labeler)
        if k == b or self.table.labeler[k] != labeler:
            raise InputError(f"the set has no label of item {item} by labeler {labeler}")
        return int(self.table.said[k])


def _sample(truth: Ints, most: int, rng: np.random.Generator) -> Ints:
    """The items that are replayed, in the order in which they come."""
    if len(truth) <= most:
        return rng.permutation(len(truth))
    known, other = (rng.permutation(np.flatnonzero((truth >= 0) == k)) for k in (True, False))
    many = max(min(len(known), most // 2), most - len(other))
    return rng.permutation(np.concatenate([known[:many], other[: most - many]]))


def sets_in(data: Path | None, wanted: Sequence[str] = ()) -> list[str]:
    """The label sets of a folder, by name: sub-folders with labels.csv and truth.csv.

    Without a folder, those that `venire datasets` has fetched.
    """
    root = data or datasets.cache_folder()
    tables = ("labels.csv", "truth.csv")
    folders = sorted(root.iterdir()) if root.is_dir() else []
    known = [f.name for f in folders if all((f / table).is_file() for table in tables)]
    for name in wanted:
        if name not in known:
            raise UnknownName("label set", name, known)
    if not known:
        raise InputError(
            f"there is no label set in {root}: give a folder of NAME/labels.csv and "
            "NAME/truth.csv with --data, or fetch some with `venire datasets fetch NAME`"
        )
    return [name for name in known if not wanted or name in wanted]


@lru_cache(maxsize=4)
def read(folder: Path) -> tuple[LabelTable, Ints]:
    """The labels of a set and their truth, once in each process."""
    table = as_table(folder / "labels.csv", repeats="first")
    return table, as_truth(folder / "truth.csv", table)


@lru_cache(maxsize=4)
def replay(name: str, data: Path | None, seed: int) -> Replay:
    """A set of a folder as the stream of this seed, made once in each process."""
    return Replay.of(*read((data or datasets.cache_folder()) / name), seed)


@lru_cache(maxsize=64)
def files_digest(name: str, data: Path | None) -> str:
    """A digest of the files of a set."""
    folder = (data or datasets.cache_folder()) / name
    files = (folder / "labels.csv", folder / "truth.csv")
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
