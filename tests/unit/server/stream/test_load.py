"""What a start reads: no payload that nobody looks at, and no label to count it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from tests.unit.server.support import Bench, Flaky, bench, running
from venire.server import ItemIn, Lease
from venire.server.store import open_storage
from venire.server.store.sql.storage import Storage
from venire.server.stream import live_stream
from venire.server.stream.leases import LeaseIndex
from venire.server.stream.live_stream import LARGE_PAYLOAD
from venire.server.stream.load import load


@running
async def test_payloads_beyond_what_memory_keeps_are_read_when_they_are_handed_out() -> None:
    storage = Flaky()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_stream, "MAX_PAYLOADS", 100)
        async with bench(storage) as b:
            await b.service.add_items("posts", [ItemIn(f"i{n}", "x" * 40) for n in range(5)])
            await b.service.add_items("posts", [ItemIn("large", "y" * LARGE_PAYLOAD)])
            _check(b, kept=2)
        async with bench(storage) as b:
            _check(b, kept=2)
            for _ in range(6):
                got = await b.service.next("posts", "ann")
                assert isinstance(got, Lease)
                assert set(got.payload) == {"y" if got.item == "large" else "x"}
                await b.service.label(got.token or "", "ok")
            await b.pass_time(10.0)
            for labeler in ("bob", "cec"):
                for _ in range(6):
                    got = await b.service.next("posts", labeler)
                    if isinstance(got, Lease):
                        await b.service.label(got.token or "", "ok")
            await b.pass_time(10.0)
            assert not b.live.open
            assert b.live.payload_chars == 0


def _check(b: Bench, kept: int) -> None:
    payloads = [entry.payload for entry in b.live.open.values()]
    assert sum(payload is not None for payload in payloads) == kept
    assert b.live.payload_chars == sum(len(payload or "") for payload in payloads)


@running
async def test_a_start_counts_nothing_and_reads_no_long_payload(tmp_path: Path) -> None:
    storage: Any = open_storage(f"sqlite:///{tmp_path}/venire.db")
    assert isinstance(storage, Storage)
    with storage:
        async with bench(storage) as b:  # type: ignore[arg-type]
            await b.service.add_items("posts", [ItemIn(f"i{n}", "z" * 9999) for n in range(3)])
            await b.service.add_labels("posts", [("i0", "ann", "ok"), ("i0", "bob", "ok")])
            await b.pass_time(10.0)
            await b.service.add_labels("posts", [("i0", "cec", "ok"), ("i1", "cec", "ok")])
            moment = b.service.runtime.moment()
            said: list[str] = []

            @event.listens_for(storage._engine, "before_cursor_execute")
            def note(_: Any, __: Any, statement: str, *more: Any) -> None:
                said.append(" ".join(statement.split()))

            live = load(storage, "posts", moment, LeaseIndex())
            event.remove(storage._engine, "before_cursor_execute", note)
    assert live is not None
    assert [entry.payload for entry in live.open.values()] == [None, None]
    assert (live.statistics.labels, live.statistics.late, live.statistics.left) == (4, 1, 1)
    assert (live.labelers["cec"].labels, live.labelers["cec"].late) == (2, 1)
    counting = [sql for sql in said if "count(" in sql.lower() and "LIMIT" not in sql]
    assert all("FROM labels" not in sql and "FROM items" not in sql.split("max(")[0]
               for sql in counting)  # fmt: skip
    assert not any("max(events.n + events.size)" in sql for sql in said)
