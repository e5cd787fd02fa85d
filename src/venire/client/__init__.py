"""Clients of a server: `Client`, `AsyncClient`, and `Worker`, a callable as a labeler."""

from venire.client.clients import AsyncClient, Client
from venire.client.wire import (
    ItemExit,
    ItemRevision,
    Nothing,
    ServerError,
    Unreachable,
    Work,
)
from venire.client.worker import Worker
from venire.errors import GaveUp, NotNow

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
