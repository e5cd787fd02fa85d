"""Searching the items of a stream in memory: the plain reference of the queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.store.tables import Tables
from venire.model import ItemStatus
from venire.server.store.records import ItemRow
from venire.server.store.search import EXCERPT, Doubt, Found, ItemSearch, Place

__all__ = ["arrivals", "doubtful", "find_items"]


def arrivals(tables: Tables, stream: str, edges: Sequence[float]) -> list[int]:
    """How many items arrived between each two edges."""
    at = [row.arrived_at for row in _items(tables, stream)]
    return [sum(low <= x < high for x in at) for low, high in pairwise(edges)]


def find_items(
    tables: Tables, stream: str, search: ItemSearch, before: Place | None, limit: int, scan: int
) -> Found:
    """Items that match, the latest arrival first, among the next `scan` that are looked at."""
    labels = tables.labels.get(stream, {})
    rows = sorted(filter(search.leads_to, _items(tables, stream)), key=_place, reverse=True)
    due = _due(tables, stream) if search.blind else set()
    rows = [row for row in rows if row.id not in due and (before is None or _place(row) < before)]
    stop = _place(rows[scan - 1]) if len(rows) >= scan else None
    found = [
        _cut(row) for row in rows[:scan] if search.matches(row, (row.id, search.labeler) in labels)
    ][:limit]
    return found, _place(found[-1]) if len(found) == limit else stop


def doubtful(tables: Tables, stream: str, after: Doubt | None, limit: int) -> list[ItemRow]:
    """Items with a verdict that is not due, and without gold, the least confident first."""
    hidden = _due(tables, stream) | set(tables.gold.get(stream, {}))
    found = [
        _cut(row)
        for row in _items(tables, stream)
        if row.status == ItemStatus.LEFT and row.verdict is not None and row.id not in hidden
        if after is None or _doubt(row) > after
    ]
    return sorted(found, key=_doubt)[:limit]


def _due(tables: Tables, stream: str) -> set[str]:
    """The items whose audits are due."""
    gold = tables.gold.get(stream, {})
    return {row.item for row in tables.checks.get(stream, {}).values() if row.item not in gold}


def _items(tables: Tables, stream: str) -> list[ItemRow]:
    return list(tables.items.get(stream, {}).values())


def _cut(row: ItemRow) -> ItemRow:
    return row._replace(payload=row.payload[:EXCERPT])


def _place(row: ItemRow) -> Place:
    return row.arrived_at, row.id


def _doubt(row: ItemRow) -> Doubt:
    return row.confidence or 0.0, row.exit_n or 0
