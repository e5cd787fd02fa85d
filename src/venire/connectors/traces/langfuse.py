"""Langfuse: the traces of an annotation queue, scores as labels, verdicts as scores of venire.

async with Langfuse("http://127.0.0.1:3000", "my-queue", "correctness") as langfuse:
    found = await Found.read(langfuse)
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar, Final
from urllib.parse import quote

from venire.connectors.traces.source import (
    OURS,
    PAGE,
    Note,
    Trace,
    TraceApi,
    Verdict,
    as_text,
    env,
)
from venire.model import rationale_of
from venire.tools.http import ApiError

QUEUES: Final = "/api/public/annotation-queues"
TRACES: Final = "/api/public/traces"
SCORES: Final = "/api/public/scores"

#: Langfuse gives traces with their scores one by one: at most this number at a time.
AT_ONCE: Final = 8


class Langfuse(TraceApi):
    """The traces in an annotation queue, with their scores of one name."""

    VERSION: ClassVar[str] = "3"

    def __init__(self, url: str, queue: str, name: str) -> None:
        self._named, self._label = queue, name
        user, key = env("LANGFUSE_PUBLIC_KEY"), env("LANGFUSE_SECRET_KEY")
        coded = base64.b64encode(f"{user}:{key}".encode()).decode()
        keys, there = (
            "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
            "is this the address of Langfuse 3?",
        )
        authorization = f"Basic {coded}" if user or key else ""
        super().__init__("Langfuse", url, f"valid keys in {keys}", there, key, authorization)
        self._queue = ""
        self._items: dict[str, str] = {}  # of the queue, by the trace

    async def pages(self) -> AsyncIterator[list[Trace]]:
        """All traces in the queue, done or not, with their scores."""
        fields = {"id": str, "objectId": str, "objectType": str}
        async for rows in self._all(f"{await self._at()}/items", fields):
            traces = {row["objectId"]: row["id"] for row in rows if row["objectType"] == "TRACE"}
            self._items |= traces
            yield await self.some(list(traces))

    async def some(self, ids: Sequence[str]) -> list[Trace]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(id: str) -> Trace | None:
            async with room:
                return await self._trace(id)

        found = await asyncio.gather(*map(one, ids))
        return [trace for trace in found if trace is not None]

    async def give(self, verdicts: Sequence[tuple[Trace, Verdict]]) -> None:
        """Write verdicts, and take their traces off the queue.

        Langfuse keeps one score of an id, so that a score which is sent again replaces itself.
        """
        for trace, verdict in verdicts:
            score = {
                "id": self._ours(trace.id),
                "traceId": trace.id,
                "name": self._label,
                "value": str(verdict.value),
                "dataType": "CATEGORICAL",
                "comment": verdict.why,
                "metadata": {"labeler": OURS, "confidence": verdict.confidence},
            }
            await self.call("POST", SCORES, score)
            if trace.id in self._items:
                path = f"{await self._at()}/items/{quote(self._items[trace.id], safe='')}"
                await self.call("PATCH", path, {"status": "COMPLETED"})

    async def _at(self) -> str:
        """Where the queue of this name is."""
        if not self._queue:
            async for rows in self._all(QUEUES, {"id": str, "name": str}):
                for row in rows:
                    if row["name"] == self._named:
                        self._queue = f"{QUEUES}/{quote(row['id'], safe='')}"
                        return self._queue
            raise ApiError(
                f"{self.url}: got 404, no annotation queue {self._named!r}: check --project", 404
            )
        return self._queue

    async def _all(
        self, path: str, fields: Mapping[str, Any]
    ) -> AsyncIterator[list[dict[str, Any]]]:
        page = 1
        while True:
            got = await self.call("GET", path, params={"page": page, "limit": PAGE})
            self.checked(path, [got], {"data": list, "meta": dict})
            if self.checked(path, got["data"], fields):
                yield got["data"]
            last = got["meta"].get("totalPages")
            if not isinstance(last, int) or page >= last:
                return
            page += 1

    async def _trace(self, id: str) -> Trace | None:
        path, asked = f"{TRACES}/{quote(id, safe='')}", {"fields": "core,io,scores"}
        try:
            row = await self.call("GET", path, params=asked)
        except ApiError as gone:
            if gone.status != 404:
                raise
            return None
        self.checked(TRACES, [row], {"id": str, "scores": list})
        fields = {"id": str, "name": str, "source": str, "updatedAt": str}
        self.checked(TRACES, row["scores"], fields)
        notes, ours = [], {}
        for score in row["scores"]:
            if score["name"] != self._label:
                continue
            about = score.get("metadata") if isinstance(score.get("metadata"), dict) else {}
            value = score.get("stringValue")
            value = score.get("value") if value is None else value
            if score["id"] == self._ours(id):
                sure = about.get("confidence", 0.0)
                ours[score["id"]] = Verdict(value, float(sure), score.get("comment") or "")
                continue
            who = about.get("labeler") or score.get("authorUserId") or score["source"].lower()
            said = as_text(value)
            why = rationale_of(score.get("comment"))
            notes.append(Note(score["id"], str(who), said, said, score["updatedAt"], why=why))
        content = {k: row[k] for k in ("name", "input", "output") if row.get(k) is not None}
        return Trace(id, notes, ours, content or None)

    def _ours(self, trace: str) -> str:
        return f"{OURS}-{trace}-{self._label}"
