"""The store: an event log for each stream, and the tables that people query.

    records     what is kept, declared once: tables, inserts, archives come from it
    changes     what can be written
    search      what to look for among the items
    ownership   who may write which streams
    sql         `Storage`, in a SQLite file or in PostgreSQL: tables, statements, migrations
    log         events as JSON, to the bit, and which version of the engine wrote which part
    writer      one thread that commits many requests at once
    history     old parts of a log in files, and back
    maintenance checks a store against its log; exports and archives

`open_storage` opens one by its address. What is not used is not imported, such as
SQLAlchemy and a database driver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from venire.tools.lazy import attach

if TYPE_CHECKING:
    from venire.server.store.changes import ArchiveStream as ArchiveStream
    from venire.server.store.changes import Change as Change
    from venire.server.store.changes import CorrectGold as CorrectGold
    from venire.server.store.changes import DeleteStream as DeleteStream
    from venire.server.store.changes import DropAlarms as DropAlarms
    from venire.server.store.changes import DropHistory as DropHistory
    from venire.server.store.changes import DropMeta as DropMeta
    from venire.server.store.changes import EndLeases as EndLeases
    from venire.server.store.changes import EraseArchived as EraseArchived
    from venire.server.store.changes import ErasePayload as ErasePayload
    from venire.server.store.changes import ExpireKey as ExpireKey
    from venire.server.store.changes import Insert as Insert
    from venire.server.store.changes import LeaseEnd as LeaseEnd
    from venire.server.store.changes import LeaveItems as LeaveItems
    from venire.server.store.changes import MarkDeleted as MarkDeleted
    from venire.server.store.changes import PurgeStream as PurgeStream
    from venire.server.store.changes import PutBack as PutBack
    from venire.server.store.changes import RemoveSegment as RemoveSegment
    from venire.server.store.changes import RemoveWebhook as RemoveWebhook
    from venire.server.store.changes import RenewLease as RenewLease
    from venire.server.store.changes import RetellAudit as RetellAudit
    from venire.server.store.changes import RevokeKey as RevokeKey
    from venire.server.store.changes import RotateSecret as RotateSecret
    from venire.server.store.changes import SetMeta as SetMeta
    from venire.server.store.changes import SetStatus as SetStatus
    from venire.server.store.changes import SettleFollow as SettleFollow
    from venire.server.store.changes import SettleRoute as SettleRoute
    from venire.server.store.changes import TouchKey as TouchKey
    from venire.server.store.changes import UpdateDelivery as UpdateDelivery
    from venire.server.store.log import decode as decode
    from venire.server.store.log import encode as encode
    from venire.server.store.opening import open_storage as open_storage
    from venire.server.store.ownership import Members as Members
    from venire.server.store.ownership import streams_of as streams_of
    from venire.server.store.records import ERASED as ERASED
    from venire.server.store.records import AlarmRow as AlarmRow
    from venire.server.store.records import ArchivedRow as ArchivedRow
    from venire.server.store.records import AuditRow as AuditRow
    from venire.server.store.records import CheckRow as CheckRow
    from venire.server.store.records import Counts as Counts
    from venire.server.store.records import DeliveryRow as DeliveryRow
    from venire.server.store.records import EngineRow as EngineRow
    from venire.server.store.records import EventRow as EventRow
    from venire.server.store.records import Exited as Exited
    from venire.server.store.records import ExitRow as ExitRow
    from venire.server.store.records import FollowRow as FollowRow
    from venire.server.store.records import GoldRow as GoldRow
    from venire.server.store.records import ItemRow as ItemRow
    from venire.server.store.records import KeyRow as KeyRow
    from venire.server.store.records import LabelRow as LabelRow
    from venire.server.store.records import LeaseRow as LeaseRow
    from venire.server.store.records import NoteRow as NoteRow
    from venire.server.store.records import RepeatRow as RepeatRow
    from venire.server.store.records import RevisionRow as RevisionRow
    from venire.server.store.records import RoutedRow as RoutedRow
    from venire.server.store.records import SegmentRow as SegmentRow
    from venire.server.store.records import SettingsRow as SettingsRow
    from venire.server.store.records import SnapshotRow as SnapshotRow
    from venire.server.store.records import StreamRow as StreamRow
    from venire.server.store.records import WebhookRow as WebhookRow
    from venire.server.store.search import ItemSearch as ItemSearch
    from venire.server.store.search import Place as Place
    from venire.server.store.sql.storage import Storage as Storage
    from venire.server.store.writer import Writer as Writer
    from venire.server.store.writer import WriterStats as WriterStats
else:
    __getattr__, __dir__ = attach(__name__)
