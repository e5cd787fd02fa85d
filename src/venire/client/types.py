"""What the server says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from venire.errors import VenireError

__all__ = ["ItemExit", "ItemRevision", "Nothing", "ServerError", "Unreachable", "Work"]


class ServerError(VenireError):
    """The server refused: `status`, `code` for programs, `hint` what to do.

    >>> str(ServerError(404, "not_found", "no stream 'posts'", "make it first"))
    "no stream 'posts' (not_found, 404): make it first"
    """

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
        """As the server said it."""
        self.status, self.code, self.message, self.hint = status, code, message, hint
        tail = f": {hint}" if hint else ""
        super().__init__(f"{message} ({code}, {status}){tail}")


class Unreachable(VenireError):
    """The server did not answer, or could not serve, for as long as the client tries again."""


@dataclass(frozen=True, slots=True)
class Work:
    """An item to label: say what it is with `client.label(work.token, ...)` before it expires.

    It lasts `ttl` seconds; a heartbeat begins them anew.
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
        """From an answer of the server."""
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
    """No work now, and why.

    `reason` is one of `venire.model.NoWork`, as text. It counts as false:

    >>> bool(Nothing("empty"))
    False
    """

    reason: str

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class ItemExit:
    """An item that left a stream: what it is held to be, how surely, and why it left.

    `n` counts the exits of the stream from 1, and is where to go on from; `verdict` is None for
    an item that left without labels; `at` is in seconds since 1970.
    """

    n: int
    item: str
    verdict: str | None
    confidence: float
    labels: int
    reason: str
    arrived_slot: int
    slot: int
    at: float

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> ItemExit:
        """From an answer of the server."""
        return cls(**{name: said[name] for name in cls.__slots__})


@dataclass(frozen=True, slots=True)
class ItemRevision:
    """The verdict of an item that has left became another by what is known now.

    `n` counts the revisions of the stream from 1, and is where to go on from; `before` is what
    was said of the item last, when it left or by an earlier revision. Its exit stays as it was.
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

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> ItemRevision:
        """From an answer of the server."""
        return cls(**{name: said[name] for name in cls.__slots__})
