"""Labels out of programs that keep traces of LLM applications, and verdicts back into them.

A program is a `Source`, which reads its traces with what was said of them and writes what venire
says: see `phoenix`, `mlflow` and `langfuse` beside this. Verdicts are found again by the name
`venire`: each is written once, and again only if it has changed, so a command that was interrupted
is simply run again.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from types import MappingProxyType
from typing import Any, Final, Protocol, Self

#: Traces in one request.
PAGE: Final = 100

#: The name under which verdicts are written.
OURS: Final = "venire"

#: Characters of a labeler's reason that a verdict repeats.
LONGEST_REASON: Final = 300

#: Seconds for which requests that only read are repeated.
RETRY_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Note:
    """What somebody said of a trace: `said` as text, `value` as it is kept; `gold` is truth.

    `why` is the reason that was given, if one was.
    """

    id: str
    labeler: str
    said: str | None
    value: Any
    at: str
    gold: bool = False
    why: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What venire says of a trace, and why."""

    value: Any
    confidence: float
    why: str


@dataclass(frozen=True)
class Trace:
    """A trace with what was said of it; `ours` are the verdicts that it has, by their ids.

    `content` is what labelers should see; None for one that is of no use as an item.
    """

    id: str
    notes: Sequence[Note]
    ours: Mapping[str, Verdict]
    content: Mapping[str, Any] | None = None


class Source(Protocol):
    """A program that keeps traces."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...

    def pages(self) -> AsyncIterator[list[Trace]]:
        """All traces."""

    async def some(self, ids: Sequence[str]) -> list[Trace]:
        """The traces of these ids that exist, at most `PAGE`; their content may be missing."""

    async def give(self, verdicts: Sequence[tuple[Trace, Verdict]]) -> None:
        """Write verdicts in place of those that the traces have."""


@dataclass
class Found:
    """The labels of a source: of each trace the latest of each labeler; `gold` is the truth."""

    labels: list[tuple[str, str, str]] = field(default_factory=list)
    gold: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    traces: int = 0

    @classmethod
    async def read(cls, source: Source) -> Found:
        """All labels and all gold of a source."""
        found = cls()
        async for page in source.pages():
            for trace in page:
                found.traces += 1
                for note in found._latest(trace):
                    if note.gold:
                        found.gold[trace.id] = str(note.said)
                    else:
                        found.labels.append((trace.id, note.labeler, str(note.said)))
        return found

    def _latest(self, trace: Trace) -> list[Note]:
        latest: dict[tuple[str, bool], Note] = {}
        for note in sorted(trace.notes, key=lambda note: note.at):
            if note.said is None:
                self.left_out["without a label"] += 1
                continue
            key = ("" if note.gold else note.labeler, note.gold)
            self.left_out["replaced by a later one"] += key in latest
            latest[key] = note
        self.left_out += Counter()  # counts of 0 are dropped
        return list(latest.values())


async def give_verdicts(
    source: Source, verdicts: Mapping[str, tuple[str, float]], skills: Mapping[str, float]
) -> Counter[str]:
    """Write verdicts, {trace: (label, confidence)}, and count what was done.

    What is there already is `unchanged`; traces that the source does not have are `missing`.
    """
    done: Counter[str] = Counter({"written": 0, "revised": 0, "unchanged": 0})
    seen = 0
    async for page in source.pages():
        wanted: list[tuple[Trace, Verdict]] = []
        for trace in page:
            if trace.id in verdicts:
                seen += 1
                said = {x.labeler: x.said for x in trace.notes if x.said is not None and not x.gold}
                verdict = explained(trace, *verdicts[trace.id], said, skills)
                if list(trace.ours.values()) == [verdict]:
                    done["unchanged"] += 1
                else:
                    wanted.append((trace, verdict))
                    done["revised" if trace.ours else "written"] += 1
        if wanted:
            await source.give(wanted)
    done["missing"] = len(verdicts) - seen
    return done


def explained(
    trace: Trace,
    label: str,
    confidence: float,
    said: Mapping[str, str],
    skills: Mapping[str, float],
    reasons: Mapping[str, str | None] = MappingProxyType({}),
) -> Verdict:
    """The verdict in the words of the program, and who said what, with which skill and why."""
    values = {note.said: note.value for note in trace.notes}
    parts = [
        f"{what} by {name}"
        + (f" (skill {skills[name]:.2f})" if name in skills else "")
        + (f": {shorten(why, LONGEST_REASON)}" if (why := reasons.get(name)) else "")
        for name, what in sorted(said.items())
    ]
    sure = round(confidence, 4)
    why = "; ".join([f"confidence {sure:.2f} by {len(parts)} labels", *parts])
    return Verdict(values.get(label, label), sure, why)


def as_text(value: Any) -> str | None:
    """A value as a class: text as it is, numbers and truth values as JSON; None for other things.

    >>> as_text("yes"), as_text(True), as_text(1.0), as_text(0.5), as_text([1])
    ('yes', 'true', '1', '0.5', None)
    """
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return json.dumps(value)
    return f"{value:g}" if isinstance(value, int | float) else None


def bearer(variable: str) -> tuple[str, dict[str, str]]:
    """The key that an environment variable holds, and the headers that send it; none if unset."""
    key = os.environ.get(variable, "").strip()
    return key, {"authorization": f"Bearer {key}"} if key else {}
