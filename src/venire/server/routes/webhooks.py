"""Webhooks for exits and revisions, and their dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import Path, Response

from venire.server.admin_messages import DeliveryView, WebhookView
from venire.server.edge.access import Caller
from venire.server.edge.bodies import RedeliverBody, SecretBody, WebhookBody
from venire.server.edge.guard import Gate
from venire.server.edge.parameters import Stream, serves

USUAL: Final = SecretBody()
ALL_DEAD: Final = RedeliverBody()
Webhook = Annotated[str, Path(description="The id of the webhook.")]


class WebhookRoutes:
    """Management of webhooks, for operators."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._hooks = gate.service.webhooks

    @serves("webhooks", "webhooks", 404, 422)
    async def list(self, stream: Stream) -> Sequence[WebhookView]:
        """The webhooks of a stream."""
        return await self._hooks.list(stream)

    @serves("add_webhook", "webhooks", 404, 409, 413, 415, 422, ok=201,
            text="Created; the secret is shown only once.",
            example={"url": "https://example.org/exits"})  # fmt: skip
    async def create(self, who: Caller, stream: Stream, asked: WebhookBody) -> WebhookView:
        """Send exits and revisions to an address, signed as Standard Webhooks."""
        return await self._hooks.add(stream, asked.url, who.actor, asked.format)

    @serves("remove_webhook", "webhooks", 404, 422, ok=204)
    async def remove(self, who: Caller, stream: Stream, webhook: Webhook) -> Response:
        """Remove a webhook."""
        await self._hooks.remove(stream, webhook, who.actor)
        return Response(status_code=204)

    @serves("ping_webhook", "webhooks", 404, 422, 502)
    async def ping(self, stream: Stream, webhook: Webhook) -> Any:
        """Send a test message now, and return the status of the answer."""
        return {"status": await self._hooks.ping(stream, webhook)}

    @serves("rotate_webhook", "webhooks", 404, 413, 415, 422,
            text="The new secret, shown only once.", example={"keep_seconds": 3600})  # fmt: skip
    async def rotate(
        self, who: Caller, stream: Stream, webhook: Webhook, asked: SecretBody = USUAL
    ) -> WebhookView:
        """Rotate the secret; messages are signed with the old one as well for a while."""
        return await self._hooks.rotate(stream, webhook, asked.keep_seconds, who.actor)

    @serves("dead_letters", "webhooks", 404, 422)
    async def dead(self, stream: Stream, webhook: Webhook) -> Sequence[DeliveryView]:
        """The dead-lettered messages, and why they failed."""
        return await self._hooks.dead(stream, webhook)

    @serves("redeliver", "webhooks", 404, 413, 415, 422,
            text="How many are retried.", example={"exit_n": 7})  # fmt: skip
    async def redeliver(
        self, who: Caller, stream: Stream, webhook: Webhook, which: RedeliverBody = ALL_DEAD
    ) -> Any:
        """Retry dead-lettered messages, one or all."""
        again = await self._hooks.redeliver(
            stream, webhook, which.exit_n, which.revision_n, who.actor
        )
        return {"redelivered": again}
