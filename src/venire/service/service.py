"""The service: every verb that a client may use, without HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from venire.service.clock import Clock
from venire.service.settings import ServiceSettings, StreamSettings
from venire.service.views import (
    Added,
    Answer,
    EventView,
    ExitView,
    Explanation,
    Insights,
    ItemIn,
    ItemView,
    LabelerView,
    LabelIn,
    Lease,
    Nothing,
    Outcome,
    SettingsVersion,
    StreamView,
)

if TYPE_CHECKING:
    from venire.service.keys import Keyring
    from venire.service.webhooks import Webhooks

__all__ = ["Service"]


class Service:
    """Streams, work, labels and verdicts over one store.

    All methods must be called on one asyncio loop. They raise `NotFound`, `Conflict`,
    `InputError`, `StateError`, `TooMuch` and, where the store takes nothing for now,
    `StoreDown`, after which the same call may be made again.
    """

    keys: Keyring
    webhooks: Webhooks

    def __init__(
        self, storage: Any, clock: Clock | None = None, settings: ServiceSettings | None = None
    ) -> None:
        raise NotImplementedError

    async def start(self) -> str | None:
        """Load every stream and begin to serve; the token of the first admin key, if made now."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Finish what was begun, write snapshots and close."""
        raise NotImplementedError

    @property
    def up(self) -> bool:
        """Whether the store takes what is written."""
        raise NotImplementedError

    # streams

    async def create_stream(self, name: str, settings: StreamSettings, actor: str) -> StreamView:
        """Make a stream; the same name with the same settings again is no error."""
        raise NotImplementedError

    async def stream(self, name: str) -> StreamView:
        """A stream as it is now."""
        raise NotImplementedError

    async def streams(self) -> list[StreamView]:
        """All streams, by name."""
        raise NotImplementedError

    async def change_stream(self, name: str, changes: dict[str, Any], actor: str) -> StreamView:
        """Change some of the settings, live; the change is a new version."""
        raise NotImplementedError

    async def settings_history(self, name: str) -> list[SettingsVersion]:
        """Every version of a stream's settings, the oldest first."""
        raise NotImplementedError

    async def pause(self, name: str, actor: str) -> StreamView:
        """No work is handed out and no slot passes; labels and items are still taken."""
        raise NotImplementedError

    async def resume(self, name: str, actor: str) -> StreamView:
        """Go on after a pause; a closed stream stays closed."""
        raise NotImplementedError

    async def close(self, name: str, actor: str) -> StreamView:
        """Drain: no new items; those that are there are finished."""
        raise NotImplementedError

    # items

    async def add_items(self, stream: str, items: Sequence[ItemIn]) -> list[Added]:
        """Items enter. An id that is there with the same content is no error, other content is."""
        raise NotImplementedError

    async def withdraw(self, stream: str, item: str) -> ItemView:
        """Take an item out without a verdict; withdrawn twice is withdrawn."""
        raise NotImplementedError

    async def item(self, stream: str, item: str) -> ItemView:
        """An item with its labels, its posterior and its verdict."""
        raise NotImplementedError

    async def explain(self, stream: str, item: str) -> Explanation:
        """Why the item was given to whom, and why it left; recomputed from the log."""
        raise NotImplementedError

    # work

    async def next(self, stream: str, labeler: str, wait: float = 0.0) -> Lease | Nothing:
        """Ask for work, and wait so many seconds for it.

        Cancel the call when the client has gone: it is then given nothing.
        """
        raise NotImplementedError

    async def label(self, token: str, said: str, labeler: str | None = None) -> Answer:
        """Answer a lease. Again the same: the first answer. Another label: `Conflict`.

        With `labeler`, the lease must be that labeler's, or there is no such lease.
        """
        raise NotImplementedError

    async def heartbeat(self, token: str, labeler: str | None = None) -> float:
        """Renew a lease; when it now ends. `StateError` if it is over."""
        raise NotImplementedError

    async def release(self, token: str, bar: bool = False, labeler: str | None = None) -> None:
        """Give work back; with `bar` the labeler does not get the item again."""
        raise NotImplementedError

    async def add_labels(
        self, stream: str, labels: Sequence[LabelIn | tuple[str, str, str]]
    ) -> list[Outcome]:
        """Labels in bulk and unasked, (item, labeler, said); what became of each."""
        raise NotImplementedError

    async def held(self, stream: str, labeler: str) -> list[Lease]:
        """What a labeler holds, with new tokens: for one that came back without its own."""
        raise NotImplementedError

    # reading

    async def exits(
        self, stream: str, after: int = 0, wait: float = 0.0, limit: int = 1000
    ) -> list[ExitView]:
        """The exits after a cursor, the earliest first; waits for one if there is none."""
        raise NotImplementedError

    def events(self, stream: str, after: int | None = None) -> AsyncIterator[EventView]:
        """The log after an event, as it grows; from now on if `after` is None."""
        raise NotImplementedError

    async def labelers(self, stream: str) -> list[LabelerView]:
        """The panel with what was learned of it."""
        raise NotImplementedError

    async def insights(self, stream: str) -> Insights:
        """The figures of a stream."""
        raise NotImplementedError
