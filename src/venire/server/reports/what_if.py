"""What another policy, panel or budget would have bought on a stream, from its log.

The beginning of the log is run again (`venire.whatif`), in the thread of long replays, with its
bounded queue; it stops when the caller is cancelled. What takes more than `MAX_SECONDS` is not
made: `venire replay` has no such limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from venire.engine import Scheduler
from venire.errors import InputError, StateError
from venire.scheduling.by_name import learning_named, policy_named
from venire.server.admin_messages import Compared, Measured, WhatIfView
from venire.server.messages import view
from venire.server.settings import of_body
from venire.server.store import Storage, decode
from venire.server.store.codec import SlotParts
from venire.whatif import Comparison, Plan, Recorded, what_if

if TYPE_CHECKING:
    from venire.events import Event
    from venire.server.runtime.runtime import Runtime

#: The most events to replay, from the first on, and the most seconds that it may take.
MOST_EVENTS: Final = 100_000
MAX_SECONDS: Final = 60.0


class Stopped(Exception):
    """The caller was cancelled, or the time is over."""


class Stopwatch:
    """Seconds since it was started; in between things may be compiled, which does not count.

    >>> watch = Stopwatch(iter([1.0, 2.0, 9.0]).__next__)
    >>> watch.seconds(again=True), watch.seconds()
    (0.0, 7.0)
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._begun = clock, clock()

    def seconds(self, again: bool = False) -> float:
        """The seconds so far; `again` from 0."""
        now = self._clock()
        self._begun = now if again else self._begun
        return now - self._begun


async def what_if_of(runtime: Runtime, stream: str, plan: Plan, drawn: bool) -> WhatIfView:
    """What a plan would have bought; with `drawn` also by labels that the log does not hold.

    The name of the student, among those without whom it is done, stands for all of its voices.
    """
    if plan.policy is not None:
        policy_named(plan.policy)
    if plan.learning is not None:
        learning_named(plan.learning)
    live = await runtime.live_stream(stream)
    student = live.settings.student
    if student is not None and student.id in plan.without:
        without = plan.without - {student.id} | set(student.voices)
        plan = replace(plan, without=without & set(live.labelers))
    await runtime.flush()
    storage, events = runtime.storage, live.n
    stop, watch = threading.Event(), Stopwatch(runtime.clock.monotonic)

    def check(done: int, of: int = 0) -> None:
        if stop.is_set() or watch.seconds(again=not done) > MAX_SECONDS:
            raise Stopped

    def compare() -> Comparison:
        check(0)
        recorded = recorded_of(storage, stream, check, MOST_EVENTS)
        return what_if(recorded, plan, simulate_missing=drawn, progress=check)

    try:
        found = await runtime.threads.replay(compare)
    except Stopped:
        raise StateError(
            f"it takes more than {MAX_SECONDS:g} s: use venire replay, which has no limit"
        ) from None
    finally:
        stop.set()
    return _view(stream, events, found)


def recorded_of(
    storage: Storage,
    stream: str,
    progress: Callable[[int], None] | None = None,
    most: int | None = None,
) -> Recorded:
    """A stream as its log holds it, or the first `most` events of that, with prices in money."""
    first = storage.snapshot(stream, 0)
    if first is None:
        raise InputError(
            f"the store has no snapshot of the start of {stream!r}, expected its whole log: "
            "restore a backup that has it"
        )
    start = Scheduler.restore(first.body)
    recorded = Recorded.of(start, islice(events_of(storage, stream), most), progress)
    settings, _ = of_body(list(storage.settings(stream))[-1].body)
    for who in recorded.prices:  # the log has them in slots of waiting
        recorded.prices[who] *= settings.delay_cost
    recorded.voices = settings.voices
    return recorded


def events_of(storage: Storage, stream: str) -> Iterator[Event]:
    """The events of a stream in order, those of a closed slot as one."""
    parts = SlotParts()
    for row in storage.all_events(stream):
        yield from parts.whole(decode([row]))


def _view(stream: str, events: int, found: Comparison) -> WhatIfView:
    measures = {
        name: Compared(
            paired.was,
            Measured(paired.would_be.value, paired.would_be.error),
            Measured(paired.change.value, paired.change.error),
        )
        for name, paired in found.measures.items()
    }
    whole = events <= MOST_EVENTS
    return view(WhatIfView, found, stream=stream, whole=whole, measures=measures)
