"""Tables in partitions for the tests, and every estimator that takes them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from tests.unit.estimators.worlds import simulate
from venire.cluster.partitions import Here, Place
from venire.cluster.table import Part, PartitionedTable, compact
from venire.estimators import (
    Anchored,
    Auto,
    DawidSkene,
    Known,
    MajorityVote,
    OneCoin,
    Ordinal,
    WeightedMajority,
)
from venire.labels import LabelTable

#: Without options, and with those that learn from something else.
METHODS: dict[str, Callable[[], Any]] = {
    "anchored": Anchored,
    "auto": Auto,
    "dawid-skene": DawidSkene,
    "dawid-skene-ml": lambda: DawidSkene(prior=None, class_prior="uniform", max_iter=20),
    "majority": MajorityVote,
    "one-coin": OneCoin,
    "one-coin-best": lambda: OneCoin(start="best", class_prior="learned", prior=None),
    "one-coin-rank-one": lambda: OneCoin(start="rank-one"),
    "one-coin-votes": lambda: OneCoin(start="votes", class_prior="learned"),
    "ordinal": Ordinal,
    "ordinal-always": lambda: Ordinal(least_order=0),
    "weighted-majority": WeightedMajority,
}
GOLD = ("anchored", "auto", "dawid-skene", "one-coin", "weighted-majority")


def named(table: LabelTable) -> LabelTable:
    """The same labels, with names of items as workers keep them."""
    items = compact(tuple(f"item-{i}" for i in range(len(table.items))))
    return LabelTable(items, table.labelers, table.classes, table.start, table.labeler, table.said)


def divided(table: LabelTable, parts: int, place: Place | None = None) -> PartitionedTable:
    """The table in so many partitions of whole items, some of them perhaps empty."""
    place = place or Here()
    edges = np.linspace(0, len(table.items), parts + 1).astype(int)
    made = []
    for a, b in pairwise(edges.tolist()):
        start = table.start[a : b + 1]
        labels = slice(int(start[0]), int(start[-1]))
        names = table.items[a:b], table.labelers, table.classes
        own = LabelTable(*names, start - start[0], table.labeler[labels], table.said[labels])
        made.append(place.submit(Part, own))
    sources = [f"part-{i}" for i in range(parts)]
    shared = table.labelers, table.classes
    return PartitionedTable(place, made, np.diff(edges).tolist(), shared, sources)


def assert_same(found: Any, expected: Any, atol: float = 1e-9) -> None:
    """What was learned, all of it."""
    for name in ("competences_", "confusions_", "priors_", "posteriors_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=0, atol=atol, err_msg=name
        )
    assert found.n_iter_ == expected.n_iter_
    assert found.converged_ == expected.converged_
    assert found.labels_ == expected.labels_
    if expected.log_likelihood_ is None:
        assert found.log_likelihood_ is None
    else:
        scale = max(1.0, abs(expected.log_likelihood_))
        assert abs(found.log_likelihood_ - expected.log_likelihood_) < atol * scale
    assert getattr(found, "why_", None) == getattr(expected, "why_", None)


def crowd(seed: int, classes: int = 2, items: int = 600) -> tuple[LabelTable, dict[Any, int]]:
    """Partial labels with copies, one who always says the same, and gold for a tenth."""
    panel = [0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.55, 0.8]
    table, truth = simulate(panel, items, seed, classes, share=0.6)
    said = np.full((items, 11), -1)
    said[table.item, table.labeler] = table.said
    said[:, 8] = 1
    said[:, 9] = said[:, 10] = np.where(said[:, 0] >= 0, said[:, 0], said[:, 1])
    made = named(LabelTable.from_matrix(said, classes))
    return made, {f"item-{i}": int(truth[i]) for i in range(0, items, 10)}


def known(table: LabelTable) -> Known:
    """Competences that are given."""
    return Known({name: 0.55 + 0.03 * m for m, name in enumerate(table.labelers)})
