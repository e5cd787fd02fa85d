"""Clients of a server: `Client`, `AsyncClient`, and `Worker`, a callable as a labeler."""

from venire.client.async_client import AsyncClient
from venire.client.sync_client import Client
from venire.client.types import (
    GaveUp,
    ItemExit,
    ItemRevision,
    Nothing,
    NotNow,
    ServerError,
    Unreachable,
    Work,
)
from venire.client.worker import Worker

__all__ = [
    "AsyncClient",
    "Client",
    "GaveUp",
    "ItemExit",
    "ItemRevision",
    "NotNow",
    "Nothing",
    "ServerError",
    "Unreachable",
    "Work",
    "Worker",
]
