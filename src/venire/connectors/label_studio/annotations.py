"""Annotations as labels: each counted once, or refused with a reason.

Which tasks a round looks at: what has changed, and all of them over and over. The leases that
people in Label Studio hold, as venire has them. Who takes part: users of Label Studio, as labelers
of a stream. What a round of the sync did, or all of them together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, TypeAlias

from venire.client import AsyncClient, Nothing, ServerError, Work
from venire.client.wire import given
from venire.connectors import rounds
from venire.connectors.label_studio.studio import LabelStudio, User, holding
from venire.errors import InputError, UnknownName
from venire.files.label_config import Control, rationale_in
from venire.model import NoWork


@dataclass
class Tally(rounds.Tally):
    """Counts of tasks and annotations.

    >>> print(Tally(labels=2, closed=1))
    2 labels, 1 task closed
    """

    WORDS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "items": ("new item", "new items"),
        "labels": ("label", "labels"),
        "skips": ("skip", "skips"),
        "refused": ("annotation refused", "annotations refused"),
        "given": ("task handed out", "tasks handed out"),
        "ended": ("lease ended", "leases ended"),
        "closed": ("task closed", "tasks closed"),
    }

    skips: int = 0
    given: int = 0
    ended: int = 0
    closed: int = 0


@dataclass(frozen=True, slots=True)
class Person:
    """A user of Label Studio, and the labeler that the user is in the stream."""

    user: int
    email: str
    labeler: str


def choose_people(
    users: Sequence[User], settings: Mapping[str, Any], named: Sequence[str] = ()
) -> list[Person]:
    """The users who are named, as EMAIL or EMAIL=LABELER; else those on the panel; else all.

    Trusted labelers audit verdicts, which is not done here.

    >>> users = [User(1, "owner@example.org"), User(2, "ann@example.org")]
    >>> choose_people(users, {"panel": [{"id": "ann@example.org"}]})
    [Person(user=2, email='ann@example.org', labeler='ann@example.org')]
    >>> choose_people(users, {}, ["ann@example.org=ann"])
    [Person(user=2, email='ann@example.org', labeler='ann')]
    """
    by_email = {user.email.lower(): user for user in users}
    trusted = {member["id"] for member in settings.get("panel", ()) if member.get("trusted")}
    members = {member["id"] for member in settings.get("panel", ())} - trusted
    if named:
        found = [_named(one, by_email) for one in named]
    else:
        found = [Person(user.id, user.email, user.email) for user in users]
        seated = [one for one in found if one.labeler in members]
        if seated or not settings.get("open_panel", True):
            found = seated
    found = [one for one in found if one.labeler not in trusted]
    if not found:
        raise InputError(
            f"no user of Label Studio takes part: got the users {sorted(by_email)} and the panel "
            f"{sorted(members)}: name people with --labeler EMAIL=LABELER"
        )
    _check_once([one.labeler for one in found])
    return found


def _named(text: str, by_email: Mapping[str, User]) -> Person:
    email, _, labeler = text.partition("=")
    user = by_email.get(email.strip().lower())
    if user is None:
        raise UnknownName("user of Label Studio", email, by_email)
    return Person(user.id, user.email, labeler.strip() or user.email)


def _check_once(labelers: Sequence[str]) -> None:
    twice = sorted({name for name in labelers if labelers.count(name) > 1})
    if twice:
        raise InputError(f"got two users for {', '.join(twice)}, expected a labeler for each user")


async def make_tabs(studio: LabelStudio, people: Sequence[Person]) -> int:
    """Make a tab for each person that shows what is theirs; how many there were to make or mend."""
    there = {tab["data"].get("title"): tab for tab in await studio.tabs()}
    done = 0
    for person in people:
        title = f"venire: {person.email}"
        tab = there.get(title, {"id": None, "data": {}})
        filters = {"conjunction": "and", "items": [holding(person.email)]}
        if tab["data"].get("filters") != filters:
            basics = {"title": title, "type": "list", "target": "tasks"}
            await studio.put_tab({**basics, **tab["data"], "filters": filters}, tab["id"])
            done += 1
    return done


#: A task and a labeler.
Key: TypeAlias = tuple[int, str]

#: Requests to the server at once.
AT_ONCE: Final = 8


class Desk:
    """Takes leases, remembers their tokens, and finds out which have ended.

    An item is called by its project and its task, "7-123". Items of other kinds may be in the same
    stream; nobody can label them here, so their leases are released. `dirty` are the tasks whose
    holders have changed.
    """

    def __init__(self, panel: AsyncClient, stream: str, project: int) -> None:
        self.panel, self.stream, self._project = panel, stream, project
        self.tokens: dict[Key, str] = {}
        self.dirty: set[int] = set()
        self.finished = False

    def item(self, task: int) -> str:
        return f"{self._project}-{task}"

    def task(self, item: str) -> int | None:
        project, _, task = item.partition("-")
        return int(task) if project == str(self._project) and task.isdecimal() else None

    def holders(self, task: int) -> list[str]:
        return [labeler for held, labeler in self.tokens if held == task]

    async def restore(self, labelers: Iterable[str]) -> None:
        """Take over the leases of an earlier run."""
        for labeler in labelers:
            for work in await self.panel.held(self.stream, labeler):
                await self._take(work)

    async def ask(self, labelers: Iterable[str]) -> dict[str, str]:
        """Ask for work until there is none; who may not have any, and why."""
        reasons: dict[str, str] = {}
        barred: dict[str, str] = {}
        for labeler in labelers:
            try:
                while isinstance(got := await self._next(labeler), Work):
                    await self._take(got)
                reasons[labeler] = got.reason
            except ServerError as error:
                if error.status not in (403, 404, 422):
                    raise
                barred[labeler] = str(error)
        closed = bool(reasons) and all(why == NoWork.CLOSED for why in reasons.values())
        self.finished = closed and not self.tokens
        return barred

    async def _next(self, labeler: str) -> Work | Nothing:
        return await self.panel.next(self.stream, labeler, wait=0)

    async def _take(self, work: Work) -> None:
        task = self.task(work.item)
        if task is None:
            await self.panel.release(work.token, bar=True)
        else:
            self.tokens[task, work.labeler] = work.token
            self.dirty.add(task)

    def drop(self, key: Key) -> str:
        """Forget a lease that has ended; its token."""
        self.dirty.add(key[0])
        return self.tokens.pop(key)

    async def refresh(self) -> set[Key]:
        """Forget the leases that have ended: expired, answered elsewhere, or the item has left."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def held_by(task: int) -> set[str]:
            async with limit:
                return await self._held_by(task)

        tasks = sorted({task for task, _ in self.tokens})
        held = dict(zip(tasks, await asyncio.gather(*map(held_by, tasks)), strict=True))
        ended = {key for key in self.tokens if key[1] not in held[key[0]]}
        for key in ended:
            self.drop(key)
        return ended

    async def _held_by(self, task: int) -> set[str]:
        try:
            view: Mapping[str, Any] = await self.panel.item(self.stream, self.item(task))
        except ServerError as error:
            if error.status != 404:
                raise
            return set()
        return set(view["held_by"])

    async def abstain(self, key: Key) -> None:
        """Say that the labeler is not sure, which ends the lease."""
        await self._end(key, self.panel.abstain(self.tokens[key]))

    async def release(self, key: Key, bar: bool = False) -> None:
        """End a lease without a label; with `bar` it is not given to this labeler again."""
        await self._end(key, self.panel.release(self.tokens[key], bar))

    async def _end(self, key: Key, call: Awaitable[Any]) -> None:
        try:
            await call
        except ServerError as error:
            if error.status not in (404, 409):  # it was answered, or has ended already
                raise
        self.drop(key)


