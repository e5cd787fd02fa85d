"""The queries of a store that take more than a line."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, Table, and_, case, exists, func, literal, or_, select

from venire.model import DeliveryStatus, ItemStatus, LeaseStatus
from venire.server.store.sql import tables as t


def of_stream(table: Table, stream: str) -> Select[Any]:
    return select(table).where(table.c.stream == stream)


def remains(stream: str) -> Select[Any]:
    tables = [t.metadata.tables[name] for name in t.OF_STREAMS]
    return select(or_(*(exists().where(table.c.stream == stream) for table in tables)))


def events(stream: str, after: int) -> Select[Any]:
    """The rows with an event above number `after`."""
    # The row that holds event `after` may go on behind it: begin at that row.
    n = t.events.c.n
    begin = select(func.max(n)).where(t.events.c.stream == stream, n <= after).scalar_subquery()
    behind = n >= func.coalesce(begin, 0), n + t.events.c.size - 1 > after
    return of_stream(t.events, stream).where(*behind).order_by(n)


def end_of_archive(stream: str) -> Select[Any]:
    """The number of the first event that is not archived."""
    return select(func.max(t.segments.c.next_event)).where(t.segments.c.stream == stream)


def end_of_log(stream: str) -> Select[Any]:
    """The number of the next event; found by the last row, without reading the others."""
    end = (t.events.c.n + t.events.c.size).label("end")
    query = select(end).where(t.events.c.stream == stream)
    return query.order_by(t.events.c.n.desc()).limit(1)


def exits(stream: str, after: int, payloads: bool = False) -> Select[Any]:
    """Items that left with an `exit_n` above `after`, with their payloads or without."""
    n = t.items.c.exit_n
    payload = t.items.c.payload if payloads else literal("")
    return _with_payload(payload).where(t.items.c.stream == stream, n > after).order_by(n)


def recent_exits(stream: str, limit: int) -> Select[Any]:
    """The items that left last, with how many labels they had and how many of them agreed."""
    items, labels = t.items.c, t.labels.c
    names = "id arrived_slot arrived_at exit_slot left_at verdict confidence labels reason"
    left = (
        select(items.exit_n, *(items[name] for name in names.split()))
        .where(items.stream == stream, items.status == ItemStatus.LEFT)
        .order_by(items.exit_n.desc())
        .limit(limit)
        .subquery()
    ).c
    theirs = and_(labels.stream == stream, labels.item == left.id, labels.late.is_(False))
    agreed = func.sum(case((labels.said == left.verdict, 1), else_=0))
    return (
        select(*list(left)[1:], func.count(labels.said), agreed)
        .outerjoin(t.labels, theirs)
        .group_by(*left)
        .order_by(left.exit_n.desc())
    )


def open_items(stream: str, most: int) -> Select[Any]:
    """Open items by id; an empty text in the place of a payload above `most` characters."""
    items = t.items.c
    payload = case((func.length(items.payload) <= most, items.payload), else_="")
    return _with_payload(payload).where(*_open(stream)).order_by(items.id)


def open_said(stream: str) -> Select[Any]:
    """Item, labeler and label of all labels of open items."""
    labels, here = t.labels.c, select(t.items.c.id).where(*_open(stream))
    query = select(labels.item, labels.labeler, labels.said)
    return query.where(labels.stream == stream, labels.item.in_(here))


def labels_after(stream: str, after: tuple[str, str] | None) -> Select[Any]:
    """Labels by item and labeler, from the one behind the pair `after`."""
    columns = t.labels.c
    query = of_stream(t.labels, stream).order_by(columns.item, columns.labeler)
    if after is None:
        return query
    item, labeler = after
    return query.where(
        columns.item >= item,
        or_(columns.item > item, and_(columns.item == item, columns.labeler > labeler)),
    )


def counts(stream: str) -> Select[Any]:
    """How many leases are open, and the largest numbers of exits, revisions and notes."""

    def number(table: Table, what: Any, *where: Any) -> Any:
        return select(what).where(table.c.stream == stream, *where).scalar_subquery()

    gone = t.segments.c
    return select(
        number(t.leases, func.count(), t.leases.c.status == LeaseStatus.OPEN),
        number(t.items, func.coalesce(func.max(t.items.c.exit_n), 0)),
        number(t.revisions, func.coalesce(func.max(t.revisions.c.n), 0)),
        number(t.notes, func.coalesce(func.max(t.notes.c.n), 0)),
        *(
            number(t.segments, func.coalesce(func.max(last), 0))
            for last in (gone.exits, gone.revisions, gone.notes)
        ),
    )


def first_pending(stream: str, kind: str) -> Select[Any]:
    """The lowest number of an exit or revision that is to be sent."""
    hooks = select(t.webhooks.c.id).where(t.webhooks.c.stream == stream)
    of = t.deliveries.c
    query = select(func.min(of.exit_n)).where(of.webhook.in_(hooks), of.kind == kind)
    return query.where(of.status == DeliveryStatus.PENDING)


def _open(stream: str) -> tuple[ColumnElement[bool], ...]:
    return t.items.c.stream == stream, t.items.c.status == ItemStatus.OPEN


def _with_payload(payload: Any) -> Select[Any]:
    """Items with something else in the place of their payloads."""
    return select(*(payload if column.name == "payload" else column for column in t.items.c))
