"""The service: every verb that a client may use, without HTTP."""

from __future__ import annotations

import contextlib

from venire.service.clock import Clock, SystemClock
from venire.service.keys.keyring import Keyring
from venire.service.keys.sessions import Sessions
from venire.service.reports.skill_report import Skills
from venire.service.runtime.health import Condition
from venire.service.runtime.runtime import Hub
from venire.service.settings import ServiceSettings
from venire.service.verbs.deletion import EraseVerbs
from venire.service.verbs.labelling import WorkVerbs
from venire.service.verbs.reads import ReadingVerbs
from venire.service.verbs.streams import StreamVerbs
from venire.service.webhooks.deliveries import Webhooks
from venire.storage import Storage, WriterStats

__all__ = ["Service"]


class Service(StreamVerbs, WorkVerbs, ReadingVerbs, EraseVerbs):
    """Streams, work, labels and verdicts over one store.

    All methods must be called on one asyncio loop. They raise `NotFound`, `Conflict`,
    `InputError`, `StateError`, `TooMuch` and, where the store takes nothing for now,
    `StoreDown`, after which the same call may be made again.

    Examples
    --------
    >>> import asyncio
    >>> from venire.service import ItemIn, StreamSettings
    >>> from venire.storage import open_storage
    >>> async def day() -> None:
    ...     service = Service(open_storage("memory:"))
    ...     await service.start()
    ...     panel = [{"id": "ann", "competence": 0.9}]
    ...     settings = StreamSettings(classes=["spam", "ok"], panel=panel, learning="known")
    ...     await service.create_stream("posts", settings, actor="me")
    ...     await service.add_items("posts", [ItemIn("post-1", {"text": "Buy now"})])
    ...     lease = await service.next("posts", "ann")
    ...     print(lease.item, lease.payload)
    ...     answer = await service.label(lease.token, "spam")
    ...     print(answer.said, (await service.item("posts", "post-1")).verdict)
    ...     print(await service.next("posts", "ann"))
    ...     await service.stop()
    >>> asyncio.run(day())
    post-1 {'text': 'Buy now'}
    spam spam
    Nothing(reason='none_for_you')
    """

    def __init__(
        self, storage: Storage, clock: Clock | None = None, settings: ServiceSettings | None = None
    ) -> None:
        self.settings = settings or ServiceSettings()
        self.hub = Hub(storage, clock or SystemClock(), self.settings)
        self.keys, self.webhooks = Keyring(self.hub), Webhooks(self.hub)
        self.skills, self.sessions = Skills(self.hub), Sessions(self.hub, self.keys)
        self.started = False

    async def start(self) -> str | None:
        """Load every stream and begin to serve; the token of the first admin key, if made now."""
        await self.hub.start()
        await self.resume_deletions()
        await self.webhooks.start()
        first = await self.keys.start()
        await self.sessions.start()
        self.started = True
        return first

    async def stop(self) -> None:
        """Finish what was begun, write snapshots and close; also one that has not started whole."""
        if not self.hub.running:
            return
        self.started = False
        await self.webhooks.stop()
        await self.keys.stop()
        await self.hub.stop()

    @property
    def up(self) -> bool:
        """Whether all is well: the store takes what is written, and time passes."""
        return self.started and self.hub.ticking and self.hub.writer.up

    @property
    def set_aside(self) -> dict[str, str]:
        """The streams that are not served, since their log does not replay, and why."""
        return dict(self.hub.aside)

    @property
    def stats(self) -> WriterStats:
        """What was committed so far."""
        return self.hub.writer.stats

    async def condition(self) -> Condition:
        """How the server is, for the metrics; also while the store is down."""
        hub, sizes = self.hub, {}
        with contextlib.suppress(OSError):  # so it is not known: `StoreDown` is one too
            sizes = await hub.read(hub.storage.sizes)
        webhooks = await self.webhooks.tallies()
        return Condition(hub.watch.seconds(), self.stats, hub.writer.waiting, sizes, webhooks)

    @property
    def waiting(self) -> int:
        """How many requests wait for work."""
        return self.hub.waiting