#: How far back a look for changes goes: requests of others may be under way.
MARGIN: Final = timedelta(seconds=15)

#: Pages of all tasks that a round reads in the first pass.
FIRST_PAGES: Final = 10


class Reader:
    """Reads tasks that changed since the last round that was completed, by Label Studio's clock.

    Not every change has a date: after the first pass over all tasks, a page of them is read again
    every `sweep` seconds.
    """

    def __init__(self, studio: LabelStudio, sweep: float) -> None:
        self._studio, self._sweep, self._swept = studio, sweep, 0.0
        self._since: datetime | None = None
        self._next_since: datetime | None = None
        self._cursor, self._next_cursor, self._first_pass = 0, 0, True

    def begin(self) -> None:
        """Look for changes from now on."""
        self._since = self._studio.now - MARGIN

    async def read(self) -> dict[int, dict[str, Any]]:
        """The tasks to look at, by id."""
        self._next_since = self._studio.now - MARGIN
        since = self._next_since if self._since is None else self._since
        found = {task["id"]: task for task in await self._studio.changed(since)}
        self._next_cursor = self._cursor
        for _ in range(self._pages()):
            page = await self._studio.after(self._next_cursor)
            found |= {task["id"]: task for task in page}
            self._next_cursor = page[-1]["id"] if page else 0
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

    def done(self) -> None:
        """What was read has been dealt with; else the next round reads it again."""
        self._since, self._cursor = self._next_since, self._next_cursor


Annotation: TypeAlias = Mapping[str, Any]

#: What can be done about a label that the server refused, by the code of the refusal.
HINTS = {
    "not_given": "people label what their tab shows; with the setting unasked_labels, the stream "
    "takes what they label besides",
    "changed": "the first counts",
}


def annotator(annotation: Annotation) -> int:
    """The id of the user who made an annotation; 0 for one who is no longer there.

    >>> annotator({"completed_by": 3}), annotator({"completed_by": {"id": 3}})
    (3, 3)
    """
    who = annotation["completed_by"]
    return int((who["id"] if isinstance(who, Mapping) else who) or 0)


