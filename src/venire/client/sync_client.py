# Generated from AsyncClient by scripts/generate; do not edit.
"""`Client`: the HTTP API of a server, one method per request."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from venire.client import calls
from venire.client.calls import Answer, Call, LabelLike, stream_path
from venire.client.transport import Settings, http_library
from venire.client.types import ItemExit, ItemRevision, Nothing, Work

__all__ = ["Client"]

T = TypeVar("T")


class Client:
    """A client of a server.

    Requests that fail because the server is busy, stopping or unreachable are retried for up to
    `retry_seconds`; they are idempotent, so a retry takes effect once. Of several servers on one
    store, a standby or those that share its streams, give all addresses: what one does not answer
    goes to the next, and requests about a stream go to its owner.

        with venire.Client("http://127.0.0.1:8400", key) as client:
            client.create_stream("posts", classes=["spam", "ok"])
            client.add_items("posts", [{"id": "post-1", "payload": "Buy now!"}])
            work = client.next("posts", "ann")
            if work:
                client.label(work.token, "spam")
            for exit in client.follow_exits("posts"):
                print(exit.item, exit.verdict)

    >>> Client("127.0.0.1:8400", "vk_...")
    Traceback (most recent call last):
    venire.errors.InputError: got the address '127.0.0.1:8400', expected http://... or https://...
    """

    def __init__(
        self,
        url: str | Iterable[str],
        key: str,
        *,
        timeout: float = 30.0,
        retry_seconds: float = 60.0,
    ) -> None:
        """`url` is an address, several with commas between them, or a list of addresses.

        `timeout` is for one attempt, in addition to the time of a long poll.
        """
        self._settings = Settings(url, key, timeout, retry_seconds)
        self._library = http_library()
        self._http = self._library.Client(headers=self._settings.headers, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # streams

    def create_stream(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create a stream; idempotent for the same name and settings."""
        return self._do(calls.create_stream(name, settings))

    def stream(self, name: str) -> dict[str, Any]:
        """A stream as it is now."""
        return self._do(calls.get(stream_path(name)))

    def streams(self) -> list[dict[str, Any]]:
        """All streams."""
        return self._do(calls.get("/v1/streams"))

    def change_stream(self, name: str, **changes: Any) -> dict[str, Any]:
        """Change some of the settings of a running stream."""
        return self._do(calls.send(stream_path(name), changes, "PATCH"))

    def settings_history(self, name: str) -> list[dict[str, Any]]:
        """Every version of the settings, oldest first: what, when and by whom."""
        return self._do(calls.get(stream_path(name, "settings")))

    def pause(self, name: str) -> dict[str, Any]:
        """Stop handing out work."""
        return self._do(calls.send(stream_path(name, "pause")))

    def resume(self, name: str) -> dict[str, Any]:
        """Resume a paused stream."""
        return self._do(calls.send(stream_path(name, "resume")))

    def close_stream(self, name: str) -> dict[str, Any]:
        """Drain a stream: no new items, the open ones are finished."""
        return self._do(calls.send(stream_path(name, "close")))

    def archive_stream(self, name: str) -> dict[str, Any]:
        """Put a closed stream away: it can only be read, and is not listed."""
        return self._do(calls.send(stream_path(name, "archive")))

    def restore_stream(self, name: str) -> dict[str, Any]:
        """Bring an archived stream back, closed as it was."""
        return self._do(calls.send(stream_path(name, "restore")))

    def archived(self) -> list[dict[str, Any]]:
        """The streams that are archived."""
        return self._do(calls.get("/v1/archived"))

    def delete_stream(self, name: str) -> dict[str, Any]:
        """Delete a closed stream permanently, with everything that belongs to it."""
        return self._do(calls.send(stream_path(name), method="DELETE"))

    # items

    def add_items(self, stream: str, items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Add items: each an `id`, optionally `payload`, `weight` and others."""
        return self._do(calls.add_items(stream, items))

    def item(self, stream: str, item: str) -> dict[str, Any]:
        """An item with its labels, posterior and verdict."""
        return self._do(calls.get(stream_path(stream, "items", item)))

    def find_items(
        self, stream: str, cursor: str | None = None, limit: int = 50, **search: Any
    ) -> dict[str, Any]:
        """A page of items, the latest arrival first; `next` is the cursor for more.

        `search` is any of status, verdict, reason, min_confidence, max_confidence, labeler, text,
        since and until.
        """
        return self._do(calls.find_items(stream, cursor, limit, search))

    def reviews(
        self,
        stream: str,
        kind: str | None = None,
        cursor: str | None = None,
        limit: int = 20,
        order: str | None = None,
    ) -> dict[str, Any]:
        """Verdicts that wait for a reviewer: audits that are due, then the least confident.

        With the order "telling", those whose truth tells most about who is right.
        """
        return self._do(calls.reviews(stream, kind, cursor, limit, order))

    def review(
        self, stream: str, item: str, label: str, note: str | None = None, correct: bool = False
    ) -> dict[str, Any]:
        """Confirm or override the verdict of an item: the label becomes gold.

        What was judged otherwise before is refused, unless this is to `correct` it.
        """
        more = {"note": note or None, "correct": correct or None}
        told = {"item": item, "label": label, **{k: v for k, v in more.items() if v is not None}}
        return self._do(calls.send(stream_path(stream, "reviews"), told))

    def send_back(
        self,
        stream: str,
        item: str,
        min_confidence: float | None = None,
        note: str | None = None,
    ) -> dict[str, Any]:
        """Send an item that has left back for more labels: it comes again as another."""
        more = {"min_confidence": min_confidence, "note": note}
        told = {"item": item, **{name: value for name, value in more.items() if value is not None}}
        return self._do(calls.send(stream_path(stream, "send-back"), told))

    def explain(self, stream: str, item: str) -> dict[str, Any]:
        """Why an item was assigned to whom, and why it left."""
        return self._do(calls.get(stream_path(stream, "items", item, "explain")))

    def withdraw(self, stream: str, item: str) -> dict[str, Any]:
        """Withdraw an item without a verdict."""
        return self._do(calls.send(stream_path(stream, "items", item), method="DELETE"))

    def erase_payload(self, stream: str, item: str) -> dict[str, Any]:
        """Erase the payload of an item permanently; an open item is withdrawn."""
        return self._do(calls.send(stream_path(stream, "payloads", item), method="DELETE"))

    # work

    def next(
        self, stream: str, labeler: str | None = None, wait: float = 20.0, ahead: int = 0
    ) -> Work | Nothing:
        """The next item for a labeler, waiting up to `wait` seconds for it.

        The labeler may hold `ahead` items beyond its capacity, the stream's `ahead` at most.
        """
        return self._do(calls.next_work(stream, labeler, wait, ahead))

    def held(self, stream: str, labeler: str | None = None) -> list[Work]:
        """The labeler's open leases, with new tokens."""
        return self._do(calls.held(stream, labeler))

    def label(self, token: str, said: str) -> dict[str, Any]:
        """Label an assigned item."""
        return self._do(calls.label(token, said))

    def heartbeat(self, token: str) -> None:
        """Renew the lease of an assignment."""
        self._do(calls.heartbeat(token))

    def release(self, token: str, bar: bool = False) -> None:
        """Release an assignment; with `bar`, this labeler does not get the item again."""
        self._do(calls.release(token, bar))

    def abstain(self, token: str) -> None:
        """Say that the labeler is not sure: the item goes to others, and that is counted."""
        self._do(calls.abstain(token))

    def note(self, token: str, kind: str, text: str = "") -> None:
        """Comment on an assigned item (`kind` is "comment") or flag it ("flag")."""
        self._do(calls.note(token, kind, text))

    def notes(
        self, stream: str, after: int = 0, limit: int = 1000, item: str | None = None
    ) -> list[dict[str, Any]]:
        """Comments, flags and abstentions of labelers after a cursor, oldest first."""
        return self._do(calls.notes(stream, after, limit, item))

    def progress(
        self, stream: str, labeler: str | None = None, since: float = 0.0
    ) -> dict[str, Any]:
        """How many labels a labeler has given since a time, and in all."""
        return self._do(calls.progress(stream, labeler, since))

    def add_labels(
        self, stream: str, labels: Iterable[LabelLike], leased: bool = False
    ) -> dict[str, Any]:
        """Add labels in bulk, as (item, labeler, said) or mappings with these keys.

        `leased`: those of items that the labeler was never assigned are refused, unless the stream
        has `unasked_labels`.
        """
        return self._do(calls.add_labels(stream, labels, leased))

    def add_gold(
        self,
        stream: str,
        gold: Mapping[str, str] | Iterable[tuple[str, str]],
        correct: bool = False,
    ) -> dict[str, Any]:
        """Add gold, {item: label}: with an admin key, or that of a trusted labeler.

        Other gold for the same item is refused, or with `correct` takes its place.
        """
        return self._do(calls.add_gold(stream, gold, correct))

    # reading

    def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ItemExit]:
        """The exits after a cursor, oldest first."""
        return self._do(calls.exits(stream, after, wait, limit))

    def follow_exits(self, stream: str, after: int = 0) -> Iterator[ItemExit]:
        """Follow the exits after a cursor, without end."""
        while True:
            for exit in self.exits(stream, after, wait=20.0):
                yield exit
                after = exit.n

    def revisions(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ItemRevision]:
        """Verdicts that changed after their item had left, oldest first."""
        return self._do(calls.revisions(stream, after, wait, limit))

    def follow_revisions(self, stream: str, after: int = 0) -> Iterator[ItemRevision]:
        """Follow the revisions after a cursor, without end."""
        while True:
            for revision in self.revisions(stream, after, wait=20.0):
                yield revision
                after = revision.n

    def labelers(self, stream: str) -> list[dict[str, Any]]:
        """The labelers with what was learned about them."""
        return self._do(calls.get(stream_path(stream, "labelers")))

    def add_labeler(self, stream: str, id: str, **more: Any) -> dict[str, Any]:
        """Put a labeler on the panel: `price`, `capacity`, ..., as in the panel of the stream."""
        return self._do(calls.send(stream_path(stream, "labelers"), {"id": id, **more}))

    def retire_labeler(self, stream: str, labeler: str) -> dict[str, Any]:
        """Give a labeler no more work; its labels stay."""
        told = {"labeler": labeler}
        return self._do(calls.send(stream_path(stream, "labelers", "retire"), told))

    def restore_labeler(self, stream: str, labeler: str) -> dict[str, Any]:
        """Give a retired labeler work again."""
        told = {"labeler": labeler}
        return self._do(calls.send(stream_path(stream, "labelers", "restore"), told))

    def agreement(self, stream: str) -> dict[str, Any]:
        """How the labelers agree with gold, and with each other."""
        return self._do(calls.get(stream_path(stream, "agreement")))

    def rates(self, stream: str, level: float = 0.95) -> dict[str, Any]:
        """Share, precision and recall of each class, with intervals, by audits."""
        return self._do(calls.rates(stream, level))

    def panel(self, stream: str, want: float | None = None) -> dict[str, Any]:
        """What each labeler brings and costs, and the cheapest panel of the wanted accuracy."""
        return self._do(calls.panel(stream, want))

    def confusion(self, stream: str, labeler: str) -> dict[str, Any]:
        """How often a labeler says each class of items of each true class, as learned."""
        return self._do(calls.get(stream_path(stream, "confusion"), labeler=labeler))

    def lessons(self, stream: str) -> dict[str, Any]:
        """How the student of a stream learned, version by version."""
        return self._do(calls.get(stream_path(stream, "lessons")))

    def what_if(self, stream: str, **plan: Any) -> dict[str, Any]:
        """What another `policy`, a panel `without` somebody or another budget would have bought."""
        return self._do(calls.what_if(stream, plan))

    def trends(self, stream: str) -> dict[str, Any]:
        """What the latest exits say: verdicts against votes, estimated accuracy, trends."""
        return self._do(calls.get(stream_path(stream, "trends")))

    def insights(self, stream: str) -> dict[str, Any]:
        """The statistics of a stream."""
        return self._do(calls.get(stream_path(stream, "insights")))

    def audits(self, stream: str, level: float = 0.95) -> dict[str, Any]:
        """The accuracy audits: bounds on the rate of errors, and the verdicts that are due."""
        return self._do(calls.audits(stream, level))

    def audit(
        self, after: int = 0, limit: int = 1000, stream: str | None = None
    ) -> list[dict[str, Any]]:
        """Audit entries after a number: who did what, with which key; of a stream, or all."""
        return self._do(calls.audit(after, limit, stream))

    # keys and webhooks

    def me(self) -> dict[str, Any]:
        """The owner and the role of the key."""
        return self._do(calls.get("/v1/me"))

    def keys(self) -> list[dict[str, Any]]:
        """All keys, including revoked ones, with their last use; without tokens."""
        return self._do(calls.get("/v1/keys"))

    def create_key(
        self, name: str, role: str, labeler: str | None = None, days: float | None = None
    ) -> dict[str, Any]:
        """Create a key that expires after `days`, or never; its `token` is shown only once."""
        return self._do(calls.create_key(name, role, labeler, days))

    def rotate_key(self, key: str, overlap_hours: float = 24.0) -> dict[str, Any]:
        """Replace a key, by its id; the old one stays valid for `overlap_hours`."""
        return self._do(calls.rotate_key(key, overlap_hours))

    def revoke_key(self, key: str) -> dict[str, Any]:
        """Revoke a key, by its id."""
        return self._do(calls.revoke_key(key))

    def webhooks(self, stream: str) -> list[dict[str, Any]]:
        """The webhooks of a stream."""
        return self._do(calls.get(stream_path(stream, "webhooks")))

    def add_webhook(self, stream: str, url: str, format: str = "json") -> dict[str, Any]:
        """Send exits and revisions to an address; the `secret` is shown only once.

        With the format `text` it gets `{"text": ...}`, of alarms and revisions only.
        """
        return self._do(calls.add_webhook(stream, url, format))

    def remove_webhook(self, stream: str, webhook: str) -> None:
        """Remove a webhook."""
        self._do(calls.send(stream_path(stream, "webhooks", webhook), method="DELETE"))

    def ping_webhook(self, stream: str, webhook: str) -> int:
        """Send a test message now; the HTTP status of the answer."""
        return self._do(calls.ping_webhook(stream, webhook))

    def rotate_webhook(
        self, stream: str, webhook: str, keep_seconds: float = 86_400.0
    ) -> dict[str, Any]:
        """Rotate the secret of a webhook; the old one signs as well for `keep_seconds`."""
        return self._do(calls.rotate_webhook(stream, webhook, keep_seconds))

    def dead_letters(self, stream: str, webhook: str) -> list[dict[str, Any]]:
        """The dead-lettered messages, and why they failed."""
        return self._do(calls.get(stream_path(stream, "webhooks", webhook, "dead")))

    def redeliver(
        self,
        stream: str,
        webhook: str,
        exit_n: int | None = None,
        revision_n: int | None = None,
    ) -> int:
        """Retry dead letters: of an exit, of a revision, or all; how many."""
        return self._do(calls.redeliver(stream, webhook, exit_n, revision_n))

    def _do(self, call: Call[T]) -> T:
        attempts = self._settings.attempts(call)
        while True:
            wait: float | None
            try:
                got = self._http.request(**self._settings.request(call, attempts.url))
            except self._library.TransportError as fault:
                unsent = self._library.ConnectError, self._library.ConnectTimeout
                wait = attempts.failed(fault, isinstance(fault, unsent))
            else:
                answer = Answer(got.status_code, got.headers, got.content)
                wait = attempts.answered(answer)
                if wait is None:
                    return call.read(answer)
            time.sleep(wait)
