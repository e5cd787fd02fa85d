"""The sync: rounds that read both sides and do what is missing on either.

A round sends new tasks as items, annotations as labels, asks for work for everybody, and writes who
holds a task, and what became of it, into Label Studio. It keeps nothing on disk: after a kill of
either side, or of itself, the next round finds the leases in venire and the rest in Label Studio.

Tasks as they should be: in whose tab, open or closed, with which verdict.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from venire.client import AsyncClient, ServerError, Unreachable
from venire.connectors.label_studio.annotations import (
    Desk,
    Hearing,
    Person,
    Reader,
    Tally,
    annotator,
    choose_people,
    make_tabs,
)
from venire.connectors.label_studio.studio import FIELD, LabelStudio, StudioDown, StudioError
from venire.connectors.rounds import Rounds, Verdict, ensure_stream
from venire.errors import InputError
from venire.files.label_config import Control, find_control

#: The model version of the predictions.
VERSION: Final = "venire"


def changes(
    task: Mapping[str, Any], holders: Sequence[str], verdict: Verdict | None
) -> dict[str, Any]:
    """The fields of a task to change; none if it is as it should be.

    Label Studio closes a task when `overlap` people have annotated it, and looks at that again
    after each annotation. So an open task has a greater overlap, and a closed one no greater.

    >>> task = {"data": {"text": "a"}, "overlap": 1, "is_labeled": False, "annotations": []}
    >>> changes(task, ["ann@example.org"], None)
    {'data': {'text': 'a', 'venire_for': '|ann@example.org|'}, 'overlap': 2, 'is_labeled': False}
    >>> changes(task, [], Verdict("spam", 0.9))
    {'overlap': 1, 'is_labeled': True}
    """
    everyone = {annotator(one) for one in task["annotations"]}
    people = {annotator(one) for one in task["annotations"] if not one["was_cancelled"]}
    found: dict[str, Any] = {}
    wanted = "" if verdict else "".join(f"|{email}|" for email in holders)
    if task["data"].get(FIELD, "") != wanted:
        found["data"] = {**task["data"], FIELD: wanted}
    if verdict is not None:
        enough = max(1, len(people))
        if not task["is_labeled"] or task["overlap"] > enough:
            found |= {"overlap": enough, "is_labeled": True}
    elif task["is_labeled"] or task["overlap"] <= len(everyone) + len(holders):
        found |= {"overlap": len(everyone) + len(holders) + 1, "is_labeled": False}
    return found


async def put(
    studio: LabelStudio,
    control: Control,
    task: Mapping[str, Any],
    holders: Sequence[str],
    verdict: Verdict | None,
) -> bool:
    """Make a task what it should be; whether that closed it."""
    fields = changes(task, holders, verdict)
    if fields:
        await studio.change_task(task["id"], **fields)
    if verdict is not None:
        await _predict(studio, control, task, verdict)
    return bool(fields.get("is_labeled"))


async def _predict(
    studio: LabelStudio, control: Control, task: Mapping[str, Any], verdict: Verdict
) -> None:
    """Leave the verdict as the only prediction of ours, whatever an earlier attempt left."""
    ours = [one for one in task["predictions"] if one["model_version"] == VERSION]
    right = [one for one in ours if control.said(one["result"]) == [verdict.label]]
    if verdict.label is not None and not right:
        result = control.result(verdict.label)
        await studio.predict(task["id"], result, verdict.confidence, VERSION)
    for one in ours:
        if one not in right[:1]:
            await studio.remove_prediction(one["id"])


#: Seconds between two looks at the users; requests that change tasks at once.
USERS_SECONDS, WRITERS = 60.0, 4


class Sync(Rounds[Tally]):
    """Connects a project of Label Studio with a stream.

    async with LabelStudio(url, token, 7) as studio, AsyncClient(server, key) as panel:
        await Sync(studio, panel, "photos", 7, named=["ann@example.org=ann"]).run()

    `named` are those who take part, by default the users on the stream's panel, or all; `control`
    is the control of the labelling config that says the class, by default the only one. After the
    first pass over all tasks, a page of them is read again every `sweep` seconds.
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
        super().__init__(panel, stream, Tally, say, on_round)
        self.studio, self.desk = studio, Desk(panel, stream, project)
        self._control_name, self._named = control, named
        self._reader = Reader(studio, sweep)
        self._hearing: Hearing | None = None
        self._people: list[Person] = []
        self._seen_users = 0.0

    @property
    def finished(self) -> bool:
        """Whether the stream is closed, and nobody holds anything."""
        return self.desk.finished

    @property
    def state(self) -> dict[str, int]:
        """The tasks that stand in tabs."""
        return {"in_tabs": len(self.desk.tokens)}

    async def create_stream(self) -> None:
        """Create the stream with the classes of the project, unless there is one."""
        control = await self._control()
        if not control.classes:
            raise InputError(
                f"the choices of {control.name} come with each task: create the stream"
            )
        await ensure_stream(self.panel, self.stream, control.classes)

    async def _control(self) -> Control:
        return find_control((await self.studio.project())["label_config"], self._control_name)

    async def open(self) -> None:
        """Check that both sides fit, make the tabs, and take over the leases of an earlier run."""
        control = await self._control()
        settings = (await self.panel.stream(self.stream))["settings"]
        _check_classes(settings["classes"], control, self.stream)
        self._hearing, self._people = Hearing(self.desk, control), []
        await self._meet()
        await self._leaving.read()  # the first pass comes to all tasks
        await self.desk.restore(self._labelers())
        self.desk.dirty |= {task["id"] for task in await self.studio.handed_out()}
        self._reader.begin()

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

    async def _round(self, tally: Tally) -> None:
        await self._meet()
        tasks = await self._reader.read()
        await self._add(tasks.values(), tally)
        await self.hearing.hear(tasks.values(), tally)
        await self._leave()
        tally.ended += len(await self.desk.refresh())
        before = set(self.desk.tokens)
        for labeler, why in (await self.desk.ask(self._labelers())).items():
            self._tell(f"{labeler} gets no work: {why}")
        if self.desk.finished:
            await self._leave()  # the last items may have left since, and no round follows
        given = set(self.desk.tokens) - before
        tally.given += len(given)
        answered = {task for task, _ in given} & set(tasks)  # what was annotated unasked, now asked
        await self.hearing.hear([tasks[task] for task in answered], tally)
        tasks |= await self._read_dirty(tasks, tally)
        await self._write(tasks.values(), tally)
        self._reader.done()

    async def _add(self, tasks: Iterable[Mapping[str, Any]], tally: Tally) -> None:
        await self._intake.add({self.desk.item(one["id"]): _payload(one) for one in tasks}, tally)

    async def _leave(self) -> None:
        """Note what has left; its tasks are looked at."""
        left = map(self.desk.task, await self._leaving.read())
        self.desk.dirty |= {task for task in left if task is not None}

    async def _withdraw(self, task: int) -> None:
        """Withdraw the item of a task that is deleted; its leases end with it."""
        try:
            await self.panel.withdraw(self.stream, self.desk.item(task))
            self.say(f"task {task} is deleted in Label Studio: its item is withdrawn")
        except ServerError as error:
            if error.status not in (404, 409):  # it was never sent, or has left
                raise
        for key in [key for key in self.desk.tokens if key[0] == task]:
            self.desk.drop(key)
        self.desk.dirty.discard(task)

    def _labelers(self) -> list[str]:
        return [person.labeler for person in self._people]

    async def _read_dirty(self, seen: Mapping[int, Any], tally: Tally) -> dict[int, dict[str, Any]]:
        """The tasks to look at that were not read yet; items of deleted tasks are withdrawn."""
        wanted = sorted(self.desk.dirty - set(seen))
        found = {task["id"]: task for task in await self.studio.tasks(wanted)}
        for task in set(wanted) - set(found):
            await self._withdraw(task)
        await self._add(found.values(), tally)
        await self.hearing.hear(found.values(), tally)
        return found

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
        verdict = self._leaving.verdicts.get(self.desk.item(task["id"]))
        try:
            closed = await put(self.studio, self.hearing.control, task, holders, verdict)
        except StudioError as error:
            if error.status not in (400, 404):
                raise
            self._tell(f"task {task['id']} cannot be changed: {error}")
        else:
            tally.closed += closed
            self.desk.dirty.discard(task["id"])

    async def _end(self, tally: Tally) -> None:
        """Release what people hold, and take it out of their tabs."""
        try:
            tasks = {task for task, _ in self.desk.tokens}
            for key in list(self.desk.tokens):
                await self.desk.release(key)
            held = await self.studio.tasks(sorted(tasks))
            await self.hearing.hear(held, tally)  # what was made meanwhile
            await self._write(held, tally)
        except (StudioDown, Unreachable) as fault:
            self.say(f"{fault}: what is in tabs stays there; the next run goes on with it")


def _payload(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task["data"].items() if name != FIELD}


def _check_classes(classes: Sequence[str], control: Control, stream: str) -> None:
    if control.classes and set(classes) != set(control.classes):
        raise InputError(
            f"stream {stream!r} has the classes {sorted(classes)}, and the control "
            f"{control.name!r} of the project has {sorted(control.classes)}: expected the same"
        )
