"""The sync: rounds that read both sides and do what is missing on either.

A round sends new tasks as items, annotations as labels, asks for work for everybody, and writes who
holds a task, and what became of it, into Label Studio. It keeps nothing on disk: after a kill of
either side, or of itself, the next round finds the leases in venire and the rest in Label Studio.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from venire.client import AsyncClient, ServerError, Unreachable
from venire.connectors.label_studio.board import Verdict, put
from venire.connectors.label_studio.desk import Desk
from venire.connectors.label_studio.hearing import Hearing
from venire.connectors.label_studio.people import Person, choose_people, make_tabs
from venire.connectors.label_studio.studio import FIELD, LabelStudio, StudioDown, StudioError
from venire.connectors.label_studio.tally import Tally
from venire.errors import InputError
from venire.files.label_config import Control, find_control

__all__ = ["Sync"]

#: How far back `changed` looks: requests of others may be under way.
MARGIN: Final = timedelta(seconds=15)

#: Pages of all tasks that a round reads in the first pass.
FIRST_PAGES: Final = 10

#: Seconds between two looks at the users; requests that change tasks at once.
USERS_SECONDS, WRITERS = 60.0, 4

#: The settings of a stream that is made here: people take minutes, and few label everything.
FOR_PEOPLE: Final = {
    "min_confidence": 0.95,
    "max_overlap": 3,
    "default_weight": 1000.0,
    "slot_seconds": 10.0,
    "lease_floor_seconds": 300.0,
}

#: The longest pause after a failure, in seconds.
LONGEST_PAUSE: Final = 30.0


class Sync:
    """Connects a project of Label Studio with a stream.

    async with LabelStudio(url, token, 7) as studio, AsyncClient(server, key) as panel:
        await Sync(studio, panel, "photos", 7, named=["ann@example.org=ann"]).run()

    `named` are those who take part, by default the users on the stream's panel, or all; `control`
    is the control of the labelling config that says the class, by default the only one. After the
    first pass over all tasks, a page of them is read again every `sweep` seconds. `on_round`
    gets what a round did, if it did anything, and `say` a line for what people should know: each
    annotation that is refused, and each failure.
    """

    def __init__(
        self,
        studio: LabelStudio,
        panel: AsyncClient,
        stream: str,
        project: int,
        *,
        control: str | None = None,
        named: Sequence[str] = (),
        sweep: float = 15.0,
        say: Callable[[str], None] = lambda line: None,
        on_round: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        self.studio, self.panel, self.stream = studio, panel, stream
        self.desk, self.total, self.on_round = Desk(panel, stream, project), Tally(), on_round
        self._control_name, self._named, self.say = control, named, say
        self._sweep, self._swept = sweep, 0.0
        self._hearing: Hearing | None = None
        self._people: list[Person] = []
        self._seen_users = 0.0
        self._since: datetime | None = None
        self._cursor, self._read_to, self._first_pass = 0, 0, True
        self._known: set[int] = set()
        self._left: dict[int, Verdict] = {}
        self._exit_n, self._revision_n = 0, 0
        self._tally = Tally()
        self._stop = asyncio.Event()
        self._told: set[str] = set()
        self._failed = ""

    def stop(self) -> None:
        """End after the round that is running."""
        self._stop.set()

    async def run(self, every: float = 2.0, until_idle: float | None = None) -> Tally:
        """Run rounds until `stop`, or until the stream is closed and empty.

        With `until_idle`, also after that many seconds in which there was nothing to do. In the end
        what people still hold is released and taken out of their tabs.
        """
        await self.open()
        last, pause = time.monotonic(), every
        while not self._stop.is_set() and not self.desk.finished:
            try:
                done = await self.round()
            except (StudioDown, Unreachable) as fault:
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

    def _report(self, done: Tally) -> None:
        for line in done.refusals:
            self.say(line)
        self.on_round(done)

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def create_stream(self) -> None:
        """Create the stream with the classes of the project, unless there is one."""
        control = await self._control()
        if not control.classes:
            raise InputError(
                f"the choices of {control.name} come with each task: create the stream"
            )
        if self.stream not in [one["name"] for one in await self.panel.streams()]:
            await self.panel.create_stream(self.stream, classes=control.classes, **FOR_PEOPLE)

    async def _control(self) -> Control:
        return find_control((await self.studio.project())["label_config"], self._control_name)

    async def open(self) -> None:
        """Check that both sides fit, make the tabs, and take over the leases of an earlier run."""
        control = await self._control()
        settings = (await self.panel.stream(self.stream))["settings"]
        _check_classes(settings["classes"], control, self.stream)
        self._hearing, self._people = Hearing(self.desk, control), []
        await self._meet()
        await self._read_exits()
        self.desk.dirty.clear()  # the first pass comes to all tasks
        await self.desk.restore(self._labelers())
        self.desk.dirty |= {task["id"] for task in await self.studio.handed_out()}
        self._since = self.studio.now - MARGIN

    async def _meet(self) -> None:
        """Look who takes part, and make their tabs."""
        if time.monotonic() - self._seen_users < USERS_SECONDS and self._people:
            return
        settings = (await self.panel.stream(self.stream))["settings"]
        self._people = choose_people(await self.studio.users(), settings, self._named)
        await make_tabs(self.studio, self._people)
        self.hearing.meet(self._people)
        self._seen_users = time.monotonic()

    @property
    def hearing(self) -> Hearing:
        """What hears annotations, once `open` has read the project."""
        if self._hearing is None:
            raise InputError("the sync is not open: call open() first")
        return self._hearing

    async def round(self) -> Tally:
        """One round: everything that is missing, on both sides.

        What it did includes what rounds before it did that failed in the end.
        """
        tally, now = self._tally, self.studio.now
        await self._meet()
        tasks = await self._read_tasks()
        await self._add_items(tasks.values(), tally)
        await self.hearing.hear(tasks.values(), tally)
        await self._read_exits()
        tally.ended += len(await self.desk.refresh())
        before = set(self.desk.tokens)
        for labeler, why in (await self.desk.ask(self._labelers())).items():
            self._tell(f"{labeler} gets no work: {why}")
        given = set(self.desk.tokens) - before
        tally.given += len(given)
        again = {task for task, _ in given} & set(tasks)  # what was annotated unasked, now asked
        await self.hearing.hear([tasks[task] for task in again], tally)
        tasks |= await self._read_dirty(tasks, tally)
        await self._write(tasks.values(), tally)
        self._since, self._cursor = now - MARGIN, self._read_to
        self.total.add(tally)
        self._tally = Tally()
        return tally

    def _labelers(self) -> list[str]:
        return [person.labeler for person in self._people]

    async def _read_tasks(self) -> dict[int, dict[str, Any]]:
        """What has changed, and some pages of all tasks: not every change has a date."""
        assert self._since is not None
        found = {task["id"]: task for task in await self.studio.changed(self._since)}
        self._read_to = self._cursor
        for _ in range(self._pages()):
            page = await self.studio.after(self._read_to)
            found |= {task["id"]: task for task in page}
            self._read_to = page[-1]["id"] if page else 0
            if not page:
                self._first_pass = False
                break
        return found

    def _pages(self) -> int:
        """How many pages of all tasks to read in this round."""
        if self._first_pass:
            return FIRST_PAGES
        due = time.monotonic() - self._swept >= self._sweep
        self._swept = time.monotonic() if due else self._swept
        return int(due)

    async def _read_dirty(self, seen: Mapping[int, Any], tally: Tally) -> dict[int, dict[str, Any]]:
        """The tasks to look at that were not read yet; items of deleted tasks are withdrawn."""
        wanted = sorted(self.desk.dirty - set(seen))
        found = {task["id"]: task for task in await self.studio.tasks(wanted)}
        for task in set(wanted) - set(found):
            await self._withdraw(task)
        await self._add_items(found.values(), tally)
        await self.hearing.hear(found.values(), tally)
        return found

    async def _withdraw(self, task: int) -> None:
        """Withdraw the item of a task that is deleted; its leases end with it."""
        if task not in self._left:
            try:
                await self.panel.withdraw(self.stream, self.desk.item(task))
                self.say(f"task {task} is deleted in Label Studio: its item is withdrawn")
            except ServerError as error:
                if error.status not in (404, 409):  # it was never sent, or has left
                    raise
        for key in [key for key in self.desk.tokens if key[0] == task]:
            self.desk.drop(key)
        self.desk.dirty.discard(task)

    async def _add_items(self, tasks: Iterable[Mapping[str, Any]], tally: Tally) -> None:
        new = [task for task in tasks if task["id"] not in self._known]
        items = [{"id": self.desk.item(task["id"]), "payload": _payload(task)} for task in new]
        if items:
            tally.items += await self._send_items(items)
        self._known |= {task["id"] for task in new}

    async def _send_items(self, items: Sequence[Mapping[str, Any]]) -> int:
        """Send items; one whose task was changed since it was sent stays as it was.

        What is too large for one request is sent in parts, and an item that is too large by itself
        without its payload: people see the task in Label Studio.
        """
        try:
            return int((await self.panel.add_items(self.stream, items))["created"])
        except ServerError as error:
            known = error.status == 409 and "different content" in error.message
            if not known and error.status not in (413, 422):
                raise
            if len(items) == 1:
                bare = {"id": items[0]["id"]}
                if not known and items[0] == bare:
                    raise
                return 0 if known else await self._send_items([bare])
        half = len(items) // 2
        return await self._send_items(items[:half]) + await self._send_items(items[half:])

    async def _read_exits(self) -> None:
        """Note what has left, and verdicts that were revised."""
        for row in await _all(self.panel.exits, self.stream, self._exit_n):
            self._note(row.item, row.verdict, row.confidence)
            self._exit_n = row.n
        for row in await _all(self.panel.revisions, self.stream, self._revision_n):
            self._note(row.item, row.verdict, row.confidence)
            self._revision_n = row.n

    def _note(self, item: str, verdict: str | None, confidence: float) -> None:
        task = self.desk.task(item)
        if task is not None:
            self._left[task] = Verdict(verdict, confidence)
            self.desk.dirty.add(task)

    async def _write(self, tasks: Iterable[Mapping[str, Any]], tally: Tally) -> None:
        """Make all tasks what they should be; one that fails does not keep the others waiting."""
        limit = asyncio.Semaphore(WRITERS)

        async def one(task: Mapping[str, Any]) -> None:
            async with limit:
                await self._put(task, tally)

        results = await asyncio.gather(*map(one, tasks), return_exceptions=True)
        for fault in results:
            if isinstance(fault, BaseException):
                raise fault

    async def _put(self, task: Mapping[str, Any], tally: Tally) -> None:
        emails = {person.labeler: person.email for person in self._people}
        holders = [emails[name] for name in self.desk.holders(task["id"]) if name in emails]
        verdict = self._left.get(task["id"])
        try:
            closed = await put(self.studio, self.hearing.control, task, holders, verdict)
        except StudioError as error:
            if error.status not in (400, 404):
                raise
            self._tell(f"task {task['id']} cannot be changed: {error}")
        else:
            tally.closed += closed
            self.desk.dirty.discard(task["id"])

    async def close(self) -> None:
        """Release what people hold, and take it out of their tabs."""
        try:
            tasks = {task for task, _ in self.desk.tokens}
            for key in list(self.desk.tokens):
                await self.desk.release(key)
            held = await self.studio.tasks(sorted(tasks))
            await self.hearing.hear(held, self._tally)  # what was made meanwhile
            await self._write(held, self._tally)
        except (StudioDown, Unreachable) as fault:
            self.say(f"{fault}: what is in tabs stays there; the next run goes on with it")
        self.total.add(self._tally)
        if self._tally:
            self._report(self._tally)

    def _tell(self, line: str) -> None:
        """Say something that may come up in every round, once."""
        if line not in self._told:
            self._told.add(line)
            self.say(line)


def _payload(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task["data"].items() if name != FIELD}


def _check_classes(classes: Sequence[str], control: Control, stream: str) -> None:
    if control.classes and set(classes) != set(control.classes):
        raise InputError(
            f"stream {stream!r} has the classes {sorted(classes)}, and the control "
            f"{control.name!r} of the project has {sorted(control.classes)}: expected the same"
        )


async def _all(read: Callable[..., Any], stream: str, after: int) -> list[Any]:
    """All rows after a cursor."""
    rows: list[Any] = []
    while page := await read(stream, after, limit=1000):
        rows += page
        after = page[-1].n
    return rows
