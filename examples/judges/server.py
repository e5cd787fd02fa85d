"""The five judges behind an OpenAI-compatible API.

python -m examples.judges.server --port 8765 --faults 0.33
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.judges.digits import drawing_of
from examples.judges.models import Model, trained

FAULTS = ("busy", "down", "broken", "refused", "cut", "nonsense")


class Server(ThreadingHTTPServer):
    """Answers `POST /v1/chat/completions`; a share of the requests fails, if it is told to."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, faults: float = 0.0, seed: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.models, self.faults = trained(seed), faults
        self.draws, self.turn = random.Random(seed), threading.Lock()

    @property
    def url(self) -> str:
        """The `base_url` of the judges."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def fault(self) -> str | None:
        """What goes wrong with the next request."""
        with self.turn:
            return self.draws.choice(FAULTS) if self.draws.random() < self.faults else None


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        model, fault = self.server.models.get(asked["model"]), self.server.fault()
        if model is None:
            self.reply(404, {"error": {"message": f"there is no model {asked['model']!r}"}})
        elif fault == "busy":
            self.reply(429, {"error": {"message": "too many requests"}}, {"retry-after-ms": "50"})
        elif fault == "down":
            self.reply(502, b"<html>Bad Gateway</html>")
        elif fault == "broken":
            self.reply(200, b'{"choices": [{"mes')
        else:
            self.reply(200, completion(model, asked, fault))

    def reply(self, status: int, said: Any, headers: dict[str, str] | None = None) -> None:
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a line for each request is too much."""


def completion(model: Model, asked: Any, fault: str | None) -> dict[str, Any]:
    """A chat completion, with reasons and log-probabilities if they were asked for."""
    prompt = "\n".join(seen(message["content"]) for message in asked["messages"])
    label, shares, why = judgement(model, seen(asked["messages"][-1]["content"]))
    form = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
    said = {"rationale": why} if "rationale" in form.get("properties", ()) else {}
    text = json.dumps({**said, "label": "a horse" if fault == "nonsense" else label})
    text = text if form else label  # its own answer
    message = {"role": "assistant", "content": None if fault == "refused" else text}
    message["refusal"] = "I would rather not." if fault == "refused" else None
    finish = "length" if fault == "cut" else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    if asked.get("logprobs"):
        choice["logprobs"] = {"content": tokens(text, label, shares)}
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": 5}
    return {"object": "chat.completion", "choices": [choice], "usage": usage}


def seen(content: Any) -> str:
    """The text of a message; an image is the drawing in it."""
    if isinstance(content, str):
        return content
    images = {"image_url": lambda part: drawing_of(base64.b64decode(part["url"].split(",")[1]))}
    return "".join(
        "\n" + images[part["type"]](part["image_url"]) + "\n"
        if part["type"] in images
        else part["text"]
        for part in content
    )


def judgement(model: Model, question: str) -> tuple[str, dict[str, float], str]:
    """The digit that the model reads; or, of a line "Answer: 7", whether that is right; and why.

    It believes a correct answer that it is shown more than its eyes.
    """
    (shares,) = model.shares(question)
    digit = max(shares, key=lambda name: shares[name])
    why = f"I read a {digit}."
    answer = re.search(r"^Answer: (\d)$", question, re.M)
    known = re.search(r"^A correct answer, for reference:\n(\d)", question, re.M)
    if answer is None:
        return digit, shares, why
    if known is not None:
        shares, digit, why = {known[1]: 0.99}, known[1], f"It should be a {known[1]}."
    agreed = shares.get(answer[1], 0.0)
    label = "right" if digit == answer[1] else "wrong"
    return label, {"right": agreed, "wrong": 1 - agreed}, why


def tokens(text: str, label: str, shares: dict[str, float]) -> list[dict[str, Any]]:
    """The tokens of the answer; the one of the digit with its alternatives."""
    before, _, after = text.partition(label)
    top = [{"token": name, "logprob": math.log(p)} for name, p in shares.items() if p > 0]
    chosen = {"token": label, "logprob": math.log(shares[label]), "top_logprobs": top}
    around = [{"token": part, "logprob": 0.0, "top_logprobs": []} for part in (before, after)]
    return [around[0], chosen, around[1]]


@contextmanager
def serving(faults: float = 0.0, seed: int = 0) -> Iterator[Server]:
    """The server on a free port, in a thread."""
    with Server(0, faults, seed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--faults", type=float, default=0.0, help="the share of faulty requests")
    options = parser.parse_args()
    with Server(options.port, options.faults) as server:
        print(f"judging on {server.url}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
