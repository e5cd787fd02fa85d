"""Merge a group of copies into one labeler."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from venire.estimators.screening.clones import CloneGroup
from venire.labels import LabelTable
from venire.labels.counts import labels_given
from venire.labels.partitions import Table, kept
from venire.labels.stable_draws import name_codes

__all__ = ["merge_clones"]


def merge_clones(table: Table, groups: Iterable[CloneGroup]) -> Any:
    """The table in which each group has one label per item: what most of its members said.

    The label is given by the group's first member. Where members are split evenly, the one with
    the most labels in the table decides (of equals one drawn by name). Labelers and items stay
    the same, so that any estimator can be fitted to the result.

    >>> table = LabelTable.from_matrix([[0, 1, 1, 0], [1, 1, -1, 0]])
    >>> merged = merge_clones(table, [CloneGroup((0, 1, 2), 0.9)])
    >>> merged.labeler.tolist(), merged.said.tolist()
    ([0, 3, 0, 3], [1, 0, 1, 0])
    """
    code = {name: m for m, name in enumerate(table.labelers)}
    voice = np.arange(len(table.labelers))
    for group in groups:
        members = [code[name] for name in group.members]
        voice[members] = members[0]
    if (voice == np.arange(voice.size)).all():
        return table
    return kept(table, _merge, voice, labels_given(table))


def _merge(table: LabelTable, voice: NDArray[np.intp], given: NDArray[np.int64]) -> LabelTable:
    K, M = len(table.classes), len(table.labelers)
    of = table.item * M + voice[table.labeler]
    spoken, group = np.unique(of, return_inverse=True)
    votes = np.zeros((spoken.size, K))
    np.add.at(votes, (group, table.said), 1.0)
    # A tie goes to the class of the member with the most labels: a bonus between 0 and 1 vote.
    rank = np.empty(M)
    rank[np.lexsort((name_codes(table.labelers), given))] = np.arange(M)
    extra = np.zeros_like(votes)
    np.maximum.at(extra, (group, table.said), (1 + rank[table.labeler]) / (M + 2))
    said = (votes + extra).argmax(axis=1)
    return LabelTable.from_codes(
        spoken // M, spoken % M, said, table.items, table.labelers, table.classes
    )
