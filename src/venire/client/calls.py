"""What a client may ask of a server: each operation as a method of both clients, written once.

A method says what to send; its path comes from the entry of the same name in `venire.operations`.
In `Client` it sends that and returns what the answer says, in `AsyncClient` it is a coroutine that
does, and in `Calls` alone nothing is sent:

>>> Calls().pause("posts").path
'/v1/streams/posts/pause'
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from venire.client.wire import (
    Answer,
    Call,
    ItemExit,
    ItemRevision,
    LabelLike,
    Nothing,
    Work,
    call,
    checked_token,
    given,
    item_line,
    label_row,
    read_exits,
    read_held,
    read_lines,
    read_nothing,
    read_revisions,
    read_work,
)
from venire.errors import InputError

NDJSON = "application/x-ndjson"
#: The files that may be uploaded.
FILES = {"csv": "text/csv", "jsonl": NDJSON}

P = ParamSpec("P")
T = TypeVar("T")


class Blocking:
    """A client that waits for answers."""

    def _do(self, call: Call[T]) -> T:
        raise NotImplementedError


class Awaiting:
    """A client whose methods are coroutines."""

    async def _do(self, call: Call[T]) -> T:
        raise NotImplementedError


class operation(Generic[P, T]):  # noqa: N801  a decorator
    """A method of `Calls` as it is in each client, for type checkers and `inspect` too."""

    def __init__(self, says: Callable[Concatenate[Any, P], Call[T]]) -> None:
        """`says` makes the call of what it is given."""

        def waits(self: Any, /, *args: P.args, **named: P.kwargs) -> T:
            sent: T = self._do(says(self, *args, **named))
            return sent

        async def awaits(self: Any, /, *args: P.args, **named: P.kwargs) -> T:
            sent: T = await self._do(says(self, *args, **named))
            return sent

        signature = inspect.signature(says)
        reply = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
        methods: tuple[Any, ...] = waits, awaits
        for method in methods:
            functools.update_wrapper(method, says)
            method.__signature__ = signature.replace(return_annotation=reply)
        self._waits, self._awaits, self._says = waits, awaits, says

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: Calls, owner: type) -> Callable[P, Call[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if issubclass(owner, Blocking):
            return self._waits.__get__(client, owner)
        method: Any = self._awaits if issubclass(owner, Awaiting) else self._says
        return method.__get__(client, owner)


class Calls:
    """The operations, in the order of `venire.operations`."""

    # streams

    @operation
    def create_stream(self, /, name: str, **settings: Any) -> Call[dict[str, Any]]:
        """Create a stream; idempotent for the same name and settings."""
        return call("create_stream", sent={"name": name, **settings})

    @operation
    def stream(self, name: str) -> Call[dict[str, Any]]:
        """A stream as it is now."""
        return call("stream", stream=name)

    @operation
    def streams(self) -> Call[list[dict[str, Any]]]:
        return call("streams")

    @operation
    def change_stream(self, /, name: str, **changes: Any) -> Call[dict[str, Any]]:
        """Change some of the settings of a running stream."""
        return call("change_stream", stream=name, sent=changes)

    @operation
    def settings_history(self, name: str) -> Call[list[dict[str, Any]]]:
        """Every version of the settings, oldest first: what, when and by whom."""
        return call("settings_history", stream=name)

    @operation
    def pause(self, name: str) -> Call[dict[str, Any]]:
        """Stop handing out work."""
        return call("pause", stream=name)

    @operation
    def resume(self, name: str) -> Call[dict[str, Any]]:
        """Resume a paused stream."""
        return call("resume", stream=name)

    @operation
    def close_stream(self, name: str) -> Call[dict[str, Any]]:
        """Drain a stream: no new items, the open ones are finished."""
        return call("close_stream", stream=name)

    @operation
    def archive_stream(self, name: str) -> Call[dict[str, Any]]:
        """Put a closed stream away: it can only be read, and is not listed."""
        return call("archive_stream", stream=name)

    @operation
    def restore_stream(self, name: str) -> Call[dict[str, Any]]:
        """Bring an archived stream back, closed as it was."""
        return call("restore_stream", stream=name)

    @operation
    def archived(self) -> Call[list[dict[str, Any]]]:
        """The streams that are archived."""
        return call("archived")

    @operation
    def delete_stream(self, name: str) -> Call[dict[str, Any]]:
        """Delete a closed stream permanently, with everything that belongs to it."""
        return call("delete_stream", stream=name)

    # items

    @operation
    def add_items(self, stream: str, items: Iterable[Mapping[str, Any]]) -> Call[dict[str, Any]]:
        """Add items: each an `id`, optionally `payload`, `weight` and others."""
        if isinstance(items, Mapping):
            raise InputError("got one item, expected a list of them")
        lines = b"\n".join(item_line(item) for item in items)
        return replace(call("add_items", stream=stream), body=lines, content_type=NDJSON)

    @operation
    def upload(
        self,
        stream: str,
        content: bytes,
        kind: str = "csv",
        line: int | None = None,
        id: str | None = None,
        hash_ids: bool = False,
    ) -> Call[dict[str, Any]]:
        """Add the rows of a CSV file (or "jsonl") as items, but for those that are refused.

        `id` is the column of the ids; with `hash_ids` they are made from the content. `line` is
        where the first row stands in the file, if this is a piece of it.
        """
        if kind not in FILES:
            raise InputError(f"got the kind {kind!r}, expected one of {', '.join(FILES)}")
        how = {"line": line, "id": id, "hash_ids": hash_ids or None}
        made = call("upload", stream=stream, params=how)
        return replace(made, body=content, content_type=FILES[kind])

    @operation
    def item(self, stream: str, item: str) -> Call[dict[str, Any]]:
        """An item with its labels, posterior and verdict."""
        return call("item", stream=stream, item=item)

    @operation
    def find_items(
        self, /, stream: str, cursor: str | None = None, limit: int = 50, **search: Any
    ) -> Call[dict[str, Any]]:
        """A page of items, the latest arrival first; `next` is the cursor for more.

        `search` is any of status, verdict, reason, min_confidence, max_confidence, labeler, text,
        since and until.
        """
        return call(
            "find_items", stream=stream, params={"cursor": cursor, "limit": limit, **search}
        )

    @operation
    def explain(self, stream: str, item: str) -> Call[dict[str, Any]]:
        """Why an item was assigned to whom, and why it left."""
        return call("explain", stream=stream, item=item)

    @operation
    def withdraw(self, stream: str, item: str) -> Call[dict[str, Any]]:
        """Withdraw an item without a verdict."""
        return call("withdraw", stream=stream, item=item)

    @operation
    def erase_payload(self, stream: str, item: str) -> Call[dict[str, Any]]:
        """Erase the payload of an item permanently; an open item is withdrawn."""
        return call("erase_payload", stream=stream, item=item)

    # work

    @operation
    def next(
        self, stream: str, labeler: str | None = None, wait: float = 20.0, ahead: int = 0
    ) -> Call[Work | Nothing]:
        """The next item for a labeler, waiting up to `wait` seconds for it.

        The labeler may hold `ahead` items beyond its capacity, the stream's `ahead` at most.
        """
        params = {"wait": f"{wait:g}", "ahead": ahead or None, "labeler": labeler}
        return call("next", read_work, stream=stream, params=params, wait=wait)

    @operation
    def held(self, stream: str, labeler: str | None = None) -> Call[list[Work]]:
        """The labeler's open leases, with new tokens."""
        return call("held", read_held, stream=stream, params={"labeler": labeler})

    @operation
    def label(
        self, token: str, said: str, confidence: float | None = None, rationale: str | None = None
    ) -> Call[dict[str, Any]]:
        """Label an assigned item; `confidence`, from 0 to 1, is how sure the labeler is.

        `rationale` is why it says so, in at most 2,000 characters.
        """
        sent = given(said=said, confidence=confidence, rationale=rationale)
        return call("label", token=checked_token(token), sent=sent)

    @operation
    def heartbeat(self, token: str) -> Call[None]:
        """Renew the lease of an assignment."""
        return call("heartbeat", read_nothing, token=checked_token(token))

    @operation
    def release(self, token: str, bar: bool = False) -> Call[None]:
        """Release an assignment; with `bar`, this labeler does not get the item again."""
        return call("release", read_nothing, token=checked_token(token), sent={"bar": bar})

    @operation
    def abstain(self, token: str) -> Call[None]:
        """Say that the labeler is not sure: the item goes to others, and that is counted."""
        return call("abstain", read_nothing, token=checked_token(token))

    @operation
    def note(self, token: str, kind: str, text: str = "") -> Call[None]:
        """Comment on an assigned item (`kind` is "comment") or flag it ("flag")."""
        sent = {"kind": kind, "text": text}
        return call("note", read_nothing, token=checked_token(token), sent=sent)

    @operation
    def notes(
        self, stream: str, after: int = 0, limit: int = 1000, item: str | None = None
    ) -> Call[list[dict[str, Any]]]:
        """Comments, flags and abstentions of labelers after a cursor, oldest first."""
        return call("notes", stream=stream, params={"after": after, "limit": limit, "item": item})

    @operation
    def progress(
        self, stream: str, labeler: str | None = None, since: float = 0.0
    ) -> Call[dict[str, Any]]:
        """How many labels a labeler has given since a time, and in all."""
        return call("progress", stream=stream, params={"since": since, "labeler": labeler})

    @operation
    def practice(self, stream: str) -> Call[list[dict[str, Any]]]:
        """The items to practise with, without their answers."""
        return call("practice", stream=stream)

    @operation
    def check_practice(self, stream: str, n: int, said: str) -> Call[dict[str, Any]]:
        """Check an answer to a practice item; nothing of it is stored."""
        return call("check_practice", stream=stream, n=str(n), sent={"said": said})

    @operation
    def add_labels(
        self, stream: str, labels: Iterable[LabelLike], leased: bool = False
    ) -> Call[dict[str, Any]]:
        """Add labels in bulk, as (item, labeler, said, confidence) or mappings with these keys.

        The confidence may be left out; with None as what was said, the labeler is not sure. A
        mapping may also have a `rationale`: why the labeler says so, in at most 2,000 characters.
        `leased`: those of items that the labeler was never assigned are refused, unless the stream
        has `unasked_labels`.
        """
        rows, params = [label_row(row) for row in labels], {"leased": leased or None}
        return call("add_labels", stream=stream, params=params, sent=rows)

    # gold and reviews

    @operation
    def add_gold(
        self,
        stream: str,
        gold: Mapping[str, str] | Iterable[tuple[str, str]],
        correct: bool = False,
    ) -> Call[dict[str, Any]]:
        """Add gold, {item: label}: with an admin key, or that of a trusted labeler.

        Other gold for the same item is refused, or with `correct` takes its place.
        """
        pairs = gold.items() if isinstance(gold, Mapping) else gold
        rows = [{"item": item, "label": label} for item, label in pairs]
        return call("add_gold", stream=stream, params={"correct": correct or None}, sent=rows)

    @operation
    def gold(
        self, stream: str, after: str | None = None, limit: int = 1000
    ) -> Call[list[dict[str, Any]]]:
        """All gold, by item: who said it, when, how it came; `after` is the last item seen."""
        return call("gold", read_lines, stream=stream, params={"after": after, "limit": limit})

    @operation
    def audits(self, stream: str, level: float = 0.95) -> Call[dict[str, Any]]:
        """The accuracy audits: bounds on the rate of errors, and the verdicts that are due."""
        return call("audits", stream=stream, params={"level": level})

    @operation
    def reviews(
        self,
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
        return call("reviews", stream=stream, params=asked)

    @operation
    def review(
        self, stream: str, item: str, label: str, note: str | None = None, correct: bool = False
    ) -> Call[dict[str, Any]]:
        """Confirm or override the verdict of an item: the label becomes gold.

        What was judged otherwise before is refused, unless this is to `correct` it.
        """
        sent = given(item=item, label=label, note=note or None, correct=correct or None)
        return call("review", stream=stream, sent=sent)

    @operation
    def send_back(
        self, stream: str, item: str, min_confidence: float | None = None, note: str | None = None
    ) -> Call[dict[str, Any]]:
        """Send an item that has left back for more labels: it comes again as another."""
        sent = given(item=item, min_confidence=min_confidence, note=note)
        return call("send_back", stream=stream, sent=sent)

    # what came out

    @operation
    def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> Call[list[ItemExit]]:
        """The exits after a cursor, oldest first."""
        params = {"after": after, "wait": f"{wait:g}", "limit": limit}
        return call("exits", read_exits, stream=stream, params=params, wait=wait)

    @operation
    def revisions(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> Call[list[ItemRevision]]:
        """Verdicts that changed after their item had left, oldest first."""
        params = {"after": after, "wait": f"{wait:g}", "limit": limit}
        return call("revisions", read_revisions, stream=stream, params=params, wait=wait)

    @operation
    def export(
        self, stream: str, what: str = "verdicts", format: str = "csv", probabilities: bool = False
    ) -> Call[bytes]:
        """Labels, verdicts, revisions, gold or notes as a file: "csv", "jsonl" or "parquet"."""
        params = {"what": what, "format": format, "probabilities": probabilities or None}
        return call("export", lambda answer: answer.body, stream=stream, params=params, wait=600.0)

    @operation
    def insights(self, stream: str) -> Call[dict[str, Any]]:
        """The statistics of a stream."""
        return call("insights", stream=stream)

    @operation
    def trends(self, stream: str) -> Call[dict[str, Any]]:
        """What the latest exits say: verdicts against votes, estimated accuracy, trends."""
        return call("trends", stream=stream)

    @operation
    def alarms(
        self, stream: str, after: int | None = None, limit: int = 100
    ) -> Call[dict[str, Any]]:
        """The alarms that are on, and what was raised and cleared after a number."""
        return call("alarms", stream=stream, params={"after": after, "limit": limit})

    @operation
    def rates(self, stream: str, level: float = 0.95) -> Call[dict[str, Any]]:
        """Share, precision and recall of each class, with intervals, by audits."""
        return call("rates", stream=stream, params={"level": level})

    @operation
    def lessons(self, stream: str) -> Call[dict[str, Any]]:
        """How the student of a stream learned, version by version."""
        return call("lessons", stream=stream)

    @operation
    def what_if(self, /, stream: str, **plan: Any) -> Call[dict[str, Any]]:
        """What another `policy`, a panel `without` somebody or another budget would have bought."""
        return call(
            "what_if", stream=stream, sent=plan, wait=180.0
        )  # kernels may be compiled first

    # labelers

    @operation
    def labelers(self, stream: str) -> Call[list[dict[str, Any]]]:
        """The labelers with what was learned about them."""
        return call("labelers", stream=stream)

    @operation
    def add_labeler(self, /, stream: str, id: str, **more: Any) -> Call[dict[str, Any]]:
        """Put a labeler on the panel: `price`, `capacity`, ..., as in the panel of the stream."""
        return call("add_labeler", stream=stream, sent={"id": id, **more})

    @operation
    def retire_labeler(self, stream: str, labeler: str) -> Call[dict[str, Any]]:
        """Give a labeler no more work; its labels stay."""
        return call("retire_labeler", stream=stream, sent={"labeler": labeler})

    @operation
    def restore_labeler(self, stream: str, labeler: str) -> Call[dict[str, Any]]:
        """Give a retired labeler work again."""
        return call("restore_labeler", stream=stream, sent={"labeler": labeler})

    @operation
    def agreement(self, stream: str) -> Call[dict[str, Any]]:
        """How the labelers agree with gold, and with each other."""
        return call("agreement", stream=stream)

    @operation
    def panel(self, stream: str, want: float | None = None) -> Call[dict[str, Any]]:
        """What each labeler brings and costs, and the cheapest panel of the wanted accuracy."""
        return call("panel", stream=stream, params={"want": want}, wait=60.0)

    @operation
    def confusion(self, stream: str, labeler: str) -> Call[dict[str, Any]]:
        """How often a labeler says each class of items of each true class, as learned."""
        return call("confusion", stream=stream, params={"labeler": labeler})

    @operation
    def invitations(self, stream: str) -> Call[list[dict[str, Any]]]:
        """The invitations to label a stream, without their links."""
        return call("invitations", stream=stream)

    @operation
    def invite(
        self, stream: str, labeler: str | None = None, days: float = 14.0, once: bool = False
    ) -> Call[dict[str, Any]]:
        """Invite somebody to label: the link signs in without a key and is shown only once."""
        sent = given(labeler=labeler, days=days, once=once)
        return call("invite", stream=stream, sent=sent)

    @operation
    def revoke_invitation(self, stream: str, invitation: str) -> Call[dict[str, Any]]:
        """Revoke an invitation, by its id, and the key of whoever accepted it."""
        return call("revoke_invitation", stream=stream, invitation=invitation)

    # webhooks

    @operation
    def webhooks(self, stream: str) -> Call[list[dict[str, Any]]]:
        return call("webhooks", stream=stream)

    @operation
    def add_webhook(self, stream: str, url: str, format: str = "json") -> Call[dict[str, Any]]:
        """Send exits and revisions to an address; the `secret` is shown only once.

        With the format `text` it gets `{"text": ...}`, of alarms and revisions only.
        """
        return call("add_webhook", stream=stream, sent={"url": url, "format": format})

    @operation
    def remove_webhook(self, stream: str, webhook: str) -> Call[None]:
        return call("remove_webhook", read_nothing, stream=stream, webhook=webhook)

    @operation
    def ping_webhook(self, stream: str, webhook: str) -> Call[int]:
        """Send a test message now; the HTTP status of the answer."""
        return call(
            "ping_webhook", lambda got: int(got.json()["status"]), stream=stream, webhook=webhook
        )

    @operation
    def rotate_webhook(
        self, stream: str, webhook: str, keep_seconds: float = 86_400.0
    ) -> Call[dict[str, Any]]:
        """Rotate the secret of a webhook; the old one signs as well for `keep_seconds`."""
        sent = {"keep_seconds": keep_seconds}
        return call("rotate_webhook", stream=stream, webhook=webhook, sent=sent)

    @operation
    def dead_letters(self, stream: str, webhook: str) -> Call[list[dict[str, Any]]]:
        """The dead-lettered messages, and why they failed."""
        return call("dead_letters", stream=stream, webhook=webhook)

    @operation
    def redeliver(
        self, stream: str, webhook: str, exit_n: int | None = None, revision_n: int | None = None
    ) -> Call[int]:
        """Retry dead letters: of an exit, of a revision, or all; how many."""
        sent = given(exit_n=exit_n, revision_n=revision_n)

        def read(answer: Answer) -> int:
            return int(answer.json()["redelivered"])

        return call("redeliver", read, stream=stream, webhook=webhook, sent=sent)

    # keys and the audit trail

    @operation
    def me(self) -> Call[dict[str, Any]]:
        """The owner and the role of the key."""
        return call("me")

    @operation
    def keys(self) -> Call[list[dict[str, Any]]]:
        """All keys, including revoked ones, with their last use; without tokens."""
        return call("keys")

    @operation
    def create_key(
        self, name: str, role: str, labeler: str | None = None, days: float | None = None
    ) -> Call[dict[str, Any]]:
        """Create a key that expires after `days`, or never; its `token` is shown only once."""
        sent = {"name": name, "role": role, "labeler": labeler, **given(days=days)}
        return call("create_key", sent=sent)

    @operation
    def rotate_key(self, key: str, overlap_hours: float = 24.0) -> Call[dict[str, Any]]:
        """Replace a key, by its id; the old one stays valid for `overlap_hours`."""
        return call("rotate_key", key=key, sent={"overlap_hours": overlap_hours})

    @operation
    def revoke_key(self, key: str) -> Call[dict[str, Any]]:
        """Revoke a key, by its id."""
        return call("revoke_key", key=key)

    @operation
    def audit(
        self, after: int = 0, limit: int = 1000, stream: str | None = None
    ) -> Call[list[dict[str, Any]]]:
        """Audit entries after a number: who did what, with which key; of a stream, or all."""
        return call("audit", params={"after": after, "limit": limit, "stream": stream})
