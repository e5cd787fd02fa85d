"""What a client may ask of a server: each operation as a function that says what to send.

Method and path come from the entry of the same name in `venire.operations`. A function's signature
and docstring are those of the method of both clients.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from venire.client.types import ItemExit, ItemRevision, Nothing, ServerError, Work
from venire.errors import InputError
from venire.operations import OPERATIONS

__all__ = ["Answer", "Call", "LabelLike"]

T = TypeVar("T")

#: A label as (item, labeler, said), or as a mapping with these keys.
LabelLike: TypeAlias = tuple[str, str, str] | Mapping[str, str]

NDJSON = "application/x-ndjson"
#: The files that may be uploaded.
FILES = {"csv": "text/csv", "jsonl": NDJSON}


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


def _call(
    name: str,
    read: Callable[[Answer], Any] | None = None,
    *,
    sent: object = None,
    params: Mapping[str, Any] | None = None,
    wait: float = 0.0,
    **names: str,
) -> Call[Any]:
    """The request of an operation, with the names in its path; parameters may be None.

    >>> _call("exits", stream="posts", params={"after": 3, "limit": None}).params
    {'after': '3'}
    """
    entry = OPERATIONS[name]
    asked = {key: _text(value) for key, value in (params or {}).items() if value is not None}
    body = None if sent is None else _json(sent)
    return Call(
        entry.method,
        entry.path_of(**names),
        read or _read_any,
        asked,
        body,
        wait=wait,
        idempotent=entry.idempotent,
    )


def _text(value: Any) -> str:
    """A value as a query parameter."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None; older servers do not know the latest of them."""
    return {name: value for name, value in fields.items() if value is not None}


# streams


def create_stream(name: str, **settings: Any) -> Call[dict[str, Any]]:
    """Create a stream; idempotent for the same name and settings."""
    return _call("create_stream", sent={"name": name, **settings})


def stream(name: str) -> Call[dict[str, Any]]:
    """A stream as it is now."""
    return _call("stream", stream=name)


def streams() -> Call[list[dict[str, Any]]]:
    """All streams."""
    return _call("streams")


def change_stream(name: str, **changes: Any) -> Call[dict[str, Any]]:
    """Change some of the settings of a running stream."""
    return _call("change_stream", stream=name, sent=changes)


def settings_history(name: str) -> Call[list[dict[str, Any]]]:
    """Every version of the settings, oldest first: what, when and by whom."""
    return _call("settings_history", stream=name)


def pause(name: str) -> Call[dict[str, Any]]:
    """Stop handing out work."""
    return _call("pause", stream=name)


def resume(name: str) -> Call[dict[str, Any]]:
    """Resume a paused stream."""
    return _call("resume", stream=name)


def close_stream(name: str) -> Call[dict[str, Any]]:
    """Drain a stream: no new items, the open ones are finished."""
    return _call("close_stream", stream=name)


def archive_stream(name: str) -> Call[dict[str, Any]]:
    """Put a closed stream away: it can only be read, and is not listed."""
    return _call("archive_stream", stream=name)


def restore_stream(name: str) -> Call[dict[str, Any]]:
    """Bring an archived stream back, closed as it was."""
    return _call("restore_stream", stream=name)


def archived() -> Call[list[dict[str, Any]]]:
    """The streams that are archived."""
    return _call("archived")


def delete_stream(name: str) -> Call[dict[str, Any]]:
    """Delete a closed stream permanently, with everything that belongs to it."""
    return _call("delete_stream", stream=name)


# items


def add_items(stream: str, items: Iterable[Mapping[str, Any]]) -> Call[dict[str, Any]]:
    """Add items: each an `id`, optionally `payload`, `weight` and others."""
    if isinstance(items, Mapping):
        raise InputError("got one item, expected a list of them")
    lines = b"\n".join(_item(item) for item in items)
    return replace(_call("add_items", stream=stream), body=lines, content_type=NDJSON)


