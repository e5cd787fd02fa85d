"""MLflow: feedback on traces as labels, expectations as gold, verdicts as feedback of venire.

async with Mlflow("http://127.0.0.1:5000", "my-experiment", "correctness") as mlflow:
    found = await Found.read(mlflow)
"""

from __future__ import annotations

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

#: Where traces and experiments are.
TRACES: Final = "/api/3.0/mlflow/traces"
BY_NAME: Final = "/api/2.0/mlflow/experiments/get-by-name"


class Mlflow(TraceApi):
    """The traces of an experiment, with their assessments of one name."""

    VERSION: ClassVar[str] = "3.4"

    def __init__(
        self, url: str, experiment: str, name: str, key_env: str = "MLFLOW_TRACKING_TOKEN"
    ) -> None:
        self._experiment, self._label = experiment, name
        there = f"expected MLflow 3 with the experiment {experiment!r}: check --project"
        super().__init__("MLflow", url, f"a valid token in {key_env}", there, env(key_env))

    async def _location(self) -> dict[str, Any]:
        asked = {"experiment_name": self._experiment}
        got = await self.call("GET", BY_NAME, params=asked)
        self.checked(BY_NAME, [got], {"experiment": dict})
        self.checked(BY_NAME, [got["experiment"]], {"experiment_id": object})
        number = got["experiment"]["experiment_id"]
        return {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": number}}

    async def pages(self) -> AsyncIterator[list[Trace]]:
        """All traces with their assessments, the oldest first."""
        asked: dict[str, Any] = {
            "locations": [await self._location()],
            "max_results": PAGE,
            "order_by": ["timestamp_ms ASC"],
        }
        while True:
            got = await self.call("POST", f"{TRACES}/search", asked, reads=True)
            rows = got.get("traces", []) if isinstance(got, dict) else None
            if rows := self.checked(f"{TRACES}/search", rows, {"trace_id": str}):
                yield [self._trace(row) for row in rows]
            if not (after := got.get("next_page_token")) or after == asked.get("page_token"):
                return
            asked["page_token"] = after

    async def some(self, ids: Sequence[str]) -> list[Trace]:
        """The traces of these ids that exist; MLflow gives them one by one."""
        found = []
        for id in ids:
            try:
                got = await self.call("GET", f"{TRACES}/{quote(id, safe='')}")
            except ApiError as gone:
                if gone.status != 404:
                    raise
                continue
            row = (got or {}).get("trace", {}).get("trace_info")
            self.checked(TRACES, [row], {"trace_id": str})
            found.append(self._trace(row))
        return found

    def _trace(self, row: Mapping[str, Any]) -> Trace:
        assessments = row.get("assessments") or []
        fields = {"assessment_id": str, "assessment_name": str, "source": dict}
        self.checked(f"{TRACES}/search", assessments, {**fields, "last_update_time": str})
        notes, ours = [], {}
        for one in assessments:
            if one["assessment_name"] != self._label or one.get("valid") is False:
                continue
            gold = "expectation" in one
            value = (one.get("expectation") or one.get("feedback") or {}).get("value")
            who = str(one["source"].get("source_id") or one["source"].get("source_type")).lower()
            who = one["source"].get("source_id") or who
            if who == OURS and not gold:
                sure = (one.get("metadata") or {}).get("confidence", "0")
                ours[one["assessment_id"]] = Verdict(value, float(sure), one.get("rationale", ""))
            else:
                id, at = one["assessment_id"], one["last_update_time"]
                why = rationale_of(one.get("rationale"))
                notes.append(Note(id, who, as_text(value), value, at, gold, why))
        previews = {k: row.get(f"{k}_preview") for k in ("request", "response")}
        content = {k: text for k, text in previews.items() if text}
        return Trace(row["trace_id"], notes, ours, content if content or notes else None)

    async def give(self, verdicts: Sequence[tuple[Trace, Verdict]]) -> None:
        """Write verdicts: a new assessment, or the one that is there is changed."""
        for trace, verdict in verdicts:
            path = f"{TRACES}/{trace.id}/assessments"
            assessment = {
                "trace_id": trace.id,
                "feedback": {"value": verdict.value},
                "rationale": verdict.why,
                "metadata": {"confidence": str(verdict.confidence)},
            }
            first, *others = [*trace.ours, ""]
            if first:
                body = {"assessment": {**assessment, "assessment_id": first}}
                mask = {"update_mask": "feedback,rationale,metadata"}
                await self.call("PATCH", f"{path}/{first}", {**body, **mask})
                for extra in filter(None, others):  # of two runs at the same time
                    await self._remove(f"{path}/{extra}")
            else:
                source = {"source_type": "CODE", "source_id": OURS}
                named = {"assessment_name": self._label, "source": source}
                await self.call("POST", path, {"assessment": {**assessment, **named}})

    async def _remove(self, path: str) -> None:
        try:
            await self.call("DELETE", path)
        except ApiError as gone:
            if gone.status != 404:
                raise
