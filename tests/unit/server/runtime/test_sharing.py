"""A server that looks who shares the store with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.unit.server.support import running
from venire.server import Service
from venire.server.runtime.sharing import Plan
from venire.server.store import Members, open_storage
from venire.server.store.ownership import lock_of

pytest.importorskip("psycopg")


@asynccontextmanager
async def member(url: str) -> AsyncIterator[Service]:
    """A server that shares a store."""
    with open_storage(url, address="http://a:8400") as storage:
        service = Service(storage)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()


@running
async def test_a_session_that_was_replaced_since_the_look_is_not_missed(
    new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that began before the session was lost tells of the old one."""
    async with member(new_url("postgres")) as service:
        runtime = service.runtime
        sharing, writer, me = runtime.sharing, runtime.writer, runtime.storage.session
        for session, up in ((me + 1, True), (me, False)):
            seen = Members(session, {}, {}), list[object](), frozenset[str]()
            with monkeypatch.context() as old:
                old.setattr(sharing, "_read", lambda seen=seen: seen)
                await sharing._look()
                assert writer.up == up
        async with asyncio.timeout(60):
            while not writer.up:  # it looks again, and is a member
                await asyncio.sleep(0.05)


@running
async def test_nothing_is_meant_for_a_server_that_takes_nothing(
    new_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps what it owns; what is free goes to the others, who give nothing up for it."""
    async with member(new_url("postgres")) as service:
        sharing, storage = service.runtime.sharing, service.runtime.storage
        me, other = storage.session, storage.session + 1
        for name in ("mine", "mine too"):
            assert storage.claim(name)
        addresses = {me: "http://a:8400", other: "http://b:8400"}
        holders = {lock_of("mine"): me, lock_of("mine too"): me, lock_of("theirs"): other}
        names = frozenset(("free", "mine", "mine too", "theirs"))
        plans = {}
        for not_taking in ((), (other,), (me,)):
            with monkeypatch.context() as seen:
                members = Members(me, addresses, holders, frozenset(not_taking))
                seen.setattr(sharing, "members", members)
                seen.setattr(sharing, "_names", names)
                plans[not_taking] = sharing._plan()
        fair = Plan([], [])
        assert plans == {(): fair, (other,): Plan(["free"], []), (me,): fair}
