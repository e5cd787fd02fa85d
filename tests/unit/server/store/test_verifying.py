"""Whatever is changed in the tables behind the log's back is found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.battery import everything
from tests.store.store import MemoryStorage
from tests.stored import play
from venire import Item
from venire.server import ItemIn
from venire.server.operations.items import contents
from venire.server.store import (
    Insert,
    ItemRow,
    SettingsRow,
    SnapshotRow,
    open_storage,
)
from venire.server.store.contents import compact, digest_of, is_content_of
from venire.server.store.maintenance.archive import read_archive, write_archive
from venire.server.store.maintenance.export import label_studio_tasks
from venire.server.store.maintenance.verify import verify
from venire.server.store.sql.sqlite import SqliteStorage
from venire.server.store.sql.tables import metadata


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("played") / "venire.db"
    with open_storage(f"sqlite:///{path}") as opened:
        play(opened)
    return path


@pytest.fixture
def storage(played: Path, tmp_path: Path) -> Iterator[SqliteStorage]:
    shutil.copy(played, tmp_path / "venire.db")
    with open_storage(f"sqlite:///{tmp_path}/venire.db") as opened:
        assert isinstance(opened, SqliteStorage)
        yield opened


@pytest.mark.parametrize("seed", range(4))
def test_a_store_that_was_left_alone_is_right(seed: int) -> None:
    storage = MemoryStorage()
    run = play(storage, slots=25, seed=seed)
    found = verify(storage, "posts")
    assert found.differences == ()
    assert found.events == run.n
    assert found.exits == run.exits > 10
    assert found.snapshots == 4


LEFT = "(SELECT id FROM items WHERE status = 'left' AND labels > 0 LIMIT 1)"
GIVEN = "token_hash, stream, item, labeler, given_at, ttl, status"
TAMPERED = {
    "the log says": f"UPDATE items SET verdict = 'neither' WHERE id = {LEFT}",
    "the log says ('left'": f"UPDATE items SET confidence = 0.123 WHERE id = {LEFT}",
    "is ('open',": f"UPDATE items SET status = 'open', exit_n = NULL WHERE id = {LEFT}",
    "arrived in slot 77": f"UPDATE items SET arrived_slot = 77 WHERE id = {LEFT}",
    "is in the log but not in the table": f"DELETE FROM items WHERE id = {LEFT}",
    "the label of": "UPDATE labels SET said = 'x' WHERE item = (SELECT min(item) FROM labels)",
    "by 'ann' is in the log but not": "DELETE FROM labels WHERE labeler = 'ann'",
    "in the table but not in the log": (
        "INSERT INTO labels SELECT stream, item, 'nobody', said, at, slot, late, NULL, source, "
        "key, NULL, NULL FROM labels LIMIT 1"
    ),
    "there is no open lease": "UPDATE leases SET status = 'expired' WHERE status = 'open'",
    "but not by the log": (
        f"INSERT INTO leases ({GIVEN}) SELECT 'x', stream, id, 'nobody', 0, 1, 'open' "
        "FROM items WHERE status = 'open' LIMIT 1"
    ),
    "two open leases": (
        f"INSERT INTO leases ({GIVEN}) SELECT 'x' || token_hash, stream, item, labeler, 0, 1, "
        "'open' FROM leases WHERE status = 'open' LIMIT 1"
    ),
    "there is no label": "UPDATE leases SET status = 'done' WHERE status = 'released'",
    "differs from the state": (
        "UPDATE snapshots SET body = (SELECT body FROM snapshots ORDER BY n LIMIT 1) "
        "WHERE n = (SELECT max(n) FROM snapshots)"
    ),
    "cannot be read": "UPDATE snapshots SET body = x'00' WHERE n = (SELECT max(n) FROM snapshots)",
    "is ahead of the log": "UPDATE snapshots SET n = 9999 WHERE n = (SELECT max(n) FROM snapshots)",
    "no snapshot of the start": "DELETE FROM snapshots WHERE n = 0",
    "the log continues with event": "DELETE FROM events WHERE n = 3",
    "but replaying it gave": (
        "UPDATE events SET body = replace(body, 'no_gain', 'overlap') WHERE kind = 'closed'"
    ),
    "'bribed' is not a valid ExitReason": (
        "UPDATE events SET body = replace(body, 'no_gain', 'bribed') WHERE kind = 'closed'"
    ),
    "unknown kind": "UPDATE events SET kind = 'folded' WHERE n = 3",
    "does not match the digest of its content": (
        f"UPDATE items SET payload = replace(payload, 'item', 'itfm') WHERE id = {LEFT}"
    ),
    "does not match the digest": (
        f"UPDATE items SET digest = replace(digest, 'a', 'b') WHERE id = {LEFT}"
    ),
    "Could not decode": (
        f"UPDATE items SET payload = CAST(x'7B2274FFFF' AS TEXT) WHERE id = {LEFT}"
    ),
    "has weight 10.5": f"UPDATE items SET weight = 10.5 WHERE id = {LEFT}",
    "has eligible": f"""UPDATE items SET eligible = '["ann"]' WHERE id = {LEFT}""",
    "has excluded": f"""UPDATE items SET excluded = '["ann"]' WHERE id = {LEFT}""",
    "arrived at 7.5, the log says": f"UPDATE items SET arrived_at = 7.5 WHERE id = {LEFT}",
    "7.5, 'spam'": f"UPDATE items SET left_at = 7.5, verdict = 'spam' WHERE id = {LEFT}",
    "is ('withdrawn'": "UPDATE items SET labels = 7 WHERE status = 'withdrawn'",
    "7.5, None), the log says": "UPDATE labels SET at = 7.5 WHERE labeler = 'ann'",
    "given at 7.5": "UPDATE leases SET given_at = 7.5 WHERE status = 'done'",
    "event 3 cannot be read": "UPDATE events SET body = replace(body, ',', ';') WHERE n = 3",
    "snapshot 0 cannot be read": "UPDATE snapshots SET body = x'00' WHERE n = 0",
    "version 1 of the settings": "UPDATE settings SET body = '{'",
}


@pytest.mark.parametrize("words", TAMPERED)
def test_what_was_tampered_with_is_found(storage: SqliteStorage, words: str) -> None:
    assert verify(storage, "posts").ok
    changed = storage._writing.execute(TAMPERED[words]).rowcount
    assert changed > 0, "the test has changed nothing"
    found = verify(storage, "posts")
    assert not found.ok
    assert any(words in difference for difference in found.differences), found.differences


#: Of these there is no second word in a store.
NOBODY_KNOWS = {
    "labels": {"stream", "lead_seconds", "source"},
    "items": {"stream"},
    "leases": {"stream", "token_hash", "ttl", "ended_at", "answer"},
    "events": {"stream"},
}


@pytest.mark.parametrize("table", NOBODY_KNOWS)
def test_one_changed_value_in_any_column_is_found(storage: SqliteStorage, table: str) -> None:
    """In every fifth row; what is changed is put back."""
    rows = storage._writing.execute(f"SELECT rowid, * FROM {table}").fetchall()
    columns = [column.name for column in metadata.tables[table].columns]
    for place, column in enumerate(columns, 1):
        for row in rows[::5]:
            when_released = column == "at" and "released" in row
            if column in NOBODY_KNOWS[table] or row[place] is None or when_released:
                continue
            update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
            try:
                storage._writing.execute(update, (_other(row[place]), row[0]))
            except storage._driver.IntegrityError:
                continue  # the database itself does not take it
            assert not verify(storage, "posts").ok, (column, row)
            storage._writing.execute(update, (row[place], row[0]))
    assert verify(storage, "posts").ok


def _other(value: Any) -> Any:
    """The value with one bit flipped, as near as SQL comes to it."""
    if isinstance(value, str):
        return value[:-1] + chr(ord(value[-1]) ^ 1)
    return value + 1 if isinstance(value, int) else value + 2**-20


@given(
    payload=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
        ),
        max_leaves=10,
    ),
    weight=st.none() | st.integers(1, 100) | st.floats(0.1, 100.0),
    eligible=st.none() | st.lists(st.sampled_from(["ann", "bob", "ann"])),
    place=st.integers(0, 10_000),
)
def test_what_was_taken_in_has_its_digest_and_what_was_changed_since_has_not(
    payload: Any, weight: float | None, eligible: list[str] | None, place: int
) -> None:
    item = ItemIn("a", payload, weight, None if eligible is None else tuple(eligible), ("eve",))
    sent = contents([item])["a"]
    kept = 10.0 if weight is None else float(weight)
    row = ItemRow(
        stream="s",
        id="a",
        digest=sent.digest,
        payload=sent.payload,
        weight=kept,
        eligible=sent.eligible,
        excluded=sent.excluded,
        arrived_slot=0,
        arrived_at=0.0,
    )
    assert is_content_of(row)
    assert not is_content_of(row._replace(excluded="[]"))
    at = place % len(sent.payload)
    flipped = sent.payload[:at] + chr(ord(sent.payload[at]) ^ 1) + sent.payload[at + 1 :]
    try:
        same = compact(json.loads(flipped)) == compact(json.loads(sent.payload))
    except ValueError:
        same = False
    assert is_content_of(row._replace(payload=flipped)) == same


def test_a_weight_in_another_unit_is_no_difference() -> None:
    """What a slot of waiting costs may change while a stream runs."""
    storage = MemoryStorage()
    run = play(storage, slots=2)
    body = '{"settings":{"delay_cost":4.0},"status":"running"}'
    storage.write(
        [Insert([SettingsRow(stream="posts", version=2, at=run.at, actor="test", body=body)])]
    )
    run.engine.arrive([Item("late", 2.5)])
    digest = digest_of({"text": "late"}, None, None, [])
    row = ItemRow(
        stream="posts",
        id="late",
        digest=digest,
        payload='{"text":"late"}',
        weight=10.0,
        eligible=None,
        excluded="[]",
        arrived_slot=run.engine.slot,
        arrived_at=run.at,
    )
    run.commit(Insert([row]))
    assert verify(storage, "posts").differences == ()


def test_a_late_label_that_the_engine_has_forgotten_is_no_difference(
    storage: SqliteStorage,
) -> None:
    storage._writing.execute(
        "INSERT INTO labels SELECT stream, item, 'nobody', said, at, slot, 1, NULL, source, key, "
        "NULL, NULL FROM labels WHERE item IN (SELECT id FROM items WHERE status = 'left') LIMIT 1"
    )
    assert verify(storage, "posts").ok


def test_a_snapshot_of_a_later_slot_is_right() -> None:
    """Slots that pass without an exit leave no event."""
    storage = MemoryStorage()
    run = play(storage)
    run.engine.advance(run.engine.slot + 1)
    run.commit()
    while run.engine.outstanding:
        run.advance()
    run.engine.advance(run.engine.slot + 10)
    assert run.engine.drain() == []
    run.snapshot()
    assert verify(storage, "posts").ok


def test_an_archive_is_the_whole_store(storage: SqliteStorage, tmp_path: Path) -> None:
    play(storage, stream="others", seed=1)
    target = tmp_path / "all.ndjson"
    rows = write_archive(storage, target)
    into: list[Any] = [MemoryStorage(), open_storage(f"sqlite:///{tmp_path}/new.db")]
    for other in into:
        assert read_archive(other, target) == rows
        for stream in ("posts", "others"):
            assert everything(other, stream) == everything(storage, stream)
            assert verify(other, stream).ok
        other.close()


def test_label_studio_gets_every_label_and_verdict(storage: SqliteStorage) -> None:
    tasks = list(label_studio_tasks(storage, "posts"))
    items = storage.items("posts")
    assert [task["meta"]["venire"]["item"] for task in tasks] == [item.id for item in items]
    for task, item in zip(tasks, items, strict=True):
        said = [
            (a["result"][0]["meta"]["text"][0], a["result"][0]["value"]["choices"][0])
            for a in task["annotations"]
        ]
        assert said == [(row.labeler, row.said) for row in storage.labels_of("posts", item.id)]
        verdicts = [p["result"][0]["value"]["choices"] for p in task["predictions"]]
        assert verdicts == ([[item.verdict]] if item.verdict is not None else [])
    assert sum(len(task["annotations"]) for task in tasks) == storage.counts("posts").labels


def test_snapshots_are_kept_from_the_first(storage: SqliteStorage) -> None:
    for n in (900, 901, 902, 903, 904, 905):
        storage.write([Insert([SnapshotRow(stream="posts", n=n, at=0.0, body=b"")])])
    kept = storage.snapshot_numbers("posts")
    assert kept[0] == 0
    assert kept[-2:] == [904, 905]