def upload(
    stream: str,
    content: bytes,
    kind: str = "csv",
    line: int | None = None,
    id: str | None = None,
    hash_ids: bool = False,
) -> Call[dict[str, Any]]:
    """Add the rows of a CSV file (or "jsonl") as items, but for those that are refused.

    `id` is the column of the ids; with `hash_ids` they are made of the content. `line` is where the
    first row stands in the file, if this is a piece of it.
    """
    if kind not in FILES:
        raise InputError(f"got the kind {kind!r}, expected one of {', '.join(FILES)}")
    how = {"line": line, "id": id, "hash_ids": hash_ids or None}
    call = _call("upload", stream=stream, params=how)
    return replace(call, body=content, content_type=FILES[kind])


def item(stream: str, item: str) -> Call[dict[str, Any]]:
    """An item with its labels, posterior and verdict."""
    return _call("item", stream=stream, item=item)


def find_items(
    stream: str, cursor: str | None = None, limit: int = 50, **search: Any
) -> Call[dict[str, Any]]:
    """A page of items, the latest arrival first; `next` is the cursor for more.

    `search` is any of status, verdict, reason, min_confidence, max_confidence, labeler, text, since
    and until.
    """
    return _call("find_items", stream=stream, params={"cursor": cursor, "limit": limit, **search})


def explain(stream: str, item: str) -> Call[dict[str, Any]]:
    """Why an item was assigned to whom, and why it left."""
    return _call("explain", stream=stream, item=item)


def withdraw(stream: str, item: str) -> Call[dict[str, Any]]:
    """Withdraw an item without a verdict."""
    return _call("withdraw", stream=stream, item=item)


def erase_payload(stream: str, item: str) -> Call[dict[str, Any]]:
    """Erase the payload of an item permanently; an open item is withdrawn."""
    return _call("erase_payload", stream=stream, item=item)


# work


def next(
    stream: str, labeler: str | None = None, wait: float = 20.0, ahead: int = 0
) -> Call[Work | Nothing]:
    """The next item for a labeler, waiting up to `wait` seconds for it.

    The labeler may hold `ahead` items beyond its capacity, the stream's `ahead` at most.
    """
    params = {"wait": f"{wait:g}", "ahead": ahead or None, "labeler": labeler}
    return _call("next", _read_work, stream=stream, params=params, wait=wait)


def held(stream: str, labeler: str | None = None) -> Call[list[Work]]:
    """The labeler's open leases, with new tokens."""
    return _call("held", _read_held, stream=stream, params={"labeler": labeler})


def label(token: str, said: str) -> Call[dict[str, Any]]:
    """Label an assigned item."""
    return _call("label", token=_checked(token), sent={"said": said})


def heartbeat(token: str) -> Call[None]:
    """Renew the lease of an assignment."""
    return _call("heartbeat", _read_nothing, token=_checked(token))


def release(token: str, bar: bool = False) -> Call[None]:
    """Release an assignment; with `bar`, this labeler does not get the item again."""
    return _call("release", _read_nothing, token=_checked(token), sent={"bar": bar})


def abstain(token: str) -> Call[None]:
    """Say that the labeler is not sure: the item goes to others, and that is counted."""
    return _call("abstain", _read_nothing, token=_checked(token))


def note(token: str, kind: str, text: str = "") -> Call[None]:
    """Comment on an assigned item (`kind` is "comment") or flag it ("flag")."""
    sent = {"kind": kind, "text": text}
    return _call("note", _read_nothing, token=_checked(token), sent=sent)


def notes(
    stream: str, after: int = 0, limit: int = 1000, item: str | None = None
) -> Call[list[dict[str, Any]]]:
    """Comments, flags and abstentions of labelers after a cursor, oldest first."""
    return _call("notes", stream=stream, params={"after": after, "limit": limit, "item": item})


def progress(stream: str, labeler: str | None = None, since: float = 0.0) -> Call[dict[str, Any]]:
    """How many labels a labeler has given since a time, and in all."""
    return _call("progress", stream=stream, params={"since": since, "labeler": labeler})


