"""Every request of the API as a value: what to send, and how to parse the response.

Both clients, the synchronous and the asynchronous one, send these, so each route is written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

from venire.client.types import ItemExit, ItemRevision, Nothing, ServerError, Work
from venire.errors import InputError

__all__ = ["Answer", "Call", "LabelLike"]

T = TypeVar("T")

#: A label as (item, labeler, said), or as a mapping with these keys.
LabelLike: TypeAlias = tuple[str, str, str] | Mapping[str, str]

NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.body)

    def retryable(self) -> bool:
        """Whether the same request may succeed later; assumed if the error is a proxy's."""
        try:
            return bool(self.json()["error"]["retryable"])
        except (ValueError, KeyError, TypeError):
            return True

    def error(self) -> ServerError:
        """The response as an error."""
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
        """The headers to send."""
        return {"content-type": self.content_type} if self.body is not None else {}


def get(path: str, **params: str) -> Call[Any]:
    """A GET request."""
    return Call("GET", path, Answer.json, params)


def send(
    path: str, body: object = None, method: str = "POST", idempotent: bool = True
) -> Call[Any]:
    """A request that changes something."""
    sent = None if body is None else _json(body)
    return Call(method, path, _read_any, body=sent, idempotent=idempotent)


def stream_path(stream: str, *more: str) -> str:
    """The path of a stream, or of something in it; names may contain any character.

    >>> stream_path("posts", "items", "a/b"), stream_path("posts", "items", "..")
    ('/v1/streams/posts/items/a%2Fb', '/v1/streams/posts/items/%2E%2E')
    """
    return "/".join(["/v1/streams", *(_quoted(part) for part in (stream, *more))])


def _quoted(part: str) -> str:
    """One segment of a path; "." and ".." would be resolved if they were not quoted."""
    return part.replace(".", "%2E") if part in (".", "..") else quote(part, safe="")


def add_items(stream: str, items: Iterable[Mapping[str, Any]]) -> Call[dict[str, Any]]:
    """Items, as lines of JSON."""
    if isinstance(items, Mapping):
        raise InputError("got one item, expected a list of them")
    lines = b"\n".join(_item(item) for item in items)
    return Call("POST", stream_path(stream, "items"), Answer.json, {}, lines, NDJSON)


def _item(item: Mapping[str, Any]) -> bytes:
    if not isinstance(item, Mapping):
        raise InputError(f"got the item {item!r}, expected a mapping with an id: {{'id': ...}}")
    return _json(dict(item), f"item {item.get('id')!r}")


def next_work(
    stream: str, labeler: str | None, wait: float, ahead: int = 0
) -> Call[Work | Nothing]:
    """The next item for a labeler."""
    params = {"wait": f"{wait:g}"}
    if ahead:
        params["ahead"] = str(ahead)
    if labeler is not None:
        params["labeler"] = labeler
    return Call("GET", stream_path(stream, "next"), _read_work, params, wait=wait)


def label(token: str, said: str) -> Call[dict[str, Any]]:
    """Label an assigned item."""
    return Call("POST", _assignment(token, "label"), Answer.json, body=_json({"said": said}))


def heartbeat(token: str) -> Call[None]:
    """Renew the lease of an assignment."""
    return Call("POST", _assignment(token, "heartbeat"), lambda answer: None)


def abstain(token: str) -> Call[None]:
    """Say that one is not sure about an assigned item."""
    return Call("POST", _assignment(token, "abstain"), lambda answer: None)


def note(token: str, kind: str, text: str) -> Call[None]:
    """Comment on an assigned item, or flag it."""
    body = _json({"kind": kind, "text": text})
    return Call("POST", _assignment(token, "note"), lambda answer: None, body=body)


def notes(stream: str, after: int, limit: int, item: str | None) -> Call[list[dict[str, Any]]]:
    """What labelers remarked on items."""
    params = {"after": str(after), "limit": str(limit)} | ({} if item is None else {"item": item})
    return Call("GET", stream_path(stream, "notes"), Answer.json, params)


def progress(stream: str, labeler: str | None, since: float) -> Call[dict[str, Any]]:
    """How many labels a labeler has given."""
    params = {"since": repr(since)} | ({} if labeler is None else {"labeler": labeler})
    return Call("GET", stream_path(stream, "progress"), Answer.json, params)


def release(token: str, bar: bool) -> Call[None]:
    """Release an assignment; `bar`: do not assign it to this labeler again."""
    body = _json({"bar": bar})
    return Call("POST", _assignment(token, "release"), lambda answer: None, body=body)


def add_labels(
    stream: str, rows: Iterable[LabelLike], leased: bool = False
) -> Call[dict[str, Any]]:
    """Add labels in bulk; `leased`: only of items that their labeler holds or held."""
    body, params = _json([_label(row) for row in rows]), {"leased": "true"} if leased else {}
    return Call("POST", stream_path(stream, "labels"), Answer.json, params, body)


def _label(row: LabelLike) -> dict[str, str]:
    if isinstance(row, Mapping):
        return dict(row)
    try:
        item, labeler, said = row
    except (TypeError, ValueError):
        raise InputError(f"got the label {row!r}, expected (item, labeler, said)") from None
    return {"item": item, "labeler": labeler, "said": said}


def add_gold(
    stream: str, gold: Mapping[str, str] | Iterable[tuple[str, str]], correct: bool = False
) -> Call[dict[str, Any]]:
    """Add gold, or correct it."""
    pairs = gold.items() if isinstance(gold, Mapping) else gold
    body = _json([{"item": item, "label": label} for item, label in pairs])
    how = {"correct": "true"} if correct else {}
    return Call("POST", stream_path(stream, "gold"), Answer.json, how, body)


