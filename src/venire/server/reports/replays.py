"""Replays of a stream: what another plan would have bought, and who can go from the panel.

The beginning of the log is run again (`venire.whatif`), or the latest labels are replayed without
each labeler (`venire.panels`), in the thread of long replays, with its bounded queue; it stops when
the caller is cancelled. What takes more than `MAX_SECONDS` is not made: the command line has no
such limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

from venire.engine import Scheduler
from venire.errors import InputError, StateError
from venire.labels import LabelTable
from venire.panels import Estimate, PanelMember, PanelReport, panel_report
from venire.scheduling.by_name import learning_named, policy_named
from venire.server.admin_messages import Compared, Measured, PanelMemberView, PanelView, WhatIfView
from venire.server.messages import view
from venire.server.reports.explain import Stopped
from venire.server.settings import of_body
from venire.server.store import Storage, decode
from venire.server.store.log import SlotParts
from venire.whatif import Comparison, Plan, Recorded, what_if

if TYPE_CHECKING:
    from venire.events import Event
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import LabelRow

T = TypeVar("T")

#: The most events to replay, from the first on, and the most seconds that it may take.
MOST_EVENTS: Final = 100_000
MAX_SECONDS: Final = 60.0


async def _bounded(runtime: Runtime, work: Callable[[Callable[..., None]], T], refusal: str) -> T:
    """Do long work that says now and then how much is done; time counts from where that is 0."""
    stop, clock = threading.Event(), runtime.clock.monotonic
    begun = clock()

    def check(done: int, of: int = 0) -> None:
        nonlocal begun
        begun = begun if done else clock()
        if stop.is_set() or clock() - begun > MAX_SECONDS:
            raise Stopped

    try:
        return await runtime.threads.replay(lambda: work(check))
    except Stopped:
        raise StateError(refusal.format(MAX_SECONDS)) from None
    finally:
        stop.set()


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

    def compare(check: Callable[..., None]) -> Comparison:
        check(0)
        recorded = recorded_of(storage, stream, check, MOST_EVENTS)
        return what_if(recorded, plan, simulate_missing=drawn, progress=check)

    refusal = "it takes more than {:g} s: use venire replay, which has no limit"
    found = await _bounded(runtime, compare, refusal)
    measures = {
        name: Compared(
            paired.was,
            _measured(paired.would_be),
            _measured(paired.change),
        )
        for name, paired in found.measures.items()
    }
    whole = events <= MOST_EVENTS
    return view(WhatIfView, found, stream=stream, whole=whole, measures=measures)


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


#: How many of the latest labels to use, and the fewest that say anything.
LABELS, MIN_LABELS = 20_000, 10


async def panel_of(runtime: Runtime, stream: str, want: float | None) -> PanelView:
    """The report on the panel of a stream."""
    live = await runtime.live_stream(stream)
    classes, cost, kin = live.settings.classes, live.settings.delay_cost, live.settings.families
    prices = {who.id: who.price * cost for who in live.engine.panel}
    storage = runtime.storage
    rows = await runtime.read_committed(storage.recent_labels, stream, 0.0, None, LABELS)
    if len(rows) < MIN_LABELS:
        raise StateError(
            f"stream {stream!r} has {len(rows)} labels, expected {MIN_LABELS} or more: wait for "
            "more labels"
        )
    refusal = (
        "the report takes more than {:g} s: export the labels (venire export) and use venire "
        "panel, which has no limit"
    )
    given = rows, classes, prices, kin, want
    report = await _bounded(runtime, lambda check: _report(*given, check), refusal)
    return view(
        PanelView,
        report,
        stream=stream,
        accuracy=_measured(report.accuracy),
        can_go=tuple(str(name) for name in report.can_go),
        change=_measured(report.change),
        best_again=str(report.best_again.labeler),
        members=tuple(_member(member) for member in report.members),
    )


def _report(
    rows: list[LabelRow],
    classes: tuple[str, ...],
    prices: dict[str, float],
    families: dict[str, str],
    want: float | None,
    check: Callable[[int], None],
) -> PanelReport:
    """The report on the labels, newest first; without prices every label costs 1."""
    labels = [(row.item, row.labeler, row.said) for row in reversed(rows)]
    table = LabelTable.from_rows(labels, classes)
    known = {name: prices.get(name, 0.0) for name in table.labelers}
    priced = known if any(known.values()) else None
    return panel_report(table, priced, want=want, progress=check, families=families)


def _member(member: PanelMember) -> PanelMemberView:
    named = {key: tuple(map(str, getattr(member, key))) for key in ("copies", "family", "similar")}
    return view(
        PanelMemberView,
        member,
        **named,
        labeler=str(member.labeler),
        skill_low=member.low,
        skill_high=member.high,
        without=_measured(member.without),
        second=_measured(member.second),
    )


def _measured(estimate: Estimate) -> Measured:
    return Measured(estimate.value, estimate.error)