def practice(stream: str) -> Call[list[dict[str, Any]]]:
    """The items to practise with, without their answers."""
    return _call("practice", stream=stream)


def check_practice(stream: str, n: int, said: str) -> Call[dict[str, Any]]:
    """Check an answer to a practice item; nothing of it is stored."""
    return _call("check_practice", stream=stream, n=str(n), sent={"said": said})


def add_labels(
    stream: str, labels: Iterable[LabelLike], leased: bool = False
) -> Call[dict[str, Any]]:
    """Add labels in bulk, as (item, labeler, said) or mappings with these keys.

    `leased`: those of items that the labeler was never assigned are refused, unless the stream has
    `unasked_labels`.
    """
    rows, params = [_label(row) for row in labels], {"leased": leased or None}
    return _call("add_labels", stream=stream, params=params, sent=rows)


# gold and reviews


def add_gold(
    stream: str, gold: Mapping[str, str] | Iterable[tuple[str, str]], correct: bool = False
) -> Call[dict[str, Any]]:
    """Add gold, {item: label}: with an admin key, or that of a trusted labeler.

    Other gold for the same item is refused, or with `correct` takes its place.
    """
    pairs = gold.items() if isinstance(gold, Mapping) else gold
    rows = [{"item": item, "label": label} for item, label in pairs]
    return _call("add_gold", stream=stream, params={"correct": correct or None}, sent=rows)


def gold(stream: str, after: str | None = None, limit: int = 1000) -> Call[list[dict[str, Any]]]:
    """All gold, by item: who said it, when, how it came; `after` is the last item seen."""
    return _call("gold", _read_lines, stream=stream, params={"after": after, "limit": limit})


def audits(stream: str, level: float = 0.95) -> Call[dict[str, Any]]:
    """The accuracy audits: bounds on the rate of errors, and the verdicts that are due."""
    return _call("audits", stream=stream, params={"level": level})


def reviews(
    stream: str,
    kind: str | None = None,
    cursor: str | None = None,
    limit: int = 20,
    order: str | None = None,
) -> Call[dict[str, Any]]:
    """Verdicts that wait for a reviewer: audits that are due, then the least confident.

    With the order "telling", those whose truth tells most about who is right.
    """
    asked = {"kind": kind, "cursor": cursor, "limit": limit, "order": order}
    return _call("reviews", stream=stream, params=asked)


def review(
    stream: str, item: str, label: str, note: str | None = None, correct: bool = False
) -> Call[dict[str, Any]]:
    """Confirm or override the verdict of an item: the label becomes gold.

    What was judged otherwise before is refused, unless this is to `correct` it.
    """
    sent = _given(item=item, label=label, note=note or None, correct=correct or None)
    return _call("review", stream=stream, sent=sent)


def send_back(
    stream: str, item: str, min_confidence: float | None = None, note: str | None = None
) -> Call[dict[str, Any]]:
    """Send an item that has left back for more labels: it comes again as another."""
    sent = _given(item=item, min_confidence=min_confidence, note=note)
    return _call("send_back", stream=stream, sent=sent)


# what came out


def exits(
    stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
) -> Call[list[ItemExit]]:
    """The exits after a cursor, oldest first."""
    params = {"after": after, "wait": f"{wait:g}", "limit": limit}
    return _call("exits", _read_exits, stream=stream, params=params, wait=wait)


def revisions(
    stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
) -> Call[list[ItemRevision]]:
    """Verdicts that changed after their item had left, oldest first."""
    params = {"after": after, "wait": f"{wait:g}", "limit": limit}
    return _call("revisions", _read_revisions, stream=stream, params=params, wait=wait)


