"""An owner of a store in PostgreSQL that is suspended in the middle of a large write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import venire
from tests.marks import nightly
from venire.errors import StoreInUse
from venire.server.store import EventRow, Insert, Storage, StreamRow, open_storage
from venire.server.store.sql import postgres

psycopg = pytest.importorskip("psycopg")

A, B = "http://a:8400", "http://b:8400"

#: An owner that does nothing but write, and says how each write ended.
OWNER = """
import sys
from venire.errors import StoreDown
from venire.server.store import Insert, Insert, EventRow, StreamRow, open_storage

url, address = sys.argv[1], sys.argv[2] or None
with open_storage(url, address=address) as storage:
    assert storage.claim("s")
    storage.write([Insert([StreamRow(name="s", created_at=0.0)])])
    first, size = 0, 100_000
    rows = [EventRow.load(["s", n, 1, 0, 0.0, "left", '"ann"']) for n in range(size)]
    while True:
        moved = [row._replace(n=first + row.n) for row in rows]
        print("begun", first, flush=True)
        try:
            storage.write([Insert(moved)])
        except StoreDown:
            print("lost", first, flush=True)
            break
        first += size
        print("written", first, flush=True)
"""

COPYING = """SELECT wait_event FROM pg_stat_activity
WHERE datname = current_database() AND state = 'active' AND query LIKE 'COPY events%'"""


@pytest.fixture
def url(new_url: Callable[[str], str]) -> str:
    return new_url("postgres")


@contextmanager
def owner(url: str, address: str | None) -> Iterator[subprocess.Popen[str]]:
    source = str(Path(venire.__file__).parent.parent)
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, url, address or ""],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def stop_in_a_copy(url: str, process: subprocess.Popen[str]) -> float:
    """Suspend a process when PostgreSQL waits for more rows of its COPY; returns when."""
    end = time.monotonic() + 280
    with psycopg.connect(url, autocommit=True) as root:
        while time.monotonic() < end:
            if root.execute(COPYING).fetchall():
                begun = time.monotonic()
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.5)  # PostgreSQL reads what was sent
                if root.execute(COPYING).fetchall() == [("ClientRead",)]:
                    return begun
                process.send_signal(signal.SIGCONT)
            assert process.poll() is None
            time.sleep(0.01)
    raise AssertionError("it was never in a COPY")


def take(url: str, address: str | None) -> Storage:
    """Own the store, or the stream of another, once it can be had."""
    while True:
        try:
            storage = open_storage(url, address=address)
        except StoreInUse:
            continue
        while storage.members() and not storage.claim("s"):
            time.sleep(0.1)
        return storage


@pytest.mark.parametrize("address", [nightly(None), A])
def test_an_owner_that_is_stopped_in_a_copy_loses_the_store_and_writes_nothing(
    address: str | None, url: str
) -> None:
    with owner(url, address) as process:
        assert process.stdout is not None
        begun = stop_in_a_copy(url, process)
        with take(url, None if address is None else B) as storage:
            took = time.monotonic() - begun
            assert took > 5, f"taken over after {took:.1f} s"
            before = storage.counts("s").events
            storage.write(
                [
                    Insert(
                        [
                            EventRow(
                                stream="s",
                                n=before,
                                size=1,
                                slot=0,
                                at=0.0,
                                kind="left",
                                body='"bob"',
                            )
                        ]
                    )
                ]
            )
            process.send_signal(signal.SIGCONT)
            said = process.stdout.read().split("\n")
            assert process.wait(280) == 0
            assert said[-2] == f"lost {before}", "what it was writing is refused"
            assert storage.counts("s").events == before + 1


@pytest.mark.slow
def test_an_owner_whose_write_takes_long_keeps_the_store(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others take a session for silent whose statement began long ago, and waits for rows."""
    send = psycopg.Copy.write_row

    def send_slowly(copy: Any, row: Any) -> None:
        time.sleep(0.05)
        send(copy, row)

    monkeypatch.setattr(psycopg.Copy, "write_row", send_slowly)
    monkeypatch.setattr(postgres, "_COPY_MOST", 50)
    rows = [
        EventRow(stream="s", n=n, size=1, slot=0, at=0.0, kind="left", body='"ann"' + " " * 60_000)
        for n in range(300)
    ]
    with open_storage(url, address=A) as slow, open_storage(url, address=B) as other:
        assert slow.claim("s")
        slow.write([Insert([StreamRow(name="s", created_at=0.0)])])
        done = threading.Event()

        def look() -> None:
            while not done.wait(0.1):
                other.members()

        looking = threading.Thread(target=look)
        looking.start()
        begun = time.monotonic()
        try:
            slow.write([Insert(rows)])
        finally:
            done.set()
            looking.join()
        assert time.monotonic() - begun > 12, "longer than a session may be silent"
        assert slow.counts("s").events == 300
