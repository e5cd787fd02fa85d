"""API keys and the audit trail, webhooks, and the health of the server."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Path, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import StreamingResponse

from venire import __version__
from venire.errors import StoreDown
from venire.server.admin_messages import AuditView, DeliveryView, KeyView, NewKey, WebhookView
from venire.server.edge.bodies import (
    CSV,
    KeyBody,
    RedeliverBody,
    RotateBody,
    SecretBody,
    WebhookBody,
)
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Caller
from venire.server.edge.handlers import SLUG, Limit, Part, Stream, serves
from venire.tools.untrusted import harmless

#: Entries to read at once.
PAGE: Final = 1000

Key = Annotated[str, Path(description="The id of the key.")]
ROTATED: Final = RotateBody()
EXAMPLE: Final = {"name": "Ann's laptop", "role": "labeler", "labeler": "ann"}
After = Annotated[int, Query(description="Entries after this number.", ge=0, le=2**53)]
About = Annotated[str | None, Query(description="Only entries about this stream.", pattern=SLUG)]


class KeyRoutes(Part):
    """Management of keys, for operators, and who did what with them."""

    @serves("keys", "keys", text="All keys, including revoked ones, with their last use.")
    async def list(self) -> Sequence[KeyView]:
        """All keys, without their tokens."""
        return await self._service.keys.list()

    @serves("create_key", "keys", 409, ok=201,
            text="Created; the token is shown only once.", example=EXAMPLE)  # fmt: skip
    async def create(self, who: Caller, new: KeyBody) -> NewKey:
        """Create a key."""
        return await self._service.keys.create(new.name, new.role, new.labeler, who.actor, new.days)

    @serves("revoke_key", "keys", 409, text="The key is revoked.")
    async def revoke(self, who: Caller, key: Key) -> KeyView:
        """Revoke a key, effective at once."""
        return await self._service.keys.revoke(key, who.actor)

    @serves("rotate_key", "keys", 409, ok=201,
            text="The token is shown only once.", example={"overlap_hours": 1})  # fmt: skip
    async def rotate(self, who: Caller, key: Key, asked: RotateBody = ROTATED) -> NewKey:
        """Replace a key; the old one stays valid for a while."""
        return await self._service.keys.rotate(key, who.actor, asked.overlap_hours * 3600)

    @serves("me", "keys", text="The owner and the role of the key.")
    async def me(self, who: Caller) -> Caller:
        """The owner and the role of the caller's key."""
        return who

    @serves("audit", "operations", text="Audit entries, oldest first; `n` is the cursor.")
    async def audit(
        self, after: After = 0, limit: Limit = 1000, stream: About = None
    ) -> Sequence[AuditView]:
        """Who did what, when and with which key."""
        return await self._service.audit(after, limit, stream)

    @serves("export_audit", "operations", text="All entries as CSV, oldest first.", kind=CSV)
    async def export(self, stream: About = None) -> Response:
        """The audit trail as CSV with a header, all of it or of one stream."""
        first = await self._service.audit(0, PAGE, stream)
        headers = {"content-disposition": 'attachment; filename="audit.csv"'}
        pages = self._pages(first, stream)
        return StreamingResponse(pages, media_type="text/csv; charset=utf-8", headers=headers)

    async def _pages(self, rows: Sequence[AuditView], stream: str | None) -> AsyncIterator[str]:
        yield _csv([("n", "at", "actor", "key", "action", "stream", "subject", "details")])
        while rows:
            yield _csv([_line(row) for row in rows])
            rows = await self._service.audit(rows[-1].n, PAGE, stream)


def _line(row: AuditView) -> tuple[object, ...]:
    at = datetime.fromtimestamp(row.at, UTC).isoformat()
    details = json.dumps(row.details, ensure_ascii=False)
    return row.n, at, row.actor, row.key, row.action, row.stream, row.subject, details


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    r"""Rows as CSV; a text that a spreadsheet would take for a formula begins with a quote.

    >>> _csv([(1, "a, b", None, "=1+1")])
    '1,"a, b",,\'=1+1\r\n'
    """
    text = io.StringIO()
    csv.writer(text).writerows([harmless(value) for value in row] for row in rows)
    return text.getvalue()


REPLACED: Final = SecretBody()
ALL_DEAD: Final = RedeliverBody()
Webhook = Annotated[str, Path(description="The id of the webhook.")]


