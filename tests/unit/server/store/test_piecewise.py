"""The log compared with the tables in pieces: as all of both at once, and in bounded memory."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.marks import examples
from tests.store.store import MemoryStorage
from tests.stored import Stored, play
from tests.unit.server.store.plain_verify import plain_differences
from venire import Label
from venire.events import Observed
from venire.server.store import Insert, LabelRow, encode
from venire.server.store.maintenance import compared
from venire.server.store.maintenance.compared import Compared
from venire.server.store.maintenance.verify import verify
from venire.server.store.records import ItemRow

PLAYED = MemoryStorage()
play(PLAYED, slots=14)
MARKS = verify(PLAYED, "posts").marks

ITEMS = sorted(PLAYED.tables.items["posts"])
LABELS = sorted(PLAYED.tables.labels["posts"])
LEASES = sorted(PLAYED.tables.leases)


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    return None if value is None else value + 1


#: Table, row, and the column to change; or "delete" the row, or "copy" it under another name.
columns = {"items": ItemRow._fields[2:], "labels": LabelRow._fields[3:], "leases": ("given_at",)}
harm = st.one_of(
    *(
        st.tuples(st.just(table), st.integers(0, 200), st.sampled_from([*names, "delete", "copy"]))
        for table, names in columns.items()
    )
)


def damaged(storage: MemoryStorage, table: str, place: int, what: str) -> None:
    """Change the tables behind the log's back."""
    tables: Any = storage.tables
    rows = tables.leases if table == "leases" else getattr(tables, table)["posts"]
    keys = sorted(rows)
    key = keys[place % len(keys)]
    row = rows[key]
    exits = tables.exits["posts"]
    if what == "delete":
        del rows[key]
        if table == "items":
            exits.pop(row.exit_n, None)
    elif what == "copy":
        name = {"items": "id", "labels": "labeler", "leases": "token_hash"}[table]
        more = row._replace(**{name: getattr(row, name) + "+"})
        if table == "items":
            more = more._replace(exit_n=None)
        rows[(more.item, more.labeler) if table == "labels" else getattr(more, name)] = more
    else:
        value = other(getattr(row, what))
        if what == "exit_n" and row.exit_n is not None:
            value = max(exits) + 1  # a number that another item has is refused by every store
            exits.pop(row.exit_n, None)
            exits[value] = row.id
        rows[key] = row._replace(**{what: value})


@examples(night=60, day=20)
@given(harms=st.lists(harm, max_size=3), window=st.sampled_from([1, 7, 20_000]))
@example(harms=[("items", 50, "delete")], window=7)  # its labeler has not answered yet
def test_pieces_find_what_the_whole_finds(harms: list[Any], window: int) -> None:
    storage = MemoryStorage()
    storage.tables = copy.deepcopy(PLAYED.tables)
    for one in harms:
        damaged(storage, *one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compared, "WINDOW", window)
        found = {x for x in verify(storage, "posts").differences if " weight " not in x}
        again = {x for x in verify(storage, "posts", MARKS[:2]).differences if " weight " not in x}
    names = ("min_confidence", "eligible", "excluded")
    found = {x for x in found if not any(f" has {name} " in x for name in names)}
    again = {x for x in again if not any(f" has {name} " in x for name in names)}
    assert found == plain_differences(storage, "posts")
    assert again >= plain_differences(storage, "posts", MARKS[1].n)


@pytest.mark.parametrize("window", [1, 5, 20_000])
def test_a_clock_that_was_set_back_is_no_difference(
    window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compared, "WINDOW", window)
    storage = MemoryStorage()
    run = Stored(storage)
    for n in range(12):
        run.arrive(f"a{n}", f"b{n}")
        for labeler in ("ann", "bob"):
            item = run.ask(labeler)
            if item is not None:
                run.label(item, labeler, "ok")
        run.advance()
        run.at -= 3.0 if n % 4 == 3 else 0.0
    found = verify(storage, "posts")
    assert found.differences == ()
    assert (found.items, found.labels > 12, found.leases > 12) == (24, True, True)


def test_memory_is_for_a_window_and_not_for_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared, "WINDOW", 40)
    kept: list[int] = []
    tell = Compared.tell

    def counted(self: Compared, *told: Any) -> None:
        tell(self, *told)
        some = self._labels._facts, self._labels._strange, self._items.left, self._leases._given
        kept.append(sum(map(len, some)) + len(self._items.labelled) + len(self._items.open))

    monkeypatch.setattr(Compared, "tell", counted)
    storage = MemoryStorage()
    play(storage, slots=120)
    found = verify(storage, "posts")
    assert found.ok
    assert found.labels + found.exits + found.leases > 400
    assert max(kept) < 100


@pytest.mark.parametrize("late", [False, True])
def test_the_event_of_a_run_of_labels_that_differs_is_named(late: bool) -> None:
    """Labels are replayed in one call; which of them the log has wrong is found all the same."""
    storage = MemoryStorage()
    run = Stored(storage)
    run.arrive("a", "b")
    labels = [Label(item, who, "ok") for item in "ab" for who in ("ann", "bob", "eve")]
    said = [Observed(0, label, late and n == 3) for n, label in enumerate(labels)]
    if not late:
        said[3] = Observed(0, Label("b", "nobody", "ok"), False)
    storage.write([Insert(encode("posts", 1, run.at, said))])
    found = verify(storage, "posts")
    assert len(found.differences) == 1
    assert found.differences[0].startswith("event 4 does not replay: event 4: ")
    assert found.events == 4