def export(
    stream: str, what: str = "verdicts", format: str = "csv", probabilities: bool = False
) -> Call[bytes]:
    """Labels, verdicts, revisions, gold or notes as a file: "csv", "jsonl" or "parquet"."""
    params = {"what": what, "format": format, "probabilities": probabilities or None}
    return _call("export", lambda answer: answer.body, stream=stream, params=params, wait=600.0)


def insights(stream: str) -> Call[dict[str, Any]]:
    """The statistics of a stream."""
    return _call("insights", stream=stream)


def trends(stream: str) -> Call[dict[str, Any]]:
    """What the latest exits say: verdicts against votes, estimated accuracy, trends."""
    return _call("trends", stream=stream)


def alarms(stream: str, after: int | None = None, limit: int = 100) -> Call[dict[str, Any]]:
    """The alarms that are on, and what was raised and cleared after a number."""
    return _call("alarms", stream=stream, params={"after": after, "limit": limit})


def rates(stream: str, level: float = 0.95) -> Call[dict[str, Any]]:
    """Share, precision and recall of each class, with intervals, by audits."""
    return _call("rates", stream=stream, params={"level": level})


def lessons(stream: str) -> Call[dict[str, Any]]:
    """How the student of a stream learned, version by version."""
    return _call("lessons", stream=stream)


def what_if(stream: str, **plan: Any) -> Call[dict[str, Any]]:
    """What another `policy`, a panel `without` somebody or another budget would have bought."""
    return _call("what_if", stream=stream, sent=plan, wait=180.0)  # kernels may be compiled first


# labelers


def labelers(stream: str) -> Call[list[dict[str, Any]]]:
    """The labelers with what was learned about them."""
    return _call("labelers", stream=stream)


def add_labeler(stream: str, id: str, **more: Any) -> Call[dict[str, Any]]:
    """Put a labeler on the panel: `price`, `capacity`, ..., as in the panel of the stream."""
    return _call("add_labeler", stream=stream, sent={"id": id, **more})


def retire_labeler(stream: str, labeler: str) -> Call[dict[str, Any]]:
    """Give a labeler no more work; its labels stay."""
    return _call("retire_labeler", stream=stream, sent={"labeler": labeler})


def restore_labeler(stream: str, labeler: str) -> Call[dict[str, Any]]:
    """Give a retired labeler work again."""
    return _call("restore_labeler", stream=stream, sent={"labeler": labeler})


def agreement(stream: str) -> Call[dict[str, Any]]:
    """How the labelers agree with gold, and with each other."""
    return _call("agreement", stream=stream)


def panel(stream: str, want: float | None = None) -> Call[dict[str, Any]]:
    """What each labeler brings and costs, and the cheapest panel of the wanted accuracy."""
    return _call("panel", stream=stream, params={"want": want}, wait=60.0)


def confusion(stream: str, labeler: str) -> Call[dict[str, Any]]:
    """How often a labeler says each class of items of each true class, as learned."""
    return _call("confusion", stream=stream, params={"labeler": labeler})


def invitations(stream: str) -> Call[list[dict[str, Any]]]:
    """The invitations to label a stream, without their links."""
    return _call("invitations", stream=stream)


def invite(
    stream: str, labeler: str | None = None, days: float = 14.0, once: bool = False
) -> Call[dict[str, Any]]:
    """Invite somebody to label, by a link that signs in without a key; it is shown only once."""
    sent = _given(labeler=labeler, days=days, once=once)
    return _call("invite", stream=stream, sent=sent)


def revoke_invitation(stream: str, invitation: str) -> Call[dict[str, Any]]:
    """Revoke an invitation, by its id, and the key of whoever accepted it."""
    return _call("revoke_invitation", stream=stream, invitation=invitation)


# webhooks


def webhooks(stream: str) -> Call[list[dict[str, Any]]]:
    """The webhooks of a stream."""
    return _call("webhooks", stream=stream)


def add_webhook(stream: str, url: str, format: str = "json") -> Call[dict[str, Any]]:
    """Send exits and revisions to an address; the `secret` is shown only once.

    With the format `text` it gets `{"text": ...}`, of alarms and revisions only.
    """
    return _call("add_webhook", stream=stream, sent={"url": url, "format": format})