class WebhookRoutes(Part):
    """Management of webhooks, for operators."""

    @serves("webhooks", "webhooks")
    async def list(self, stream: Stream) -> Sequence[WebhookView]:
        """The webhooks of a stream."""
        return await self._service.webhooks.list(stream)

    @serves("add_webhook", "webhooks", 409, ok=201,
            text="Created; the secret is shown only once.",
            example={"url": "https://example.org/exits"})  # fmt: skip
    async def create(self, who: Caller, stream: Stream, asked: WebhookBody) -> WebhookView:
        """Send exits and revisions to an address, signed as Standard Webhooks."""
        return await self._service.webhooks.add(stream, asked.url, who.actor, asked.format)

    @serves("remove_webhook", "webhooks", ok=204)
    async def remove(self, who: Caller, stream: Stream, webhook: Webhook) -> Response:
        """Remove a webhook."""
        await self._service.webhooks.remove(stream, webhook, who.actor)
        return Response(status_code=204)

    @serves("ping_webhook", "webhooks", 502)
    async def ping(self, stream: Stream, webhook: Webhook) -> Any:
        """Send a test message now, and return the status of the answer."""
        return {"status": await self._service.webhooks.ping(stream, webhook)}

    @serves("rotate_webhook", "webhooks",
            text="The new secret, shown only once.", example={"keep_seconds": 3600})  # fmt: skip
    async def rotate(
        self, who: Caller, stream: Stream, webhook: Webhook, asked: SecretBody = REPLACED
    ) -> WebhookView:
        """Rotate the secret; messages are signed with the old one as well for a while."""
        return await self._service.webhooks.rotate(stream, webhook, asked.keep_seconds, who.actor)

    @serves("dead_letters", "webhooks")
    async def dead(self, stream: Stream, webhook: Webhook) -> Sequence[DeliveryView]:
        """The dead-lettered messages, and why they failed."""
        return await self._service.webhooks.dead(stream, webhook)

    @serves("redeliver", "webhooks", text="How many are retried.", example={"exit_n": 7})
    async def redeliver(
        self, who: Caller, stream: Stream, webhook: Webhook, which: RedeliverBody = ALL_DEAD
    ) -> Any:
        """Retry dead-lettered messages, one or all."""
        again = await self._service.webhooks.redeliver(
            stream, webhook, which.exit_n, which.revision_n, who.actor
        )
        return {"redelivered": again}


class HealthRoutes(Part):
    """For monitoring."""

    @serves("health", "operations")
    async def health(self) -> Any:
        """The process is alive; a standby is one that cannot write to the store.

        A member shares the store with other servers, and says how many streams it owns. All say
        how many streams are not loaded yet, and how many cannot be, if there are any.
        """
        service = self._gate.service
        if service.started and not service.up:
            return {"status": "ok", "role": "standby"}
        if self._gate.peers is None:
            return {"status": "ok", "role": "leader", **self._not_served()}
        owned = len(service.runtime.storage.claims())
        return {"status": "ok", "role": "member", "streams": owned, **self._not_served()}

    def _not_served(self) -> dict[str, int]:
        """How many streams are not loaded, by why."""
        service = self._gate.service
        counts = {"loading": service.loading, "set_aside": len(service.set_aside)}
        return {why: number for why, number in counts.items() if number}

    @serves("ready", "operations", 503)
    async def ready(self) -> Any:
        """Whether the server is ready: the store accepts writes, and it is not stopping.

        Streams may still be loading; a request has its stream loaded first.
        """
        if self._gate.stopping.is_set() or not self._gate.service.up:
            raise RequestError(
                503, "not_ready", "the store does not accept writes", hint="see the log"
            )
        return {"status": "ready", **self._not_served()}

    @serves("version", "operations")
    async def version(self) -> Any:
        """The version of the server."""
        return {"version": __version__, "api": "v1"}

    @serves("metrics", "operations", kind="text/plain",
            text="Metrics in the Prometheus text format.")  # fmt: skip
    async def metrics(self) -> Response:
        """The metrics of the server and of every stream.

        While the store is down, or slow, those of streams are left out.
        """
        service, insights = self._gate.service, []
        with contextlib.suppress(StoreDown, TimeoutError):
            async with asyncio.timeout(service.patience):
                insights = await service.overview()
        condition, aside = await service.condition(), len(service.set_aside)
        now = self._gate.waiting.now
        page = self._gate.metrics.page(insights, now, service.up, condition, aside, service.loading)
        return Response(page, media_type=CONTENT_TYPE_LATEST)
