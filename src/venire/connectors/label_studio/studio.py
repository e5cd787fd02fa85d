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
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from venire.client.transport import http_library
from venire.connectors.judges.http import PLAIN, TooLarge, content_of
from venire.errors import InputError, VenireError
from venire.tools.untrusted import parse_json

__all__ = ["FIELD", "LabelStudio", "StudioDown", "StudioError", "User", "holding"]

#: The field of a task that says who should label it.
FIELD: Final = "venire_for"

#: Tasks in one request.
PAGE: Final = 100

#: Bytes of an answer: a page of tasks holds their data and all their annotations.
MOST: Final = 128 * 1024 * 1024

#: Seconds for which an access token is used; it lasts 300.
ACCESS_SECONDS: Final = 240.0

#: Statuses after which the same request may succeed.
AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class StudioError(VenireError):
    """Label Studio refused a request; `status` is that of its response."""

    def __init__(self, message: str, status: int = 0) -> None:
        self.status = status
        super().__init__(message)


class StudioDown(VenireError):
    """Label Studio cannot be reached, or cannot answer now."""


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


class LabelStudio:
    """One project of a Label Studio.

    async with LabelStudio("http://127.0.0.1:8080", token, 7) as studio:
        print((await studio.project())["title"])
    """

    def __init__(self, url: str, token: str, project: int, timeout: float = 60.0) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise InputError(f"got the address {url!r}, expected that of Label Studio: http://...")
        self.url, self._token, self._project = url.rstrip("/"), token.strip(), project
        self._httpx = http_library()
        self._http = self._httpx.AsyncClient(
            timeout=timeout, headers={"user-agent": "venire", **PLAIN}
        )
        self._access, self._until = "", 0.0
        self.now = datetime.now(UTC)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def project(self) -> dict[str, Any]:
        """The project: its `title`, its `label_config`."""
        path = f"/api/projects/{self._project}"
        found: dict[str, Any] = await self._call("GET", path)
        if not _are([found], {"title": str, "label_config": str}):
            raise self._odd(path)
        return found

    async def users(self) -> list[User]:
        """Everybody in the organisation."""
        rows = await self._call("GET", "/api/users")
        if not _are(rows, {"id": int, "email": str}):
            raise self._odd("/api/users")
        return [User(row["id"], row["email"]) for row in rows if row["email"] != "Deleted"]

    async def tabs(self) -> list[dict[str, Any]]:
        """The tabs (views) of the project, for all users."""
        rows = await self._call("GET", "/api/dm/views", params={"project": self._project})
        if not _are(rows, {"id": int, "data": dict | None}):
            raise self._odd("/api/dm/views")
        return list(rows)

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
        """Tasks that stand in a tab."""
        return [task async for page in self._pages([holding()]) for task in page]

    async def tasks(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """The tasks of these ids that exist."""
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
        """Change fields of a task; `data` replaces all of its data."""
        await self._call("PATCH", f"/api/tasks/{id}", fields)

    async def predict(self, task: int, result: Any, score: float, version: str) -> None:
        """Leave a prediction with a task."""
        body = {"task": task, "result": result, "score": score, "model_version": version}
        await self._call("POST", "/api/predictions", body)

    async def remove_prediction(self, id: int) -> None:
        """Delete a prediction."""
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
                    raise self._odd("/api/tasks")
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
        if not _are([found], {"tasks": list, "total": int}) or not all(
            map(_is_task, found["tasks"])
        ):
            raise self._odd("/api/tasks")
        return found

    def _odd(self, path: str) -> StudioError:
        return StudioError(
            f"{self.url}{path} answers with something else than Label Studio does: is this its "
            "address, and is it of version 1.8 or later?"
        )

    async def _call(
        self, method: str, path: str, body: Any = None, params: Mapping[str, Any] | None = None
    ) -> Any:
        headers = {"authorization": await self._authorization()}
        got = await self._send(method, path, json=body, params=params, headers=headers)
        if got.status_code >= 300:
            raise self._error(method, path, got)
        return _parsed(got, f"{method} {self.url}{path}") if got.content else None

    async def _send(self, method: str, path: str, **more: Any) -> Any:
        try:
            async with self._http.stream(method, f"{self.url}{path}", **more) as coming:
                content = await content_of(coming, MOST)
                got = _Answer(coming.status_code, coming.headers, content)
        except TooLarge as fault:
            raise StudioError(f"{method} {self.url}{path}: {fault}") from None
        except self._httpx.RequestError as fault:
            why = str(fault) or type(fault).__name__
            raise StudioDown(f"Label Studio at {self.url} cannot be reached: {why}") from None
        if got.status_code in AGAIN:
            raise StudioDown(f"Label Studio cannot answer {method} {path}: {_detail(got)}")
        self._set_clock(got.headers.get("date", ""))
        return got

    def _set_clock(self, date: str) -> None:
        """What time Label Studio has, by its answers: `updated_at` is by that clock."""
        try:
            self.now = parsedate_to_datetime(date).astimezone(UTC) - timedelta(seconds=1)
        except (ValueError, TypeError, OverflowError):
            self.now = datetime.now(UTC)

    async def _authorization(self) -> str:
        if self._token.count(".") != 2:
            return f"Token {self._token}"
        if time.monotonic() > self._until:
            path = "/api/token/refresh"
            got = await self._send("POST", path, json={"refresh": self._token})
            if got.status_code >= 300:
                raise self._error("POST", path, got)
            said = _parsed(got, path)
            if not _are([said], {"access": str}) or not said["access"].isascii():
                raise self._odd(path)
            self._access = said["access"]
            self._until = time.monotonic() + ACCESS_SECONDS
        return f"Bearer {self._access}"

    def _error(self, method: str, path: str, got: Any) -> StudioError:
        told = f"{method} {self.url}{path}: got {got.status_code}, {_detail(got)}"
        hints = {
            401: "expected a valid token: take one from Account & Settings in Label Studio; legacy "
            "tokens must be enabled for the organisation",
            403: "the owner of the token may not do this",
            404: f"expected Label Studio with project {self._project}: check --url and --project",
        }
        if 300 <= got.status_code < 400:
            hint = f"it redirects to {got.headers.get('location')}: give the final address"
        else:
            hint = hints.get(got.status_code, "")
        return StudioError(f"{told}{': ' if hint else ''}{hint}", got.status_code)


class _Answer(NamedTuple):
    """A response that was read, and is not too long."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        return parse_json(self.content)


def _are(rows: Any, fields: Mapping[str, Any]) -> bool:
    """Whether these are objects that have the fields, each of its type.

    >>> _are([{"id": 7}], {"id": int}), _are([{"id": "7"}], {"id": int}), _are("x", {})
    (True, False, False)
    """
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(name in row and isinstance(row[name], kind) for name, kind in fields.items())
        for row in rows
    )


def _is_task(task: Any) -> bool:
    made = {"id": int, "result": object, "completed_by": object, "was_cancelled": object}
    return (
        _are([task], {"id": int, "data": dict, "overlap": int, "is_labeled": bool})
        and _are(task.get("annotations"), {**made, "updated_at": str})
        and _are(task.get("predictions"), {"id": int, "result": object, "model_version": object})
    )


def _parsed(got: Any, what: str) -> Any:
    try:
        return got.json()
    except ValueError:
        kind = got.headers.get("content-type", "no type")
        raise StudioError(
            f"{what}: got {kind}, expected JSON: is this the address of Label Studio?"
        ) from None


def _detail(got: Any) -> str:
    try:
        said = got.json()
        return str(said.get("validation_errors") or said.get("detail") or said)[:300]
    except (ValueError, AttributeError):
        return f"{got.status_code} {got.text[:100]!r}"
