"""A double of Label Studio's API, as far as the sync uses it; `python -m tests.studio.double`.

It does what version 1.23.2 was seen to do, which `tests/contract/test_label_studio.py` checks on
both. Its state is in a file that is replaced after each change, so that it may be killed.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

OWNER = "owner@example.org"
ANNOTATORS = tuple(f"{name}@example.org" for name in ("ann", "bob", "cat", "dan"))

Row = dict[str, Any]


def token_of(email: str) -> str:
    """The legacy token of a user."""
    return email.encode().hex().ljust(40, "0")[:40]


class Fault(Exception):
    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Double:
    """The state, and what requests do to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists():
            self.state: dict[str, Any] = json.loads(path.read_text())
        else:
            users = [{"id": n + 1, "email": mail} for n, mail in enumerate((OWNER, *ANNOTATORS))]
            names = ("projects", "tasks", "annotations", "predictions", "views")
            self.state = {"users": users, "last": {}, **{name: {} for name in names}}
        self.tokens = {token_of(user["email"]): user for user in self.state["users"]}

    def save(self) -> None:
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.state))
        os.replace(part, self.path)

    def new(self, table: str, row: Row) -> Row:
        id = self.state["last"].get(table, 0) + 1
        self.state["last"][table] = id
        made: Row = {"id": id, **row, "created_at": now(), "updated_at": now()}
        self.state[table][str(id)] = made
        return made

    def row(self, table: str, id: int) -> Row:
        try:
            found: Row = self.state[table][str(id)]
        except KeyError:
            name = table[:-1].capitalize()
            raise Fault(404, f"No {name} matches the given query.") from None
        return found

    def user(self, request: Request) -> Row:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind == "Bearer" and token.startswith("access-"):
            token = token.removeprefix("access-")
        elif kind != "Token":
            raise Fault(401, "Authentication credentials were not provided.")
        if token not in self.tokens:
            raise Fault(401, "Invalid token.")
        found: Row = self.tokens[token]
        return found

    # projects and tasks

    def add_project(self, user: Row, body: Row, query: Any) -> Row:
        try:
            ElementTree.fromstring(body["label_config"])
        except ElementTree.ParseError as error:
            raise Fault(400, f"Validation error: {error}") from None
        basics = {"maximum_annotations": 1, "skip_queue": "REQUEUE_FOR_OTHERS", "title": ""}
        return self.new("projects", {**basics, **body})

    def change_project(self, user: Row, body: Row, query: Any, id: int) -> Row:
        project = self.row("projects", id)
        project |= body
        if "maximum_annotations" in body:  # a trap: it reopens tasks
            for task in self.tasks_of(id):
                task["overlap"] = body["maximum_annotations"]
                self.look_again(task)
        return project

    def show_project(self, user: Row, body: Row, query: Any, id: int) -> Row:
        return self.row("projects", id)

    def tasks_of(self, project: int) -> list[Row]:
        return [task for task in self.state["tasks"].values() if task["project"] == project]

    def import_tasks(self, user: Row, body: list[Row], query: Any, id: int) -> Row:
        project = self.row("projects", id)
        made = [
            self.new(
                "tasks",
                {
                    "data": row.get("data", row),
                    "project": id,
                    "is_labeled": False,
                    "overlap": project["maximum_annotations"],
                },
            )
            for row in body
        ]
        return {"task_count": len(made), "task_ids": [task["id"] for task in made]}

    def shown(self, task: Row, resolve: bool = True) -> Row:
        data = dict(task["data"])
        if resolve:  # addresses of files in a storage become links through Label Studio
            for name, value in data.items():
                if isinstance(value, str) and value.startswith("s3://"):
                    data[name] = f"/tasks/{task['id']}/resolve/?fileuri={value.encode().hex()}"
        made = self.of_task("annotations", task["id"])
        return {
            **task,
            "data": data,
            "annotations": made,
            "predictions": self.of_task("predictions", task["id"]),
            "total_annotations": sum(not one["was_cancelled"] for one in made),
            "cancelled_annotations": sum(one["was_cancelled"] for one in made),
        }

    def of_task(self, table: str, task: int) -> list[Row]:
        return [row for row in self.state[table].values() if row["task"] == task]

    def filtered(self, project: int, filters: list[Row]) -> list[Row]:
        tasks = sorted(self.tasks_of(project), key=lambda task: task["id"])
        return [task for task in tasks if all(matches(task, one) for one in filters)]

    def list_tasks(self, user: Row, body: Row, query: Any) -> Row:
        asked = json.loads(query.get("query", "{}"))
        found = self.filtered(int(query["project"]), asked.get("filters", {}).get("items", []))
        size, page = int(query.get("page_size", 100)), int(query.get("page", 1))
        if page > 1 and len(found) <= (page - 1) * size:
            raise Fault(404, "Invalid page.")
        some = found[(page - 1) * size : page * size]
        resolve = query.get("resolve_uri", "true") != "false"
        tasks = [self.shown(task, resolve) for task in some]
        if query.get("fields") != "all":
            tasks = [
                {k: v for k, v in task.items() if k not in ("annotations", "predictions")}
                for task in tasks
            ]
        return {"tasks": tasks, "total": len(found)}

    def change_task(self, user: Row, body: Row, query: Any, id: int) -> Row:
        task = self.row("tasks", id)
        for name in ("data", "overlap", "is_labeled"):
            if name in body:
                task[name] = body[name]
        task["updated_at"] = now()
        return self.shown(task)

    def delete_task(self, user: Row, body: Row, query: Any, id: int) -> None:
        self.row("tasks", id)
        del self.state["tasks"][str(id)]

    # annotations and predictions

    def look_again(self, task: Row) -> None:
        """A task is done when so many people, not annotations, have been at it."""
        made = self.of_task("annotations", task["id"])
        people = {one["completed_by"] for one in made if not one["was_cancelled"]}
        task["is_labeled"] = len(people) >= task["overlap"]
        task["updated_at"] = now()

    def annotate(self, user: Row, body: Row, query: Any, id: int) -> Row:
        task = self.row("tasks", id)
        row = {
            "task": id,
            "result": body.get("result", []),
            "was_cancelled": bool(body.get("was_cancelled")),
            "completed_by": user["id"],
            "created_username": f" {user['email']}, {user['id']}",
            "lead_time": body.get("lead_time"),
        }
        made = self.new("annotations", row)
        self.look_again(task)
        return made

    def change_annotation(self, user: Row, body: Row, query: Any, id: int) -> Row:
        made = self.row("annotations", id)
        made |= {k: body[k] for k in ("result", "was_cancelled") if k in body}
        made["updated_at"] = now()
        self.look_again(self.row("tasks", made["task"]))
        return made

    def predict(self, user: Row, body: Row, query: Any) -> Row:
        self.row("tasks", body["task"])
        return self.new("predictions", body)

    def delete_prediction(self, user: Row, body: Row, query: Any, id: int) -> None:
        self.row("predictions", id)
        del self.state["predictions"][str(id)]

    # the data manager

    def users(self, user: Row, body: Row, query: Any) -> list[Row]:
        rows: list[Row] = self.state["users"]
        return rows

    def list_views(self, user: Row, body: Row, query: Any) -> list[Row]:
        views = self.state["views"].values()
        return [view for view in views if view["project"] == int(query["project"])]

    def add_view(self, user: Row, body: Row, query: Any) -> Row:
        return self.new("views", {"project": body["project"], "data": body["data"]})

    def change_view(self, user: Row, body: Row, query: Any, id: int) -> Row:
        view = self.row("views", id)
        view["data"] |= body["data"]
        return view

    def next_task(self, user: Row, body: Row, query: Any) -> Row:
        """The first task of a tab that is not done and that the user has not been at."""
        if query.get("id") != "next_task":
            raise Fault(404, f"No action {query.get('id')}")
        for task in self.filtered(int(query["project"]), body["filters"]["items"]):
            made = self.of_task("annotations", task["id"])
            if not task["is_labeled"] and user["id"] not in [one["completed_by"] for one in made]:
                return {**self.shown(task), "queue": "Data manager queue"}
        raise Fault(404, f"There are no tasks for {user['email']}")

    def export(self, user: Row, body: Row, query: Any, id: int) -> list[Row]:
        every = query.get("download_all_tasks") == "true"
        tasks = [self.shown(task) for task in self.tasks_of(id)]
        return [task for task in tasks if every or task["annotations"]]


