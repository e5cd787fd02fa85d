"""The order of reviews by what tells most: that of `venire ask`, without what is hidden."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.store.store import MemoryStorage
from tests.unit.server.support import Bench, bench, running
from venire.estimators.questions import questions
from venire.labels import LabelTable
from venire.model import NoWork
from venire.server import ManualClock
from venire.server.messages import GoldIn
from venire.server.reports.skill_report import asked_of, reason_of
from venire.server.store import (
    GoldRow,
    Insert,
    ItemRow,
    LabelRow,
    StreamRow,
)
from venire.server.store.maintenance.verify import verify

CLASSES = ("spam", "ok")


def stored(gold: dict[str, str]) -> tuple[MemoryStorage, list[tuple[str, str, str]]]:
    """Three who repeat each other, and one who is right."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    herd = np.where(rng.random(120) < 0.6, truth, 1 - truth)
    good = np.where(rng.random(120) < 0.95, truth, 1 - truth)
    said = dict.fromkeys(("ann", "bob", "cec"), herd) | {"dan": good}
    rows = [(f"i{i}", who, CLASSES[x[i]]) for i in range(120) for who, x in said.items()]
    storage = MemoryStorage()
    items = [
        ItemRow(
            stream="posts",
            id=f"i{i}",
            digest="d",
            payload="{}",
            weight=1.0,
            eligible=None,
            excluded="[]",
            arrived_slot=0,
            arrived_at=0.0,
        )
        for i in range(120)
    ]
    labels = [
        LabelRow(
            stream="posts",
            item=item,
            labeler=labeler,
            said=said,
            at=float(n),
            slot=0,
            late=False,
            lead_seconds=None,
            source="bulk",
        )
        for n, (item, labeler, said) in enumerate(rows)
    ]
    known = [
        GoldRow(stream="posts", item=item, label=label, at=1.0, source="sent", actor="me")
        for item, label in gold.items()
    ]
    storage.write(
        [Insert([StreamRow(name="posts", created_at=0.0)]), Insert(items), Insert(labels)]
    )
    storage.write([Insert(known)])
    return storage, rows


def test_it_is_the_order_of_ask_without_what_is_due() -> None:
    gold = {f"i{i}": "spam" for i in range(5)}
    storage, rows = stored(gold)
    due, drawn = frozenset({"i9", "i30"}), frozenset({"i0", "i9", "i30"})
    told = asked_of(storage, "posts", CLASSES, due, drawn)
    left = [row for row in reversed(rows) if row[0] not in due]
    plain = questions(
        LabelTable.from_rows(left, classes=CLASSES), 100, gold, asked=set(gold) - {"i0"}
    )
    assert (told.asked, told.words) == (plain.asked, plain.words)
    assert not {one.item for one in told.asked} & (due | set(gold))


def test_labels_of_what_is_due_have_no_part() -> None:
    storage, rows = stored({})
    other = MemoryStorage()
    names = {row[0] for row in rows}
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
            arrived_at=0.0,
        )
        for name in sorted(names)
    ]
    turned = [
        (item, who, CLASSES[CLASSES.index(x) ^ 1] if item == "i7" else x) for item, who, x in rows
    ]
    labels = [
        LabelRow(
            stream="posts",
            item=item,
            labeler=labeler,
            said=said,
            at=float(n),
            slot=0,
            late=False,
            lead_seconds=None,
            source="bulk",
        )
        for n, (item, labeler, said) in enumerate(turned)
    ]
    other.write([Insert([StreamRow(name="posts", created_at=0.0)]), Insert(items), Insert(labels)])
    hidden = frozenset({"i7"})
    one, two = (asked_of(x, "posts", CLASSES, hidden, hidden) for x in (storage, other))
    assert one == two


def test_nobody_to_compare_tells_nothing() -> None:
    storage = MemoryStorage()
    storage.write([Insert([StreamRow(name="posts", created_at=0.0)])])
    assert asked_of(storage, "posts", CLASSES, frozenset(), frozenset()) == ((), (), False)


