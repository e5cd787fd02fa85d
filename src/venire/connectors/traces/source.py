"""Labels out of programs that keep traces of LLM applications, and verdicts back into them.

A program is a `Source`, which reads its traces with what was said of them and writes what venire
says: see `phoenix`, `mlflow` and `langfuse` beside this. Verdicts are found again by the name
`venire`: each is written once, and again only if it has changed, so a command that was interrupted
is simply run again.

A stream is kept in step with a program by `TraceSync`. Each round reads a part of the traces and
sends what is new: traces as items, annotations as labels, expectations as gold. What has left the
stream since is written back. The server knows the items, labels and gold that came before, and the
program the verdicts that it has: so a sync that was killed, or whose other side was, counts nothing
and writes nothing twice.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, Self

from venire.client import AsyncClient
from venire.client.wire import given
from venire.connectors import rounds
from venire.connectors.rounds import Rounds, ensure_stream
from venire.errors import InputError
from venire.tools.http import ApiError, JsonApi

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


def env(variable: str) -> str:
    """The key that an environment variable holds; empty if it is not set."""
    return os.environ.get(variable, "").strip()


class TraceApi(JsonApi):
    """The API of a program that keeps traces, with what errors say about its keys and address."""

    def __init__(
        self, name: str, url: str, keys: str, there: str, key: str, authorization: str = ""
    ) -> None:
        """`keys` says which are expected; `authorization` is the header, else a bearer token."""
        sent = authorization or (f"Bearer {key}" if key else "")
        super().__init__(
            name,
            url,
            {"authorization": sent} if sent else {},
            secret=key,
            hints={401: f"expected {keys}", 404: there},
            retry_seconds=RETRY_SECONDS,
        )


#: Pages that a round reads; the next one goes on behind them.
PAGES: Final = 10

#: What can be done about a label that the server refused, by the code of the refusal.
HINTS: Final = {
    "changed": "the first counts",
    "unknown_class": "the stream has other classes",
}


@dataclass
class Tally(rounds.Tally):
    """Counts of traces and annotations.

    >>> print(Tally(labels=2, written=1))
    2 labels, 1 verdict written
    """

    WORDS: ClassVar[Mapping[str, tuple[str, str]]] = {
        **rounds.Tally.WORDS,
        "gold": ("expectation as gold", "expectations as gold"),
        "written": ("verdict written", "verdicts written"),
        "revised": ("verdict revised", "verdicts revised"),
    }

    gold: int = 0
    written: int = 0
    revised: int = 0


class TraceSync(Rounds[Tally]):
    """Connects a program that keeps traces with a stream.

    async with source_of("mlflow", url, "my-app", "correct") as source:
        async with AsyncClient(server, key) as panel:
            await TraceSync(source, panel, "answers").run()
    """

    def __init__(
        self,
        source: Source,
        panel: AsyncClient,
        stream: str,
        *,
        say: Callable[[str], None] = lambda line: None,
        on_round: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        super().__init__(panel, stream, Tally, say, on_round)
        self._source = source
        self._pages: AsyncIterator[list[Trace]] | None = None
        self._heard: set[tuple[str, str]] = set()
        self._due: set[str] = set()

    async def create_stream(self) -> None:
        """Create the stream with the classes of the annotations so far, unless there is one."""
        found = await Found.read(self._source)
        said = {label for _, _, label in found.labels} | set(found.gold.values())
        if len(said) < 2:
            raise InputError(
                f"the annotations have the classes {sorted(said)}, expected two or more: create "
                "the stream with its classes"
            )
        await ensure_stream(self.panel, self.stream, sorted(said))

    async def open(self) -> None:
        """Check that the stream exists, and read what has left; the first pass comes to all."""
        await self.panel.stream(self.stream)
        await self._leaving.read()

    async def _round(self, tally: Tally) -> None:
        """What is new in a part of the traces, and the verdicts that are due."""
        try:
            for _ in range(PAGES):
                page = await self._next_page()
                if page is None:
                    break
                await self._take(page, tally)
            self._due |= await self._leaving.read()
            due = sorted(self._due)
            for k in range(0, len(due), PAGE):
                await self._give_due(due[k : k + PAGE], tally)
        except BaseException:
            self._pages = None  # a page that failed is read again
            raise

    async def _next_page(self) -> list[Trace] | None:
        """The next page of all traces; None at their end, after which it begins anew."""
        if self._pages is None:
            self._pages = aiter(self._source.pages())
        page = await anext(self._pages, None)
        if page is None:
            self._pages = None
        return page

    async def _take(self, page: Sequence[Trace], tally: Tally) -> None:
        items = [trace for trace in page if trace.content is not None]
        await self._intake.add({trace.id: trace.content for trace in items}, tally)
        new = [
            (trace, note)
            for trace in items
            for note in sorted(trace.notes, key=lambda note: note.at)
            if (note.id, note.at) not in self._heard
        ]
        labels = [row for row in new if not row[1].gold and row[1].said is not None]
        for trace, note in new:
            if note.said is None:
                what = f"it says {note.value!r}, expected text, a number, or true or false"
                self._refuse(trace, note, what, tally)
        if labels:
            rows = [
                {"item": trace.id, "labeler": note.labeler, "said": note.said}
                | given(rationale=note.why)
                for trace, note in labels
            ]
            got = await self.panel.add_labels(self.stream, rows)
            tally.labels += got["accepted"] + got["late"]
            self._heed(labels, got, tally)
        if gold := [row for row in new if row[1].gold and row[1].said is not None]:
            truth = [(trace.id, str(note.said)) for trace, note in gold]
            got = await self.panel.add_gold(self.stream, truth)
            tally.gold += got["accepted"]
            self._heed(gold, got, tally)
        await self._write(items, tally)

    def _heed(
        self, rows: Sequence[tuple[Trace, Note]], got: Mapping[str, Any], tally: Tally
    ) -> None:
        """Remember what was sent, and report what the server refused."""
        refused = rounds.refusals(got, HINTS)
        for place, (trace, note) in enumerate(rows):
            self._heard.add((note.id, note.at))
            if place in refused:
                self._refuse(trace, note, refused[place], tally)

    def _refuse(self, trace: Trace, note: Note, why: str, tally: Tally) -> None:
        self._heard.add((note.id, note.at))
        tally.refuse(f"{note.id} of {note.labeler} on {trace.id} is not counted: {why}")

    async def _give_due(self, ids: Sequence[str], tally: Tally) -> None:
        """Write the verdicts of items that have just left; those from elsewhere have no trace."""
        await self._write(await self._source.some(ids), tally)
        self._due -= set(ids)

    async def _write(self, traces: Iterable[Trace], tally: Tally) -> None:
        """Write what the traces have left with, unless they have it already."""
        wanted = []
        for trace in traces:
            left = self._leaving.verdicts.get(trace.id)
            if left is None or left.label is None:
                continue
            bare = explained(trace, left.label, left.confidence, {}, {})
            ours = [(one.value, one.confidence) for one in trace.ours.values()]
            if ours != [(bare.value, bare.confidence)]:
                wanted.append((trace, left.label, left.confidence))
        if not wanted:
            return
        skills = {
            row["id"]: row["skill"]
            for row in await self.panel.labelers(self.stream)
            if row["skill"] is not None
        }
        ready = []
        for trace, label, confidence in wanted:
            view = await self.panel.item(self.stream, trace.id)
            said = {row["labeler"]: row["said"] for row in view["labels"]}
            why = {row["labeler"]: row.get("rationale") for row in view["labels"]}
            ready.append((trace, explained(trace, label, confidence, said, skills, why)))
        await self._give(ready, tally)

    async def _give(self, verdicts: Sequence[tuple[Trace, Verdict]], tally: Tally) -> None:
        """Write verdicts; one whose trace was deleted meanwhile does not hold up the others."""
        try:
            await self._source.give(verdicts)
        except ApiError as error:
            if error.status not in (400, 404, 422):
                raise
            if len(verdicts) == 1:
                self._tell(f"the verdict of {verdicts[0][0].id} cannot be written: {error}")
                return
            for one in verdicts:
                await self._give([one], tally)
            return
        revised = sum(1 for trace, _ in verdicts if trace.ours)
        tally.revised += revised
        tally.written += len(verdicts) - revised
