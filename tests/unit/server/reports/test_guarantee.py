"""Verdicts of a stream that are guaranteed: by what is in the store, and as clients see it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.store import MemoryStorage
from tests.unit.server.support import bench, running
from venire.model import ItemStatus
from venire.server.messages import GoldIn
from venire.server.settings import StreamSettings, as_body, of_body
from venire.server.store import (
    CheckRow,
    ExitRow,
    GoldRow,
    Insert,
    ItemRow,
    LeaveItems,
    SettingsRow,
    StreamRow,
)
from venire.server.store.maintenance.export import TABLES, write_table
from venire.server.store.maintenance.guaranteed import counted_in, guaranteed_in, judged_of

PANEL: tuple[dict[str, Any], ...] = (
    {"id": "ann", "competence": 0.9},
    {"id": "bob", "competence": 0.8},
    {"id": "judge", "trusted": True, "capacity": 2},
)
PROMISE = {"guarantee": 0.8, "audit_share": 0.3}


def setting(storage: MemoryStorage, version: int, at: float, **fields: Any) -> None:
    body = json.dumps({"settings": {"classes": ["a", "b"], **fields}})
    row = SettingsRow(stream="posts", version=version, at=at, actor="me", body=body)
    storage.write([Insert([row])])


def new(**fields: Any) -> MemoryStorage:
    storage = MemoryStorage()
    storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    setting(storage, 1, -1.0, **(fields or PROMISE))
    return storage


def check(n: int, k: int) -> CheckRow:
    return CheckRow(
        stream="posts", n=n, item=f"p{k}", at=float(k), share=0.3, verdict="a", extra=n % 10 == 0
    )


def gold(item: str, label: str, at: float) -> GoldRow:
    return GoldRow(stream="posts", item=item, label=label, at=at, source="audit", actor="judge")


def leave(storage: MemoryStorage, first: int, last: int, seed: int = 0) -> None:
    """Items leave, of which some are drawn; of the drawn ones every tenth is extra."""
    rng = np.random.default_rng([seed, first])
    names = [f"p{k}" for k in range(first, last)]
    items = [
        ItemRow(
            stream="posts",
            id=name,
            digest="d",
            payload="{}",
            weight=1.0,
            eligible=None,
            excluded="[]",
            arrived_slot=0,
            arrived_at=float(k),
        )
        for k, name in enumerate(names, first)
    ]
    exits = [
        ExitRow(
            stream="posts",
            id=name,
            status=ItemStatus.LEFT,
            exit_n=k + 1,
            exit_slot=k,
            left_at=float(k),
            verdict="a",
            confidence=sure,
            labels=2,
            reason="no_gain",
        )
        for k, (name, sure) in enumerate(
            zip(names, rng.choice([0.5, 0.85, 0.95], len(names)).tolist(), strict=True), first
        )
    ]
    storage.write([Insert(items), LeaveItems(exits)])
    number = len(storage.checks("posts"))
    drawn = [k for k in range(first, last) if rng.random() < 0.3]
    storage.write([Insert([check(n, k) for n, k in enumerate(drawn, number + 1)])])


def answer(storage: MemoryStorage, rows: list[CheckRow], wrong: int = 0) -> None:
    said = [gold(row.item, "b" if k < wrong else "a", 1e6) for k, row in enumerate(rows)]
    storage.write([Insert(said)])


def test_a_stream_without_a_promise_has_none() -> None:
    storage = new(audit_share=0.3)
    leave(storage, 0, 100)
    assert guaranteed_in(storage, "posts") is None


def test_marks_come_with_the_answers() -> None:
    storage = new()
    leave(storage, 0, 400)
    before = guaranteed_in(storage, "posts")
    assert before is not None
    assert before.found.marked == 0
    answer(storage, storage.checks("posts"))
    found = guaranteed_in(storage, "posts")
    assert found is not None
    assert (found.found.marked, found.found.through, found.found.confidence) == (400, 400, 0.2)
    assert found.found.curve[-1].audited == sum(not row.extra for row in storage.checks("posts"))
    assert found.marks(400, 0.5)
    assert not found.marks(None, 0.5)
    assert not found.marks(401, 0.99)


def test_a_change_of_the_promise_begins_a_new_test() -> None:
    storage = new()
    leave(storage, 0, 400)
    answer(storage, storage.checks("posts"))
    setting(storage, 2, 399.5, **PROMISE, min_labels=2)
    same = guaranteed_in(storage, "posts")
    assert same is not None
    assert same.found.marked == 400
    setting(storage, 3, 399.6, guarantee=0.8, audit_share=0.5)
    other = guaranteed_in(storage, "posts")
    assert other is not None
    assert (other.found.share, other.found.verdicts, other.found.marked) == (0.5, 0, 0)


def test_what_was_known_before_it_left_does_not_count() -> None:
    storage = new()
    leave(storage, 0, 400)
    answer(storage, storage.checks("posts"))
    known = next(k for k in range(400) if f"p{k}" not in storage.gold_of("posts", [f"p{k}"]))
    storage.write([Insert([gold(f"p{known}", "a", known - 0.5)])])
    found = guaranteed_in(storage, "posts")
    assert found is not None
    assert found.found.verdicts == 399
    assert not found.marks(known + 1, 1.0)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 30)), min_size=1, max_size=5))
def test_reading_on_is_reading_from_the_start(steps: list[tuple[int, int]]) -> None:
    """Whatever was left and answered between two looks."""
    storage, tested, left = new(), None, 0
    for exits, answers in steps:
        leave(storage, left, left + exits)
        left += exits
        said = storage.gold_of("posts", [row.item for row in storage.checks("posts")])
        due = [row for row in storage.checks("posts") if row.item not in said]
        answer(storage, due[:answers], wrong=1)
        tested = counted_in(storage, "posts", tested)
        assert tested is not None
        assert judged_of(storage, "posts", tested) == guaranteed_in(storage, "posts")


def test_an_export_has_the_marks(tmp_path: Path) -> None:
    storage = new()
    leave(storage, 0, 400)
    answer(storage, storage.checks("posts"))
    write_table(storage, "posts", "verdicts", tmp_path / "verdicts.csv")
    lines = (tmp_path / "verdicts.csv").read_text().splitlines()
    assert lines[0].endswith(",guaranteed")
    assert {line.rsplit(",", 1)[1].lower() for line in lines[1:]} == {"true"}
    plain = new(audit_share=0.3)
    leave(plain, 0, 3)
    write_table(plain, "posts", "verdicts", tmp_path / "plain.csv")
    assert "guaranteed" not in (tmp_path / "plain.csv").read_text()


@pytest.mark.parametrize("what", sorted(TABLES))
def test_probabilities_are_a_matter_of_verdicts_alone(what: str, tmp_path: Path) -> None:
    storage = new()
    leave(storage, 0, 4)
    for probabilities in (False, True):
        path = tmp_path / f"{probabilities}.csv"
        write_table(storage, "posts", what, path, probabilities)
    with_them, without = ((tmp_path / f"{x}.csv").read_text() for x in (True, False))
    assert (with_them == without) == (what != "verdicts")


def test_a_promise_needs_audits() -> None:
    with pytest.raises(ValueError, match="set audit_share"):
        StreamSettings(classes=("a", "b"), guarantee=0.95)
    with pytest.raises(ValueError, match="set both, or neither"):
        StreamSettings(classes=("a", "b"), guarantee_level=0.9)


def test_settings_without_a_promise_are_stored_as_before() -> None:
    plain = StreamSettings(classes=("a", "b"))
    assert "guarantee" not in as_body(plain, "running")
    promised = StreamSettings(classes=("a", "b"), guarantee=0.9, audit_share=0.1)
    assert of_body(as_body(promised, "running"))[0] == promised


@running
async def test_reviewers_see_those_that_are_not_guaranteed() -> None:
    promise: dict[str, Any] = {"panel": PANEL, "audit_share": 0.5, "guarantee": 0.8}
    async with bench(**promise) as b:
        items = [f"p{k}" for k in range(80)]
        await b.add(*items)
        await b.service.add_labels("posts", [(i, m, "spam") for i in items for m in ("ann", "bob")])
        await b.pass_time(10)
        due = (await b.service.audits("posts")).due_items
        assert due is not None
        before = await b.service.reviews("posts", "doubtful", limit=100)
        assert {one.item for one in before.items} == set(items) - set(due)
        await b.service.add_gold("posts", [GoldIn(i, "spam") for i in due])
        assert (await b.service.reviews("posts", "doubtful")).items == ()


@running
async def test_clients_see_the_marks() -> None:
    promise: dict[str, Any] = {"panel": PANEL, "audit_share": 1.0, "guarantee": 0.8}
    async with bench(**promise) as b:
        items = [f"p{k}" for k in range(10)]
        await b.add(*items)
        await b.service.add_labels("posts", [(i, m, "spam") for i in items for m in ("ann", "bob")])
        await b.pass_time(10)
        assert [view.guaranteed for view in await b.service.exits("posts")] == [False] * 10
        view = (await b.service.rates("posts")).guarantee
        assert view is not None
        assert (view.marked, view.verdicts, view.curve[-1].due) == (0, 10, 10)
        said = [GoldIn(i, "ok" if i in ("p3", "p8") else "spam") for i in items[:9]]
        await b.service.add_gold("posts", said)
        # of the first eight one is wrong; the tenth is not answered and counts as wrong
        marks = [view.guaranteed for view in await b.service.exits("posts")]
        assert marks == [True] * 8 + [False] * 2
        item = await b.service.item("posts", "p0")
        assert item.exit is not None
        assert item.exit.guaranteed
        await b.service.add_gold("posts", [GoldIn("p9", "spam")])
        assert all(view.guaranteed for view in await b.service.exits("posts"))
        shown = (await b.service.rates("posts")).guarantee
        assert shown is not None
        assert (shown.marked, shown.coverage, shown.curve[-1].bound) == (10, 1.0, 0.2)


@running
async def test_without_a_promise_nothing_is_marked() -> None:
    async with bench(panel=PANEL, audit_share=1.0) as b:
        await b.add("p1")
        await b.service.add_labels("posts", [("p1", m, "spam") for m in ("ann", "bob")])
        await b.pass_time(10)
        assert [view.guaranteed for view in await b.service.exits("posts")] == [None]
        assert (await b.service.rates("posts")).guarantee is None
