"""Sending pending deliveries to webhooks, at least once, signed as Standard Webhooks.

A delivery is a row that is written in the same transaction as the exit, so an exit that is on disk
will be sent even if the server crashes in between; the receiver may see it twice, under the same
`webhook-id`. After a failure it is retried with exponential backoff and jitter for
`webhook_retry_seconds` (three days by default), at least `webhook_min_attempts` times, and is then
dead-lettered; dead letters can be redelivered. The numbers are settings: `webhook_...` in
`server.settings`, of which `venire serve` has `webhook_retry_hours`.

Each webhook has its own queue and a few senders, so one that never answers does not block the
others. After a timeout, a 5xx or a 429 a webhook is paused, with backoff and for at least as long
as Retry-After asks, and is then probed with one message.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from venire.errors import FetchError, InputError, StoreError
from venire.model import DeliveryStatus
from venire.server.admin_messages import AlarmView
from venire.server.messages import ExitView, RevisionView
from venire.server.reports.event_json import alarm_view, exit_view, revision_view
from venire.server.runtime.health import Tallies
from venire.server.store import DeliveryRow, UpdateDelivery, WebhookRow
from venire.server.store.contents import compact
from venire.server.webhooks.posting import MAX_RETRY_AFTER, Poster, format_of, text_of
from venire.tools.http import doubled

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime


#: The longest backoff between two attempts, in seconds; `MAX_RETRY_AFTER` is what may be asked for.
MAX_BACKOFF: Final = 3600.0

#: Concurrent messages to one webhook, and to all of them.
MAX_PER_WEBHOOK, MAX_CONCURRENT = 4, 200

#: Seconds between two polls for due deliveries.
POLL_SECONDS = 1.0

#: The longest pause of a failing webhook in seconds, unless Retry-After asks for more.
MAX_PAUSE: Final = 60.0

#: How many pending deliveries of a webhook are read at once, the earliest due first. Those that are
#: not due yet are read too: `Deliveries` keeps on the monotonic clock when each is to be sent.
PENDING_PAGE: Final = 1000

#: What stands before the number of an exit, a revision or an alarm in the id of its message.
_ID_LETTERS: Final = {"exit": "", "revision": "r", "alarm": "a"}

#: A message: its webhook, its kind, and the number of the exit, revision or alarm.
Key: TypeAlias = tuple[str, str, int]

#: Client errors that concern the receiver as a whole rather than the message.
_UNWELL: Final = frozenset({408, 425, 429})

_log = logging.getLogger("venire.service")


class Failure(NamedTuple):
    """Why a message was not delivered.

    `unwell`: the receiver as a whole is failing; `wait` is how many seconds it asked for.
    """

    why: str
    unwell: bool
    wait: float = 0.0

    @classmethod
    def of(cls, status: int, wait: float) -> Failure | None:
        """The failure that a status means; None for success.

        >>> Failure.of(204, 0.0) is None, Failure.of(503, 30.0), Failure.of(404, 0.0).unwell
        (True, Failure(why='HTTP status 503', unwell=True, wait=30.0), False)
        """
        if 200 <= status < 300:
            return None
        return cls(f"HTTP status {status}", status >= 500 or status in _UNWELL, wait)


def backoff(first: float, attempt: int, jitter: float) -> float:
    """Seconds before the next attempt: doubling, half of it fixed and half scaled by `jitter`.

    >>> [backoff(2.0, attempt, 0.5) for attempt in (1, 2, 3, 4)]
    [1.5, 3.0, 6.0, 12.0]
    >>> backoff(2.0, 5000, 1.0)
    3600.0
    """
    return doubled(first, attempt, MAX_BACKOFF) * (0.5 + jitter / 2)


def after_failure(
    row: DeliveryRow, why: str, pause: float, now: float, *, attempts: int, seconds: float
) -> DeliveryRow:
    """A delivery after one more failure: pending for `pause` seconds, or dead-lettered.

    It is dead-lettered after `seconds` of failing, but not before `attempts` attempts: the server
    may have been off for days, or its clock may have been wrong.

    >>> row = DeliveryRow(webhook="wh_1", stream="posts", exit_n=7, attempt=0, next_at=0.0)
    >>> for now in (0.0, 90.0, 100.0):
    ...     row = after_failure(row, "no answer", 5.0, now, attempts=2, seconds=100.0)
    ...     print(row.attempt, row.status, row.next_at)
    1 pending 5.0
    2 pending 95.0
    3 dead 95.0
    """
    since = now if row.failing_since is None else row.failing_since
    row = row._replace(attempt=row.attempt + 1, last_error=why, failing_since=since)
    if row.attempt >= attempts and now - since >= seconds:
        return row._replace(status=DeliveryStatus.DEAD)
    return row._replace(next_at=now + pause)


def wait_of(row: DeliveryRow, now: float) -> float:
    """How long a pending delivery waits after a restart: until it is due, if it was tried before.

    The wall clock may have been set meanwhile, so the wait is capped.

    >>> row = DeliveryRow(webhook="wh_1", stream="posts", exit_n=7, attempt=3, next_at=60.0)
    >>> wait_of(row, 50.0)
    10.0
    """
    if row.attempt == 0 or not math.isfinite(row.next_at):
        return 0.0
    return min(max(row.next_at - now, 0.0), MAX_RETRY_AFTER)


class Deliveries:
    """Sends pending deliveries; `tallies` counts the outcomes."""

    def __init__(self, runtime: Runtime, poster: Poster) -> None:
        self._runtime, self._poster, self.tallies = runtime, poster, Tallies()
        self._hooks: dict[str, WebhookRow] = {}  # as last read, or changed since
        self._due: dict[Key, float] = {}  # when messages are retried, on the monotonic clock
        self._queues: dict[str, deque[DeliveryRow]] = {}
        self._senders: Counter[str] = Counter()
        self._in_flight: set[Key] = set()
        self._attempted: set[Key] = set()  # since pending deliveries were last read
        self._pauses: dict[str, tuple[int, float]] = {}  # failures in a row, and paused until
        self._lock = asyncio.Lock()
        self._random = random.Random()

    def start(self) -> None:
        """Send due deliveries until the service stops."""
        self._runtime.spawn(self._send_forever())

    def update(self, hook: WebhookRow) -> None:
        self._hooks[hook.id] = hook

    def unpause(self, hook: str) -> None:
        self._pauses.pop(hook, None)

    def remove(self, hook: str) -> None:
        self._queues.pop(hook, deque()).clear()

    async def _send_forever(self) -> None:
        while True:
            try:
                await self.send_due()
            except StoreError:
                pass  # the store is down: retry later
            except Exception:
                _log.exception("sending webhooks failed; retrying")
            await asyncio.sleep(POLL_SECONDS)

    async def send_due(self) -> list[asyncio.Task[None]]:
        """Start sending every delivery that is due."""
        runtime = self._runtime
        if not any(live.hooks for live in runtime.loaded()):
            self._queues.clear()  # another server may send them by now
            return []
        async with self._lock:
            rows = await runtime.read(runtime.storage.webhooks, None)
            hooks = [hook for hook in rows if self._is_ours(hook)]
            known = self._hooks = {hook.id: hook for hook in hooks}
            self._due = {key: at for key, at in self._due.items() if key[0] in known}
            self._pauses = {hook: pause for hook, pause in self._pauses.items() if hook in known}
            self._queues = {hook: queue for hook, queue in self._queues.items() if hook in known}
            tasks = []
            for hook in sorted(hooks, key=lambda hook: self._failures(hook.id)):
                if not self._paused(hook.id):
                    await self._refill(hook.id)
                    tasks += self._send_more(hook)
            return tasks

    def _is_ours(self, hook: WebhookRow) -> bool:
        """Whether this server sends to a webhook: it does if it owns the stream."""
        runtime = self._runtime
        return hook.stream not in runtime.deleting and runtime.sharing.holds(hook.stream)

    async def _refill(self, hook: str) -> None:
        """Fill a webhook's queue with due deliveries, if it is empty."""
        queue = self._queues.setdefault(hook, deque())
        if queue:
            return
        self._attempted.clear()
        rows = await self._runtime.read(
            self._runtime.storage.pending_deliveries, hook, PENDING_PAGE
        )
        now, wall = self._runtime.clock.monotonic(), self._runtime.clock.wall()
        for row in rows:
            key = _key(row)
            if key in self._in_flight or key in self._attempted:
                continue
            if key not in self._due and row.attempt:
                self._due[key] = now + wait_of(row, wall)
            if self._due.get(key, now) <= now:
                queue.append(row)

    def _send_more(self, hook: WebhookRow) -> list[asyncio.Task[None]]:
        """Start as many senders as the limits allow."""
        limit = 1 if self._failures(hook.id) else MAX_PER_WEBHOOK
        room = min(limit - self._senders[hook.id], MAX_CONCURRENT - self._senders.total())
        queue = self._queues.get(hook.id, deque())  # it may just have been removed
        tasks = []
        for _ in range(min(room, len(queue))):
            self._senders[hook.id] += 1
            tasks.append(self._runtime.spawn(self._send(hook, queue)))
        return tasks

    async def _send(self, hook: WebhookRow, queue: deque[DeliveryRow]) -> None:
        """Send queued messages until the queue is empty or the webhook is paused."""
        try:
            while queue and not self._paused(hook.id) and self._is_ours(hook):
                await self._attempt(hook, queue.popleft())
        finally:
            self._senders -= Counter([hook.id])

    async def _attempt(self, hook: WebhookRow, row: DeliveryRow) -> None:
        """Send one message, and write down what became of it."""
        key = _key(row)
        self._in_flight.add(key)
        try:
            if row.kind == "exit" and format_of(hook.url) == "text":
                # people are told of alarms and revisions; nobody reads a message for each exit
                done = row._replace(status=DeliveryStatus.DONE)
                with contextlib.suppress(StoreError):
                    await self._runtime.write([UpdateDelivery(done)])
                return
            failure = await self._deliver(self._hooks.get(hook.id, hook), row)
            row = self._after_attempt(row, failure)
            with contextlib.suppress(StoreError):  # then it is sent again: at least once
                await self._runtime.write([UpdateDelivery(row)])
            if failure is None:
                self.tallies.delivered(hook, self._runtime.clock.monotonic())
            else:
                self.tallies.failed(hook, row, self._runtime.clock.monotonic())
        finally:
            self._in_flight.discard(key)
            self._attempted.add(key)

    def _failures(self, hook: str) -> int:
        return self._pauses.get(hook, (0, 0.0))[0]

    def _paused(self, hook: str) -> bool:
        return self._pauses.get(hook, (0, 0.0))[1] > self._runtime.clock.monotonic()

    def _update_pause(self, hook: str, failure: Failure | None) -> None:
        """Pause a failing webhook, longer each time; clear the pause of one that answers."""
        if failure is None or not failure.unwell:
            self._pauses.pop(hook, None)
            return
        now, (count, until) = self._runtime.clock.monotonic(), self._pauses.get(hook, (0, 0.0))
        if until <= now:  # messages sent together count as one failure
            count += 1
        pause = min(self._backoff(count), MAX_PAUSE)
        self._pauses[hook] = count, max(until, now + max(pause, failure.wait))

    def _backoff(self, attempt: int) -> float:
        first = self._runtime.settings.webhook_first_delay_seconds
        return backoff(first, attempt, self._random.random())

    def _after_attempt(self, row: DeliveryRow, failure: Failure | None) -> DeliveryRow:
        """A delivery after one more attempt; one that is to be retried gets a time for it."""
        key, settings, clock = _key(row), self._runtime.settings, self._runtime.clock
        self._due.pop(key, None)
        if failure is None:
            return row._replace(
                attempt=row.attempt + 1, last_error=None, status=DeliveryStatus.DONE
            )
        pause = max(self._backoff(row.attempt + 1), failure.wait)
        row = after_failure(
            row,
            failure.why,
            pause,
            clock.wall(),
            attempts=settings.webhook_min_attempts,
            seconds=settings.webhook_retry_seconds,
        )
        if row.status == DeliveryStatus.PENDING:
            self._due[key] = clock.monotonic() + pause
        return row

    async def _deliver(self, hook: WebhookRow, row: DeliveryRow) -> Failure | None:
        """Send one exit, revision or alarm; the failure, or None on success."""
        subject = await self._subject(row)
        if subject is None:
            return Failure(f"the {row.kind} is not in the store", unwell=False)
        body: dict[str, object] = {"text": text_of(row.stream, subject)}
        if format_of(hook.url) == "json":
            head = {"type": _type_of(subject), "stream": row.stream, "timestamp": subject.at}
            body = {**head, "data": asdict(subject)}
        message = f"msg_{row.webhook}_{_ID_LETTERS[row.kind]}{row.exit_n}"
        try:
            failure = Failure.of(*await self._poster.post(hook, message, compact(body).encode()))
        except (FetchError, InputError) as error:
            failure = Failure(str(error), unwell=True)
        self._update_pause(hook.id, failure)
        return failure

    async def _subject(self, row: DeliveryRow) -> ExitView | RevisionView | AlarmView | None:
        storage = self._runtime.storage
        readers: dict[str, tuple[Any, Callable[[Any], ExitView | RevisionView | AlarmView]]] = {
            "exit": (storage.exits, exit_view),
            "revision": (storage.revisions, revision_view),
            "alarm": (storage.alarms, alarm_view),
        }
        method, view = readers[row.kind]
        rows = await self._runtime.read(method, row.stream, row.exit_n - 1, 1)
        subject = view(rows[0]) if rows else None
        return subject if subject is not None and subject.n == row.exit_n else None


def _type_of(subject: ExitView | RevisionView | AlarmView) -> str:
    if isinstance(subject, AlarmView):
        return "alarm.raised" if subject.raised else "alarm.cleared"
    return "item.exit" if isinstance(subject, ExitView) else "item.revised"


def _key(row: DeliveryRow) -> Key:
    return row.webhook, row.kind, row.exit_n
