"""The guarantee of a stream in service: read from the store when it is asked for, and kept."""

from __future__ import annotations

from dataclasses import replace

from venire.server.messages import ExitView
from venire.server.panel_messages import GuaranteeView, ThresholdView
from venire.server.reports.event_json import exit_view
from venire.server.runtime.runtime import Runtime
from venire.server.store import ItemRow, Storage
from venire.server.store.maintenance.guaranteed import Guaranteed, Tested, counted_in, judged_of
from venire.server.stream.live_stream import LiveStream


async def guarantee_of(runtime: Runtime, live: LiveStream) -> Guaranteed | None:
    """What is guaranteed by now; None in a stream without a guarantee."""
    if live.settings.guarantee is None:
        return None
    checks, kept = live.checks, live.guaranteed
    by = live.version, live.exit_n, checks.gold, checks.corrected
    if kept is None or kept[0] != by:
        before = None if kept is None else kept[1]
        given = runtime.storage, live.name, before
        tested, found = await runtime.read_committed(_read, *given)
        kept = live.guaranteed = by, tested, found
    return kept[2]


def _read(
    storage: Storage, stream: str, before: Tested | None
) -> tuple[Tested | None, Guaranteed | None]:
    tested = counted_in(storage, stream, before)
    return tested, None if tested is None else judged_of(storage, stream, tested)


def marked_exit(row: ItemRow, proven: Guaranteed | None) -> ExitView:
    """The exit of an item, with its mark."""
    view = exit_view(row)
    if proven is None:
        return view
    return replace(view, guaranteed=proven.marks(row.exit_n, row.confidence))


def guarantee_view(proven: Guaranteed | None) -> GuaranteeView | None:
    """What is guaranteed, as clients see it."""
    if proven is None:
        return None
    found = proven.found
    return GuaranteeView(
        right=found.right,
        level=found.level,
        share=found.share,
        confidence=found.confidence,
        through=found.through,
        marked=found.marked,
        verdicts=found.verdicts,
        coverage=found.coverage,
        curve=tuple(ThresholdView(*row) for row in found.curve),
        more=found.more,
    )
