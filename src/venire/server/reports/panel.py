"""What each labeler of a stream brings and costs, and who can go.

The latest labels are replayed without each labeler (`venire.panels`), in the thread of long
replays, with its bounded queue. A report that takes more than `MAX_SECONDS` is not made: the
command line has no such limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from venire.errors import StateError
from venire.labels import LabelTable
from venire.panels import Estimate, PanelMember, PanelReport, panel_report
from venire.server.admin_messages import Measured, PanelMemberView, PanelView
from venire.server.messages import view

if TYPE_CHECKING:
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import LabelRow

#: How many of the latest labels to use, and the fewest that say anything.
LABELS, MIN_LABELS = 20_000, 10

#: The most seconds that a report may take.
MAX_SECONDS: Final = 60.0


class Stopped(Exception):
    """The caller was cancelled, or the time is over."""


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
    stop, until = threading.Event(), runtime.clock.monotonic() + MAX_SECONDS

    def check(replays: int) -> None:
        if stop.is_set() or runtime.clock.monotonic() > until:
            raise Stopped

    try:
        given = rows, classes, prices, kin, want, check
        report = await runtime.threads.replay(lambda: _report(*given))
    except Stopped:
        raise StateError(
            f"the report takes more than {MAX_SECONDS:g} s: export the labels (venire export) and "
            "use venire panel, which has no limit"
        ) from None
    finally:
        stop.set()
    return _view(stream, report)


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


def _view(stream: str, report: PanelReport) -> PanelView:
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
