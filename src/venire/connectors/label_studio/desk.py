"""The leases that people in Label Studio hold, as venire has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from venire.client import AsyncClient, Nothing, ServerError, Work
from venire.model import NoWork

__all__ = ["Desk", "Key"]

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
        """The item of a task."""
        return f"{self._project}-{task}"

    def task(self, item: str) -> int | None:
        """The task of an item; None for an item that is from elsewhere."""
        project, _, task = item.partition("-")
        return int(task) if project == str(self._project) and task.isdecimal() else None

    def holders(self, task: int) -> list[str]:
        """Who holds a task, the earliest first."""
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

    async def release(self, key: Key, bar: bool = False) -> None:
        """End a lease without a label; with `bar` it is not given to this labeler again."""
        try:
            await self.panel.release(self.tokens[key], bar)
        except ServerError as error:
            if error.status not in (404, 409):  # it has ended already
                raise
        self.drop(key)
