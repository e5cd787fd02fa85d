"""API keys: made, bound, revoked, noticed."""

import asyncio
import json
import threading

import pytest

from tests.store.store import MemoryStorage
from tests.unit.server.support import bench, running
from venire.errors import InputError, NotFound
from venire.server import Service
from venire.server.actors import Actor
from venire.server.keys.keyring import MAX_PER_KEY
from venire.server.store import Insert, KeyRow, RevokeKey, SetMeta
from venire.server.tokens import hashed


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
                await keys.create("x", role, labeler)
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
        b.storage.write(
            [
                Insert(
                    [
                        KeyRow(
                            id="k9",
                            hash=hashed("vk_other"),
                            role="viewer",
                            labeler=None,
                            name="cli",
                            created_at=0.0,
                        )
                    ]
                )
            ]
        )
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
            go.wait(280)
            return rows

        storage.keys = slow  # type: ignore[method-assign]
        refresh = asyncio.create_task(keys.refresh())
        await asyncio.to_thread(read.wait, 280)
        storage.keys = old  # type: ignore[method-assign]
        making = asyncio.create_task(keys.create("robot", "producer"))
        await asyncio.sleep(0.05)
        go.set()
        await refresh
        assert keys.authenticate((await making).token) is not None


@running
async def test_a_key_opens_until_its_end() -> None:
    async with bench() as b:
        keys = b.service.keys
        made = await keys.create("for a week", "viewer", days=7)
        assert made.key.expires_at == b.clock.wall() + 7 * 86_400
        b.clock.advance(7 * 86_400 - 1)
        assert keys.authenticate(made.token) is not None
        b.clock.advance(1)
        assert keys.authenticate(made.token) is None
        for days in (0, -1, 1e9, float("nan")):
            with pytest.raises(InputError, match="days"):
                await keys.create("x", "viewer", days=days)


@running
async def test_a_key_is_rotated_with_time_to_change_over() -> None:
    async with bench() as b:
        keys = b.service.keys
        old = await keys.create("ann's", "labeler", "ann", days=30)
        b.clock.advance(86_400)
        new = await keys.rotate(old.key.id, Actor("me", "key_me"), overlap=3600)
        assert new.token != old.token
        assert (new.key.role, new.key.labeler, new.key.name) == ("labeler", "ann", "ann's")
        assert new.key.expires_at == b.clock.wall() + 30 * 86_400
        assert keys.authenticate(old.token) is not None
        assert keys.authenticate(new.token) is not None
        last = (await b.service.audit())[-1]
        assert (last.action, last.subject, last.key) == ("key.rotate", old.key.id, "key_me")
        assert last.details == {"new": new.key.id}
        b.clock.advance(3600)
        assert keys.authenticate(old.token) is None
        assert keys.authenticate(new.token) is not None
        for ended in (old.key.id, "key_nowhere"):
            with pytest.raises(NotFound):
                await keys.rotate(ended)
        at_once = await keys.rotate(new.key.id, overlap=0)
        assert keys.authenticate(new.token) is None
        assert keys.authenticate(at_once.token) is not None


@running
async def test_a_session_ends_with_its_time_its_key_or_by_signing_out() -> None:
    async with bench() as b:
        keys, sessions = b.service.keys, b.service.sessions
        made = await keys.create("ann's", "labeler", "ann")
        one, two, three = [await sessions.begin(made.key, hours * 3600) for hours in (1, 2, 3)]
        assert made.token not in (one, two, three)
        assert keys.authenticate(one) is None, "a session is no key"
        assert sessions.key_of(made.token) is None, "a key is no session"
        await sessions.end(two)
        b.clock.advance(3600)
        found = [sessions.key_of(token) for token in (one, two, three)]
        assert [key is not None for key in found] == [False, False, True]
        assert one not in str(b.storage.metas("session "))
    async with bench(b.storage, b.clock) as b:
        keys, sessions = b.service.keys, b.service.sessions
        assert sessions.key_of(two) is None, "signed out is signed out"
        assert sessions.key_of(three) is not None
        await keys.revoke(made.key.id)
        assert sessions.key_of(three) is None


@running
async def test_sessions_that_an_older_version_stored_go_on() -> None:
    async with bench() as b:
        made = await b.service.keys.create("ann's", "labeler", "ann")
        until = b.clock.wall() + 60
        old = json.dumps({hashed("of old"): [made.key.id, until]})
        b.storage.write([SetMeta("sessions", old)])
    async with bench(b.storage, b.clock) as b:
        assert b.service.sessions.key_of("of old") is not None
        assert b.storage.meta("sessions") is None
        b.clock.advance(61)
        await b.service.sessions.begin(made.key, 60)
        assert len(b.storage.metas("session ")) == 1, "who has expired is dropped"


@running
async def test_one_key_does_not_fill_the_store_with_sessions() -> None:
    async with bench() as b:
        made = await b.service.keys.create("ann's", "labeler", "ann")
        tokens = [await b.service.sessions.begin(made.key, 60) for _ in range(MAX_PER_KEY + 5)]
        alive = [b.service.sessions.key_of(token) is not None for token in tokens]
        assert alive == [False] * 5 + [True] * MAX_PER_KEY
