"""Phoenix, MLflow and Langfuse in tests: a double of them, and a project with items in one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from venire.connectors.traces import source_of
from venire.connectors.traces.source import Found, Source, give_verdicts


class Double(BaseHTTPRequestHandler):
    """As much of Phoenix 20, MLflow 3.18 and Langfuse 3 as the connectors use.

    Langfuse by its OpenAPI document; it was not tried against a real one.
    """

    state: dict[str, Any]
    down: threading.Event  # set: what was asked is done, and nobody gets an answer

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked, parts = parse_qs(url.query), url.path.split("/")
        if parts[2] == "public":
            return self.langfuse(parts[3:], asked)
        if parts[1] == "v1":
            if parts[3] not in self.state["spans"]:
                return self.say(404, "Project not found")
            rows, start = self.state["spans"][parts[3]], int(asked.get("cursor", ["0"])[0])
            if parts[4] == "span_annotations":
                names, ids = asked["include_annotation_names"], asked["span_ids"]
                rows = [a for a in self.state["annotations"].values() if a["span_id"] in ids]
                rows = [row for row in rows if row["name"] in names]
            elif "span_id" in asked:
                rows = [row for row in rows if row["context"]["span_id"] in asked["span_id"]]
            end = start + int(asked["limit"][0])
            after = str(end) if end < len(rows) else None
            return self.say(200, {"data": rows[start:end], "next_cursor": after})
        if "experiment_name" not in asked:
            found = [row for rows in self.state["traces"].values() for row in rows]
            found = [row for row in found if row["trace_id"] == parts[-1]]
            if not found:
                return self.say(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"})
            return self.say(200, {"trace": {"trace_info": found[0]}})
        name = asked["experiment_name"][0]
        if name not in self.state["traces"]:
            return self.say(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"})
        return self.say(200, {"experiment": {"experiment_id": name, "name": name}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        parts = urlsplit(self.path).path.split("/")
        if parts[2] == "public":
            return self.kept_by_langfuse(parts[3:], body)
        if parts[1] == "v1":
            if parts[2] == "projects" and len(parts) == 3:
                self.state["spans"][body["name"]] = []
            elif parts[2] == "projects":
                self.state["spans"][parts[3]] += body["data"]
            else:
                spans = [span for rows in self.state["spans"].values() for span in rows]
                known = {span["context"]["span_id"] for span in spans}
                if not {one["span_id"] for one in body["data"]} <= known:
                    return self.say(404, "Spans with IDs do not exist")
                for one in body["data"]:
                    key = one["name"], one["span_id"], one.get("identifier", "")
                    made = {"id": str(key), "updated_at": str(time.time()), "user_id": None}
                    self.state["annotations"][key] = {**made, **one}
            return self.say(200, {"data": []})
        traces: dict[str, list[Any]] = self.state["traces"]
        if parts[-1] == "create":
            traces[body["name"]] = []
            return self.say(200, {"experiment_id": body["name"]})
        if parts[-1] == "search":
            rows = traces[body["locations"][0]["mlflow_experiment"]["experiment_id"]]
            start = int(body.get("page_token", "0"))
            end = start + body["max_results"]
            more = {"next_page_token": str(end)} if end < len(rows) else {}
            return self.say(200, {"traces": rows[start:end], **more})
        if parts[-1] == "traces":
            info = body["trace"]["trace_info"]
            where = info["trace_location"]["mlflow_experiment"]["experiment_id"]
            traces[where].append({**info, "assessments": []})
            return self.say(200, {})
        at = {"assessment_id": uuid4().hex, "last_update_time": str(time.time())}
        self.trace(parts[-2])["assessments"].append({**at, **body["assessment"]})
        return self.say(200, {})

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        parts = self.path.split("/")
        if parts[2] == "public":
            items = self.state["queues"][parts[4]]["items"]
            next(one for one in items if one["id"] == parts[6])["status"] = body["status"]
            return self.say(200, {})
        for one in self.trace(parts[-3])["assessments"]:
            if one["assessment_id"] == parts[-1]:
                one |= {key: body["assessment"][key] for key in body["update_mask"].split(",")}
        self.say(200, {})

    def do_DELETE(self) -> None:
        parts = self.path.split("/")
        trace = self.trace(parts[-3])
        trace["assessments"] = [a for a in trace["assessments"] if a["assessment_id"] != parts[-1]]
        self.say(200, {})

    def langfuse(self, parts: list[str], asked: dict[str, list[str]]) -> None:
        if parts[0] == "traces":
            found = self.state["logged"].get(parts[1])
            if found is None:
                return self.say(404, {"error": "LangfuseNotFoundError", "message": "not found"})
            return self.say(200, {**found, "scores": list(found["scores"].values())})
        queues = self.state["queues"]
        rows = [{"id": id, "name": queue["name"]} for id, queue in queues.items()]
        if len(parts) > 1:
            rows = queues[parts[1]]["items"]
        page, limit = int(asked["page"][0]), int(asked["limit"][0])
        meta = {"page": page, "limit": limit, "totalItems": len(rows)}
        meta["totalPages"] = -(-len(rows) // limit)
        return self.say(200, {"data": rows[(page - 1) * limit : page * limit], "meta": meta})

    def kept_by_langfuse(self, parts: list[str], body: dict[str, Any]) -> None:
        if parts == ["annotation-queues"]:
            made = {"id": uuid4().hex, "name": body["name"], "items": []}
            self.state["queues"][made["id"]] = made
            return self.say(200, made)
        if parts == ["traces"]:
            self.state["logged"][body["id"]] = {**body, "scores": {}}
        elif parts == ["scores"]:
            id = body.get("id") or uuid4().hex
            source = "ANNOTATION" if body.get("authorUserId") else "API"
            score = {**body, "id": id, "source": source, "updatedAt": str(time.time())}
            score |= {"stringValue": body["value"], "value": None}
            self.state["logged"][body["traceId"]]["scores"][id] = score
        else:
            item = {**body, "id": uuid4().hex, "status": "PENDING"}
            self.state["queues"][parts[1]]["items"].append(item)
        return self.say(200, {})

    def trace(self, id: str) -> Any:
        every = (row for rows in self.state["traces"].values() for row in rows)
        return next(row for row in every if row["trace_id"] == id)

    def say(self, status: int, said: Any) -> None:
        if self.down.is_set():
            self.close_connection = True
            return
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None: ...


@dataclass
class Doubles:
    """A running double, which may be killed and started again with what it had."""

    state: dict[str, Any] = field(
        default_factory=lambda: {
            "spans": {},
            "annotations": {},
            "traces": {},
            "queues": {},
            "logged": {},
        }
    )
    port: int = 0
    server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self.down = threading.Event()
        kind = type("Server", (Double,), {"state": self.state, "down": self.down})
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), kind)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def kill(self) -> None:
        assert self.server is not None
        self.down.set()
        self.server.shutdown()
        self.server.server_close()


@contextmanager
def doubles() -> Iterator[Doubles]:
    made = Doubles()
    made.start()
    try:
        yield made
    finally:
        made.kill()


class Kept:
    """A project with items in one of the programs."""

    def __init__(self, program: str, url: str) -> None:
        self.program, self.url, self.project = program, url, f"p-{uuid4().hex[:8]}"
        if program == "phoenix":
            self.post("/v1/projects", {"name": self.project})
        elif program == "langfuse":
            self.queue = self.post("/api/public/annotation-queues", {"name": self.project})["id"]
        else:
            made = self.post("/api/2.0/mlflow/experiments/create", {"name": self.project})
            self.experiment = made["experiment_id"]

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as got:
            return json.loads(got.read() or b"null")

    def source(self, url: str | None = None, project: str | None = None) -> Source:
        return source_of(self.program, url or self.url, project or self.project, "correct")

    def add_items(self, count: int) -> list[str]:
        if self.program == "phoenix":
            ids = [uuid4().hex[:16] for _ in range(count)]
            times = {"start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z"}
            spans = [
                {
                    "name": "llm",
                    "span_kind": "LLM",
                    "status_code": "OK",
                    "context": {"trace_id": uuid4().hex, "span_id": id},
                    "attributes": {"input.value": id},
                    **times,
                }
                for id in ids
            ]
            self.post(f"/v1/projects/{self.project}/spans", {"data": spans})
            while asyncio.run(self.read()).traces < count:  # the real one queues them
                time.sleep(0.1)
            return ids
        if self.program == "langfuse":
            ids = [uuid4().hex for _ in range(count)]
            for id in ids:
                self.post("/api/public/traces", {"id": id, "name": "llm", "input": id})
                item = {"objectId": id, "objectType": "TRACE"}
                self.post(f"/api/public/annotation-queues/{self.queue}/items", item)
            return ids
        ids = [f"tr-{uuid4().hex}" for _ in range(count)]
        where = {"experiment_id": self.experiment}
        for id in ids:
            info = {
                "trace_id": id,
                "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": where},
                "request_time": "2026-01-01T00:00:00Z",
                "execution_duration": "1s",
                "state": "OK",
            }
            self.post("/api/3.0/mlflow/traces", {"trace": {"trace_info": info}})
        return ids

    def say(self, rows: list[tuple[str, str, str]], kind: str = "feedback", why: str = "") -> None:
        """Somebody says something, and why: the reason may name who."""
        if self.program == "phoenix":
            data = [
                {
                    "name": "correct",
                    "annotator_kind": "HUMAN" if who == "ann" else "LLM",
                    "identifier": who,
                    "span_id": id,
                    "result": {"label": said, "explanation": why.format(who=who) or None},
                }
                for id, who, said in rows
            ]
            self.post("/v1/span_annotations?sync=true", {"data": data})
            return
        if self.program == "langfuse":
            for id, who, said in rows:
                person = {"authorUserId": who} if who == "ann" else {"metadata": {"labeler": who}}
                score = {"traceId": id, "name": "correct", "value": said, **person}
                score |= {"comment": why.format(who=who)} if why else {}
                self.post("/api/public/scores", score)
            return
        for id, who, said in rows:
            human = who == "ann"
            source = {"source_type": "HUMAN" if human else "LLM_JUDGE", "source_id": who}
            note = {"assessment_name": "correct", "trace_id": id, "source": source}
            note |= {"rationale": why.format(who=who)} if why else {}
            body = {"assessment": {**note, kind: {"value": said}}}
            self.post(f"/api/3.0/mlflow/traces/{id}/assessments", body)

    async def read(self) -> Found:
        async with self.source() as source:
            return await Found.read(source)

    async def give(self, verdicts: dict[str, tuple[str, float]]) -> dict[str, int]:
        async with self.source() as source:
            return dict(await give_verdicts(source, verdicts, {"ann": 0.9}))

    async def ours(self) -> dict[str, list[Any]]:
        async with self.source() as source:
            return {
                trace.id: [(v.value, v.confidence, v.why) for v in trace.ours.values()]
                async for page in source.pages()
                for trace in page
            }
