"""A store in a real PostgreSQL: connections that are lost, databases of others, versions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import venire
from tests.marks import nightly
from venire.errors import InputError, StoreDown, StoreError, StoreInUse
from venire.server.store import (
    EventRow,
    Insert,
    KeyRow,
    SetMeta,
    SetStatus,
    Storage,
    StreamRow,
    TouchKey,
    Writer,
    open_storage,
)
from venire.server.store.sql import migrations, servers
from venire.server.store.sql.postgres import PostgresStorage

psycopg = pytest.importorskip("psycopg")

LOCK_TIMEOUT = "venire.server.store.sql.postgres._LOCK_TIMEOUT"


@pytest.fixture
def url(new_url: Callable[[str], str]) -> str:
    return new_url("postgres")


def _run(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


KILL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = 'venire' AND pid <> pg_backend_pid()"""


def test_a_lost_connection_is_made_anew_when_asked_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_storage(url) as storage, Writer(storage) as writer:
        writer.submit([Insert([StreamRow(name="s", created_at=0.0)])]).result(timeout=120)
        assert storage.streams()
        _run(url, KILL)
        with pytest.raises(StoreDown, match="PostgreSQL cannot be used for now"):
            writer.submit([SetMeta("a", "1")]).result(timeout=120)
        with pytest.raises(StoreDown, match="cannot be written to"):
            writer.submit([SetMeta("a", "2")]).result(timeout=120)
        assert storage.streams(), "the reads have connections of their own"
        assert writer.recover()
        writer.submit([SetMeta("a", "3")]).result(timeout=120)
        assert storage.meta("a") == "3"
        monkeypatch.setattr(LOCK_TIMEOUT, 1)
        with pytest.raises(StoreError, match="in use by another server"):
            open_storage(url)


