"""The webhooks of a stream: add, rotate, ping and remove them, and redeliver dead letters."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from typing import TYPE_CHECKING

from venire.errors import FetchError, InputError, NotFound, StateError, StoreError
from venire.model import DeliveryStatus
from venire.server.actors import PROGRAM, Actor, audit_row
from venire.server.admin_messages import DeliveryView, WebhookView
from venire.server.store import (
    Change,
    DeliveryRow,
    Insert,
    RemoveWebhook,
    RotateSecret,
    UpdateDelivery,
    WebhookRow,
)
from venire.server.store.contents import compact
from venire.server.stream.change_batch import Batch
from venire.server.tokens import new_id, new_secret
from venire.server.webhooks.deliveries import Deliveries
from venire.server.webhooks.posting import (
    PRIVATE,
    Format,
    Poster,
    address_of,
    format_of,
    kept_as,
    shown,
    text_of,
)
from venire.tools.untrusted import resolve

if TYPE_CHECKING:
    from venire.server.runtime.health import Tally
    from venire.server.runtime.runtime import Runtime


class Webhooks:
    """The webhooks of a service."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._poster = Poster(runtime.settings, runtime.clock)
        self.deliveries = Deliveries(runtime, self._poster)

    async def start(self) -> None:
        self.deliveries.start()

    async def stop(self) -> None:
        """Close the connections; what is pending is sent after the next start."""
        await self._poster.close()

    async def add(
        self, stream: str, url: str, actor: Actor | str = PROGRAM, format: Format = "json"
    ) -> WebhookView:
        """Register a webhook for a stream's exits and revisions; the view has the secret, once."""
        await self._runtime.live_stream(stream)
        try:
            await resolve(url, self._runtime.settings.allow_private_webhooks, PRIVATE)
        except FetchError as error:
            raise InputError(str(error)) from None
        live = await self._runtime.live_stream(stream)
        secret, at = shown(new_secret()), self._runtime.clock.wall()
        row = WebhookRow(
            id=new_id("wh"), stream=stream, url=kept_as(url, format), secret=secret, created_at=at
        )
        live.hooks[row.id] = None
        entry = audit_row(actor, at, "webhook.add", stream, row.id, url=url)
        await self._runtime.write([Insert([row]), Insert([entry])])
        return _webhook_view(row, secret)

    async def list(self, stream: str) -> builtins.list[WebhookView]:
        return [_webhook_view(row) for row in await self._rows(stream)]

    async def rotate(
        self, stream: str, webhook: str, keep_seconds: float, actor: Actor | str = PROGRAM
    ) -> WebhookView:
        """Give a webhook a new secret; the old one signs as well for `keep_seconds`."""
        row = await self._row(stream, webhook)
        secret, at = shown(new_secret()), self._runtime.clock.wall()
        until = at + keep_seconds
        entry = audit_row(actor, at, "webhook.rotate", stream, webhook, old_secret_until=until)
        await self._runtime.write([RotateSecret(webhook, secret, until), Insert([entry])])
        row = row._replace(secret=secret, old_secret=row.secret, old_until=until)
        self.deliveries.update(row)  # queued messages are signed with the new secret too
        return _webhook_view(row, secret)

    async def tallies(self, patience: float | None = None) -> builtins.list[Tally]:
        """Message counts of each webhook; pending and dead are None if the store is down."""
        counts: dict[str, dict[str, int]] = {}
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(patience):
                await self._count(counts)
        return self.deliveries.tallies.all(counts)

    async def _count(self, counts: dict[str, dict[str, int]]) -> None:
        runtime, tallies = self._runtime, self.deliveries.tallies
        rows = await runtime.read(runtime.storage.webhooks, None)
        hooks = [hook for hook in rows if runtime.sharing.holds(hook.stream)]
        tallies.keep({tallies.of(hook).webhook for hook in hooks})
        for hook in hooks:
            counts[hook.id] = await runtime.read(runtime.storage.delivery_counts, hook.id)

    async def remove(self, stream: str, webhook: str, actor: Actor | str = PROGRAM) -> None:
        await self._row(stream, webhook)
        live = await self._runtime.live_stream(stream)
        if webhook in live.settings.routed_hooks:
            raise StateError(
                f"the setting routes of stream {stream!r} names webhook {webhook!r}: change that "
                "setting first"
            )
        live.hooks.pop(webhook, None)
        self.deliveries.remove(webhook)
        batch, at = Batch(), self._runtime.clock.wall()
        batch.last = [RemoveWebhook(webhook)]
        batch.audit = [audit_row(actor, at, "webhook.remove", stream, webhook)]
        await self._runtime.commit(live, batch)

    async def ping(self, stream: str, webhook: str) -> int:
        """Send a test message and return the HTTP status; `FetchError` if there is no answer."""
        row = await self._row(stream, webhook)
        body: dict[str, object] = {"text": text_of(stream, None)}
        if format_of(row.url) == "json":
            body = {"type": "ping", "stream": stream, "timestamp": self._runtime.clock.wall()}
        status, _ = await self._poster.post(row, new_id("msg"), compact(body).encode())
        if 200 <= status < 300:
            self.deliveries.unpause(webhook)  # it has recovered
        return status

    async def dead(self, stream: str, webhook: str) -> builtins.list[DeliveryView]:
        await self._row(stream, webhook)
        rows = await self._runtime.read(
            self._runtime.storage.deliveries, webhook, DeliveryStatus.DEAD
        )
        return [_delivery_view(row) for row in rows]

    async def redeliver(
        self,
        stream: str,
        webhook: str,
        exit_n: int | None = None,
        revision_n: int | None = None,
        actor: Actor | str = PROGRAM,
    ) -> int:
        """Retry dead letters, of an exit or a revision or all of them; how many."""
        await self._row(stream, webhook)
        rows = await self._runtime.read(
            self._runtime.storage.deliveries, webhook, DeliveryStatus.DEAD
        )
        wanted = {("exit", exit_n), ("revision", revision_n)} - {("exit", None), ("revision", None)}
        again = [row for row in rows if not wanted or (row.kind, row.exit_n) in wanted]
        if wanted and not again:
            raise NotFound("dead delivery", ", ".join(f"{kind} {n}" for kind, n in sorted(wanted)))
        at = self._runtime.clock.wall()
        changes: builtins.list[Change] = [
            UpdateDelivery(
                row._replace(
                    status=DeliveryStatus.PENDING, attempt=0, next_at=at, failing_since=None
                )
            )
            for row in again
        ]
        entry = audit_row(actor, at, "webhook.redeliver", stream, webhook, messages=len(again))
        await self._runtime.write([*changes, Insert([entry])] if again else [])
        self.deliveries.unpause(webhook)  # an explicit request does not wait for backoff
        return len(again)

    async def _rows(self, stream: str) -> builtins.list[WebhookRow]:
        await self._runtime.live_stream(stream)
        return await self._runtime.read_committed(self._runtime.storage.webhooks, stream)

    async def _row(self, stream: str, webhook: str) -> WebhookRow:
        found = next((row for row in await self._rows(stream) if row.id == webhook), None)
        if found is None:
            raise NotFound("webhook", webhook)
        return found


def _delivery_view(row: DeliveryRow) -> DeliveryView:
    number = {row.kind: row.exit_n}
    return DeliveryView(
        row.webhook,
        number.get("exit"),
        row.attempt,
        DeliveryStatus(row.status),
        None,
        row.last_error,
        number.get("revision"),
        number.get("alarm"),
    )


def _webhook_view(row: WebhookRow, secret: str | None = None) -> WebhookView:
    return WebhookView(
        row.id,
        row.stream,
        address_of(row.url),
        row.created_at,
        active=True,
        secret=secret,
        old_secret_until=row.old_until,
        format=format_of(row.url),
    )
