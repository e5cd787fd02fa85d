"""The store: an event log for each stream, and the tables that people query.

    rows        what a table holds, one tuple each
    changes     what can be written
    search      what to look for among the items
    base        `Storage`, what every store can do
    ownership   who may write which streams
    memory      in dictionaries: for tests, and the plain reference
    sql         in a SQLite file or in PostgreSQL: tables, statements, migrations
    codec       events as JSON, to the bit
    writer      one thread that commits many requests at once
    provenance  which version of the engine wrote which part of a log
    maintenance checks a store against its log; exports and archives
    testing     the battery that every store must pass

`open_storage` opens one by its address. A database driver is imported when it is needed.
"""

from __future__ import annotations

from venire.storage.base import Storage
from venire.storage.changes import (
    AddAlarms,
    AddAudit,
    AddChecks,
    AddDeliveries,
    AddEngine,
    AddEvents,
    AddFollows,
    AddGold,
    AddItems,
    AddKey,
    AddLabels,
    AddLeases,
    AddNotes,
    AddRevisions,
    AddSettings,
    AddStream,
    AddWebhook,
    ArchiveStream,
    Change,
    DeleteStream,
    DropAlarms,
    DropMeta,
    EndLeases,
    ErasePayload,
    ExpireKey,
    LeaseEnd,
    LeaveItems,
    MarkDeleted,
    PurgeStream,
    RemoveWebhook,
    RenewLease,
    RetellAudit,
    RevokeKey,
    RotateSecret,
    SaveSnapshot,
    SetMeta,
    SetStatus,
    SettleFollow,
    TouchKey,
    UpdateDelivery,
)
from venire.storage.codec import decode, encode
from venire.storage.memory.store import MemoryStorage
from venire.storage.opening import open_storage
from venire.storage.ownership import Members, streams_of
from venire.storage.rows import (
    ERASED,
    AlarmRow,
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
    RevisionRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.storage.search import ItemSearch, Place
from venire.storage.writer import Writer, WriterStats

__all__ = [
    "ERASED",
    "AddAlarms",
    "AddAudit",
    "AddChecks",
    "AddDeliveries",
    "AddEngine",
    "AddEvents",
    "AddFollows",
    "AddGold",
    "AddItems",
    "AddKey",
    "AddLabels",
    "AddLeases",
    "AddNotes",
    "AddRevisions",
    "AddSettings",
    "AddStream",
    "AddWebhook",
    "AlarmRow",
    "ArchiveStream",
    "AuditRow",
    "Change",
    "CheckRow",
    "Counts",
    "DeleteStream",
    "DeliveryRow",
    "DropAlarms",
    "DropMeta",
    "EndLeases",
    "EngineRow",
    "ErasePayload",
    "EventRow",
    "ExitRow",
    "Exited",
    "ExpireKey",
    "FollowRow",
    "GoldRow",
    "ItemRow",
    "ItemSearch",
    "KeyRow",
    "LabelRow",
    "LeaseEnd",
    "LeaseRow",
    "LeaveItems",
    "MarkDeleted",
    "Members",
    "MemoryStorage",
    "NoteRow",
    "Place",
    "PurgeStream",
    "RemoveWebhook",
    "RenewLease",
    "RetellAudit",
    "RevisionRow",
    "RevokeKey",
    "RotateSecret",
    "SaveSnapshot",
    "SetMeta",
    "SetStatus",
    "SettingsRow",
    "SettleFollow",
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
