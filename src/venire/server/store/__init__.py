"""The store: an event log for each stream, and the tables that people query.

    records     what is kept, declared once: tables, inserts, archives come from it
    changes     what can be written
    search      what to look for among the items
    base        `Storage`, what every store can do
    ownership   who may write which streams
    sql         in a SQLite file or in PostgreSQL: tables, statements, migrations
    codec       events as JSON, to the bit
    writer      one thread that commits many requests at once
    provenance  which version of the engine wrote which part of a log
    history     old parts of a log in files, and back
    maintenance checks a store against its log; exports and archives

`open_storage` opens one by its address. A database driver is imported when it is needed.
"""

from __future__ import annotations

from venire.server.store.base import Storage
from venire.server.store.changes import (
    ArchiveStream,
    Change,
    CorrectGold,
    DeleteStream,
    DropAlarms,
    DropHistory,
    DropMeta,
    EndLeases,
    EraseArchived,
    ErasePayload,
    ExpireKey,
    Insert,
    LeaseEnd,
    LeaveItems,
    MarkDeleted,
    PurgeStream,
    PutBack,
    RemoveSegment,
    RemoveWebhook,
    RenewLease,
    RetellAudit,
    RevokeKey,
    RotateSecret,
    SetMeta,
    SetStatus,
    SettleFollow,
    SettleRoute,
    TouchKey,
    UpdateDelivery,
)
from venire.server.store.codec import decode, encode
from venire.server.store.opening import open_storage
from venire.server.store.ownership import Members, streams_of
from venire.server.store.records import (
    ERASED,
    AlarmRow,
    ArchivedRow,
    AuditRow,
    CheckRow,
    Counts,
    DeliveryRow,
    EngineRow,
    EventRow,
    Exited,
    ExitRow,
    FollowRow,
    GoldRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    NoteRow,
    RepeatRow,
    RevisionRow,
    RoutedRow,
    SegmentRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.server.store.search import ItemSearch, Place
from venire.server.store.writer import Writer, WriterStats

__all__ = [
    "ERASED",
    "AlarmRow",
    "ArchiveStream",
    "ArchivedRow",
    "AuditRow",
    "Change",
    "CheckRow",
    "CorrectGold",
    "Counts",
    "DeleteStream",
    "DeliveryRow",
    "DropAlarms",
    "DropHistory",
    "DropMeta",
    "EndLeases",
    "EngineRow",
    "EraseArchived",
    "ErasePayload",
    "EventRow",
    "ExitRow",
    "Exited",
    "ExpireKey",
    "FollowRow",
    "GoldRow",
    "Insert",
    "ItemRow",
    "ItemSearch",
    "KeyRow",
    "LabelRow",
    "LeaseEnd",
    "LeaseRow",
    "LeaveItems",
    "MarkDeleted",
    "Members",
    "NoteRow",
    "Place",
    "PurgeStream",
    "PutBack",
    "RemoveSegment",
    "RemoveWebhook",
    "RenewLease",
    "RepeatRow",
    "RetellAudit",
    "RevisionRow",
    "RevokeKey",
    "RotateSecret",
    "RoutedRow",
    "SegmentRow",
    "SetMeta",
    "SetStatus",
    "SettingsRow",
    "SettleFollow",
    "SettleRoute",
    "SnapshotRow",
    "Storage",
    "StreamRow",
    "TouchKey",
    "UpdateDelivery",
    "WebhookRow",
    "Writer",
    "WriterStats",
    "decode",
    "encode",
    "open_storage",
    "streams_of",
]
