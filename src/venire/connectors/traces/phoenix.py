"""Arize Phoenix: annotations of spans as labels, verdicts as annotations of venire.

async with Phoenix("http://127.0.0.1:6006", "my-project", "correctness") as phoenix:
    found = await Found.read(phoenix)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, ClassVar
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


class Phoenix(TraceApi):
    """The spans of a project that have annotations of one name, and those that have none."""

    VERSION: ClassVar[str] = "11"

    def __init__(self, url: str, project: str, name: str, key_env: str = "PHOENIX_API_KEY") -> None:
        self._at, self._label = f"/v1/projects/{quote(project, safe='')}", name
        there = f"expected Phoenix with the project {project!r}: check --project"
        super().__init__("Phoenix", url, f"a valid key in {key_env}", there, env(key_env))

    async def pages(self) -> AsyncIterator[list[Trace]]:
        """All spans with their annotations, the oldest first."""
        async for spans in self._all("/spans", {"limit": PAGE, "order": "asc"}, {"context": dict}):
            yield await self._with_notes(spans)

    async def some(self, ids: Sequence[str]) -> list[Trace]:
        """The spans of these ids that exist."""
        asked = {"limit": PAGE, "span_id": list(ids)}
        found: list[Trace] = []
        async for spans in self._all("/spans", asked, {"context": dict}):
            found += await self._with_notes(spans)
        return found

    async def _with_notes(self, spans: Sequence[dict[str, Any]]) -> list[Trace]:
        annotations: dict[Any, list[dict[str, Any]]] = {_id(span): [] for span in spans}
        asked = {
            "span_ids": [*annotations],
            "include_annotation_names": [self._label],
            "limit": 1000,
        }
        fields = {"id": str, "span_id": str, "annotator_kind": str, "updated_at": str}
        async for rows in self._all("/span_annotations", asked, fields):
            for row in rows:
                annotations.setdefault(row["span_id"], []).append(row)
        return [_trace(span, annotations[_id(span)]) for span in spans]

    async def _all(
        self, path: str, params: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> AsyncIterator[list[dict[str, Any]]]:
        cursor: str | None = None
        while True:
            more = {} if cursor is None else {"cursor": cursor}
            got = await self.call("GET", f"{self._at}{path}", params={**params, **more})
            self.checked(path, [got], {"data": list})
            if self.checked(path, got["data"], fields):
                yield got["data"]
            if not (after := got.get("next_cursor")) or after == cursor:
                return
            cursor = after

    async def give(self, verdicts: Sequence[tuple[Trace, Verdict]]) -> None:
        """Write verdicts; Phoenix keeps one annotation of a name and identifier for each span."""
        data = [
            {
                "name": self._label,
                "annotator_kind": "CODE",
                "identifier": OURS,
                "span_id": trace.id,
                "result": {
                    "label": str(verdict.value),
                    "score": verdict.confidence,
                    "explanation": verdict.why,
                },
            }
            for trace, verdict in verdicts
        ]
        await self.call("POST", "/v1/span_annotations", {"data": data}, {"sync": "true"})


def _id(span: Mapping[str, Any]) -> str:
    return str(span["context"].get("span_id"))


def _trace(span: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Trace:
    notes, ours = [], {}
    for row in rows:
        result = row.get("result") or {}
        label, score = result.get("label"), result.get("score")
        if row.get("identifier") == OURS:
            ours[row["id"]] = Verdict(label, score or 0.0, result.get("explanation") or "")
            continue
        who, kind = row.get("identifier") or "", row["annotator_kind"]
        if kind == "HUMAN":
            who = row.get("user_id") or who
        value = score if label is None else label
        said = as_text(value)
        why = rationale_of(result.get("explanation"))
        notes.append(Note(row["id"], who or kind.lower(), said, said, row["updated_at"], why=why))
    return Trace(_id(span), notes, ours, _content(span, bool(notes)))


def _content(span: Mapping[str, Any], annotated: bool) -> dict[str, Any] | None:
    """What labelers see; None for a part of a trace that nobody has annotated."""
    given = span.get("attributes") or {}
    found = {k: given[f"{k}.value"] for k in ("input", "output") if f"{k}.value" in given}
    whole = span.get("parent_id") is None and bool(found)
    return {"name": span.get("name"), **found} if whole or annotated else None
