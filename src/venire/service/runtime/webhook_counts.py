"""What becomes of the messages to each webhook: counted for the metrics, and told in the log.

The log has a line when a webhook begins to fail, with the cause, one when it takes messages again,
and one for every message that is given up. The address is left out: it may hold a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace

from venire.model import DeliveryStatus
from venire.storage import DeliveryRow, WebhookRow

__all__ = ["Tallies", "Tally"]

_log = logging.getLogger("venire.service")


@dataclass(slots=True)
class Tally:
    """The messages to one webhook since the server started, and those that the store holds.

    `failing` counts the failures since the last success, `since` is when the first of them was,
    on the monotonic clock.
    """

    webhook: str
    stream: str
    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    failing: int = 0
    since: float = 0.0
    pending: int | None = None
    dead: int | None = None


class Tallies:
    """The tallies of all webhooks.

    >>> tallies = Tallies()
    >>> hook = WebhookRow("wh_1", "posts", "https://example.org", "whsec_", 0.0)
    >>> tallies.delivered(hook, 0.0)
    >>> [tally.delivered for tally in tallies.all({"wh_1": {"pending": 2, "dead": 1}})]
    [1]
    """

    def __init__(self) -> None:
        self._of: dict[str, Tally] = {}

    def of(self, hook: WebhookRow) -> Tally:
        """The tally of one webhook."""
        return self._of.setdefault(hook.id, Tally(hook.id, hook.stream))

    def keep(self, hooks: Collection[str]) -> None:
        """Forget those that were removed."""
        self._of = {id: tally for id, tally in self._of.items() if id in hooks}

    def all(self, counts: dict[str, dict[str, int]]) -> list[Tally]:
        """All of them, with what the store counts for each, where it was asked."""
        return [
            replace(
                tally, pending=held.get(DeliveryStatus.PENDING), dead=held.get(DeliveryStatus.DEAD)
            )
            for tally, held in ((self._of[id], counts.get(id, {})) for id in sorted(self._of))
        ]

    def delivered(self, hook: WebhookRow, now: float) -> None:
        """A message was taken."""
        tally = self.of(hook)
        tally.delivered += 1
        if tally.failing:
            _log.info(
                "webhook %s of stream %r takes messages again, after %d failures in %.0f s",
                hook.id, hook.stream, tally.failing, now - tally.since,
            )  # fmt: skip
            tally.failing = 0

    def failed(self, hook: WebhookRow, row: DeliveryRow, now: float) -> None:
        """A message was not taken; `row` says why, and whether it is given up."""
        tally = self.of(hook)
        tally.failed += 1
        tally.failing += 1
        if tally.failing == 1:
            tally.since = now
            _log.warning(
                "webhook %s of stream %r fails: %s (attempt %d for %s %d)",
                hook.id, hook.stream, row.last_error, row.attempt, row.kind, row.exit_n,
            )  # fmt: skip
        if row.status == DeliveryStatus.DEAD:
            tally.given_up += 1
            _log.error(
                "webhook %s of stream %r: %s %d is given up after %d attempts: %s; redeliver "
                "sends it again",
                hook.id, hook.stream, row.kind, row.exit_n, row.attempt, row.last_error,
            )  # fmt: skip
