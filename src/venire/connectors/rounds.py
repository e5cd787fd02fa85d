"""What keeps a stream and another program in step: rounds that do what is missing on either side.

A connector brings a `Rounds` with its own `round`; sending items (`Intake`), following verdicts
(`Leaving`), counting (`Tally`), and waiting for whoever is down are the same for all. Nothing is
kept on disk: after a kill of either side, the next round reads both.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

from venire.client import AsyncClient, ServerError, Unreachable
from venire.tools.http import ApiDown

#: The settings of a stream that is made here: people take minutes, and few label everything.
FOR_PEOPLE: Final = {
    "min_confidence": 0.95,
    "max_overlap": 3,
    "default_weight": 1000.0,
    "slot_seconds": 10.0,
    "lease_floor_seconds": 300.0,
}

#: Statuses of the server after which the next round may succeed.
BUSY: Final = frozenset({429, 500, 502, 503, 504})

#: The longest pause after a failure, in seconds.
LONGEST_PAUSE: Final = 30.0


@dataclass
class Tally:
    """What a round did, or all of them; `refusals` says which annotations do not count, and why.

    `WORDS` says how each count is called, for one and for more.
    """

    WORDS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "items": ("new item", "new items"),
        "labels": ("label", "labels"),
        "refused": ("annotation refused", "annotations refused"),
    }

    items: int = 0
    labels: int = 0
    refused: int = 0
    refusals: list[str] = field(default_factory=list)

    def refuse(self, why: str) -> None:
        """Count an annotation that is not counted as a label."""
        self.refused += 1
        self.refusals.append(why)

    def add(self, other: Tally) -> None:
        """Add the counts of a round."""
        for name in self.WORDS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def counts(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.WORDS}

    def __bool__(self) -> bool:
        return any(self.counts().values())

    def __str__(self) -> str:
        said = [f"{n:,} {self.WORDS[name][n != 1]}" for name, n in self.counts().items() if n]
        return ", ".join(said) or "nothing to do"


T = TypeVar("T", bound=Tally)


class Rounds(ABC, Generic[T]):
    """The loop of a connector, with an empty `Tally` of its own.

    `on_round` gets what a round did, if it did anything, and `say` a line for what people should
    know: each annotation that is refused, and each failure.
    """

    def __init__(
        self,
        panel: AsyncClient,
        stream: str,
        tally: Callable[[], T],
        say: Callable[[str], None],
        on_round: Callable[[T], None],
    ) -> None:
        self.panel, self.stream, self.total = panel, stream, tally()
        self.say, self.on_round = say, on_round
        self._new_tally, self._tally = tally, tally()
        self._intake, self._leaving = Intake(panel, stream), Leaving(panel, stream)
        self._stop = asyncio.Event()
        self._told: set[str] = set()
        self._failed = ""

    @abstractmethod
    async def create_stream(self) -> None:
        """Create the stream with the classes of the other program, unless there is one."""

    @abstractmethod
    async def open(self) -> None:
        """Check that both sides fit, and begin."""

    @abstractmethod
    async def _round(self, tally: T) -> None:
        """Do everything that is missing, on both sides, and count it."""

    async def _end(self, tally: T) -> None:
        """Take back what the other program should no longer show."""

    async def round(self) -> T:
        """One round; what it did includes what rounds before it did that failed in the end."""
        await self._round(self._tally)
        return self._counted()

    async def close(self) -> None:
        """Take back what the other program should no longer show, and report what is left."""
        await self._end(self._tally)
        if done := self._counted():
            self._report(done)

    def _counted(self) -> T:
        """What was done since the last round that was completed."""
        done, self._tally = self._tally, self._new_tally()
        self.total.add(done)
        return done

    @property
    def finished(self) -> bool:
        """Whether there will be nothing more to do."""
        return False

    @property
    def state(self) -> dict[str, int]:
        """What is under way, by its name, for the line of a round."""
        return {}

    def stop(self) -> None:
        """End after the round that is running."""
        self._stop.set()

    async def run(self, every: float = 2.0, until_idle: float | None = None) -> T:
        """Run rounds until `stop`, or until the stream is closed and empty; what was done.

        With `until_idle`, also after that many seconds in which there was nothing to do. In the end
        what people still hold is released.
        """
        await self.open()
        last, pause = time.monotonic(), every
        while not self._stop.is_set() and not self.finished:
            try:
                done = await self.round()
            except (ApiDown, Unreachable, ServerError) as fault:
                if isinstance(fault, ServerError) and fault.status not in BUSY:
                    raise
                self._fail(str(fault))
                last, pause = time.monotonic(), min(LONGEST_PAUSE, 2 * pause)
            else:
                self._failed, pause = "", every
                if done:
                    last = time.monotonic()
                    self._report(done)
            if until_idle is not None and time.monotonic() - last > until_idle:
                break
            await self._wait(pause)
        await self.close()
        return self.total

    def _fail(self, why: str) -> None:
        """Say why a round failed, unless the one before failed so too."""
        if why != self._failed:
            self.say(f"{why}: trying again")
        self._failed = why

    def _report(self, done: T) -> None:
        for line in done.refusals:
            self.say(line)
        self.on_round(done)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    def _tell(self, line: str) -> None:
        """Say something that may come up in every round, once."""
        if line not in self._told:
            self._told.add(line)
            self.say(line)


async def ensure_stream(panel: AsyncClient, name: str, classes: Sequence[str]) -> None:
    if name not in [one["name"] for one in await panel.streams()]:
        await panel.create_stream(name, classes=classes, **FOR_PEOPLE)


class Intake:
    """Sends what is new in the other program as items."""

    def __init__(self, panel: AsyncClient, stream: str) -> None:
        self._panel, self._stream = panel, stream
        self._known: set[str] = set()

    def unknown(self, ids: Sequence[str]) -> list[str]:
        """Those that were not sent yet in this run."""
        return [id for id in ids if id not in self._known]

    async def add(self, payloads: Mapping[str, Any], tally: Tally) -> None:
        """Send the items that were not sent yet, {item: payload}."""
        new = self.unknown(list(payloads))
        if new:
            items = [{"id": id, "payload": payloads[id]} for id in new]
            tally.items += await self._send(items)
        self._known.update(new)

    async def _send(self, items: Sequence[Mapping[str, Any]]) -> int:
        """Send items; one that was changed since it was sent stays as it was.

        What is too large for one request is sent in parts, and an item that is too large by itself
        without its payload: people see it in the other program.
        """
        try:
            return int((await self._panel.add_items(self._stream, items))["created"])
        except ServerError as error:
            known = error.status == 409 and "different content" in error.message
            if not known and error.status not in (413, 422):
                raise
            if len(items) == 1:
                bare = {"id": items[0]["id"]}
                if not known and items[0] == bare:
                    raise
                return 0 if known else await self._send([bare])
        half = len(items) // 2
        return await self._send(items[:half]) + await self._send(items[half:])


def refusals(got: Mapping[str, Any], hints: Mapping[str, str]) -> dict[int, str]:
    """Why the server refused labels or gold, by their rows, and what can be done about it.

    >>> refused = [{"row": 2, "code": "changed", "message": "ann said yes"}]
    >>> refusals({"refusals": refused}, {"changed": "the first counts"})
    {2: 'ann said yes: the first counts'}
    """
    return {
        row["row"]: ": ".join(filter(None, (row["message"], hints.get(row["code"]))))
        for row in got["refusals"]
    }


class Verdict(NamedTuple):
    """With what an item left; `label` is None for one that left without labels."""

    label: str | None
    confidence: float


class Leaving:
    """Follows exits and revisions; `verdicts` has what items left with, the last revision of it."""

    def __init__(self, panel: AsyncClient, stream: str) -> None:
        self._panel, self._stream = panel, stream
        self._exit, self._revision = 0, 0
        self._changed: set[str] = set()
        self.verdicts: dict[str, Verdict] = {}

    async def read(self) -> set[str]:
        """Note what is new; the items that it is about."""
        for row in await self._all(self._panel.exits, self._exit):
            self._note(row)
            self._exit = row.n
        for row in await self._all(self._panel.revisions, self._revision):
            self._note(row)
            self._revision = row.n
        changed, self._changed = self._changed, set()
        return changed

    def _note(self, row: Any) -> None:
        self.verdicts[row.item] = Verdict(row.verdict, row.confidence)
        self._changed.add(row.item)

    async def _all(self, read: Callable[..., Any], after: int) -> list[Any]:
        """All rows after a cursor."""
        rows: list[Any] = []
        while page := await read(self._stream, after, limit=1000):
            rows += page
            after = page[-1].n
        return rows
