"""API keys: create, list, rotate, revoke; the caller's own; and the audit trail."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Path, Query, Response
from starlette.responses import StreamingResponse

from venire.server.admin_messages import AuditView, KeyView, NewKey
from venire.server.edge.access import Caller
from venire.server.edge.bodies import CSV, KeyBody, RotateBody
from venire.server.edge.guard import Gate
from venire.server.edge.parameters import SLUG, Limit, serves
from venire.tools.untrusted import harmless

#: Entries to read at once.
PAGE: Final = 1000

Key = Annotated[str, Path(description="The id of the key.")]
USUAL: Final = RotateBody()
EXAMPLE: Final = {"name": "Ann's laptop", "role": "labeler", "labeler": "ann"}
After = Annotated[int, Query(description="Entries after this number.", ge=0, le=2**53)]
About = Annotated[str | None, Query(description="Only entries about this stream.", pattern=SLUG)]


class KeyRoutes:
    """Management of keys, for operators, and who did what with them."""

    def __init__(self, gate: Gate) -> None:
        """Behind a gate."""
        self._service, self._keys = gate.service, gate.service.keys

    @serves("keys", "keys", text="All keys, including revoked ones, with their last use.")
    async def list(self) -> Sequence[KeyView]:
        """All keys, without their tokens."""
        return await self._keys.list()

    @serves("create_key", "keys", 409, 413, 415, 422, ok=201,
            text="Created; the token is shown only once.", example=EXAMPLE)  # fmt: skip
    async def create(self, who: Caller, new: KeyBody) -> NewKey:
        """Create a key."""
        return await self._keys.create(new.name, new.role, new.labeler, who.actor, new.days)

    @serves("revoke_key", "keys", 404, 409, 422, text="The key is revoked.")
    async def revoke(self, who: Caller, key: Key) -> KeyView:
        """Revoke a key, effective at once."""
        return await self._keys.revoke(key, who.actor)

    @serves("rotate_key", "keys", 404, 409, 413, 415, 422, ok=201,
            text="The token is shown only once.", example={"overlap_hours": 1})  # fmt: skip
    async def rotate(self, who: Caller, key: Key, asked: RotateBody = USUAL) -> NewKey:
        """Replace a key; the old one stays valid for a while."""
        return await self._keys.rotate(key, who.actor, asked.overlap_hours * 3600)

    @serves("me", "keys", text="The owner and the role of the key.")
    async def me(self, who: Caller) -> Caller:
        """The owner and the role of the caller's key."""
        return who

    @serves("audit", "operations", 422, text="Audit entries, oldest first; `n` is the cursor.")
    async def audit(
        self, after: After = 0, limit: Limit = 1000, stream: About = None
    ) -> Sequence[AuditView]:
        """Who did what, when and with which key."""
        return await self._service.audit(after, limit, stream)

    @serves("export_audit", "operations", 422, text="All entries as CSV, oldest first.", kind=CSV)
    async def export(self, stream: About = None) -> Response:
        """The audit trail as CSV with a header, all of it or of one stream."""
        first = await self._service.audit(0, PAGE, stream)
        headers = {"content-disposition": 'attachment; filename="audit.csv"'}
        pages = self._pages(first, stream)
        return StreamingResponse(pages, media_type="text/csv; charset=utf-8", headers=headers)

    async def _pages(self, rows: Sequence[AuditView], stream: str | None) -> AsyncIterator[str]:
        yield _csv([("n", "at", "actor", "key", "action", "stream", "subject", "details")])
        while rows:
            yield _csv([_line(row) for row in rows])
            rows = await self._service.audit(rows[-1].n, PAGE, stream)


def _line(row: AuditView) -> tuple[object, ...]:
    at = datetime.fromtimestamp(row.at, UTC).isoformat()
    details = json.dumps(row.details, ensure_ascii=False)
    return row.n, at, row.actor, row.key, row.action, row.stream, row.subject, details


def _csv(rows: Iterable[tuple[object, ...]]) -> str:
    r"""Rows as CSV; a text that a spreadsheet would take for a formula begins with a quote.

    >>> _csv([(1, "a, b", None, "=1+1")])
    '1,"a, b",,\'=1+1\r\n'
    """
    text = io.StringIO()
    csv.writer(text).writerows([harmless(value) for value in row] for row in rows)
    return text.getvalue()