@running
async def test_reviews_have_that_order_and_say_why() -> None:
    more: dict[str, Any] = {"policy": "fixed-overlap:3"}
    async with bench(**more) as b:
        names = [f"i{k}" for k in range(30)]
        await b.add(*names)
        said = {"ann": "spam", "bob": "spam", "cec": "ok"}
        rows = [
            (i, who, x if k % 3 else "spam") for k, i in enumerate(names) for who, x in said.items()
        ]
        await b.service.add_labels("posts", rows)
        await b.pass_time(30)
        page = await b.service.reviews("posts", order="telling", limit=5)
        told = asked_of(b.storage, "posts", CLASSES, frozenset(), frozenset())
        assert [one.item for one in page.items] == [one.item for one in told.asked[:5]]
        assert [one.reason for one in page.items] == [reason_of(one) for one in told.asked[:5]]
        assert (page.words, page.next) == (told.words, None)
        first = page.items[0].item
        await b.service.add_gold("posts", [GoldIn(first, "ok")])
        again = await b.service.reviews("posts", order="telling", limit=5)
        assert first not in [one.item for one in again.items]
        plain = await b.service.reviews("posts", limit=5)
        assert all(one.reason is None for one in plain.items)


@running
async def test_a_trusted_labeler_is_asked_what_tells_most_while_its_share_lasts() -> None:
    panel: list[dict[str, Any]] = [{"id": who, "price": 1.0} for who in ("ann", "bob", "cec")]
    expert = {"id": "dana", "trusted": True, "price": 4.0, "capacity": 2}
    panel.append(expert)
    more: dict[str, Any] = {"policy": "fixed-overlap:3", "learning": "while-serving"}
    more["panel"] = panel
    storage, clock = MemoryStorage(), ManualClock()
    async with bench(storage, clock, expert_share=0.1, **more) as b:
        await split(b, 30)  # 90 labels for 90
        told = (await b.service.reviews("posts", order="telling", limit=3)).items
        first, second = [await b.take("dana") for _ in range(2)]
        assert [first.item, second.item] == [one.item for one in told[:2]]
        assert await b.why("dana") == NoWork.OVER_CAPACITY
        assert first.token
        assert second.token
        await b.service.label(first.token, "ok")
        await b.service.label(second.token, "ok")
        assert await b.why("dana") == NoWork.BUDGET_SPENT  # a third would be 12 of 102
        [gold] = [x for x in await b.service.gold("posts", None, 9) if x.item == first.item]
        assert (gold.source, gold.actor) == ("asked", "dana")
        audits = await b.service.audits("posts")
        assert (audits.gold, audits.overall.audited) == (2, 0)
    async with bench(storage, clock, make=False) as b:
        assert await b.why("dana") == NoWork.BUDGET_SPENT
        await split(b, 40, first=30)  # now 12 of 222
        third = await b.take("dana")
        assert third.item not in (first.item, second.item)
    assert verify(storage, "posts").differences == ()


@running
async def test_without_a_share_a_trusted_labeler_gets_audits_alone() -> None:
    panel = [*({"id": who} for who in ("ann", "bob", "cec")), {"id": "dana", "trusted": True}]
    async with bench(policy="fixed-overlap:3", learning="while-serving", panel=panel) as b:
        await split(b, 30)
        assert await b.why("dana") == NoWork.EMPTY
        await b.service.change_stream("posts", {"expert_share": 0.05}, "me")  # of the number: 4
        for _ in range(4):
            lease = await b.take("dana")
            assert lease.token
            await b.service.label(lease.token, "ok")
        assert await b.why("dana") == NoWork.BUDGET_SPENT


async def split(b: Bench, number: int, first: int = 0) -> None:
    """Items on which two say one thing and one another, most of the time."""
    names = [f"i{k}" for k in range(first, first + number)]
    await b.add(*names)
    said = {"ann": "spam", "bob": "spam", "cec": "ok"}
    await b.service.add_labels(
        "posts",
        [(i, who, x if k % 3 else "spam") for k, i in enumerate(names) for who, x in said.items()],
    )
    await b.pass_time(30)
