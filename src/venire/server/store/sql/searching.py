"""Searching the items of a stream in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, not_, or_, select, tuple_

from venire.model import ItemStatus
from venire.server.store.records import AlarmRow, AuditRow, FollowRow, ItemRow
from venire.server.store.search import EXCERPT, Doubt, Found, ItemSearch, Place
from venire.server.store.sql import queries as q
from venire.server.store.sql import tables as t
from venire.server.store.sql.reading import SqlReading

_ITEMS = t.items.c
_PLACE = tuple_(_ITEMS.arrived_at, _ITEMS.id)
_LATEST = _ITEMS.arrived_at.desc(), _ITEMS.id.desc()


class SqlSearching(SqlReading):
    """Two queries for each step of a search: how far it looks, and what it finds there."""

    def find_items(
        self,
        stream: str,
        search: ItemSearch,
        before: Place | None = None,
        limit: int = 50,
        scan: int = 5000,
    ) -> Found:
        """Items that match, the latest arrival first, among the next `scan` rows of an index."""
        range_ = _looked_at(stream, search, before)
        end = select(_ITEMS.arrived_at, _ITEMS.id).where(*range_).order_by(*_LATEST)
        with self._connection() as connection:
            last = connection.execute(end.offset(scan - 1).limit(1)).first()
        stop = None if last is None else (float(last[0]), str(last[1]))
        query = _listed().where(*range_, *_conditions(stream, search)).order_by(*_LATEST)
        if stop is not None:
            query = query.where(tuple_(*stop) <= _PLACE)
        rows = self._all(ItemRow, query, limit)
        if len(rows) == limit:
            return rows, (rows[-1].arrived_at, rows[-1].id)
        return rows, stop

    def last_alarms(self, stream: str) -> list[AlarmRow]:
        """The last alarm of each rule and subject."""
        columns = t.alarms.c
        last = select(func.max(columns.n)).where(columns.stream == stream)
        last = last.group_by(columns.rule, columns.subject)
        query = q.of_stream(t.alarms, stream).where(columns.n.in_(last)).order_by(columns.n)
        return self._all(AlarmRow, query)

    def follows(self, stream: str) -> list[FollowRow]:
        """Items that were sent back."""
        return self._all(FollowRow, q.of_stream(t.follows, stream).order_by(t.follows.c.item))

    def payloads(self, stream: str, ids: Iterable[str]) -> dict[str, str]:
        """The payloads of some items."""
        return dict(self._among((_ITEMS.id, _ITEMS.payload), stream, ids))

    def arrivals(self, stream: str, edges: Sequence[float]) -> list[int]:
        """How many items arrived between each two edges: a range of an index for each."""
        counted = [
            select(func.count())
            .where(_ITEMS.stream == stream, _ITEMS.arrived_at >= low, _ITEMS.arrived_at < high)
            .scalar_subquery()
            for low, high in pairwise(edges)
        ]
        with self._connection() as connection:
            return list(connection.execute(select(*counted)).one()) if counted else []

    def doubtful(self, stream: str, after: Doubt | None = None, limit: int = 50) -> list[ItemRow]:
        """Items with a verdict that is not due and without gold, the least confident first."""
        query = _listed().where(
            _ITEMS.stream == stream,
            _ITEMS.status == ItemStatus.LEFT,
            _ITEMS.verdict.is_not(None),
            not_(_has_gold(stream)),
            not_(_is_drawn(stream)),
        )
        place = tuple_(_ITEMS.confidence, _ITEMS.exit_n)
        if after is not None:
            query = query.where(place > tuple_(*after))
        return self._all(ItemRow, query.order_by(_ITEMS.confidence, _ITEMS.exit_n), limit)

    def recent_audit(
        self,
        before: int | None = None,
        limit: int | None = None,
        stream: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        """The audit trail, newest first."""
        audit = t.audit.c
        query = select(t.audit).order_by(audit.n.desc())
        if before is not None:
            query = query.where(audit.n < before)
        if stream is not None:
            query = query.where(audit.stream == stream)
        if action is not None:
            query = query.where(audit.action == action)
        return self._all(AuditRow, query, limit)

    def revised(self, stream: str, items: Iterable[str]) -> dict[str, str | None]:
        """The last revision of each item."""
        columns = t.revisions.c.item, t.revisions.c.n, t.revisions.c.verdict
        rows = sorted(self._among(columns, stream, items), key=lambda row: int(row.n))
        return {row.item: row.verdict for row in rows}


def _listed() -> Select[Any]:
    """Items with the beginnings of their payloads."""
    start = func.substr(_ITEMS.payload, 1, EXCERPT)
    return select(*(start if column is _ITEMS.payload else column for column in _ITEMS))


def _looked_at(stream: str, search: ItemSearch, before: Place | None) -> list[Any]:
    """The part of an index that the search has still to look at."""
    found: list[ColumnElement[bool]] = [_ITEMS.stream == stream]
    found += [_ITEMS[name] == value for name, value in search.leading.items()]
    if search.since is not None:
        found.append(_ITEMS.arrived_at >= search.since)
    if search.until is not None:
        found.append(_ITEMS.arrived_at < search.until)
    if before is not None:
        found.append(tuple_(*before) > _PLACE)
    if search.blind:
        found.append(or_(not_(_is_drawn(stream)), _has_gold(stream)))
    return found


def _is_drawn(stream: str) -> ColumnElement[bool]:
    return exists().where(t.checks.c.stream == stream, t.checks.c.item == _ITEMS.id)


def _has_gold(stream: str) -> ColumnElement[bool]:
    return exists().where(t.gold.c.stream == stream, t.gold.c.item == _ITEMS.id)


def _conditions(stream: str, search: ItemSearch) -> list[ColumnElement[bool]]:
    """What else must hold for each row."""
    found = [
        _ITEMS[name] == value
        for name in ("status", "verdict", "reason")
        if (value := getattr(search, name)) is not None and name not in search.leading
    ]
    if search.low is not None:
        found.append(_ITEMS.confidence >= search.low)
    if search.high is not None:
        found.append(_ITEMS.confidence <= search.high)
    if search.labeler is not None:
        said = t.labels.c
        mine = and_(said.item == _ITEMS.id, said.labeler == search.labeler)
        found.append(exists().where(said.stream == stream, mine))
    if search.text is not None:
        found.append(or_(_has(_ITEMS.id, search.text), _has(_ITEMS.payload, search.in_payload)))
    return found


def _has(column: Any, text: str) -> ColumnElement[bool]:
    """Whether a column contains a text, whatever the case of ASCII letters."""
    found: ColumnElement[bool] = column.icontains(text, autoescape=True)
    return found
