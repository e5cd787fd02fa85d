"""A stream in step with a program that keeps traces.

Each round reads a part of the traces and sends what is new: traces as items, annotations as labels,
expectations as gold. What has left the stream since is written back. The server knows the items,
labels and gold that came before, and the program the verdicts that it has: so a sync that was
killed, or whose other side was, counts nothing and writes nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from venire.client import AsyncClient
from venire.client.wire import given
from venire.connectors import rounds
from venire.connectors.rounds import Intake, Leaving, Rounds, ensure_stream
from venire.connectors.traces.source import PAGE, Found, Note, Source, Trace, Verdict, explained
from venire.errors import InputError
from venire.tools.http import ApiError

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


class TraceSync(Rounds):
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
        super().__init__(panel, stream, Tally(), say, on_round)
        self._source, self._tally = source, Tally()
        self._intake, self._leaving = Intake(panel, stream), Leaving(panel, stream)
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

    async def close(self) -> None:
        """Report what a round did that failed in the end."""
        self.total.add(self._tally)
        if self._tally:
            self._report(self._tally)

    async def round(self) -> Tally:
        """One round: what is new in a part of the traces, and the verdicts that are due."""
        tally = self._tally
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
        self.total.add(tally)
        self._tally = Tally()
        return tally

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
        refused = {refusal["row"]: refusal for refusal in got["refusals"]}
        for place, (trace, note) in enumerate(rows):
            self._heard.add((note.id, note.at))
            if place in refused:
                hint = HINTS.get(refused[place]["code"], "")
                why = f"{refused[place]['message']}{': ' if hint else ''}{hint}"
                self._refuse(trace, note, why, tally)

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
