"""The store: an event log for each stream, and the tables that people query.

    rows        what a table holds, one tuple each
    changes     what can be written
    base        `Storage`, what every store can do
    memory      in dictionaries: for tests, and the plain reference
    sqlite      in a file; `postgres`: in a database (`sql`: what they share, `tables`,
                `statements`, `schema` and `migrations`)
    codec       events as JSON, to the bit
    writer      one thread that commits many requests at once
    verifying   is the store what its log says?
    exporting   a stream for other programs; `archive`: a whole store for another store
    testing     the battery that every store must pass

`open_storage` opens one by its address. A database driver is imported when it is needed.
"""

from __future__ import annotations

from venire.storage.base import Storage
from venire.storage.changes import (
    AddDeliveries,
    AddEngine,
    AddEvents,
    AddItems,
    AddKey,
    AddLabels,
    AddLeases,
    AddSettings,
    AddStream,
    AddWebhook,
    Change,
    EndLeases,
    LeaseEnd,
    LeaveItems,
    RemoveWebhook,
    RenewLease,
    RevokeKey,
    SaveSnapshot,
    SetMeta,
    SetStatus,
    TouchKey,
    UpdateDelivery,
)
from venire.storage.codec import decode, encode
from venire.storage.memory import MemoryStorage
from venire.storage.opening import open_storage
from venire.storage.rows import (
    Counts,
    DeliveryRow,
    EngineRow,
    EventRow,
    Exited,
    ExitRow,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseRow,
    SettingsRow,
    SnapshotRow,
    StreamRow,
    WebhookRow,
)
from venire.storage.writer import Writer, WriterStats

__all__ = [
    "AddDeliveries",
    "AddEngine",
    "AddEvents",
    "AddItems",
    "AddKey",
    "AddLabels",
    "AddLeases",
    "AddSettings",
    "AddStream",
    "AddWebhook",
    "Change",
    "Counts",
    "DeliveryRow",
    "EndLeases",
    "EngineRow",
    "EventRow",
    "ExitRow",
    "Exited",
    "ItemRow",
    "KeyRow",
    "LabelRow",
    "LeaseEnd",
    "LeaseRow",
    "LeaveItems",
    "MemoryStorage",
    "RemoveWebhook",
    "RenewLease",
    "RevokeKey",
    "SaveSnapshot",
    "SetMeta",
    "SetStatus",
    "SettingsRow",
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
]
