"""Responses of the server as values, and the client's errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from venire.errors import VenireError


class ServerError(VenireError):
    """An error response: `status`, `code` for programs, `hint` what to do.

    >>> str(ServerError(404, "not_found", "no stream 'posts'", "make it first"))
    "no stream 'posts' (not_found, 404): make it first"
    """

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        """The fields of the error response."""
        self.status, self.code, self.message, self.hint = status, code, message, hint
        tail = f": {hint}" if hint else ""
        super().__init__(f"{message} ({code}, {status}){tail}")


class Unreachable(VenireError):
    """The server could not be reached for as long as the client retries."""


@dataclass(frozen=True, slots=True)
class Work:
    """An item to label with `client.label(work.token, ...)` before its lease expires.

    The lease lasts `ttl` seconds; a heartbeat renews it.
    """

    token: str
    stream: str
    item: str
    labeler: str
    payload: Any
    classes: tuple[str, ...]
    ttl: float

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Work:
        """From the JSON of a response."""
        return cls(
            token=said["token"],
            stream=said["stream"],
            item=said["item"],
            labeler=said["labeler"],
            payload=said["payload"],
            classes=tuple(said["classes"]),
            ttl=float(said["ttl"]),
        )


@dataclass(frozen=True, slots=True)
class Nothing:
    """No work is available, and why.

    `reason` is one of `venire.model.NoWork`, as text. It is falsy:

    >>> bool(Nothing("empty"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


class _Numbered:
    """A row of a numbered list, with the fields of its JSON."""

    __slots__: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """From the JSON of a response."""
        return cls(**{name: fields[name] for name in cls.__slots__ if name in fields})


@dataclass(frozen=True, slots=True)
class ItemExit(_Numbered):
    """The exit of an item: verdict, confidence, and the reason it left.

    `n` is the cursor, counted from 1 in each stream; `verdict` is None for an item that left
    without labels, and with `reason` while it is hidden from a reviewer; `at` is in seconds since
    1970. `guaranteed` is whether the verdict is so by the audits up to now, in a stream with a
    guarantee.
    """

    n: int
    item: str
    verdict: str | None
    confidence: float
    labels: int
    reason: str | None
    arrived_slot: int
    slot: int
    at: float
    guaranteed: bool | None = None


@dataclass(frozen=True, slots=True)
class ItemRevision(_Numbered):
    """A changed verdict of an item that has left.

    `n` is the cursor, counted from 1 in each stream; `before` is the previous verdict, of the exit
    or of an earlier revision. The exit stays as it was.
    """

    n: int
    item: str
    before: str | None
    before_confidence: float
    verdict: str | None
    confidence: float
    labels: int
    slot: int
    at: float
