"""Revisions through the service: log, table, cursor, item, webhook, restart, export."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.store.battery import everything
from tests.store.store import MemoryStorage
from tests.unit.server.support import Bench, bench, running
from tests.unit.server.webhooks.test_deliveries import LOCAL, receiver, send, signed
from venire.cli.export import export
from venire.errors import InputError, NotFound
from venire.server.messages import EventView
from venire.server.settings import StreamSettings
from venire.server.store import RevisionRow, Storage, open_storage
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.export import label_studio_tasks
from venire.server.store.maintenance.verify import verify

SETTINGS: dict[str, Any] = {
    "panel": tuple({"id": name} for name in ("ann", "bob", "cec", "odd")),
    "policy": "fixed-overlap:1",
    "learning": "algorithm-2:1",
    "revisions": 100,
}


async def learn(b: Bench) -> None:
    """Of i0 there are two labels that disagree; of the others, `odd` is always alone."""
    await b.add(*(f"i{k}" for k in range(20)))
    labels = [("i0", "odd", "ok"), ("i0", "ann", "spam")]
    for k in range(1, 20):
        truth, other = ("spam", "ok") if k % 2 else ("ok", "spam")
        labels += [(f"i{k}", name, truth) for name in ("ann", "bob", "cec")]
        labels.append((f"i{k}", "odd", other))
    await b.service.add_labels("posts", labels)
    await b.pass_time(10)


@running
async def test_a_verdict_that_changes_is_published_and_the_exit_stays() -> None:
    async with bench(**SETTINGS) as b:
        waiting = asyncio.create_task(b.service.revisions("posts", wait=30))
        await asyncio.sleep(0.01)
        await learn(b)
        [told] = await waiting
        assert (told.n, told.item, told.before, told.before_confidence) == (1, "i0", "ok", 0.5)
        assert (told.verdict, told.labels, told.slot) == ("spam", 2, 0)
        assert await b.service.revisions("posts", after=1) == []
        item = await b.service.item("posts", "i0")
        assert (item.verdict, item.confidence) == ("spam", told.confidence)
        assert item.revisions == (told,)
        assert item.exit is not None
        assert (item.exit.verdict, item.exit.confidence) == ("ok", 0.5)
        [review] = [x for x in (await b.service.reviews("posts")).items if x.item == "i0"]
        assert (review.verdict, review.confidence) == ("spam", told.confidence)
        exits = {exit.item: exit.verdict for exit in await b.service.exits("posts")}
        assert exits["i0"] == "ok"
        assert (await b.service.insights("posts")).revisions == 1
        closed = [e async for e in logged(b) if e.kind == "closed"]
        assert [r["item"] for e in closed for r in e.body["revisions"]] == ["i0"]
    assert verify(b.storage, "posts") == dataclasses.replace(
        verify(b.storage, "posts"), revisions=1, differences=()
    )
    async with bench(b.storage, b.clock) as again:
        assert again.live.revision_n == 1
        assert again.live.engine.revisions == 100
        assert [r.n for r in await again.service.revisions("posts")] == [1]
        assert str(again.live.engine.verdict("i0").label) == "spam"


async def logged(b: Bench) -> AsyncIterator[EventView]:
    """What is in the log."""
    end = b.live.n
    async for event in b.service.events("posts", after=0):
        yield event
        if event.n >= end:
            return


@running
async def test_a_revision_is_sent_signed_and_can_be_sent_again() -> None:
    soon = LOCAL.model_copy(update={"webhook_min_attempts": 5, "webhook_retry_seconds": 1.0})
    async with receiver() as r, bench(server=soon, **SETTINGS) as b:
        hook = await b.service.webhooks.add("posts", r.url)
        assert hook.secret is not None
        await learn(b)
        r.answers = [404] * 21 * 5  # twenty exits and a revision, five attempts each
        for _ in range(8):
            await send(b)
            b.clock.advance(3600)
        [(headers, raw)] = {
            headers["webhook-id"]: (headers, raw)
            for headers, raw in r.got
            if json.loads(raw)["type"] == "item.revised"
        }.values()
        assert headers["webhook-id"] == f"msg_{hook.id}_r1"
        assert signed(hook.secret, headers, raw)
        data = json.loads(raw)["data"]
        assert (data["before"], data["verdict"]) == ("ok", "spam")
        assert json.loads(raw)["timestamp"] == data["at"]
        dead = await b.service.webhooks.dead("posts", hook.id)
        assert [(x.exit_n, x.revision_n) for x in dead[-2:]] == [(20, None), (None, 1)]
        with pytest.raises(NotFound, match="revision 7"):
            await b.service.webhooks.redeliver("posts", hook.id, revision_n=7)
        assert await b.service.webhooks.redeliver("posts", hook.id, revision_n=1) == 1
        await send(b)
        assert len(await b.service.webhooks.dead("posts", hook.id)) == 20
        assert await b.service.webhooks.redeliver("posts", hook.id) == 20


@running
async def test_off_by_default_and_changed_live() -> None:
    async with bench(**{**SETTINGS, "revisions": 0}) as b:
        await learn(b)
        assert await b.service.revisions("posts") == []
        assert (await b.service.item("posts", "i0")).verdict == "ok"
        await b.service.change_stream("posts", {"revisions": 7}, "me")
        assert b.live.engine.revisions == 7
        with pytest.raises(InputError, match="revisions"):
            await b.service.change_stream("posts", {"revisions": True}, "me")
    async with bench(b.storage, b.clock) as again:
        assert again.live.engine.revisions == 7
    assert StreamSettings(classes=("a", "b")).revisions == 0
    assert verify(b.storage, "posts").ok


@running
async def test_verify_finds_what_is_not_in_the_log() -> None:
    async with bench(**SETTINGS) as b:
        await learn(b)
    rows = b.storage.tables.revisions["posts"]
    kept = rows[1]
    for changed, said in (
        ({1: kept._replace(verdict="ok")}, "revision 1 is"),
        ({}, "revision 1 is in the log but not in the table"),
        ({1: kept, 2: kept._replace(n=2)}, "revision 2 is in the table but not in the log"),
    ):
        b.storage.tables.revisions["posts"] = changed
        [difference] = verify(b.storage, "posts").differences
        assert difference.startswith(said)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@running
async def test_it_moves_to_another_store_and_out_of_it(
    kind: str, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    with open_storage(new_url(kind)) as storage:
        await into(storage, tmp_path)


async def into(storage: Storage, tmp_path: Path) -> None:
    async with bench(**SETTINGS) as b:
        await b.service.webhooks.add("posts", "https://93.184.216.34/x")
        await learn(b)
    write_archive(b.storage, tmp_path / "all.ndjson")
    read_archive(storage, tmp_path / "all.ndjson")
    assert everything(storage, "posts") == everything(b.storage, "posts")
    assert verify(storage, "posts").ok
    [task] = [t for t in label_studio_tasks(storage, "posts") if "left_as" in t["meta"]["venire"]]
    assert task["meta"]["venire"]["left_as"] == "ok"
    assert task["predictions"][0]["result"][0]["value"]["choices"] == ["spam"]


@running
async def test_revisions_are_exported(tmp_path: Path) -> None:
    async with bench(**SETTINGS) as b:
        await learn(b)
    write_archive(b.storage, tmp_path / "all.ndjson")
    url, target = f"sqlite:///{tmp_path}/venire.db", tmp_path / "revisions.csv"
    with open_storage(url) as storage:
        read_archive(storage, tmp_path / "all.ndjson")
    export(str(target), url, "posts", "revisions")
    with open(target, newline="") as file:
        [row] = csv.DictReader(file)
    assert tuple(row) == RevisionRow._fields[1:]
    assert (row["item"], row["before"], row["verdict"]) == ("i0", "ok", "spam")


def test_a_store_in_memory_is_empty_at_first() -> None:
    assert MemoryStorage().revisions("posts") == []
