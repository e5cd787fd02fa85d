"""The judge server of the tests, with batches: files are uploaded, answered and fetched.

`outcomes` names what becomes of the next batches; then they are completed. `missing` is the share
of the questions that a batch leaves without a line anywhere. `watch` is called with the name of a
step when it was taken, before its response: there a test may kill who asked.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.judge_server import ERRORS, JudgeServer, answer, serving


@dataclass
class BatchServer(JudgeServer):
    """What it is told to do with batches, and what it has seen and billed."""

    outcomes: list[str] = field(default_factory=list)
    missing: float = 0.0
    watch: Callable[[str], None] = lambda step: None
    metadata: bool = True
    files: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    billed: Counter[str] = field(default_factory=Counter)
    busy: int = 0
    _lost: random.Random = field(default_factory=lambda: random.Random(1))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope.get("path", "").removeprefix("/v1")
        if not path.startswith(("/files", "/batches")):
            return await super().__call__(scope, receive, send)
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        query = parse_qs(scope["query_string"].decode())
        status, content = self._batch(scope["method"], path, query, body)
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": raw})

    def _batch(self, method: str, path: str, query: Any, body: bytes) -> tuple[int, Any]:
        step = f"{method} {re.sub('(file|batch)-[0-9]+', 'X', path)}"
        self.steps[step] += 1
        if self.busy and step != "GET /batches":
            self.busy -= 1
            return 503, b""
        status, content = self._taken(method, path, query, body)
        self.watch(step)
        return status, content

    def _taken(self, method: str, path: str, query: Any, body: bytes) -> tuple[int, Any]:
        if (method, path) == ("POST", "/files"):
            name = re.search(rb'filename="([^"]+)"', body)
            assert name is not None
            assert b"purpose" in body
            parts = body.split(b"\r\n\r\n")
            content = next(part for part in parts if part.startswith(b'{"custom_id"'))
            content = content.rsplit(b"\r\n--", 1)[0]
            id = f"file-{len(self.files)}"
            self.files[id] = (name.group(1).decode(), content)
            return 200, {"id": id, "object": "file", "filename": self.files[id][0]}
        if (method, path) == ("GET", "/files"):
            rows = [{"id": id, "filename": name} for id, (name, _) in self.files.items()]
            return 200, page(rows[::-1], query)
        if path.endswith("/content"):
            return 200, self.files[path.split("/")[2]][1]
        if (method, path) == ("POST", "/batches"):
            return self._made(json.loads(body))
        if (method, path) == ("GET", "/batches"):
            return 200, page(list(self.batches.values())[::-1], query)
        batch = self.batches.get(path.split("/")[2])
        return (404, {"error": {"message": "not found"}}) if batch is None else (200, batch)

    def _made(self, asked: dict[str, Any]) -> tuple[int, Any]:
        outcome = self.outcomes.pop(0) if self.outcomes else "completed"
        if outcome == "queue":
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}
            return 400, {"error": error}
        id = f"batch-{len(self.batches)}"
        batch = {"id": id, "input_file_id": asked["input_file_id"], "status": outcome}
        if self.metadata:
            batch["metadata"] = asked["metadata"]
        self.batches[id] = batch
        if outcome == "failed":
            batch["errors"] = {"data": [{"code": "model_not_found", "message": "no such model"}]}
            return 200, batch
        lines = [json.loads(x) for x in self.files[asked["input_file_id"]][1].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        self.questions += len(lines)
        good: list[Any] = []
        bad: list[Any] = []
        for n, line in enumerate(lines):
            self._line(line, good, bad, outcome == "expired" and n % 2 == 1)
        if outcome == "expired":
            batch["status"] = "expired"
        for kind, rows in (("output", good), ("error", bad)):
            if rows:
                file = f"file-{len(self.files)}"
                text = "".join(json.dumps(row) + "\n" for row in rows)
                self.files[file] = (f"{id}_{kind}.jsonl", text.encode())
                batch[f"{kind}_file_id"] = file
        return 200, batch

    def _line(self, line: Any, good: list[Any], bad: list[Any], expired: bool) -> None:
        if expired:
            error = {"code": "batch_expired", "message": "not in time"}
            bad.append({"custom_id": line["custom_id"], "response": None, "error": error})
            return
        if self._lost.random() < self.missing:
            return
        fault = self._fault()
        self.seen[fault] += 1
        status, body = 200, answer(fault, line["body"], self.says)
        if fault in ERRORS:
            status, body, _ = ERRORS[fault]
        else:
            self.billed["answers"] += 1
            self.billed["tokens"] += body["usage"]["total_tokens"]
        response = {"status_code": status, "request_id": "r", "body": body}
        row = {"custom_id": line["custom_id"], "response": response, "error": None}
        (good if status == 200 else bad).append(row)


def page(rows: list[dict[str, Any]], query: dict[str, list[str]]) -> dict[str, Any]:
    """A page of a list, as OpenAI's."""
    ids = [row["id"] for row in rows]
    start = ids.index(query["after"][0]) + 1 if "after" in query else 0
    end = start + int(query.get("limit", ["20"])[0])
    return {"object": "list", "data": rows[start:end], "has_more": end < len(rows)}


@contextmanager
def batching(*outcomes: str, **settings: Any) -> Iterator[BatchServer]:
    """The server on a free port of loopback, in a thread."""
    app = BatchServer(outcomes=list(outcomes), **settings)
    with serving(app):
        app.url += "/v1"
        yield app
