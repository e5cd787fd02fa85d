"""Tasks as items of the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from venire.client import ServerError
from venire.connectors.label_studio.desk import Desk
from venire.connectors.label_studio.studio import FIELD
from venire.connectors.label_studio.tally import Tally

__all__ = ["Intake"]


class Intake:
    """Sends tasks that are new, and withdraws those that are deleted."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._panel, self._stream = desk, desk.panel, desk.stream
        self._known: set[int] = set()

    async def add(self, tasks: Iterable[Mapping[str, Any]], tally: Tally) -> None:
        """Send the tasks that were not sent yet."""
        new = [task for task in tasks if task["id"] not in self._known]
        items = [{"id": self._desk.item(task["id"]), "payload": _payload(task)} for task in new]
        if items:
            tally.items += await self._send(items)
        self._known |= {task["id"] for task in new}

    async def _send(self, items: Sequence[Mapping[str, Any]]) -> int:
        """Send items; one whose task was changed since it was sent stays as it was.

        What is too large for one request is sent in parts, and an item that is too large by itself
        without its payload: people see the task in Label Studio.
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

    async def withdraw(self, task: int, say: Callable[[str], None]) -> None:
        """Withdraw the item of a task that is deleted; its leases end with it."""
        try:
            await self._panel.withdraw(self._stream, self._desk.item(task))
            say(f"task {task} is deleted in Label Studio: its item is withdrawn")
        except ServerError as error:
            if error.status not in (404, 409):  # it was never sent, or has left
                raise
        for key in [key for key in self._desk.tokens if key[0] == task]:
            self._desk.drop(key)
        self._desk.dirty.discard(task)


def _payload(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in task["data"].items() if name != FIELD}
