"""Every store passes the battery, does what the plain one in memory does, and has one owner."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.battery import check_storage, everything
from tests.store.store import MemoryStorage
from tests.stored import play
from venire.errors import InputError, StoreDown, StoreError
from venire.server.store import (
    AuditRow,
    Change,
    DeleteStream,
    EndLeases,
    ErasePayload,
    EventRow,
    ExitRow,
    ExpireKey,
    Insert,
    ItemRow,
    KeyRow,
    LabelRow,
    LeaseEnd,
    LeaseRow,
    LeaveItems,
    MarkDeleted,
    PurgeStream,
    RevokeKey,
    SetStatus,
    SnapshotRow,
    Storage,
    StreamRow,
    open_storage,
)
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.verify import verify

NewUrl = Callable[[str], str]

KINDS = ["plain", "memory", "sqlite", "postgres"]
DATABASES = ["sqlite", "postgres"]


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, new_url: NewUrl) -> Iterator[Storage]:
    plain = request.param == "plain"
    with MemoryStorage() if plain else open_storage(new_url(request.param)) as opened:
        yield opened


def test_battery(storage: Storage) -> None:
    check_storage(storage)


def test_a_stream_is_what_its_log_says_and_moves_house(storage: Storage, tmp_path: Path) -> None:
    play(storage, slots=6)
    assert verify(storage, "posts").differences == ()
    write_archive(storage, tmp_path / "all.ndjson")
    other = MemoryStorage()
    read_archive(other, tmp_path / "all.ndjson")
    assert everything(other, "posts") == everything(storage, "posts")


def test_an_archive_is_read_into_any_store(storage: Storage, tmp_path: Path) -> None:
    other = MemoryStorage()
    play(other, slots=6)
    write_archive(other, tmp_path / "all.ndjson")
    read_archive(storage, tmp_path / "all.ndjson")
    assert everything(other, "posts") == everything(storage, "posts")
    assert verify(storage, "posts").ok
    with pytest.raises(StoreError, match="not empty"):
        read_archive(storage, tmp_path / "all.ndjson")


def test_an_archive_from_before_the_audit_trail_is_read(storage: Storage, tmp_path: Path) -> None:
    item = ["s", "i1", "digest", '"text"', 1.0, None, "[]", 0, 5.0]
    lines: list[Any] = [
        {"venire": "store", "format": 1},
        ["keys", "k1", "hash", "admin", None, "first", 1.0, None, None],
        ["streams", "s", 1.0, "closed"],
        ["items", *item, "left", 1, 2, 6.0, "ok", 0.5, 1, "no_gain"],
        ["labels", "s", "i1", "ann", "ok", 5.5, 1, False, 0.5, "lease"],
        ["leases", "token", "s", "i1", "ann", 5.0, 60.0, "done", 5.5, "{}"],
    ]
    path = tmp_path / "old.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.warns(UserWarning, match="earlier version"):
        assert read_archive(storage, path) == 5
    assert [row.key for row in storage.items("s")] == [None]
    assert [row.key for row in storage.labels("s")] == [None]
    assert [row.expires_at for row in storage.keys()] == [None]  # noqa: SIM118
    assert storage.given("s", [("i1", "ann")]) == {("i1", "ann")}


# A store does what the one in memory does, whatever is written to it.

STREAMS = st.sampled_from(["s", "t"])
FEW = st.integers(0, 3)


def _event(stream: str, n: int, size: int) -> Change:
    return Insert(
        [EventRow(stream=stream, n=n, size=size, slot=0, at=0.0, kind="left", body='"ann"')]
    )


def _items(stream: str, ids: list[int]) -> Change:
    rows = [
        ItemRow(
            stream=stream,
            id=f"i{id}",
            digest="d",
            payload="{}",
            weight=1.0,
            eligible=None,
            excluded="[]",
            arrived_slot=0,
            arrived_at=0.0,
        )
        for id in ids
    ]
    return Insert(rows)


def _leave(stream: str, id: int, n: int) -> Change:
    return LeaveItems(
        [
            ExitRow(
                stream=stream,
                id=f"i{id}",
                status="left",
                exit_n=n,
                exit_slot=0,
                left_at=0.0,
                verdict="ok",
                confidence=0.5,
                labels=1,
                reason="no_gain",
            )
        ]
    )


def _labels(stream: str, ids: list[int], who: int) -> Change:
    rows = [
        LabelRow(
            stream=stream,
            item=f"i{id}",
            labeler=f"m{who}",
            said="ok",
            at=0.0,
            slot=0,
            late=False,
            lead_seconds=None,
            source="x",
        )
        for id in ids
    ]
    return Insert(rows)


def _leases(stream: str, token: int) -> Change:
    return Insert(
        [
            LeaseRow(
                token_hash=f"{stream}{token}",
                stream=stream,
                item="i0",
                labeler="m0",
                given_at=0.0,
                ttl=1.0,
            )
        ]
    )


def _end(stream: str, token: int, status: str) -> Change:
    return EndLeases([LeaseEnd(f"{stream}{token}", status, 1.0)])


IDS = st.lists(FEW, max_size=3)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.builds(lambda name: Insert([StreamRow(name=name, created_at=0.0)]), STREAMS),
    st.builds(SetStatus, STREAMS, st.sampled_from(["paused", "running"])),
    st.builds(_event, STREAMS, FEW, st.integers(1, 2)),
    st.builds(_items, STREAMS, IDS),
    st.builds(_leave, STREAMS, FEW, st.integers(1, 3)),
    st.builds(_labels, STREAMS, IDS, FEW),
    st.builds(_leases, STREAMS, FEW),
    st.builds(_end, STREAMS, FEW, st.sampled_from(["done", "expired"])),
    st.builds(
        lambda name, n: Insert([SnapshotRow(stream=name, n=n, at=0.0, body=b"x")]), STREAMS, FEW
    ),
    st.builds(
        lambda n: Insert(
            [KeyRow(id=f"k{n}", hash=f"h{n}", role="admin", labeler=None, name="", created_at=0.0)]
        ),
        FEW,
    ),
    st.builds(lambda n: RevokeKey(f"k{n}", 1.0), FEW),
    st.builds(lambda n, at: ExpireKey(f"k{n}", at), FEW, st.sampled_from([1.0, 2.0])),
    st.builds(
        lambda name: Insert([AuditRow(n=0, at=0.0, actor="me", key=None, action="x", stream=name)]),
        STREAMS,
    ),
    st.builds(lambda name, id: ErasePayload(name, f"i{id}"), STREAMS, FEW),
    st.builds(MarkDeleted, STREAMS, st.just(1.0)),
    st.builds(PurgeStream, STREAMS, st.just(1000)),
    st.builds(DeleteStream, STREAMS),
)
#: Most of what is drawn would be refused without streams to put it in.
WRITES = st.lists(st.lists(CHANGES, max_size=5), max_size=6)
BEGIN: list[Change] = [Insert([StreamRow(name="s", created_at=0.0)])]


def _taken(storage: Storage, changes: list[Change]) -> bool:
    try:
        storage.write(changes)
    except StoreError:
        return False
    return True


def _state(storage: Storage) -> list[Any]:
    return [everything(storage, "s"), everything(storage, "t")]


def _compare(storage: Storage, writes: list[list[Change]]) -> None:
    plain = MemoryStorage()
    for changes in [BEGIN, *writes]:
        assert _taken(storage, changes) == _taken(plain, changes)
        assert _state(storage) == _state(plain)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=WRITES)
def test_sqlite_does_what_memory_does(new_url: NewUrl, writes: list[list[Change]]) -> None:
    with open_storage(new_url("sqlite")) as storage:
        _compare(storage, writes)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=WRITES)
def test_postgres_does_what_memory_does(new_url: NewUrl, writes: list[list[Change]]) -> None:
    with open_storage(new_url("postgres")) as storage:
        _compare(storage, writes)


# Who may open it, and what stays.


@pytest.mark.parametrize("kind", DATABASES)
def test_what_is_written_is_there_after_it_was_closed(new_url: NewUrl, kind: str) -> None:
    url = new_url(kind)
    with open_storage(url) as storage:
        check_storage(storage)
        before = everything(storage, "checked")
    with open_storage(url) as storage:
        assert everything(storage, "checked") == before
        storage.write([_event("checked", 8, 1)])


@pytest.mark.parametrize("kind", DATABASES)
def test_a_second_owner_is_refused_and_a_guest_is_not(new_url: NewUrl, kind: str) -> None:
    url = new_url(kind)
    with pytest.raises(StoreError, match="venire serve"):
        open_storage(url, owner=False)
    with open_storage(url) as owner:
        owner.write(BEGIN)
        with pytest.raises(StoreError, match="in use by another server"):
            open_storage(url)
        with open_storage(url, owner=False) as guest:
            assert [row.name for row in guest.streams()] == ["s"]
            guest.write(
                [
                    Insert(
                        [
                            KeyRow(
                                id="k",
                                hash="h",
                                role="admin",
                                labeler=None,
                                name="",
                                created_at=0.0,
                            )
                        ]
                    )
                ]
            )
            with pytest.raises(StoreError, match="may write items"):
                guest.write([_items("s", [1])])
            with guest.frozen():
                assert guest.items("s") == []
                owner.write([_items("s", [1])])
                assert guest.items("s") == [], "what is frozen has changed"
            assert len(guest.items("s")) == 1
        assert [key.id for key in list(owner.keys())] == ["k"]
    open_storage(url).close()


def test_nothing_is_written_after_it_was_closed(storage: Storage) -> None:
    storage.close()
    storage.close()
    for verb in (storage.ping, lambda: storage.write(BEGIN)):
        with pytest.raises(StoreDown):
            verb()


def test_text_that_is_no_text_is_refused(storage: Storage) -> None:
    if isinstance(storage, MemoryStorage):
        pytest.skip("memory keeps whatever Python has")
    storage.write(BEGIN)
    with pytest.raises(StoreError, match="Unicode"):
        storage.write(
            [
                Insert(
                    [
                        KeyRow(
                            id="k\ud800",
                            hash="h",
                            role="admin",
                            labeler=None,
                            name="",
                            created_at=0.0,
                        )
                    ]
                )
            ]
        )
    storage.write(
        [Insert([KeyRow(id="k", hash="h", role="admin", labeler=None, name="", created_at=0.0)])]
    )


@pytest.mark.parametrize(
    "url", ["mysql://x", "venire.db", "sqlite://", "sqlite:///:memory:", "sqlite:///x?mode=ro"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(InputError, match="got the store"):
        open_storage(url)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(StoreError) as raised:
        open_storage("postgresql://me:hush@127.0.0.1:1/venire")
    assert isinstance(raised.value, StoreDown)
    assert "hush" not in str(raised.value)
