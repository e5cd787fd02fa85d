"""Webhooks: exits sent out, signed by the Standard Webhooks convention, retried, never lost.

A delivery is a row that is written in the same transaction as the exit, so an exit that is on
disk will be sent, even if the server dies in between; the receiver may see it twice, under the
same `webhook-id`. After a failure it is tried again with exponential back-off and jitter, up to
`webhook_attempts` times, and is then put on the list of the dead, from which it can be sent again.

Each webhook has its own queue and its own few senders, so one that never answers holds up no
other; it rests for a while after each silence, and is then tried with one message.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import logging
import random
from collections import Counter, deque
from dataclasses import asdict
from typing import Any, Final

from venire.errors import FetchError, InputError, NotFound, StoreError
from venire.service.hub import Hub
from venire.service.signing import headers, shown
from venire.service.targets import resolve
from venire.service.telling import exit_view
from venire.service.tokens import new_id, new_secret
from venire.service.views import DeliveryView, WebhookView
from venire.storage import AddWebhook, DeliveryRow, RemoveWebhook, UpdateDelivery, WebhookRow
from venire.storage.contents import compact

__all__ = ["Webhooks", "backoff"]

#: So many messages are on their way to one webhook at once, and so many to all.
AT_ONCE, IN_ALL = 4, 200

#: A message waits at most so long for its next attempt, and the list is looked at so often.
LONGEST, NAP = 3600.0, 1.0

#: A webhook that did not answer rests at most so long.
REST: Final = 60.0

#: So many pending deliveries of a webhook are looked at, the longest overdue first, ...
PENDING: Final = 1000

#: ... whatever their time: that is kept on the monotonic clock.
EVER: Final = 1e15

_log = logging.getLogger("venire.service")


def backoff(first: float, attempt: int, jitter: float) -> float:
    """Seconds before the next attempt: doubling, with a jitter between 0 and 1 of half of it.

    >>> [backoff(2.0, attempt, 0.5) for attempt in (1, 2, 3, 4)]
    [1.5, 3.0, 6.0, 12.0]
    """
    return min(first * 2.0 ** (attempt - 1), LONGEST) * (0.5 + jitter / 2)


class Webhooks:
    """Where exits are sent, and what became of it."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._due: dict[tuple[str, int], float] = {}  # on the monotonic clock
        self._queues: dict[str, deque[DeliveryRow]] = {}
        self._senders: Counter[str] = Counter()
        self._busy: set[tuple[str, int]] = set()
        self._ended: set[tuple[str, int]] = set()  # since the store was last read
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

    async def add(self, stream: str, url: str) -> WebhookView:
        """Send this stream's exits there; the view has the secret, this once."""
        await self._hub.live(stream)
        try:
            await resolve(url, self._hub.settings.allow_private_webhooks)
        except FetchError as error:
            raise InputError(str(error)) from None
        live = await self._hub.live(stream)
        secret, at = shown(new_secret()), self._hub.clock.wall()
        row = WebhookRow(new_id("wh"), stream, url, secret, at)
        live.hooks[row.id] = None
        await self._hub.write([AddWebhook(row)])
        return _view(row, secret)

    async def list(self, stream: str) -> builtins.list[WebhookView]:
        """The webhooks of a stream."""
        return [_view(row) for row in await self._rows(stream)]

    async def remove(self, stream: str, webhook: str) -> None:
        """Send nothing there any more."""
        await self._row(stream, webhook)
        live = await self._hub.live(stream)
        live.hooks.pop(webhook, None)
        self._queues.pop(webhook, deque()).clear()
        await self._hub.write([RemoveWebhook(webhook)])

    async def ping(self, stream: str, webhook: str) -> int:
        """Send a test message now; the status that came back. `FetchError` if none did."""
        row = await self._row(stream, webhook)
        body = {"type": "ping", "stream": stream, "timestamp": self._hub.clock.wall()}
        return await self._post(row, new_id("msg"), compact(body).encode())

    async def dead(self, stream: str, webhook: str) -> builtins.list[DeliveryView]:
        """The messages that were given up."""
        await self._row(stream, webhook)
        rows = await self._hub.read(self._hub.storage.deliveries, webhook, "dead")
        return [
            DeliveryView(row.webhook, row.exit_n, row.attempt, row.status, None, row.last_error)
            for row in rows
        ]

    async def redeliver(self, stream: str, webhook: str, exit_n: int | None = None) -> int:
        """Try given-up messages again, one or all; how many."""
        await self._row(stream, webhook)
        rows = await self._hub.read(self._hub.storage.deliveries, webhook, "dead")
        again = [row for row in rows if exit_n in (None, row.exit_n)]
        if exit_n is not None and not again:
            raise NotFound("dead delivery", str(exit_n))
        at = self._hub.clock.wall()
        await self._hub.write(
            [UpdateDelivery(row._replace(status="pending", attempt=0, next_at=at)) for row in again]
        )
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
            hooks = await hub.read(hub.storage.webhooks, None)
            known = {hook.id for hook in hooks}
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
        now = self._hub.clock.monotonic()
        for row in rows:
            key = row.webhook, row.exit_n
            if key not in self._busy and key not in self._ended and self._due.get(key, now) <= now:
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
        key = row.webhook, row.exit_n
        self._busy.add(key)
        try:
            error = await self._deliver(hook, row)
            with contextlib.suppress(StoreError):  # it is sent again: at least once is promised
                await self._hub.write([UpdateDelivery(self._tried(row, error))])
        finally:
            self._busy.discard(key)
            self._ended.add(key)

    def _failures(self, hook: str) -> int:
        return self._silent.get(hook, (0, 0.0))[0]

    def _rests(self, hook: str) -> bool:
        return self._silent.get(hook, (0, 0.0))[1] > self._hub.clock.monotonic()

    def _heard(self, hook: str, answered: bool) -> None:
        """A webhook that answers is well; one that does not rests, longer each time."""
        if answered:
            self._silent.pop(hook, None)
        elif not self._rests(hook):  # several messages that went out together count once
            count = self._failures(hook) + 1
            first = self._hub.settings.webhook_first_delay_seconds
            pause = min(backoff(first, count, self._random.random()), REST)
            self._silent[hook] = count, self._hub.clock.monotonic() + pause

    def _tried(self, row: DeliveryRow, error: str | None) -> DeliveryRow:
        """A delivery after one more attempt."""
        attempt, settings = row.attempt + 1, self._hub.settings
        row = row._replace(attempt=attempt, last_error=error)
        self._due.pop((row.webhook, row.exit_n), None)
        if error is None:
            return row._replace(status="done")
        if attempt >= settings.webhook_attempts:
            return row._replace(status="dead")
        pause = backoff(settings.webhook_first_delay_seconds, attempt, self._random.random())
        self._due[row.webhook, row.exit_n] = self._hub.clock.monotonic() + pause
        return row._replace(next_at=self._hub.clock.wall() + pause)

    async def _deliver(self, hook: WebhookRow, row: DeliveryRow) -> str | None:
        """Send one exit; what went wrong, None if nothing did."""
        hub = self._hub
        items = await hub.read(hub.storage.exits, row.stream, row.exit_n - 1, 1)
        if not items or items[0].exit_n != row.exit_n:
            return "the exit is not in the store"
        body = {
            "type": "item.exit",
            "stream": row.stream,
            "timestamp": items[0].left_at or 0.0,
            "data": asdict(exit_view(items[0])),
        }
        try:
            message = f"msg_{row.webhook}_{row.exit_n}"
            status = await self._post(hook, message, compact(body).encode())
        except (FetchError, InputError) as error:
            self._heard(hook.id, answered=False)
            return str(error)
        self._heard(hook.id, answered=True)
        return None if 200 <= status < 300 else f"the answer was {status}"

    async def _post(self, hook: WebhookRow, message: str, body: bytes) -> int:
        """Send a message to where the URL points now; the status of the answer."""
        import httpx2

        timeout = self._hub.settings.webhook_timeout_seconds
        if self._client is None:
            self._client = httpx2.AsyncClient(
                follow_redirects=False,
                timeout=timeout,
                trust_env=False,
                limits=httpx2.Limits(max_keepalive_connections=0),  # one name, one connection
            )
        sent = headers(hook.secret, message, int(self._hub.clock.wall()), body)
        try:
            async with asyncio.timeout(timeout):  # for all of it: an answer may also come in drops
                target = await resolve(hook.url, self._hub.settings.allow_private_webhooks)
                sent["host"] = target.name
                extensions = {"sni_hostname": target.host} if target.scheme == "https" else None
                async with self._client.stream(
                    "POST", target.url, content=body, headers=sent, extensions=extensions
                ) as response:
                    return int(response.status_code)
        except (TimeoutError, httpx2.TimeoutException):
            raise FetchError(f"no answer within {timeout:g} s") from None
        except (httpx2.HTTPError, OSError) as error:
            raise _unreached(error) from None


def _unreached(error: Exception) -> FetchError:
    """Why there is no answer; some errors say nothing but their name."""
    if isinstance(error, FetchError):
        return error
    return FetchError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _view(row: WebhookRow, secret: str | None = None) -> WebhookView:
    return WebhookView(row.id, row.stream, row.url, row.created_at, True, secret)
