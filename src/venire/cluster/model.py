"""A model over all partitions: what a climb asks of `FullModel` or `CoinModel`, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from venire.cluster.table import Part
from venire.errors import InputError
from venire.estimators.dawid_skene import FullModel
from venire.estimators.given import Soft
from venire.estimators.one_coin import CoinModel, Hits
from venire.labels.partitions import Spread

if TYPE_CHECKING:
    from venire.cluster.table import PartitionedTable

__all__ = ["SpreadModel"]

Floats = NDArray[np.float64]

#: The counts that a model returns.
COUNTS: dict[type[Any], Any] = {FullModel: Soft, CoinModel: Hits}


class SpreadModel:
    """Sums of the models of the partitions; attributes and methods are theirs."""

    def __init__(self, table: PartitionedTable, kind: type[Any]) -> None:
        self._table, self._kind, self._counts = table, kind, COUNTS[kind]
        self.labelers, self.classes = len(table.labelers), len(table.classes)
        self.rows = table.rows
        items, self.given = table.sum(_given, kind)
        self.items = float(items)

    def shares(self) -> Any:
        """Counts with the vote shares as posteriors."""
        return self._counts(*self._table.sum(_shares, self._kind))

    def weigh(self, posteriors: Any) -> Any:
        """Counts with given posteriors, which lie where the items are."""
        if not isinstance(posteriors, Spread):
            raise InputError(
                "got posteriors to start from and labels in partitions: start from confusions, or "
                "from the vote"
            )
        return self._counts(*self._table.sum(_weighed, self._kind, posteriors))

    def expect(self, *parameters: Floats) -> tuple[float, Any]:
        """Log-likelihood and counts."""
        height, *counts = self._table.sum(_expected, self._kind, *parameters)
        return float(height), self._counts(*counts)

    def conclude(self, *parameters: Floats) -> tuple[float, Any, Spread]:
        """The same, and the posteriors."""
        return *self.expect(*parameters), self._table.spread(_posteriors, self._kind, *parameters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def _given(part: Part, kind: type[Any]) -> tuple[float, Floats]:
    model = part.model(kind)
    return model.items, model.given


def _shares(part: Part, kind: type[Any]) -> tuple[Floats, ...]:
    return tuple(part.model(kind).shares())


def _weighed(part: Part, kind: type[Any], posteriors: Floats) -> tuple[Floats, ...]:
    return tuple(part.model(kind).weigh(posteriors))


def _expected(part: Part, kind: type[Any], *parameters: Floats) -> tuple[Any, ...]:
    height, counts = part.model(kind).expect(*parameters)
    return height, *counts


def _posteriors(part: Part, kind: type[Any], *parameters: Floats) -> Floats:
    posteriors: Floats = part.model(kind).conclude(*parameters)[2]
    return posteriors
