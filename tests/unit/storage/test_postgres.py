"""A store in a real PostgreSQL: connections that are lost, databases of others, versions."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlsplit

import pytest

from venire.errors import InputError, StoreDown, StoreError
from venire.storage import AddStream, SetMeta, StreamRow, Writer, open_storage
from venire.storage.sql import schema

psycopg = pytest.importorskip("psycopg")

LOCK_TIMEOUT = "venire.storage.sql.postgres._LOCK_TIMEOUT"


@pytest.fixture
def url(new_url: Callable[[str], str]) -> str:
    return new_url("postgres")


def _run(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


KILL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""


def test_a_lost_connection_is_made_anew_when_asked_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_storage(url) as storage, Writer(storage) as writer:
        writer.submit([AddStream(StreamRow("s", 0.0))]).result(timeout=30)
        assert storage.streams()
        _run(url, KILL)
        with pytest.raises(StoreDown, match="PostgreSQL cannot be used for now"):
            writer.submit([SetMeta("a", "1")]).result(timeout=30)
        with pytest.raises(StoreDown, match="cannot be written to"):
            writer.submit([SetMeta("a", "2")]).result(timeout=30)
        assert storage.streams(), "the reads have connections of their own"
        assert writer.recover()
        writer.submit([SetMeta("a", "3")]).result(timeout=30)
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
            writer.submit([SetMeta("a", "1")]).result(timeout=30)
        with pytest.raises(StoreDown):
            storage.meta("a")
        assert not writer.recover()
        _run(postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert writer.recover()
        writer.submit([SetMeta("a", "2")]).result(timeout=30)
        assert storage.meta("a") == "2"


def test_a_lost_connection_that_still_holds_the_lock_is_waited_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_storage(url) as storage:
        lost = storage._writing  # type: ignore[attr-defined]
        storage._writing = None  # type: ignore[attr-defined]
        with monkeypatch.context() as hasty:
            hasty.setattr(LOCK_TIMEOUT, 1)
            with pytest.raises(StoreDown, match="in use by another server"):
                storage.ping()
        lost.close()
        storage.ping()


def test_a_server_that_was_just_killed_may_hold_the_lock_for_a_moment(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOCK_TIMEOUT, 60_000)
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    open_storage(url).close()
    with psycopg.connect(url, autocommit=True) as root, ThreadPoolExecutor(1) as pool:
        killed = open_storage(url)
        opening = pool.submit(open_storage, url)
        while not opening.done() and not root.execute(waiting).fetchall():
            time.sleep(0.01)
        killed.close()
        opening.result().close()


def test_a_newer_store_and_the_tables_of_others_are_refused(
    url: str, new_url: Callable[[str], str]
) -> None:
    open_storage(url).close()
    _run(url, f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
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
