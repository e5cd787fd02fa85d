"""Requests to the server, its responses as values, and the client's errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeAlias, TypeVar

from venire.errors import InputError, VenireError
from venire.operations import OPERATIONS


class ServerError(VenireError):
    """An error response: `status`, `code` for programs, `hint` what to do.

    >>> str(ServerError(404, "not_found", "no stream 'posts'", "make it first"))
    "no stream 'posts' (not_found, 404): make it first"
    """

    def __init__(self, status: int, code: str, message: str, hint: str = "") -> None:
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


T = TypeVar("T")

#: A label as (item, labeler, said), with a confidence behind it if there is one, or as a mapping
#: with these keys.
LabelLike: TypeAlias = (
    tuple[str, str, str | None] | tuple[str, str, str, float | None] | Mapping[str, Any]
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def retryable(self) -> bool:
        """Whether the same request may succeed later; assumed if the error is a proxy's."""
        try:
            return bool(self.json()["error"]["retryable"])
        except (ValueError, KeyError, TypeError):
            return True

    def error(self) -> ServerError:
        try:
            said = self.json()["error"]
            return ServerError(self.status, said["code"], said["message"], said.get("hint", ""))
        except (ValueError, KeyError, TypeError):
            text = self.body[:200].decode(errors="replace")
            return ServerError(self.status, "unknown", text or "no message")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request.

    `wait` is the time of a long poll; `idempotent` says that it may be retried when it is unknown
    whether it arrived.
    """

    method: str
    path: str
    read: Callable[[Answer], T]
    params: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"
    wait: float = 0.0
    idempotent: bool = True

    def headers(self) -> dict[str, str]:
        return {"content-type": self.content_type} if self.body is not None else {}


def call(
    name: str,
    read: Callable[[Answer], Any] | None = None,
    *,
    sent: object = None,
    params: Mapping[str, Any] | None = None,
    wait: float = 0.0,
    **names: str,
) -> Call[Any]:
    """The request of an operation, with the names in its path; parameters may be None.

    >>> call("exits", stream="posts", params={"after": 3, "limit": None}).params
    {'after': '3'}
    """
    entry = OPERATIONS[name]
    asked = {key: _text(value) for key, value in (params or {}).items() if value is not None}
    body = None if sent is None else as_json(sent)
    return Call(
        entry.method,
        entry.path_of(**names),
        read or read_any,
        asked,
        body,
        wait=wait,
        idempotent=entry.idempotent,
    )


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None; older servers do not know the latest of them."""
    return {name: value for name, value in fields.items() if value is not None}


def item_line(item: Mapping[str, Any]) -> bytes:
    if not isinstance(item, Mapping):
        raise InputError(f"got the item {item!r}, expected a mapping with an id: {{'id': ...}}")
    return as_json(dict(item), f"item {item.get('id')!r}")


def label_row(row: LabelLike) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    try:
        item, labeler, said, *sure = row
        if len(sure) > 1:
            raise ValueError(row)
    except (TypeError, ValueError):
        raise InputError(
            f"got the label {row!r}, expected (item, labeler, said), or with a confidence behind it"
        ) from None
    told = {"item": item, "labeler": labeler, "said": said}
    return told | {"confidence": sure[0]} if sure and sure[0] is not None else told


def checked_token(token: str) -> str:
    """A token that is not empty."""
    if not token:
        raise InputError("the token of the assignment is empty, expected one from `next`")
    return token


def as_json(value: object, what: str = "the request") -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be sent as JSON: {error}") from error


def read_any(answer: Answer) -> Any:
    return answer.json() if answer.body else None


def read_work(answer: Answer) -> Work | Nothing:
    """An item to label, or why there is none."""
    if answer.status == 204:
        return Nothing(answer.headers.get("venire-reason", "empty"))
    return Work.from_json(answer.json())


def read_exits(answer: Answer) -> list[ItemExit]:
    return [ItemExit.from_json(json.loads(line)) for line in answer.body.splitlines() if line]


def read_revisions(answer: Answer) -> list[ItemRevision]:
    return [ItemRevision.from_json(json.loads(line)) for line in answer.body.splitlines() if line]


def read_held(answer: Answer) -> list[Work]:
    return [Work.from_json(work) for work in answer.json()]


def read_nothing(answer: Answer) -> None:
    """What is answered says nothing that the caller does not know."""


def read_lines(answer: Answer) -> list[Any]:
    return [json.loads(line) for line in answer.body.splitlines() if line]
