"""Models behind HTTP that judge by a rule and fail as real ones do: any JSON API, a backend.

`/predict` of a plain API takes {"instances": [text, ...]}; that of a Label Studio ML backend takes
tasks and a labelling config, as `label_studio_ml` does. Faults are those of `judge_server`, and
those of the answer itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.judge_server import ERRORS, JudgeServer, serving, truth


@dataclass
class ModelServer(JudgeServer):
    """What it is told to do, and what it has seen."""

    refuses_texts: str = "\0"

    async def _respond(self, scope: Any, asked: Any) -> tuple[int, Any, dict[str, str]]:
        self.bodies.append(asked)
        await asyncio.sleep(self.latency)
        sent = {k.decode(): v.decode() for k, v in scope["headers"]}
        if self.key and self.key not in (sent.get("x-api-key"), sent.get("authorization")):
            return 401, {"error": {"message": f"wrong key {sent}"}}, {}
        fault = self._fault()
        self.seen[fault] += 1
        if fault in ERRORS:
            return ERRORS[fault]
        if fault == "slow":
            await asyncio.sleep(5)
        if "tasks" in asked:
            return 200, backend(asked, fault), {}
        texts = asked["instances"]
        if any(self.refuses_texts in text for text in texts):
            return 422, {"detail": "this text cannot be read"}, {}
        return 200, predictions(texts, fault), {}


def predictions(texts: list[str], fault: str) -> Any:
    """The answer of a plain API, perhaps of no use."""
    found: list[dict[str, Any]] = []
    for text in texts:
        label, sure = truth(text)
        spam = sure if label == "spam" else 1 - sure
        shares = {"spam": spam, "ok": 1 - spam}
        found.append(
            {"label": label, "score": sure, "number": int(label == "ok"), "probs": shares,
             "list": [shares["spam"], shares["ok"]]}
        )  # fmt: skip
    for one in found[:1]:
        changes: dict[str, dict[str, Any]] = {
            "no-label": {"label": None, "probs": {"spam": None, "ok": None}},
            "no-class": {"label": "maybe", "number": 7},
            "odd-score": {"score": "high"},
        }
        one |= changes.get(fault, {})
        if fault == "no-field":
            one.clear()
    if fault == "too-few":
        found = found[1:]
    return {"model": "m1", "predictions": "none" if fault == "no-list" else found}


def backend(asked: Any, fault: str) -> Any:
    """The answer of a Label Studio ML backend."""
    assert asked["label_config"].startswith("<View>")
    assert "." in asked["project"]
    results: list[Any] = []
    for task in asked["tasks"]:
        label, sure = truth(task["data"]["text"])
        part = {"from_name": "label", "to_name": "item", "type": "choices",
                "value": {"choices": [label]}}  # fmt: skip
        results.append({"result": [part], "score": sure, "model_version": "v1"})
    if fault == "several":
        results = [[one] for one in results]
    if fault == "no-choice":
        results[0]["result"] = []
    if fault == "two-choices":
        results[0]["result"][0]["value"]["choices"] = ["spam", "ok"]
    if fault == "no-class":
        results[0]["result"][0]["value"]["choices"] = ["maybe"]
    if fault == "too-few":
        results = results[1:]
    return {"results": results, "model_version": "v1"}


@contextmanager
def modelling(*script: str, **settings: Any) -> Iterator[ModelServer]:
    """The server on a free port of loopback, in a thread."""
    app = ModelServer(list(script), **settings)
    with serving(app):
        yield app
