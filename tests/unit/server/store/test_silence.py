"""A PostgreSQL that says nothing: no call waits for it for ever, and long work is no silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest
from sqlalchemy import func, select

from tests.integration.server.harness import until
from tests.marks import nightly
from tests.wire import FAULTS, LASTING, Fault, wire_to
from venire.errors import StoreDown, StoreError
from venire.server.store import Insert, SetMeta, StreamRow, Writer, open_storage
from venire.server.store.sql import servers
from venire.server.store.sql.postgres import PostgresStorage

A, B = "http://a:8400", "http://b:8400"


@contextmanager
def impatient() -> Iterator[None]:
    """Inside, silence is noticed after one second instead of four."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(servers, "SILENCE", 1)
        yield


@pytest.fixture
def url(new_url: Callable[[str], str]) -> str:
    return new_url("postgres")


@pytest.mark.parametrize("how", FAULTS)
def test_a_connection_that_fails_in_any_way_is_noticed_without_a_write_and_made_anew(
    how: Fault, url: str
) -> None:
    with wire_to(url) as wire, open_storage(wire.url, address=A) as storage:
        storage.write([SetMeta("a", "1")])
        assert storage.meta("a") == "1"
        assert not storage.silent
        with impatient():
            wire.fail(how)
            until(lambda: storage.silent)
            until(lambda: storage.lost is not None)
            with pytest.raises(StoreDown):
                storage.write([SetMeta("a", "2")])
            if how in LASTING:
                with pytest.raises(StoreDown):
                    storage.ping()
                with pytest.raises(StoreDown):
                    storage.meta("a")
            wire.mend()
            until(lambda: _works(storage.ping))
            until(lambda: _works(lambda: storage.meta("a")))
        storage.write([SetMeta("a", "3")])
        assert storage.meta("a") == "3"
        assert not storage.silent


def _works(call: Callable[[], object]) -> bool:
    try:
        call()
    except StoreError:
        return False
    return True


@pytest.mark.parametrize("how", ["stall", nightly("halfopen"), nightly("halfdrop")])
def test_a_write_under_way_fails_when_the_connection_is_silent(how: Fault, url: str) -> None:
    """And the writer, its thread and the store can be closed."""
    with wire_to(url) as wire, open_storage(wire.url) as storage, Writer(storage) as writer:
        wire.fail(how)
        with impatient(), pytest.raises(StoreDown):
            writer.submit([SetMeta("a", "1")]).result(timeout=280)


def test_a_store_that_is_closed_waits_for_no_answer(url: str) -> None:
    with wire_to(url) as wire, open_storage(wire.url) as storage:
        assert isinstance(storage, PostgresStorage)
        session, asked, ended = storage._writing, threading.Event(), threading.Event()
        assert session is not None

        def ask() -> None:
            asked.set()
            try:
                session.execute("SELECT pg_sleep(600)")
            except Exception:
                ended.set()

        threading.Thread(target=ask, daemon=True).start()
        assert asked.wait(280)
        storage.close()
        assert ended.wait(280)


def test_an_answer_that_takes_long_is_no_lost_connection(url: str) -> None:
    """Readiness waits for it all the same: while it lasts nothing else can be written."""
    with open_storage(url) as storage, impatient():
        assert isinstance(storage, PostgresStorage)
        session, silent = storage._writing, threading.Event()
        assert session is not None

        def look() -> None:
            until(lambda: storage.silent)
            silent.set()

        threading.Thread(target=look, daemon=True).start()
        with storage._write_lock, psycopg.connect(url, autocommit=True) as root:
            root.execute("SELECT pg_advisory_lock(1)")

            def answer() -> None:
                if silent.wait(280):
                    root.execute("SELECT pg_advisory_unlock(1)")

            threading.Thread(target=answer, daemon=True).start()
            asked = "SELECT 1 FROM (SELECT pg_advisory_lock(1)) AS waited"
            assert session.execute(asked).fetchone() == (1,)
        assert silent.is_set()
        assert not storage.silent
        with storage._connection() as connection:
            assert connection.exec_driver_sql("SELECT pg_sleep(2), 2").one()[1] == 2


def test_what_a_silent_connection_owned_is_free_for_others(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By PostgreSQL's own time-out, here a shorter one: the one that lost it does not come back."""
    for name in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
        monkeypatch.setitem(servers._TIMEOUTS, name, "5s")
    with wire_to(url) as wire, open_storage(wire.url, address=A) as lost:
        monkeypatch.undo()
        assert lost.claim("s")
        lost.write([Insert([StreamRow(name="s", created_at=0.0)])])
        with open_storage(url, address=B) as other:
            wire.fail("stall")
            begun = time.monotonic()
            until(lambda: bool(other.members()) and other.claim("s"))
            print(f"claimed after {time.monotonic() - begun:.1f} s")  # noqa: T201
            with pytest.raises(StoreError):
                lost.write([SetMeta("a", "1"), Insert([StreamRow(name="s", created_at=1.0)])])


def test_what_reads_by_a_lost_connection_does_not_keep_its_place(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or else PostgreSQL has no connection to spare after some of them, and nobody recovers."""
    monkeypatch.setattr(servers, "IDLE", "2s")
    with wire_to(url) as wire, open_storage(wire.url, owner=True) as storage:
        assert isinstance(storage, PostgresStorage)
        with ExitStack() as stack:  # as many as read at a time
            lost = {
                stack.enter_context(storage._engine.connect()).scalar(select(func.pg_backend_pid()))
                for _ in range(4)
            }
        wire.fail("halfopen")
        with psycopg.connect(url, autocommit=True) as root:
            asked = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)"
            until(lambda: root.execute(asked, (list(lost),)).fetchone() == (0,))
