"""The real label sets: where they are, what they are, and how to get those that are missing.

The one place that reads them, through `venire.datasets.load`.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from venire import datasets
from venire.errors import FetchError
from venire.estimators import OneCoin
from venire.labels import LabelTable, sort_key

__all__ = ["MERGES", "ORIGINS", "LabelSet", "Sets", "load_set", "read_set"]

#: Where a missing set can be found.
ORIGINS: Final = {
    "bluebird": "the Bird set, github.com/welinder/cubam, demo/bluebirds",
    "dog": "the DOG set, github.com/zhangyuc/SpectralMethodsMeetEM, src/dog_crowd.txt",
}

#: Classes that are merged; the paper makes two of the four breeds of DOG.
MERGES: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {},
    "binary": {"1": "1 or 2", "2": "1 or 2", "3": "3 or 4", "4": "3 or 4"},
}


@dataclass(frozen=True, eq=False)
class LabelSet:
    """A set as the figures use it: the labels, the truth, and what Algorithm 3 learns."""

    table: LabelTable
    truth: Mapping[Any, Hashable]
    competences: NDArray[np.float64]
    digest: str

    def majority_accuracy(self) -> float:
        """Share of items on which most labels are right; a tie counts in part."""
        k = len(self.table.classes)
        votes = np.bincount(
            self.table.item * k + self.table.said, minlength=len(self.table.items) * k
        )
        votes = votes.reshape(-1, k)
        code = {name: i for i, name in enumerate(self.table.classes)}
        truth = np.array([code.get(self.truth.get(i), -1) for i in self.table.items])
        return float(share_right(votes, truth)[truth >= 0].mean())


def share_right(votes: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
    """For each row of votes: is the plurality right; 1/n in a tie of n, 0 without votes."""
    top = votes.max(axis=1)
    tied = votes == top[:, None]
    mine = np.take_along_axis(tied, np.maximum(truth, 0).astype(np.intp)[:, None], axis=1)[:, 0]
    return np.asarray(np.where((top > 0) & mine, 1.0 / tied.sum(axis=1), 0.0))


@dataclass(frozen=True)
class Sets:
    """The label sets of a folder; without one, those that `venire datasets` has."""

    root: Path | None = None

    def has(self, name: str) -> bool:
        """Whether the set is available."""
        try:
            datasets.path_of(name, self.root)
        except FetchError:
            return False
        return True

    def load(self, name: str, merge: str = "none") -> LabelSet:
        """The set, with its classes merged as `merge` says."""
        return load_set(str(self.root) if self.root is not None else None, name, merge)

    def folder(self) -> Path:
        """Where the sets are looked for."""
        return self.root if self.root is not None else datasets.cache_folder()

    def remedy(self, name: str) -> str:
        """How to get a missing set; then the same command finds it."""
        missing = f"{name} ({ORIGINS.get(name, 'a set of your own')}) is not in {self.folder()}."
        tables = f"{name}/labels.csv (task,worker,label) and {name}/truth.csv (task,label)"
        if self.root is not None:
            fetch = shlex.join(["venire", "datasets", "fetch", name, "--data", str(self.root)])
            return f"{missing} Fetch it with `{fetch}`, or put {tables} there."
        return (
            f"{missing} Fetch it with `venire datasets fetch {name}`, or put {tables} into a "
            "folder and give it with --data DIR."
        )


@lru_cache(maxsize=8)
def load_set(root: str | None, name: str, merge: str = "none") -> LabelSet:
    """Read a set, once in each process."""
    table, right, digest = read_set(root, name, merge)
    return LabelSet(table, right, OneCoin(prior=None).fit(table).competences_, digest)


@lru_cache(maxsize=8)
def read_set(
    root: str | None, name: str, merge: str = "none"
) -> tuple[LabelTable, Mapping[Any, Hashable], str]:
    """The labels of a set, its truth, and a digest of both, once in each process."""
    given, truth = datasets.load(name, root)
    joined = MERGES[merge]
    codes = zip(given.item.tolist(), given.labeler.tolist(), given.said.tolist(), strict=True)
    named = ((given.items[i], given.labelers[m], given.classes[k]) for i, m, k in codes)
    # Sorted, so that the order of the lines in the file does not matter.
    rows = sorted(((i, m, joined.get(str(k), k)) for i, m, k in named), key=_order)
    right = {i: joined.get(str(k), k) for i, k in sorted(truth.items(), key=_order)}
    text = json.dumps([rows, list(right.items())])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return LabelTable.from_rows(rows), right, digest


def _order(row: tuple[Hashable, ...]) -> tuple[Any, ...]:
    return tuple(map(sort_key, row))
