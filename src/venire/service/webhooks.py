"""Webhooks: exits sent out, signed by the Standard Webhooks convention, retried, never lost."""

from __future__ import annotations

import builtins

from venire.service.views import DeliveryView, WebhookView

__all__ = ["Webhooks"]


class Webhooks:
    """Where exits are sent, and what became of it."""

    async def add(self, stream: str, url: str) -> WebhookView:
        """Send this stream's exits there; the view has the secret, this once."""
        raise NotImplementedError

    async def list(self, stream: str) -> list[WebhookView]:
        """The webhooks of a stream."""
        raise NotImplementedError

    async def remove(self, stream: str, webhook: str) -> None:
        """Send nothing there any more."""
        raise NotImplementedError

    async def ping(self, stream: str, webhook: str) -> int:
        """Send a test message now; the status that came back. `FetchError` if none did."""
        raise NotImplementedError

    async def dead(self, stream: str, webhook: str) -> list[DeliveryView]:
        """The messages that were given up."""
        raise NotImplementedError

    async def redeliver(self, stream: str, webhook: str, exit_n: int | None = None) -> int:
        """Try given-up messages again, one or all; how many."""
        raise NotImplementedError
