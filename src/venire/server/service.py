"""The service: every operation that a client may use, without HTTP."""

from __future__ import annotations

import asyncio
import contextlib

from venire.server.clock import Clock, SystemClock
from venire.server.keys.identities import Identities
from venire.server.keys.invitations import Invitations
from venire.server.keys.keyring import Keyring
from venire.server.keys.sessions import Sessions
from venire.server.operations.alarms import AlarmOperations
from venire.server.operations.deletion import DeletionOperations
from venire.server.operations.gold import GoldOperations
from venire.server.operations.history import HistoryOperations
from venire.server.operations.items import FindOperations
from venire.server.operations.labelers import LabelerOperations
from venire.server.operations.labelling import LabellingOperations
from venire.server.operations.notes import NoteOperations
from venire.server.operations.reads import ReadOperations
from venire.server.operations.reviews import ReviewOperations, SendBackOperations
from venire.server.operations.routing import Routing
from venire.server.operations.streams import StreamOperations
from venire.server.reports import skill_report
from venire.server.reports.skill_report import ReviewQuestions, Skills
from venire.server.reports.trends import Trends
from venire.server.runtime.health import Condition
from venire.server.runtime.runtime import Runtime
from venire.server.settings import ServiceSettings
from venire.server.store import Storage, WriterStats
from venire.server.stream.engine_setup import TYPICAL
from venire.server.webhooks.registry import Webhooks

#: Seconds that the metrics wait for what is in the store, and while it is down.
PATIENCE, NO_PATIENCE = 4.0, 0.2


class Service:
    """Streams, work, labels and verdicts over one store.

    All methods must be called on one asyncio loop. They raise `NotFound`, `Conflict`,
    `InputError`, `StateError`, `TooMuch` and, while the store does not accept writes, `StoreDown`,
    after which the same call may be retried.

    The operations are methods of the parts they belong to, one for each noun of `operations`, and
    are named here; keys, sessions, invitations, webhooks and people who sign on are parts of it
    themselves.

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
        self.settings = settings or ServiceSettings()
        self.runtime = Runtime(storage, clock or SystemClock(), self.settings)
        self.keys, self.webhooks = Keyring(self.runtime), Webhooks(self.runtime)
        self.skills, self.sessions = Skills(self.runtime), Sessions(self.runtime, self.keys)
        self.identities = Identities(self.runtime, self.keys, self.sessions)
        self.started, self._trends = False, Trends(self.runtime)

        streams = StreamOperations(self.runtime)
        self.create_stream, self.change_stream = streams.create_stream, streams.change_stream
        self.stream, self.streams = streams.stream, streams.streams
        self.settings_history = streams.settings_history
        self.layout, self.practice = streams.layout, streams.practice
        self.pause, self.resume, self.close = streams.pause, streams.resume, streams.close
        self.archive, self.restore, self.archived = (
            streams.archive, streams.restore, streams.archived
        )  # fmt: skip
        self.add_items, self.withdraw = streams.add_items, streams.withdraw

        self.routing = Routing(self.runtime, streams)
        gold = GoldOperations(self.runtime)
        self.add_gold, self.audits, self.is_trusted = gold.add_gold, gold.audits, gold.is_trusted
        self.review, self.gold = gold.review, gold.gold
        questions = ReviewQuestions(self.runtime)
        reviews = ReviewOperations(self.runtime, questions)
        self.reviews, self.is_due, self.due = reviews.reviews, reviews.is_due, reviews.due
        self.send_back = SendBackOperations(self.runtime, streams).send_back
        labelers = LabelerOperations(self.runtime, streams, self.skills)
        self.add_labeler, self.agreement = labelers.add_labeler, labelers.agreement
        self.retire_labeler = labelers.retire_labeler
        self.restore_labeler = labelers.restore_labeler
        who = self.runtime, self.keys, self.sessions
        self.invitations = Invitations(*who, labelers.add_labeler, labelers.retire_labeler)

        labelling = LabellingOperations(self.runtime, gold, questions)
        self.next, self.label, self.held = labelling.next, labelling.label, labelling.held
        self.heartbeat, self.release = labelling.heartbeat, labelling.release

        notes = NoteOperations(self.runtime, labelling)
        self.abstain, self.add_note, self.notes = notes.abstain, notes.add_note, notes.notes
        self.add_labels, self.progress = notes.add_labels, notes.progress

        self._history = HistoryOperations(self.runtime)
        self.keep_history = self._history.keep
        reads = ReadOperations(self.runtime, self.skills, self._trends)
        self.item, self.explain, self.payloads = reads.item, reads.explain, reads.payloads
        self.exits, self.revisions, self.events = reads.exits, reads.revisions, reads.events
        self.check_event = reads.check_event
        self.labelers, self.insights = reads.labelers, reads.insights
        self.relations = reads.relations
        self.overview = reads.overview
        self.panel, self.trends, self.rates = reads.panel, reads.trends_view, reads.rates
        self.confusion, self.lessons, self.what_if = reads.confusion, reads.lessons, reads.what_if

        self.find_items = FindOperations(self.runtime).find_items

        self._alarms = AlarmOperations(self.runtime, self.skills, self._trends)
        self.alarms, self.check_alarms = self._alarms.alarms, self._alarms.check

        deletion = DeletionOperations(
            self.runtime, self.skills, self._alarms, labelers, self._history.dropping
        )
        self.erase_payload, self.delete_stream = deletion.erase_payload, deletion.delete_stream
        self.audit, self._resume_deletions = deletion.audit, deletion.resume_deletions
        self.recent_audit = deletion.recent_audit

    async def start(self, wait: bool = True) -> str | None:
        """Begin to serve and load our streams; returns the first admin token, if just created.

        Without `wait` it returns as soon as requests are served: those for a stream that is not
        loaded yet have it loaded first. `loaded` waits for the others.
        """
        await self.runtime.start()
        await self._resume_deletions()
        await self.webhooks.start()
        self.routing.start()
        self._alarms.start()
        self.invitations.start()
        self._history.start()
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
        await self.runtime.loading.settled()

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

    @property
    def waiting(self) -> int:
        """How many requests wait for work."""
        return self.runtime.waiting
