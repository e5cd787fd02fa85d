"""The tables of a store in SQLite and PostgreSQL, as they are after the last migration.

A row of a table is the tuple of the same name in `rows`, its columns in the same order. Text is
compared by code point everywhere (in PostgreSQL by the collation "C"), so that pages of a listing
are the same in every store. A test holds this module and the migrations to each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from venire.model import DeliveryStatus, ItemStatus, LeaseStatus, NoteKind
from venire.server.store import rows

__all__ = ["OF_STREAMS", "TEXT", "metadata"]

TEXT = Text().with_variant(Text(collation="C"), "postgresql")

metadata = MetaData()


def _text(name: str, *more: Any, nullable: bool = False) -> Column[str]:
    return Column(name, TEXT, *more, nullable=nullable)


def _time(name: str, nullable: bool = False) -> Column[float]:
    return Column(name, Double, nullable=nullable)


def _stream() -> Column[str]:
    return _text("stream", ForeignKey("streams.name"))


def _one_of(column: str, table: str, values: Iterable[str]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{table}_{column}_known")


streams = Table(
    "streams",
    metadata,
    _text("name"),
    _time("created_at"),
    _text("status"),
    _time("deleted_at", nullable=True),
    _time("archived_at", nullable=True),
    PrimaryKeyConstraint("name", name="streams_key"),
    _one_of("status", "streams", rows.STREAM_STATUSES),
)

settings = Table(
    "settings",
    metadata,
    _stream(),
    Column("version", Integer, nullable=False),
    _time("at"),
    _text("actor"),
    _text("body"),
    PrimaryKeyConstraint("stream", "version", name="settings_key"),
)

events = Table(
    "events",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    Column("slot", BigInteger, nullable=False),
    _time("at"),
    _text("kind"),
    _text("body"),
    PrimaryKeyConstraint("stream", "n", name="events_key"),
)

items = Table(
    "items",
    metadata,
    _stream(),
    _text("id"),
    _text("digest"),
    _text("payload"),
    Column("weight", Double, nullable=False),
    _text("eligible", nullable=True),
    _text("excluded"),
    Column("arrived_slot", BigInteger, nullable=False),
    _time("arrived_at"),
    _text("status"),
    Column("exit_n", BigInteger),
    Column("exit_slot", BigInteger),
    _time("left_at", nullable=True),
    _text("verdict", nullable=True),
    Column("confidence", Double),
    Column("labels", Integer),
    _text("reason", nullable=True),
    _text("key", nullable=True),
    Column("min_confidence", Double),
    PrimaryKeyConstraint("stream", "id", name="items_key"),
    UniqueConstraint("stream", "exit_n", name="items_exit"),
    _one_of("status", "items", ItemStatus),
    Index("items_by_status", "stream", "status", "id"),
    Index("items_by_arrival", "stream", "arrived_at", "id"),
    Index("items_by_verdict", "stream", "verdict", "arrived_at", "id"),
    Index("items_by_reason", "stream", "reason", "arrived_at", "id"),
    Index("items_by_doubt", "stream", "status", "confidence", "exit_n"),
)

revisions = Table(
    "revisions",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _text("item"),
    Column("slot", BigInteger, nullable=False),
    _time("at"),
    _text("before", nullable=True),
    Column("before_confidence", Double, nullable=False),
    _text("verdict", nullable=True),
    Column("confidence", Double, nullable=False),
    Column("labels", Integer, nullable=False),
    PrimaryKeyConstraint("stream", "n", name="revisions_key"),
    Index("revisions_by_item", "stream", "item", "n"),
)

checks = Table(
    "checks",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _text("item"),
    _time("at"),
    Column("share", Double, nullable=False),
    _text("verdict"),
    Column("extra", Boolean, nullable=False),
    PrimaryKeyConstraint("stream", "n", name="checks_key"),
    UniqueConstraint("stream", "item", name="checks_item"),
)

gold = Table(
    "gold",
    metadata,
    _stream(),
    _text("item"),
    _text("label"),
    _time("at"),
    _text("source"),
    _text("actor"),
    _text("key", nullable=True),
    _text("earlier", nullable=True),
    PrimaryKeyConstraint("stream", "item", name="gold_key"),
)

alarms = Table(
    "alarms",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _time("at"),
    _text("rule"),
    _text("subject"),
    Column("raised", Boolean, nullable=False),
    Column("value", Double, nullable=False),
    Column("threshold", Double, nullable=False),
    _text("message"),
    PrimaryKeyConstraint("stream", "n", name="alarms_key"),
)

follows = Table(
    "follows",
    metadata,
    _stream(),
    _text("item"),
    _text("original"),
    _time("at"),
    _text("actor"),
    _text("key", nullable=True),
    _time("settled_at", nullable=True),
    PrimaryKeyConstraint("stream", "item", name="follows_key"),
)

labels = Table(
    "labels",
    metadata,
    _stream(),
    _text("item"),
    _text("labeler"),
    _text("said"),
    _time("at"),
    Column("slot", BigInteger, nullable=False),
    Column("late", Boolean, nullable=False),
    Column("lead_seconds", Double),
    _text("source"),
    _text("key", nullable=True),
    PrimaryKeyConstraint("stream", "item", "labeler", name="labels_key"),
    Index("labels_by_time", "stream", "at"),
    Index("labels_by_labeler", "stream", "labeler", "at"),
)

notes = Table(
    "notes",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _text("item"),
    _text("labeler"),
    _text("kind"),
    _text("text"),
    _time("at"),
    _text("key", nullable=True),
    PrimaryKeyConstraint("stream", "n", name="notes_key"),
    _one_of("kind", "notes", NoteKind),
    Index("notes_by_item", "stream", "item", "n"),
)

leases = Table(
    "leases",
    metadata,
    _text("token_hash"),
    _stream(),
    _text("item"),
    _text("labeler"),
    _time("given_at"),
    Column("ttl", Double, nullable=False),
    _text("status"),
    _time("ended_at", nullable=True),
    _text("answer", nullable=True),
    _text("key", nullable=True),
    _text("ended_key", nullable=True),
    PrimaryKeyConstraint("token_hash", name="leases_key"),
    _one_of("status", "leases", LeaseStatus),
    Index("leases_by_stream", "stream", "status"),
    Index("leases_by_item", "stream", "item", "labeler"),
)

snapshots = Table(
    "snapshots",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _time("at"),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("stream", "n", name="snapshots_key"),
)

engines = Table(
    "engines",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _text("version"),
    _time("at"),
    PrimaryKeyConstraint("stream", "n", name="engines_key"),
)

segments = Table(
    "segments",
    metadata,
    _stream(),
    Column("n", BigInteger, nullable=False),
    _time("at"),
    Column("first_event", BigInteger, nullable=False),
    Column("next_event", BigInteger, nullable=False),
    _time("ended_at"),
    Column("slot", BigInteger, nullable=False),
    Column("exits", BigInteger, nullable=False),
    Column("revisions", BigInteger, nullable=False),
    Column("notes", BigInteger, nullable=False),
    _text("name"),
    _text("digest"),
    PrimaryKeyConstraint("stream", "n", name="segments_key"),
)

archived = Table(
    "archived",
    metadata,
    _stream(),
    _text("id"),
    _text("digest"),
    Column("segment", BigInteger, nullable=False),
    PrimaryKeyConstraint("stream", "id", name="archived_key"),
)

tallies = Table(
    "tallies",
    metadata,
    _stream(),
    _text("kind"),
    _text("name"),
    Column("number", BigInteger, nullable=False),
    PrimaryKeyConstraint("stream", "kind", "name", name="tallies_key"),
)

keys = Table(
    "keys",
    metadata,
    _text("id"),
    _text("hash"),
    _text("role"),
    _text("labeler", nullable=True),
    _text("name"),
    _time("created_at"),
    _time("last_used_at", nullable=True),
    _time("revoked_at", nullable=True),
    _time("expires_at", nullable=True),
    PrimaryKeyConstraint("id", name="keys_key"),
    UniqueConstraint("hash", name="keys_hash"),
)

webhooks = Table(
    "webhooks",
    metadata,
    _text("id"),
    _stream(),
    _text("url"),
    _text("secret"),
    _time("created_at"),
    _text("old_secret", nullable=True),
    _time("old_until", nullable=True),
    PrimaryKeyConstraint("id", name="webhooks_key"),
)

deliveries = Table(
    "deliveries",
    metadata,
    _text("webhook", ForeignKey("webhooks.id", ondelete="CASCADE")),
    _text("stream"),
    Column("exit_n", BigInteger, nullable=False),
    Column("attempt", Integer, nullable=False),
    _time("next_at"),
    _text("status"),
    _text("last_error", nullable=True),
    _time("failing_since", nullable=True),
    _text("kind"),
    PrimaryKeyConstraint("webhook", "kind", "exit_n", name="deliveries_key"),
    _one_of("status", "deliveries", DeliveryStatus),
    _one_of("kind", "deliveries", rows.DELIVERY_KINDS),
    Index("deliveries_by_webhook", "webhook", "status", "next_at", "exit_n", "kind"),
)

#: Numbered by the database: the server and `venire keys` both write into it.
audit = Table(
    "audit",
    metadata,
    Column("n", BigInteger().with_variant(Integer, "sqlite"), autoincrement=True),
    _time("at"),
    _text("actor"),
    _text("key", nullable=True),
    _text("action"),
    _text("stream", nullable=True),
    _text("subject", nullable=True),
    _text("details"),
    PrimaryKeyConstraint("n", name="audit_key"),
    Index("audit_by_stream", "stream", "n"),
)

meta = Table(
    "meta",
    metadata,
    _text("key"),
    _text("value"),
    PrimaryKeyConstraint("key", name="meta_key"),
)

#: Of PostgreSQL: the sessions of servers, and the streams that they have claimed (see `servers`).
servers = Table(
    "servers",
    metadata,
    Column("pid", BigInteger, autoincrement=False),
    Column("role", BigInteger, nullable=False),
    Column("began", BigInteger, nullable=False),
    _text("address"),
    _text("secret"),
    Column("leaving", Boolean, nullable=False),
    PrimaryKeyConstraint("pid", name="servers_key"),
)

claims = Table(
    "claims",
    metadata,
    _text("stream"),
    Column("pid", BigInteger, ForeignKey("servers.pid", ondelete="CASCADE"), nullable=False),
    PrimaryKeyConstraint("stream", name="claims_key"),
)

#: The tables whose rows belong to a stream; the audit trail stays when the stream goes.
OF_STREAMS = ("webhooks", "labels", "leases", "notes", "revisions", "checks", "gold", "alarms",
              "follows", "items", "archived", "segments", "tallies", "snapshots", "engines",
              "events", "settings")  # fmt: skip
