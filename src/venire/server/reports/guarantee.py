"""The guarantee of a stream in service: read from the store when it is asked for, and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from venire.server.admin_messages import GuaranteeView, ThresholdView
from venire.server.messages import view
from venire.server.reports.event_json import exit_view
from venire.server.store.maintenance.guaranteed import Guaranteed, Tested, counted_in, judged_of

if TYPE_CHECKING:
    from venire.server.messages import ExitView
    from venire.server.runtime.runtime import Runtime
    from venire.server.store import ItemRow, SettingsRow, Storage
    from venire.server.stream.checks import Checks
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
    left = exit_view(row)
    if proven is None:
        return left
    return replace(left, guaranteed=proven.marks(row.exit_n, row.confidence))


def guarantee_view(proven: Guaranteed | None) -> GuaranteeView | None:
    """What is guaranteed, as clients see it."""
    if proven is None:
        return None
    found = proven.found
    return view(GuaranteeView, found, curve=tuple(ThresholdView(*row) for row in found.curve))


ALONE: Final = "by labels alone"
TRUSTED: Final = "said by somebody trusted"

#: Settings on which verdicts depend, and what to call them.
WATCHED: Final = MappingProxyType(
    {
        "panel": "the panel",
        "guidelines": "the guidelines",
        "policy": "the policy",
        "learning": "the way of learning",
        "student": "the student",
        "families": "the families of labelers",
        "costs": "the costs of errors",
        "min_labels": "the number of labels",
        "max_overlap": "the number of labels",
        "min_confidence": "the required confidence",
    }
)


class BasisChange(NamedTuple):
    """When verdicts began to be made otherwise, and what changed."""

    at: float
    what: str


def last_change(rows: Sequence[SettingsRow]) -> BasisChange | None:
    """The last version of the settings by which verdicts are made otherwise.

    >>> from venire.server.store import SettingsRow
    >>> bodies = [{"policy": "greedy", "ahead": 1}, {"policy": "realised", "ahead": 1},
    ...           {"policy": "realised", "ahead": 2}]
    >>> rows = [SettingsRow.load(["posts", n, float(n), "me", json.dumps({"settings": body})])
    ...         for n, body in enumerate(bodies, 1)]
    >>> last_change(rows), last_change(rows[:1])
    (BasisChange(at=2.0, what='the policy'), None)
    """
    bodies = [json.loads(row.body)["settings"] for row in rows]
    for (_, one), (row, other) in reversed(list(pairwise(zip(rows, bodies, strict=True)))):
        for name, words in WATCHED.items():
            if _watched(one, name) != _watched(other, name):
                return BasisChange(row.at, words)
    return None


def _watched(settings: Mapping[str, Any], name: str) -> Any:
    """The value; of the panel only who labels, and of which kind."""
    value = settings.get(name)
    if name != "panel":
        return value or None
    members = [m for m in value or () if not m.get("trusted") and not m.get("retired")]
    return sorted((m["id"], str(m.get("kind"))) for m in members)


def rests_on(
    checks: Checks, left_at: float | None, change: tuple[float, str] | None, shifted: bool
) -> str:
    """What the confidence of an item that left then (None: it is open) rests on.

    >>> from venire.server.stream.checks import Checks
    >>> checks = Checks()
    >>> rests_on(checks, None, None, False)
    'by labels alone'
    """
    bound = checks.bound()
    said = bound.audited - bound.skipped
    if not said or checks.last_checked is None:
        if not checks.gold:
            return ALONE
        return f"by labels, taught by {checks.gold:,} gold; not checked by audits"
    right, audits = 1 - bound.wrong / said, "1 audit" if said == 1 else f"{said:,} audits"
    words = (
        f"by labels; checked on {audits}, the last of {_day(checks.last_checked)}: "
        f"{100 * right:.1f} % of these verdicts were right"
    )
    later = left_at is None or left_at > checks.last_checked
    if change is not None:
        at, what = change
        if at > checks.last_checked and (left_at is None or left_at >= at):
            return f"{words}; stale: {what} changed on {_day(at)}"
    if shifted and later:
        return f"{words}; stale: the mix of verdicts has changed"
    return words


def _day(at: float) -> str:
    day = datetime.fromtimestamp(at, UTC)
    return f"{day.day} {day:%B %Y}"
