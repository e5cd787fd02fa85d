"""The calls of Label Studio's REST API that the sync needs.

Nothing is retried here: the sync reads again what there is, and does what is missing.

Tokens are of two kinds. A legacy token is sent as it is; a personal access token (a JWT) is
exchanged for an access token that lasts five minutes.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from venire.tools.http import ApiDown as StudioDown
from venire.tools.http import ApiError as StudioError
from venire.tools.http import JsonApi, are

__all__ = ["FIELD", "LabelStudio", "StudioDown", "StudioError", "User", "holding"]

#: The field of a task that says who should label it.
FIELD: Final = "venire_for"

#: Tasks in one request.
PAGE: Final = 100

#: Seconds for which an access token is used; it lasts 300.
ACCESS_SECONDS: Final = 240.0


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who can annotate."""

    id: int
    email: str


def holding(email: str = "") -> dict[str, Any]:
    """The filter of tasks that somebody, or this one, should label.

    >>> holding("ann@example.org")["value"]
    '|ann@example.org|'
    """
    value = f"|{email}|" if email else "|"
    return _where(f"data.{FIELD}", "contains", "String", value)


def _where(column: str, operator: str, kind: str, value: Any) -> dict[str, Any]:
    return {"filter": f"filter:tasks:{column}", "operator": operator, "type": kind, "value": value}


class LabelStudio(JsonApi):
    """One project of a Label Studio.

    async with LabelStudio("http://127.0.0.1:8080", token, 7) as studio:
        print((await studio.project())["title"])
    """

    VERSION: ClassVar[str] = "1.8"

    def __init__(self, url: str, token: str, project: int, timeout: float = 60.0) -> None:
        self._token, self._project = token.strip(), project
        self._access, self._until = "", 0.0
        hints = {
            401: "expected a valid token: take one from Account & Settings in Label Studio; legacy "
            "tokens must be enabled for the organisation",
            403: "the owner of the token may not do this",
            404: f"expected Label Studio with project {project}: check --url and --project",
        }
        super().__init__("Label Studio", url, {}, secret=self._token, hints=hints, timeout=timeout)

    async def project(self) -> dict[str, Any]:
        """The project: its `title`, its `label_config`."""
        path = f"/api/projects/{self._project}"
        rows = [await self._call("GET", path)]
        found: dict[str, Any]
        (found,) = self.checked(path, rows, {"title": str, "label_config": str})
        return found

    async def users(self) -> list[User]:
        """Everybody in the organisation."""
        path = "/api/users"
        rows = self.checked(path, await self._call("GET", path), {"id": int, "email": str})
        return [User(row["id"], row["email"]) for row in rows if row["email"] != "Deleted"]

    async def tabs(self) -> list[dict[str, Any]]:
        """The tabs (views) of the project, for all users."""
        path = "/api/dm/views"
        rows = await self._call("GET", path, params={"project": self._project})
        return list(self.checked(path, rows, {"id": int, "data": dict | None}))

    async def put_tab(self, data: Mapping[str, Any], tab: int | None = None) -> None:
        """Make a tab, or change one."""
        if tab is None:
            await self._call("POST", "/api/dm/views", {"project": self._project, "data": data})
        else:
            await self._call("PATCH", f"/api/dm/views/{tab}", {"data": data})

    async def changed(self, since: datetime) -> list[dict[str, Any]]:
        """Tasks that were made, annotated or changed since then."""
        text = since.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        query = _where("updated_at", "greater", "Datetime", text)
        return [task async for page in self._pages([query]) for task in page]

    async def handed_out(self) -> list[dict[str, Any]]:
        return [task async for page in self._pages([holding()]) for task in page]

    async def tasks(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for k in range(0, len(ids), PAGE):
            query = _where("id", "in_list", "List", list(ids[k : k + PAGE]))
            found += (await self._page([query]))["tasks"]
        return found

    async def after(self, id: int) -> list[dict[str, Any]]:
        """The next tasks after an id, in their order."""
        page = await self._page([_where("id", "greater", "Number", id)])
        return list(page["tasks"])

    async def change_task(self, id: int, **fields: Any) -> None:
        await self._call("PATCH", f"/api/tasks/{id}", fields)

    async def predict(self, task: int, result: Any, score: float, version: str) -> None:
        body = {"task": task, "result": result, "score": score, "model_version": version}
        await self._call("POST", "/api/predictions", body)

    async def remove_prediction(self, id: int) -> None:
        await self._call("DELETE", f"/api/predictions/{id}")

    async def _pages(
        self, filters: Sequence[Mapping[str, Any]]
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Filtered tasks by id; each page begins after the last task of the one before."""
        last = 0
        while True:
            page = await self._page([*filters, _where("id", "greater", "Number", last)])
            if page["tasks"]:
                if not page["tasks"][-1]["id"] > last:  # it would be asked for them forever
                    raise self.odd("/api/tasks")
                yield page["tasks"]
                last = page["tasks"][-1]["id"]
            if not page["tasks"] or page["total"] <= len(page["tasks"]):
                return

    async def _page(self, filters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The first page of tasks, as they are stored: addresses of files are not resolved."""
        query = {
            "filters": {"conjunction": "and", "items": filters},
            "ordering": ["tasks:id"],
        }
        params = {
            "project": self._project,
            "fields": "all",
            "resolve_uri": "false",
            "page_size": PAGE,
            "query": json.dumps(query),
        }
        found: dict[str, Any] = await self._call("GET", "/api/tasks", params=params)
        if not are([found], {"tasks": list, "total": int}) or not all(
            map(_is_task, found["tasks"])
        ):
            raise self.odd("/api/tasks")
        return found

    async def _call(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None
    ) -> Any:
        return await self.call(
            method, path, body, params, {"authorization": await self._authorization()}
        )

    async def _authorization(self) -> str:
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        if time.monotonic() > self._until:
            path = "/api/token/refresh"
            token = await self.call("POST", path, {"refresh": self._token})
            if not are([token], {"access": str}) or not token["access"].isascii():
                raise self.odd(path)
            self._access = token["access"]
            self._until = time.monotonic() + ACCESS_SECONDS
        return f"Bearer {self._access}"


def _is_task(task: Any) -> bool:
    made = {"id": int, "result": object, "completed_by": object, "was_cancelled": object}
    return (
        are([task], {"id": int, "data": dict, "overlap": int, "is_labeled": bool})
        and are(task.get("annotations"), {**made, "updated_at": str})
        and are(task.get("predictions"), {"id": int, "result": object, "model_version": object})
    )
