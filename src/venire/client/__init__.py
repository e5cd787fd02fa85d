"""Talking to a server: `Client`, `AsyncClient`, and `Worker`, which makes a callable a labeler."""

from venire.client.async_client import AsyncClient
from venire.client.sync_client import Client
from venire.client.types import (
    ItemExit,
    ItemRevision,
    Nothing,
    ServerError,
    Unreachable,
    Work,
)
from venire.client.worker import Worker

__all__ = [
    "AsyncClient",
    "Client",
    "ItemExit",
    "ItemRevision",
    "Nothing",
    "ServerError",
    "Unreachable",
    "Work",
    "Worker",
]
