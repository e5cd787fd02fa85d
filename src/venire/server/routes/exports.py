"""Exports: the tables of a stream as files."""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from fastapi import FastAPI, Query, Request, Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from venire.server.edge.answers import says
from venire.server.edge.bodies import CSV, NDJSON
from venire.server.edge.errors import RequestError
from venire.server.edge.guard import Gate
from venire.server.edge.parameters import Stream
from venire.server.store.maintenance.tables import write_table

__all__ = ["FORMATS", "ExportRoutes", "formats"]

#: Types by ending.
FORMATS: Final = {"csv": CSV, "jsonl": NDJSON, "parquet": "application/vnd.apache.parquet"}

What = Annotated[
    Literal["labels", "verdicts", "revisions", "gold", "notes"],
    Query(description="The table."),
]
Format = Annotated[Literal["csv", "jsonl", "parquet"], Query(description="The kind of file.")]
SHARES = "With verdicts: also the probability of each class."


def formats() -> list[str]:
    """The kinds of files that can be written here.

    >>> formats()[:2]
    ['csv', 'jsonl']
    """
    return [name for name in FORMATS if name != "parquet" or find_spec("pyarrow") is not None]


class ExportRoutes:
    """For readers; reviewers may not see what is due to be audited."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._gate, self._service = gate, gate.service

    def add(self, app: FastAPI) -> None:
        """Add the route."""
        described = says(404, 409, 422, text="The table, as a file.", kind=CSV)
        described[200]["content"] |= {kind: {} for kind in FORMATS.values()}
        app.add_api_route(
            "/v1/streams/{stream}/export",
            self.export,
            methods=["GET"],
            tags=["reading"],
            response_class=Response,
            responses=described,
        )

    async def export(
        self,
        request: Request,
        stream: Stream,
        what: What = "verdicts",
        format: Format = "csv",
        probabilities: Annotated[bool, Query(description=SHARES)] = False,
    ) -> Response:
        """Labels, verdicts, revisions, gold or notes as CSV, JSON Lines or Parquet."""
        if format not in formats():
            raise RequestError(
                409, "invalid_state", "this server has no pyarrow", hint="choose csv or jsonl"
            )
        await self._service.stream(stream)
        runtime = self._service.runtime
        await runtime.flush()
        folder = tempfile.TemporaryDirectory(prefix="venire-export-")
        path, shares = Path(folder.name, f"{what}.{format}"), probabilities and what == "verdicts"
        work = runtime.keep(write_table, runtime.storage, stream, what, path, shares)
        try:
            await self._gate.long_poll(request, work)
        except BaseException:
            folder.cleanup()
            raise
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        done: Any = BackgroundTask(folder.cleanup)
        name = f"{stream}-{what}.{format}"
        return FileResponse(path, 200, headers, FORMATS[format], done, filename=name)
