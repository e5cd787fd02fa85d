"""The service: every operation that a client may use, without HTTP."""

from __future__ import annotations

import asyncio
import contextlib

from venire.server.clock import Clock, SystemClock
from venire.server.keys.identities import Identities
from venire.server.keys.invitations import Invitations
from venire.server.keys.keyring import Keyring, Sessions
from venire.server.operations.gold import ReviewOperations, SendBackOperations
from venire.server.operations.history import DeletionOperations
from venire.server.operations.insights import AlarmOperations, InsightOperations
from venire.server.operations.items import ItemOperations
from venire.server.operations.labelers import LabelerOperations, NoteOperations
from venire.server.operations.routing import Routing
from venire.server.reports import skill_report
from venire.server.reports.trends import Trends
from venire.server.runtime.health import Condition
from venire.server.runtime.runtime import Runtime
from venire.server.settings import ServiceSettings
from venire.server.store import Storage, WriterStats
from venire.server.stream.engine_setup import TYPICAL
from venire.server.webhooks.registry import Webhooks

#: Seconds that the metrics wait for what is in the store, and while it is down.
PATIENCE, NO_PATIENCE = 4.0, 0.2


class Service(
    DeletionOperations,
    LabelerOperations,
    ItemOperations,
    NoteOperations,
    InsightOperations,
    AlarmOperations,
    ReviewOperations,
    SendBackOperations,
):
    """Streams, work, labels and verdicts over one store.

    All methods must be called on one asyncio loop. They raise `NotFound`, `Conflict`,
    `InputError`, `StateError`, `TooMuch` and, while the store does not accept writes, `StoreDown`,
    after which the same call may be retried.

    The operations are in `operations`, in a class for each noun; keys, sessions, invitations,
    webhooks and people who sign on are parts of it.

    Examples
    --------
    >>> import asyncio
    >>> from venire.server import ItemIn, StreamSettings
    >>> from venire.server.store import open_storage
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
        runtime = Runtime(storage, clock or SystemClock(), settings or ServiceSettings())
        self.skills, self._trends = skill_report.Skills(runtime), Trends(runtime)
        self._questions = skill_report.ReviewQuestions(runtime)
        super().__init__(runtime)
        self.keys, self.webhooks = Keyring(self.runtime), Webhooks(self.runtime)
        self.sessions = Sessions(self.runtime, self.keys)
        self.identities = Identities(self.runtime, self.keys, self.sessions)
        who = self.runtime, self.keys, self.sessions
        self.invitations = Invitations(*who, self.add_labeler, self.retire_labeler)
        self.routing = Routing(self.runtime, self)
        self.started = False

    async def start(self, wait: bool = True) -> str | None:
        """Begin to serve and load our streams; returns the first admin token, if just created.

        Without `wait` it returns as soon as requests are served: those for a stream that is not
        loaded yet have it loaded first. `loaded` waits for the others.
        """
        await self.runtime.start()
        await self._resume_deletions()
        await self.webhooks.start()
        self.routing.start()
        self.invitations.start()
        self.runtime.spawn(self._check_alarms_forever())
        self.runtime.spawn(self._keep_history_forever())
        async with self.runtime.starting():
            first = await self.keys.start()
            await self.sessions.start()
        self.started = True
        if wait:
            await self.loaded()
        return first

    async def prepare(self) -> None:
        """Compile what typical streams need: who creates one need not wait for it then."""
        for settings in TYPICAL:
            await self.runtime.threads.warm(settings)
            await self.runtime.threads.compute(skill_report.warm_up, settings.classes)

    async def loaded(self) -> None:
        """Wait until all streams are loaded, or set aside."""
        await self.runtime.loading.settled(None)

    async def stop(self) -> None:
        """Shut down gracefully, also after a start that failed half-way."""
        if not self.runtime.running:
            return
        self.started = False
        await self.webhooks.stop()
        await self.keys.stop()
        await self.runtime.stop()

    @property
    def up(self) -> bool:
        """Whether the service is healthy: started, ticking, and the store accepts writes."""
        runtime = self.runtime
        return self.started and runtime.ticking and runtime.writer.up and not runtime.storage.silent

    @property
    def patience(self) -> float:
        """Seconds that the metrics wait for what is in the store."""
        return PATIENCE if self.up else NO_PATIENCE

    @property
    def set_aside(self) -> dict[str, str]:
        """The streams that are not served because they cannot be loaded, and why."""
        return dict(self.runtime.set_aside)

    @property
    def loading(self) -> int:
        """How many streams are not loaded yet."""
        return len(self.runtime.loading)

    @property
    def stats(self) -> WriterStats:
        """What was committed so far."""
        return self.runtime.writer.stats

    async def condition(self) -> Condition:
        """The condition of the server, for the metrics; also while the store is down."""
        runtime, sizes = self.runtime, {}
        with contextlib.suppress(OSError):  # the sizes are unknown: `StoreDown` is an OSError
            async with asyncio.timeout(self.patience):
                sizes = await runtime.read(runtime.storage.sizes)
        webhooks = await self.webhooks.tallies(self.patience)
        outages, queued = runtime.health.seconds(), runtime.writer.waiting
        return Condition(outages, self.stats, queued, sizes, webhooks)
