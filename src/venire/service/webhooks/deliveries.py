"""Webhooks: exits and revisions sent out, signed by the Standard Webhooks convention, never lost.

A delivery is a row that is written in the same transaction as the exit, so an exit that is on
disk will be sent, even if the server dies in between; the receiver may see it twice, under the
same `webhook-id`. After a failure it is tried again with exponential back-off and jitter for
`webhook_retry_seconds`, some days, and is then put on the list of the dead, from which it can be
sent again. See `retry_schedule`.

Each webhook has its own queue and its own few senders, so one that never answers holds up no
other; it rests for a while after each silence, each 5xx and each 429, for as long as Retry-After
asks if it does, and is then tried with one message.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import logging
import random
from collections import Counter, deque
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from venire.errors import FetchError, InputError, NotFound, StoreError
from venire.model import DeliveryStatus
from venire.service.actors import PROGRAM, Actor, done_by
from venire.service.messages import DeliveryView, ExitView, RevisionView, WebhookView
from venire.service.reports.event_json import exit_view, revision_view
from venire.service.runtime.runtime import Hub
from venire.service.runtime.webhook_counts import Tallies, Tally
from venire.service.tokens import new_id, new_secret
from venire.service.webhooks.retry_schedule import (
    Failure,
    after_failure,
    backoff,
    retry_after,
    wait_of,
)
from venire.service.webhooks.signing import headers, shown
from venire.service.webhooks.targets import resolve
from venire.storage import (
    AddAudit,
    AddWebhook,
    Change,
    DeliveryRow,
    RemoveWebhook,
    RotateSecret,
    UpdateDelivery,
    WebhookRow,
)
from venire.storage.contents import compact

__all__ = ["Webhooks"]

#: So many messages are on their way to one webhook at once, and so many to all.
AT_ONCE, IN_ALL = 4, 200

#: The list is looked at so often.
NAP = 1.0

#: A webhook that is not well rests at most so long, unless it asks for more.
REST: Final = 60.0

#: So many pending deliveries of a webhook are looked at, the longest overdue first, ...
PENDING: Final = 1000

#: ... whatever their time: that is kept on the monotonic clock.
EVER: Final = 1e15

#: A message: its webhook, its kind, and the number of the exit or revision.
Key: TypeAlias = tuple[str, str, int]

_log = logging.getLogger("venire.service")


class Webhooks:
    """Where exits are sent, and what became of it."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._tallies = hub, Tallies()
        self._hooks: dict[str, WebhookRow] = {}  # as they were last read, or changed since
        self._due: dict[Key, float] = {}  # on the monotonic clock
        self._queues: dict[str, deque[DeliveryRow]] = {}
        self._senders: Counter[str] = Counter()
        self._busy: set[Key] = set()
        self._ended: set[Key] = set()  # since the store was last read
        self._silent: dict[str, tuple[int, float]] = {}  # how often in a row, and rests until
        self._looking = asyncio.Lock()
        self._random = random.Random()
        self._client: Any = None

    async def start(self) -> None:
        """Begin to send what is pending."""
        self._hub.spawn(self._send_forever())

    async def stop(self) -> None:
        """Let go of the connections; what is pending is sent after the next start."""
        if self._client is not None:
            await self._client.aclose()

    async def add(self, stream: str, url: str, actor: Actor | str = PROGRAM) -> WebhookView:
        """Send this stream's exits and revisions there; the view has the secret, this once."""
        await self._hub.live(stream)
        try:
            await resolve(url, self._hub.settings.allow_private_webhooks)
        except FetchError as error:
            raise InputError(str(error)) from None
        live = await self._hub.live(stream)
        secret, at = shown(new_secret()), self._hub.clock.wall()
        row = WebhookRow(new_id("wh"), stream, url, secret, at)
        live.hooks[row.id] = None
        told = done_by(actor, at, "webhook.add", stream, row.id, url=url)
        await self._hub.write([AddWebhook(row), AddAudit([told])])
        return _view(row, secret)

    async def list(self, stream: str) -> builtins.list[WebhookView]:
        """The webhooks of a stream."""
        return [_view(row) for row in await self._rows(stream)]

    async def rotate(
        self, stream: str, webhook: str, keep_seconds: float, actor: Actor | str = PROGRAM
    ) -> WebhookView:
        """Give a webhook a new secret; the old one signs as well for so many seconds."""
        row = await self._row(stream, webhook)
        secret, at = shown(new_secret()), self._hub.clock.wall()
        until = at + keep_seconds
        told = done_by(actor, at, "webhook.rotate", stream, webhook, old_secret_until=until)
        await self._hub.write([RotateSecret(webhook, secret, until), AddAudit([told])])
        row = row._replace(secret=secret, old_secret=row.secret, old_until=until)
        self._hooks[webhook] = row  # what waits in the queue is signed anew too
        return _view(row, secret)

    async def tallies(self) -> builtins.list[Tally]:
        """What became of the messages to each webhook; what waits is None if the store is down."""
        hub, counts = self._hub, {}
        with contextlib.suppress(StoreError):
            hooks = await hub.read(hub.storage.webhooks, None)
            self._tallies.keep({self._tallies.of(hook).webhook for hook in hooks})
            for hook in hooks:
                counts[hook.id] = await hub.read(hub.storage.delivery_counts, hook.id)
        return self._tallies.all(counts)

    async def remove(self, stream: str, webhook: str, actor: Actor | str = PROGRAM) -> None:
        """Send nothing there any more."""
        await self._row(stream, webhook)
        live = await self._hub.live(stream)
        live.hooks.pop(webhook, None)
        self._queues.pop(webhook, deque()).clear()
        told = done_by(actor, self._hub.clock.wall(), "webhook.remove", stream, webhook)
        await self._hub.write([RemoveWebhook(webhook), AddAudit([told])])

    async def ping(self, stream: str, webhook: str) -> int:
        """Send a test message now; the status that came back. `FetchError` if none did."""
        row = await self._row(stream, webhook)
        body = {"type": "ping", "stream": stream, "timestamp": self._hub.clock.wall()}
        status, _ = await self._post(row, new_id("msg"), compact(body).encode())
        if 200 <= status < 300:
            self._silent.pop(webhook, None)  # it is well, whatever it was
        return status

    async def dead(self, stream: str, webhook: str) -> builtins.list[DeliveryView]:
        """The messages that were given up."""
        await self._row(stream, webhook)
        rows = await self._hub.read(self._hub.storage.deliveries, webhook, DeliveryStatus.DEAD)
        return [_letter(row) for row in rows]

    async def redeliver(
        self,
        stream: str,
        webhook: str,
        exit_n: int | None = None,
        revision_n: int | None = None,
        actor: Actor | str = PROGRAM,
    ) -> int:
        """Try given-up messages again: those of an exit and a revision, or all; how many."""
        await self._row(stream, webhook)
        rows = await self._hub.read(self._hub.storage.deliveries, webhook, DeliveryStatus.DEAD)
        wanted = {("exit", exit_n), ("revision", revision_n)} - {("exit", None), ("revision", None)}
        again = [row for row in rows if not wanted or (row.kind, row.exit_n) in wanted]
        if wanted and not again:
            raise NotFound("dead delivery", ", ".join(f"{kind} {n}" for kind, n in sorted(wanted)))
        at = self._hub.clock.wall()
        changes: builtins.list[Change] = [
            UpdateDelivery(
                row._replace(
                    status=DeliveryStatus.PENDING, attempt=0, next_at=at, failing_since=None
                )
            )
            for row in again
        ]
        told = done_by(actor, at, "webhook.redeliver", stream, webhook, messages=len(again))
        await self._hub.write([*changes, AddAudit([told])] if again else [])
        self._silent.pop(webhook, None)  # whoever asks for this does not want to wait
        return len(again)

    async def _rows(self, stream: str) -> builtins.list[WebhookRow]:
        await self._hub.live(stream)
        return await self._hub.read_committed(self._hub.storage.webhooks, stream)

    async def _row(self, stream: str, webhook: str) -> WebhookRow:
        found = next((row for row in await self._rows(stream) if row.id == webhook), None)
        if found is None:
            raise NotFound("webhook", webhook)
        return found

    # sending

    async def _send_forever(self) -> None:
        while True:
            try:
                await self.send_due()
            except StoreError:
                pass  # the store is down: later
            except Exception:
                _log.exception("the sending of webhooks stumbled, and goes on")
            await asyncio.sleep(NAP)

    async def send_due(self) -> builtins.list[asyncio.Task[None]]:
        """Begin to send every delivery whose time has come."""
        hub = self._hub
        if not any(live.hooks for live in hub.loaded()):
            return []
        async with self._looking:
            rows = await hub.read(hub.storage.webhooks, None)
            hooks = [hook for hook in rows if hook.stream not in hub.deleting]
            known = self._hooks = {hook.id: hook for hook in hooks}
            self._due = {key: at for key, at in self._due.items() if key[0] in known}
            self._silent = {hook: rest for hook, rest in self._silent.items() if hook in known}
            self._queues = {hook: queue for hook, queue in self._queues.items() if hook in known}
            tasks = []
            for hook in sorted(hooks, key=lambda hook: self._failures(hook.id)):
                if not self._rests(hook.id):
                    await self._refill(hook.id)
                    tasks += self._send_more(hook)
            return tasks

    async def _refill(self, hook: str) -> None:
        """Put what is due for a webhook into its queue, if that is empty."""
        queue = self._queues.setdefault(hook, deque())
        if queue:
            return
        self._ended.clear()
        rows = await self._hub.read(self._hub.storage.due_deliveries, hook, EVER, PENDING)
        now, wall = self._hub.clock.monotonic(), self._hub.clock.wall()
        for row in rows:
            key = _key(row)
            if key in self._busy or key in self._ended:
                continue
            if key not in self._due and row.attempt:
                self._due[key] = now + wait_of(row, wall)
            if self._due.get(key, now) <= now:
                queue.append(row)

    def _send_more(self, hook: WebhookRow) -> builtins.list[asyncio.Task[None]]:
        """Begin with as many messages of the queue as there is room for."""
        most = 1 if self._failures(hook.id) else AT_ONCE
        room = min(most - self._senders[hook.id], IN_ALL - self._senders.total())
        queue = self._queues.get(hook.id, deque())  # it may have been removed just now
        tasks = []
        for _ in range(min(room, len(queue))):
            self._senders[hook.id] += 1
            tasks.append(self._hub.spawn(self._send(hook, queue)))
        return tasks

    async def _send(self, hook: WebhookRow, queue: deque[DeliveryRow]) -> None:
        """Send one message after another, until the queue is empty or the webhook is silent."""
        try:
            while queue and not self._rests(hook.id):
                await self._try(hook, queue.popleft())
        finally:
            self._senders -= Counter([hook.id])

    async def _try(self, hook: WebhookRow, row: DeliveryRow) -> None:
        key = _key(row)
        self._busy.add(key)
        try:
            failure = await self._deliver(self._hooks.get(hook.id, hook), row)
            row = self._tried(row, failure)
            with contextlib.suppress(StoreError):  # it is sent again: at least once is promised
                await self._hub.write([UpdateDelivery(row)])
            if failure is None:
                self._tallies.delivered(hook, self._hub.clock.monotonic())
            else:
                self._tallies.failed(hook, row, self._hub.clock.monotonic())
        finally:
            self._busy.discard(key)
            self._ended.add(key)

    def _failures(self, hook: str) -> int:
        return self._silent.get(hook, (0, 0.0))[0]

    def _rests(self, hook: str) -> bool:
        return self._silent.get(hook, (0, 0.0))[1] > self._hub.clock.monotonic()

    def _heard(self, hook: str, failure: Failure | None) -> None:
        """A webhook that answers is well; one that is not rests, longer each time."""
        if failure is None or not failure.unwell:
            self._silent.pop(hook, None)
            return
        now, (count, until) = self._hub.clock.monotonic(), self._silent.get(hook, (0, 0.0))
        if until <= now:  # several messages that went out together count once
            count += 1
        pause = min(self._pause(count), REST)
        self._silent[hook] = count, max(until, now + max(pause, failure.wait))

    def _pause(self, attempt: int) -> float:
        first = self._hub.settings.webhook_first_delay_seconds
        return backoff(first, attempt, self._random.random())

    def _tried(self, row: DeliveryRow, failure: Failure | None) -> DeliveryRow:
        """A delivery after one more attempt."""
        key, settings, clock = _key(row), self._hub.settings, self._hub.clock
        self._due.pop(key, None)
        if failure is None:
            return row._replace(
                attempt=row.attempt + 1, last_error=None, status=DeliveryStatus.DONE
            )
        pause = max(self._pause(row.attempt + 1), failure.wait)
        row = after_failure(
            row,
            failure.why,
            pause,
            clock.wall(),
            attempts=settings.webhook_attempts,
            seconds=settings.webhook_retry_seconds,
        )
        if row.status == DeliveryStatus.PENDING:
            self._due[key] = clock.monotonic() + pause
        return row

    async def _deliver(self, hook: WebhookRow, row: DeliveryRow) -> Failure | None:
        """Send one exit or revision; what went wrong, None if nothing did."""
        told = await self._told(row)
        if told is None:
            return Failure(f"the {row.kind} is not in the store", unwell=False)
        kind = "item.exit" if row.kind == "exit" else "item.revised"
        body = {"type": kind, "stream": row.stream, "timestamp": told.at, "data": asdict(told)}
        try:
            mark = "" if row.kind == "exit" else "r"
            message = f"msg_{row.webhook}_{mark}{row.exit_n}"
            failure = Failure.of(*await self._post(hook, message, compact(body).encode()))
        except (FetchError, InputError) as error:
            failure = Failure(str(error), unwell=True)
        self._heard(hook.id, failure)
        return failure

    async def _told(self, row: DeliveryRow) -> ExitView | RevisionView | None:
        """What a delivery is about."""
        storage, read, after = self._hub.storage, self._hub.read, row.exit_n - 1
        if row.kind == "exit":
            left = [exit_view(item) for item in await read(storage.exits, row.stream, after, 1)]
            return left[0] if left and left[0].n == row.exit_n else None
        rows = await read(storage.revisions, row.stream, after, 1)
        return revision_view(rows[0]) if rows and rows[0].n == row.exit_n else None

    async def _post(self, hook: WebhookRow, message: str, body: bytes) -> tuple[int, float]:
        """Send a message to where the URL points now; the status, and the wait that was asked."""
        import httpx2

        timeout = self._hub.settings.webhook_timeout_seconds
        if self._client is None:
            self._client = httpx2.AsyncClient(
                follow_redirects=False,
                timeout=timeout,
                trust_env=False,
                limits=httpx2.Limits(max_keepalive_connections=0),  # one name, one connection
            )
        now = self._hub.clock.wall()
        sent = headers(_secrets(hook, now), message, int(now), body)
        try:
            async with asyncio.timeout(timeout):  # for all of it: an answer may also come in drops
                target = await resolve(hook.url, self._hub.settings.allow_private_webhooks)
                sent["host"] = target.name
                extensions = {"sni_hostname": target.host} if target.scheme == "https" else None
                async with self._client.stream(
                    "POST", target.url, content=body, headers=sent, extensions=extensions
                ) as response:
                    asked = retry_after(response.headers.get("retry-after"), now)
                    return int(response.status_code), asked
        except (TimeoutError, httpx2.TimeoutException):
            raise FetchError(f"no answer within {timeout:g} s") from None
        except (httpx2.HTTPError, OSError) as error:
            raise _unreached(error) from None


def _key(row: DeliveryRow) -> Key:
    return row.webhook, row.kind, row.exit_n


def _letter(row: DeliveryRow) -> DeliveryView:
    exit_n, revision_n = (row.exit_n, None) if row.kind == "exit" else (None, row.exit_n)
    error = row.last_error
    return DeliveryView(
        row.webhook, exit_n, row.attempt, DeliveryStatus(row.status), None, error, revision_n
    )


def _unreached(error: Exception) -> FetchError:
    """Why there is no answer; some errors say nothing but their name."""
    if isinstance(error, FetchError):
        return error
    return FetchError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _secrets(hook: WebhookRow, now: float) -> list[str]:
    """What signs a message: the secret, and the one before it for as long as that counts."""
    if hook.old_secret is None or hook.old_until is None or hook.old_until <= now:
        return [hook.secret]
    return [hook.secret, hook.old_secret]


def _view(row: WebhookRow, secret: str | None = None) -> WebhookView:
    kept = row.id, row.stream, row.url, row.created_at
    return WebhookView(*kept, active=True, secret=secret, old_secret_until=row.old_until)