def matches(task: Row, one: Row) -> bool:
    """Whether a task passes a filter of the data manager."""
    column, operator, value = one["filter"].split(":")[-1], one["operator"], one["value"]
    found = task["data"].get(column[5:]) if column.startswith("data.") else task[column]
    if operator == "contains":
        return str(value).lower() in str(found or "").lower()
    if operator == "greater":
        return bool(found > value)
    if operator == "in_list":
        return found in value
    if operator == "equal":
        return bool(found == value)
    raise Fault(400, f"operator {operator}")


def application(double: Double) -> Starlette:
    def endpoint(act: Any, status: int = 200) -> Any:
        async def serve(request: Request) -> Response:
            raw = await request.body()
            try:
                user = double.user(request)
                body = json.loads(raw) if raw else {}
                got = act(user, body, request.query_params, **request.path_params)
            except Fault as fault:
                told = {"status_code": fault.status, "version": "1.23.2", "detail": fault.detail}
                return JSONResponse(told, fault.status)
            if request.method != "GET":
                double.save()
            return Response(status_code=204) if got is None else JSONResponse(got, status)

        return serve

    async def refresh(request: Request) -> Response:
        token = (await request.json()).get("refresh", "")
        legacy = token.split(".")[1] if token.count(".") == 2 else ""
        if legacy not in double.tokens:
            return JSONResponse({"detail": "Token is invalid", "code": "token_not_valid"}, 401)
        return JSONResponse({"access": f"access-{legacy}"})

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "UP"})

    one = "{id:int}"
    routes = [
        ("/api/projects", double.add_project, "POST", 201),
        (f"/api/projects/{one}", double.show_project, "GET", 200),
        (f"/api/projects/{one}", double.change_project, "PATCH", 200),
        (f"/api/projects/{one}/import", double.import_tasks, "POST", 201),
        (f"/api/projects/{one}/export", double.export, "GET", 200),
        ("/api/tasks", double.list_tasks, "GET", 200),
        (f"/api/tasks/{one}", double.change_task, "PATCH", 200),
        (f"/api/tasks/{one}", double.delete_task, "DELETE", 204),
        (f"/api/tasks/{one}/annotations", double.annotate, "POST", 201),
        (f"/api/annotations/{one}", double.change_annotation, "PATCH", 200),
        ("/api/predictions", double.predict, "POST", 201),
        (f"/api/predictions/{one}", double.delete_prediction, "DELETE", 204),
        ("/api/users", double.users, "GET", 200),
        ("/api/dm/views", double.list_views, "GET", 200),
        ("/api/dm/views", double.add_view, "POST", 201),
        (f"/api/dm/views/{one}", double.change_view, "PATCH", 200),
        ("/api/dm/actions", double.next_task, "POST", 200),
    ]
    served = [
        Route(path, endpoint(act, status), methods=[method]) for path, act, method, status in routes
    ]
    served += [Route("/api/token/refresh", refresh, methods=["POST"]), Route("/health", health)]
    return Starlette(routes=served)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True)
    options = parser.parse_args()
    app = application(Double(options.state))
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
