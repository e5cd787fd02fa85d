"""An OpenAI-compatible HTTP server that judges by a rule, and fails as real ones do.

Text with BUY in it is spam, with probability 0.97; other text is ok, with 0.8. `script` names what
happens to the next requests, one after another; then `shares` of the requests fail, by a seed.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn

CLASSES = ["spam", "ok"]

#: Faults that come with a status: status, body, headers.
ERRORS: dict[str, tuple[int, Any, dict[str, str]]] = {
    "limited": (429, {"error": {"code": "rate_limit_exceeded", "message": "slow down"}}, {}),
    "limited-ms": (429, {"error": {"message": "slow"}}, {"retry-after-ms": "120"}),
    "limited-s": (429, {"error": {"message": "slow"}}, {"retry-after": "1"}),
    "limited-day": (429, {"error": {"message": "daily limit"}}, {"retry-after": "86400"}),
    "quota": (429, {"error": {"code": "insufficient_quota", "message": "no money"}}, {}),
    "quota-type": (429, {"error": {"type": "insufficient_quota", "message": "no money"}}, {}),
    "paid": (402, {"error": {"message": "Insufficient Balance"}}, {}),
    "key": (401, {"error": {"message": "wrong key", "code": "invalid_api_key"}}, {}),
    "model": (404, {"error": {"message": "no such model", "code": "model_not_found"}}, {}),
    "redirect": (307, b"", {"location": "http://127.0.0.1:9/"}),
    "500": (500, {"error": {"message": "internal"}}, {}),
    "html": (502, b"<html>Bad Gateway</html>", {}),
    "503": (503, b"", {"retry-after": "0"}),
    "error-in-200": (200, {"error": {"code": 502, "message": "upstream"}}, {}),
    "limit-in-200": (200, {"error": {"code": 429, "message": "upstream is busy"}}, {}),
    "long": (400, {"error": {"code": "context_length_exceeded", "message": "too long"}}, {}),
    "invalid": (400, {"error": {"message": "temperature must be below 2"}}, {}),
    "broken": (200, b'{"choices": [{"mess', {}),
    "no-choices": (200, {"choices": []}, {}),
    "list": (200, [1, 2], {}),
    "dropped": (200, b'{"choices": [{"mess', {"content-length": "1000"}),
    "503-day": (503, b"", {"retry-after": "86400"}),
}


@dataclass
class JudgeServer:
    """What it is told to do, and what it has seen."""

    script: list[str] = field(default_factory=list)
    shares: Mapping[str, float] = field(default_factory=dict)
    always: str = ""
    knows: frozenset[str] = frozenset({"response_format", "logprobs"})
    latency: float = 0.0
    key: str = ""
    refuses: int = 401
    says: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    seen: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    _draws: random.Random = field(default_factory=lambda: random.Random(0))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.times.append(time.monotonic())
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            status, content, headers = await self._respond(scope, json.loads(body))
        finally:
            self.in_flight -= 1
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        pairs = [(k.encode(), v.encode()) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        await send({"type": "http.response.body", "body": raw})

    async def _respond(self, scope: Any, asked: Any) -> tuple[int, Any, dict[str, str]]:
        self.bodies.append(asked)
        await asyncio.sleep(self.latency)
        sent = dict(scope["headers"]).get(b"authorization", b"").decode()
        if self.key and sent != f"Bearer {self.key}":
            return self.refuses, {"error": {"message": f"Incorrect API key provided: {sent}"}}, {}
        for feature in ("response_format", "logprobs"):
            if feature in asked and feature not in self.knows:
                return 400, {"error": {"message": f"{feature} is not supported"}}, {}
        fault = self._fault()
        self.seen[fault] += 1
        if fault in ERRORS:
            return ERRORS[fault]
        if fault == "slow":
            await asyncio.sleep(5)
        return 200, answer(fault, asked, self.says), {}

    def _fault(self) -> str:
        if self.script:
            return self.script.pop(0)
        draw = self._draws.random()
        for name, share in self.shares.items():
            if draw < share:
                return name
            draw -= share
        return self.always or "fine"


def truth(text: str) -> tuple[str, float]:
    """The label of a text, and how sure the rule is."""
    return ("spam", 0.97) if "BUY" in text else ("ok", 0.8)


def answer(fault: str, asked: Any, says: Mapping[str, str]) -> dict[str, Any]:
    """A chat completion, perhaps of no use."""
    user = text_of(asked["messages"][-1]["content"])
    label, sure = truth(user)
    label = next((said for word, said in says.items() if word in user), label)
    form = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
    why = (
        {"rationale": f"It reads: {user[-20:]}"}
        if "rationale" in form.get("properties", ())
        else {}
    )
    good = json.dumps({**why, "label": label})
    content, finish, refusal = {
        "fenced": (f"Sure!\n```json\n{good}\n```", "stop", None),
        "plain": (f"{label.upper()}.", "stop", None),
        "thinking": (f'<think>{{"label": "spam"}}? no: ok?</think>{good}', "stop", None),
        "parts": ([{"type": "text", "text": good}], "stop", None),
        "refusal": (None, "stop", "I cannot help with that."),
        "filter": (good, "content_filter", None),
        "length": ('{"label": "spam', "length", None),
        "length-whole": (good, "length", None),
        "failed": (good, "error", None),
        "other": ('{"label": "maybe"}', "stop", None),
        "both": ('{"label": "spam"} or {"label": "ok"}', "stop", None),
        "not": ("not spam", "stop", None),
        "empty": ("", "stop", None),
    }.get(fault, (good, "stop", None))
    message = {"role": "assistant", "content": content, "refusal": refusal}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    if asked.get("logprobs") and fault == "fine":
        choice["logprobs"] = {"content": in_tokens(good, label, sure)}
    usage = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


def text_of(content: Any) -> str:
    """The text of a message, which may have parts."""
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


def in_tokens(text: str, label: str, sure: float) -> list[dict[str, Any]]:
    """The text in three tokens: what is before the label, the label, what is after it."""
    before, _, after = text.partition(label)
    other = CLASSES[1 - CLASSES.index(label)]
    top = [(label, sure), (other, 1 - sure)]
    tops = [{"token": word, "logprob": math.log(p)} for word, p in top]
    return [
        {"token": before, "logprob": 0.0, "top_logprobs": []},
        {"token": label, "logprob": math.log(sure), "top_logprobs": tops},
        {"token": after, "logprob": 0.0, "top_logprobs": []},
    ]


@contextmanager
def judging(*script: str, **settings: Any) -> Iterator[JudgeServer]:
    """The server on a free port of loopback, in a thread."""
    app = JudgeServer(list(script), **settings)
    with serving(app):
        app.url += "/v1"
        yield app


@contextmanager
def serving(app: Any) -> Iterator[None]:
    """An application with a `url`, which is set, on a free port of loopback, in a thread."""
    config = uvicorn.Config(app, "127.0.0.1", 0, log_level="critical", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    (port,) = {sock.getsockname()[1] for one in server.servers for sock in one.sockets}
    app.url = f"http://127.0.0.1:{port}"
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def most_in_a_window(times: Sequence[float], seconds: float) -> int:
    """The most times within a window of this length, as a plain loop."""
    return max((sum(a <= b < a + seconds for b in times) for a in times), default=0)
