"""What a store in memory does about webhooks and their deliveries."""

from __future__ import annotations

from typing import Any

from venire.errors import StoreError
from venire.model import DeliveryStatus
from venire.storage import changes as c
from venire.storage.memory.audit import MemoryTrail
from venire.storage.rows import DeliveryRow, WebhookRow

__all__ = ["MemoryHooks"]


class MemoryHooks(MemoryTrail):
    """A part of `MemoryStorage`."""

    _webhooks: dict[str, WebhookRow]
    _deliveries: dict[tuple[str, str, int], DeliveryRow]

    def _of(self, tables: dict[str, dict[Any, Any]], stream: str) -> dict[Any, Any]:
        raise NotImplementedError

    # to write

    def _add_webhook(self, change: c.AddWebhook) -> None:
        self._of({}, change.row.stream)
        self._new(self._webhooks, change.row.id, change.row)

    def _rotate_secret(self, change: c.RotateSecret) -> None:
        old = self._webhooks.get(change.id)
        if old is not None:
            new = old._replace(
                secret=change.secret, old_secret=old.secret, old_until=change.old_until
            )
            self._put(self._webhooks, change.id, new)

    def _remove_webhook(self, change: c.RemoveWebhook) -> None:
        if change.id in self._webhooks:
            self._drop(self._webhooks, change.id)
        for key in [key for key in self._deliveries if key[0] == change.id]:
            self._drop(self._deliveries, key)

    def _add_deliveries(self, change: c.AddDeliveries) -> None:
        for row in change.rows:
            if row.webhook not in self._webhooks:
                raise StoreError(f"there is no webhook {row.webhook!r}")
            self._new(self._deliveries, (row.webhook, row.kind, row.exit_n), row)

    def _update_delivery(self, change: c.UpdateDelivery) -> None:
        key = change.row.webhook, change.row.kind, change.row.exit_n
        if key in self._deliveries:
            self._put(self._deliveries, key, change.row)

    # to read

    def webhooks(self, stream: str | None = None) -> list[WebhookRow]:
        """Webhooks."""
        found = self._sorted(self._webhooks, lambda row: stream in (None, row.stream))
        return sorted(found, key=lambda row: (row.created_at, row.id))

    def due_deliveries(
        self, webhook: str, now: float, limit: int | None = None
    ) -> list[DeliveryRow]:
        """Deliveries whose time has come."""

        def due(row: DeliveryRow) -> bool:
            return (
                row.status == DeliveryStatus.PENDING
                and row.next_at <= now
                and row.webhook == webhook
            )

        found = self._sorted(self._deliveries, due)
        return sorted(found, key=lambda row: (row.next_at, row.exit_n, row.kind))[:limit]

    def deliveries(self, webhook: str, status: str | None = None) -> list[DeliveryRow]:
        """Deliveries to a webhook."""

        def wanted(row: DeliveryRow) -> bool:
            return row.webhook == webhook and status in (None, row.status)

        return self._sorted(self._deliveries, wanted)
