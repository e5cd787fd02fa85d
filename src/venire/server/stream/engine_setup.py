"""What settings make of a stream: its engine, changes to that, and its student."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Literal

from venire.engine import Scheduler
from venire.errors import InputError
from venire.model import MOST_PRICE, Bounds, Budget, Item, Label, Labeler
from venire.scheduling.by_name import KNOWN, learning_named, policy_named
from venire.server.admin_messages import Lesson
from venire.server.settings import Member, StreamSettings
from venire.student import Student, Taught

if TYPE_CHECKING:
    from venire.server.stream.live_stream import LiveStream


#: A placeholder labeler for an open panel without labelers, so that items wait for newcomers. It
#: joins and leaves at once; no real labeler can have this name.
SOMEBODY = ""

#: Settings of typical streams, as far as they decide what is compiled: two classes have kernels of
#: their own.
TYPICAL = tuple(
    StreamSettings(classes=classes) for classes in (("yes", "no"), ("yes", "no", "unsure"))
)


def check_new(settings: StreamSettings) -> None:
    """Refuse a new stream with known competences whose panel does not state them.

    >>> check_new(StreamSettings(classes=["a", "b"], learning="known"))
    Traceback (most recent call last):
    venire.errors.InputError: learning is 'known', but nobody is on the panel: ...
    """
    if settings.learning != KNOWN:
        return
    panel = settings.asked
    unknown = [member.id for member in panel if member.competence is None]
    if unknown or not panel:
        what = f"labeler {unknown[0]!r} has no competence" if unknown else "nobody is on the panel"
        raise InputError(
            f"learning is 'known', but {what}: name the labelers with their competences, or set "
            "learning to 'while-serving'"
        )


def new_engine(settings: StreamSettings, remember: int) -> Scheduler:
    """The engine of a new stream.

    >>> settings = StreamSettings(classes=["a", "b"], learning="then-serve:45")
    >>> new_engine(settings, remember=10).slot
    0
    """
    learning = learning_named(settings.learning)
    panel = [as_labeler(member, settings.delay_cost) for member in settings.asked]
    nobody = not panel
    if nobody:
        panel = [Labeler(SOMEBODY, 0.7 if settings.learning == KNOWN else None)]
    engine = Scheduler(
        panel,
        settings.classes,
        policy_named(settings.policy),
        learning,
        bounds=bounds_of(settings),
        remember=remember,
        revisions=settings.revisions,
        budget=budget_of(settings),
        costs=settings.cost_pairs,
        families=settings.families,
    )
    if nobody:
        engine.leave(SOMEBODY)
        engine.drain()
    return engine


def warm_up(settings: StreamSettings) -> None:
    """Run every operation once with an engine like this one, so that all kernels are compiled.

    The first time on a machine takes some seconds; call it in a thread.

    >>> warm_up(StreamSettings(classes=["a", "b"], learning="then-serve:45"))
    """
    engine = new_engine(settings, remember=1)
    for name in ("one", "two"):
        if name not in {who.id for who in engine.panel}:
            engine.join(Labeler(name, 0.7))
    engine.arrive([Item(f"item {k}", 100.0) for k in range(3)])
    for labeler in ("one", "two"):
        for work in engine.assign(asked=[labeler]):
            engine.observe(Label(work.item, work.labeler, settings.classes[0]))
    for work in engine.assign(asked=["one"]):
        engine.release(work.item, work.labeler)
    engine.observe(Label("item 2", "two", settings.classes[0]))
    engine.posterior("item 2")
    engine.ranking("one", 2)
    # a stream without bounds may get some, and the kernels of bounds run only where they hold
    engine.change(bounds=Bounds(min_labels=4, max_labels=5, min_confidence=0.99))
    engine.arrive([Item("short", 100.0)])
    for labeler in ("one", "two") * 5:  # until the policy has nothing more for them
        for work in engine.assign(asked=[labeler]):
            engine.observe(Label(work.item, work.labeler, settings.classes[0]))
    engine.withdraw("item 1")
    engine.change(bounds=Bounds(deadline=0))
    engine.advance(3)
    Scheduler.restore(engine.snapshot()).advance(5)


def as_labeler(member: Member, delay_cost: float) -> Labeler:
    """A member of the panel as the engine's `Labeler`, whose price is in slots of waiting.

    >>> as_labeler(Member(id="ann", price=3.0), delay_cost=2.0).price
    1.5
    """
    price = min(member.price / delay_cost, MOST_PRICE)
    return Labeler(member.id, member.competence, member.capacity, price)


def budget_of(settings: StreamSettings) -> Budget | None:
    """The budget in the engine's units: slots of waiting, and slots of a day.

    >>> settings = StreamSettings(classes=["a", "b"], delay_cost=2, budget={"money": 50})
    >>> budget = budget_of(settings)
    >>> budget.money, budget.slots
    (25.0, 1440)
    """
    given = settings.budget
    if given is None:
        return None
    money = None if given.money is None else given.money / settings.delay_cost
    return Budget(money, given.labels, True, max(1, round(86_400 / settings.slot_seconds)))


def bounds_of(settings: StreamSettings, spent: bool = False) -> Bounds:
    """The engine's bounds for these settings; with the label budget spent, items do not wait.

    >>> settings = StreamSettings(classes=["a", "b"], min_labels=2, deadline_slots=9)
    >>> bounds_of(settings, spent=True)
    Bounds(min_labels=0, max_labels=None, min_confidence=None, deadline=None, spent=True)
    """
    if spent:
        return Bounds(0, settings.max_overlap, settings.min_confidence, spent=True)
    return Bounds(
        settings.min_labels, settings.max_overlap, settings.min_confidence, settings.deadline_slots
    )


def apply_settings(
    engine: Scheduler, old: StreamSettings, new: StreamSettings, seated: set[str], spent: bool
) -> set[str]:
    """Apply changed settings to the engine; returns who is seated now."""
    policy = new.policy if new.policy != old.policy else None
    learning = new.learning if new.learning != old.learning else None
    bounds = bounds_of(new, spent)
    revisions = new.revisions if new.revisions != engine.revisions else None
    budget = budget_of(new)
    spend: Budget | Literal["none"] | None = None
    if budget != engine.budget:
        spend = budget or "none"
    # an unknown name must raise before anything is changed
    policy_named(new.policy), learning_named(new.learning)
    before = {member.id: as_labeler(member, old.delay_cost) for member in old.asked}
    after = {member.id: as_labeler(member, new.delay_cost) for member in new.asked}
    gone = new.trusted | new.retired
    guests = seated - set(before) - set(after) - gone if new.open_panel else set()
    bound = bounds if bounds != engine.bounds else None
    costs = new.cost_pairs if new.cost_pairs != engine.costs else None
    families = new.families if new.families != engine.families else None
    changes = policy or learning, bound, revisions, spend, costs, families
    if any(change is not None for change in changes):
        engine.change(policy, learning, bound, None, revisions, spend, costs, families)
    for name in sorted(seated):
        if name not in guests and (name not in after or before.get(name) != after[name]):
            engine.leave(name)
            seated = seated - {name}
    for name, labeler in after.items():
        if name not in seated:
            engine.join(labeler)
    return set(after) | guests


#: How many of the latest lessons are kept.
LESSONS: Final = 200


class StreamPupil:
    """What a stream keeps of its student; `loaded` once the store was asked what it knew.

    `used` is how many items had left when it learned last, `version` the number of the last
    version, whatever came of it; `lessons` are the latest versions.
    """

    def __init__(self) -> None:
        self.student: Student | None = None
        self.taught: Taught | None = None
        self.loaded = False
        self.version = self.used = 0
        self.unseen: deque[str] = deque()
        self.lessons: deque[Lesson] = deque(maxlen=LESSONS)
        self._voices: tuple[StreamSettings | None, frozenset[str]] = None, frozenset()

    def voices(self, settings: StreamSettings) -> frozenset[str]:
        """The labelers that are the student's by these settings."""
        if self._voices[0] is not settings:
            self._voices = settings, settings.voices
        return self._voices[1]

    def follow(self, live: LiveStream) -> None:
        """Be the student of the settings of now; a new one knows nothing."""
        wanted = None if live.settings.student is None else live.settings.student.student
        if self.student is not None:
            if wanted is not None and vars(wanted) == vars(self.student):
                return
            self.taught, self.used = None, 0
            self.lessons.clear()
        self.student = wanted
        self.unseen = deque(() if wanted is None else live.open)

    def know(self, live: LiveStream, taught: Taught, used: int, fresh: bool = True) -> None:
        """Know this from now on, `fresh` from a lesson; when it first speaks it joins the panel."""
        assert self.student is not None
        self.taught, self.version, self.used = taught, taught.version, used
        if not taught.ready:
            return
        self.student.take_seats(live.engine, taught, fresh)
        for voice in self.student.voices:
            live.labelers.record(voice).kind = "student"
        voices = frozenset(self.student.voices)
        silent = (name for name, x in live.open.items() if voices.isdisjoint(x.labels))
        self.unseen = deque(silent)

    def record(self, live: LiveStream) -> dict[str, Any] | None:
        """What the view of the stream says of it."""
        if live.settings.student is None:
            return None
        learned: dict[str, Any] = {"version": 0, "verdicts": 0, "agreement": None}
        if self.taught is not None:
            learned = self.taught.record()
        voices = live.settings.student.voices
        labels = sum(live.labelers[v].labels for v in voices if v in live.labelers)
        said = {"ready": False, "id": live.settings.student.id, "labels": labels}
        return {**said, **learned}