def remove_webhook(stream: str, webhook: str) -> Call[None]:
    """Remove a webhook."""
    return _call("remove_webhook", _read_nothing, stream=stream, webhook=webhook)


def ping_webhook(stream: str, webhook: str) -> Call[int]:
    """Send a test message now; the HTTP status of the answer."""
    return _call(
        "ping_webhook", lambda got: int(got.json()["status"]), stream=stream, webhook=webhook
    )


def rotate_webhook(
    stream: str, webhook: str, keep_seconds: float = 86_400.0
) -> Call[dict[str, Any]]:
    """Rotate the secret of a webhook; the old one signs as well for `keep_seconds`."""
    sent = {"keep_seconds": keep_seconds}
    return _call("rotate_webhook", stream=stream, webhook=webhook, sent=sent)


def dead_letters(stream: str, webhook: str) -> Call[list[dict[str, Any]]]:
    """The dead-lettered messages, and why they failed."""
    return _call("dead_letters", stream=stream, webhook=webhook)


def redeliver(
    stream: str, webhook: str, exit_n: int | None = None, revision_n: int | None = None
) -> Call[int]:
    """Retry dead letters: of an exit, of a revision, or all; how many."""
    sent = _given(exit_n=exit_n, revision_n=revision_n)

    def read(answer: Answer) -> int:
        return int(answer.json()["redelivered"])

    return _call("redeliver", read, stream=stream, webhook=webhook, sent=sent)


# keys and the audit trail


def me() -> Call[dict[str, Any]]:
    """The owner and the role of the key."""
    return _call("me")


def keys() -> Call[list[dict[str, Any]]]:
    """All keys, including revoked ones, with their last use; without tokens."""
    return _call("keys")


def create_key(
    name: str, role: str, labeler: str | None = None, days: float | None = None
) -> Call[dict[str, Any]]:
    """Create a key that expires after `days`, or never; its `token` is shown only once."""
    sent = {"name": name, "role": role, "labeler": labeler, **_given(days=days)}
    return _call("create_key", sent=sent)


def rotate_key(key: str, overlap_hours: float = 24.0) -> Call[dict[str, Any]]:
    """Replace a key, by its id; the old one stays valid for `overlap_hours`."""
    return _call("rotate_key", key=key, sent={"overlap_hours": overlap_hours})


def revoke_key(key: str) -> Call[dict[str, Any]]:
    """Revoke a key, by its id."""
    return _call("revoke_key", key=key)


def audit(
    after: int = 0, limit: int = 1000, stream: str | None = None
) -> Call[list[dict[str, Any]]]:
    """Audit entries after a number: who did what, with which key; of a stream, or all."""
    return _call("audit", params={"after": after, "limit": limit, "stream": stream})


# what is sent and read


def _item(item: Mapping[str, Any]) -> bytes:
    if not isinstance(item, Mapping):
        raise InputError(f"got the item {item!r}, expected a mapping with an id: {{'id': ...}}")
    return _json(dict(item), f"item {item.get('id')!r}")


def _label(row: LabelLike) -> dict[str, str]:
    if isinstance(row, Mapping):
        return dict(row)
    try:
        item, labeler, said = row
    except (TypeError, ValueError):
        raise InputError(f"got the label {row!r}, expected (item, labeler, said)") from None
    return {"item": item, "labeler": labeler, "said": said}


def _checked(token: str) -> str:
    if not token:
        raise InputError("the token of the assignment is empty, expected one from `next`")
    return token


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


def _read_held(answer: Answer) -> list[Work]:
    return [Work.from_json(work) for work in answer.json()]


def _read_nothing(answer: Answer) -> None:
    """What is answered says nothing that the caller does not know."""


def _read_lines(answer: Answer) -> list[Any]:
    return [json.loads(line) for line in answer.body.splitlines() if line]
