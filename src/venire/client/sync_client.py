# Generated from AsyncClient by scripts/generate; do not edit.
"""`Client`: the API of a server, one method for each thing that can be asked of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, TypeVar

from venire.client import calls
from venire.client.backoff import Backoff
from venire.client.calls import Answer, Call, LabelLike, stream_path
from venire.client.transport import Settings, http_library
from venire.client.types import ItemExit, ItemRevision, Nothing, Work

__all__ = ["Client"]

T = TypeVar("T")


class Client:
    """A connection to a server.

    Requests that fail because the server is busy, stopping or away are sent again, for up to
    `retry_seconds` each; whatever can be sent twice takes effect once.

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
        self, url: str, key: str, *, timeout: float = 30.0, retry_seconds: float = 60.0
    ) -> None:
        """`timeout` is for one attempt, beside the time that the server was asked to wait."""
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
        """Make a stream; the same name with the same settings again is no error."""
        return self._do(calls.create_stream(name, settings))

    def stream(self, name: str) -> dict[str, Any]:
        """A stream as it is now."""
        return self._do(calls.get(stream_path(name)))

    def streams(self) -> list[dict[str, Any]]:
        """All streams."""
        return self._do(calls.get("/v1/streams"))

    def change_stream(self, name: str, **changes: Any) -> dict[str, Any]:
        """Change some of the settings, live."""
        return self._do(calls.send(stream_path(name), changes, "PATCH"))

    def settings_history(self, name: str) -> list[dict[str, Any]]:
        """Every version of the settings, the oldest first: what, when and by whom."""
        return self._do(calls.get(stream_path(name, "settings")))

    def pause(self, name: str) -> dict[str, Any]:
        """Hand out no work for now."""
        return self._do(calls.send(stream_path(name, "pause")))

    def resume(self, name: str) -> dict[str, Any]:
        """Go on after a pause."""
        return self._do(calls.send(stream_path(name, "resume")))

    def close_stream(self, name: str) -> dict[str, Any]:
        """Take no new items; those that are there are finished."""
        return self._do(calls.send(stream_path(name, "close")))

    def delete_stream(self, name: str) -> dict[str, Any]:
        """Delete a stream that is closed, with all that belongs to it, for good."""
        return self._do(calls.send(stream_path(name), method="DELETE"))

    # items

    def add_items(self, stream: str, items: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Send items: each an `id`, perhaps `payload`, `weight`, `eligible`, `excluded`."""
        return self._do(calls.add_items(stream, items))

    def item(self, stream: str, item: str) -> dict[str, Any]:
        """An item with its labels, its posterior and its verdict."""
        return self._do(calls.get(stream_path(stream, "items", item)))

    def explain(self, stream: str, item: str) -> dict[str, Any]:
        """Why it was given to whom, and why it left."""
        return self._do(calls.get(stream_path(stream, "items", item, "explain")))

    def withdraw(self, stream: str, item: str) -> dict[str, Any]:
        """Take an item out without a verdict."""
        return self._do(calls.send(stream_path(stream, "items", item), method="DELETE"))

    def erase_payload(self, stream: str, item: str) -> dict[str, Any]:
        """Delete what an item holds, for good; one that is open is withdrawn."""
        return self._do(calls.send(stream_path(stream, "payloads", item), method="DELETE"))

    # work

    def next(self, stream: str, labeler: str | None = None, wait: float = 20.0) -> Work | Nothing:
        """The next item for a labeler, waiting for it if need be."""
        return self._do(calls.next_work(stream, labeler, wait))

    def held(self, stream: str, labeler: str | None = None) -> list[Work]:
        """What the labeler holds, under new tokens."""
        return self._do(calls.held(stream, labeler))

    def label(self, token: str, said: str) -> dict[str, Any]:
        """Say what an assigned item is."""
        return self._do(calls.label(token, said))

    def heartbeat(self, token: str) -> None:
        """Say that the work goes on, so that the assignment does not expire."""
        self._do(calls.heartbeat(token))

    def release(self, token: str, bar: bool = False) -> None:
        """Give work back; with `bar`, this labeler does not get the item again."""
        self._do(calls.release(token, bar))

    def add_labels(self, stream: str, labels: Iterable[LabelLike]) -> dict[str, Any]:
        """Labels in bulk, as (item, labeler, said) or mappings of these names."""
        return self._do(calls.add_labels(stream, labels))

    # reading

    def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ItemExit]:
        """The items that left after a cursor, the earliest first."""
        return self._do(calls.exits(stream, after, wait, limit))

    def follow_exits(self, stream: str, after: int = 0) -> Iterator[ItemExit]:
        """Every exit after a cursor, as they come, without an end."""
        while True:
            for exit in self.exits(stream, after, wait=20.0):
                yield exit
                after = exit.n

    def revisions(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ItemRevision]:
        """The verdicts that became others after their item had left, the earliest first."""
        return self._do(calls.revisions(stream, after, wait, limit))

    def follow_revisions(self, stream: str, after: int = 0) -> Iterator[ItemRevision]:
        """Every revision after a cursor, as they come, without an end."""
        while True:
            for revision in self.revisions(stream, after, wait=20.0):
                yield revision
                after = revision.n

    def labelers(self, stream: str) -> list[dict[str, Any]]:
        """The labelers with what was learned of them."""
        return self._do(calls.get(stream_path(stream, "labelers")))

    def insights(self, stream: str) -> dict[str, Any]:
        """The figures of a stream."""
        return self._do(calls.get(stream_path(stream, "insights")))

    def audit(
        self, after: int = 0, limit: int = 1000, stream: str | None = None
    ) -> list[dict[str, Any]]:
        """Who did what, with which key, after a line of the trail; about a stream, or all of it."""
        return self._do(calls.audit(after, limit, stream))

    # keys and webhooks

    def keys(self) -> list[dict[str, Any]]:
        """All keys, revoked ones too, with their last use; without their tokens."""
        return self._do(calls.get("/v1/keys"))

    def create_key(
        self, name: str, role: str, labeler: str | None = None, days: float | None = None
    ) -> dict[str, Any]:
        """Make a key, for so many days or without an end; its `token` is shown this once."""
        return self._do(calls.create_key(name, role, labeler, days))

    def rotate_key(self, key: str, overlap_hours: float = 24.0) -> dict[str, Any]:
        """Make a key in place of another, by its id, which still opens for a while."""
        return self._do(calls.rotate_key(key, overlap_hours))

    def revoke_key(self, key: str) -> dict[str, Any]:
        """Make a key useless, by its id."""
        return self._do(calls.revoke_key(key))

    def webhooks(self, stream: str) -> list[dict[str, Any]]:
        """Where the exits and revisions of a stream are sent."""
        return self._do(calls.get(stream_path(stream, "webhooks")))

    def add_webhook(self, stream: str, url: str) -> dict[str, Any]:
        """Send exits and revisions to an address; the `secret` is shown this once."""
        return self._do(calls.add_webhook(stream, url))

    def remove_webhook(self, stream: str, webhook: str) -> None:
        """Send nothing there any more."""
        self._do(calls.send(stream_path(stream, "webhooks", webhook), method="DELETE"))

    def ping_webhook(self, stream: str, webhook: str) -> int:
        """Send a test message now; the status that came back."""
        return self._do(calls.ping_webhook(stream, webhook))

    def rotate_webhook(
        self, stream: str, webhook: str, keep_seconds: float = 86_400.0
    ) -> dict[str, Any]:
        """Make a new secret, in the answer; the old one signs as well for so many seconds."""
        return self._do(calls.rotate_webhook(stream, webhook, keep_seconds))

    def dead_letters(self, stream: str, webhook: str) -> list[dict[str, Any]]:
        """The messages that were given up, and why."""
        return self._do(calls.get(stream_path(stream, "webhooks", webhook, "dead")))

    def redeliver(
        self,
        stream: str,
        webhook: str,
        exit_n: int | None = None,
        revision_n: int | None = None,
    ) -> int:
        """Try given-up messages again: of an exit, of a revision, or all; how many."""
        return self._do(calls.redeliver(stream, webhook, exit_n, revision_n))

    def _do(self, call: Call[T]) -> T:
        settings, backoff = self._settings, Backoff(self._settings.retry_seconds)
        while True:
            wait: float | None
            try:
                got = self._http.request(**settings.request(call))
            except self._library.TransportError as fault:
                unsent = isinstance(fault, self._library.ConnectError)
                wait = settings.again(call, fault, unsent, backoff)
            else:
                answer = Answer(got.status_code, got.headers, got.content)
                wait = settings.judge(call, answer, backoff)
                if wait is None:
                    return call.read(answer)
            time.sleep(wait)
