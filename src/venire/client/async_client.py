"""`AsyncClient`: the HTTP API of a server, one method per request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self, TypeVar

from venire.client import calls
from venire.client.calls import Answer, Call, LabelLike, stream_path
from venire.client.transport import Settings, http_library
from venire.client.types import ItemExit, ItemRevision, Nothing, Work

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """A client of a server.

    Requests that fail because the server is busy, stopping or unreachable are retried for up to
    `retry_seconds`; they are idempotent, so a retry takes effect once. Of several servers on one
    store, a standby or those that share its streams, give all addresses: what one does not answer
    goes to the next, and requests about a stream go to its owner.

        async with venire.AsyncClient("http://127.0.0.1:8400", key) as client:
            await client.create_stream("posts", classes=["spam", "ok"])
            await client.add_items("posts", [{"id": "post-1", "payload": "Buy now!"}])
            work = await client.next("posts", "ann")
            if work:
                await client.label(work.token, "spam")
            async for exit in client.follow_exits("posts"):
                print(exit.item, exit.verdict)

    >>> AsyncClient("127.0.0.1:8400", "vk_...")
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
        self._http = self._library.AsyncClient(headers=self._settings.headers, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # streams

    async def create_stream(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create a stream; idempotent for the same name and settings."""
        return await self._do(calls.create_stream(name, settings))

    async def stream(self, name: str) -> dict[str, Any]:
        """A stream as it is now."""
        return await self._do(calls.get(stream_path(name)))

    async def streams(self) -> list[dict[str, Any]]:
        """All streams."""
        return await self._do(calls.get("/v1/streams"))

    async def change_stream(self, name: str, **changes: Any) -> dict[str, Any]:
        """Change some of the settings of a running stream."""
        return await self._do(calls.send(stream_path(name), changes, "PATCH"))

    async def settings_history(self, name: str) -> list[dict[str, Any]]:
        """Every version of the settings, oldest first: what, when and by whom."""
        return await self._do(calls.get(stream_path(name, "settings")))

    async def pause(self, name: str) -> dict[str, Any]:
        """Stop handing out work."""
        return await self._do(calls.send(stream_path(name, "pause")))

    async def resume(self, name: str) -> dict[str, Any]:
        """Resume a paused stream."""
        return await self._do(calls.send(stream_path(name, "resume")))

    async def close_stream(self, name: str) -> dict[str, Any]:
        """Drain a stream: no new items, the open ones are finished."""
        return await self._do(calls.send(stream_path(name, "close")))

    async def archive_stream(self, name: str) -> dict[str, Any]:
        """Put a closed stream away: it can only be read, and is not listed."""
        return await self._do(calls.send(stream_path(name, "archive")))

    async def restore_stream(self, name: str) -> dict[str, Any]:
        """Bring an archived stream back, closed as it was."""
        return await self._do(calls.send(stream_path(name, "restore")))

    async def archived(self) -> list[dict[str, Any]]:
        """The streams that are archived."""
        return await self._do(calls.get("/v1/archived"))

    async def delete_stream(self, name: str) -> dict[str, Any]:
        """Delete a closed stream permanently, with everything that belongs to it."""
        return await self._do(calls.send(stream_path(name), method="DELETE"))

    # items

    async def add_items(self, stream: str, items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Add items: each an `id`, optionally `payload`, `weight` and others."""
        return await self._do(calls.add_items(stream, items))

    async def item(self, stream: str, item: str) -> dict[str, Any]:
        """An item with its labels, posterior and verdict."""
        return await self._do(calls.get(stream_path(stream, "items", item)))

    async def find_items(
        self, stream: str, cursor: str | None = None, limit: int = 50, **search: Any
    ) -> dict[str, Any]:
        """A page of items, the latest arrival first; `next` is the cursor for more.

        `search` is any of status, verdict, reason, min_confidence, max_confidence, labeler, text,
        since and until.
        """
        return await self._do(calls.find_items(stream, cursor, limit, search))

    async def reviews(
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
        return await self._do(calls.reviews(stream, kind, cursor, limit, order))

    async def review(
        self, stream: str, item: str, label: str, note: str | None = None, correct: bool = False
    ) -> dict[str, Any]:
        """Confirm or override the verdict of an item: the label becomes gold.

        What was judged otherwise before is refused, unless this is to `correct` it.
        """
        more = {"note": note or None, "correct": correct or None}
        told = {"item": item, "label": label, **{k: v for k, v in more.items() if v is not None}}
        return await self._do(calls.send(stream_path(stream, "reviews"), told))

    async def send_back(
        self,
        stream: str,
        item: str,
        min_confidence: float | None = None,
        note: str | None = None,
    ) -> dict[str, Any]:
        """Send an item that has left back for more labels: it comes again as another."""
        more = {"min_confidence": min_confidence, "note": note}
        told = {"item": item, **{name: value for name, value in more.items() if value is not None}}
        return await self._do(calls.send(stream_path(stream, "send-back"), told))

    async def explain(self, stream: str, item: str) -> dict[str, Any]:
        """Why an item was assigned to whom, and why it left."""
        return await self._do(calls.get(stream_path(stream, "items", item, "explain")))

    async def withdraw(self, stream: str, item: str) -> dict[str, Any]:
        """Withdraw an item without a verdict."""
        return await self._do(calls.send(stream_path(stream, "items", item), method="DELETE"))

    async def erase_payload(self, stream: str, item: str) -> dict[str, Any]:
        """Erase the payload of an item permanently; an open item is withdrawn."""
        return await self._do(calls.send(stream_path(stream, "payloads", item), method="DELETE"))

    # work

    async def next(
        self, stream: str, labeler: str | None = None, wait: float = 20.0, ahead: int = 0
    ) -> Work | Nothing:
        """The next item for a labeler, waiting up to `wait` seconds for it.

        The labeler may hold `ahead` items beyond its capacity, the stream's `ahead` at most.
        """
        return await self._do(calls.next_work(stream, labeler, wait, ahead))

    async def held(self, stream: str, labeler: str | None = None) -> list[Work]:
        """The labeler's open leases, with new tokens."""
        return await self._do(calls.held(stream, labeler))

    async def label(self, token: str, said: str) -> dict[str, Any]:
        """Label an assigned item."""
        return await self._do(calls.label(token, said))

    async def heartbeat(self, token: str) -> None:
        """Renew the lease of an assignment."""
        await self._do(calls.heartbeat(token))

    async def release(self, token: str, bar: bool = False) -> None:
        """Release an assignment; with `bar`, this labeler does not get the item again."""
        await self._do(calls.release(token, bar))

    async def abstain(self, token: str) -> None:
        """Say that the labeler is not sure: the item goes to others, and that is counted."""
        await self._do(calls.abstain(token))

    async def note(self, token: str, kind: str, text: str = "") -> None:
        """Comment on an assigned item (`kind` is "comment") or flag it ("flag")."""
        await self._do(calls.note(token, kind, text))

    async def notes(
        self, stream: str, after: int = 0, limit: int = 1000, item: str | None = None
    ) -> list[dict[str, Any]]:
        """Comments, flags and abstentions of labelers after a cursor, oldest first."""
        return await self._do(calls.notes(stream, after, limit, item))

    async def progress(
        self, stream: str, labeler: str | None = None, since: float = 0.0
    ) -> dict[str, Any]:
        """How many labels a labeler has given since a time, and in all."""
        return await self._do(calls.progress(stream, labeler, since))

    async def add_labels(
        self, stream: str, labels: Iterable[LabelLike], leased: bool = False
    ) -> dict[str, Any]:
        """Add labels in bulk, as (item, labeler, said) or mappings with these keys.

        `leased`: those of items that the labeler was never assigned are refused, unless the stream
        has `unasked_labels`.
        """
        return await self._do(calls.add_labels(stream, labels, leased))

    async def add_gold(
        self,
        stream: str,
        gold: Mapping[str, str] | Iterable[tuple[str, str]],
        correct: bool = False,
    ) -> dict[str, Any]:
        """Add gold, {item: label}: with an admin key, or that of a trusted labeler.

        Other gold for the same item is refused, or with `correct` takes its place.
        """
        return await self._do(calls.add_gold(stream, gold, correct))

    # reading

    async def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ItemExit]:
        """The exits after a cursor, oldest first."""
        return await self._do(calls.exits(stream, after, wait, limit))

    async def follow_exits(self, stream: str, after: int = 0) -> AsyncIterator[ItemExit]:
        """Follow the exits after a cursor, without end."""
        while True:
            for exit in await self.exits(stream, after, wait=20.0):
                yield exit
                after = exit.n

    async def revisions(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ItemRevision]:
        """Verdicts that changed after their item had left, oldest first."""
        return await self._do(calls.revisions(stream, after, wait, limit))

    async def follow_revisions(self, stream: str, after: int = 0) -> AsyncIterator[ItemRevision]:
        """Follow the revisions after a cursor, without end."""
        while True:
            for revision in await self.revisions(stream, after, wait=20.0):
                yield revision
                after = revision.n

    async def labelers(self, stream: str) -> list[dict[str, Any]]:
        """The labelers with what was learned about them."""
        return await self._do(calls.get(stream_path(stream, "labelers")))

    async def add_labeler(self, stream: str, id: str, **more: Any) -> dict[str, Any]:
        """Put a labeler on the panel: `price`, `capacity`, ..., as in the panel of the stream."""
        return await self._do(calls.send(stream_path(stream, "labelers"), {"id": id, **more}))

    async def retire_labeler(self, stream: str, labeler: str) -> dict[str, Any]:
        """Give a labeler no more work; its labels stay."""
        told = {"labeler": labeler}
        return await self._do(calls.send(stream_path(stream, "labelers", "retire"), told))

    async def restore_labeler(self, stream: str, labeler: str) -> dict[str, Any]:
        """Give a retired labeler work again."""
        told = {"labeler": labeler}
        return await self._do(calls.send(stream_path(stream, "labelers", "restore"), told))

    async def agreement(self, stream: str) -> dict[str, Any]:
        """How the labelers agree with gold, and with each other."""
        return await self._do(calls.get(stream_path(stream, "agreement")))

    async def rates(self, stream: str, level: float = 0.95) -> dict[str, Any]:
        """Share, precision and recall of each class, with intervals, by audits."""
        return await self._do(calls.rates(stream, level))

    async def panel(self, stream: str, want: float | None = None) -> dict[str, Any]:
        """What each labeler brings and costs, and the cheapest panel of the wanted accuracy."""
        return await self._do(calls.panel(stream, want))

    async def confusion(self, stream: str, labeler: str) -> dict[str, Any]:
        """How often a labeler says each class of items of each true class, as learned."""
        return await self._do(calls.get(stream_path(stream, "confusion"), labeler=labeler))

    async def lessons(self, stream: str) -> dict[str, Any]:
        """How the student of a stream learned, version by version."""
        return await self._do(calls.get(stream_path(stream, "lessons")))

    async def what_if(self, stream: str, **plan: Any) -> dict[str, Any]:
        """What another `policy`, a panel `without` somebody or another budget would have bought."""
        return await self._do(calls.what_if(stream, plan))

    async def trends(self, stream: str) -> dict[str, Any]:
        """What the latest exits say: verdicts against votes, estimated accuracy, trends."""
        return await self._do(calls.get(stream_path(stream, "trends")))

    async def insights(self, stream: str) -> dict[str, Any]:
        """The statistics of a stream."""
        return await self._do(calls.get(stream_path(stream, "insights")))

    async def audits(self, stream: str, level: float = 0.95) -> dict[str, Any]:
        """The accuracy audits: bounds on the rate of errors, and the verdicts that are due."""
        return await self._do(calls.audits(stream, level))

    async def audit(
        self, after: int = 0, limit: int = 1000, stream: str | None = None
    ) -> list[dict[str, Any]]:
        """Audit entries after a number: who did what, with which key; of a stream, or all."""
        return await self._do(calls.audit(after, limit, stream))

    # keys and webhooks

    async def me(self) -> dict[str, Any]:
        """The owner and the role of the key."""
        return await self._do(calls.get("/v1/me"))

    async def keys(self) -> list[dict[str, Any]]:
        """All keys, including revoked ones, with their last use; without tokens."""
        return await self._do(calls.get("/v1/keys"))

    async def create_key(
        self, name: str, role: str, labeler: str | None = None, days: float | None = None
    ) -> dict[str, Any]:
        """Create a key that expires after `days`, or never; its `token` is shown only once."""
        return await self._do(calls.create_key(name, role, labeler, days))

    async def rotate_key(self, key: str, overlap_hours: float = 24.0) -> dict[str, Any]:
        """Replace a key, by its id; the old one stays valid for `overlap_hours`."""
        return await self._do(calls.rotate_key(key, overlap_hours))

    async def revoke_key(self, key: str) -> dict[str, Any]:
        """Revoke a key, by its id."""
        return await self._do(calls.revoke_key(key))

    async def webhooks(self, stream: str) -> list[dict[str, Any]]:
        """The webhooks of a stream."""
        return await self._do(calls.get(stream_path(stream, "webhooks")))

    async def add_webhook(self, stream: str, url: str, format: str = "json") -> dict[str, Any]:
        """Send exits and revisions to an address; the `secret` is shown only once.

        With the format `text` it gets `{"text": ...}`, of alarms and revisions only.
        """
        return await self._do(calls.add_webhook(stream, url, format))

    async def remove_webhook(self, stream: str, webhook: str) -> None:
        """Remove a webhook."""
        await self._do(calls.send(stream_path(stream, "webhooks", webhook), method="DELETE"))

    async def ping_webhook(self, stream: str, webhook: str) -> int:
        """Send a test message now; the HTTP status of the answer."""
        return await self._do(calls.ping_webhook(stream, webhook))

    async def rotate_webhook(
        self, stream: str, webhook: str, keep_seconds: float = 86_400.0
    ) -> dict[str, Any]:
        """Rotate the secret of a webhook; the old one signs as well for `keep_seconds`."""
        return await self._do(calls.rotate_webhook(stream, webhook, keep_seconds))

    async def dead_letters(self, stream: str, webhook: str) -> list[dict[str, Any]]:
        """The dead-lettered messages, and why they failed."""
        return await self._do(calls.get(stream_path(stream, "webhooks", webhook, "dead")))

    async def redeliver(
        self,
        stream: str,
        webhook: str,
        exit_n: int | None = None,
        revision_n: int | None = None,
    ) -> int:
        """Retry dead letters: of an exit, of a revision, or all; how many."""
        return await self._do(calls.redeliver(stream, webhook, exit_n, revision_n))

    async def _do(self, call: Call[T]) -> T:
        attempts = self._settings.attempts(call)
        while True:
            wait: float | None
            try:
                got = await self._http.request(**self._settings.request(call, attempts.url))
            except self._library.TransportError as fault:
                unsent = self._library.ConnectError, self._library.ConnectTimeout
                wait = attempts.failed(fault, isinstance(fault, unsent))
            else:
                answer = Answer(got.status_code, got.headers, got.content)
                wait = attempts.answered(answer)
                if wait is None:
                    return call.read(answer)
            await asyncio.sleep(wait)
