"""API keys: made, bound, revoked, noticed."""

import asyncio
import threading

import pytest

from tests.unit.service.support import bench, running
from venire.errors import InputError, NotFound
from venire.service import Service
from venire.service.tokens import hashed
from venire.storage import AddKey, KeyRow, MemoryStorage, RevokeKey


@running
async def test_the_first_start_makes_one_admin_key_and_the_next_none() -> None:
    storage = MemoryStorage()
    service = Service(storage)
    token = await service.start()
    assert token is not None
    assert token.startswith("vk_")
    assert token not in repr(storage.keys())
    key = service.keys.authenticate(token)
    assert key is not None
    assert key.role == "admin"
    await service.stop()
    assert storage.keys()[0].last_used_at is not None
    again = Service(storage)
    assert await again.start() is None
    assert again.keys.authenticate(token) is not None
    await again.stop()


@running
async def test_keys_are_bound_revoked_and_listed() -> None:
    async with bench() as b:
        keys = b.service.keys
        made = await keys.create("ann's", "labeler", "ann")
        assert made.key.labeler == "ann"
        for role, labeler in (("labeler", None), ("admin", "ann"), ("king", None)):
            with pytest.raises(InputError):
                await keys.create("x", role, labeler)  # type: ignore[arg-type]
        assert keys.authenticate("vk_nonsense") is None
        assert keys.authenticate(made.token) is not None
        [mine] = [key for key in await keys.list() if key.id == made.key.id]
        assert mine.last_used_at == b.clock.wall()
        assert (await keys.revoke(made.key.id)).revoked_at is not None
        assert keys.authenticate(made.token) is None
        await keys.revoke(made.key.id)
        with pytest.raises(NotFound):
            await keys.revoke("key_nowhere")


@running
async def test_keys_made_and_revoked_by_another_process_are_noticed() -> None:
    async with bench() as b:
        b.storage.write([AddKey(KeyRow("k9", hashed("vk_other"), "viewer", None, "cli", 0.0))])
        assert b.service.keys.authenticate("vk_other") is None
        await b.service.keys.refresh()
        assert b.service.keys.authenticate("vk_other") is not None
        b.storage.write([RevokeKey("k9", 1.0)])
        await b.service.keys.refresh()
        assert b.service.keys.authenticate("vk_other") is None


@running
async def test_a_list_that_was_read_before_a_key_was_made_does_not_replace_it() -> None:
    async with bench() as b:
        keys, storage, read = b.service.keys, b.storage, threading.Event()
        go, old = threading.Event(), b.storage.keys

        def slow() -> list[KeyRow]:
            rows = old()
            read.set()
            go.wait(10)
            return rows

        storage.keys = slow  # type: ignore[method-assign]
        refresh = asyncio.create_task(keys.refresh())
        await asyncio.to_thread(read.wait, 10)
        storage.keys = old  # type: ignore[method-assign]
        making = asyncio.create_task(keys.create("robot", "producer"))
        await asyncio.sleep(0.05)
        go.set()
        await refresh
        assert keys.authenticate((await making).token) is not None