def test_a_database_that_is_gone_for_a_while(url: str, postgres: str) -> None:
    name = url.rpartition("?")[0].rpartition("/")[2]
    with open_storage(url) as storage, Writer(storage) as writer:
        _run(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        _run(postgres, KILL.replace("current_database()", f"'{name}'"))
        with pytest.raises(StoreDown):
            writer.submit([SetMeta("a", "1")]).result(timeout=120)
        with pytest.raises(StoreDown):
            storage.meta("a")
        assert not writer.recover()
        _run(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert writer.recover()
        writer.submit([SetMeta("a", "2")]).result(timeout=120)
        assert storage.meta("a") == "2"


def test_a_session_whose_connection_is_lost_is_ended_by_the_server_itself(url: str) -> None:
    """PostgreSQL may not have noticed, and would keep the store for it."""
    with open_storage(url) as storage:
        lost = storage._writing  # type: ignore[attr-defined]
        storage._writing = None  # type: ignore[attr-defined]
        storage.ping()
        with pytest.raises(psycopg.OperationalError):
            lost.execute("SELECT 1")


def test_a_server_that_was_just_killed_may_have_the_store_for_a_moment(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOCK_TIMEOUT, 60_000)
    refused, join = threading.Event(), servers.join

    def try_to_join(*args: Any) -> bool:
        joined = join(*args)
        if not joined:
            refused.set()
        return joined

    with ThreadPoolExecutor(1) as pool:
        killed = open_storage(url)
        monkeypatch.setattr(servers, "join", try_to_join)
        opening = pool.submit(open_storage, url)
        assert refused.wait(280)
        killed.close()
        opening.result().close()


def test_a_newer_store_and_the_tables_of_others_are_refused(
    url: str, new_url: Callable[[str], str]
) -> None:
    open_storage(url).close()
    _run(url, f"UPDATE {migrations.VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(StoreError, match="newer venire"):
        open_storage(url)
    other = new_url("postgres")
    _run(other, "CREATE TABLE items (name text)")
    with pytest.raises(StoreError, match="not a store of venire"):
        open_storage(other)


def test_an_address_of_a_failover_pair(url: str) -> None:
    """As people point at one: two hosts, of which one can be written to."""
    at = urlsplit(url)
    folder = parse_qs(at.query)["host"][0]
    several = f"postgresql://{at.username}@/{at.path[1:]}?host=/nowhere,{folder}"
    with open_storage(f"{several}&target_session_attrs=read-write") as storage:
        assert storage.streams() == []
    with pytest.raises(InputError, match="not a valid address"):
        open_storage("postgresql://a,b/x?no_such_option=1")


def test_a_pooler_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler tells another process number than that of the backend."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda self: -1))
    with pytest.raises(StoreError, match="behind a connection pooler"):
        open_storage(url)


def test_text_that_postgresql_cannot_hold_is_refused(url: str) -> None:
    with open_storage(url) as storage:
        with pytest.raises(StoreError, match="NUL") as raised:
            storage.write([SetMeta("a", "\x00")])
        assert not isinstance(raised.value, StoreDown)
        storage.write([SetMeta("a", "1")])


A, B = "http://a:8400", "http://b:8400"


def test_servers_that_share_a_store_claim_streams_one_by_one(url: str) -> None:
    with open_storage(url, address=A) as one, open_storage(url, address=B) as two:
        assert one.claim("s")
        assert one.claim("s"), "as often as it likes"
        assert not two.claim("s")
        one.write([Insert([StreamRow(name="s", created_at=0.0)])])
        with pytest.raises(StoreError, match="has not claimed"):
            two.write([SetStatus("s", "paused")])
        two.write([SetMeta("a", "1")])  # of no stream
        members = one.members()
        assert sorted(members.addresses.values()) == [A, B]
        assert members.owner("s") == members.me == two.members().owner("s")
        one.disclaim("s")
        assert one.claims() == frozenset()
        assert two.claim("s")
        two.write([SetStatus("s", "paused")])
        with pytest.raises(StoreError, match="has not claimed"):
            one.write([SetStatus("s", "running")])


def test_a_server_that_leaves_stays_a_member_that_takes_nothing(url: str) -> None:
    with open_storage(url, address=A) as one, open_storage(url, address=B) as two:
        assert one.claim("s")
        one.resign()
        one.resign()
        members = two.members()
        assert members.owner("s") == one.session
        assert members.not_taking == {one.session}
        one.write([Insert([StreamRow(name="s", created_at=0.0)])])  # to the end


def test_a_server_that_says_nothing_takes_nothing_before_its_session_ends(url: str) -> None:
    with open_storage(url, address=A) as one, open_storage(url, address=B) as two:
        assert isinstance(one, PostgresStorage)
        with one._write_lock:  # as long as it has it, nothing is said
            end = time.monotonic() + 280
            while one.session not in two.members().not_taking:
                assert one.session in two.members().addresses
                assert time.monotonic() < end
        while one.session in two.members().not_taking:
            assert time.monotonic() < end


def test_events_go_on_where_another_server_left_off(url: str) -> None:
    def event(n: int) -> Insert:
        return Insert(
            [EventRow(stream="s", n=n, size=1, slot=0, at=0.0, kind="left", body='"ann"')]
        )

    with open_storage(url, address=A) as one, open_storage(url, address=B) as two:
        assert one.claim("s")
        one.write([Insert([StreamRow(name="s", created_at=0.0)]), event(0)])
        one.disclaim("s")
        assert two.claim("s")
        two.write([event(1)])
        two.disclaim("s")
        assert one.claim("s")
        one.write([event(2)])
        assert [row.n for row in one.all_events("s")] == [0, 1, 2]


def test_a_session_that_ends_takes_its_claims_along(url: str) -> None:
    with open_storage(url, address=A) as one, open_storage(url, address=B) as two:
        one.claim("s")
        one.write([Insert([StreamRow(name="s", created_at=0.0)])])
        _run(url, f"SELECT pg_terminate_backend({one.members().me})")
        until_free = time.monotonic() + 280
        while not two.claim("s"):
            assert time.monotonic() < until_free
        with pytest.raises(StoreDown):
            one.write([SetStatus("s", "paused")])
        one.ping()
        assert one.claims() == frozenset()
        assert one.members().me in one.members().addresses, "it is a member again"
        assert not one.claim("s")


def test_a_store_has_one_owner_or_several_that_share(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOCK_TIMEOUT, 1)
    with open_storage(url, address=A), pytest.raises(StoreInUse):
        open_storage(url)
    with open_storage(url), pytest.raises(StoreInUse):
        open_storage(url, address=A)


def test_a_shared_store_is_upgraded_while_nobody_uses_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOCK_TIMEOUT, 1)
    with open_storage(url, address=A):
        with psycopg.connect(url, autocommit=True) as root:
            root.execute(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '0009'")
        with pytest.raises(StoreInUse):
            open_storage(url, address=B)


def test_a_store_that_was_upgraded_while_the_connection_was_lost_is_not_written(url: str) -> None:
    with open_storage(url, address=A) as storage:
        _run(url, KILL)
        _run(url, f"UPDATE {migrations.VERSION_TABLE} SET version_num = '9999'")
        with pytest.raises(StoreDown, match="newer venire"):
            storage.ping()


@pytest.mark.parametrize("address", [None, A])
def test_an_upgrade_waits_for_servers_of_the_version_before_and_for_no_stranger(
    address: str | None, url: str, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those held an advisory lock, which any role can take that may connect."""
    monkeypatch.setattr(LOCK_TIMEOUT, 60_000)
    open_storage(url).close()
    _run(url, "DROP TABLE claims, servers; ALTER TABLE gold DROP COLUMN earlier")
    _run(url, "ALTER TABLE checks DROP COLUMN extra")
    _run(url, "ALTER TABLE labels DROP COLUMN confidence, DROP COLUMN rationale")
    _run(url, "DROP TABLE routed, repeats; ALTER TABLE leases DROP COLUMN again")
    _run(url, f"UPDATE {migrations.VERSION_TABLE} SET version_num = '0012'")
    with suppress(psycopg.errors.DuplicateObject):
        _run(postgres, "CREATE ROLE passer_by LOGIN")
    lock = "SELECT pg_advisory_lock_shared(%s)"
    number = (int.from_bytes(b"venire", "big"),)
    with psycopg.connect(url, autocommit=True) as old:
        old.execute(lock, number)
        with monkeypatch.context() as hasty:
            hasty.setattr(LOCK_TIMEOUT, 200)
            with pytest.raises(StoreInUse):
                open_storage(url, address=address)
    with psycopg.connect(url.replace("//venire:", "//passer_by:"), autocommit=True) as stranger:
        stranger.execute(lock, number)
        open_storage(url, address=address).close()


#: A server that opens its store as soon as it may.
START = """
import sys
from venire.errors import StoreInUse
from venire.server.store import open_storage
while True:
    try:
        open_storage(sys.argv[1], address=sys.argv[2]).close()
    except StoreInUse:
        continue
    break
"""


def test_servers_that_make_a_store_at_the_same_time_do_so_once(url: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(venire.__file__).parent.parent)}
    command = [sys.executable, "-c", START, url]
    started = [subprocess.Popen([*command, f"http://a:{n}"], env=env) for n in range(3)]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    open_storage(url).close()


@pytest.mark.parametrize("address", [nightly(None), A])
def test_an_owner_that_was_stopped_in_a_transaction_is_ended_by_who_waits(
    address: str | None, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL's own time-out does not end a session that has sent a pipeline."""
    monkeypatch.setattr(LOCK_TIMEOUT, 200)
    with open_storage(url, address=address) as stopped:
        stopped._closed.set()  # type: ignore[attr-defined]  # it says nothing any more
        assert stopped.claim("s")
        session = stopped._writing  # type: ignore[attr-defined]
        session.execute("BEGIN")
        session.cursor().executemany("UPDATE meta SET value = %s WHERE false", [("1",), ("2",)])
        begun = time.monotonic()
        while True:
            try:
                with open_storage(url, address=None if address is None else B) as other:
                    if address is None or (other.members() and other.claim("s")):
                        break
            except StoreInUse:
                pass
            assert time.monotonic() - begun < 280
            time.sleep(0.2)
        assert time.monotonic() - begun > 5
        with pytest.raises(StoreDown):
            stopped.write([SetMeta("a", "1")])


def test_servers_start_one_after_the_other(url: str) -> None:
    order: list[int] = []

    def start(number: int) -> None:
        with open_storage(url, address=f"http://a:{number}") as storage, storage.starting():
            order.append(number)
            time.sleep(0.05)
            order.append(number)

    open_storage(url).close()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(start, range(3)))
    assert all(one == two for one, two in zip(order[::2], order[1::2], strict=True))


def test_a_transaction_that_was_given_up_for_another_is_made_again(url: str) -> None:
    with open_storage(url, address=A) as storage, psycopg.connect(url) as other:
        storage.write([SetMeta("a", "0"), SetMeta("b", "0")])
        with ThreadPoolExecutor(1) as pool, psycopg.connect(url, autocommit=True) as root:
            while not _deadlock(storage, other, root, pool):
                pass  # PostgreSQL gave up the other one
        assert (storage.meta("a"), storage.meta("b")) == ("2", "2")


def _deadlock(storage: Storage, other: Any, root: Any, pool: ThreadPoolExecutor) -> bool:
    """Let a write and another transaction wait for each other; whether the write was given up."""
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    other.execute("UPDATE meta SET value = '1' WHERE key = 'b'")
    written = pool.submit(storage.write, [SetMeta("a", "2"), SetMeta("b", "2")])
    while not written.done() and not root.execute(waits).fetchall():
        time.sleep(0.01)
    try:
        other.execute("UPDATE meta SET value = '1' WHERE key = 'a'")
        other.commit()
    except psycopg.errors.DeadlockDetected:
        other.rollback()
        written.result(timeout=60)
        return False
    written.result(timeout=60)
    return True


def test_the_use_of_a_key_is_not_worth_waiting_for(url: str) -> None:
    with open_storage(url, address=A) as storage, psycopg.connect(url) as other:
        storage.write(
            [
                Insert(
                    [KeyRow(id="k", hash="h", role="admin", labeler=None, name="n", created_at=0.0)]
                )
            ]
        )
        other.execute("UPDATE keys SET last_used_at = 1 WHERE id = 'k'")  # and is stopped here
        storage.write([TouchKey("k", 2.0)])
        assert storage.keys()[0].last_used_at is None
        other.rollback()
        storage.write([TouchKey("k", 3.0)])
        assert storage.keys()[0].last_used_at == 3.0


def test_what_cannot_be_shared_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="only PostgreSQL can be shared"):
        open_storage("sqlite:///venire.db", address=A)
    with pytest.raises(InputError, match="expected http://HOST:PORT"):
        open_storage(url, address="10.0.0.7:8400")
