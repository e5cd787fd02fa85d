"""Every store finds the same items as the plain one, whatever is asked, page by page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.marks import examples
from tests.store.store import MemoryStorage
from venire.server.store import (
    CheckRow,
    ExitRow,
    GoldRow,
    Insert,
    ItemRow,
    ItemSearch,
    LabelRow,
    LeaveItems,
    RevisionRow,
    Storage,
    StreamRow,
    open_storage,
)

NewUrl = Callable[[str], str]

TEXTS = ["Buy NOW", 'say "no"', "100 %_", "back\\slash", "naïve Ärger", "plain"]

ASKED = ["buy now", 'Y "n', "%_", "_", "k\\s", "ärger", "ÄRGER", "I1"]


def _fill(storage: Storage) -> None:
    """Sixty items in two streams; some arrived at the same time, some are open."""
    for stream in ("s", "t"):
        storage.write([Insert([StreamRow(name=stream, created_at=0.0)])])
    items = [_item("s", k) for k in range(60)] + [_item("t", k) for k in range(5)]
    exits = [_exit(k) for k in range(60) if k % 5]
    labels = [
        LabelRow(
            stream="s",
            item=f"i{k}",
            labeler=f"m{who}",
            said="ok",
            at=1.0,
            slot=0,
            late=False,
            lead_seconds=None,
            source="lease",
        )
        for k in range(60)
        for who in range(k % 3)
    ]
    gold = [
        GoldRow(stream="s", item=f"i{k}", label="ok", at=1.0, source="sent", actor="me")
        for k in range(1, 60, 7)
    ]
    revised = [
        RevisionRow(
            stream="s",
            n=n + 1,
            item=f"i{1 + n % 4}",
            slot=0,
            at=1.0,
            before="ok",
            before_confidence=0.5,
            verdict=f"v{n}",
            confidence=0.5,
            labels=1,
        )
        for n in range(6)
    ]
    storage.write([Insert(items), LeaveItems(exits), Insert(labels), Insert(gold)])
    drawn = [
        CheckRow(stream="s", n=n, item=f"i{k}", at=1.0, share=0.5, verdict="ok")
        for n, k in enumerate(range(1, 60, 2), 1)
        if k % 5
    ]
    storage.write([Insert(revised), Insert(drawn)])


def _item(stream: str, k: int) -> ItemRow:
    payload = json.dumps({"text": TEXTS[k % 6]}, ensure_ascii=False)
    return ItemRow(
        stream=stream,
        id=f"i{k}",
        digest="d",
        payload=payload,
        weight=1.0,
        eligible=None,
        excluded="[]",
        arrived_slot=0,
        arrived_at=float(k // 4),
    )


def _exit(k: int) -> ExitRow:
    status = "withdrawn" if k % 11 == 1 else "left"
    verdict = None if status == "withdrawn" else ("spam", "ok", "rare")[k % 3 if k % 4 else 0]
    reason = "withdrawn" if verdict is None else ("no_gain", "budget")[k % 2]
    return ExitRow(
        stream="s",
        id=f"i{k}",
        status=status,
        exit_n=k + 1,
        exit_slot=1,
        left_at=9.0,
        verdict=verdict,
        confidence=(k % 10) / 10,
        labels=1,
        reason=reason,
    )


def _pages(storage: Storage, search: ItemSearch, limit: int, scan: int) -> list[Any]:
    pages, place = [], None
    while True:
        rows, place = storage.find_items("s", search, place, limit, scan)
        pages.append((rows, place))
        if place is None:
            return pages


SEARCHES = st.builds(
    ItemSearch,
    status=st.sampled_from([None, None, "open", "left", "withdrawn"]),
    verdict=st.sampled_from([None, None, "spam", "rare", "nothing"]),
    reason=st.sampled_from([None, None, "budget", "no_gain"]),
    low=st.sampled_from([None, None, 0.0, 0.5]),
    high=st.sampled_from([None, None, 0.5, 0.9]),
    labeler=st.sampled_from([None, None, "m0", "m1", "nobody"]),
    text=st.sampled_from(
        [None, None, "buy now", 'Y "n', "%_", "_", "k\\s", "ärger", "ÄRGER", "I1"]
    ),
    since=st.sampled_from([None, None, 3.0]),
    until=st.sampled_from([None, None, 9.0]),
    blind=st.booleans(),
)


@pytest.fixture(scope="module")
def plain() -> MemoryStorage:
    storage = MemoryStorage()
    _fill(storage)
    return storage


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_search_finds_what_a_plain_one_finds(
    new_url: NewUrl, kind: str, plain: MemoryStorage
) -> None:
    with open_storage(new_url(kind)) as storage:
        _fill(storage)

        @settings(
            examples(night=150, day=40), suppress_health_check=[HealthCheck.function_scoped_fixture]
        )
        @given(search=SEARCHES, limit=st.integers(1, 9), scan=st.integers(1, 70))
        def same(search: ItemSearch, limit: int, scan: int) -> None:
            assert _pages(storage, search, limit, scan) == _pages(plain, search, limit, scan)

        same()
        for after in (None, (0.3, 14)):
            assert storage.doubtful("s", after, 20) == plain.doubtful("s", after, 20)
        for edges in ([], [1.0], [0.0, 2.0, 2.0, 3.5, 3.5 + 1e9]):
            assert storage.arrivals("s", edges) == plain.arrivals("s", edges)
        ids = [f"i{k}" for k in range(9)]
        assert storage.revised("s", ids) == plain.revised("s", ids) != {}
        assert sorted(storage.labels_among("s", ids)) == sorted(plain.labels_among("s", ids))


@given(search=SEARCHES, limit=st.integers(1, 9), scan=st.integers(1, 70))
def test_pages_are_all_that_matches_in_order(
    plain: MemoryStorage, search: ItemSearch, limit: int, scan: int
) -> None:
    found = [row.id for rows, _ in _pages(plain, search, limit, scan) for row in rows]
    items = sorted(plain.items("s"), key=lambda row: (row.arrived_at, row.id), reverse=True)
    labelled = {(row.item, row.labeler) for row in plain.labels("s")}
    due = {row.item for row in plain.checks("s")} - {row.item for row in plain.gold("s")}
    wanted = [
        row.id
        for row in items
        if not (search.blind and row.id in due)
        and search.matches(row, (row.id, search.labeler) in labelled)
        and (search.since is None or row.arrived_at >= search.since)
        and (search.until is None or row.arrived_at < search.until)
    ]
    assert found == wanted


def test_the_least_confident_verdicts_come_first_without_gold_or_what_is_due(
    plain: MemoryStorage,
) -> None:
    rows = plain.doubtful("s", None, 100)
    assert [row.confidence for row in rows] == sorted(row.confidence or 0.0 for row in rows)
    assert not {row.id for row in rows} & {row.item for row in plain.gold("s")}
    assert not {row.id for row in rows} & {row.item for row in plain.checks("s")}
    assert all(row.verdict is not None for row in rows)
    first = rows[9]
    place = first.confidence or 0.0, first.exit_n or 0
    assert plain.doubtful("s", place, 100) == rows[10:]