@dataclass
class Hearing:
    """Sends what annotations say to the stream.

    An annotation with a lease answers it. One without goes to the server, which knows whether the
    labeler ever had one, and has the label if it came before: so a restart counts nothing twice.
    """

    desk: Desk
    control: Control
    people: dict[int, Person] = field(default_factory=dict)
    _heard: set[tuple[int, str]] = field(default_factory=set)
    _strange: set[tuple[int, str]] = field(default_factory=set)

    def meet(self, people: Iterable[Person]) -> None:
        """Take the annotations of these people; what somebody new made before is heard again."""
        known = {person.user: person for person in people}
        if known != self.people:
            self.people = known
            self._heard -= self._strange
            self._strange.clear()

    async def hear(self, tasks: Iterable[Mapping[str, Any]], tally: Tally) -> None:
        """Send what is new in these tasks."""
        rows: list[tuple[Annotation, Key, str]] = []
        for task in tasks:
            for user, made in _by_user(task["annotations"]).items():
                person = self.people.get(user)
                if person is None:
                    self._refuse_stranger(made, task["id"], tally)
                else:
                    rows += await self._one(made, (task["id"], person.labeler), tally)
        for k in range(0, len(rows), 1000):
            await self._send(rows[k : k + 1000], tally)

    def _refuse_stranger(self, made: Sequence[Annotation], task: int, tally: Tally) -> None:
        for annotation in made:
            if self._is_new(annotation) and not annotation["was_cancelled"]:
                name = annotation.get("created_username", "").strip()
                self._strange.add(_stamp(annotation))
                self._refuse(annotation, task, f"{name or 'its user'} takes no part", tally)

    async def _one(
        self, made: Sequence[Annotation], key: Key, tally: Tally
    ) -> list[tuple[Annotation, Key, str]]:
        """What one person made of a task; returns what has to be sent without a lease."""
        rows: list[tuple[Annotation, Key, str]] = []
        valid = [annotation for annotation in made if not annotation["was_cancelled"]]
        if not valid and key in self.desk.tokens:
            await self.desk.abstain(key)
            tally.skips += 1
        for annotation in valid:
            if not self._is_new(annotation) and key not in self.desk.tokens:
                continue
            said = self.control.said(annotation["result"])
            if len(said) == 1:
                if key not in self.desk.tokens or not await self._answer(
                    annotation, key, said[0], tally
                ):
                    rows.append((annotation, key, said[0]))
                continue
            if key in self.desk.tokens:
                await self.desk.release(key, bar=True)
            self._refuse(
                annotation, key[0], f"it says {said or 'nothing'}, expected one class of "
                f"{self.control.name}", tally,
            )  # fmt: skip
        return rows

    async def _answer(self, annotation: Annotation, key: Key, said: str, tally: Tally) -> bool:
        """Answer a lease; False if the server does not know it."""
        token = self.desk.tokens[key]
        try:
            await self.desk.panel.label(token, said, **self._beside(annotation))
            tally.labels += 1
        except ServerError as error:
            if error.status not in (404, 409, 422):
                raise
            if error.status == 404:
                self.desk.drop(key)
                return False
            self._refuse(annotation, key[0], error.message, tally)
        self.desk.drop(key)
        self._heard.add(_stamp(annotation))
        return True

    def _beside(self, annotation: Annotation) -> dict[str, Any]:
        """What an annotation says beside the class: how sure somebody was, and why."""
        result = annotation["result"]
        return given(confidence=self.control.confidence(result), rationale=rationale_in(result))

    async def _send(self, rows: Sequence[tuple[Annotation, Key, str]], tally: Tally) -> None:
        labels = [
            {"item": self.desk.item(task), "labeler": labeler, "said": said}
            | self._beside(annotation)
            for annotation, (task, labeler), said in rows
        ]
        got = await self.desk.panel.add_labels(self.desk.stream, labels, leased=True)
        tally.labels += got["accepted"] + got["late"]
        refused = rounds.refusals(got, HINTS)
        for place, (annotation, (task, _), _) in enumerate(rows):
            if place in refused:
                self._refuse(annotation, task, refused[place], tally)
            self._heard.add(_stamp(annotation))

    def _is_new(self, annotation: Annotation) -> bool:
        return _stamp(annotation) not in self._heard

    def _refuse(self, annotation: Annotation, task: int, why: str, tally: Tally) -> None:
        if self._is_new(annotation):
            self._heard.add(_stamp(annotation))
            tally.refuse(f"annotation {annotation['id']} of task {task} is not counted: {why}")


def _stamp(annotation: Annotation) -> tuple[int, str]:
    """An annotation as it is now: it may be changed later."""
    return annotation["id"], annotation["updated_at"]


def _by_user(annotations: Sequence[Annotation]) -> dict[int, list[Annotation]]:
    """Annotations by who made them, the earliest first."""
    found: dict[int, list[Annotation]] = {}
    for annotation in sorted(annotations, key=lambda one: one["id"]):
        found.setdefault(annotator(annotation), []).append(annotation)
    return found