def audits(stream: str, level: float) -> Call[Any]:
    """The accuracy audits of a stream."""
    return get(stream_path(stream, "audits"), level=f"{level!r}")


def exits(stream: str, after: int, wait: float, limit: int) -> Call[list[ItemExit]]:
    """Exits after a cursor."""
    params = {"after": str(after), "wait": f"{wait:g}", "limit": str(limit)}
    return Call("GET", stream_path(stream, "exits"), _read_exits, params, wait=wait)


def revisions(stream: str, after: int, wait: float, limit: int) -> Call[list[ItemRevision]]:
    """Revisions after a cursor."""
    params = {"after": str(after), "wait": f"{wait:g}", "limit": str(limit)}
    return Call("GET", stream_path(stream, "revisions"), _read_revisions, params, wait=wait)


def find_items(stream: str, cursor: str | None, limit: int, search: Mapping[str, Any]) -> Call[Any]:
    """A page of items."""
    asked = {"cursor": cursor, "limit": limit, **search}
    params = {name: str(value) for name, value in asked.items() if value is not None}
    return Call("GET", stream_path(stream, "items"), Answer.json, params)


def reviews(
    stream: str, kind: str | None, cursor: str | None, limit: int, order: str | None = None
) -> Call[Any]:
    """A page of reviews."""
    asked = {"kind": kind, "cursor": cursor, "limit": limit, "order": order}
    params = {name: str(value) for name, value in asked.items() if value is not None}
    return Call("GET", stream_path(stream, "reviews"), Answer.json, params)


def rates(stream: str, level: float) -> Call[Any]:
    """The rates of a stream, by audits."""
    return get(stream_path(stream, "rates"), level=f"{level!r}")


def panel(stream: str, want: float | None) -> Call[Any]:
    """The report on the panel, which may take a minute."""
    params = {} if want is None else {"want": repr(want)}
    return Call("GET", stream_path(stream, "panel"), Answer.json, params, wait=60.0)


def what_if(stream: str, plan: Mapping[str, Any]) -> Call[Any]:
    """Another plan, whose replay may take minutes where kernels are compiled first."""
    body = json.dumps(plan).encode()
    return Call("POST", stream_path(stream, "what-if"), Answer.json, {}, body, wait=180.0)


def audit(after: int, limit: int, stream: str | None) -> Call[Any]:
    """Audit entries after a number."""
    about = {} if stream is None else {"stream": stream}
    return get("/v1/audit", after=str(after), limit=str(limit), **about)


def _assignment(token: str, verb: str) -> str:
    if not token:
        raise InputError("the token of the assignment is empty, expected one from `next`")
    return f"/v1/assignments/{quote(token, safe='')}/{verb}"


def _json(value: object, what: str = "the request") -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} cannot be sent as JSON: {error}") from error


def _read_any(answer: Answer) -> Any:
    return answer.json() if answer.body else None


def _read_work(answer: Answer) -> Work | Nothing:
    if answer.status == 204:
        return Nothing(answer.headers.get("venire-reason", "empty"))
    return Work.from_json(answer.json())


def _read_exits(answer: Answer) -> list[ItemExit]:
    return [ItemExit.from_json(json.loads(line)) for line in answer.body.splitlines() if line]


def _read_revisions(answer: Answer) -> list[ItemRevision]:
    return [ItemRevision.from_json(json.loads(line)) for line in answer.body.splitlines() if line]


def create_stream(name: str, settings: Mapping[str, Any]) -> Call[Any]:
    """Create a stream."""
    return send("/v1/streams", {"name": name, **settings})


def held(stream: str, labeler: str | None) -> Call[list[Work]]:
    """A labeler's open leases."""
    params = {} if labeler is None else {"labeler": labeler}
    return Call("POST", stream_path(stream, "held"), _read_held, params)


def create_key(name: str, role: str, labeler: str | None, days: float | None = None) -> Call[Any]:
    """Create a key."""
    end = {} if days is None else {"days": days}  # older servers do not know the field
    return send(
        "/v1/keys", {"name": name, "role": role, "labeler": labeler, **end}, idempotent=False
    )


def rotate_key(key: str, overlap_hours: float) -> Call[Any]:
    """Replace a key."""
    path = f"/v1/keys/{_quoted(key)}/rotate"
    return send(path, {"overlap_hours": overlap_hours}, idempotent=False)


def add_webhook(stream: str, url: str, format: str = "json") -> Call[Any]:
    """Add a webhook."""
    body = {"url": url, "format": format}
    return send(stream_path(stream, "webhooks"), body, idempotent=False)


def revoke_key(key: str) -> Call[Any]:
    """Revoke a key."""
    return send(f"/v1/keys/{_quoted(key)}", method="DELETE")


def ping_webhook(stream: str, webhook: str) -> Call[int]:
    """Send a test message."""
    path = stream_path(stream, "webhooks", webhook, "ping")
    return Call("POST", path, lambda answer: int(answer.json()["status"]), idempotent=False)


def rotate_webhook(stream: str, webhook: str, keep_seconds: float) -> Call[Any]:
    """Rotate the secret of a webhook."""
    path = stream_path(stream, "webhooks", webhook, "rotate")
    return send(path, {"keep_seconds": keep_seconds}, idempotent=False)


def redeliver(stream: str, webhook: str, exit_n: int | None, revision_n: int | None) -> Call[int]:
    """Retry dead letters."""
    path = stream_path(stream, "webhooks", webhook, "redeliver")
    which = {"exit_n": exit_n, "revision_n": revision_n}
    body = _json({name: n for name, n in which.items() if n is not None})
    return Call(
        "POST", path, lambda answer: int(answer.json()["redelivered"]), body=body, idempotent=False
    )


def _read_held(answer: Answer) -> list[Work]:
    return [Work.from_json(work) for work in answer.json()]
